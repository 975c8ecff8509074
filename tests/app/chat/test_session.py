"""The session: answers, branches, drafts, and what survives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.chat.database import Problem, ProblemKind
from app.chat.session import ChatSession
from app.chat.store import ChatStore
from app.chat.tree import Role, State
from app.page import Services
from engine.errors import ContextOverflow
from tests.app.chat.conftest import settle
from tests.app.fake_engine import FakeEngine

WAIT_S = 10
Load = Callable[[], None]


@pytest.fixture(autouse=True)
def loaded(load: Load) -> None:
    load()


def saved(services: Services) -> ChatStore:
    """What a next start would read."""
    return ChatStore(services.chat_store)


def test_an_answer_is_streamed_and_saved(
    qtbot: QtBot, services: Services, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer = "one two three"
    session.send("A question about loops?")
    settle(qtbot, session)
    question, answer = session.chat.path()
    assert (question.role, question.text) == (Role.USER, "A question about loops?")
    assert (answer.text, answer.state, answer.model) == ("one two three", State.DONE, "tiny")
    assert answer.usage["completion_tokens"] == 3
    assert session.chat.info.title == "A question about loops?"
    assert session.chat.info.model.endswith("tiny.gguf")
    session.store.flush().result(WAIT_S)
    again = saved(services)
    chat = again.load(session.chat.info.id).result(WAIT_S)
    assert chat is not None
    assert chat.path() == session.chat.path()
    assert chat.info == session.chat.info
    again.close()


def test_regenerate_and_edit_lose_nothing(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer = "first"
    session.send("question")
    settle(qtbot, session)
    first = session.chat.path()[-1]
    engine.answer = "second"
    session.regenerate(first.id)
    settle(qtbot, session)
    second = session.chat.path()[-1]
    assert session.chat.siblings(second.id) == [first.id, second.id]
    assert first.text == "first"
    session.step(second.id, -1)
    assert session.chat.path()[-1] is first
    session.edit(session.chat.path()[0].id, "better question")
    settle(qtbot, session)
    assert [m.text for m in session.chat.path()] == ["better question", "second"]
    assert len(session.chat.messages) == 5
    assert [m["content"] for m in engine.requests[-1].messages or ()] == ["better question"]


def test_the_history_is_sent_with_the_system_prompt(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer = "<think>hidden</think>shown"
    session.set_system_prompt("Be brief.")
    session.send("one")
    settle(qtbot, session)
    session.send("two")
    settle(qtbot, session)
    assert [m["content"] for m in engine.requests[-1].messages or ()] == [
        "Be brief.",
        "one",
        "shown",
        "two",
    ]
    assert "thought_s" in session.chat.path()[1].usage


def test_stop_keeps_what_is_written(qtbot: QtBot, session: ChatSession, engine: FakeEngine) -> None:
    engine.answer, engine.token_s = "word " * 5000, 0.005
    session.send("question")
    qtbot.waitUntil(lambda: len(session.chat.path()[-1].text) > 20)
    session.stop()
    settle(qtbot, session)
    answer = session.chat.path()[-1]
    assert answer.state is State.STOPPED
    assert answer.text.startswith("word word")
    assert "decode_rate" in answer.usage


def test_streaming_text_is_saved_as_it_comes(
    qtbot: QtBot, services: Services, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer, engine.token_s = "word " * 5000, 0.005
    session.send("question")
    qtbot.waitUntil(lambda: len(session.chat.path()[-1].text) > 20)
    session._save_running()
    session.store.flush().result(WAIT_S)
    chat = session.store.load(session.chat.info.id).result(WAIT_S)
    assert chat is not None
    assert chat.path()[-1].state is State.WRITING
    assert chat.path()[-1].text.startswith("word ")
    session.stop()
    settle(qtbot, session)


def test_failure_is_kept_with_its_numbers_and_retried_in_place(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.fail_after = 0
    engine.fail_error = ContextOverflow("found 9,000 tokens, expected at most 8,192")
    session.send("question")
    settle(qtbot, session)
    failed = session.chat.path()[-1]
    assert (failed.state, failed.error_kind) == (State.FAILED, "ContextOverflow")
    assert "9,000" in failed.error
    engine.fail_after = None
    session.regenerate(failed.id)
    settle(qtbot, session)
    assert session.chat.path()[-1] is failed
    assert (failed.state, failed.error) == (State.DONE, "")
    assert len(session.chat.messages) == 2


def test_partly_written_failure_gets_a_sibling(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.fail_after = 2
    session.send("question")
    settle(qtbot, session)
    failed = session.chat.path()[-1]
    assert failed.text == "Hello from "
    engine.fail_after = None
    session.regenerate(failed.id)
    settle(qtbot, session)
    assert session.chat.path()[-1] is not failed
    assert failed.text == "Hello from "


def test_without_a_model_the_question_stays(
    qtbot: QtBot, services: Services, session: ChatSession
) -> None:
    services.controller.unload()
    qtbot.waitUntil(lambda: services.controller.model is None)
    session.send("question")
    settle(qtbot, session)
    question, answer = session.chat.path()
    assert question.text == "question"
    assert answer.state is State.FAILED
    assert "model" in answer.error


def test_an_answer_goes_on_while_another_chat_is_open(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer, engine.token_s = "word " * 60, 0.005
    session.send("first chat")
    first = session.chat
    session.new_chat()
    assert session.chat.path() == []
    session.send("second chat")
    second = session.chat
    session.open(first.info.id)
    assert session.chat is first
    settle(qtbot, session)
    assert first.path()[-1].text == "word " * 60
    session.open(second.info.id)
    qtbot.waitUntil(lambda: session.chat.info.id == second.info.id)
    settle(qtbot, session)
    assert session.chat.path()[-1].text == "word " * 60


def test_sampling_of_the_model_is_sent(
    qtbot: QtBot, services: Services, session: ChatSession, engine: FakeEngine
) -> None:
    model = services.controller.model
    assert model is not None
    services.settings.update(
        sampling={str(model.path): {"temperature": 0.1, "top_k": -5, "nonsense": 1, "seed": "x"}}
    )
    session.send("question")
    settle(qtbot, session)
    assert engine.requests[-1].sampling.temperature == 0.1
    assert engine.requests[-1].sampling.top_k == model.sampling.top_k
    assert session.chat.info.sampling == {"temperature": 0.1}


def test_what_is_typed_before_the_kept_draft_comes_stands_behind_it(session: ChatSession) -> None:
    session.set_draft("and more")
    session._on_fresh_draft("kept, ")
    assert session.draft == "kept, and more"


def test_drafts_are_kept_for_each_chat(
    qtbot: QtBot, services: Services, session: ChatSession
) -> None:
    session.set_draft("for a new chat")
    session.send("question")
    settle(qtbot, session)
    assert session.draft == ""
    session.set_draft("for this chat")
    first = session.chat.info.id
    session.new_chat()
    assert session.draft == ""
    session.set_draft("typed in the new one")
    session.open(first)
    qtbot.waitUntil(lambda: session.chat.info.id == first)
    assert session.draft == "for this chat"
    session.new_chat()
    assert session.draft == "typed in the new one"
    session.save_all()
    session.store.flush().result(WAIT_S)
    again = saved(services)
    assert again.memo("draft").result(WAIT_S) == "typed in the new one"
    assert again.chats().result(WAIT_S)[0].draft == "for this chat"
    again.close()


def test_delete_and_undo(qtbot: QtBot, session: ChatSession) -> None:
    session.send("question")
    settle(qtbot, session)
    chat = session.chat
    undo = session.delete(chat.info.id)
    assert session.infos == {}
    assert session.is_fresh
    assert session.store.chats().result(WAIT_S) == []
    undo()
    assert session.chat is chat
    assert [c.id for c in session.store.chats().result(WAIT_S)] == [chat.info.id]


def test_deleting_while_it_writes_and_undoing_keeps_the_text(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer, engine.token_s = "word " * 500, 0.005
    session.send("question")
    qtbot.waitUntil(lambda: len(session.chat.path()[-1].text) > 20)
    chat = session.chat
    undo = session.delete(chat.info.id)
    qtbot.waitUntil(lambda: session.generation(chat.info.id) is None)
    undo()
    assert chat.path()[-1].state is State.STOPPED
    assert chat.path()[-1].text.startswith("word ")
    loaded = session.store.load(chat.info.id).result(WAIT_S)
    assert loaded is not None
    assert loaded.path() == chat.path()


def test_a_hit_in_another_branch_is_shown(
    qtbot: QtBot, session: ChatSession, engine: FakeEngine
) -> None:
    engine.answer = "a needle here"
    session.send("question")
    settle(qtbot, session)
    hidden = session.chat.path()[-1]
    engine.answer = "other"
    session.regenerate(hidden.id)
    settle(qtbot, session)
    assert session.chat.path()[-1] is not hidden
    (hit,) = session.store.search("needle").result(WAIT_S)
    session.open(hit.chat, hit.message or "")
    assert session.chat.path()[-1] is hidden


def test_rename_and_pin(session: ChatSession, qtbot: QtBot) -> None:
    session.send("question")
    settle(qtbot, session)
    chat_id = session.chat.info.id
    session.rename(chat_id, "  New name ")
    session.rename(chat_id, "   ")
    session.pin(chat_id, True)
    (info,) = session.store.chats().result(WAIT_S)
    assert (info.title, info.pinned) == ("New name", True)


def test_after_damage_the_open_chat_is_saved_again(qtbot: QtBot, session: ChatSession) -> None:
    session.send("question")
    settle(qtbot, session)
    session.store.flush().result(WAIT_S)
    session.store._write("wipe", lambda db: db.execute("DELETE FROM messages"))
    session.problem.emit(Problem(ProblemKind.DAMAGED, "x"))
    chat = session.store.load(session.chat.info.id).result(WAIT_S)
    assert chat is not None
    assert chat.path() == session.chat.path()


def test_a_full_disk_loses_nothing_in_memory(
    qtbot: QtBot, services: Services, session: ChatSession, engine: FakeEngine
) -> None:
    problems: list[Problem] = []
    session.problem.connect(problems.append)
    session.store.chats().result(WAIT_S)
    limit = "PRAGMA max_page_count = {}"
    session.store._write("limit", lambda db: db.execute(limit.format(20)).fetchone())
    engine.answer = "long answer " * 20_000
    session.send("question")
    settle(qtbot, session)
    first = session.chat
    qtbot.waitUntil(lambda: bool(problems))
    session.new_chat()
    session.send("another")
    settle(qtbot, session)
    session.open(first.info.id)
    assert session.chat.path()[-1].text == engine.answer
    assert [p.kind for p in problems] == [ProblemKind.FULL]
    session.store._read(lambda db: db.execute(limit.format(100_000)).fetchone()).result(WAIT_S)
    session.store._retry_at = 0.0
    qtbot.waitUntil(lambda: session.store.flush().result(WAIT_S) == 0)
    chat = session.store.load(first.info.id).result(WAIT_S)
    assert chat is not None
    assert chat.path() == first.path()


_STREAM = """
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.chat.session import ChatSession
from app.controller import EngineController
from app.page import Services
from app.settings import Settings
from tests.app.fake_engine import FakeEngine

app = QApplication(["test"])
engine = FakeEngine(answer="".join(f"word{n} " for n in range(100000)), token_s=0.005)
controller = EngineController(lambda: engine)
session = ChatSession.of(Services(controller, Settings(), Path(sys.argv[1])))

def report():
    length = len(session.chat.path()[-1].text)
    session.store.flush().result()
    print(length, flush=True)

session._save_timer.timeout.connect(report)
controller.model_changed.connect(lambda model: session.send("question"))
controller.load("/models/tiny.gguf")
app.exec()
"""


def test_a_process_killed_while_an_answer_streams(tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", _STREAM, str(path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    lengths = [int(process.stdout.readline()) for _ in range(3)]
    process.kill()
    process.wait()
    process.stdout.close()
    assert 0 < lengths[0] < lengths[1] < lengths[2]
    problems: list[Problem] = []
    store = ChatStore(path, problems.append)
    (info,) = store.chats().result(WAIT_S)
    chat = store.load(info.id).result(WAIT_S)
    store.close()
    assert chat is not None
    question, answer = chat.path()
    assert (question.text, answer.state) == ("question", State.INTERRUPTED)
    assert len(answer.text) >= lengths[-1]
    assert "".join(f"word{n} " for n in range(100_000)).startswith(answer.text)
    assert problems == []


def test_there_is_one_session(services: Services, session: ChatSession) -> None:
    assert ChatSession.of(services) is session


def test_a_new_usual_system_prompt_never_replaces_a_typed_one(
    services: Services, session: ChatSession
) -> None:
    services.settings.update(system_prompt="usual")
    assert session.chat.info.system_prompt == "usual"
    session.set_system_prompt("")
    services.settings.update(text_size=110)
    assert session.chat.info.system_prompt == ""
