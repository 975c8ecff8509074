"""The panels of the chat page: sampling settings and the system prompt."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QPlainTextEdit, QSlider
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from app.chat.sampling_panel import SamplingPanel
from app.page import Services
from app.theme import theme


def test_sampling_panel(qtbot: QtBot, page: ChatPage, services: Services) -> None:
    panel = SamplingPanel(services)
    qtbot.addWidget(panel)
    model = services.controller.model
    assert model is not None
    field = panel.fields["temperature"]
    assert field.edit.text() == "0.8"
    field.slider.setValue(field.slider.value() + 4)
    assert field.edit.text() == "1"
    assert services.settings.value.sampling == {str(model.path): {"temperature": 1.0}}
    field.edit.setText("99")
    field.edit.editingFinished.emit()
    assert services.settings.value.sampling[str(model.path)]["temperature"] == 5.0
    field.edit.setText("words")
    field.edit.editingFinished.emit()
    assert field.edit.text() == "5"
    seed = panel.fields["seed"]
    seed.edit.setText(str(2**60 + 1))
    seed.edit.editingFinished.emit()
    assert services.settings.value.sampling[str(model.path)]["seed"] == 2**60 + 1
    length = panel.fields["max_tokens"]
    length.slider.setValue(11)
    assert services.settings.value.sampling[str(model.path)]["max_tokens"] == 32
    length.edit.setText("")
    length.edit.editingFinished.emit()
    window = panel.fields["penalty_last_n"]
    assert window.edit.text() == "whole text"
    for typed, value in (("64", 64), ("-1", -1), ("64", 64), ("Whole text", -1)):
        window.edit.setText(typed)
        window.edit.editingFinished.emit()
        assert window.value == value
    assert window.edit.text() == "whole text" and "whole text" in window.edit.toolTip()
    assert panel.reset.isEnabled()
    panel.reset.click()
    assert services.settings.value.sampling == {}
    assert field.edit.text() == "0.8"
    assert not panel.reset.isEnabled()


@pytest.mark.parametrize(
    "name", ["temperature", "top_k", "penalty_last_n", "max_tokens", "presence_penalty"]
)
def test_slider_and_number_are_one_value(
    qtbot: QtBot, page: ChatPage, services: Services, name: str
) -> None:
    panel = SamplingPanel(services)
    qtbot.addWidget(panel)
    field = panel.fields[name]
    for position in range(field.slider.maximum() + 1):
        value = field._value_at(position)
        field.set_value(value)
        if isinstance(field.slider, QSlider) and value is not None and abs(value) > 2:
            assert abs(field.slider.value() - position) <= 1
        field._on_edit()
        assert field.value == value


def test_system_prompt_of_a_chat_and_of_new_ones(
    qtbot: QtBot, page: ChatPage, services: Services
) -> None:
    page._on_prompt()
    popover = page._popovers["prompt"]
    (edit,) = popover.findChildren(QPlainTextEdit)
    edit.setPlainText("Be brief.")
    assert page.session.chat.info.system_prompt == "Be brief."
    popover.content.keep.click()  # type: ignore[attr-defined]
    assert services.settings.value.system_prompt == "Be brief."
    popover.hide()
    page.new_chat()
    assert page.session.chat.info.system_prompt == "Be brief."


@pytest.mark.parametrize("size", [100, 150])
def test_a_panel_stays_in_a_small_window(page: ChatPage, size: int) -> None:
    theme().apply(text_size=size)
    page.resize(round(600 * size / 100), round(400 * size / 100))
    page.composer.tune.click()
    panel = page._popovers["tune"]
    room = page.rect().translated(page.mapToGlobal(QPoint()))
    assert room.contains(panel.geometry()) and panel.content.width() > 400 * size / 100
    panel.close()
