<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko" sourcelanguage="en">
<context>
    <name>Application</name>
    <message>
        <source>Lucebox ended unexpectedly the last time. Your chats are saved.</source>
        <translation>지난번에 Lucebox가 예기치 않게 종료되었습니다. 채팅은 저장되어 있습니다.</translation>
    </message>
    <message>
        <source>Settings cannot be saved on this PC, so changes last until you close: {why}</source>
        <translation>이 PC에 설정을 저장할 수 없어 변경한 내용은 창을 닫을 때까지만 유지됩니다: {why}</translation>
    </message>
    <message>
        <source>An error in the application: {error}. The log has the details.</source>
        <translation>애플리케이션 오류: {error}. 자세한 내용은 로그에 있습니다.</translation>
    </message>
    <message>
        <source>The graphics card stopped with an error that lasts until Lucebox is started again. Your chats are saved.</source>
        <translation>그래픽 카드가 오류로 멈췄습니다. 이 오류는 Lucebox를 다시 시작할 때까지 계속됩니다. 대화는 저장되어 있습니다.</translation>
    </message>
    <message>
        <source>Restart Lucebox</source>
        <translation>Lucebox 다시 시작</translation>
    </message>
    <message>
        <source>Lucebox is already running but does not answer. Wait a moment, or end it and start again.</source>
        <translation>Lucebox가 이미 실행 중이지만 응답하지 않습니다. 잠시 기다리거나 종료한 뒤 다시 시작하세요.</translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Copy diagnostics</source>
        <translation>진단 정보 복사</translation>
    </message>
    <message>
        <source>Close this note</source>
        <translation>알림 닫기</translation>
    </message>
</context>
<context>
    <name>Before</name>
    <message>
        <source>Before you apply</source>
        <translation>적용하기 전에</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>토큰/초</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>적용</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>Undo changes</source>
        <translation>변경 취소</translation>
    </message>
    <message>
        <source>Changes</source>
        <translation>변경 사항</translation>
    </message>
    <message>
        <source>Memory after applying</source>
        <translation>적용 후 메모리</translation>
    </message>
    <message>
        <source>What happens</source>
        <translation>적용하면</translation>
    </message>
    <message>
        <source>None yet</source>
        <translation>아직 없음</translation>
    </message>
    <message>
        <source>Nothing would change.</source>
        <translation>바뀌는 것이 없습니다.</translation>
    </message>
    <message>
        <source>Choose something; it is told here before it is done.</source>
        <translation>항목을 선택하면 적용하기 전에 여기에 표시됩니다.</translation>
    </message>
    <message>
        <source>The model is loaded again; answers under way end, chats stay. If it fails, the model runs as before.</source>
        <translation>모델을 다시 불러옵니다. 진행 중인 답변은 끝나고 채팅은 그대로 남습니다. 실패하면 모델은 이전 설정으로 계속 실행됩니다.</translation>
    </message>
    <message>
        <source>The last load took {n} s.</source>
        <translation>지난번에는 불러오는 데 {n}초 걸렸습니다.</translation>
    </message>
    <message>
        <source>last measured while writing</source>
        <translation>글을 쓰는 동안 마지막으로 측정</translation>
    </message>
    <message>
        <source>not measured yet</source>
        <translation>아직 측정하지 않음</translation>
    </message>
    <message>
        <source>{n}× the speed</source>
        <translation>속도 {n}×</translation>
    </message>
    <message>
        <source>measured {day}. Without drafts: {rate}</source>
        <translation>{day} 측정. 초안 없이: {rate}</translation>
    </message>
    <message>
        <source>as the last load measured</source>
        <translation>지난번 불러올 때 측정한 값</translation>
    </message>
    <message>
        <source>estimated</source>
        <translation>추정</translation>
    </message>
    <message>
        <source>{size} with a context of {n} tokens, {said}; now {held}</source>
        <translation>컨텍스트 {n} 토큰에 {size}, {said}; 현재 {held}</translation>
    </message>
</context>
<context>
    <name>BinButton</name>
    <message numerus="yes">
        <source>Bin, %n model(s)</source>
        <translation>
            <numerusform>휴지통, 모델 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Bring back {name}</source>
        <translation>{name} 되돌리기</translation>
    </message>
    <message>
        <source>Delete for good, frees {size}</source>
        <translation>완전히 삭제하여 {size} 확보</translation>
    </message>
</context>
<context>
    <name>CachePane</name>
    <message>
        <source>Cache</source>
        <translation>캐시</translation>
    </message>
    <message>
        <source>Clear…</source>
        <translation>비우기…</translation>
    </message>
    <message>
        <source>of prompt tokens reused</source>
        <translation>프롬프트 토큰 재사용</translation>
    </message>
    <message>
        <source>Pages by owner</source>
        <translation>소유별 페이지</translation>
    </message>
    <message>
        <source>In memory</source>
        <translation>메모리</translation>
    </message>
    <message>
        <source>Keep conversations on disk</source>
        <translation>대화를 디스크에 보관</translation>
    </message>
    <message>
        <source>Forget everything…</source>
        <translation>모두 지우기…</translation>
    </message>
    <message>
        <source>On disk</source>
        <translation>디스크</translation>
    </message>
    <message>
        <source>{reused} of {all} since the model was loaded.</source>
        <translation>모델을 불러온 뒤 {all} 중 {reused}.</translation>
    </message>
    <message>
        <source>Saved about {time} of reading.</source>
        <translation>읽는 시간을 약 {time} 절약했습니다.</translation>
    </message>
    <message>
        <source>No prompt has been read yet.</source>
        <translation>아직 읽은 프롬프트가 없습니다.</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n}초</translation>
    </message>
    <message>
        <source>{n} min</source>
        <translation>{n}분</translation>
    </message>
    <message>
        <source>All of them hold {size}; {n} are in use now.</source>
        <translation>모두 합해 {size}이고, 지금 {n}개를 사용 중입니다.</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>불러온 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Copies of {pages} pages and {states} states, for when they are needed again.</source>
        <translation>다시 필요할 때를 위한 페이지 {pages}개와 상태 {states}개의 사본입니다.</translation>
    </message>
    <message>
        <source>{size} of at most {most}, encrypted. Kept {days} days after the last use.</source>
        <translation>최대 {most} 중 {size}, 암호화됨. 마지막 사용 후 {days}일 동안 보관합니다.</translation>
    </message>
    <message>
        <source>Off, and {size} are still there.</source>
        <translation>꺼져 있으며, {size}가 아직 남아 있습니다.</translation>
    </message>
    <message>
        <source>Off. Keeps conversations warm over a restart, encrypted, up to {most}.</source>
        <translation>꺼짐. 켜면 다시 시작해도 대화를 다시 읽지 않도록 암호화해 최대 {most}까지 보관합니다.</translation>
    </message>
    <message>
        <source>All that is cached is dropped, in memory and on disk. Your chats stay; what they begin with is read anew when it is needed.</source>
        <translation>메모리와 디스크의 캐시를 모두 비웁니다. 채팅은 그대로 남으며, 앞부분은 필요할 때 다시 읽습니다.</translation>
    </message>
    <message>
        <source>Clear the cache</source>
        <translation>캐시 비우기</translation>
    </message>
    <message>
        <source>All that is cached is deleted with its key, so that copies of the files cannot be read any more either. Your chats stay; what they begin with is read anew when it is needed.</source>
        <translation>캐시를 키와 함께 모두 삭제하므로, 파일의 사본도 더는 읽을 수 없습니다. 채팅은 그대로 남으며, 앞부분은 필요할 때 다시 읽습니다.</translation>
    </message>
    <message>
        <source>Delete it all</source>
        <translation>모두 삭제</translation>
    </message>
    <message>
        <source>{used} of {total}</source>
        <translation>{total} 중 {used}</translation>
    </message>
</context>
<context>
    <name>ChatHeader</name>
    <message>
        <source>Show or hide the list of chats</source>
        <translation>채팅 목록 표시 또는 숨기기</translation>
    </message>
    <message>
        <source>Eject: give the model&apos;s memory back</source>
        <translation>꺼내기: 모델이 쓰던 메모리를 돌려줍니다</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Loading {name}</source>
        <translation>{name} 불러오는 중</translation>
    </message>
    <message>
        <source>Looking for models…</source>
        <translation>모델을 찾는 중…</translation>
    </message>
    <message>
        <source>All models</source>
        <translation>모든 모델</translation>
    </message>
</context>
<context>
    <name>ChatKeys</name>
    <message>
        <source>Find in this chat</source>
        <translation>이 채팅에서 찾기</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답변</translation>
    </message>
    <message>
        <source>Copy the last answer</source>
        <translation>마지막 답변 복사</translation>
    </message>
    <message>
        <source>Export this chat</source>
        <translation>이 채팅 내보내기</translation>
    </message>
    <message>
        <source>Export all chats</source>
        <translation>모든 채팅 내보내기</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>이전 버전</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>다음 버전</translation>
    </message>
    <message>
        <source>Delete this chat</source>
        <translation>이 채팅 삭제</translation>
    </message>
    <message>
        <source>Undo deleting a chat</source>
        <translation>채팅 삭제 취소</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>답변 중지</translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message>
        <source>Search all chats</source>
        <translation>모든 채팅 검색</translation>
    </message>
    <message>
        <source>Clear the search</source>
        <translation>검색 지우기</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>새 채팅</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>새 채팅 (Ctrl+N)</translation>
    </message>
    <message>
        <source>“{title}” was deleted</source>
        <translation>“{title}” 채팅을 삭제했습니다</translation>
    </message>
    <message>
        <source>The chat is back.</source>
        <translation>채팅을 되살렸습니다.</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>열기</translation>
    </message>
    <message>
        <source>Rename	F2</source>
        <translation>이름 바꾸기	F2</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>고정 해제</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>고정</translation>
    </message>
    <message>
        <source>Export…	Ctrl+E</source>
        <translation>내보내기…	Ctrl+E</translation>
    </message>
    <message>
        <source>Delete	Del</source>
        <translation>삭제	Del</translation>
    </message>
</context>
<context>
    <name>ChatModel</name>
    <message>
        <source>Your chats will be listed here.</source>
        <translation>채팅이 여기에 표시됩니다.</translation>
    </message>
    <message numerus="yes">
        <source>%n place(s) found</source>
        <translation>
            <numerusform>%n곳에서 찾음</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing found for “{query}”</source>
        <translation>“{query}”에 대한 결과가 없습니다</translation>
    </message>
    <message>
        <source>Pinned</source>
        <translation>고정됨</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>오늘</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>어제</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>지난 7일</translation>
    </message>
    <message>
        <source>Older</source>
        <translation>이전</translation>
    </message>
    <message numerus="yes">
        <source>%n message(s)</source>
        <translation>
            <numerusform>메시지 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Writing…</source>
        <translation>쓰는 중…</translation>
    </message>
    <message>
        <source>Untitled</source>
        <translation>제목 없음</translation>
    </message>
    <message>
        <source>pinned</source>
        <translation>고정됨</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Waiting</source>
        <translation>대기 중</translation>
    </message>
    <message>
        <source>Reading {n} of {total} tokens</source>
        <translation>토큰 {total}개 중 {n}개 읽는 중</translation>
    </message>
    <message>
        <source>Message {name}</source>
        <translation>{name}에게 보낼 메시지</translation>
    </message>
    <message>
        <source>{name} is loading. You can type meanwhile.</source>
        <translation>{name} 모델을 불러오는 중입니다. 그동안 입력할 수 있습니다.</translation>
    </message>
    <message>
        <source>No model is loaded. Choose one, then send.</source>
        <translation>불러온 모델이 없습니다. 모델을 선택한 뒤 보내세요.</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>{n} of {most} tokens</source>
        <translation>토큰 {n} / {most}</translation>
    </message>
    <message>
        <source>An answer is being written. Stop it first.</source>
        <translation>답변을 쓰는 중입니다. 먼저 중지하세요.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>복사했습니다</translation>
    </message>
    <message>
        <source>Attach text files</source>
        <translation>텍스트 파일 첨부</translation>
    </message>
    <message>
        <source>Chats are saved again.</source>
        <translation>채팅이 다시 저장되고 있습니다.</translation>
    </message>
</context>
<context>
    <name>ChatView</name>
    <message>
        <source>Chats</source>
        <translation>채팅</translation>
    </message>
</context>
<context>
    <name>Chooser</name>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Device of this model</source>
        <translation>이 모델의 장치</translation>
    </message>
    <message>
        <source>Load here</source>
        <translation>여기서 불러오기</translation>
    </message>
    <message>
        <source>Where a model runs</source>
        <translation>모델이 실행되는 곳</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>There is no model yet. Add one on the page Models.</source>
        <translation>아직 모델이 없습니다. 모델 페이지에서 추가하세요.</translation>
    </message>
</context>
<context>
    <name>Client</name>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Copy the settings for {name}</source>
        <translation>{name} 설정 복사</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>명령</translation>
    </message>
    <message>
        <source>Copy the command that starts {name}</source>
        <translation>{name} 시작 명령 복사</translation>
    </message>
</context>
<context>
    <name>Commands</name>
    <message>
        <source>New chat</source>
        <translation>새 채팅</translation>
    </message>
    <message>
        <source>Open a model file</source>
        <translation>모델 파일 열기</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Search all chats</source>
        <translation>모든 채팅 검색</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>명령</translation>
    </message>
    <message>
        <source>Show or hide the rail</source>
        <translation>왼쪽 메뉴 표시 또는 숨기기</translation>
    </message>
    <message>
        <source>Show or hide the right pane</source>
        <translation>오른쪽 창 표시 또는 숨기기</translation>
    </message>
    <message>
        <source>Next part of the window</source>
        <translation>창의 다음 영역</translation>
    </message>
    <message>
        <source>Previous part of the window</source>
        <translation>창의 이전 영역</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>글자 크게</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>글자 작게</translation>
    </message>
    <message>
        <source>Usual text size</source>
        <translation>기본 글자 크기</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>단축키</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>종료</translation>
    </message>
    <message>
        <source>Go to {page}</source>
        <translation>{page} 페이지로 이동</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>All files</source>
        <translation>모든 파일</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Message</source>
        <translation>메시지</translation>
    </message>
    <message>
        <source>Attach a text file</source>
        <translation>텍스트 파일 첨부</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>샘플링</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>시스템 프롬프트</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>보내기</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Editing a message. The former version stays.</source>
        <translation>메시지를 고치는 중입니다. 이전 버전은 그대로 남습니다.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Waiting for the model</source>
        <translation>모델을 기다리는 중</translation>
    </message>
    <message>
        <source>Type a message first</source>
        <translation>먼저 메시지를 입력하세요</translation>
    </message>
    <message>
        <source>It is sent when the model is ready, unless you type on.</source>
        <translation>모델이 준비되면 보냅니다. 계속 입력하면 보내지 않습니다.</translation>
    </message>
</context>
<context>
    <name>Details</name>
    <message>
        <source>Chat with it</source>
        <translation>이 모델과 채팅</translation>
    </message>
    <message>
        <source>Show file</source>
        <translation>파일 표시</translation>
    </message>
    <message>
        <source>Move to the bin</source>
        <translation>휴지통으로 이동</translation>
    </message>
    <message>
        <source>No model chosen</source>
        <translation>선택한 모델 없음</translation>
    </message>
    <message>
        <source>This file cannot be used.</source>
        <translation>이 파일은 사용할 수 없습니다.</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>종류</translation>
    </message>
    <message>
        <source>File</source>
        <translation>파일</translation>
    </message>
    <message>
        <source>It goes with a chat model and cannot chat by itself.</source>
        <translation>채팅 모델과 함께 쓰는 파일이라 혼자서는 채팅할 수 없습니다.</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>속도</translation>
    </message>
    <message>
        <source>Make a draft for it…</source>
        <translation>이 모델의 초안 만들기…</translation>
    </message>
    <message>
        <source>Use it with {model}</source>
        <translation>{model}에 사용</translation>
    </message>
    <message>
        <source>Goes with it</source>
        <translation>함께 쓰는 파일</translation>
    </message>
    <message>
        <source>On this PC, {n} tokens</source>
        <translation>이 PC에서, 토큰 {n}개</translation>
    </message>
    <message>
        <source>as the last load measured</source>
        <translation>마지막 로드에서 측정한 값</translation>
    </message>
    <message>
        <source>estimated</source>
        <translation>추정값</translation>
    </message>
    <message>
        <source>no measurement yet</source>
        <translation>아직 측정하지 않음</translation>
    </message>
    <message>
        <source>{n} tok/s</source>
        <translation>{n} 토큰/초</translation>
    </message>
    <message>
        <source>Writing, last measured</source>
        <translation>쓰기, 마지막 측정값</translation>
    </message>
    <message>
        <source>Prompt reading</source>
        <translation>프롬프트 읽기</translation>
    </message>
    <message>
        <source>Load from disk</source>
        <translation>디스크에서 불러오기</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n}초</translation>
    </message>
</context>
<context>
    <name>DeviceBlock</name>
    <message>
        <source>{used} of {total}</source>
        <translation>{total} 중 {used}</translation>
    </message>
</context>
<context>
    <name>Devices</name>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>초안</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
    <message>
        <source>Work space</source>
        <translation>작업 공간</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>다른 프로그램</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>여유</translation>
    </message>
</context>
<context>
    <name>DevicesPage</name>
    <message>
        <source>Devices</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Card to test</source>
        <translation>검사할 카드</translation>
    </message>
    <message>
        <source>Self-test</source>
        <translation>자체 검사</translation>
    </message>
    <message>
        <source>driver {version}</source>
        <translation>드라이버 {version}</translation>
    </message>
    <message>
        <source>{name}, {n} cores</source>
        <translation>{name}, 코어 {n}개</translation>
    </message>
    <message>
        <source>CPU {n} %</source>
        <translation>CPU {n} %</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>메모리</translation>
    </message>
    <message>
        <source>{n} tokens per joule</source>
        <translation>줄당 {n}토큰</translation>
    </message>
</context>
<context>
    <name>Doctor</name>
    <message>
        <source>Examining</source>
        <translation>검사 중</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Copy report</source>
        <translation>보고서 복사</translation>
    </message>
    <message>
        <source>Accepted at draft position, percent</source>
        <translation>초안 위치별 채택률(%)</translation>
    </message>
    <message>
        <source>Draft doctor</source>
        <translation>초안 진단</translation>
    </message>
    <message>
        <source>{draft} on {model}</source>
        <translation>{model}에 대한 {draft}</translation>
    </message>
    <message>
        <source>Loading the model once more</source>
        <translation>모델을 한 번 더 불러오는 중</translation>
    </message>
    <message>
        <source>The model writes</source>
        <translation>모델이 글을 쓰는 중</translation>
    </message>
    <message>
        <source>The draft guesses</source>
        <translation>초안이 예측하는 중</translation>
    </message>
    <message>
        <source>Trying other settings</source>
        <translation>다른 설정을 시도하는 중</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{total} 중 {done}</translation>
    </message>
    <message>
        <source>{n} tokens per step</source>
        <translation>단계당 {n} 토큰</translation>
    </message>
    <message>
        <source>Captured layers</source>
        <translation>읽는 층</translation>
    </message>
    <message>
        <source>Size of their outputs</source>
        <translation>층 출력의 크기</translation>
    </message>
    <message>
        <source>Size of the draft&apos;s norm</source>
        <translation>초안 정규화의 크기</translation>
    </message>
    <message>
        <source>Rope base</source>
        <translation>RoPE 기준값</translation>
    </message>
    <message>
        <source>Mask token</source>
        <translation>마스크 토큰</translation>
    </message>
    <message>
        <source>Block</source>
        <translation>블록</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>토큰 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Sliding window</source>
        <translation>슬라이딩 윈도</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
</context>
<context>
    <name>DraftPanel</name>
    <message>
        <source>Drafts</source>
        <translation>초안</translation>
    </message>
    <message>
        <source>Tokens of the last drafts</source>
        <translation>최근 초안의 토큰 수</translation>
    </message>
    <message>
        <source>Accepted by position</source>
        <translation>위치별 수락</translation>
    </message>
    <message>
        <source>Time per step with a draft</source>
        <translation>초안 단계당 시간</translation>
    </message>
    <message>
        <source>Accepted per step</source>
        <translation>단계당 수락</translation>
    </message>
    <message>
        <source>drafted</source>
        <translation>초안</translation>
    </message>
    <message>
        <source>own</source>
        <translation>모델 자체</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>초안</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>검증</translation>
    </message>
    <message>
        <source>Sample</source>
        <translation>샘플링</translation>
    </message>
    <message>
        <source>first {n} %</source>
        <translation>첫 위치 {n} %</translation>
    </message>
    <message>
        <source>{n} ms</source>
        <translation>{n} ms</translation>
    </message>
    <message>
        <source>Draft {draft}, verify {verify}, sample {sample}</source>
        <translation>초안 {draft}, 검증 {verify}, 샘플링 {sample}</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>실패</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>일시 중지</translation>
    </message>
    <message>
        <source>{n}× the speed</source>
        <translation>{n}배 속도</translation>
    </message>
    <message>
        <source>Drafts cost more than they brought here; they are tried again later.</source>
        <translation>여기서는 초안의 비용이 이득보다 컸습니다. 나중에 다시 시도합니다.</translation>
    </message>
    <message>
        <source>Measured {n}× over {steps} steps.</source>
        <translation>{steps}단계 동안 {n}배로 측정되었습니다.</translation>
    </message>
    <message>
        <source>Compared with no drafts, measured here.</source>
        <translation>초안이 없을 때와 비교, 여기서 측정.</translation>
    </message>
    <message>
        <source>No draft was verified yet.</source>
        <translation>아직 검증된 초안이 없습니다.</translation>
    </message>
    <message>
        <source>{mean} mean of {n}</source>
        <translation>{n}개 평균 {mean}</translation>
    </message>
    <message>
        <source>{mean} tokens a step, the model&apos;s own included.</source>
        <translation>단계당 {mean}토큰, 모델 자체 토큰 포함.</translation>
    </message>
    <message>
        <source>Break-even at {n} (dashed).</source>
        <translation>손익분기 {n} (점선).</translation>
    </message>
</context>
<context>
    <name>DrafterChoice</name>
    <message>
        <source>What guesses for this model</source>
        <translation>이 모델을 위해 추측하는 것</translation>
    </message>
    <message>
        <source>Guesses never change the text. Holds from the next load.</source>
        <translation>추측은 글을 바꾸지 않습니다. 다음에 불러올 때부터 적용됩니다.</translation>
    </message>
    <message>
        <source>Drafts</source>
        <translation>초안</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>What the text repeats</source>
        <translation>글에서 반복되는 부분</translation>
    </message>
    <message>
        <source>The model&apos;s own draft layer</source>
        <translation>모델 자체의 초안 레이어</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>끄기</translation>
    </message>
    <message>
        <source>{name}, comes with Lucebox</source>
        <translation>{name}, Lucebox에 포함</translation>
    </message>
</context>
<context>
    <name>Drafters</name>
    <message>
        <source>Drafter</source>
        <translation>초안 방식</translation>
    </message>
    <message>
        <source>Fits this model</source>
        <translation>이 모델에 맞음</translation>
    </message>
    <message>
        <source>Accepted per step</source>
        <translation>단계당 채택</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>속도 향상</translation>
    </message>
    <message>
        <source>no file</source>
        <translation>파일 없음</translation>
    </message>
    <message>
        <source>comes with Lucebox, {size}</source>
        <translation>Lucebox에 포함, {size}</translation>
    </message>
    <message>
        <source>Automatic, now: {name}</source>
        <translation>자동, 현재: {name}</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>맞음</translation>
    </message>
</context>
<context>
    <name>DropOverlay</name>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>파일 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Looking at it…</source>
        <translation>확인하는 중…</translation>
    </message>
    <message>
        <source>Use it where it is</source>
        <translation>지금 위치에서 사용</translation>
    </message>
    <message>
        <source>Checked, listed and loaded.</source>
        <translation>확인하고 목록에 넣은 뒤 불러옵니다.</translation>
    </message>
    <message>
        <source>Copy to the models folder</source>
        <translation>모델 폴더로 복사</translation>
    </message>
    <message>
        <source>Let go anywhere else for the first choice</source>
        <translation>다른 곳에 놓으면 첫 번째 항목을 선택합니다</translation>
    </message>
    <message>
        <source>Esc</source>
        <translation>Esc</translation>
    </message>
    <message>
        <source>leaves all as it was</source>
        <translation>키를 누르면 아무것도 바뀌지 않습니다</translation>
    </message>
    <message numerus="yes">
        <source>and %n more</source>
        <translation>
            <numerusform>외 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>A draft as its makers publish it</source>
        <translation>제작자가 배포한 형식의 초안</translation>
    </message>
    <message>
        <source>It is written as GGUF, with fewer bits, and checked.</source>
        <translation>비트 수를 줄여 GGUF로 쓰고 확인합니다.</translation>
    </message>
    <message>
        <source>Make a draft of it</source>
        <translation>이것으로 초안 만들기</translation>
    </message>
    <message>
        <source>Not possible: it is converted first</source>
        <translation>불가능: 먼저 변환해야 합니다</translation>
    </message>
    <message numerus="yes">
        <source>%n text file(s) for the chat</source>
        <translation>
            <numerusform>채팅에 넣을 텍스트 파일 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Attach to the message</source>
        <translation>메시지에 첨부</translation>
    </message>
    <message>
        <source>The text is read into it.</source>
        <translation>텍스트를 메시지에 넣습니다.</translation>
    </message>
    <message>
        <source>Not possible: this is not a model</source>
        <translation>불가: 모델이 아닙니다</translation>
    </message>
    <message>
        <source>There is nothing in it.</source>
        <translation>안에 아무것도 없습니다.</translation>
    </message>
    <message>
        <source>Not possible: there is no model in it that can be used</source>
        <translation>불가: 사용할 수 있는 모델이 없습니다</translation>
    </message>
    <message>
        <source>Show what is wrong with it</source>
        <translation>문제 보기</translation>
    </message>
    <message>
        <source>Not possible: it cannot be used</source>
        <translation>불가: 사용할 수 없는 파일입니다</translation>
    </message>
    <message>
        <source>Checked, listed and loaded. It stays in {folder}, nothing is copied.</source>
        <translation>확인하고 목록에 넣은 뒤 불러옵니다. {folder}에 그대로 두고 복사하지 않습니다.</translation>
    </message>
    <message>
        <source>Checked and listed, to choose from. All stay in {folder}.</source>
        <translation>확인하고 목록에 넣어 고를 수 있게 합니다. 모두 {folder}에 그대로 둡니다.</translation>
    </message>
    <message>
        <source>Checked and listed. It goes with a chat model and cannot chat by itself.</source>
        <translation>확인하고 목록에 넣습니다. 채팅 모델과 함께 쓰는 파일이라 혼자서는 채팅할 수 없습니다.</translation>
    </message>
    <message>
        <source>Not possible: one chat model at a time is copied</source>
        <translation>불가: 채팅 모델은 한 번에 하나만 복사합니다</translation>
    </message>
    <message>
        <source>{size}, {free} free there</source>
        <translation>{size}, 여유 공간 {free}</translation>
    </message>
    <message>
        <source>Not possible: {numbers}</source>
        <translation>불가: {numbers}</translation>
    </message>
</context>
<context>
    <name>DropTarget</name>
    <message>
        <source>Open the pasted file</source>
        <translation>붙여넣은 파일 열기</translation>
    </message>
    <message numerus="yes">
        <source>Checking %n file(s)</source>
        <translation>
            <numerusform>파일 %n개 확인하는 중</numerusform>
        </translation>
    </message>
    <message>
        <source>The clipboard holds no file that exists.</source>
        <translation>클립보드에 존재하는 파일이 없습니다.</translation>
    </message>
    <message>
        <source>{name} was left out. {why}</source>
        <translation>{name} 항목을 제외했습니다. {why}</translation>
    </message>
    <message numerus="yes">
        <source>%n more file(s) were left out too.</source>
        <translation>
            <numerusform>파일 %n개도 더 제외했습니다.</numerusform>
        </translation>
    </message>
    <message>
        <source>{name} is a draft. Its details offer to use it with {model}.</source>
        <translation>초안 파일: {name}. 세부 정보에서 {model}에 사용할 수 있습니다.</translation>
    </message>
    <message>
        <source>{name} is listed. It goes with a chat model and cannot chat by itself.</source>
        <translation>{name} 파일을 목록에 넣었습니다. 채팅 모델과 함께 쓰는 파일이라 혼자서는 채팅할 수 없습니다.</translation>
    </message>
    <message>
        <source>{name} is not opened. {why}</source>
        <translation>{name} 파일을 열지 않았습니다. {why}</translation>
    </message>
    <message>
        <source>{name} cannot be used</source>
        <translation>{name} 항목을 사용할 수 없습니다</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) cannot be used</source>
        <translation>
            <numerusform>파일 %n개를 사용할 수 없습니다</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>EmptyChat</name>
    <message>
        <source>What would you like to know?</source>
        <translation>무엇이 궁금하신가요?</translation>
    </message>
    <message>
        <source>Everything stays on this PC.</source>
        <translation>모든 내용은 이 PC에만 남습니다.</translation>
    </message>
    <message>
        <source>Explain how a hash table works, with a small example</source>
        <translation>해시 테이블이 어떻게 동작하는지 작은 예와 함께 설명해 줘</translation>
    </message>
    <message>
        <source>Write a polite reply that declines an invitation</source>
        <translation>초대를 정중히 거절하는 답장을 써 줘</translation>
    </message>
    <message>
        <source>Give me three ideas for dinner with rice and eggs</source>
        <translation>밥과 달걀로 만들 저녁 메뉴 세 가지를 알려 줘</translation>
    </message>
</context>
<context>
    <name>Engine</name>
    <message>
        <source>, recurrent states {0} ({1} slots)</source>
        <translation>, 순환 상태 {0}(슬롯 {1}개)</translation>
    </message>
    <message>
        <source>A context of {0} tokens would not fit.</source>
        <translation>토큰 {0}개의 컨텍스트는 들어가지 않습니다.</translation>
    </message>
    <message>
        <source>A damaged file is not copied. {0}</source>
        <translation>손상된 파일은 복사하지 않습니다. {0}</translation>
    </message>
    <message>
        <source>A request needs one of messages, text and ids; found {0} of them.</source>
        <translation>요청에는 messages, text, ids 중 하나만 있어야 하는데 {0}개가 있습니다.</translation>
    </message>
    <message>
        <source>A stop string is empty, expected at least one character; remove it.</source>
        <translation>중지 문자열이 비어 있습니다. 한 글자 이상이어야 하니, 비어 있는 것은 지우세요.</translation>
    </message>
    <message>
        <source>A thinking budget is {0}, expected at least 0.</source>
        <translation>생각 한도가 {0}입니다. 0 이상이어야 합니다.</translation>
    </message>
    <message>
        <source>A tool call is required, but the request has no tools.</source>
        <translation>도구 호출이 필수인데 요청에 도구가 없습니다.</translation>
    </message>
    <message>
        <source>A {0} file with experts; this version runs only its dense form.</source>
        <translation>전문가가 있는 {0} 파일입니다. 이 버전은 밀집 형태만 실행합니다.</translation>
    </message>
    <message>
        <source>Address already in use</source>
        <translation>이미 사용 중인 주소입니다</translation>
    </message>
    <message>
        <source>An answer in a given form has an end; leave ignore_eos out.</source>
        <translation>정해진 형식의 답변에는 끝이 있습니다. ignore_eos를 빼세요.</translation>
    </message>
    <message>
        <source>CPU: keys and values need {0} bytes ({1} layers x 2 x {2} pages x {3} bytes){4} and {5} are free. Use a shorter context or fewer sequences at once.</source>
        <translation>CPU: 키와 값에 {0}바이트(레이어 {1}개 x 2 x 페이지 {2}개 x {3}바이트){4}가 필요한데 여유는 {5}입니다. 컨텍스트를 줄이거나 동시 처리 수를 줄이세요.</translation>
    </message>
    <message>
        <source>CPU: {0} and {1} bytes are free. Close other programs or use a smaller model.</source>
        <translation>CPU: {0}. 여유는 {1}바이트입니다. 다른 프로그램을 닫거나 더 작은 모델을 쓰세요.</translation>
    </message>
    <message>
        <source>Cannot allocate memory</source>
        <translation>메모리를 할당할 수 없습니다</translation>
    </message>
    <message>
        <source>Cannot assign requested address</source>
        <translation>요청한 주소를 쓸 수 없습니다</translation>
    </message>
    <message>
        <source>Choose a context of at most {0} tokens</source>
        <translation>컨텍스트를 토큰 {0}개 이하로 정하세요</translation>
    </message>
    <message>
        <source>Choose a smaller model or quantisation</source>
        <translation>더 작은 모델이나 양자화를 선택하세요</translation>
    </message>
    <message>
        <source>Choose another file, or download this one again.</source>
        <translation>다른 파일을 선택하거나 이 파일을 다시 내려받으세요.</translation>
    </message>
    <message>
        <source>Device or resource busy</source>
        <translation>장치나 자원이 사용 중입니다</translation>
    </message>
    <message>
        <source>Device: found {0}, expected a graphics card: {1}.</source>
        <translation>장치: {0}. 그래픽 카드여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>Device: found {0}, expected one of {1}.</source>
        <translation>장치: {0}. 다음 중 하나여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>Disk quota exceeded</source>
        <translation>디스크 할당량을 넘었습니다</translation>
    </message>
    <message>
        <source>Download the file again.</source>
        <translation>파일을 다시 내려받으세요.</translation>
    </message>
    <message>
        <source>Experts of {0} x {1} in this format have no kernel for this card; expected multiples of {2} and a format other than F32. {3}</source>
        <translation>이 형식의 {0} x {1} 전문가를 위한 커널이 이 카드에는 없습니다. {2}의 배수이고 F32가 아닌 형식이어야 합니다. {3}</translation>
    </message>
    <message>
        <source>File exists</source>
        <translation>이미 있는 파일입니다</translation>
    </message>
    <message>
        <source>File name too long</source>
        <translation>파일 이름이 너무 깁니다</translation>
    </message>
    <message>
        <source>Found a convolution of {0}, expected F32, F16 or BF16.</source>
        <translation>합성곱의 형식이 {0}입니다. F32, F16, BF16 중 하나여야 합니다.</translation>
    </message>
    <message>
        <source>Found a step of {0} rows, expected 1 to {1}.</source>
        <translation>단계의 행이 {0}개입니다. 1~{1}개여야 합니다.</translation>
    </message>
    <message>
        <source>Found a tree of rows that are not tried.</source>
        <translation>시험하지 않는 행이 나무를 이루고 있습니다.</translation>
    </message>
    <message>
        <source>Found pages of {0} tokens, expected {1}.</source>
        <translation>페이지의 토큰이 {0}개입니다. {1}개여야 합니다.</translation>
    </message>
    <message>
        <source>Found recurrent heads of {0} values and a convolution over {1} tokens; expected a head size divisible by 32 and up to 8 tokens.</source>
        <translation>순환 헤드의 값이 {0}개이고 합성곱이 토큰 {1}개에 걸쳐 있습니다. 헤드 크기는 32로 나누어져야 하고 토큰은 8개 이하여야 합니다.</translation>
    </message>
    <message>
        <source>Found rows of a sequence apart, expected them together.</source>
        <translation>한 시퀀스의 행들이 떨어져 있습니다. 함께 있어야 합니다.</translation>
    </message>
    <message>
        <source>Found slots {0}, expected 0 to {1}.</source>
        <translation>슬롯이 {0}입니다. 0~{1}이어야 합니다.</translation>
    </message>
    <message>
        <source>Found slots {0}, expected one of its own a sequence.</source>
        <translation>슬롯이 {0}입니다. 시퀀스마다 하나씩이어야 합니다.</translation>
    </message>
    <message>
        <source>Found the scheme {0}; expected one of {1}.</source>
        <translation>방식이 {0}입니다. 다음 중 하나여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>Found tried rows at the beginning of a text; expected a token before them.</source>
        <translation>글의 맨 앞에 시험할 행이 있습니다. 그 앞에 토큰이 있어야 합니다.</translation>
    </message>
    <message>
        <source>Found type {0} and dialect {1}; expected one of {2} and of {3}.</source>
        <translation>형식이 {0}, 방언이 {1}입니다. 형식은 {2} 중 하나, 방언은 {3} 중 하나여야 합니다.</translation>
    </message>
    <message>
        <source>Found weights of type {0}, which this version cannot read; expected one of {1}. Use another quantisation of the model.</source>
        <translation>가중치의 형식이 {0}인데 이 버전은 읽을 수 없습니다. 다음 중 하나여야 합니다: {1}. 이 모델의 다른 양자화를 쓰세요.</translation>
    </message>
    <message>
        <source>Found {0} heads of {1} values over {2} key/value heads; expected a head size divisible by 16 and whole groups of heads.</source>
        <translation>값 {1}개짜리 헤드 {0}개에 키/값 헤드가 {2}개입니다. 헤드 크기는 16으로 나누어지고 헤드 묶음은 딱 떨어져야 합니다.</translation>
    </message>
    <message>
        <source>Found {0} tried rows, up to {1} a sequence; expected at most {2} and {3}.</source>
        <translation>시험할 행이 {0}개이고 시퀀스당 최대 {1}개입니다. 각각 {2}개와 {3}개 이하여야 합니다.</translation>
    </message>
    <message>
        <source>GNOME Keyring or KWallet</source>
        <translation>GNOME 키링 또는 KWallet</translation>
    </message>
    <message>
        <source>Get a newer conversion of the model.</source>
        <translation>모델의 더 새로운 변환본을 구하세요.</translation>
    </message>
    <message>
        <source>Heads have {0} dims and pages {1} tokens; expected {2} and {3}. Load the model on the processor.</source>
        <translation>헤드 차원이 {0}이고 페이지의 토큰이 {1}개입니다. 차원은 {2}, 토큰은 {3}개여야 합니다. 모델을 프로세서에 불러오세요.</translation>
    </message>
    <message>
        <source>Input/output error</source>
        <translation>입출력 오류</translation>
    </message>
    <message>
        <source>Installing the demo model ({0}, {1} MB).</source>
        <translation>데모 모델을 설치하는 중입니다({0}, {1} MB).</translation>
    </message>
    <message>
        <source>Invalid argument</source>
        <translation>잘못된 인수입니다</translation>
    </message>
    <message>
        <source>Is a directory</source>
        <translation>폴더입니다</translation>
    </message>
    <message>
        <source>It guesses {0} tokens a pass in a text without the chat template and {1} behind it: it was trained with another template, or without thinking. Try --chat-template-file, or a draft that was made for this version of the model.</source>
        <translation>이 초안은 채팅 템플릿이 없는 글에서는 한 번에 토큰 {0}개, 템플릿 뒤에서는 {1}개를 맞힙니다. 다른 템플릿으로, 또는 생각 없이 학습했기 때문입니다. --chat-template-file을 써 보거나, 이 버전의 모델용으로 만든 초안을 쓰세요.</translation>
    </message>
    <message>
        <source>It reads the wrong layers of the model</source>
        <translation>초안이 모델의 엉뚱한 레이어를 읽습니다</translation>
    </message>
    <message>
        <source>It runs on the graphics card {0}, where it fits.</source>
        <translation>모델이 들어가는 그래픽 카드 {0}에서 실행됩니다.</translation>
    </message>
    <message>
        <source>It runs on the processor, since {0} failed. {1}</source>
        <translation>{0}에서 실패하여 프로세서에서 실행됩니다. {1}</translation>
    </message>
    <message>
        <source>It runs on the processor: it needs {0}, and of the {1} of {2} {3} can be used.</source>
        <translation>프로세서에서 실행됩니다. 필요한 메모리는 {0}이지만 {2}의 {1} 중 쓸 수 있는 것은 {3}입니다.</translation>
    </message>
    <message>
        <source>Its attention is set wrongly</source>
        <translation>초안의 어텐션 설정이 잘못되었습니다</translation>
    </message>
    <message>
        <source>Its mask token is wrong</source>
        <translation>초안의 마스크 토큰이 잘못되었습니다</translation>
    </message>
    <message>
        <source>Its rope base is wrong</source>
        <translation>초안의 RoPE 기준값이 잘못되었습니다</translation>
    </message>
    <message>
        <source>Kept free</source>
        <translation>비워 둠</translation>
    </message>
    <message>
        <source>Keys have {0} dims and values {1}; this version needs them equal.</source>
        <translation>키의 차원은 {0}, 값의 차원은 {1}입니다. 이 버전에서는 둘이 같아야 합니다.</translation>
    </message>
    <message>
        <source>Load the model again; if it fails once more, restart the program.</source>
        <translation>모델을 다시 불러오세요. 또 실패하면 프로그램을 다시 시작하세요.</translation>
    </message>
    <message>
        <source>Load the model on the processor.</source>
        <translation>모델을 프로세서에 불러오세요.</translation>
    </message>
    <message>
        <source>Log-probabilities of {0} tokens, expected 0 to {1}.</source>
        <translation>토큰 {0}개의 로그 확률을 요청했습니다. 0~{1}개여야 합니다.</translation>
    </message>
    <message>
        <source>Logit bias for token {0}, expected a token id from 0 to {1}.</source>
        <translation>토큰 {0}에 로짓 편향이 있습니다. 토큰 번호는 0~{1}이어야 합니다.</translation>
    </message>
    <message>
        <source>Logit bias {0} for token {1}, expected -{2} to {3}.</source>
        <translation>토큰 {1}의 로짓 편향이 {0}입니다. -{2}~{3}이어야 합니다.</translation>
    </message>
    <message>
        <source>Lucebox&apos;s format cannot say what this draft needs (DFlash 2, scales, or its own causality); use llama.cpp&apos;s.</source>
        <translation>이 초안에 필요한 것(DFlash 2, 배율 또는 자체 인과성)을 Lucebox 형식에는 담을 수 없습니다. llama.cpp 형식을 쓰세요.</translation>
    </message>
    <message>
        <source>Memory is short: the draft of {0} is loaded for each request, and given up after it.</source>
        <translation>메모리가 부족합니다. {0} 크기의 초안을 요청마다 불러오고 끝나면 내려놓습니다.</translation>
    </message>
    <message>
        <source>Memory ran out while {0} was loaded: {1}. Close other programs, or choose a smaller model or context.</source>
        <translation>{0} 모델을 불러오는 동안 메모리가 바닥났습니다: {1}. 다른 프로그램을 닫거나 더 작은 모델 또는 컨텍스트를 선택하세요.</translation>
    </message>
    <message>
        <source>Message {0} calls the tool {1} with arguments {2}, expected a JSON object.</source>
        <translation>메시지 {0}에서 도구 {1} 호출의 인수가 {2}입니다. JSON 객체여야 합니다.</translation>
    </message>
    <message>
        <source>Message {0} holds a part of type {1}, but this model reads text only. Remove it, or use a model that can read it.</source>
        <translation>메시지 {0}에 {1} 형식의 부분이 있는데, 이 모델은 텍스트만 읽습니다. 그 부분을 지우거나 읽을 수 있는 모델을 쓰세요.</translation>
    </message>
    <message>
        <source>Message {0} holds a tool call {1}, expected an object.</source>
        <translation>메시지 {0}의 도구 호출이 {1}입니다. 객체여야 합니다.</translation>
    </message>
    <message>
        <source>Message {0} is {1}, expected one with a role.</source>
        <translation>메시지 {0}의 내용이 {1}입니다. role이 있는 메시지여야 합니다.</translation>
    </message>
    <message>
        <source>Model weights</source>
        <translation>모델 가중치</translation>
    </message>
    <message>
        <source>Needs {0}: weights {1}, {2}, work space {3}. {4} of {5} can be used; other programs hold {6}.</source>
        <translation>{0} 필요: 가중치 {1}, {2}, 작업 공간 {3}. {5} 중 {4}까지 쓸 수 있고, 다른 프로그램이 {6}만큼 쓰고 있습니다.</translation>
    </message>
    <message>
        <source>No NVIDIA driver is loaded ({0}). If this PC has an NVIDIA card, install its driver ({1} or newer); the processor is used until then.</source>
        <translation>NVIDIA 드라이버가 로드되지 않았습니다({0}). 이 PC에 NVIDIA 카드가 있다면 드라이버({1} 이상)를 설치하세요. 그때까지는 프로세서를 씁니다.</translation>
    </message>
    <message>
        <source>No model is loaded. Load one first.</source>
        <translation>불러온 모델이 없습니다. 먼저 모델을 불러오세요.</translation>
    </message>
    <message>
        <source>No setting helps ({0} tokens a pass): the draft was made for another model, or for another version of this one. Get the draft that its maker names for this file.</source>
        <translation>어떤 설정도 도움이 되지 않습니다(한 번에 토큰 {0}개). 이 초안은 다른 모델이나 이 모델의 다른 버전용입니다. 제작자가 이 파일용으로 안내하는 초안을 구하세요.</translation>
    </message>
    <message>
        <source>No space left on device</source>
        <translation>장치에 남은 공간이 없습니다</translation>
    </message>
    <message>
        <source>No such file or directory</source>
        <translation>그런 파일이나 폴더가 없습니다</translation>
    </message>
    <message>
        <source>Not a directory</source>
        <translation>폴더가 아닙니다</translation>
    </message>
    <message>
        <source>Of the {0} tokens of {1}, {2} are others in the draft {3}; a draft must have the vocabulary of its target.</source>
        <translation>{1}의 토큰 {0}개 중 {2}개가 초안 {3}에서는 다른 토큰입니다. 초안의 어휘는 대상 모델과 같아야 합니다.</translation>
    </message>
    <message>
        <source>Operation not permitted</source>
        <translation>허용되지 않는 작업입니다</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>다른 프로그램</translation>
    </message>
    <message>
        <source>PCIe {0}.0 x{1}</source>
        <translation>PCIe {0}.0 x{1}</translation>
    </message>
    <message>
        <source>Permission denied</source>
        <translation>권한이 없습니다</translation>
    </message>
    <message>
        <source>Read-only file system</source>
        <translation>읽기 전용 파일 시스템입니다</translation>
    </message>
    <message>
        <source>Recurrent layers have {0} heads of {1}; on a card this version runs an even number of {2}. Load the model on the processor.</source>
        <translation>순환 레이어에 크기 {1}의 헤드가 {0}개 있습니다. 이 버전은 카드에서 크기 {2}의 헤드를 짝수 개로만 실행합니다. 모델을 프로세서에 불러오세요.</translation>
    </message>
    <message>
        <source>Rows of {0} bytes; expected at most {1}.</source>
        <translation>행의 크기가 {0}바이트입니다. {1}바이트 이하여야 합니다.</translation>
    </message>
    <message>
        <source>Rows on a card are taken one after the other.</source>
        <translation>카드의 행은 하나씩 차례로 가져갑니다.</translation>
    </message>
    <message>
        <source>Sampling of {0}: {1}</source>
        <translation>{0}의 샘플링: {1}</translation>
    </message>
    <message>
        <source>Sampling of {0}: {1} of the wrong kind.</source>
        <translation>{0}의 샘플링: {1} 값의 종류가 잘못되었습니다.</translation>
    </message>
    <message>
        <source>Some settings were replaced by their defaults. {0}</source>
        <translation>일부 설정을 기본값으로 바꾸었습니다. {0}</translation>
    </message>
    <message>
        <source>Speculation is left out: {0} cannot verify drafts yet.</source>
        <translation>추측 생성을 쓰지 않습니다. {0} 모델은 아직 초안을 검증할 수 없습니다.</translation>
    </message>
    <message>
        <source>Stale file handle</source>
        <translation>파일 핸들이 더는 유효하지 않습니다</translation>
    </message>
    <message>
        <source>Tensor {0} has shape {1}, expected {2} from the file&apos;s metadata.</source>
        <translation>텐서 {0}의 모양이 {1}입니다. 파일의 메타데이터에 따르면 {2}이어야 합니다.</translation>
    </message>
    <message>
        <source>The API key cannot be kept in {0}: {1}.</source>
        <translation>API 키를 {0}에 보관할 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>The GPU failed: {0}. {1}</source>
        <translation>GPU에서 실패했습니다: {0}. {1}</translation>
    </message>
    <message>
        <source>The GPU part of the program is not installed: found no CuPy. Install it, or choose cpu.</source>
        <translation>프로그램의 GPU 부분이 설치되지 않았습니다(CuPy 없음). 설치하거나 cpu를 선택하세요.</translation>
    </message>
    <message>
        <source>The GPU&apos;s kernels failed. {0}</source>
        <translation>GPU 커널에서 실패했습니다. {0}</translation>
    </message>
    <message>
        <source>The JSON schema cannot be followed at {0}: {1}.</source>
        <translation>JSON 스키마의 {0} 부분을 따를 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>The JSON schema cannot be read: {0}.</source>
        <translation>JSON 스키마를 읽을 수 없습니다: {0}.</translation>
    </message>
    <message>
        <source>The JSON schema is nested more than {0} deep. Make it flatter, or use $ref.</source>
        <translation>JSON 스키마가 {0}단계보다 깊습니다. 더 평평하게 만들거나 $ref를 쓰세요.</translation>
    </message>
    <message>
        <source>The JSON schema is {0}, expected an object.</source>
        <translation>JSON 스키마가 {0}입니다. 객체여야 합니다.</translation>
    </message>
    <message>
        <source>The NVIDIA driver did not answer ({0}). The processor is used.</source>
        <translation>NVIDIA 드라이버가 응답하지 않았습니다({0}). 프로세서를 씁니다.</translation>
    </message>
    <message>
        <source>The NVIDIA driver is too old for the installed GPU part; install a newer driver.</source>
        <translation>설치된 GPU 부분에 비해 NVIDIA 드라이버가 너무 오래되었습니다. 더 새로운 드라이버를 설치하세요.</translation>
    </message>
    <message>
        <source>The NVIDIA driver {0} is too old: it knows CUDA {1}.{2}, needed is {3}.{4} (driver {5} or newer). The processor is used until the driver is updated.</source>
        <translation>NVIDIA 드라이버 {0} 버전은 너무 오래되었습니다. CUDA {1}.{2}까지 지원하지만 {3}.{4} 이상(드라이버 {5} 이상)이 필요합니다. 드라이버를 업데이트할 때까지 프로세서를 씁니다.</translation>
    </message>
    <message>
        <source>The address {0} is none; expected one such as 127.0.0.1, or 0.0.0.0 for all.</source>
        <translation>주소가 아닙니다: {0}. 127.0.0.1 같은 주소, 또는 모든 주소를 뜻하는 0.0.0.0이어야 합니다.</translation>
    </message>
    <message>
        <source>The address {0}:{1} cannot be used: {2}. Choose another with --port or --host.</source>
        <translation>{0}:{1} 주소를 쓸 수 없습니다: {2}. --port나 --host로 다른 주소를 선택하세요.</translation>
    </message>
    <message>
        <source>The answer&apos;s form is too complex to be followed, or it leaves no way to go on: {0}. Make the schema or grammar simpler.</source>
        <translation>답변의 형식이 너무 복잡해서 따를 수 없거나, 이어 갈 방법이 없습니다: {0}. 스키마나 문법을 더 간단하게 만드세요.</translation>
    </message>
    <message>
        <source>The card has compute capability {0}.{1}, expected 7.5 (GeForce RTX 20 series) or newer. Choose cpu.</source>
        <translation>카드의 컴퓨트 능력이 {0}.{1}입니다. 7.5(GeForce RTX 20 시리즈) 이상이어야 합니다. cpu를 선택하세요.</translation>
    </message>
    <message>
        <source>The card is not there; choose another device.</source>
        <translation>카드가 없습니다. 다른 장치를 선택하세요.</translation>
    </message>
    <message>
        <source>The card ran out of memory ({0}). Close other programs that use it, or load the model with a smaller context.</source>
        <translation>카드의 메모리가 바닥났습니다({0}). 카드를 쓰는 다른 프로그램을 닫거나, 더 작은 컨텍스트로 모델을 불러오세요.</translation>
    </message>
    <message>
        <source>The card stopped with a fault ({0}), and this program cannot use it again before it is restarted. Chats are kept. Restart it, or load the model on the processor; if it happens again, run the self-test of the card.</source>
        <translation>카드가 오류로 멈추었고({0}), 프로그램을 다시 시작하기 전에는 쓸 수 없습니다. 채팅은 보관되어 있습니다. 프로그램을 다시 시작하거나 모델을 프로세서에 불러오세요. 다시 일어나면 카드의 자체 검사를 실행하세요.</translation>
    </message>
    <message>
        <source>The chat has no messages, expected at least one.</source>
        <translation>채팅에 메시지가 없습니다. 하나 이상이어야 합니다.</translation>
    </message>
    <message>
        <source>The chat template failed: {0}: {1}. {2}</source>
        <translation>채팅 템플릿에서 실패했습니다: {0}: {1}. {2}</translation>
    </message>
    <message>
        <source>The chat template is not valid: {0}.</source>
        <translation>채팅 템플릿이 올바르지 않습니다: {0}.</translation>
    </message>
    <message>
        <source>The chat template is not valid: {0}. {1}</source>
        <translation>채팅 템플릿이 올바르지 않습니다: {0}. {1}</translation>
    </message>
    <message>
        <source>The chat template refused the messages: {0}</source>
        <translation>채팅 템플릿이 메시지를 거절했습니다: {0}</translation>
    </message>
    <message>
        <source>The chat template tried what is not allowed: {0} {1}</source>
        <translation>채팅 템플릿이 허용되지 않는 일을 하려 했습니다: {0} {1}</translation>
    </message>
    <message>
        <source>The chat template was stopped because {0}. {1}</source>
        <translation>채팅 템플릿을 중단했습니다: {0}. {1}</translation>
    </message>
    <message>
        <source>The check was stopped.</source>
        <translation>검사를 중지했습니다.</translation>
    </message>
    <message>
        <source>The comparison was stopped.</source>
        <translation>비교를 중지했습니다.</translation>
    </message>
    <message>
        <source>The context is {0} of the {1} tokens that the model can take; the settings of the model change it.</source>
        <translation>컨텍스트는 모델이 담을 수 있는 토큰 {1}개 중 {0}개입니다. 모델의 설정에서 바꿀 수 있습니다.</translation>
    </message>
    <message>
        <source>The context is {0} tokens, not {1}: more does not fit the {2} that are free.</source>
        <translation>컨텍스트는 토큰 {1}개가 아니라 {0}개입니다. 여유 메모리 {2}에는 그 이상 들어가지 않습니다.</translation>
    </message>
    <message>
        <source>The context of {0} tokens is more than the {1} that the model was made for; answers get worse beyond that.</source>
        <translation>컨텍스트가 토큰 {0}개로, 모델이 만들어진 {1}개보다 큽니다. 그 이상에서는 답변이 나빠집니다.</translation>
    </message>
    <message>
        <source>The copy needs {0} and {1} has {2} free. Free {3}, choose another models folder, or use the file where it is.</source>
        <translation>복사에 필요한 공간은 {0}인데 {1} 폴더의 여유 공간은 {2}입니다. {3} 이상 비우거나, 다른 모델 폴더를 선택하거나, 지금 위치에서 파일을 사용하세요.</translation>
    </message>
    <message>
        <source>The copy of {0} differs from the original when read back; the disk may be failing. Use the file where it is, or copy it to another disk.</source>
        <translation>다시 읽어 보니 {0} 파일의 사본이 원본과 다릅니다. 디스크에 이상이 있을 수 있습니다. 지금 위치에서 파일을 사용하거나 다른 디스크에 복사하세요.</translation>
    </message>
    <message>
        <source>The copy was stopped.</source>
        <translation>복사를 중지했습니다.</translation>
    </message>
    <message>
        <source>The demo model could not be downloaded: {0}. Check the connection and try again, or open a model file that you have.</source>
        <translation>데모 모델을 내려받지 못했습니다: {0}. 연결을 확인하고 다시 시도하거나, 가지고 있는 모델 파일을 여세요.</translation>
    </message>
    <message>
        <source>The demo model could not be stored in {0}: {1}. Choose another models folder in the settings, or free some space.</source>
        <translation>데모 모델을 {0}에 저장하지 못했습니다: {1}. 설정에서 다른 모델 폴더를 선택하거나 공간을 비우세요.</translation>
    </message>
    <message>
        <source>The demo model needs {0} MB while it is installed, and {1} has {2} MB free. Free some space, or choose another models folder.</source>
        <translation>데모 모델을 설치하는 동안 {0} MB가 필요하지만 {1} 폴더의 여유 공간은 {2} MB입니다. 공간을 비우거나 다른 모델 폴더를 선택하세요.</translation>
    </message>
    <message>
        <source>The demo model&apos;s download gave {0} files, expected one.</source>
        <translation>데모 모델을 내려받으니 파일이 {0}개입니다. 하나여야 합니다.</translation>
    </message>
    <message>
        <source>The disk cache stays off: no keyring answers on this PC, and the key that protects the files is kept nowhere else. Unlock or install one ({0}); all else works without it.</source>
        <translation>디스크 캐시를 켜지 않습니다. 이 PC에서 키링이 응답하지 않는데, 파일을 보호하는 키는 키링에만 보관합니다. 키링의 잠금을 풀거나 설치하세요({0}). 다른 기능은 키링 없이도 됩니다.</translation>
    </message>
    <message>
        <source>The disk cache stays off: nothing can be written in {0} ({1}). Choose another folder.</source>
        <translation>디스크 캐시를 켜지 않습니다. {0} 폴더에 쓸 수 없습니다({1}). 다른 폴더를 선택하세요.</translation>
    </message>
    <message>
        <source>The draft claims {0} features and its weights have {1}.</source>
        <translation>초안은 특징이 {0}개라고 하지만 가중치에는 {1}개가 있습니다.</translation>
    </message>
    <message>
        <source>The draft does not fit {0}: it was made for {1}, and the target has {2}. Choose the draft that was trained for this model.</source>
        <translation>초안이 {0}에 맞지 않습니다. 초안이 만들어진 대상: {1}, 지금 대상: {2}. 이 모델용으로 학습한 초안을 선택하세요.</translation>
    </message>
    <message>
        <source>The draft does not say its mask token, and the usual one, {0}, is none of the {1} tokens of {2}. Get a version of the draft that names it: mask_token_id in its config.json.</source>
        <translation>초안에 마스크 토큰이 적혀 있지 않고, 흔히 쓰는 {0}번은 {2}의 토큰 {1}개에 들지 않습니다. config.json에 mask_token_id가 적혀 있는 초안을 구하세요.</translation>
    </message>
    <message>
        <source>The draft does not say its rope base; the target&apos;s {0} is a guess.</source>
        <translation>초안에 RoPE 기준값이 적혀 있지 않아 대상 모델의 값으로 짐작합니다: {0}.</translation>
    </message>
    <message>
        <source>The draft does not say its {0}; {1} is a guess.</source>
        <translation>초안에 적혀 있지 않아 짐작한 값입니다: {0} {1}.</translation>
    </message>
    <message>
        <source>The draft does not say which layers it reads; {0} are a guess.</source>
        <translation>초안에 어떤 레이어를 읽는지 적혀 있지 않아 짐작합니다: {0}.</translation>
    </message>
    <message>
        <source>The draft does not say which layers slide; all but the last is a guess.</source>
        <translation>초안에 어떤 레이어가 슬라이딩인지 적혀 있지 않아, 마지막을 뺀 전부로 짐작합니다.</translation>
    </message>
    <message>
        <source>The draft guesses well.</source>
        <translation>초안이 잘 추측합니다.</translation>
    </message>
    <message>
        <source>The draft model&apos;s file is missing.</source>
        <translation>초안 모델의 파일이 없습니다.</translation>
    </message>
    <message>
        <source>The draft {0} has {1} tokens and {2} {3}; a draft must have the vocabulary of its target. Choose a smaller model of the same family.</source>
        <translation>초안 {0}의 토큰은 {1}개이고 {2}의 토큰은 {3}개입니다. 초안의 어휘는 대상 모델과 같아야 합니다. 같은 계열의 더 작은 모델을 선택하세요.</translation>
    </message>
    <message>
        <source>The draft {0}, which comes with Lucebox, guesses.</source>
        <translation>Lucebox에 포함된 {0} 초안으로 추측합니다.</translation>
    </message>
    <message>
        <source>The draft {0}, which comes with Lucebox, is left out: {1}</source>
        <translation>Lucebox에 포함된 {0} 초안을 쓰지 않습니다: {1}</translation>
    </message>
    <message>
        <source>The draft&apos;s rope scaling {0} is not applied.</source>
        <translation>초안의 RoPE 스케일링 설정({0})은 적용하지 않습니다.</translation>
    </message>
    <message>
        <source>The drafter {0} failed and is left out: {1}</source>
        <translation>초안 방식 {0}에서 실패하여 쓰지 않습니다: {1}</translation>
    </message>
    <message>
        <source>The engine is closed.</source>
        <translation>엔진이 닫혀 있습니다.</translation>
    </message>
    <message>
        <source>The engine was closed before the answer was done.</source>
        <translation>답변이 끝나기 전에 엔진이 닫혔습니다.</translation>
    </message>
    <message>
        <source>The engine was closed.</source>
        <translation>엔진이 닫혔습니다.</translation>
    </message>
    <message>
        <source>The file calls {0} plain text; it is used as the end of a turn.</source>
        <translation>파일에는 일반 텍스트라고 적혀 있지만 차례의 끝으로 쓰는 토큰: {0}.</translation>
    </message>
    <message>
        <source>The file cannot be read: {0}.</source>
        <translation>파일을 읽을 수 없습니다: {0}.</translation>
    </message>
    <message>
        <source>The file does not name its architecture, so it is not a model that can run.</source>
        <translation>파일에 아키텍처 이름이 없으므로 실행할 수 있는 모델이 아닙니다.</translation>
    </message>
    <message>
        <source>The file has no chat template; a common one is used.</source>
        <translation>파일에 채팅 템플릿이 없어 흔히 쓰는 템플릿을 씁니다.</translation>
    </message>
    <message>
        <source>The file has no matrix token_embd.weight; it is not a whole model.</source>
        <translation>파일에 token_embd.weight 행렬이 없습니다. 온전한 모델이 아닙니다.</translation>
    </message>
    <message>
        <source>The file has no tensor {0}, expected with shape {1}. It is damaged or not a whole model; download it again.</source>
        <translation>파일에 {0} 텐서가 없습니다. 모양이 {1}인 텐서가 있어야 합니다. 손상되었거나 온전한 모델이 아니니 다시 내려받으세요.</translation>
    </message>
    <message>
        <source>The file has {0} tensors that this version of {1} does not use ({2}); it is a variant that cannot be run yet.</source>
        <translation>이 버전의 {1}에서 쓰지 않는 텐서가 파일에 {0}개 있습니다({2}). 아직 실행할 수 없는 변형입니다.</translation>
    </message>
    <message>
        <source>The file holds a vocabulary and no weights, so it is not a model that can run.</source>
        <translation>파일에 어휘만 있고 가중치가 없으므로 실행할 수 있는 모델이 아닙니다.</translation>
    </message>
    <message>
        <source>The format has {0} characters, expected at most {1}. Make it smaller.</source>
        <translation>형식이 {0}자입니다. {1}자 이하여야 합니다. 더 작게 만드세요.</translation>
    </message>
    <message>
        <source>The format is of kind {0}, expected {1}.</source>
        <translation>형식의 종류가 {0}입니다. 다음 중 하나여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>The installation of the demo model was stopped.</source>
        <translation>데모 모델 설치를 중지했습니다.</translation>
    </message>
    <message>
        <source>The keyring did not answer, so the key of the disk cache is still in it; the files are deleted. Unlock the keyring and do it again.</source>
        <translation>키링이 응답하지 않아 디스크 캐시의 키가 아직 남아 있습니다. 파일은 삭제했습니다. 키링의 잠금을 풀고 다시 해 주세요.</translation>
    </message>
    <message>
        <source>The load was stopped.</source>
        <translation>불러오기를 중지했습니다.</translation>
    </message>
    <message>
        <source>The messages or tools are nested too deeply; flatten them.</source>
        <translation>메시지나 도구가 너무 깊게 중첩되어 있습니다. 더 평평하게 만드세요.</translation>
    </message>
    <message>
        <source>The messages use every private-use character of Unicode; remove some.</source>
        <translation>메시지가 유니코드의 사용자 정의 문자를 모두 쓰고 있습니다. 일부를 지우세요.</translation>
    </message>
    <message>
        <source>The model gave no usable prediction: {0}. The file may be damaged; try --precision exact or another version of the model.</source>
        <translation>모델이 쓸 수 있는 예측을 내지 않았습니다: {0}. 파일이 손상되었을 수 있습니다. --precision exact나 모델의 다른 버전을 써 보세요.</translation>
    </message>
    <message>
        <source>The model has no BOS token to begin with; leave add_bos out.</source>
        <translation>모델에 시작할 BOS 토큰이 없습니다. add_bos를 빼세요.</translation>
    </message>
    <message>
        <source>The model is writing for somebody. Measure when it is idle.</source>
        <translation>모델이 다른 요청의 글을 쓰는 중입니다. 쉬고 있을 때 측정하세요.</translation>
    </message>
    <message>
        <source>The model needs {0} and {1} are free; it may be slow until other programs give memory back.</source>
        <translation>모델에 필요한 메모리는 {0}인데 여유는 {1}입니다. 다른 프로그램이 메모리를 돌려줄 때까지 느릴 수 있습니다.</translation>
    </message>
    <message>
        <source>The model was changed before the request began. Send it again.</source>
        <translation>요청을 시작하기 전에 모델이 바뀌었습니다. 다시 보내세요.</translation>
    </message>
    <message>
        <source>The model&apos;s own draft layer is left out: {0}</source>
        <translation>모델 자체의 초안 레이어를 쓰지 않습니다: {0}</translation>
    </message>
    <message>
        <source>The output is the input file itself; give another name.</source>
        <translation>출력이 입력 파일 자신입니다. 다른 이름을 정하세요.</translation>
    </message>
    <message>
        <source>The package nvidia-ml-py is not installed, so graphics cards are not listed.</source>
        <translation>nvidia-ml-py 패키지가 설치되지 않아 그래픽 카드를 찾지 않습니다.</translation>
    </message>
    <message>
        <source>The prompt has at least {0} tokens and the context holds {1}, answer included. Shorten the conversation or load the model with a larger context.</source>
        <translation>프롬프트는 토큰이 적어도 {0}개인데 컨텍스트는 답변까지 {1}개를 담습니다. 대화를 줄이거나 더 큰 컨텍스트로 모델을 불러오세요.</translation>
    </message>
    <message>
        <source>The prompt has {0} tokens and the context holds {1}, answer included. Shorten the conversation or load the model with a larger context.</source>
        <translation>프롬프트는 토큰 {0}개인데 컨텍스트는 답변까지 {1}개를 담습니다. 대화를 줄이거나 더 큰 컨텍스트로 모델을 불러오세요.</translation>
    </message>
    <message>
        <source>The prompt is empty; expected at least one token.</source>
        <translation>프롬프트가 비어 있습니다. 토큰이 하나 이상이어야 합니다.</translation>
    </message>
    <message>
        <source>The reasoning effort is {0}, expected one of {1}.</source>
        <translation>생각의 정도가 {0}입니다. 다음 중 하나여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>The request failed in a way that was not foreseen ({0}: {1}). The log has the details; please report it.</source>
        <translation>예상하지 못한 이유로 요청이 실패했습니다({0}: {1}). 자세한 내용은 로그에 있으니 신고해 주세요.</translation>
    </message>
    <message>
        <source>The server could not start: {0}.</source>
        <translation>서버를 시작하지 못했습니다: {0}.</translation>
    </message>
    <message>
        <source>The settings cannot be saved in {0}: {1}. They hold until the application closes.</source>
        <translation>{0}에 설정을 저장할 수 없습니다: {1}. 설정은 애플리케이션을 닫을 때까지 유지됩니다.</translation>
    </message>
    <message>
        <source>The settings in {0} are damaged ({1}); the defaults are used. The old file is kept beside the new one when settings are saved.</source>
        <translation>{0}에 있는 설정이 손상되었습니다({1}). 기본값을 씁니다. 설정을 저장할 때 이전 파일을 새 파일 옆에 보관합니다.</translation>
    </message>
    <message>
        <source>The settings in {0} cannot be read ({1}); the defaults are used and changes may be lost.</source>
        <translation>{0}에 있는 설정을 읽을 수 없습니다({1}). 기본값을 쓰며, 변경한 내용을 잃을 수 있습니다.</translation>
    </message>
    <message>
        <source>The step cannot be run: {0}.</source>
        <translation>단계를 실행할 수 없습니다: {0}.</translation>
    </message>
    <message>
        <source>The text has {0} tokens and the context holds {1}.</source>
        <translation>글은 토큰 {0}개인데 컨텍스트는 {1}개를 담습니다.</translation>
    </message>
    <message>
        <source>The tokenizer has {0} tokens and the model {1}; the file is put together from parts that do not fit.</source>
        <translation>토크나이저의 토큰은 {0}개이고 모델의 토큰은 {1}개입니다. 서로 맞지 않는 부분으로 만든 파일입니다.</translation>
    </message>
    <message>
        <source>The tokenizer is of kind {0}, expected gpt2, llama or gemma4. This version cannot read its text.</source>
        <translation>토크나이저의 종류가 {0}입니다. gpt2, llama, gemma4 중 하나여야 합니다. 이 버전은 이 모델의 글을 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>The tool choice is {0}, expected {1}.</source>
        <translation>도구 선택이 {0}입니다. 다음 중 하나여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>The tool choice names {0}, expected one of the tools: {1}.</source>
        <translation>도구 선택에 적힌 이름은 {0}입니다. 다음 도구 중 하나여야 합니다: {1}.</translation>
    </message>
    <message>
        <source>The tool {0} is strict, but its schema cannot be followed: {1}. Change the schema, or leave strict out.</source>
        <translation>도구 {0}: strict로 지정되었지만 스키마를 따를 수 없습니다: {1}. 스키마를 바꾸거나 strict를 빼세요.</translation>
    </message>
    <message>
        <source>The tools cannot be made into a grammar, so that a call cannot be required: their schemas are too large. Offer fewer tools, or leave the choice to the model.</source>
        <translation>도구의 스키마가 너무 커서 문법으로 만들 수 없으므로 호출을 필수로 할 수 없습니다. 도구를 줄이거나 모델에 선택을 맡기세요.</translation>
    </message>
    <message>
        <source>The vocabulary cannot be used: {0}. The file is damaged or made by a faulty tool; get another version of the model.</source>
        <translation>어휘를 쓸 수 없습니다: {0}. 파일이 손상되었거나 잘못된 도구로 만들어졌습니다. 모델의 다른 버전을 구하세요.</translation>
    </message>
    <message>
        <source>The written file does not read back as it was meant; try again.</source>
        <translation>쓴 파일을 다시 읽으니 의도한 내용과 다릅니다. 다시 시도하세요.</translation>
    </message>
    <message>
        <source>The {0} format cannot be followed: {1}.</source>
        <translation>{0} 형식을 따를 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>The {0} grammar is {1}, expected a text.</source>
        <translation>{0} 문법이 {1}입니다. 글이어야 합니다.</translation>
    </message>
    <message>
        <source>The {0} head of the draft is not used.</source>
        <translation>초안의 {0} 헤드는 쓰지 않습니다.</translation>
    </message>
    <message>
        <source>There is an NVIDIA card, and the part of this program that uses it is not installed: CuPy is missing. Run the setup again on this PC, or install the extra cuda12 or cuda13. The processor is used until then.</source>
        <translation>NVIDIA 카드가 있지만, 카드를 쓰는 프로그램의 부분이 설치되지 않았습니다(CuPy 없음). 이 PC에서 설치를 다시 실행하거나 추가 구성 cuda12 또는 cuda13을 설치하세요. 그때까지는 프로세서를 씁니다.</translation>
    </message>
    <message>
        <source>There is no .gguf file in this folder.</source>
        <translation>이 폴더에는 .gguf 파일이 없습니다.</translation>
    </message>
    <message>
        <source>There is no estimate for a file that cannot be read.</source>
        <translation>읽을 수 없는 파일은 메모리를 추정할 수 없습니다.</translation>
    </message>
    <message>
        <source>There is no such file.</source>
        <translation>그런 파일이 없습니다.</translation>
    </message>
    <message>
        <source>These are statistics for making quantised models, not a model.</source>
        <translation>양자화 모델을 만들기 위한 통계이며 모델이 아닙니다.</translation>
    </message>
    <message>
        <source>These are weights in another format; get the model in GGUF format.</source>
        <translation>다른 형식의 가중치입니다. GGUF 형식의 모델을 구하세요.</translation>
    </message>
    <message>
        <source>This card computed wrong products of several formats at once in its self-test; they are computed one after the other instead, which is slower.</source>
        <translation>이 카드는 자체 검사에서 여러 형식의 곱을 한 번에 계산할 때 틀렸습니다. 대신 하나씩 차례로 계산하며, 더 느립니다.</translation>
    </message>
    <message>
        <source>This card computed wrong products of {0} in its self-test; such weights are kept as 16-bit numbers instead, which takes more memory and is slower.</source>
        <translation>이 카드는 자체 검사에서 {0} 곱을 잘못 계산했습니다. 그런 가중치는 16비트 수로 보관하므로 메모리가 더 들고 느려집니다.</translation>
    </message>
    <message>
        <source>This card computed wrong products of {0} with 8-bit activations in its self-test; 16-bit ones are used instead, which is slower.</source>
        <translation>이 카드는 자체 검사에서 8비트 활성값으로 {0} 곱을 잘못 계산했습니다. 대신 16비트를 쓰므로 느려집니다.</translation>
    </message>
    <message>
        <source>This card failed its self-test ({0}), so models cannot run on it. Choose the processor, and please report it with the output of `lucebox selftest`.</source>
        <translation>이 카드는 자체 검사를 통과하지 못하여({0}) 모델을 실행할 수 없습니다. 프로세서를 선택하고, `lucebox selftest`의 출력과 함께 신고해 주세요.</translation>
    </message>
    <message>
        <source>This download is not finished; only whole files can be used.</source>
        <translation>내려받기가 끝나지 않은 파일입니다. 온전한 파일만 쓸 수 있습니다.</translation>
    </message>
    <message>
        <source>This is a draft, a helper that speeds up one chat model and cannot chat by itself. Open the chat model that it belongs to.</source>
        <translation>이 파일은 채팅 모델 하나를 빠르게 하는 초안이라 혼자서는 채팅할 수 없습니다. 함께 쓰는 채팅 모델을 여세요.</translation>
    </message>
    <message>
        <source>This is a picture, not a model.</source>
        <translation>모델이 아니라 그림입니다.</translation>
    </message>
    <message>
        <source>This is a vision projector (mmproj): it lets a chat model see images and cannot chat by itself. Open the chat model that it belongs to.</source>
        <translation>이 파일은 비전 프로젝터(mmproj)입니다. 채팅 모델이 이미지를 보게 해 주며 혼자서는 채팅할 수 없습니다. 함께 쓰는 채팅 모델을 여세요.</translation>
    </message>
    <message>
        <source>This is an adapter (LoRA), which changes another model and cannot run by itself.</source>
        <translation>다른 모델을 바꾸는 어댑터(LoRA)이며 혼자서는 실행할 수 없습니다.</translation>
    </message>
    <message>
        <source>This is not a model; models end in .gguf.</source>
        <translation>모델이 아닙니다. 모델 파일은 .gguf로 끝납니다.</translation>
    </message>
    <message>
        <source>This is {0} ({1}), not a chat model.</source>
        <translation>채팅 모델이 아니라 {0}({1})입니다.</translation>
    </message>
    <message>
        <source>This version cannot run the architecture {0}. A newer version may; see Models for the ones that run here.</source>
        <translation>이 버전에서는 {0} 아키텍처를 실행할 수 없습니다. 더 새로운 버전에서는 될 수 있습니다. 여기서 실행되는 모델은 모델 페이지에서 보세요.</translation>
    </message>
    <message>
        <source>This version cannot run {0} yet.</source>
        <translation>이 버전에서는 아직 {0} 모델을 실행할 수 없습니다.</translation>
    </message>
    <message>
        <source>This version {0}; answers may be worse, since text is cut by a common rule.</source>
        <translation>토크나이저: {0}. 글을 흔한 규칙으로 나누므로 답변이 나빠질 수 있습니다.</translation>
    </message>
    <message>
        <source>Token id {0} is not in the vocabulary, expected 0 to {1}.</source>
        <translation>어휘에 없는 토큰 번호입니다: {0}. 0~{1}이어야 합니다.</translation>
    </message>
    <message>
        <source>Token id {0} is outside the vocabulary of {1}.</source>
        <translation>토큰 {1}개의 어휘를 벗어나는 토큰 번호입니다: {0}.</translation>
    </message>
    <message>
        <source>Too many open files</source>
        <translation>열린 파일이 너무 많습니다</translation>
    </message>
    <message>
        <source>Update this application.</source>
        <translation>이 애플리케이션을 업데이트하세요.</translation>
    </message>
    <message>
        <source>Use another template (--chat-template-file, or Settings).</source>
        <translation>다른 템플릿을 쓰세요(--chat-template-file 또는 설정).</translation>
    </message>
    <message>
        <source>Web pages: found {0}, expected an origin such as http://localhost:5173.</source>
        <translation>웹 페이지: {0} 값입니다. http://localhost:5173 같은 출처가 필요합니다.</translation>
    </message>
    <message>
        <source>Work space</source>
        <translation>작업 공간</translation>
    </message>
    <message>
        <source>Writing was stopped; nothing is left of the file.</source>
        <translation>쓰기를 중지했습니다. 파일은 남지 않았습니다.</translation>
    </message>
    <message>
        <source>a dimension of tensor {0}</source>
        <translation>텐서 {0}의 차원</translation>
    </message>
    <message>
        <source>a format has {0} characters, more than {1}</source>
        <translation>서식이 {0}자로, {1}자를 넘습니다</translation>
    </message>
    <message>
        <source>a hidden size of {0}</source>
        <translation>숨은 크기 {0}</translation>
    </message>
    <message>
        <source>a logit is infinite</source>
        <translation>로짓 하나가 무한대입니다</translation>
    </message>
    <message>
        <source>a model of {0} layers</source>
        <translation>레이어 {0}개의 모델</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>수</translation>
    </message>
    <message>
        <source>a vocabulary of {0}</source>
        <translation>토큰 {0}개의 어휘</translation>
    </message>
    <message>
        <source>a whole number</source>
        <translation>정수</translation>
    </message>
    <message>
        <source>accepted by place  {0}</source>
        <translation>위치별 수락  {0}</translation>
    </message>
    <message>
        <source>after layer {0} of {1}</source>
        <translation>레이어 {0} 다음(전체 {1}개)</translation>
    </message>
    <message>
        <source>an audio model</source>
        <translation>오디오 모델</translation>
    </message>
    <message>
        <source>an embedding model</source>
        <translation>임베딩 모델</translation>
    </message>
    <message>
        <source>an image or video generator</source>
        <translation>이미지 또는 비디오 생성 모델</translation>
    </message>
    <message>
        <source>an old GGML file from before GGUF. Get the model in GGUF format.</source>
        <translation>GGUF 이전의 오래된 GGML 파일입니다. GGUF 형식의 모델을 구하세요.</translation>
    </message>
    <message>
        <source>and {0} more</source>
        <translation>외 {0}개</translation>
    </message>
    <message>
        <source>attention, heads of {0}</source>
        <translation>어텐션, 헤드 크기 {0}</translation>
    </message>
    <message>
        <source>block size</source>
        <translation>블록 크기</translation>
    </message>
    <message>
        <source>choice of tokens</source>
        <translation>토큰 선택</translation>
    </message>
    <message>
        <source>context unknown, since the file does not say</source>
        <translation>컨텍스트는 파일에 적혀 있지 않아 알 수 없음</translation>
    </message>
    <message>
        <source>context {0} for {1} tokens</source>
        <translation>토큰 {1}개의 컨텍스트 {0}</translation>
    </message>
    <message>
        <source>does not know the pre-tokenizer {0}</source>
        <translation>모르는 프리토크나이저입니다({0})</translation>
    </message>
    <message>
        <source>embedding and output</source>
        <translation>임베딩과 출력</translation>
    </message>
    <message>
        <source>embedding scale</source>
        <translation>임베딩 배율</translation>
    </message>
    <message>
        <source>every logit is NaN or minus infinity</source>
        <translation>모든 로짓이 NaN 또는 음의 무한대입니다</translation>
    </message>
    <message>
        <source>features of {0}</source>
        <translation>특징 {0}개</translation>
    </message>
    <message>
        <source>finds no pre-tokenizer named</source>
        <translation>프리토크나이저 이름이 없습니다</translation>
    </message>
    <message>
        <source>found more than {0} bytes</source>
        <translation>{0}바이트가 넘습니다</translation>
    </message>
    <message>
        <source>found {0}, expected an object</source>
        <translation>{0}입니다. 객체여야 합니다</translation>
    </message>
    <message>
        <source>from {0}</source>
        <translation>{0} 이상</translation>
    </message>
    <message>
        <source>from {0} to {1}</source>
        <translation>{0}~{1}</translation>
    </message>
    <message>
        <source>gates</source>
        <translation>게이트</translation>
    </message>
    <message>
        <source>general.alignment is {0}, expected a power of two from 8. The file is corrupt. {1}</source>
        <translation>general.alignment가 {0}입니다. 8 이상의 2의 거듭제곱이어야 합니다. 파일이 손상되었습니다. {1}</translation>
    </message>
    <message>
        <source>in the logits, though every layer&apos;s output is finite</source>
        <translation>로짓(모든 레이어의 출력은 유한함)</translation>
    </message>
    <message>
        <source>in the output head</source>
        <translation>출력 헤드</translation>
    </message>
    <message>
        <source>in the token embedding</source>
        <translation>토큰 임베딩</translation>
    </message>
    <message>
        <source>it builds too much text</source>
        <translation>글을 너무 많이 만듭니다</translation>
    </message>
    <message>
        <source>it has {0} characters, expected at most {1}</source>
        <translation>{0}자입니다. {1}자 이하여야 합니다</translation>
    </message>
    <message>
        <source>it is too complex; make it simpler</source>
        <translation>너무 복잡하니 더 단순하게 만드세요</translation>
    </message>
    <message>
        <source>it loops without end</source>
        <translation>끝없이 반복합니다</translation>
    </message>
    <message>
        <source>it takes too long</source>
        <translation>너무 오래 걸립니다</translation>
    </message>
    <message>
        <source>item count of {0}</source>
        <translation>{0}의 항목 수</translation>
    </message>
    <message>
        <source>its folder</source>
        <translation>파일이 있는 폴더</translation>
    </message>
    <message>
        <source>its header claims {0} bytes</source>
        <translation>헤더에는 {0}바이트라고 적혀 있습니다</translation>
    </message>
    <message>
        <source>its tensor {0} is missing.</source>
        <translation>{0} 텐서가 없습니다.</translation>
    </message>
    <message>
        <source>layers 0 to {0}</source>
        <translation>레이어 0~{0}</translation>
    </message>
    <message>
        <source>line {0}: {1}</source>
        <translation>{0}번째 줄: {1}</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s format can say causal for all layers or none only.</source>
        <translation>llama.cpp 형식에서는 모든 레이어를 인과적으로 하거나 하나도 하지 않을 수만 있습니다.</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s format has no gates or norms of the context; use lucebox&apos;s.</source>
        <translation>llama.cpp 형식에는 컨텍스트의 게이트나 정규화가 없습니다. lucebox 형식을 쓰세요.</translation>
    </message>
    <message>
        <source>mask token</source>
        <translation>마스크 토큰</translation>
    </message>
    <message>
        <source>mask {0} {1}, blocks of {2}, windows {3}</source>
        <translation>마스크 {0} {1}, 블록 {2}, 창 {3}</translation>
    </message>
    <message>
        <source>metadata count</source>
        <translation>메타데이터 수</translation>
    </message>
    <message>
        <source>metadata key {0} is empty. The file is corrupt. {1}</source>
        <translation>메타데이터 키 {0}번이 비어 있습니다. 파일이 손상되었습니다. {1}</translation>
    </message>
    <message>
        <source>metadata key {0} is there twice. The file is corrupt. {1}</source>
        <translation>메타데이터에 {0} 키가 두 번 있습니다. 파일이 손상되었습니다. {1}</translation>
    </message>
    <message>
        <source>metadata key {0} of {1}</source>
        <translation>메타데이터 키 {0}(전체 {1}개)</translation>
    </message>
    <message>
        <source>mixture of experts</source>
        <translation>전문가 혼합</translation>
    </message>
    <message>
        <source>mixture of experts, {0}</source>
        <translation>전문가 혼합, {0}</translation>
    </message>
    <message>
        <source>model name</source>
        <translation>모델 이름</translation>
    </message>
    <message>
        <source>nameless</source>
        <translation>이름 없는</translation>
    </message>
    <message>
        <source>no graphics card is there</source>
        <translation>그래픽 카드 없음</translation>
    </message>
    <message>
        <source>no more to be had</source>
        <translation>더 얻을 수 없음</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>norm and residual</source>
        <translation>정규화와 잔차</translation>
    </message>
    <message>
        <source>norm epsilon</source>
        <translation>정규화 엡실론</translation>
    </message>
    <message>
        <source>norms of its inputs</source>
        <translation>입력의 정규화</translation>
    </message>
    <message>
        <source>not a GGUF model but JSON text, perhaps a server&apos;s error message. {0}</source>
        <translation>GGUF 모델이 아니라 JSON 텍스트입니다. 서버의 오류 메시지일 수 있습니다. {0}</translation>
    </message>
    <message>
        <source>not a GGUF model but a Git LFS pointer to one. Fetch the real file with `git lfs pull`.</source>
        <translation>GGUF 모델이 아니라 모델을 가리키는 Git LFS 포인터입니다. `git lfs pull`로 실제 파일을 받으세요.</translation>
    </message>
    <message>
        <source>not a GGUF model but a ZIP or PyTorch file. Get the model in GGUF format.</source>
        <translation>GGUF 모델이 아니라 ZIP 또는 PyTorch 파일입니다. GGUF 형식의 모델을 구하세요.</translation>
    </message>
    <message>
        <source>not a GGUF model but a safetensors file. Get the model in GGUF format.</source>
        <translation>GGUF 모델이 아니라 safetensors 파일입니다. GGUF 형식의 모델을 구하세요.</translation>
    </message>
    <message>
        <source>not a GGUF model but a text, which begins with &quot;{0}&quot;. {1}</source>
        <translation>GGUF 모델이 아니라 글입니다. 글의 처음: &quot;{0}&quot;. {1}</translation>
    </message>
    <message>
        <source>not a GGUF model but a web page (HTML), often a log-in or error page saved in its place. Download the model again, signed in if the site asks for it.</source>
        <translation>GGUF 모델이 아니라 웹 페이지(HTML)입니다. 로그인이나 오류 페이지가 대신 저장되는 일이 많습니다. 모델을 다시 내려받고, 사이트가 요구하면 로그인하세요.</translation>
    </message>
    <message>
        <source>not a GGUF model in the expected byte order: its magic is reversed. Get another version.</source>
        <translation>GGUF 모델의 바이트 순서가 아닙니다(매직이 뒤집혀 있음). 다른 버전을 구하세요.</translation>
    </message>
    <message>
        <source>not a GGUF model: it starts with zeros, so the download never finished. {0}</source>
        <translation>GGUF 모델이 아닙니다. 0으로 시작하므로 내려받기가 끝나지 않은 파일입니다. {0}</translation>
    </message>
    <message>
        <source>outputs of layer {0}</source>
        <translation>레이어 {0}의 출력</translation>
    </message>
    <message>
        <source>pip failed without a reason</source>
        <translation>pip이 이유 없이 실패했습니다</translation>
    </message>
    <message>
        <source>reading failed: {0}. Check the disk or the network drive.</source>
        <translation>읽지 못했습니다: {0}. 디스크나 네트워크 드라이브를 확인하세요.</translation>
    </message>
    <message>
        <source>reads layers {0} (sizes {1})</source>
        <translation>읽는 레이어 {0}(크기 {1})</translation>
    </message>
    <message>
        <source>recurrent layers</source>
        <translation>순환 층</translation>
    </message>
    <message>
        <source>rope base {0}, norm epsilon {1}, context norm {2}</source>
        <translation>RoPE 기준값 {0}, 정규화 엡실론 {1}, 컨텍스트 정규화 {2}</translation>
    </message>
    <message>
        <source>rope_freqs.weight holds values that are not positive numbers.</source>
        <translation>rope_freqs.weight에 양수가 아닌 값이 있습니다.</translation>
    </message>
    <message>
        <source>rope_freqs.weight is {0} {1}, expected F32 ({2},).</source>
        <translation>rope_freqs.weight가 {0} {1}입니다. F32 ({2},)이어야 합니다.</translation>
    </message>
    <message>
        <source>rows of drafts</source>
        <translation>초안의 행</translation>
    </message>
    <message>
        <source>small tables</source>
        <translation>작은 표</translation>
    </message>
    <message>
        <source>tensor count</source>
        <translation>텐서 수</translation>
    </message>
    <message>
        <source>tensor {0}</source>
        <translation>텐서 {0}</translation>
    </message>
    <message>
        <source>tensor {0} has rows of {1}, expected a multiple of {2} for {3}. The file is corrupt. {4}</source>
        <translation>텐서 {0}의 행 길이가 {1}입니다. {3}에서는 {2}의 배수여야 합니다. 파일이 손상되었습니다. {4}</translation>
    </message>
    <message>
        <source>tensor {0} has shape {1}; a dimension of zero is invalid. The file is corrupt. {2}</source>
        <translation>텐서 {0}의 모양이 {1}입니다. 차원이 0일 수는 없습니다. 파일이 손상되었습니다. {2}</translation>
    </message>
    <message>
        <source>tensor {0} has {1} dimensions, expected 1 to {2}. The file is corrupt. {3}</source>
        <translation>텐서 {0}의 차원이 {1}개입니다. 1~{2}개여야 합니다. 파일이 손상되었습니다. {3}</translation>
    </message>
    <message>
        <source>tensor {0} is there twice. The file is corrupt. {1}</source>
        <translation>{0} 텐서가 두 번 있습니다. 파일이 손상되었습니다. {1}</translation>
    </message>
    <message>
        <source>tensor {0} of {1}</source>
        <translation>텐서 {0}(전체 {1}개)</translation>
    </message>
    <message>
        <source>tensor {0} starts at offset {1}, expected a multiple of the alignment {2}. The file is corrupt. {3}</source>
        <translation>{0} 텐서의 시작 위치가 {1}입니다. 정렬 {2}의 배수여야 합니다. 파일이 손상되었습니다. {3}</translation>
    </message>
    <message>
        <source>tensors {0} and {1} overlap. The file is corrupt. {2}</source>
        <translation>두 텐서가 겹칩니다: {0}, {1}. 파일이 손상되었습니다. {2}</translation>
    </message>
    <message>
        <source>text</source>
        <translation>텍스트</translation>
    </message>
    <message>
        <source>the dimensions of tensor {0}</source>
        <translation>텐서 {0}의 차원 수</translation>
    </message>
    <message>
        <source>the file is empty, expected a GGUF model. {0}</source>
        <translation>파일이 비어 있습니다. GGUF 모델이어야 합니다. {0}</translation>
    </message>
    <message>
        <source>the header</source>
        <translation>헤더</translation>
    </message>
    <message>
        <source>the length of {0}</source>
        <translation>{0}의 길이</translation>
    </message>
    <message>
        <source>the length of {0} is {1}, expected at most {2}. The file is corrupt. {3}</source>
        <translation>{0}의 길이가 {1}입니다. {2} 이하여야 합니다. 파일이 손상되었습니다. {3}</translation>
    </message>
    <message>
        <source>the mask token {0}</source>
        <translation>마스크 토큰 {0}</translation>
    </message>
    <message>
        <source>the name of {0}</source>
        <translation>{0}의 이름</translation>
    </message>
    <message>
        <source>the offset of tensor {0}</source>
        <translation>텐서 {0}의 오프셋</translation>
    </message>
    <message>
        <source>the string {0}</source>
        <translation>문자열 {0}</translation>
    </message>
    <message>
        <source>the string {0} of {1}</source>
        <translation>{1}의 문자열 {0}</translation>
    </message>
    <message>
        <source>the target</source>
        <translation>대상 모델</translation>
    </message>
    <message>
        <source>the type of tensor {0}</source>
        <translation>텐서 {0}의 형식</translation>
    </message>
    <message>
        <source>the type of {0}</source>
        <translation>{0}의 형식</translation>
    </message>
    <message>
        <source>the value of {0}</source>
        <translation>{0}의 값</translation>
    </message>
    <message>
        <source>the version</source>
        <translation>버전</translation>
    </message>
    <message>
        <source>the work space finds no room</source>
        <translation>작업 공간을 둘 자리가 없습니다</translation>
    </message>
    <message>
        <source>the {0} is {1}, expected at most {2} in the {3} bytes that are left. The file is corrupt. {4}</source>
        <translation>{0}: {1}. 남은 {3}바이트에는 {2} 이하여야 합니다. 파일이 손상되었습니다. {4}</translation>
    </message>
    <message>
        <source>this is a big-endian file (for mainframes); expected little-endian byte order. Get the usual version of the model.</source>
        <translation>빅 엔디언 파일(메인프레임용)입니다. 리틀 엔디언이어야 합니다. 모델의 일반 버전을 구하세요.</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>너무 큼</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>참 또는 거짓</translation>
    </message>
    <message>
        <source>trying {0}</source>
        <translation>{0} 시험 중</translation>
    </message>
    <message>
        <source>up to {0}</source>
        <translation>{0} 이하</translation>
    </message>
    <message>
        <source>warming up</source>
        <translation>예열 중</translation>
    </message>
    <message>
        <source>weights so far</source>
        <translation>지금까지의 가중치</translation>
    </message>
    <message>
        <source>with {0}{1} times as likely</source>
        <translation>{0}{1}배의 가능성</translation>
    </message>
    <message>
        <source>{0} holds a number of too many digits.</source>
        <translation>{0}에 자릿수가 너무 많은 숫자가 있습니다.</translation>
    </message>
    <message>
        <source>{0} is nested too deeply; expected fewer levels.</source>
        <translation>{0}의 중첩이 너무 깊습니다. 단계를 줄여야 합니다.</translation>
    </message>
    <message>
        <source>{0} is no sound safetensors file: {1}. Get it again.</source>
        <translation>{0} 파일은 온전한 safetensors 파일이 아닙니다: {1}. 다시 구하세요.</translation>
    </message>
    <message>
        <source>{0} is not JSON: {1}.</source>
        <translation>{0} 내용이 JSON이 아닙니다: {1}.</translation>
    </message>
    <message>
        <source>{0} is not UTF-8 text (byte {1}). Convert it to UTF-8.</source>
        <translation>{0} 내용이 UTF-8 텍스트가 아닙니다(바이트 {1}). UTF-8로 변환하세요.</translation>
    </message>
    <message>
        <source>{0} is the source itself; leave {1} out.</source>
        <translation>{0} 파일은 원본입니다. {1} 선택을 해제하세요.</translation>
    </message>
    <message>
        <source>{0}: no .safetensors file is in the folder. Choose the folder that holds the draft&apos;s weights and its config.json.</source>
        <translation>{0}: 폴더에 .safetensors 파일이 없습니다. 초안의 가중치와 config.json이 든 폴더를 고르세요.</translation>
    </message>
    <message>
        <source>{0}: the draft has no tensor {1} {2}. The file is not whole; get it again.</source>
        <translation>{0}: 초안에 {1} {2} 텐서가 없습니다. 파일이 온전하지 않으니 다시 구하세요.</translation>
    </message>
    <message>
        <source>window: the whole context</source>
        <translation>창: 전체 컨텍스트</translation>
    </message>
    <message>
        <source>, first {0}</source>
        <translation>, 처음 나온 곳: {0}</translation>
    </message>
    <message>
        <source>The model produced NaN or infinity{0}. The file may be damaged, or its numbers overflow in fast precision: check the file&apos;s hash, or load it with --precision exact.</source>
        <translation>모델이 NaN 또는 무한대를 냈습니다{0}. 파일이 손상되었거나 빠른 정밀도에서 수가 넘칠 수 있습니다. 파일의 해시를 확인하거나 --precision exact로 불러오세요.</translation>
    </message>
    <message>
        <source>not a GGUF model: its first bytes are {0}, expected 47 47 55 46, which spell GGUF. {1}</source>
        <translation>GGUF 모델이 아닙니다. 처음 바이트는 {0}입니다. GGUF를 뜻하는 47 47 55 46이어야 합니다. {1}</translation>
    </message>
    <message>
        <source>window: causality everywhere</source>
        <translation>창: 모든 레이어에 인과성</translation>
    </message>
    <message>
        <source>window: causality where it slides</source>
        <translation>창: 슬라이딩하는 레이어에만 인과성</translation>
    </message>
    <message>
        <source>window: no causality</source>
        <translation>창: 인과성 없음</translation>
    </message>
    <message>
        <source>{0} a layer</source>
        <translation>레이어당 {0}</translation>
    </message>
    <message>
        <source>{0} are missing.</source>
        <translation>{0} 모자랍니다.</translation>
    </message>
    <message>
        <source>{0} cannot be read: {1}.</source>
        <translation>{0} 파일을 읽을 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>{0} cannot be written ({1}), so nothing is kept there.</source>
        <translation>{0}에 쓸 수 없어({1}) 그곳에는 아무것도 보관하지 않습니다.</translation>
    </message>
    <message>
        <source>{0} cannot be written: {1}.</source>
        <translation>{0} 파일을 쓸 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>{0} could not be brought back: {1}. Its files are in {2}.</source>
        <translation>{0} 모델을 되돌리지 못했습니다: {1}. 파일은 {2}에 있습니다.</translation>
    </message>
    <message>
        <source>{0} could not be copied to {1}: {2}. Choose another models folder, or use the file where it is.</source>
        <translation>{0} 모델을 {1}에 복사하지 못했습니다: {2}. 다른 모델 폴더를 선택하거나 지금 위치에서 파일을 사용하세요.</translation>
    </message>
    <message>
        <source>{0} could not be moved to the bin: {1}. If it is loaded, unload it first.</source>
        <translation>{0} 모델을 휴지통으로 옮기지 못했습니다: {1}. 불러온 모델이라면 먼저 꺼내세요.</translation>
    </message>
    <message>
        <source>{0} does not hold {1}: {2}.</source>
        <translation>{0} 안에 {1} 파일이 없습니다: {2}.</translation>
    </message>
    <message>
        <source>{0} embedding</source>
        <translation>{0} 임베딩</translation>
    </message>
    <message>
        <source>{0} experts, {1} of them a token; a card takes up to {2} and {3}. {4}</source>
        <translation>전문가 {0}개, 토큰당 {1}개입니다. 카드에서는 각각 {2}개와 {3}개까지 됩니다. {4}</translation>
    </message>
    <message>
        <source>{0} failed with status {1}</source>
        <translation>{0} 실패, 상태 {1}</translation>
    </message>
    <message>
        <source>{0} formats side by side; expected at most {1}.</source>
        <translation>나란히 있는 형식이 {0}개입니다. {1}개 이하여야 합니다.</translation>
    </message>
    <message>
        <source>{0} had {1} bytes and {2} were read: the file changed while it was copied. Try again when it is complete.</source>
        <translation>{0} 파일은 {1}바이트였는데 {2}바이트를 읽었습니다. 복사하는 동안 파일이 바뀌었습니다. 파일이 완성되면 다시 시도하세요.</translation>
    </message>
    <message>
        <source>{0} had {1} bytes when opened and has {2} now.</source>
        <translation>{0} 파일은 열 때 {1}바이트였는데 지금은 {2}바이트입니다.</translation>
    </message>
    <message>
        <source>{0} has 0 draft layers of its own and mtp needs one. Choose a draft&apos;s file, or ngram, which every model can use.</source>
        <translation>{0}에는 자체 초안 레이어가 없는데 mtp에는 하나가 필요합니다. 초안 파일을 선택하거나, 모든 모델에서 쓸 수 있는 ngram을 선택하세요.</translation>
    </message>
    <message>
        <source>{0} has compute capability {1}.{2}; needed is 7.5 (GeForce RTX 20 series) or newer. The processor is used.</source>
        <translation>{0}의 컴퓨트 능력이 {1}.{2}입니다. 7.5(GeForce RTX 20 시리즈) 이상이 필요하므로 프로세서를 씁니다.</translation>
    </message>
    <message>
        <source>{0} has no name. The file is corrupt. {1}</source>
        <translation>{0}에 이름이 없습니다. 파일이 손상되었습니다. {1}</translation>
    </message>
    <message>
        <source>{0} has no vocabulary to compare with {1}.</source>
        <translation>{0}에는 대상 모델 {1}의 어휘와 비교할 어휘가 없습니다.</translation>
    </message>
    <message>
        <source>{0} has {1} columns, expected a multiple of 8. Load it on the processor.</source>
        <translation>{0}의 열이 {1}개입니다. 8의 배수여야 합니다. 프로세서에 불러오세요.</translation>
    </message>
    <message>
        <source>{0} has {1} entries, expected {2}.</source>
        <translation>{0}의 항목이 {1}개입니다. {2}개여야 합니다.</translation>
    </message>
    <message>
        <source>{0} has {1} of memory free, expected {2} more for the model ({3}). Close other programs that use the card, or choose a smaller model or context.</source>
        <translation>{0}의 여유 메모리는 {1}인데 모델에 필요한 메모리가 {2} 더 있습니다({3}). 카드를 쓰는 다른 프로그램을 닫거나 더 작은 모델 또는 컨텍스트를 선택하세요.</translation>
    </message>
    <message>
        <source>{0} has {1}, which this version cannot run; use another draft.</source>
        <translation>{0}에는 이 버전에서 실행할 수 없는 부분이 있습니다: {1}. 다른 초안을 쓰세요.</translation>
    </message>
    <message>
        <source>{0} holds numbers beyond f16; use bf16.</source>
        <translation>{0} 텐서에 f16을 넘는 수가 있습니다. bf16을 쓰세요.</translation>
    </message>
    <message>
        <source>{0} is a folder; expected the name of a file to write.</source>
        <translation>{0} 이름은 폴더입니다. 쓸 파일의 이름이어야 합니다.</translation>
    </message>
    <message>
        <source>{0} is a {1} file, expected a DFlash draft ({2}).</source>
        <translation>{0} 파일의 종류는 {1}입니다. DFlash 초안({2})이어야 합니다.</translation>
    </message>
    <message>
        <source>{0} is no GGUF file; convert it first: lucebox convert-draft.</source>
        <translation>{0} 파일은 GGUF 파일이 아닙니다. 먼저 변환하세요: lucebox convert-draft.</translation>
    </message>
    <message>
        <source>{0} is not in Lucebox&apos;s models folder ({1}), so it is not removed here. Delete it in {2}.</source>
        <translation>{0} 모델은 Lucebox의 모델 폴더({1})에 있지 않으므로 여기서 삭제하지 않습니다. 삭제할 곳: {2}.</translation>
    </message>
    <message>
        <source>{0} is not in the bin.</source>
        <translation>휴지통에 없습니다: {0}.</translation>
    </message>
    <message>
        <source>{0} numbers</source>
        <translation>{0} 수</translation>
    </message>
    <message>
        <source>{0} of the draft is not used: Lucebox drafts take the target&apos;s.</source>
        <translation>초안의 것은 쓰지 않습니다: {0}. Lucebox 초안은 대상 모델의 것을 씁니다.</translation>
    </message>
    <message>
        <source>{0} of the files in {1} could not be deleted. Their key is, so that nobody can read them; delete them by hand.</source>
        <translation>{1}의 파일 {0}개를 삭제하지 못했습니다. 키는 삭제했으므로 아무도 읽을 수 없습니다. 직접 삭제하세요.</translation>
    </message>
    <message>
        <source>{0} of {1} bytes finds no room</source>
        <translation>{1}바이트를 둘 자리가 없습니다({0})</translation>
    </message>
    <message>
        <source>{0} of {1} merges name no tokens and are left out, the first is {2}; text may be cut in other places than the model expects.</source>
        <translation>병합 규칙 {1}개 중 {0}개가 토큰을 가리키지 않아 뺐습니다. 첫 번째는 {2}입니다. 글이 모델이 기대하는 곳과 다르게 나뉠 수 있습니다.</translation>
    </message>
    <message>
        <source>{0} runs past {1} bytes of header, which no sound file has. The file is corrupt. {2}</source>
        <translation>{0}: 헤더 {1}바이트를 넘습니다. 온전한 파일에는 없는 일입니다. 파일이 손상되었습니다. {2}</translation>
    </message>
    <message>
        <source>{0} tokens</source>
        <translation>토큰 {0}개</translation>
    </message>
    <message>
        <source>{0} tokens a pass</source>
        <translation>한 번에 토큰 {0}개</translation>
    </message>
    <message>
        <source>{0} tokens a step with {1} of {2} experts are more than a card takes at once; choose a smaller prefill chunk.</source>
        <translation>단계당 토큰 {0}개에 전문가 {2}개 중 {1}개는 카드가 한 번에 처리할 수 있는 양을 넘습니다. 프롬프트 묶음을 줄이세요.</translation>
    </message>
    <message>
        <source>{0} was written to since it was opened.</source>
        <translation>{0} 파일은 열린 뒤에 내용이 바뀌었습니다.</translation>
    </message>
    <message>
        <source>{0} with a context of {1} tokens needs {2} (weights {3}, context {4}, work space {5}); {6} has {7}, of which {8} are free. {9}.</source>
        <translation>{0} 모델을 토큰 {1}개의 컨텍스트로 불러오려면 메모리 {2} 이상이 있어야 합니다(가중치 {3}, 컨텍스트 {4}, 작업 공간 {5}). {6}의 메모리는 {7}이고 여유는 {8}입니다. {9}.</translation>
    </message>
    <message>
        <source>{0}, any batch</source>
        <translation>{0}, 모든 묶음 크기</translation>
    </message>
    <message>
        <source>{0}, f16</source>
        <translation>{0}, f16</translation>
    </message>
    <message>
        <source>{0}, int8</source>
        <translation>{0}, int8</translation>
    </message>
    <message>
        <source>{0}, long</source>
        <translation>{0}, 긴 글</translation>
    </message>
    <message>
        <source>{0}. The file is damaged or made by a faulty tool; get another version of the model.</source>
        <translation>{0}. 파일이 손상되었거나 잘못된 도구로 만들어졌습니다. 모델의 다른 버전을 구하세요.</translation>
    </message>
    <message>
        <source>{0}.attention.head_count is {1}, expected a multiple of the {2} key/value heads.</source>
        <translation>{0}.attention.head_count가 {1}입니다. 키/값 헤드 {2}개의 배수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}.expert_used_count is {1}, expected up to {2}.</source>
        <translation>{0}.expert_used_count가 {1}입니다. {2} 이하여야 합니다.</translation>
    </message>
    <message>
        <source>{0}.rope.dimension_count is {1}, expected an even number up to {2}.</source>
        <translation>{0}.rope.dimension_count가 {1}입니다. {2} 이하의 짝수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}.rope.scaling.type is {1}; this version knows none, linear and yarn.</source>
        <translation>{0}.rope.scaling.type이 {1}입니다. 이 버전은 none, linear, yarn을 지원합니다.</translation>
    </message>
    <message>
        <source>{0}.ssm: {1} value heads of {2} with inner size {3} and {4} key heads; expected inner size = value heads * state size, and a multiple of the key heads.</source>
        <translation>{0}.ssm: 크기 {2}의 값 헤드 {1}개, 내부 크기 {3}, 키 헤드 {4}개입니다. 내부 크기는 값 헤드 수 * 상태 크기이고, 키 헤드 수의 배수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: a sliding pattern of {1} layers, expected {2}.</source>
        <translation>{0}: 슬라이딩 패턴의 레이어가 {1}개입니다. {2}개여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: arrays inside arrays inside arrays. The file is corrupt.</source>
        <translation>{0}: 배열이 세 겹으로 들어 있습니다. 파일이 손상되었습니다.</translation>
    </message>
    <message>
        <source>{0}: attention gates of {1} numbers, expected {2} or {3}.</source>
        <translation>{0}: 어텐션 게이트의 수가 {1}개입니다. {2}개 또는 {3}개여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: cannot be mapped: {1}.</source>
        <translation>{0}: 메모리에 연결할 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>{0}: config.json is missing beside {1}; it says how the draft is built. Get the whole folder.</source>
        <translation>{0}: {1} 옆에 config.json이 없습니다. 초안의 구조가 적혀 있는 파일이니 폴더 전체를 구하세요.</translation>
    </message>
    <message>
        <source>{0}: expected a JSON object.</source>
        <translation>{0}: JSON 객체여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: fc.weight is {1}, expected columns in multiples of {2}.</source>
        <translation>{0}: fc.weight가 {1}입니다. 열의 수는 {2}의 배수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found GGUF version {1}, expected 2 or 3. {2}</source>
        <translation>{0}: GGUF 버전이 {1}입니다. 2 또는 3이어야 합니다. {2}</translation>
    </message>
    <message>
        <source>{0}: found a folder or device, expected a GGUF file.</source>
        <translation>{0}: 폴더나 장치입니다. GGUF 파일이어야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found truth value {1}, expected 0 or 1.</source>
        <translation>{0}: 참거짓 값이 {1}입니다. 0 또는 1이어야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found value type {1}, expected 0 to 12. The file is corrupt. {2}</source>
        <translation>{0}: 값의 형식이 {1}입니다. 0~12여야 합니다. 파일이 손상되었습니다. {2}</translation>
    </message>
    <message>
        <source>{0}: found {1} bytes with SHA-256 {2}..., expected {3} with {4}.... Try again; the download was damaged.</source>
        <translation>{0}: {1}바이트, SHA-256 {2}...입니다. {3}바이트, {4}...이어야 합니다. 내려받기가 손상되었으니 다시 시도하세요.</translation>
    </message>
    <message>
        <source>{0}: found {1} of the wrong kind.</source>
        <translation>{0}: 값 {1}의 종류가 잘못되었습니다.</translation>
    </message>
    <message>
        <source>{0}: found {1} outputs an expert, expected a multiple of {2}.</source>
        <translation>{0}: 전문가당 출력이 {1}개입니다. {2}의 배수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found {1}, expected a finite number.</source>
        <translation>{0}: 값이 {1}입니다. 유한한 수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found {1}, expected a number.</source>
        <translation>{0}: 값이 {1}입니다. 수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found {1}, expected at least {2}.</source>
        <translation>{0}: 값이 {1}입니다. {2} 이상이어야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found {1}, expected at most {2}.</source>
        <translation>{0}: 값이 {1}입니다. {2} 이하여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: found {1}, expected one of {2}.</source>
        <translation>{0}: 값이 {1}입니다. 다음 중 하나여야 합니다: {2}.</translation>
    </message>
    <message>
        <source>{0}: groups of {1} columns do not divide {2}.</source>
        <translation>{0}: {2}열은 {1}열씩의 묶음으로 나누어지지 않습니다.</translation>
    </message>
    <message>
        <source>{0}: layers slide over a window that is not given.</source>
        <translation>{0}: 레이어가 슬라이딩이라는데 창의 크기가 없습니다.</translation>
    </message>
    <message>
        <source>{0}: rows of {1} are not whole blocks</source>
        <translation>{0}: 길이 {1}의 행이 온전한 블록으로 나누어지지 않습니다</translation>
    </message>
    <message>
        <source>{0}: tensor {1} has quantisation type {2}, which this version does not know. Get another quantisation of the model, or update this application.</source>
        <translation>{0}: {1} 텐서의 양자화 형식({2})을 이 버전은 모릅니다. 모델의 다른 양자화를 구하거나 이 애플리케이션을 업데이트하세요.</translation>
    </message>
    <message>
        <source>{0}: tensor {1} is already in an earlier part. Get the whole set again.</source>
        <translation>{0}: {1} 텐서가 앞의 파일에 이미 있습니다. 파일 전체를 다시 구하세요.</translation>
    </message>
    <message>
        <source>{0}: tensor {1} is in another file too.</source>
        <translation>{0}: {1} 텐서가 다른 파일에도 있습니다.</translation>
    </message>
    <message>
        <source>{0}: the draft has {1} tensors that this version does not use ({2}); it is a variant that cannot be run yet.</source>
        <translation>{0}: 이 버전에서 쓰지 않는 텐서가 초안에 {1}개 있습니다({2}). 아직 실행할 수 없는 변형입니다.</translation>
    </message>
    <message>
        <source>{0}: the draft reads layers {1}, expected {2} different ones for {3} features.</source>
        <translation>{0}: 초안이 읽는 레이어가 {1}입니다. 특징 {3}개에는 서로 다른 레이어 {2}개여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: the file cannot be read: {1}.</source>
        <translation>{0}: 파일을 읽을 수 없습니다: {1}.</translation>
    </message>
    <message>
        <source>{0}: the file is truncated: {1} runs to byte {2}, past the end of the file. The download is incomplete or the file is corrupt. {3}</source>
        <translation>{0}: 파일이 잘려 있습니다. {1}: {2}바이트까지 이어지는데 파일의 끝을 넘습니다. 내려받기가 끝나지 않았거나 파일이 손상되었습니다. {3}</translation>
    </message>
    <message>
        <source>{0}: the metadata has no {1}. The draft is incomplete or made by a faulty tool; get another version of it.</source>
        <translation>{0}: 메타데이터에 {1} 항목이 없습니다. 초안이 불완전하거나 잘못된 도구로 만들어졌습니다. 다른 버전을 구하세요.</translation>
    </message>
    <message>
        <source>{0}: the metadata has no {1}. The file is incomplete or made by a faulty tool; get another version of the model.</source>
        <translation>{0}: 메타데이터에 {1} 항목이 없습니다. 파일이 불완전하거나 잘못된 도구로 만들어졌습니다. 모델의 다른 버전을 구하세요.</translation>
    </message>
    <message>
        <source>{0}: the parts hold {1} tensors, expected {2}. The set is incomplete; get all its parts again.</source>
        <translation>{0}: 나뉜 파일들의 텐서가 {1}개입니다. {2}개여야 합니다. 파일이 다 모이지 않았으니 모두 다시 구하세요.</translation>
    </message>
    <message>
        <source>{0}: there is no tensor fc.weight, which every DFlash draft has. It is another model, or a part of a draft; choose the whole draft.</source>
        <translation>{0}: 모든 DFlash 초안에 있는 fc.weight 텐서가 없습니다. 다른 모델이거나 초안의 일부이니 초안 전체를 고르세요.</translation>
    </message>
    <message>
        <source>{0}: this is one of {1} parts of a model, but its name does not end in -00001-of-{2}.gguf or the like. Give the parts their original names.</source>
        <translation>{0}: {1}개로 나뉜 모델의 한 부분인데 이름이 -00001-of-{2}.gguf 같은 꼴로 끝나지 않습니다. 원래 이름으로 되돌리세요.</translation>
    </message>
    <message>
        <source>{0}: with {1} the right tokens are likelier ({2} tokens a pass, and {3} as it is). Correct the file&apos;s metadata, or convert it again from the original with `lucebox convert-draft`.</source>
        <translation>{0}. {1} 설정에서는 맞는 토큰의 확률이 더 높습니다(한 번에 토큰 {2}개, 지금은 {3}개). 파일의 메타데이터를 고치거나 `lucebox convert-draft`로 원본에서 다시 변환하세요.</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}: {1}</translation>
    </message>
    <message>
        <source>{0}: {1} has shape {2}, expected {3} from the metadata.</source>
        <translation>{0}: {1}의 모양이 {2}입니다. 메타데이터에 따르면 {3}이어야 합니다.</translation>
    </message>
    <message>
        <source>{0}: {1} has the shape {2}.</source>
        <translation>{0}: {1}의 모양이 {2}입니다.</translation>
    </message>
    <message>
        <source>{0}: {1} has {2} items, expected {3}.</source>
        <translation>{0}: {1}의 항목이 {2}개입니다. {3}개여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: {1} heads over {2} key/value heads of {3} and {4} numbers; expected whole groups and one even size.</source>
        <translation>{0}: 헤드 {1}개, 키/값 헤드 {2}개이고 값이 각각 {3}개와 {4}개입니다. 헤드 묶음은 딱 떨어지고 크기는 같은 짝수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: {1} holds NaN or infinity.</source>
        <translation>{0}: {1}에 NaN 또는 무한대가 있습니다.</translation>
    </message>
    <message>
        <source>{0}: {1} is a list of lists; expected a plain one.</source>
        <translation>{0}: {1} 항목이 목록의 목록입니다. 단순한 목록이어야 합니다.</translation>
    </message>
    <message>
        <source>{0}: {1} is missing, which is one of the {2} files of the draft. Get the whole folder.</source>
        <translation>{0}: 초안의 파일 {2}개 가운데 {1} 파일이 없습니다. 폴더 전체를 구하세요.</translation>
    </message>
    <message>
        <source>{0}: {1} is there twice, under two spellings.</source>
        <translation>{0}: {1} 텐서가 두 가지 철자로 두 번 있습니다.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, expected a finite number.</source>
        <translation>{0}: {1}의 값이 {2}입니다. 유한한 수여야 합니다.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, expected a list.</source>
        <translation>{0}: {1}의 값이 {2}입니다. 목록이어야 합니다.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, expected one of {3}.</source>
        <translation>{0}: {1}의 값이 {2}입니다. 다음 중 하나여야 합니다: {3}.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, expected {3}.</source>
        <translation>{0}: {1}의 값이 {2}입니다. 올바른 값: {3}.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, expected {3}. The files are not parts of one model, or were renamed; get the whole set again.</source>
        <translation>{0}: {1}의 값이 {2}입니다. {3}이어야 합니다. 한 모델의 파일들이 아니거나 이름이 바뀌었습니다. 파일 전체를 다시 구하세요.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, which cannot be read.</source>
        <translation>{0}: {1}의 형식을 읽을 수 없습니다({2}).</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}{3}, expected {4}. The file is damaged or made by a faulty tool; get another version of the model.</source>
        <translation>{0}: {1}의 값이 {2}{3}입니다. 올바른 값: {4}. 파일이 손상되었거나 잘못된 도구로 만들어졌습니다. 모델의 다른 버전을 구하세요.</translation>
    </message>
    <message>
        <source>{0}: {1} of {2} parts are missing ({3}{4}). Put all parts in one folder, or download the rest.</source>
        <translation>{0}: 파일 {2}개 중 {1}개가 없습니다({3}{4}). 모든 파일을 한 폴더에 두거나 나머지를 내려받으세요.</translation>
    </message>
    <message>
        <source>{0}: {1} {2} is not rows of whole blocks</source>
        <translation>{0}: {1} {2} 텐서의 행이 온전한 블록으로 되어 있지 않습니다</translation>
    </message>
    <message>
        <source>{0}merges holds {1}, expected two tokens</source>
        <translation>{0}merges에 {1} 항목이 있습니다. 토큰 두 개여야 합니다</translation>
    </message>
    <message>
        <source>{0}scores holds a number that is not finite</source>
        <translation>{0}scores에 유한하지 않은 수가 있습니다</translation>
    </message>
    <message>
        <source>{0}tokens has the byte token {1}, expected &lt;0x00&gt; to &lt;0xFF&gt;</source>
        <translation>{0}tokens의 바이트 토큰이 {1}입니다. &lt;0x00&gt;~&lt;0xFF&gt;여야 합니다</translation>
    </message>
    <message>
        <source>{0}tokens has {1} byte tokens, expected 256 or none</source>
        <translation>{0}tokens에 바이트 토큰이 {1}개 있습니다. 256개이거나 없어야 합니다</translation>
    </message>
    <message>
        <source>{0}tokens holds {1} {2} times, expected each token once</source>
        <translation>{0}tokens에 {1} 토큰이 {2}번 있습니다. 토큰마다 한 번이어야 합니다</translation>
    </message>
    <message>
        <source>{0}tokens is empty, expected the vocabulary</source>
        <translation>{0}tokens가 비어 있습니다. 어휘가 있어야 합니다</translation>
    </message>
    <message>
        <source>{0}{1} is {2}, expected 0 to {3}</source>
        <translation>{0}{1}의 값이 {2}입니다. 0~{3}이어야 합니다</translation>
    </message>
</context>
<context>
    <name>EngineController</name>
    <message>
        <source>{name} was not loaded</source>
        <translation>{name} 모델을 불러오지 못했습니다</translation>
    </message>
</context>
<context>
    <name>ErrorCard</name>
    <message>
        <source>Apply and load</source>
        <translation>적용하고 로드</translation>
    </message>
    <message>
        <source>Copy diagnostics</source>
        <translation>진단 정보 복사</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
</context>
<context>
    <name>ErrorReport</name>
    <message>
        <source>An error in the application: {error}. The log has the details.</source>
        <translation>애플리케이션 오류: {error}. 자세한 내용은 로그에 있습니다.</translation>
    </message>
</context>
<context>
    <name>Field</name>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
</context>
<context>
    <name>FindBar</name>
    <message>
        <source>Find in this chat</source>
        <translation>이 채팅에서 찾기</translation>
    </message>
    <message>
        <source>Previous place</source>
        <translation>이전 위치</translation>
    </message>
    <message>
        <source>Next place</source>
        <translation>다음 위치</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
    <message>
        <source>nothing found</source>
        <translation>결과 없음</translation>
    </message>
</context>
<context>
    <name>FirstRunPage</name>
    <message>
        <source>Install and chat</source>
        <translation>설치하고 채팅</translation>
    </message>
    <message>
        <source>Use a file…</source>
        <translation>파일 사용…</translation>
    </message>
    <message>
        <source>Choose a model first; then files can go into a message.</source>
        <translation>먼저 모델을 선택하세요. 그러면 파일을 메시지에 넣을 수 있습니다.</translation>
    </message>
    <message>
        <source>Choose a model and start talking</source>
        <translation>모델을 선택하고 대화를 시작하세요</translation>
    </message>
    <message>
        <source>It runs on this PC. Nothing you type leaves it.</source>
        <translation>이 PC에서 실행됩니다. 입력한 내용은 밖으로 나가지 않습니다.</translation>
    </message>
    <message>
        <source>Or drop a model file or a folder anywhere on this window</source>
        <translation>또는 모델 파일이나 폴더를 이 창 아무 곳에나 놓으세요</translation>
    </message>
    <message>
        <source>Suggested to begin with</source>
        <translation>처음 시작하기에 좋은 모델</translation>
    </message>
    <message>
        <source>{size} to download</source>
        <translation>내려받을 크기 {size}</translation>
    </message>
    <message>
        <source>Small and quick on any PC: good to see how this works, with simple answers. Apache-2.0.</source>
        <translation>어떤 PC에서나 작고 빠릅니다. 답변은 단순하지만 사용법을 익히기에 좋습니다. Apache-2.0.</translation>
    </message>
    <message>
        <source>Open a model file</source>
        <translation>모델 파일 열기</translation>
    </message>
    <message>
        <source>Models (*.gguf);;All files (*)</source>
        <translation>모델 (*.gguf);;모든 파일 (*)</translation>
    </message>
    <message>
        <source>Wait for what is under way, or stop it.</source>
        <translation>진행 중인 작업이 끝나기를 기다리거나 중지하세요.</translation>
    </message>
</context>
<context>
    <name>HardwareLine</name>
    <message>
        <source>This PC</source>
        <translation>이 PC</translation>
    </message>
    <message>
        <source>{n} memory</source>
        <translation>메모리 {n}</translation>
    </message>
    <message>
        <source>{n} free</source>
        <translation>여유 {n}</translation>
    </message>
</context>
<context>
    <name>Inspector</name>
    <message>
        <source>Live</source>
        <translation>실시간</translation>
    </message>
    <message>
        <source>First token after</source>
        <translation>첫 토큰까지</translation>
    </message>
    <message>
        <source>Prompt reading</source>
        <translation>프롬프트 읽기</translation>
    </message>
    <message>
        <source>Time per step</source>
        <translation>단계당 시간</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>요청</translation>
    </message>
    <message>
        <source>Pause the plot</source>
        <translation>그래프 일시 정지</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>메모리</translation>
    </message>
    <message>
        <source>Context used</source>
        <translation>사용한 컨텍스트</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>계속</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n}초</translation>
    </message>
    <message>
        <source>{n} tok/s</source>
        <translation>{n} 토큰/초</translation>
    </message>
    <message>
        <source>{n} ms</source>
        <translation>{n}ms</translation>
    </message>
    <message>
        <source>{running} running, {queued} waiting</source>
        <translation>실행 {running}, 대기 {queued}</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>{used} of {total}</source>
        <translation>{used} / {total}</translation>
    </message>
    <message>
        <source>{used} of {most}</source>
        <translation>{used} / {most}</translation>
    </message>
    <message numerus="yes">
        <source>%Ln token(s) reused from the last turn</source>
        <translation>
            <numerusform>지난 차례의 토큰 %Ln개를 다시 사용함</numerusform>
        </translation>
    </message>
    <message>
        <source>{used} of {total} pages in use</source>
        <translation>페이지 {used} / {total} 사용 중</translation>
    </message>
</context>
<context>
    <name>KeyMap</name>
    <message>
        <source>Keys</source>
        <translation>단축키</translation>
    </message>
    <message>
        <source>Send the message</source>
        <translation>메시지 보내기</translation>
    </message>
    <message>
        <source>Enter</source>
        <translation>Enter</translation>
    </message>
    <message>
        <source>New line in the message</source>
        <translation>메시지에서 줄 바꾸기</translation>
    </message>
    <message>
        <source>Shift+Enter</source>
        <translation>Shift+Enter</translation>
    </message>
    <message>
        <source>Next part of the window</source>
        <translation>창의 다음 영역</translation>
    </message>
    <message>
        <source>Select text in the message that has the keyboard</source>
        <translation>키보드가 있는 메시지에서 텍스트 선택</translation>
    </message>
    <message>
        <source>Shift+arrows</source>
        <translation>Shift+화살표</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
</context>
<context>
    <name>Load</name>
    <message>
        <source>Load, last 60 s</source>
        <translation>부하, 최근 60초</translation>
    </message>
    <message>
        <source>prefill {rate} tok/s</source>
        <translation>프리필 {rate} tok/s</translation>
    </message>
    <message>
        <source>Load of the last 60 seconds</source>
        <translation>최근 60초의 부하</translation>
    </message>
    <message>
        <source>{n} tok/s</source>
        <translation>{n} tok/s</translation>
    </message>
    <message>
        <source>{n} tokens per second, all requests together.</source>
        <translation>모든 요청을 합해 초당 토큰 {n}개입니다.</translation>
    </message>
    <message>
        <source>Prompts are read at {n} tokens per second.</source>
        <translation>프롬프트를 초당 토큰 {n}개로 읽고 있습니다.</translation>
    </message>
    <message>
        <source>Nothing is being written.</source>
        <translation>지금 쓰고 있는 것이 없습니다.</translation>
    </message>
</context>
<context>
    <name>LoadPanel</name>
    <message>
        <source>Loading</source>
        <translation>불러오는 중</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>opening the file</source>
        <translation>파일 여는 중</translation>
    </message>
    <message>
        <source>beginning</source>
        <translation>시작하는 중</translation>
    </message>
    <message>
        <source>Loading {name}</source>
        <translation>{name} 불러오는 중</translation>
    </message>
    <message>
        <source>warming up</source>
        <translation>예열 중</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} / {total}</translation>
    </message>
    <message>
        <source>finishing</source>
        <translation>마무리하는 중</translation>
    </message>
    <message>
        <source>{rate} a second</source>
        <translation>초당 {rate}</translation>
    </message>
    <message>
        <source>{n} s left</source>
        <translation>{n}초 남음</translation>
    </message>
    <message>
        <source>{n} min left</source>
        <translation>{n}분 남음</translation>
    </message>
    <message>
        <source>{n} h left</source>
        <translation>{n}시간 남음</translation>
    </message>
    <message>
        <source>{done} of {total} parts</source>
        <translation>{total}개 중 {done}개</translation>
    </message>
    <message>
        <source>{n} s</source>
        <translation>{n}초</translation>
    </message>
    <message>
        <source>preparing</source>
        <translation>준비하는 중</translation>
    </message>
    <message>
        <source>compiling for this PC, only the first time</source>
        <translation>이 PC에 맞게 컴파일하는 중(처음 한 번만)</translation>
    </message>
</context>
<context>
    <name>LocalServer</name>
    <message>
        <source>Port {port} is used by another program, or kept for the system.</source>
        <translation>포트 {port}번은 다른 프로그램이 쓰고 있거나 시스템용으로 예약되어 있습니다.</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Chat</source>
        <translation>채팅</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Tune</source>
        <translation>조정</translation>
    </message>
    <message>
        <source>Devices</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>서버</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
</context>
<context>
    <name>MakeDraftPage</name>
    <message>
        <source>Make a draft</source>
        <translation>초안 만들기</translation>
    </message>
    <message>
        <source>Back to the models</source>
        <translation>모델로 돌아가기</translation>
    </message>
    <message>
        <source>Convert and quantise</source>
        <translation>변환 및 양자화</translation>
    </message>
    <message>
        <source>Choose a folder…</source>
        <translation>폴더 선택…</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>파일 선택…</translation>
    </message>
    <message>
        <source>Draft for</source>
        <translation>대상 모델</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>저장</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>크기</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>진행</translation>
    </message>
    <message>
        <source>Write a file in {scheme}</source>
        <translation>{scheme} 파일 쓰기</translation>
    </message>
    <message>
        <source>Converting</source>
        <translation>변환 중</translation>
    </message>
    <message>
        <source>Make the draft</source>
        <translation>초안 만들기</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Draft doctor</source>
        <translation>초안 진단</translation>
    </message>
    <message>
        <source>A file is moved to its name only after it was read back. You can leave this page; the source stays as it is.</source>
        <translation>파일은 다시 읽어 확인한 뒤에야 제 이름으로 옮깁니다. 이 페이지를 떠나도 되며 원본은 그대로입니다.</translation>
    </message>
    <message>
        <source>Nothing is chosen yet</source>
        <translation>아직 선택하지 않음</translation>
    </message>
    <message>
        <source>A folder of safetensors with its config.json, or a draft&apos;s GGUF. Drop it anywhere on this window, or choose it.</source>
        <translation>config.json이 있는 safetensors 폴더나 초안 GGUF. 이 창에 끌어다 놓거나 선택하세요.</translation>
    </message>
    <message>
        <source>Use {scheme} with {model}</source>
        <translation>{model}에 {scheme} 사용</translation>
    </message>
    <message>
        <source>The model whose text it guesses.</source>
        <translation>초안이 예측할 모델입니다.</translation>
    </message>
    <message>
        <source>They fit together.</source>
        <translation>서로 맞습니다.</translation>
    </message>
    <message>
        <source>Written, read back, checked</source>
        <translation>쓰고 다시 읽어 확인함</translation>
    </message>
    <message>
        <source>being written</source>
        <translation>쓰는 중</translation>
    </message>
    <message>
        <source>waits</source>
        <translation>대기</translation>
    </message>
    <message>
        <source>Quantising to {scheme}</source>
        <translation>양자화 중: {scheme}</translation>
    </message>
    <message>
        <source>Choose a folder</source>
        <translation>폴더 선택</translation>
    </message>
    <message>
        <source>Drafts</source>
        <translation>초안</translation>
    </message>
    <message>
        <source>Choose a file</source>
        <translation>파일 선택</translation>
    </message>
</context>
<context>
    <name>MessageRow</name>
    <message>
        <source>Copy</source>
        <translation>복사</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답변</translation>
    </message>
    <message>
        <source>Edit as a new version</source>
        <translation>새 버전으로 고치기</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>이전 버전</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>다음 버전</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>New chat with this question</source>
        <translation>이 질문으로 새 채팅</translation>
    </message>
    <message>
        <source>You: {text}</source>
        <translation>나: {text}</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>답변</translation>
    </message>
    <message>
        <source>Error: {text}</source>
        <translation>오류: {text}</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>생각 중</translation>
    </message>
    <message>
        <source>Thought for {n} s</source>
        <translation>{n}초 동안 생각함</translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>생각</translation>
    </message>
    <message>
        <source>Unfolded</source>
        <translation>펼침</translation>
    </message>
    <message>
        <source>Folded</source>
        <translation>접힘</translation>
    </message>
    <message>
        <source>Copy code {language}</source>
        <translation>{language} 코드 복사</translation>
    </message>
    <message>
        <source>{n} tok/s</source>
        <translation>{n} 토큰/초</translation>
    </message>
    <message>
        <source>Ended, since it only repeated itself</source>
        <translation>같은 말만 되풀이해서 끝냄</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>중지됨</translation>
    </message>
    <message>
        <source>Cut off: the context is full</source>
        <translation>컨텍스트가 가득 차서 잘림</translation>
    </message>
    <message>
        <source>Cut at the answer length</source>
        <translation>답변 길이 제한에서 잘림</translation>
    </message>
    <message>
        <source>Cut off when the application ended</source>
        <translation>애플리케이션이 종료되어 잘림</translation>
    </message>
    <message>
        <source>dotted: drafted, {n} %</source>
        <translation>점선: 초안, {n} %</translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>Messages</source>
        <translation>메시지</translation>
    </message>
    <message>
        <source>Jump to latest</source>
        <translation>최신 내용으로 이동</translation>
    </message>
</context>
<context>
    <name>ModelButton</name>
    <message>
        <source>Model: {name}</source>
        <translation>모델: {name}</translation>
    </message>
    <message>
        <source>{name}. Choose another model (Ctrl+L)</source>
        <translation>{name}. 다른 모델 선택 (Ctrl+L)</translation>
    </message>
</context>
<context>
    <name>ModelsDelegate</name>
    <message>
        <source>Name to be shown</source>
        <translation>표시할 이름</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>All</source>
        <translation>전체</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Add folder…</source>
        <translation>폴더 추가…</translation>
    </message>
    <message>
        <source>Filter by name</source>
        <translation>이름으로 걸러내기</translation>
    </message>
    <message>
        <source>Clear the filter</source>
        <translation>필터 지우기</translation>
    </message>
    <message>
        <source>Folder of</source>
        <translation>폴더</translation>
    </message>
    <message>
        <source>No model on this PC yet</source>
        <translation>이 PC에 아직 모델이 없습니다</translation>
    </message>
    <message>
        <source>The known folders of Lucebox, LM Studio, Hugging Face and Ollama hold none. Drop a model file anywhere on this window, or open one.</source>
        <translation>Lucebox, LM Studio, Hugging Face, Ollama의 알려진 폴더에 모델이 없습니다. 모델 파일을 이 창 아무 곳에나 놓거나 열어 보세요.</translation>
    </message>
    <message>
        <source>Use a file…</source>
        <translation>파일 사용…</translation>
    </message>
    <message>
        <source>Filter the models</source>
        <translation>모델 걸러내기</translation>
    </message>
    <message>
        <source>Look for models again</source>
        <translation>모델 다시 찾기</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>파일 %n개</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>looking in known folders, %n found</source>
        <translation>
            <numerusform>알려진 폴더를 찾는 중, %n개 찾음</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Looking in known folders: %n model(s) found</source>
        <translation>
            <numerusform>알려진 폴더를 찾는 중: 모델 %n개 찾음</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>{size} in %n folder(s)</source>
        <translation>
            <numerusform>폴더 %n개에 {size}</numerusform>
        </translation>
    </message>
    <message>
        <source>No model matches. Clear the filter to see all.</source>
        <translation>맞는 모델이 없습니다. 필터를 지우면 모두 보입니다.</translation>
    </message>
    <message>
        <source>{name} is not a chat model.</source>
        <translation>{name} 파일은 채팅 모델이 아닙니다.</translation>
    </message>
    <message>
        <source>{name} is in the bin</source>
        <translation>{name} 파일을 휴지통으로 옮겼습니다</translation>
    </message>
    <message>
        <source>{name} is off the list; the file stays where it is</source>
        <translation>{name} 항목을 목록에서 뺐습니다. 파일은 그대로 있습니다</translation>
    </message>
    <message>
        <source>Chat with it</source>
        <translation>이 모델과 채팅</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>이름 바꾸기</translation>
    </message>
    <message>
        <source>Show file</source>
        <translation>파일 표시</translation>
    </message>
    <message>
        <source>Move to the bin</source>
        <translation>휴지통으로 이동</translation>
    </message>
    <message>
        <source>Add a folder of models</source>
        <translation>모델 폴더 추가</translation>
    </message>
    <message>
        <source>Open a model file</source>
        <translation>모델 파일 열기</translation>
    </message>
    <message>
        <source>Models (*.gguf);;All files (*)</source>
        <translation>모델 (*.gguf);;모든 파일 (*)</translation>
    </message>
</context>
<context>
    <name>ModelsTable</name>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Quant</source>
        <translation>양자화</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>크기</translation>
    </message>
    <message>
        <source>Architecture</source>
        <translation>아키텍처</translation>
    </message>
    <message>
        <source>Context up to</source>
        <translation>최대 컨텍스트</translation>
    </message>
    <message>
        <source>On this PC</source>
        <translation>이 PC에서</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>토큰/초</translation>
    </message>
    <message>
        <source>Folder of</source>
        <translation>폴더</translation>
    </message>
    <message>
        <source>Chat models</source>
        <translation>채팅 모델</translation>
    </message>
    <message>
        <source>Drafts and helpers</source>
        <translation>초안 모델과 보조 파일</translation>
    </message>
    <message>
        <source>Files with problems</source>
        <translation>문제가 있는 파일</translation>
    </message>
</context>
<context>
    <name>ModelsView</name>
    <message>
        <source>Models on this PC</source>
        <translation>이 PC의 모델</translation>
    </message>
</context>
<context>
    <name>NumberField</name>
    <message>
        <source>automatic</source>
        <translation>자동</translation>
    </message>
</context>
<context>
    <name>Owners</name>
    <message>
        <source>This app</source>
        <translation>이 앱</translation>
    </message>
    <message>
        <source>Other clients</source>
        <translation>다른 클라이언트</translation>
    </message>
    <message>
        <source>Shared by clients</source>
        <translation>클라이언트끼리 공유</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>비어 있음</translation>
    </message>
</context>
<context>
    <name>Palette</name>
    <message>
        <source>Commands</source>
        <translation>명령</translation>
    </message>
    <message>
        <source>Type a command</source>
        <translation>명령 입력</translation>
    </message>
    <message>
        <source>No command has this name.</source>
        <translation>이 이름의 명령이 없습니다.</translation>
    </message>
</context>
<context>
    <name>Pane</name>
    <message>
        <source>Fold the pane</source>
        <translation>창 접기</translation>
    </message>
    <message>
        <source>Unfold the pane</source>
        <translation>창 펼치기</translation>
    </message>
</context>
<context>
    <name>Pointer</name>
    <message>
        <source>Copy selected text</source>
        <translation>선택한 글 복사</translation>
    </message>
    <message>
        <source>Copy message</source>
        <translation>메시지 복사</translation>
    </message>
    <message>
        <source>Edit as a new version</source>
        <translation>새 버전으로 고치기</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답변</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>이전 버전</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>다음 버전</translation>
    </message>
</context>
<context>
    <name>Presets</name>
    <message>
        <source>Preset</source>
        <translation>프리셋</translation>
    </message>
    <message>
        <source>Save these settings as a preset</source>
        <translation>이 설정을 프리셋으로 저장</translation>
    </message>
    <message>
        <source>Delete this preset</source>
        <translation>이 프리셋 삭제</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>Own settings</source>
        <translation>직접 설정</translation>
    </message>
    <message>
        <source>Save as a preset</source>
        <translation>프리셋으로 저장</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>이름</translation>
    </message>
    <message>
        <source>{name} is deleted.</source>
        <translation>{name} 프리셋을 삭제했습니다.</translation>
    </message>
</context>
<context>
    <name>PromptPanel</name>
    <message>
        <source>System prompt</source>
        <translation>시스템 프롬프트</translation>
    </message>
    <message>
        <source>How the model should answer, for example: Answer briefly.</source>
        <translation>모델이 어떻게 답할지 적으세요. 예: 간단히 답해 주세요.</translation>
    </message>
    <message>
        <source>Use for new chats</source>
        <translation>새 채팅에 사용</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>지우기</translation>
    </message>
    <message>
        <source>System prompt of this chat</source>
        <translation>이 채팅의 시스템 프롬프트</translation>
    </message>
    <message>
        <source>Sent ahead of the messages, from the next answer on.</source>
        <translation>다음 답변부터 메시지보다 먼저 보냅니다.</translation>
    </message>
</context>
<context>
    <name>Question</name>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
</context>
<context>
    <name>Rail</name>
    <message>
        <source>Expert</source>
        <translation>고급</translation>
    </message>
    <message>
        <source>Show the pages for tuning, devices and serving</source>
        <translation>조정, 장치, 서버 페이지 보기</translation>
    </message>
</context>
<context>
    <name>Requests</name>
    <message>
        <source>Time</source>
        <translation>시각</translation>
    </message>
    <message>
        <source>Client</source>
        <translation>클라이언트</translation>
    </message>
    <message>
        <source>Path</source>
        <translation>경로</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Says</source>
        <translation>내용</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>프롬프트</translation>
    </message>
    <message>
        <source>Reused</source>
        <translation>재사용</translation>
    </message>
    <message>
        <source>Out</source>
        <translation>출력</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>토큰/초</translation>
    </message>
    <message>
        <source>State</source>
        <translation>상태</translation>
    </message>
    <message>
        <source>no valid key</source>
        <translation>올바른 키 없음</translation>
    </message>
    <message>
        <source>not allowed</source>
        <translation>허용되지 않음</translation>
    </message>
    <message>
        <source>not there</source>
        <translation>없는 주소</translation>
    </message>
    <message>
        <source>not possible</source>
        <translation>지원하지 않는 방식</translation>
    </message>
    <message>
        <source>too slow</source>
        <translation>시간 초과</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>너무 큼</translation>
    </message>
    <message>
        <source>client left</source>
        <translation>클라이언트가 떠남</translation>
    </message>
    <message>
        <source>not available</source>
        <translation>지금 사용할 수 없음</translation>
    </message>
    <message>
        <source>client left, stopped</source>
        <translation>클라이언트가 떠나 멈춤</translation>
    </message>
    <message>
        <source>{status}, broken off</source>
        <translation>{status}, 중간에 끊김</translation>
    </message>
    <message>
        <source>ended</source>
        <translation>끝남</translation>
    </message>
    <message>
        <source>{status}, {n} s</source>
        <translation>{status}, {n}초</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>대기 중</translation>
    </message>
    <message>
        <source>refused</source>
        <translation>거절됨</translation>
    </message>
    <message>
        <source>writing</source>
        <translation>쓰는 중</translation>
    </message>
    <message>
        <source>reading</source>
        <translation>읽는 중</translation>
    </message>
</context>
<context>
    <name>RequestsView</name>
    <message>
        <source>Requests of other programs</source>
        <translation>다른 프로그램의 요청</translation>
    </message>
</context>
<context>
    <name>SamplingPanel</name>
    <message>
        <source>Back to the model&apos;s own</source>
        <translation>모델 기본값으로 되돌리기</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>샘플링</translation>
    </message>
    <message>
        <source>The model&apos;s own value: {value}</source>
        <translation>모델 기본값: {value}</translation>
    </message>
    <message>
        <source>Load a model to change its settings.</source>
        <translation>설정을 바꾸려면 모델을 불러오세요.</translation>
    </message>
    <message numerus="yes">
        <source>{name}: %n setting(s) changed</source>
        <translation>
            <numerusform>{name}: 설정 %n개를 바꿈</numerusform>
        </translation>
    </message>
    <message>
        <source>{name}: the model&apos;s own settings</source>
        <translation>{name}: 모델 기본 설정</translation>
    </message>
</context>
<context>
    <name>ServerPage</name>
    <message>
        <source>Server</source>
        <translation>서버</translation>
    </message>
    <message>
        <source>Local API</source>
        <translation>로컬 API</translation>
    </message>
    <message>
        <source>Settings for your programs</source>
        <translation>프로그램별 설정</translation>
    </message>
    <message>
        <source>None yet. Switch the server on, and start one of the programs above.</source>
        <translation>아직 없습니다. 서버를 켜고 위 프로그램 중 하나를 시작하세요.</translation>
    </message>
    <message>
        <source>No model is loaded, so that requests are refused until one is.</source>
        <translation>불러온 모델이 없어, 모델을 불러올 때까지 요청을 거절합니다.</translation>
    </message>
    <message>
        <source>Use a free port</source>
        <translation>빈 포트 쓰기</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 고르기</translation>
    </message>
    <message>
        <source>Programs on this PC</source>
        <translation>이 PC의 프로그램</translation>
    </message>
    <message>
        <source>Programs on this PC, with the key</source>
        <translation>이 PC의 프로그램, 키 필요</translation>
    </message>
    <message>
        <source>The network, with the key</source>
        <translation>네트워크, 키 필요</translation>
    </message>
    <message>
        <source>Show the key</source>
        <translation>키 보기</translation>
    </message>
    <message>
        <source>Copy the key</source>
        <translation>키 복사</translation>
    </message>
    <message>
        <source>Make a new key</source>
        <translation>새 키 만들기</translation>
    </message>
    <message>
        <source>Make a new key; the old one ends at once</source>
        <translation>새 키 만들기; 이전 키는 바로 쓸 수 없게 됩니다</translation>
    </message>
    <message>
        <source>Address for OpenAI clients</source>
        <translation>OpenAI 클라이언트용 주소</translation>
    </message>
    <message>
        <source>Address for Anthropic</source>
        <translation>Anthropic용 주소</translation>
    </message>
    <message>
        <source>Copy the address for OpenAI clients</source>
        <translation>OpenAI 클라이언트용 주소 복사</translation>
    </message>
    <message>
        <source>Copy the address for Anthropic</source>
        <translation>Anthropic용 주소 복사</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>포트</translation>
    </message>
    <message>
        <source>Who can connect</source>
        <translation>연결할 수 있는 대상</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>키</translation>
    </message>
    <message>
        <source>Pause the table</source>
        <translation>표 멈추기</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>요청</translation>
    </message>
    <message>
        <source>Through {address} ({card}), with the key</source>
        <translation>{address} 주소({card})로, 키 필요</translation>
    </message>
    <message>
        <source>Through {address}, with the key</source>
        <translation>{address} 주소로, 키 필요</translation>
    </message>
    <message>
        <source>Other PCs reach it at {urls}, and need the key.</source>
        <translation>다른 PC는 {urls} 주소로 접속하며, 키가 필요합니다.</translation>
    </message>
    <message>
        <source>Other PCs reach it too, and need the key.</source>
        <translation>다른 PC도 접속할 수 있으며, 키가 필요합니다.</translation>
    </message>
    <message>
        <source>Not needed</source>
        <translation>필요 없음</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>꺼내기</translation>
    </message>
    <message>
        <source>Load a model first: its name is part of the settings.</source>
        <translation>먼저 모델을 불러오세요. 설정에 모델 이름이 들어갑니다.</translation>
    </message>
    <message>
        <source>The key is being fetched.</source>
        <translation>키를 가져오는 중입니다.</translation>
    </message>
    <message>
        <source>A client had this loaded beside the model of the window: {names}</source>
        <translation>클라이언트가 이 창의 모델 외에 불러온 모델: {names}</translation>
    </message>
    <message>
        <source>None yet. Start one of the programs above.</source>
        <translation>아직 없습니다. 위 프로그램 중 하나를 시작하세요.</translation>
    </message>
    <message>
        <source>On since {time}, requests now: {n}</source>
        <translation>{time}부터 켜짐, 현재 요청: {n}</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>시작하는 중…</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>멈추는 중…</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>꺼짐</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>복사했습니다.</translation>
    </message>
    <message>
        <source>Hide the key</source>
        <translation>키 숨기기</translation>
    </message>
    <message>
        <source>Hide the prompts</source>
        <translation>프롬프트 숨기기</translation>
    </message>
    <message>
        <source>Show what the prompts begin with</source>
        <translation>프롬프트의 앞부분 표시</translation>
    </message>
    <message>
        <source>frozen while the pointer is over the table</source>
        <translation>포인터가 표 위에 있는 동안 멈춤</translation>
    </message>
    <message>
        <source>frozen while a row is chosen; Esc lets go</source>
        <translation>행이 선택된 동안 멈춤, Esc로 해제</translation>
    </message>
    <message>
        <source>prompts are shown while they are answered, and kept nowhere</source>
        <translation>답하는 동안 프롬프트를 보여 주며, 어디에도 저장하지 않음</translation>
    </message>
    <message>
        <source>prompts are not shown or kept</source>
        <translation>프롬프트는 보여 주지도 저장하지도 않음</translation>
    </message>
    <message>
        <source>Go on with the table</source>
        <translation>표 계속하기</translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>As the system</source>
        <translation>시스템 설정에 따름</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>밝게</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>어둡게</translation>
    </message>
    <message>
        <source>Fast</source>
        <translation>빠르게</translation>
    </message>
    <message>
        <source>Exact</source>
        <translation>정확하게</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>Chain</source>
        <translation>한 줄기</translation>
    </message>
    <message>
        <source>Tree</source>
        <translation>나무</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>끔</translation>
    </message>
    <message>
        <source>On</source>
        <translation>켬</translation>
    </message>
    <message>
        <source>As the model likes</source>
        <translation>모델에 맡김</translation>
    </message>
    <message>
        <source>Persistent</source>
        <translation>항상 메모리에 유지</translation>
    </message>
    <message>
        <source>Request-scoped</source>
        <translation>필요한 동안만</translation>
    </message>
    <message>
        <source>First model</source>
        <translation>첫 번째 모델</translation>
    </message>
    <message>
        <source>Refuse</source>
        <translation>거절</translation>
    </message>
    <message>
        <source>Models folder</source>
        <translation>모델 폴더</translation>
    </message>
    <message>
        <source>Where downloads and copies go; by default in the user&apos;s data folder.</source>
        <translation>내려받거나 복사한 모델을 두는 곳입니다. 기본값은 사용자 데이터 폴더입니다.</translation>
    </message>
    <message>
        <source>Other model folders</source>
        <translation>다른 모델 폴더</translation>
    </message>
    <message>
        <source>Read in place, never changed.</source>
        <translation>제자리에서 읽기만 하고 바꾸지 않습니다.</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>테마</translation>
    </message>
    <message>
        <source>Colours of the window.</source>
        <translation>창의 색상입니다.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>언어</translation>
    </message>
    <message>
        <source>Language of the window.</source>
        <translation>창에 표시되는 언어입니다.</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>글자 크기</translation>
    </message>
    <message>
        <source>Size of all text.</source>
        <translation>모든 글자의 크기입니다.</translation>
    </message>
    <message>
        <source>Expert</source>
        <translation>고급</translation>
    </message>
    <message>
        <source>Show the pages for tuning, devices and serving.</source>
        <translation>조정, 장치, 서버 페이지를 표시합니다.</translation>
    </message>
    <message>
        <source>Load last model</source>
        <translation>마지막 모델 불러오기</translation>
    </message>
    <message>
        <source>Load it again when the window opens.</source>
        <translation>창을 열 때 다시 불러옵니다.</translation>
    </message>
    <message>
        <source>Last model</source>
        <translation>마지막 모델</translation>
    </message>
    <message>
        <source>The file that was loaded last.</source>
        <translation>마지막으로 불러온 파일입니다.</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>시스템 프롬프트</translation>
    </message>
    <message>
        <source>Sent ahead of each new chat.</source>
        <translation>새 채팅마다 먼저 보냅니다.</translation>
    </message>
    <message>
        <source>Mark drafted tokens</source>
        <translation>초안 토큰 표시</translation>
    </message>
    <message>
        <source>Dotted lines under what a draft guessed in answers.</source>
        <translation>답변에서 초안이 맞힌 부분에 점선 밑줄을 표시합니다.</translation>
    </message>
    <message>
        <source>How models run</source>
        <translation>모델 실행</translation>
    </message>
    <message>
        <source>By setting; what the user changed from the defaults.</source>
        <translation>설정별로 기본값에서 바꾼 값입니다.</translation>
    </message>
    <message>
        <source>Start with the app</source>
        <translation>앱과 함께 시작</translation>
    </message>
    <message>
        <source>Switch the local API on when the window opens.</source>
        <translation>창이 열릴 때 로컬 API를 켭니다.</translation>
    </message>
    <message>
        <source>Local API</source>
        <translation>로컬 API</translation>
    </message>
    <message>
        <source>Disk cache</source>
        <translation>디스크 캐시</translation>
    </message>
    <message>
        <source>Device of each model</source>
        <translation>모델별 장치</translation>
    </message>
    <message>
        <source>By model file; where it runs, if not where all others do.</source>
        <translation>모델 파일별로, 다른 모델과 다른 곳에서 실행할 때의 장치입니다.</translation>
    </message>
    <message>
        <source>Draft of each model</source>
        <translation>모델별 초안</translation>
    </message>
    <message>
        <source>By model file; what guesses, if not what the engine chooses.</source>
        <translation>모델 파일별로, 엔진이 고르는 것 대신 추측하는 것.</translation>
    </message>
    <message>
        <source>Presets</source>
        <translation>프리셋</translation>
    </message>
    <message>
        <source>By name; what is changed from the defaults of how models run.</source>
        <translation>이름별; 모델 실행 방식의 기본값에서 바꾼 것.</translation>
    </message>
    <message>
        <source>Sampling of each model</source>
        <translation>모델별 샘플링</translation>
    </message>
    <message>
        <source>By model file; what the user changed from the defaults.</source>
        <translation>모델 파일별로 기본값에서 바꾼 값입니다.</translation>
    </message>
    <message>
        <source>Keep conversations on disk</source>
        <translation>대화를 디스크에 보관</translation>
    </message>
    <message>
        <source>Conversations need not be read anew after a restart. The files are encrypted, and their key is in the system&apos;s keyring.</source>
        <translation>다시 시작해도 대화를 다시 읽지 않아도 됩니다. 파일은 암호화되며, 키는 시스템 키링에 있습니다.</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>폴더</translation>
    </message>
    <message>
        <source>Where they are kept; by default in the user&apos;s cache folder.</source>
        <translation>보관하는 곳입니다. 기본값은 사용자의 캐시 폴더입니다.</translation>
    </message>
    <message>
        <source>Most on disk</source>
        <translation>디스크 최대 사용량</translation>
    </message>
    <message>
        <source>What was not used for longest goes first.</source>
        <translation>가장 오래 쓰지 않은 것부터 지웁니다.</translation>
    </message>
    <message>
        <source>Longest on disk</source>
        <translation>디스크 최대 보관 기간</translation>
    </message>
    <message>
        <source>What was not used for so many days is deleted.</source>
        <translation>이 일수 동안 쓰지 않은 것은 삭제합니다.</translation>
    </message>
    <message>
        <source>days</source>
        <translation>일</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Where the model runs: cpu, cuda:0, or auto, which takes a graphics card if the model fits there.</source>
        <translation>모델이 실행되는 곳입니다. ‘자동’: 모델이 들어가면 그래픽 카드를 씁니다.</translation>
    </message>
    <message>
        <source>CPU threads</source>
        <translation>CPU 스레드</translation>
    </message>
    <message>
        <source>Threads for computing; by default one for each physical core.</source>
        <translation>계산에 쓰는 스레드 수입니다. 기본값은 물리 코어마다 하나입니다.</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>정밀도</translation>
    </message>
    <message>
        <source>fast rounds activations to 8 bits; exact computes in 32-bit floats and is slower.</source>
        <translation>빠르게: 활성값을 8비트로 반올림합니다. 정확하게: 32비트 부동소수점으로 계산하며 더 느립니다.</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
    <message>
        <source>Most tokens that one conversation may hold; by default the model&apos;s own.</source>
        <translation>대화 하나에 담을 수 있는 최대 토큰 수입니다. 기본값은 모델의 값입니다.</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>토큰</translation>
    </message>
    <message>
        <source>Sequences at once</source>
        <translation>동시 처리 수</translation>
    </message>
    <message>
        <source>How many requests are worked on together.</source>
        <translation>함께 처리하는 요청의 수입니다.</translation>
    </message>
    <message>
        <source>Prompt chunk</source>
        <translation>프롬프트 묶음</translation>
    </message>
    <message>
        <source>Tokens of a prompt that are read in one step; by default 512, and 2,048 on a card with room for it.</source>
        <translation>프롬프트를 한 단계에 읽는 토큰 수입니다. 기본값은 512이고, 여유가 있는 그래픽 카드에서는 2,048입니다.</translation>
    </message>
    <message>
        <source>Speculation</source>
        <translation>추측 생성</translation>
    </message>
    <message>
        <source>Guess tokens ahead and verify them at once: same text, more speed. auto guesses as much as pays; chain guesses one continuation, tree several.</source>
        <translation>토큰을 미리 추측해 한 번에 검증합니다. 글은 같고 더 빠릅니다. ‘자동’: 이득이 되는 만큼만 추측. ‘한 줄기’: 이어질 말을 하나만 추측. ‘나무’: 여러 갈래로 추측.</translation>
    </message>
    <message>
        <source>Draft model</source>
        <translation>초안 모델</translation>
    </message>
    <message>
        <source>Draft budget</source>
        <translation>추측 한도</translation>
    </message>
    <message>
        <source>Most tokens guessed at once; by default chosen from what pays.</source>
        <translation>한 번에 추측하는 최대 토큰 수입니다. 기본값은 이득에 따라 정해집니다.</translation>
    </message>
    <message>
        <source>Prefix cache</source>
        <translation>프리픽스 캐시</translation>
    </message>
    <message>
        <source>Most RAM for beginnings of conversations that the device has no room for; by default a part of what is free.</source>
        <translation>장치에 자리가 없는 대화의 앞부분을 보관할 최대 RAM입니다. 기본값은 여유 메모리의 일부입니다.</translation>
    </message>
    <message>
        <source>MiB</source>
        <translation>MiB</translation>
    </message>
    <message>
        <source>A file that guesses: a draft made for this model, or a small model of the same vocabulary. Without one what guesses is the draft that comes with Lucebox for the model, its own draft layers (mtp), or what the text repeats (ngram).</source>
        <translation>추측하는 파일: 이 모델용으로 만든 초안 또는 같은 어휘의 작은 모델. 없으면 Lucebox에 들어 있는 이 모델의 초안, 모델 자체의 초안 레이어(mtp) 또는 글에서 반복되는 부분(ngram)으로 추측합니다.</translation>
    </message>
    <message>
        <source>Draft between requests</source>
        <translation>요청 사이의 초안</translation>
    </message>
    <message>
        <source>persistent keeps a draft&apos;s file in the device&apos;s memory, request-scoped only while a text is written; auto keeps it where memory is not short.</source>
        <translation>초안 파일을 장치 메모리에 두는 방식입니다. ‘항상 메모리에 유지’: 계속 둠. ‘필요한 동안만’: 글을 쓰는 동안에만 둠. ‘자동’: 메모리가 부족하지 않으면 계속 둠.</translation>
    </message>
    <message>
        <source>unlimited</source>
        <translation>무제한</translation>
    </message>
    <message>
        <source>Chat template</source>
        <translation>채팅 템플릿</translation>
    </message>
    <message>
        <source>A jinja file used in place of the model&apos;s own template.</source>
        <translation>모델의 템플릿 대신 쓰는 jinja 파일입니다.</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>온도</translation>
    </message>
    <message>
        <source>0 always takes the likeliest token; higher is more varied.</source>
        <translation>0이면 항상 가장 가능성 높은 토큰을 고르고, 높을수록 다양해집니다.</translation>
    </message>
    <message>
        <source>Top K</source>
        <translation>Top K</translation>
    </message>
    <message>
        <source>Keep the K likeliest tokens; 0 keeps all.</source>
        <translation>가능성이 높은 토큰 K개만 남깁니다. 0이면 모두 남깁니다.</translation>
    </message>
    <message>
        <source>all</source>
        <translation>전부</translation>
    </message>
    <message>
        <source>Top P</source>
        <translation>Top P</translation>
    </message>
    <message>
        <source>Keep the likeliest tokens up to this total probability; 1 keeps all.</source>
        <translation>확률 합이 이 값이 될 때까지 가능성 높은 토큰을 남깁니다. 1이면 모두 남깁니다.</translation>
    </message>
    <message>
        <source>Min P</source>
        <translation>Min P</translation>
    </message>
    <message>
        <source>Drop tokens less likely than this share of the likeliest; 0 drops none.</source>
        <translation>가장 가능성 높은 토큰 대비 이 비율보다 낮은 토큰을 버립니다. 0이면 버리지 않습니다.</translation>
    </message>
    <message>
        <source>Typical P</source>
        <translation>Typical P</translation>
    </message>
    <message>
        <source>Keep tokens of typical surprise up to this total; 1 keeps all.</source>
        <translation>정보량이 평균에 가까운 토큰을 이 합까지 남깁니다. 1이면 모두 남깁니다.</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>반복 페널티</translation>
    </message>
    <message>
        <source>Makes tokens that already occurred less likely; 1 is off.</source>
        <translation>이미 나온 토큰의 가능성을 낮춥니다. 1이면 끕니다.</translation>
    </message>
    <message>
        <source>Presence penalty</source>
        <translation>출현 페널티</translation>
    </message>
    <message>
        <source>Taken once from each token that occurred; 0 is off.</source>
        <translation>한 번이라도 나온 토큰에서 한 번 뺍니다. 0이면 끕니다.</translation>
    </message>
    <message>
        <source>Frequency penalty</source>
        <translation>빈도 페널티</translation>
    </message>
    <message>
        <source>Taken for each time that a token occurred; 0 is off.</source>
        <translation>토큰이 나온 횟수만큼 뺍니다. 0이면 끕니다.</translation>
    </message>
    <message>
        <source>Penalty window</source>
        <translation>페널티 범위</translation>
    </message>
    <message>
        <source>Tokens that the penalties look back over; -1 is the whole text.</source>
        <translation>페널티를 계산할 때 되돌아보는 토큰 수입니다. -1이면 전체 글입니다.</translation>
    </message>
    <message>
        <source>whole text</source>
        <translation>전체</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>시드</translation>
    </message>
    <message>
        <source>Same seed, same text; empty draws a new one each time.</source>
        <translation>시드가 같으면 글도 같습니다. 비워 두면 매번 새로 뽑습니다.</translation>
    </message>
    <message>
        <source>Answer length</source>
        <translation>답변 길이</translation>
    </message>
    <message>
        <source>Most tokens in an answer; empty is up to the context.</source>
        <translation>답변 하나의 최대 토큰 수입니다. 비워 두면 컨텍스트까지 씁니다.</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Reset all</source>
        <translation>모두 초기화</translation>
    </message>
    <message>
        <source>Look</source>
        <translation>모양</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Change…</source>
        <translation>변경…</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>채팅</translation>
    </message>
    <message>
        <source>How models run</source>
        <translation>모델 실행</translation>
    </message>
    <message>
        <source>These hold from the next time that a model is loaded.</source>
        <translation>다음에 모델을 불러올 때부터 적용됩니다.</translation>
    </message>
    <message>
        <source>Conversations on disk</source>
        <translation>디스크에 보관하는 대화</translation>
    </message>
    <message>
        <source>They are kept while that is switched on in the Server page.</source>
        <translation>서버 페이지에서 켜 둔 동안 보관합니다.</translation>
    </message>
    <message>
        <source>Files and help</source>
        <translation>파일과 도움말</translation>
    </message>
    <message>
        <source>Chats and models</source>
        <translation>채팅과 모델</translation>
    </message>
    <message>
        <source>Settings file</source>
        <translation>설정 파일</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>로그</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>캐시</translation>
    </message>
    <message>
        <source>Open the folder of: {what}</source>
        <translation>폴더 열기: {what}</translation>
    </message>
    <message>
        <source>Export all chats…</source>
        <translation>모든 채팅 내보내기…</translation>
    </message>
    <message>
        <source>One ZIP file: Markdown to read and JSON with every version of a message.</source>
        <translation>ZIP 파일 하나에 읽기용 Markdown과 메시지의 모든 버전을 담은 JSON을 넣습니다.</translation>
    </message>
    <message>
        <source>A copy of your chats</source>
        <translation>채팅 사본</translation>
    </message>
    <message>
        <source>Copy diagnostics</source>
        <translation>진단 정보 복사</translation>
    </message>
    <message>
        <source>Versions, settings and the end of the log; no text of your chats.</source>
        <translation>버전, 설정, 로그의 마지막 부분입니다. 채팅 내용은 들어가지 않습니다.</translation>
    </message>
    <message>
        <source>For a bug report</source>
        <translation>버그 신고용</translation>
    </message>
    <message>
        <source>Stop looking in {folder}</source>
        <translation>{folder}에서 그만 찾기</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>폴더 추가…</translation>
    </message>
    <message>
        <source>{folder} cannot be used: {why}. Nothing was changed. Choose a folder that you may write to.</source>
        <translation>{folder} 폴더를 사용할 수 없습니다: {why}. 바뀐 것은 없습니다. 쓰기 권한이 있는 폴더를 선택하세요.</translation>
    </message>
    <message>
        <source>Add a folder</source>
        <translation>폴더 추가</translation>
    </message>
    <message>
        <source>{folder} cannot be shown.</source>
        <translation>{folder} 폴더를 표시할 수 없습니다.</translation>
    </message>
    <message>
        <source>Copied. The log itself is {file}</source>
        <translation>복사했습니다. 로그 파일: {file}</translation>
    </message>
    <message>
        <source>All settings are as at the first start.</source>
        <translation>모든 설정을 처음 상태로 되돌렸습니다.</translation>
    </message>
</context>
<context>
    <name>SpeedPanel</name>
    <message>
        <source>tok/s</source>
        <translation>토큰/초</translation>
    </message>
    <message>
        <source>Speed of the last 60 seconds</source>
        <translation>지난 60초의 속도</translation>
    </message>
    <message>
        <source>60 s ago</source>
        <translation>60초 전</translation>
    </message>
    <message>
        <source>now</source>
        <translation>지금</translation>
    </message>
    <message>
        <source>prefill {rate} tok/s</source>
        <translation>프리필 {rate} 토큰/초</translation>
    </message>
    <message>
        <source>{n} tokens per second.</source>
        <translation>초당 토큰 {n}개.</translation>
    </message>
    <message>
        <source>Prompt read at {n} tokens per second.</source>
        <translation>프롬프트를 초당 토큰 {n}개로 읽었습니다.</translation>
    </message>
    <message>
        <source>Paused.</source>
        <translation>일시 정지됨.</translation>
    </message>
    <message>
        <source>Nothing is being written.</source>
        <translation>쓰고 있는 내용이 없습니다.</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>속도</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>일시 정지됨</translation>
    </message>
    <message>
        <source>{n}× the last run</source>
        <translation>지난 실행의 {n}배</translation>
    </message>
    <message>
        <source>as the last run</source>
        <translation>지난 실행과 같음</translation>
    </message>
    <message>
        <source>last run {n} tok/s, measured here</source>
        <translation>지난 실행 {n} 토큰/초, 이 PC에서 측정</translation>
    </message>
    <message>
        <source>the first measurement of this model</source>
        <translation>이 모델의 첫 측정</translation>
    </message>
    <message>
        <source>no measurement yet</source>
        <translation>아직 측정값 없음</translation>
    </message>
</context>
<context>
    <name>StatusStrip</name>
    <message>
        <source>Server, for other PCs too</source>
        <translation>서버(다른 PC도 접속 가능)</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>서버</translation>
    </message>
    <message>
        <source>No model loaded</source>
        <translation>불러온 모델 없음</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>불러오는 중</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>준비됨</translation>
    </message>
    <message>
        <source>Writing</source>
        <translation>쓰는 중</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>중지하는 중</translation>
    </message>
    <message>
        <source>Not loaded</source>
        <translation>불러오지 못함</translation>
    </message>
    <message>
        <source>preparing</source>
        <translation>준비하는 중</translation>
    </message>
    <message>
        <source>warming up</source>
        <translation>예열 중</translation>
    </message>
    <message>
        <source>{used} of {total}</source>
        <translation>{used} / {total}</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>메모리</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
</context>
<context>
    <name>Toast</name>
    <message>
        <source>Undo</source>
        <translation>실행 취소</translation>
    </message>
</context>
<context>
    <name>Trial</name>
    <message>
        <source>Self-test</source>
        <translation>자체 검사</translation>
    </message>
    <message>
        <source>Preparing…</source>
        <translation>준비 중…</translation>
    </message>
    <message>
        <source>Result of the self-test</source>
        <translation>자체 검사 결과</translation>
    </message>
    <message>
        <source>Copy result</source>
        <translation>결과 복사</translation>
    </message>
    <message>
        <source>Compiling kernels</source>
        <translation>커널 컴파일 중</translation>
    </message>
    <message>
        <source>Testing</source>
        <translation>검사 중</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{total} 중 {done}</translation>
    </message>
    <message>
        <source>Every kernel agrees with NumPy on this card.</source>
        <translation>이 카드의 모든 커널이 NumPy와 일치합니다.</translation>
    </message>
    <message>
        <source>Something is wrong on this card; it is not used from now on.</source>
        <translation>이 카드에서 잘못된 부분이 있어 앞으로 쓰지 않습니다.</translation>
    </message>
    <message>
        <source>The self-test could not run to its end.</source>
        <translation>자체 검사를 끝까지 실행하지 못했습니다.</translation>
    </message>
</context>
<context>
    <name>Trying</name>
    <message>
        <source>Try it</source>
        <translation>시험해 보기</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation>측정 중</translation>
    </message>
    <message>
        <source>Off and on, the same texts</source>
        <translation>끔과 켬 비교, 같은 글</translation>
    </message>
    <message>
        <source>The loaded model writes four short texts with drafts and without; it takes some seconds, and nothing is kept of the texts.</source>
        <translation>불러온 모델이 짧은 글 네 편을 초안을 켜고 끈 채로 씁니다. 몇 초 걸리며 글은 저장하지 않습니다.</translation>
    </message>
    <message>
        <source>beginning</source>
        <translation>시작하는 중</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{total} 중 {done}</translation>
    </message>
    <message>
        <source>The model must be loaded and idle.</source>
        <translation>모델을 불러온 상태에서 쉬고 있어야 합니다.</translation>
    </message>
    <message>
        <source>The model was loaded without drafts. Choose a drafter and apply first.</source>
        <translation>모델을 초안 없이 불러왔습니다. 먼저 초안 방식을 선택하고 적용하세요.</translation>
    </message>
    <message>
        <source>Measure with drafts and without (F5)</source>
        <translation>초안을 켜고 끈 채로 측정(F5)</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>코드</translation>
    </message>
    <message>
        <source>Mathematics</source>
        <translation>수학</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Lists</source>
        <translation>목록</translation>
    </message>
    <message>
        <source>All</source>
        <translation>전체</translation>
    </message>
    <message>
        <source>The texts are equal, token for token.</source>
        <translation>두 글은 토큰 하나까지 같습니다.</translation>
    </message>
    <message>
        <source>A text differs with drafts, which should not be. Report it.</source>
        <translation>초안을 켜면 글이 달라집니다. 있어서는 안 되는 일이니 알려 주세요.</translation>
    </message>
    <message>
        <source>Drafts are paused now: they cost more than they bring here.</source>
        <translation>지금은 초안을 쉬고 있습니다. 여기서는 얻는 것보다 비용이 큽니다.</translation>
    </message>
    <message>
        <source>Speed with drafts and without</source>
        <translation>초안을 켰을 때와 껐을 때의 속도</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>글</translation>
    </message>
    <message>
        <source>Off tok/s</source>
        <translation>끔 토큰/초</translation>
    </message>
    <message>
        <source>On tok/s</source>
        <translation>켬 토큰/초</translation>
    </message>
    <message>
        <source>Accepted</source>
        <translation>채택</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>속도 향상</translation>
    </message>
</context>
<context>
    <name>TunePage</name>
    <message>
        <source>Tune</source>
        <translation>조정</translation>
    </message>
    <message>
        <source>How models run</source>
        <translation>모델 실행 방식</translation>
    </message>
    <message>
        <source>Each of these needs the model to be loaded again, which Apply does.</source>
        <translation>모두 모델을 다시 불러와야 하며, 적용을 누르면 그렇게 합니다.</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>불러온 모델이 없습니다</translation>
    </message>
    <message>
        <source>What can be tuned, and what that costs, depends on the model.</source>
        <translation>조정할 수 있는 것과 그 비용은 모델에 따라 다릅니다.</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>적용</translation>
    </message>
    <message>
        <source>Undo changes</source>
        <translation>변경 취소</translation>
    </message>
    <message>
        <source>Speculation</source>
        <translation>추측 디코딩</translation>
    </message>
    <message>
        <source>A small drafter guesses ahead and the model checks all guesses in one pass; the text stays the same.</source>
        <translation>작은 초안 모델이 앞서 예측하고 모델이 한 번에 모두 검사합니다. 글은 그대로입니다.</translation>
    </message>
    <message>
        <source>Draft doctor</source>
        <translation>초안 진단</translation>
    </message>
    <message>
        <source>Make a draft…</source>
        <translation>초안 만들기…</translation>
    </message>
    <message>
        <source>Shape of drafts</source>
        <translation>초안의 형태</translation>
    </message>
    <message>
        <source>Measure with drafts and without</source>
        <translation>초안을 켜고 끈 채로 측정</translation>
    </message>
    <message>
        <source>Only a draft&apos;s file can be examined.</source>
        <translation>초안 파일만 진단할 수 있습니다.</translation>
    </message>
    <message>
        <source>A draft is being examined. Wait for it, or stop it.</source>
        <translation>초안을 진단하는 중입니다. 기다리거나 중지하세요.</translation>
    </message>
</context>
<context>
    <name>_FoundList</name>
    <message>
        <source>Found on this PC</source>
        <translation>이 PC에서 찾은 모델</translation>
    </message>
    <message>
        <source>Looking in known folders…</source>
        <translation>알려진 폴더를 찾는 중…</translation>
    </message>
    <message>
        <source>Used where they are, nothing is copied</source>
        <translation>지금 위치에서 사용하며 복사하지 않습니다</translation>
    </message>
    <message>
        <source>{n} tok/s, measured</source>
        <translation>{n} 토큰/초, 측정값</translation>
    </message>
    <message>
        <source>Chat now</source>
        <translation>바로 채팅</translation>
    </message>
    <message>
        <source>Chat now with {name}</source>
        <translation>{name} 모델과 바로 채팅</translation>
    </message>
    <message numerus="yes">
        <source>%n more</source>
        <translation>
            <numerusform>%n개 더</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>chat</name>
    <message>
        <source>Markdown (*.md);;JSON with all versions (*.json)</source>
        <translation>Markdown (*.md);;모든 버전이 담긴 JSON (*.json)</translation>
    </message>
    <message>
        <source>Export chat</source>
        <translation>채팅 내보내기</translation>
    </message>
    <message>
        <source>You</source>
        <translation>나</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>답변</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Stopped; nothing was saved.</source>
        <translation>중지했습니다. 저장된 것이 없습니다.</translation>
    </message>
    <message>
        <source>{name} was not saved: {why}.</source>
        <translation>{name} 파일을 저장하지 못했습니다: {why}.</translation>
    </message>
    <message>
        <source>Saved as {name}</source>
        <translation>{name} 파일로 저장했습니다</translation>
    </message>
    <message>
        <source>Export all chats</source>
        <translation>모든 채팅 내보내기</translation>
    </message>
    <message numerus="yes">
        <source>Saving %n chat(s)…</source>
        <translation>
            <numerusform>채팅 %n개를 저장하는 중…</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) saved as {name}</source>
        <translation>
            <numerusform>채팅 %n개를 {name} 파일로 저장했습니다</numerusform>
        </translation>
    </message>
    <message>
        <source>The file with your chats was damaged. It is kept as {kept}, and a new one was begun.</source>
        <translation>채팅 파일이 손상되어 있었습니다. {kept} 파일로 보관하고 새 파일을 시작했습니다.</translation>
    </message>
    <message>
        <source>Chats cannot be saved in {path}: {detail}. New messages stay in memory until the window closes; export what you want to keep.</source>
        <translation>{path}에 채팅을 저장할 수 없습니다: {detail}. 새 메시지는 창을 닫을 때까지만 메모리에 남습니다. 보관할 내용은 내보내세요.</translation>
    </message>
    <message>
        <source>The chats in {path} are of a later version of this application and were left as they are. New messages stay in memory until the window closes.</source>
        <translation>{path}의 채팅은 이 애플리케이션의 더 새로운 버전에서 만든 것이라 그대로 두었습니다. 새 메시지는 창을 닫을 때까지만 메모리에 남습니다.</translation>
    </message>
    <message>
        <source>The disk is full, so chats cannot be saved in {path}. Nothing is lost while the window is open; saving is tried again every few seconds.</source>
        <translation>디스크가 가득 차서 {path}에 채팅을 저장할 수 없습니다. 창이 열려 있는 동안에는 아무것도 잃지 않으며, 몇 초마다 다시 저장을 시도합니다.</translation>
    </message>
    <message>
        <source>Chats cannot be saved in {path}: {detail}. Nothing is lost while the window is open; saving is tried again every few seconds.</source>
        <translation>{path}에 채팅을 저장할 수 없습니다: {detail}. 창이 열려 있는 동안에는 아무것도 잃지 않으며, 몇 초마다 다시 저장을 시도합니다.</translation>
    </message>
    <message>
        <source>{name} is too large: found {size}, at most {most} can be attached.</source>
        <translation>{name} 파일이 너무 큽니다. 크기는 {size}이고, 최대 {most}까지 첨부할 수 있습니다.</translation>
    </message>
    <message>
        <source>{name} is not a text file. Only text can be attached.</source>
        <translation>{name} 파일은 텍스트가 아닙니다. 텍스트만 첨부할 수 있습니다.</translation>
    </message>
    <message>
        <source>{name} is not written in UTF-8. Save it in this encoding and attach it again.</source>
        <translation>{name} 파일은 UTF-8로 쓰이지 않았습니다. UTF-8로 저장해서 다시 첨부하세요.</translation>
    </message>
    <message>
        <source>{name} is empty.</source>
        <translation>{name} 파일이 비어 있습니다.</translation>
    </message>
    <message>
        <source>{name} cannot be read: {detail}.</source>
        <translation>{name} 파일을 읽을 수 없습니다: {detail}.</translation>
    </message>
</context>
<context>
    <name>drafts</name>
    <message>
        <source>What the text repeats is guessed.</source>
        <translation>글에서 반복되는 부분을 추측합니다.</translation>
    </message>
    <message>
        <source>The model&apos;s own draft layer guesses.</source>
        <translation>모델 자체의 초안 레이어가 추측합니다.</translation>
    </message>
    <message>
        <source>A DFlash draft guesses.</source>
        <translation>DFlash 초안이 추측합니다.</translation>
    </message>
    <message>
        <source>A small model guesses.</source>
        <translation>작은 모델이 추측합니다.</translation>
    </message>
</context>
<context>
    <name>models</name>
    <message>
        <source>{name} cannot be used</source>
        <translation>{name} 항목을 사용할 수 없습니다</translation>
    </message>
    <message>
        <source>Installing SmolLM2-135M</source>
        <translation>SmolLM2-135M 설치하는 중</translation>
    </message>
    <message>
        <source>Copying {name}</source>
        <translation>{name} 복사하는 중</translation>
    </message>
    <message>
        <source>Not done: {what}</source>
        <translation>완료하지 못함: {what}</translation>
    </message>
    <message>
        <source>{name} does not fit with {n} tokens of context</source>
        <translation>{name} 모델은 컨텍스트 토큰 {n}개로는 들어가지 않습니다</translation>
    </message>
    <message>
        <source>It needs {need} and {free} can be used on {device}: {over} are missing.</source>
        <translation>필요한 메모리는 {need}이고 {device}에서 쓸 수 있는 메모리는 {free}입니다. {over}만큼 모자랍니다.</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>그래도 불러오기</translation>
    </message>
    <message>
        <source>Nothing was loaded; {name} is still ready.</source>
        <translation>아무것도 불러오지 않았습니다. {name} 모델은 계속 사용할 수 있습니다.</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>파일 %n개</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n model(s)</source>
        <translation>
            <numerusform>모델 %n개</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n projector(s)</source>
        <translation>
            <numerusform>프로젝터 %n개</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n draft(s)</source>
        <translation>
            <numerusform>초안 모델 %n개</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n text(s)</source>
        <translation>
            <numerusform>텍스트 %n개</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n unknown</source>
        <translation>
            <numerusform>알 수 없음 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Fits</source>
        <translation>들어감</translation>
    </message>
    <message>
        <source>Tight</source>
        <translation>빠듯함</translation>
    </message>
    <message>
        <source>Too large</source>
        <translation>너무 큼</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>다른 프로그램</translation>
    </message>
    <message>
        <source>Model weights</source>
        <translation>모델 가중치</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>초안 모델</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 캐시</translation>
    </message>
    <message>
        <source>Work space</source>
        <translation>작업 공간</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>여유</translation>
    </message>
    <message>
        <source>Reserve</source>
        <translation>예비</translation>
    </message>
    <message>
        <source>Other</source>
        <translation>기타</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Work</source>
        <translation>작업</translation>
    </message>
    <message>
        <source>Chat model</source>
        <translation>채팅 모델</translation>
    </message>
    <message>
        <source>Vision projector</source>
        <translation>비전 프로젝터</translation>
    </message>
    <message>
        <source>Damaged file</source>
        <translation>손상된 파일</translation>
    </message>
    <message>
        <source>Unknown file</source>
        <translation>알 수 없는 파일</translation>
    </message>
    <message>
        <source>vision projector</source>
        <translation>비전 프로젝터</translation>
    </message>
    <message numerus="yes">
        <source>draft, %n layer(s)</source>
        <translation>
            <numerusform>초안 모델, 층 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>draft</source>
        <translation>초안 모델</translation>
    </message>
    <message numerus="yes">
        <source>%n expert(s)</source>
        <translation>
            <numerusform>전문가 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>dense</source>
        <translation>밀집</translation>
    </message>
    <message numerus="yes">
        <source>%n layer(s)</source>
        <translation>
            <numerusform>층 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>{layers} with {n} experts</source>
        <translation>{layers}, 전문가 {n}개</translation>
    </message>
    <message>
        <source>up to {n} tokens</source>
        <translation>최대 토큰 {n}개</translation>
    </message>
    <message>
        <source>Elsewhere</source>
        <translation>다른 위치</translation>
    </message>
    <message>
        <source>memory ends here, {size}</source>
        <translation>메모리 끝, {size}</translation>
    </message>
    <message>
        <source>{size} over</source>
        <translation>{size} 초과</translation>
    </message>
    <message>
        <source>A smaller model on this PC, {n} tokens of context</source>
        <translation>이 PC에 있는 더 작은 모델, 컨텍스트 {n}토큰</translation>
    </message>
    <message>
        <source>Compute in 8 bits</source>
        <translation>8비트로 계산</translation>
    </message>
    <message>
        <source>Precision fast: smaller and quicker, answers hardly differ</source>
        <translation>정밀도 &apos;빠르게&apos;: 더 작고 빠르며 답변은 거의 같습니다</translation>
    </message>
    <message>
        <source>One request at a time</source>
        <translation>한 번에 요청 하나</translation>
    </message>
    <message>
        <source>Others wait; the context stays at {n} tokens</source>
        <translation>다른 요청은 기다리고 컨텍스트는 {n}토큰 그대로입니다</translation>
    </message>
    <message>
        <source>Context {n}</source>
        <translation>컨텍스트 {n}</translation>
    </message>
    <message>
        <source>Instead of {n} tokens</source>
        <translation>{n}토큰 대신</translation>
    </message>
    <message>
        <source>needs {size}</source>
        <translation>{size} 필요</translation>
    </message>
    <message>
        <source>{n} tok/s, measured</source>
        <translation>{n} tok/s, 측정됨</translation>
    </message>
    <message>
        <source>Making a draft</source>
        <translation>초안 만드는 중</translation>
    </message>
</context>
<context>
    <name>tune</name>
    <message>
        <source>The model runs with the new settings.</source>
        <translation>모델이 새 설정으로 실행됩니다.</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>What the text repeats</source>
        <translation>반복되는 글</translation>
    </message>
    <message>
        <source>The model&apos;s own draft layer</source>
        <translation>모델 자체 초안 층</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>끔</translation>
    </message>
    <message>
        <source>{size} of KV cache for {n} tokens; each 1,024 more take {more}.</source>
        <translation>{n} 토큰에 KV 캐시 {size}, 1,024 토큰마다 {more} 추가.</translation>
    </message>
    <message>
        <source>Each request more takes up to {size} of KV cache.</source>
        <translation>요청이 하나 늘 때마다 KV 캐시를 최대 {size} 씁니다.</translation>
    </message>
    <message>
        <source>{size} of work space. Larger: long prompts are read faster, others wait longer.</source>
        <translation>작업 공간 {size}. 크게 하면 긴 프롬프트를 빨리 읽지만 다른 요청은 더 기다립니다.</translation>
    </message>
    <message>
        <source>{size} of weights. Fast is quicker; answers hardly differ.</source>
        <translation>가중치 {size}. 빠름이 더 빠르고 답변은 거의 같습니다.</translation>
    </message>
    <message>
        <source>This PC has {n} cores; more threads than these are no faster.</source>
        <translation>이 PC의 코어는 {n}개입니다. 스레드가 그보다 많아도 빨라지지 않습니다.</translation>
    </message>
    <message>
        <source>It would run on {name}.</source>
        <translation>{name}에서 실행됩니다.</translation>
    </message>
    <message>
        <source>More guesses make a pass dearer; automatic weighs that by what passes cost here.</source>
        <translation>많이 예측할수록 한 번의 검사가 비싸집니다. 자동은 이 PC의 검사 비용을 따져 정합니다.</translation>
    </message>
</context>
</TS>
