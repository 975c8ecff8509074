"""The chat page on the real engine with a tiny random model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from app.chat.tree import State
from app.controller import EngineController
from app.page import Services
from app.settings import Settings
from tests.app.chat.conftest import settle
from tests.app.conftest import PATIENCE_MS, whole


@pytest.fixture
def page(qtbot: QtBot, tmp_path: Path, fixtures: Path) -> Iterator[ChatPage]:
    controller = EngineController()
    services = Services(controller, Settings(), tmp_path / "chats.sqlite")
    made = whole(ChatPage(services))
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    with qtbot.waitSignal(controller.model_changed):
        made.header.load(fixtures / "llama.gguf")
    yield made
    assert controller.shutdown(PATIENCE_MS)
    assert made.session.store.close() == 0


def test_answers_stop_and_settings(qtbot: QtBot, page: ChatPage) -> None:
    model = page.services.controller.model
    assert model is not None
    page.services.settings.update(sampling={str(model.path): {"max_tokens": 12, "seed": 5}})
    page.composer.set_text("Hello")
    page.composer._send.click()
    qtbot.waitUntil(lambda: page.session.generation(page.session.chat.info.id) is None)
    answer = page.session.chat.path()[-1]
    assert answer.state in (State.DONE, State.LENGTH), answer.error
    assert 0 < answer.usage["completion_tokens"] <= 12
    assert answer.usage["prompt_tokens"] > 0
    first = answer.text
    page.do("regenerate", answer.id)
    settle(qtbot, page.session)
    assert page.session.chat.path()[-1].text == first
    assert page.session.chat.path()[-1] is not answer


def test_a_prompt_that_does_not_fit_says_both_numbers(qtbot: QtBot, page: ChatPage) -> None:
    page.composer.set_text("many words " * 20_000)
    page.composer._send.click()
    qtbot.waitUntil(lambda: page.session.generation(page.session.chat.info.id) is None)
    failed = page.session.chat.path()[-1]
    assert failed.state is State.FAILED
    assert failed.error_kind == "ContextOverflow"
    assert any(c.isdigit() for c in failed.error)
