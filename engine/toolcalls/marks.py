"""The marks that models write around tool calls."""

from __future__ import annotations

QUOTE = '<|"|>'
"""The token that Gemma writes around strings."""

DSML = "｜DSML｜"
"""Part of all tags of DeepSeek V3.2 and V4."""

V3, V3_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
V3_CALL, V3_SEP, V3_CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
"""DeepSeek V3 and V3.1: around all calls, and of one."""

JSON_TAGS = {
    "<tool_call>": "</tool_call>",
    "<function_call>": "</function_call>",
    "<tool_code>": "</tool_code>",
    "[TOOL_CALLS]": "",
    "<|python_tag|>": "",
}
"""Ahead of calls as JSON, and what ends them where anything does."""

GEMMA, GEMMA_END = "<|tool_call>", "<tool_call|>"


def markers() -> list[str]:
    """Those that may be tokens of their own in a vocabulary."""
    json_marks = [mark for pair in JSON_TAGS.items() for mark in pair if mark]
    return [*json_marks, GEMMA, GEMMA_END, QUOTE, DSML, V3, V3_END, V3_CALL, V3_SEP, V3_CALL_END]
