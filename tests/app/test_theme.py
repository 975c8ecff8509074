"""Colours that can be read, and a theme that switches while the window is open."""

from __future__ import annotations

import itertools
import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QCompleter, QLabel, QLineEdit, QPushButton
from pytestqt.qtbot import QtBot

from app.files import resource
from app.theme import theme
from app.widgets import IconButton, button

SURFACES = ("rail", "bg", "panel", "raised", "field", "hover", "selected", "code")
PLOTS = ("target", "draft", "kv", "work", "other")

TEXT_PAIRS = [
    *((f"text.{t}", f"surface.{s}") for t in ("primary", "muted", "faint") for s in SURFACES),
    *(("accent.text", f"surface.{s}") for s in SURFACES),
    *(("accent.on", f"accent.{a}") for a in ("base", "hover", "pressed")),
    *((f"state.{k}", f"surface.{s}") for k in ("good", "warn", "bad") for s in SURFACES[:7]),
    *(
        (f"{t}", f"state.{k}Soft")
        for t in ("text.primary", "text.muted")
        for k in ("good", "warn", "bad")
    ),
    *((f"state.{k}", f"state.{k}Soft") for k in ("good", "warn", "bad")),
    *((f"plot.{p}", f"surface.{s}") for p in PLOTS for s in ("bg", "panel", "field")),
    *((f"text.{t}", f"plot.{p}Soft") for t in ("primary", "muted") for p in PLOTS),
    *((f"syntax.{s}", "surface.code") for s in ("keyword", "string", "number", "comment", "name")),
]
OUTLINE_PAIRS = [
    *(("line.control", f"surface.{s}") for s in ("bg", "panel", "field", "raised")),
    *(("accent.base", f"surface.{s}") for s in SURFACES),
]


def luminance(color: QColor) -> float:
    parts = []
    for value in (color.redF(), color.greenF(), color.blueF()):
        parts.append(value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4)
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: QColor, other: QColor) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("choice", ["light", "dark"])
def test_contrast(choice: str) -> None:
    look = theme()
    look.apply(choice)
    assert look.dark == (choice == "dark")
    for floor, pairs in ((4.5, TEXT_PAIRS), (3.0, OUTLINE_PAIRS)):
        low = {p: contrast(look.color(p[0]), look.color(p[1])) for p in pairs}
        assert {p: c for p, c in low.items() if c < floor} == {}


@pytest.mark.parametrize("choice", ["light", "dark"])
def test_the_palette_is_readable_where_the_sheet_says_nothing(choice: str) -> None:
    theme().apply(choice)
    palette = QApplication.palette()
    role = QPalette.ColorRole
    for text, ground in (
        (role.WindowText, role.Window),
        (role.Text, role.Base),
        (role.ButtonText, role.Button),
        (role.HighlightedText, role.Highlight),
        (role.ToolTipText, role.ToolTipBase),
    ):
        assert contrast(palette.color(text), palette.color(ground)) >= 4.5


def test_every_placeholder_of_the_sheet_is_filled(qapp: QApplication) -> None:
    for choice in ("light", "dark"):
        theme().apply(choice)
        assert "${" not in qapp.styleSheet()
    named = set(re.findall(r"\$\{([\w.]+)\}", resource("app.qss").read_text(encoding="utf-8")))
    assert {"text.primary", "surface.bg", "accent.base"} <= named


def test_icons_are_painted_in_the_token_colour() -> None:
    look = theme()
    for choice, token in itertools.product(("light", "dark"), ("text.primary", "accent.base")):
        look.apply(choice)
        image = look.pixmap("stop", token, 40).toImage()
        seen = {
            QColor(image.pixelColor(x, y)).name()
            for x in range(40)
            for y in range(40)
            if image.pixelColor(x, y).alpha() == 255
        }
        assert seen == {look.color(token).name()}


def test_every_icon_can_be_painted() -> None:
    for file in resource("icons").glob("*.svg"):
        image = theme().pixmap(file.stem, size=20, ratio=2.0).toImage()
        assert any(image.pixelColor(x, y).alpha() for x in range(40) for y in range(40)), file.stem


def test_a_switch_reaches_buttons_that_are_there(qtbot: QtBot) -> None:
    icon = IconButton("copy", "Copy")
    words = button("Copy", icon="copy")
    for widget in (icon, words):
        qtbot.addWidget(widget)
    before = [w.icon().cacheKey() for w in (icon, words)]
    with qtbot.waitSignal(theme().changed):
        theme().apply("dark")
    assert all(w.icon().cacheKey() != key for w, key in zip((icon, words), before, strict=True))


def test_no_needless_change(qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(theme().changed, wait=50):
        theme().apply("light", 100)


def test_text_size_scales_text_and_the_heights_that_hold_it(qtbot: QtBot) -> None:
    look = theme()
    row, chats, font = look.size("row"), look.size("chatList"), look.font("body").pixelSize()
    title = QLabel("Title")
    title.setProperty("kind", "title")
    qtbot.addWidget(title)
    title.ensurePolished()
    was = title.fontMetrics().height()
    look.apply(text_size=150)
    title.ensurePolished()
    assert (look.size("row"), look.font("body").pixelSize()) == (row * 3 / 2, font * 3 / 2)
    assert look.size("chatList") == chats, "panes keep their width"
    assert title.fontMetrics().height() > was
    assert QApplication.font().pixelSize() == round(13 * 1.5)


def test_figures_have_equal_widths() -> None:
    assert theme().font("ui").featureTags(), "tabular digits are on"


def test_system_follows_the_system(monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    look = theme()
    look.apply("dark")
    hints = QGuiApplication.styleHints()
    for scheme, dark in ((Qt.ColorScheme.Dark, True), (Qt.ColorScheme.Light, False)):
        monkeypatch.setattr(type(hints), "colorScheme", lambda self, found=scheme: found)
        look.apply("light" if dark else "dark")
        look.apply("system")
        assert look.dark == dark


def test_a_live_change_of_the_system_is_followed_only_where_wanted(
    monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    look = theme()
    hints = QGuiApplication.styleHints()
    now = [Qt.ColorScheme.Light]
    monkeypatch.setattr(type(hints), "colorScheme", lambda self: now[0])
    look.apply("system")
    assert not look.dark
    now[0] = Qt.ColorScheme.Dark
    hints.colorSchemeChanged.emit(now[0])
    assert look.dark
    look.apply("light")
    hints.colorSchemeChanged.emit(now[0])
    assert not look.dark


def test_an_unknown_system_scheme_is_judged_by_its_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    look = theme()
    hints = QGuiApplication.styleHints()
    monkeypatch.setattr(type(hints), "colorScheme", lambda self: Qt.ColorScheme.Unknown)
    for window, text, dark in (("#202020", "#ffffff", True), ("#efefef", "#000000", False)):
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Window, QColor(window))
        palette.setColor(QPalette.ColorRole.WindowText, QColor(text))
        monkeypatch.setattr(look, "_system_palette", palette)
        look.apply("light" if dark else "dark")
        look.apply("system")
        assert look.dark == dark


def test_a_disabled_button_is_grey(qtbot: QtBot) -> None:
    made = QPushButton("Off")
    qtbot.addWidget(made)
    made.setEnabled(False)
    made.ensurePolished()
    found = made.palette().color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText)
    assert found == theme().color("text.disabled")


def test_a_list_of_completions_has_a_background(qtbot: QtBot) -> None:
    theme().apply("light")
    field = QLineEdit()
    qtbot.addWidget(field)
    completer = QCompleter(["one", "one more"], field)
    field.setCompleter(completer)
    field.show()
    qtbot.waitExposed(field)
    qtbot.keyClicks(field, "on")
    popup = completer.popup()
    qtbot.waitUntil(popup.isVisible)
    picture = popup.grab().toImage()
    seen = picture.pixelColor(picture.width() - 4, picture.height() - 4)
    assert seen.alpha() == 255 and seen.name() == theme().color("surface.raised").name()
