"""Texts laid out: in parts, at any width, selectable by what is read."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from app.chat.boxes import CODE_LINES, cut, units
from app.chat.colors import Lexers
from app.chat.laid import END, Laid, Place
from app.chat.style import Style
from app.theme import theme

FOREVER = float("inf")


@pytest.fixture
def lexers(qtbot: QtBot) -> Lexers:
    made = Lexers()
    with qtbot.waitSignal(made.ready):
        made.get("python")
    return made


@pytest.fixture
def style(qtbot: QtBot) -> Style:
    return Style(theme())


def laid(text: str, style: Style, lexers: Lexers, width: float = 600) -> Laid:
    made = Laid(style, lexers)
    made.set_width(width)
    made.set_text(text)
    assert made.advance(FOREVER)
    return made


@pytest.mark.parametrize("text", ["abc", "한국어", "a😀b", "", "😀😀"])
def test_offsets_are_as_qt_counts(text: str) -> None:
    assert units(text) == len(text.encode("utf-16-le")) // 2
    assert cut(text, 0, units(text)) == text


def test_a_growing_text_ends_like_the_whole(style: Style, lexers: Lexers) -> None:
    text = (
        "# T\n\nSome **text**.\n\n```python\n"
        + "x = 1  # one\n" * 90
        + "```\n\n- a\n- b\n\n|a|b|\n|-|-|\n|1|2|\n"
    )
    grown = Laid(style, lexers)
    grown.set_width(600)
    for end in range(0, len(text), 11):
        grown.set_text(text[:end])
        grown.advance(FOREVER)
    grown.set_text(text)
    grown.advance(FOREVER)
    whole = laid(text, style, lexers)
    assert grown.height == whole.height
    assert [(b.y, b.height) for b in grown.boxes] == [(b.y, b.height) for b in whole.boxes]
    assert [b.runs[0].layout.formats() for b in grown.boxes if b.part.piece.kind == "code"]
    for one, other in zip(grown.boxes, whole.boxes, strict=True):
        for a, b in zip(one.runs, other.runs, strict=True):
            assert [(f.start, f.length) for f in a.layout.formats()] == [
                (f.start, f.length) for f in b.layout.formats()
            ]


def test_finished_boxes_stay_while_it_grows(style: Style, lexers: Lexers) -> None:
    made = laid("one\n\ntwo\n\nthree", style, lexers)
    kept = made.boxes[:2]
    made.set_text("one\n\ntwo\n\nthree and more")
    made.advance(FOREVER)
    assert made.boxes[0] is kept[0]
    assert made.boxes[1] is kept[1]


def test_work_is_done_in_parts(style: Style, lexers: Lexers) -> None:
    made = Laid(style, lexers)
    made.set_width(600)
    made.set_text("paragraph of words\n\n" * 400)
    turns = 0
    while not made.advance(time.perf_counter()):
        turns += 1
    assert turns > 400
    assert made.done
    assert len(made.boxes) == 400


def test_code_is_coloured_over_its_parts(style: Style, lexers: Lexers) -> None:
    code = '"""begin\n' + "inside a string\n" * (CODE_LINES + 5) + '"""\nx = 1'
    made = laid(f"```python\n{code}\n```", style, lexers)
    assert len(made.boxes) == 2
    (first, *_) = made.boxes[1].runs[0].layout.formats()
    assert first.format.foreground().color() == style.syntax["string"]
    assert made.code_of(made.boxes[1]) == code
    assert made.chosen_text(Place(), END) == code


def colors(made: Laid) -> list[dict[int, str]]:
    """The colour of each coloured letter, by box."""
    return [
        {
            at: f.format.foreground().color().name()
            for f in box.runs[0].layout.formats()
            for at in range(f.start, f.start + f.length)
        }
        for box in made.boxes
    ]


@pytest.mark.parametrize("lines", range(CODE_LINES - 4, CODE_LINES + 1))
@pytest.mark.parametrize("inside", [2, CODE_LINES * 2 + 3])
def test_open_code_is_coloured_as_when_it_is_closed(
    style: Style, lexers: Lexers, lines: int, inside: int
) -> None:
    body = "x = 1\n" * lines + '    """\n' + "def f():\n" * inside + '    """\ndef g():\n    pass'
    growing = Laid(style, lexers)
    growing.set_width(600)
    text = f"```python\n{body}"
    for end in range(0, len(text) + 1, 7):
        growing.set_text(text[:end])
        growing.advance(FOREVER)
    growing.set_text(text)
    growing.advance(FOREVER)
    assert colors(growing) == colors(laid(f"{text}\n```", style, lexers))


def test_colours_after_letters_that_qt_counts_twice(style: Style, lexers: Lexers) -> None:
    made = laid("```python\nx = '😀'  # one\n```", style, lexers)
    run = made.boxes[0].runs[0]
    found = {cut(run.text, f.start, f.start + f.length) for f in run.layout.formats()}
    assert "# one" in found


def test_unknown_language_is_plain(style: Style, lexers: Lexers) -> None:
    made = laid("```nonsense-language\nx\n```", style, lexers)
    assert made.boxes[0].runs[0].layout.formats() == []


def test_selected_text(style: Style, lexers: Lexers) -> None:
    made = laid(
        "Hello **wide** world\n\n1. one\n2. two 😀 end\n\n|a|b|\n|-|-|\n|1|2|", style, lexers
    )
    assert made.chosen_text(Place(), END) == "Hello wide world\n1. one\n2. two 😀 end\n\na\tb\n1\t2"
    assert made.chosen_text(Place(0, 0, 6), Place(0, 0, 10)) == "wide"
    assert made.chosen_text(Place(0, 0, 11), Place(1, 0, 3)) == "world\n1. one"
    assert made.chosen_text(Place(2, 0, 4), Place(2, 0, 6)) == "😀"
    assert made.chosen_text(Place(1, 0, 1), Place(1, 0, 1)) == ""


def test_points_and_places(style: Style, lexers: Lexers) -> None:
    made = laid("first line\n\nsecond [link](https://example.com) here", style, lexers)
    assert made.place_at(-5, -5) == Place(0, 0, 0)
    assert made.place_at(10_000, 5).box == 0
    assert made.place_at(10_000, 10_000) == Place(1, 0, len("second link here"))
    box = made.boxes[1]
    line = box.runs[0].layout.lineAt(0)
    x = line.cursorToX(9)[0]
    assert made.link_at(x, box.y + 5) == "https://example.com"
    assert made.link_at(1, box.y + 5) == ""
    start, end = made.word_at(Place(0, 0, 2))
    assert made.chosen_text(start, end).strip() == "first"


def test_narrow_is_higher_and_nothing_is_wider_than_asked(style: Style, lexers: Lexers) -> None:
    text = "word " * 60 + "\n\n" + "x" * 300 + "\n\n```\n" + "y" * 300 + "\n```"
    wide, narrow = laid(text, style, lexers, 600), laid(text, style, lexers, 200)
    assert narrow.height > wide.height
    for box in narrow.boxes:
        for run in box.runs:
            for i in range(run.layout.lineCount()):
                assert run.at.x() + run.layout.lineAt(i).naturalTextRect().right() <= 201


def test_tables_fit(style: Style, lexers: Lexers) -> None:
    head = "|a|b|\n|-|-|\n"
    made = laid(head + f"|1|{'many words ' * 40}|\n" * 50, style, lexers, 500)
    assert len(made.boxes) > 1
    assert all(box.width <= 501 for box in made.boxes)
    assert made.boxes[0].runs[2].text == "1"


def test_short_words_in_a_table_are_not_broken(style: Style, lexers: Lexers) -> None:
    head = "|name|number|memory|이름|항목 이름|text|\n|-|-|-|-|-|-|\n"
    made = laid(head + f"|a|1|m|가|나|{'many words ' * 40}|\n", style, lexers, 700)
    lines = {r.text: r.layout.lineCount() for r in made.boxes[0].runs}
    words = ("name", "number", "memory", "이름", "항목 이름")
    assert [lines[t] for t in words] == [1] * len(words)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "שלום עולם",
        "مرحبا **بالعالم**",
        "👩‍👩‍👧 😀 e\u0301",
        "\u2028\u2029",
        "> " * 15 + "x",
    ],
)
def test_any_text_can_be_painted(style: Style, lexers: Lexers, text: str) -> None:
    made = laid(text, style, lexers)
    image = QImage(620, 100, QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(image)
    made.draw(painter, QRectF(0, 0, 620, 100), (Place(), END))
    painter.end()
    made.end_of_text()
    made.place_at(50, 5)


def test_right_to_left_stands_at_the_right(style: Style, lexers: Lexers) -> None:
    made = laid("שלום עולם", style, lexers)
    assert made.boxes[0].runs[0].layout.lineAt(0).naturalTextRect().right() > 590
