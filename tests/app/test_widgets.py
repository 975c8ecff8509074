"""The parts that pages are built of."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QProgressBar, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.report import ErrorReport
from app.theme import theme
from app.widgets import (
    Banner,
    ElidedLabel,
    EmptyState,
    ErrorCard,
    IconButton,
    MemoryBar,
    MemoryKeys,
    Note,
    ProgressLine,
    Switch,
    Toast,
    button,
    done_of,
    gigabytes,
    label,
)
from app.widgets.gallery import PARTS, gallery
from app.widgets.memorybar import ORDER, in_order
from engine.metrics import MemoryPart

GB = 2**30


def texts(widget: QWidget) -> list[str]:
    return [w.text() for w in widget.findChildren(QLabel) if w.text()]


def buttons(widget: QWidget) -> dict[str, QPushButton]:
    return {b.text(): b for b in widget.findChildren(QPushButton)}


def colors(widget: QWidget, y: int) -> list[str]:
    """The colours along one line of pixels, each run once."""
    image = widget.grab().toImage()
    line = [QColor(image.pixelColor(x, y)).name() for x in range(2, image.width() - 2)]
    return [c for i, c in enumerate(line) if i == 0 or c != line[i - 1]]


def test_the_bar_keeps_its_order(qtbot: QtBot) -> None:
    assert [p.kind for p in in_order(list(reversed(PARTS)))] == list(ORDER)
    assert in_order([MemoryPart("surprise", "New", 1)])[0].kind == "work"
    bar = MemoryBar(list(reversed(PARTS)))
    qtbot.addWidget(bar)
    bar.resize(600, 32)
    edge = colors(bar, 2)
    hues = ("other", "target", "draft", "kv", "work")
    wanted = [theme().color(f"plot.{k}").name() for k in hues]
    assert [c for c in edge if c in wanted] == wanted


def test_the_bars_lengths_are_the_shares(qtbot: QtBot) -> None:
    bar = MemoryBar([MemoryPart("model", "Model", 3 * GB), MemoryPart("free", "Free", GB)])
    qtbot.addWidget(bar)
    bar.resize(402, 32)
    image = bar.grab().toImage()
    blue = theme().color("plot.target").name()
    count = sum(QColor(image.pixelColor(x, 2)).name() == blue for x in range(402))
    assert count == pytest.approx(300, abs=2)


def test_what_does_not_fit_runs_past_the_end(qtbot: QtBot) -> None:
    bar = MemoryBar([MemoryPart("model", "Model", 30 * GB)], capacity=24 * GB)
    qtbot.addWidget(bar)
    bar.resize(302, 32)
    image = bar.grab().toImage()
    bad = theme().color("state.bad").name()
    first = next(x for x in range(302) if QColor(image.pixelColor(x, 20)).name() == bad)
    assert first == pytest.approx(240, abs=2)


def test_an_empty_bar_paints(qtbot: QtBot) -> None:
    bar = MemoryBar([MemoryPart("model", "Model", 0)])
    qtbot.addWidget(bar)
    bar.resize(100, 32)
    assert not bar.grab().isNull()


def test_the_bar_says_its_numbers(qtbot: QtBot) -> None:
    bar = MemoryBar(PARTS)
    qtbot.addWidget(bar)
    assert "Model 15.6 GB" in bar.accessibleName()


def test_keys_follow_the_numbers(qtbot: QtBot) -> None:
    keys = MemoryKeys(PARTS)
    qtbot.addWidget(keys)
    assert {"Model", "15.6 GB", "Reserve", "1.0 GB"} <= set(texts(keys))
    keys.set_parts([MemoryPart("model", "Model", 2 * GB)])
    QApplication.sendPostedEvents(None, 0)
    keys.set_parts([MemoryPart("model", "Model", 3 * GB)])
    assert "3.0 GB" in texts(keys)


def test_sizes_are_in_gb_of_2_30() -> None:
    assert gigabytes(24 * GB) == "24.0 GB"
    assert gigabytes(24 * GB, unit=False) == "24.0"
    assert gigabytes(94 * 2**20) == "94 MB"
    assert gigabytes(0) == "0.0 GB"
    assert gigabytes(300 * 2**10) == "300 KB"
    assert gigabytes(7) == "1 KB", "no file is shown as nothing"


def test_progress_is_told_in_one_unit() -> None:
    assert done_of(1, 15.6 * GB) == ("0.0 GB", "15.6 GB")
    assert done_of(150 * 2**20, 182 * 2**20) == ("150 MB", "182 MB")
    assert done_of(0, 3000) == ("0 KB", "3 KB")


@pytest.mark.parametrize("kind", ["good", "warn", "bad"])
def test_a_note_has_a_picture_and_words(qtbot: QtBot, kind: str) -> None:
    note = Note(kind, "Words.")  # type: ignore[arg-type]
    qtbot.addWidget(note)
    assert note.text == "Words." and texts(note) == ["Words."]
    assert any(not w.pixmap().isNull() for w in note.findChildren(QLabel))


def test_an_error_has_its_four_parts(qtbot: QtBot) -> None:
    done: list[str] = []
    report = ErrorReport(
        "It does not fit",
        "It needs 26.9 GB and 23.1 GB are free.",
        (
            ("Context 8,192", lambda: done.append("fix")),
            ("Load anyway", lambda: done.append("past")),
        ),
        "Traceback of something",
    )
    card = ErrorCard(report)
    qtbot.addWidget(card)
    card.show()
    assert {report.title, report.why} <= set(texts(card))
    found = buttons(card)
    assert [b.text() for b in found.values() if b.property("kind") == "main"] == ["Context 8,192"]
    qtbot.mouseClick(found["Context 8,192"], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(found["Load anyway"], Qt.MouseButton.LeftButton)
    assert done == ["fix", "past"]
    qtbot.mouseClick(found["Copy diagnostics"], Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    assert report.why in copied and "Traceback of something" in copied
    with qtbot.waitSignal(card.dismissed):
        qtbot.mouseClick(found["Close"], Qt.MouseButton.LeftButton)


def test_markup_in_an_error_stays_text(qtbot: QtBot) -> None:
    card = ErrorCard(ErrorReport("<b>x</b>", "<img src='http://x/'>"))
    qtbot.addWidget(card)
    assert all(
        w.textFormat() == Qt.TextFormat.PlainText for w in card.findChildren(QLabel) if w.text()
    )


def test_an_empty_state_offers_its_buttons(qtbot: QtBot) -> None:
    done: list[str] = []
    state = EmptyState("No chats", "None yet.", (("New chat", lambda: done.append("new"), "plus"),))
    qtbot.addWidget(state)
    qtbot.mouseClick(buttons(state)["New chat"], Qt.MouseButton.LeftButton)
    assert done == ["new"]


def test_progress_has_numbers(qtbot: QtBot) -> None:
    line = ProgressLine("Reading")
    qtbot.addWidget(line)
    line.set_progress(1, 4, "Reading", "1.0 of 4.0 GB")
    bar = line.findChild(QProgressBar)
    assert bar.value() == bar.maximum() / 4
    assert bar.accessibleName() == "Reading" and bar.accessibleDescription() == "1.0 of 4.0 GB"
    for done, total in ((5, 4), (-1, 4), (1, 0)):
        line.set_progress(done, total)
        assert 0 <= bar.value() <= bar.maximum()


def test_progress_in_a_narrow_place_keeps_its_numbers(qtbot: QtBot) -> None:
    line = ProgressLine()
    qtbot.addWidget(line)
    line.resize(260, 40)
    line.show()
    line.set_progress(
        1, 4, "Loading A-model-with-quite-a-long-name.gguf", "1.0 of 4.0 GB · 9 s left"
    )
    left, right = line.findChildren(QLabel)
    assert right.text() == "1.0 of 4.0 GB · 9 s left"
    assert "…" in left.text() and left.text().startswith("Load")
    assert "A-model-with-quite-a-long-name.gguf" in line.toolTip()
    line.resize(900, 40)
    assert left.text().endswith("long-name.gguf") and line.toolTip() == ""


def test_a_switch_by_key_and_mouse(qtbot: QtBot) -> None:
    switch = Switch("Expert")
    qtbot.addWidget(switch)
    off = switch.grab().toImage()
    qtbot.keyClick(switch, Qt.Key.Key_Space)
    assert switch.isChecked() and switch.grab().toImage() != off
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert not switch.isChecked()


def test_an_icon_button_has_a_name(qtbot: QtBot) -> None:
    made = IconButton("copy", "Copy the answer")
    qtbot.addWidget(made)
    assert made.accessibleName() == made.toolTip() == "Copy the answer"
    made.set_name("Copied")
    assert made.accessibleName() == "Copied"


def test_a_toast_undoes_once(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(600, 400)
    window.show()
    toast, undone = Toast(window), []
    toast.say("Deleted.", lambda: undone.append(1))
    undo = buttons(toast)["Undo"]
    assert toast.isVisible() and undo.isVisible()
    assert QRect(0, 0, 600, 400).contains(toast.geometry())
    undo.click()
    undo.click()
    assert undone == [1] and not toast.isVisible()
    toast.say("Saved.")
    assert not undo.isVisible()


def test_a_toast_follows_the_language(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    toast, language = Toast(window), ["en"]

    def change(to: str) -> None:
        language[0] = to
        QCoreApplication.sendEvent(toast, QEvent(QEvent.Type.LanguageChange))

    toast.say(lambda: {"en": "Deleted.", "ko": "삭제했습니다."}[language[0]], lambda: None)
    change("ko")
    assert toast.isVisible() and toast._text.text() == toast.accessibleName() == "삭제했습니다."
    toast.say("Written in one language.")
    change("en")
    assert not toast.isVisible()

    def gone() -> str:
        raise RuntimeError("Internal C++ object already deleted.")

    toast.say("")
    toast._said = gone
    change("ko")
    assert not toast.isVisible()


def test_a_banner_goes_when_closed(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    banner = Banner("warn", "Careful.", "details")
    banner.setParent(parent)
    buttons(banner)["Copy diagnostics"].click()
    assert "details" in QGuiApplication.clipboard().text()


def test_a_wrapped_label_gives_way(qtbot: QtBot) -> None:
    made = label("word " * 60, wrap=True)
    qtbot.addWidget(made)
    assert made.heightForWidth(200) > made.heightForWidth(2000)
    assert made.minimumSizeHint().width() < 300


def test_one_button_is_the_main_one(qtbot: QtBot) -> None:
    main, plain = button("Apply", kind="main"), button("Apply")
    for made in (main, plain):
        qtbot.addWidget(made)
        made.ensurePolished()
    accent = theme().color("accent.on")
    assert main.palette().buttonText().color() == accent
    assert plain.palette().buttonText().color() != accent


def test_the_icon_of_a_note_is_beside_its_first_line(qtbot: QtBot) -> None:
    note = Note("warn", "A note of several lines. " * 8)
    qtbot.addWidget(note)
    note.resize(300, note.heightForWidth(300))
    note.show()
    icon, text = note.findChildren(QLabel)
    line = text.fontMetrics().lineSpacing()
    assert text.height() > 2 * line
    assert abs(icon.geometry().center().y() - (text.y() + line // 2)) <= 1


@pytest.mark.parametrize("choice", ["light", "dark"])
def test_the_gallery_shows_every_part(qtbot: QtBot, choice: str) -> None:
    theme().apply(choice)
    page = gallery()
    qtbot.addWidget(page)
    for kind in (MemoryBar, MemoryKeys, Note, EmptyState, ErrorCard, ProgressLine, Switch, Banner):
        assert page.findChild(kind) is not None
    image = page.grab().toImage()
    assert QColor(image.pixelColor(1, 1)) == theme().color("surface.bg")


def test_an_elided_label_takes_any_width_and_shows_what_fits(qtbot: QtBot) -> None:
    made = ElidedLabel("A name of some length", "section")
    qtbot.addWidget(made)
    made.resize(made.sizeHint())
    whole = made.grab().toImage()
    assert made.minimumSizeHint().width() == 0 and made.accessibleName() in ("", made.text())
    cut = ElidedLabel("A name of some length and more", "section")
    qtbot.addWidget(cut)
    cut.resize(made.sizeHint())
    end = whole.width() - whole.width() // 3
    left = whole.copy(0, 0, whole.width() // 3, whole.height())
    assert cut.grab().toImage().copy(left.rect()) == left
    rest = whole.rect().adjusted(end, 0, 0, 0)
    assert cut.grab().toImage().copy(rest) != whole.copy(rest), "it ends in an ellipsis"
