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
        <source>Pages in use</source>
        <translation>사용 중인 페이지</translation>
    </message>
    <message>
        <source>of the prompts reused: {reused} of {all} tokens of the requests here.</source>
        <translation>프롬프트 재사용: 여기 요청의 토큰 {all}개 중 {reused}개.</translation>
    </message>
    <message>
        <source>No request has been read yet.</source>
        <translation>아직 읽은 요청이 없습니다.</translation>
    </message>
    <message>
        <source>Newest answer: {n} tokens of its prompt were in the cache.</source>
        <translation>최근 답변: 프롬프트의 토큰 {n}개가 캐시에 있었습니다.</translation>
    </message>
    <message>
        <source>{used} of {total}</source>
        <translation>{total} 중 {used}</translation>
    </message>
    <message>
        <source>No model is loaded</source>
        <translation>불러온 모델 없음</translation>
    </message>
    <message>
        <source>They hold {size}.</source>
        <translation>크기는 {size}입니다.</translation>
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
        <translation>{name}을(를) 불러오는 중입니다. 그동안 입력할 수 있습니다.</translation>
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
        <translation>{page}(으)로 이동</translation>
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
        <source>Type a message first</source>
        <translation>먼저 메시지를 입력하세요</translation>
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
        <translation>{name}을(를) 제외했습니다. {why}</translation>
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
        <translation>{name}을(를) 목록에 넣었습니다. 채팅 모델과 함께 쓰는 파일이라 혼자서는 채팅할 수 없습니다.</translation>
    </message>
    <message>
        <source>{name} is not opened. {why}</source>
        <translation>{name}을(를) 열지 않았습니다. {why}</translation>
    </message>
    <message>
        <source>{name} cannot be used</source>
        <translation>{name}을(를) 사용할 수 없습니다</translation>
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
    <name>EngineController</name>
    <message>
        <source>{name} was not loaded</source>
        <translation>{name}을(를) 불러오지 못했습니다</translation>
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
        <translation>포트 {port}은(는) 다른 프로그램이 쓰고 있거나 시스템용으로 예약되어 있습니다.</translation>
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
        <source>in %n folder(s)</source>
        <translation>
            <numerusform>폴더 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>No model matches. Clear the filter to see all.</source>
        <translation>맞는 모델이 없습니다. 필터를 지우면 모두 보입니다.</translation>
    </message>
    <message>
        <source>{name} is not a chat model.</source>
        <translation>{name}은(는) 채팅 모델이 아닙니다.</translation>
    </message>
    <message>
        <source>{name} is in the bin</source>
        <translation>{name}을(를) 휴지통으로 옮겼습니다</translation>
    </message>
    <message>
        <source>{name} is off the list; the file stays where it is</source>
        <translation>{name}을(를) 목록에서 뺐습니다. 파일은 그대로 있습니다</translation>
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
    <name>Rail</name>
    <message>
        <source>Expert</source>
        <translation>고급</translation>
    </message>
    <message>
        <source>Show the pages for tuning</source>
        <translation>조정용 페이지 표시</translation>
    </message>
</context>
<context>
    <name>Requests</name>
    <message>
        <source>Time</source>
        <translation>시각</translation>
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
        <source>ended</source>
        <translation>끝남</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>대기 중</translation>
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
        <source>while this page is open; prompts are not shown</source>
        <translation>이 페이지가 열려 있는 동안; 프롬프트는 표시하지 않습니다</translation>
    </message>
    <message>
        <source>Not needed</source>
        <translation>필요 없음</translation>
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
        <source>Show the pages for tuning.</source>
        <translation>조정용 페이지를 표시합니다.</translation>
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
        <source>Local API</source>
        <translation>로컬 API</translation>
    </message>
    <message>
        <source>Disk cache</source>
        <translation type="unfinished"></translation>
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
        <source>Sampling of each model</source>
        <translation>모델별 샘플링</translation>
    </message>
    <message>
        <source>By model file; what the user changed from the defaults.</source>
        <translation>모델 파일별로 기본값에서 바꾼 값입니다.</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Where the model runs: cpu, cuda:0, or auto, which takes a graphics card if the model fits there.</source>
        <translation>모델이 실행되는 곳: cpu, cuda:0 또는 auto. auto는 모델이 들어가면 그래픽 카드를 씁니다.</translation>
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
        <source>Tokens of a prompt that are read in one step.</source>
        <translation>프롬프트를 한 단계에 읽는 토큰 수입니다.</translation>
    </message>
    <message>
        <source>Speculation</source>
        <translation>추측 생성</translation>
    </message>
    <message>
        <source>Guess tokens ahead and verify them at once: same text, more speed. auto guesses as much as pays; chain guesses one continuation, tree several.</source>
        <translation>토큰을 미리 추측해 한 번에 검증합니다. 글은 같고 더 빠릅니다. auto는 이득이 되는 만큼만 추측하고, chain은 이어질 말을 하나, tree는 여러 갈래로 추측합니다.</translation>
    </message>
    <message>
        <source>Draft model</source>
        <translation>드래프트 모델</translation>
    </message>
    <message>
        <source>A file that guesses: a draft made for this model, or a small model of the same vocabulary. Without one the model&apos;s own draft layers guess (mtp), or what the text repeats (ngram).</source>
        <translation>추측하는 파일: 이 모델용으로 만든 초안 또는 같은 어휘의 작은 모델. 없으면 모델 자체의 초안 레이어(mtp)나 글에서 반복되는 부분(ngram)으로 추측합니다.</translation>
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
        <translation>{name}와(과) 바로 채팅</translation>
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
        <translation>{name}을(를) 저장하지 못했습니다: {why}.</translation>
    </message>
    <message>
        <source>Saved as {name}</source>
        <translation>{name}(으)로 저장했습니다</translation>
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
            <numerusform>채팅 %n개를 {name}(으)로 저장했습니다</numerusform>
        </translation>
    </message>
    <message>
        <source>The file with your chats was damaged. It is kept as {kept}, and a new one was begun.</source>
        <translation>채팅 파일이 손상되어 있었습니다. {kept}(으)로 보관하고 새 파일을 시작했습니다.</translation>
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
        <translation>{name}이(가) 너무 큽니다. 크기는 {size}이고, 최대 {most}까지 첨부할 수 있습니다.</translation>
    </message>
    <message>
        <source>{name} is not a text file. Only text can be attached.</source>
        <translation>{name}은(는) 텍스트 파일이 아닙니다. 텍스트만 첨부할 수 있습니다.</translation>
    </message>
    <message>
        <source>{name} is empty.</source>
        <translation>{name}이(가) 비어 있습니다.</translation>
    </message>
    <message>
        <source>{name} cannot be read: {detail}.</source>
        <translation>{name}을(를) 읽을 수 없습니다: {detail}.</translation>
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
        <translation>{name}을(를) 사용할 수 없습니다</translation>
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
        <translation>{name}은(는) 컨텍스트 토큰 {n}개로는 들어가지 않습니다</translation>
    </message>
    <message>
        <source>It needs {need} and {free} can be used on {device}: {over} are missing.</source>
        <translation>{need}이(가) 필요하지만 {device}에서 쓸 수 있는 메모리는 {free}입니다. {over}이(가) 모자랍니다.</translation>
    </message>
    <message>
        <source>Load anyway</source>
        <translation>그래도 불러오기</translation>
    </message>
    <message>
        <source>Nothing was loaded; {name} is still ready.</source>
        <translation>아무것도 불러오지 않았습니다. {name}은(는) 계속 사용할 수 있습니다.</translation>
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
</context>
</TS>
