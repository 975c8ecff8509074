"""Marks and budgets of thinking."""

from __future__ import annotations

import pytest

from engine.cards import thinking_limits
from engine.errors import BadRequest
from engine.reasoning import (
    EFFORTS,
    MARKS,
    THINK,
    Parts,
    Thinking,
    ThinkingLimits,
    opened_by,
    split_thinking,
)


def test_the_prompt_may_open_thinking() -> None:
    assert opened_by("<|im_start|>assistant\n<think>\n") is THINK
    assert opened_by("<|im_start|>assistant\n<think>\n\n</think>\n\n") is None
    assert opened_by("<|turn>model\n<|channel>thought\n") is MARKS[1]
    assert opened_by("write <think> now") is None


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: m.open)
def test_a_whole_text_is_split(marks: object) -> None:
    assert isinstance(marks, type(THINK))
    text = f"{marks.open}a{marks.close}b"
    assert split_thinking(text) == Parts("a", "b", False, len(text) - 1)
    assert split_thinking(f" {marks.open}a") == Parts("a", "", True, len(marks.open) + 2)


def test_a_closing_mark_alone_and_quoted_marks() -> None:
    assert split_thinking("a</think>b") == Parts("a", "b", False, 9)
    assert split_thinking("`</think>` ends it").thinking == ""
    assert split_thinking("no marks") == Parts("", "no marks", False, 0)


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


def test_efforts_and_budgets_switch_thinking() -> None:
    assert Thinking().wanted is None
    assert Thinking().template_kwargs == {}
    assert Thinking(effort="none").template_kwargs == {"enable_thinking": False}
    assert Thinking(effort="minimal").template_kwargs == {
        "enable_thinking": True,
        "reasoning_effort": "low",
    }
    assert Thinking(enabled=False, effort="high").wanted is False
    assert Thinking(budget=0).wanted is False
    assert Thinking(budget=10).wanted is True
    for effort in (*EFFORTS, "XHIGH", " Max "):
        Thinking(effort=effort)


@pytest.mark.parametrize("wrong", [{"effort": "huge"}, {"budget": -1}, {"reply_budget": -5}])
def test_wrong_wishes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match=r"expected"):
        Thinking(**wrong)  # type: ignore[arg-type]


QWEN = {"max_tokens": 32768, "complex_problem_max_tokens": 81920, "hard_limit_reply_budget": 4096}


def test_tiers_come_from_the_card() -> None:
    tiers = ThinkingLimits.of_card(QWEN, 100).tiers
    assert tiers == {"low": 3584, "medium": 14336, "high": 28672, "max": 77824, "x-high": 53248}
    given = QWEN | {"reasoning_effort_tiers": {"low": 4032}}
    assert ThinkingLimits.of_card(given, 100).tiers["low"] == 4032
    plain = ThinkingLimits.of_card({}, 16384)
    assert (plain.max_tokens, plain.reply) == (16384, 4096)
    assert plain.tiers["high"] == plain.tiers["max"] == plain.tiers["x-high"]
    assert ThinkingLimits.of_card({"max_tokens": "many"}, 900).reply == 450


def test_the_time_to_end_thinking() -> None:
    limits = ThinkingLimits.of_card(QWEN, 100)
    assert limits.think_until(Thinking(enabled=True), 5000) is None
    assert limits.think_until(Thinking(effort="low"), 100_000) == 3584
    assert limits.think_until(Thinking(effort="low"), 6000) == 3000
    assert limits.think_until(Thinking(effort="max"), 100_000) == 77_824
    assert limits.think_until(Thinking(budget=50), 1000) == 50
    assert limits.think_until(Thinking(budget=10**9), 10**9) == 77_824
    assert limits.think_until(Thinking(budget=900, reply_budget=300), 1000) == 700
    assert limits.think_until(Thinking(budget=900, reply_budget=3000), 1000) == 0
    assert limits.think_until(Thinking(reply_budget=100), 1000) == 900


def test_a_family_has_limits_without_a_card() -> None:
    assert thinking_limits({"general.architecture": "qwen35moe"}).max_tokens == 32768
    assert thinking_limits({"general.architecture": "gemma4"}).max_tokens == 16384
    assert thinking_limits({"general.architecture": "llama"}).max_tokens == 16000
    card = thinking_limits({"general.name": "Qwen3.6-27B"})
    assert card.tiers["x-high"] == 56832
    assert "</think>" in card.terminator
