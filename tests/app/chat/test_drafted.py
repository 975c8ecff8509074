"""Drafted text is noted with the answer, found again in what is shown, and marked without moving it."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app.chat.drafted import align, drafted_of, drafted_share, underlined
from app.chat.generation import Generation
from app.chat.tree import Chat, ChatInfo, Message, Role, State
from app.chat.view import MessageView
from app.theme import theme
from engine.pieces import Content
from engine.types import Event, Finished, FinishReason, TextDelta, Usage, Verified

TEXT = "Take **the bold** road: `a_b`.\n\n```python\nif x:\n    pass\n```\n\nThe end of the road."


def letters(shown: str, source: str, drafted: list[int]) -> str:
    found, _ = align(shown, source, 0)
    return "|".join(shown[a:b] for a, b in underlined(found, drafted, 0))


def test_marks_of_markdown_do_not_shift_what_is_marked() -> None:
    source = "One **two** three [four](http://five) six"
    start = source.index("two")
    assert letters("One two three four six", source, [start, start + 3]) == "two"
    assert letters("One two three four six", source, [0, len(source)]).replace("|", "") == (
        "One two three four six"
    )
    end = source.index("six")
    assert letters("One two three four six", source, [end, end + 3]) == "six"


def test_words_that_are_not_in_the_text_are_not_marked() -> None:
    assert letters("a © b", "a &copy; b", [0, 10]).replace("|", "").split() == ["a", "b"]


@pytest.mark.parametrize("found", [None, "x", [1], [1, "2"], {"a": 1}])
def test_what_a_damaged_chat_says_is_left_out(found: object) -> None:
    assert list(drafted_of({"drafted": found})) == []


def written(*events: Event) -> Message:
    chat = Chat(ChatInfo())
    message = chat.add(Message(chat.info.id, None, Role.ASSISTANT, state=State.WRITING))
    generation = Generation(chat, message)
    for event in events:
        generation.take(event)
    return message


def token(text: str) -> TextDelta:
    return TextDelta(1, text, (1,), (Content(text),) if text else ())


def test_an_answer_notes_one_stretch_for_each_accepted_draft() -> None:
    message = written(
        token("One "),
        Verified(1, drafted=4, accepted=2),
        token("two "),
        token("three "),
        token("four "),
        Verified(1, drafted=4, accepted=0),
        token("five "),
        Verified(1, drafted=4, accepted=1),
        token("six"),
        Finished(1, FinishReason.STOP, Usage(completion_tokens=6, accepted_tokens=3)),
    )
    places = drafted_of(message.usage)
    stretches = [message.text[a:b] for a, b in zip(places[::2], places[1::2], strict=True)]
    assert stretches == ["two three ", "six"]
    assert drafted_share(message.usage) == 0.5


def dots(image: QImage, color: QColor) -> set[int]:
    """The heights at which the colour of drafts is seen."""
    rows = range(image.height())
    return {y for y in rows if any(image.pixelColor(x, y) == color for x in range(image.width()))}


def test_marks_are_painted_where_the_words_are_and_move_nothing(qtbot: QtBot) -> None:
    thinking = "<think>\nhm\n</think>\n\n"
    text = thinking + TEXT
    places = [n for word in ("bold", "pass", "end of") for n in span(text, word)]
    message = Message("c", None, Role.ASSISTANT, text, usage={"drafted": places})
    view = MessageView()
    qtbot.addWidget(view)
    view.resize(700, 500)
    view.show()
    view.set_messages([message])
    qtbot.waitUntil(lambda: not view.busy() and bool(view.rows()))
    row = view.rows()[0][1]
    before = row.size()
    plain = row.grab().toImage()
    color = theme().color("plot.draft")
    assert not dots(plain, color)
    view.marks.on = True
    row.arrange()
    marked = row.grab().toImage()
    assert row.size() == before
    entry = view.entry_at(0)
    boxes = entry.main.boxes
    top = entry.layout().main.top()
    seen = dots(marked, color)
    for box in boxes:
        inside = [y for y in seen if top + box.y <= y < top + box.y + box.height]
        assert len(inside) == 1, "each of the three blocks has one marked line"
    assert [len(box.dots or ()) for box in boxes] == [1, 1, 1]


def span(text: str, word: str) -> tuple[int, int]:
    return text.index(word), text.index(word) + len(word)


@pytest.mark.parametrize("reason", FinishReason)
def test_half_a_character_is_left_out_where_an_answer_is_cut(reason: FinishReason) -> None:
    message = written(token("한\N{REPLACEMENT CHARACTER}"), Finished(1, reason, Usage()))
    whole = message.state is State.DONE
    assert message.text == ("한\N{REPLACEMENT CHARACTER}" if whole else "한")
