"""Telling thinking from the answer."""

from __future__ import annotations

import pytest

from app.chat.thinking import split_thinking, summary


@pytest.mark.parametrize(
    ("text", "thinking", "answer", "is_open"),
    [
        ("plain", "", "plain", False),
        ("<think>a</think>b", "a", "b", False),
        ("\n<think>\na\n</think>\n\nb", "\na\n", "\n\nb", False),
        ("<think>not done", "not done", "", True),
        ("<think>", "", "", True),
        ("begun by the template</think>b", "begun by the template", "b", False),
        ("Write `</think>` to end it.", "", "Write `</think>` to end it.", False),
        ("```\n</think>\n```", "", "```\n</think>\n```", False),
        ("It says <think>x</think>", "It says <think>x", "", False),
        ("", "", "", False),
    ],
)
def test_split(text: str, thinking: str, answer: str, is_open: bool) -> None:
    parts = split_thinking(text)
    assert (parts.thinking, parts.answer, parts.open) == (thinking, answer, is_open)


def test_nothing_is_lost_while_it_streams() -> None:
    text = "<think>one two</think>three four"
    for end in range(len(text) + 1):
        parts = split_thinking(text[:end])
        assert set(parts.thinking.split()) | set(parts.answer.split()) or not text[:end].strip(
            "<think>"
        )


def test_summary_is_one_line() -> None:
    assert summary("First.\n\n- **the last one**\n\n   \n") == "the last one"
    assert len(summary("x" * 5000)) == 120
    assert summary("  \n") == ""
