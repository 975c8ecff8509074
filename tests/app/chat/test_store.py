"""The store: what is saved comes back, and no state of file or folder loses anything."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.chat import database
from app.chat.database import KEEP_DELETED_S, Problem, ProblemKind
from app.chat.schema import VERSION
from app.chat.store import ChatStore
from app.chat.tree import Chat, ChatInfo, Message, Role, State

WAIT_S = 10


def fill(store: ChatStore, title: str = "Title", *texts: str) -> Chat:
    chat = Chat(ChatInfo(title=title))
    for i, text in enumerate(texts or ("question", "answer")):
        role = Role.ASSISTANT if i % 2 else Role.USER
        store.save_message(chat.add(Message(chat.info.id, chat.info.leaf, role, text)))
    store.save_chat(chat.info)
    return chat


def test_everything_comes_back(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.sqlite")
    chat = fill(store)
    chat.info.pinned, chat.info.draft, chat.info.sampling = True, "half a", {"top_k": 3}
    chat.info.system_prompt = "Be brief."
    message = chat.path()[-1]
    message.usage, message.error, message.state = {"decode_rate": 3.5}, "too long", State.FAILED
    store.save_message(message)
    store.save_chat(chat.info)
    store.save_memo("draft", "typed")
    assert store.close() == 0

    again = ChatStore(tmp_path / "chats.sqlite")
    assert again.chats().result(WAIT_S) == [chat.info]
    loaded = again.load(chat.info.id).result(WAIT_S)
    assert loaded is not None
    assert loaded.messages == chat.messages
    assert loaded.path() == chat.path()
    assert again.memo("draft").result(WAIT_S) == "typed"
    assert again.memo("none").result(WAIT_S) == ""
    assert again.load("none").result(WAIT_S) is None
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_no_other_user_may_read_the_chats(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite"
    for _ in range(2):
        store = ChatStore(path)
        fill(store)
        store.flush().result(WAIT_S)
        modes = [file.stat().st_mode & 0o777 for file in tmp_path.glob("chats.sqlite*")]
        store.close()
        assert len(modes) >= 2 and set(modes) == {0o600}
        path.chmod(0o644)  # as an older version left it


def test_callers_may_change_what_they_saved(store: ChatStore) -> None:
    chat = fill(store)
    message = chat.path()[0]
    store.flush().result(WAIT_S)
    message.text = "changed later"
    assert store.load(chat.info.id).result(WAIT_S).path()[0].text == "question"  # type: ignore[union-attr]


def test_delete_is_undone_and_purged_only_later(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.sqlite")
    chat, other = fill(store, "gone", "needle one"), fill(store, "kept", "needle two")
    store.delete_chat(chat.info.id)
    assert [c.title for c in store.chats().result(WAIT_S)] == ["kept"]
    assert [h.chat for h in store.search("needle").result(WAIT_S)] == [other.info.id]
    store.save_chat(chat.info)
    assert [c.title for c in store.chats().result(WAIT_S)] == ["kept"]
    store.restore_chat(chat.info.id)
    assert len(store.chats().result(WAIT_S)) == 2
    store.delete_chat(chat.info.id)
    store.close()

    store = ChatStore(tmp_path / "chats.sqlite")
    assert store.load(chat.info.id).result(WAIT_S) is not None
    store.close()
    with sqlite3.connect(tmp_path / "chats.sqlite") as db:
        db.execute("UPDATE chats SET deleted = deleted - ?", (KEEP_DELETED_S + 10,))
    db.close()
    store = ChatStore(tmp_path / "chats.sqlite")
    assert store.load(chat.info.id).result(WAIT_S) is None
    assert [h.chat for h in store.search("needle").result(WAIT_S)] == [other.info.id]
    store.close()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("메모리", 2), ("사용량", 1), ("모리", 2), ("줘", 1), ("memory", 1), ("MEM", 1), ("emor", 1),
        ("메모리 12", 1), ('"12 MB"', 1), ("100%", 1), ("a_b", 1), ("axb", 0), ("", 0), ("   ", 0), ('"', 0),
        ("' OR 1=1 --", 0), ("NEAR(", 0), ("*", 0), ("없는말", 0), ("日本", 1), ("本", 1), ("Title", 1),
    ],
)  # fmt: skip
def test_search(store: ChatStore, query: str, found: int) -> None:
    texts = ("메모리 사용량을 알려 줘", "메모리는 12 MB 입니다", "Memory: 100% of a_b", "日本語")
    fill(store, "Title", *texts)
    hits = store.search(query).result(WAIT_S)
    assert len(hits) == found
    for hit in hits:
        for start, end in hit.marks:
            assert hit.snippet[start:end].casefold() in query.casefold()
        assert hit.marks


def test_search_composes_letters(store: ChatStore) -> None:
    import unicodedata

    fill(store, "Title", unicodedata.normalize("NFD", "메모리 사용량"))
    assert len(store.search("메모리").result(WAIT_S)) == 1


def test_snippet_is_near_the_match(store: ChatStore) -> None:
    fill(store, "Title", "lorem " * 500 + "needle " + "ipsum " * 500)
    (hit,) = store.search("needle").result(WAIT_S)
    assert "needle" in hit.snippet
    assert len(hit.snippet) < 160
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")


@pytest.mark.parametrize("damage", ["header", "middle", "cut", "garbage"])
def test_damaged_file_is_set_aside_and_never_deleted(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "chats.sqlite"
    store = ChatStore(path)
    fill(store, "Title", *["text " * 400] * 20)
    store.close()
    data = bytearray(path.read_bytes())
    if damage == "header":
        data[:16] = b"x" * 16
    elif damage == "middle":
        for at in range(4096, len(data) - 4096, 4096):
            data[at : at + 200] = os.urandom(200)
    elif damage == "cut":
        del data[len(data) // 2 :]
    else:
        data = bytearray(b"not a database at all" * 300)
    path.write_bytes(data)

    problems: list[Problem] = []
    store = ChatStore(path, problems.append)
    assert store.chats().result(WAIT_S) == []
    fill(store)
    assert store.close() == 0
    (problem,) = problems
    assert problem.kind is ProblemKind.DAMAGED
    assert Path(problem.kept).read_bytes() == data
    again = ChatStore(path)
    assert len(again.chats().result(WAIT_S)) == 1
    again.close()


def test_damage_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite"
    problems: list[Problem] = []
    store = ChatStore(path, problems.append)
    fill(store)
    store.flush().result(WAIT_S)

    def broken(db: sqlite3.Connection) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        if not problems:
            raise error

    store._write("broken", broken)
    fill(store, "after")
    assert [c.title for c in store.chats().result(WAIT_S)] == ["after"]
    assert store.close() == 0
    assert [p.kind for p in problems] == [ProblemKind.DAMAGED]
    assert Path(problems[0].kept).exists()


def test_unusable_place_keeps_chats_in_memory_and_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    problems: list[Problem] = []
    store = ChatStore(tmp_path / "file" / "chats.sqlite", problems.append)
    chat = fill(store)
    fill(store)
    assert len(store.chats().result(WAIT_S)) == 2
    assert store.load(chat.info.id).result(WAIT_S).path() == chat.path()  # type: ignore[union-attr]
    assert store.close() == 0
    assert [p.kind for p in problems] == [ProblemKind.UNWRITABLE]


@pytest.mark.parametrize("crashed", [False, True])
def test_read_only_file_is_shown_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crashed: bool
) -> None:
    path = tmp_path / "chats.sqlite"
    store = ChatStore(path)
    fill(store, "old")
    if crashed:
        store.flush().result(WAIT_S)
        shutil.copytree(tmp_path, tmp_path / "crashed")
        path = tmp_path / "crashed" / path.name
    store.close()
    before = path.read_bytes()
    real = database._connect

    def refuse(target: str, uri: bool = False) -> sqlite3.Connection:
        if target == str(path):
            return real(f"{path.as_uri()}?mode=ro", uri=True)
        return real(target, uri)

    monkeypatch.setattr(database, "_connect", refuse)
    problems: list[Problem] = []
    store = ChatStore(path, problems.append)
    fill(store, "new")
    assert {c.title for c in store.chats().result(WAIT_S)} == {"old", "new"}
    assert store.close() == 0
    assert [p.kind for p in problems] == [ProblemKind.UNWRITABLE]
    assert path.read_bytes() == before


def test_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite"
    ChatStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    problems: list[Problem] = []
    store = ChatStore(path, problems.append)
    fill(store)
    store.close()
    assert [p.kind for p in problems] == [ProblemKind.NEWER]
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    db.close()


def test_full_disk_loses_nothing_and_is_told_once(tmp_path: Path) -> None:
    problems: list[Problem] = []
    told = threading.Event()

    def on_problem(problem: Problem) -> None:
        problems.append(problem)
        told.set()

    store = ChatStore(tmp_path / "chats.sqlite", on_problem)
    store.chats().result(WAIT_S)
    store._write("limit", lambda db: db.execute("PRAGMA max_page_count = 20").fetchone())
    chat = fill(store, "big", "x" * 200_000, "y" * 200_000)
    assert told.wait(WAIT_S)
    assert store.flush().result(WAIT_S) > 0
    assert [p.kind for p in problems] == [ProblemKind.FULL]
    store._read(lambda db: db.execute("PRAGMA max_page_count = 100000").fetchone()).result(WAIT_S)
    store._retry_at = 0.0
    assert store.close() == 0
    assert [p.kind for p in problems] == [ProblemKind.FULL, ProblemKind.SOLVED]
    again = ChatStore(tmp_path / "chats.sqlite")
    assert again.load(chat.info.id).result(WAIT_S).messages == chat.messages  # type: ignore[union-attr]
    again.close()


def test_what_cannot_be_saved_at_the_end_is_counted(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.sqlite")
    store.chats().result(WAIT_S)
    store._write("limit", lambda db: db.execute("PRAGMA max_page_count = 20").fetchone())
    fill(store, "big", "x" * 200_000)
    assert store.close() >= 1


def test_waiting_writes_of_one_thing_become_one(store: ChatStore) -> None:
    gate = threading.Event()
    store._read(lambda db: gate.wait(WAIT_S))
    message = Message("c", None, Role.ASSISTANT, state=State.WRITING)
    for n in range(1000):
        message.text = f"version {n}"
        store.save_message(message)
    waiting = sum(job.future is None for job in store._jobs.values())
    gate.set()
    assert waiting == 1
    store.save_chat(ChatInfo(id="c"))
    assert store.load("c").result(WAIT_S).path()[0].text == "version 999"  # type: ignore[union-attr]


_WRITER = """
import sys, time
from pathlib import Path
from app.chat.store import ChatStore
from app.chat.tree import Chat, ChatInfo, Message, Role, State
store = ChatStore(Path(sys.argv[1]))
chat = Chat(ChatInfo(id="c", title="t"))
store.save_chat(chat.info)
store.save_message(chat.add(Message("c", None, Role.USER, "question", id="q")))
message = chat.add(Message("c", "q", Role.ASSISTANT, id="a", state=State.WRITING))
store.save_chat(chat.info)
for n in range(100000):
    message.text += f"word{n} "
    if n % 50 == 0:
        store.save_message(message)
        store.flush().result()
        print(n, flush=True)
"""


def test_killed_process_loses_only_what_was_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "chats.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    saved = [int(process.stdout.readline()) for _ in range(5)][-1]
    process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    process.wait()
    process.stdout.close()

    problems: list[Problem] = []
    store = ChatStore(path, problems.append)
    chat = store.load("c").result(WAIT_S)
    assert chat is not None
    answer = chat.path()[-1]
    assert answer.state is State.INTERRUPTED
    assert answer.text.startswith("".join(f"word{n} " for n in range(saved + 1)))
    assert [h.message for h in store.search("word10").result(WAIT_S)] == ["a"]
    assert problems == []
    store.close()


def test_a_search_overtaken_by_another_is_not_run(store: ChatStore) -> None:
    fill(store)
    gate = threading.Event()
    store._read(lambda db: gate.wait(WAIT_S))
    first, second = store.search("question"), store.search("answer")
    gate.set()
    assert first.result(WAIT_S) == []
    assert len(second.result(WAIT_S)) == 1


def test_newest_first(store: ChatStore) -> None:
    for age in (3, 1, 2):
        store.save_chat(ChatInfo(title=str(age), updated=time.time() - age))
    assert [c.title for c in store.chats().result(WAIT_S)] == ["1", "2", "3"]
