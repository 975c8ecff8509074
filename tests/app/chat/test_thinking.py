"""Thinking folded to a line."""

from __future__ import annotations

from app.chat.thinking import summary


def test_summary_is_one_line() -> None:
    assert summary("First.\n\n- **the last one**\n\n   \n") == "the last one"
    assert len(summary("x" * 5000)) == 120
    assert summary("  \n") == ""
