"""The reasoning part of an answer: its marks, and how it is told from the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from engine.errors import BadRequest

EFFORTS = ("none", "minimal", "low", "medium", "high", "x-high", "max")
"""Names for how much to think; minimal is low, and none is not to think."""

TIERS = "reasoning_effort_tiers"
"""The field of a card with the tokens for thinking of each effort."""

_SHARES = {"low": 0.125, "medium": 0.5, "high": 1.0}


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands around reasoning; `anywhere` where it may begin in the middle of an answer.

    Marks that a model may quote open reasoning at the start of an answer only.
    """

    open: str
    close: str
    anywhere: bool = False


THINK = Marks("<think>", "</think>")
MARKS = (
    THINK,  # Qwen, DeepSeek, Laguna, Ling
    Marks("<|channel>thought", "<channel|>", anywhere=True),  # Gemma 4
    Marks("[THINK]", "[/THINK]"),  # Mistral
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """How much a request lets the model think; None leaves it to the model and its card.

    `effort` is one of `EFFORTS`; `budget` and `reply_budget` are tokens for thinking and for the answer
    behind it. Any of the three makes the engine end thinking in time.
    """

    enabled: bool | None = None
    effort: str | None = None
    budget: int | None = None
    reply_budget: int | None = None

    def __post_init__(self) -> None:
        """`BadRequest` for an unknown effort or a budget below 0."""
        if self.effort is not None and _plain(self.effort) not in EFFORTS:
            raise BadRequest(
                f"The reasoning effort is {self.effort!r}, expected one of {', '.join(EFFORTS)}."
            )
        for budget in (self.budget, self.reply_budget):
            if budget is not None and budget < 0:
                raise BadRequest(f"A thinking budget is {budget}, expected at least 0.")

    @property
    def wanted(self) -> bool | None:
        """Whether the model shall think; None leaves it to the template."""
        if self.enabled is not None:
            return self.enabled
        if self.effort is not None:
            return _plain(self.effort) != "none"
        return self.budget > 0 if self.budget is not None else None

    @property
    def template_kwargs(self) -> dict[str, Any]:
        """What templates know of this."""
        kwargs: dict[str, Any] = {}
        if self.wanted is not None:
            kwargs["enable_thinking"] = self.wanted
        if self.effort is not None and self.wanted:
            kwargs["reasoning_effort"] = _plain(self.effort)
        return kwargs


@dataclass(frozen=True, slots=True)
class ThinkingLimits:
    """What a model's card says of thinking, in tokens.

    `max_tokens` of answer and thinking together, `reply` of these for the answer, `tiers` for thinking by
    effort; `terminator` is the text that ends thinking which takes too long, "" where none is known.
    """

    max_tokens: int = 16_000
    reply: int = 4_096
    tiers: Mapping[str, int] = field(default_factory=dict)
    terminator: str = ""

    @classmethod
    def of_card(cls, card: Mapping[str, Any], max_tokens: int) -> ThinkingLimits:
        """From a card's fields; `max_tokens` where it does not say.

        `think_max_tokens`, which no card has, is the most that any effort or request gets for thinking.
        """
        most = _count(card.get("max_tokens"), max_tokens)
        reply = _count(card.get("hard_limit_reply_budget"), 4_096)
        if think := _count(card.get("think_max_tokens"), 0):
            most = think + reply
        else:
            reply = min(reply, most // 2)
        complex_ = max(most, _count(card.get("complex_problem_max_tokens"), most))
        tiers = {name: int((most - reply) * share) for name, share in _SHARES.items()}
        tiers["max"] = complex_ - reply
        tiers["x-high"] = (tiers["high"] + tiers["max"]) // 2
        given = card.get(TIERS)
        for name, value in given.items() if isinstance(given, Mapping) else ():
            tiers[name] = _count(value, tiers.get(name, most))
        tiers = {name: min(n, think or n) for name, n in tiers.items()}
        hint = card.get("thinking_terminator_hint")
        return cls(most, reply, tiers, hint if isinstance(hint, str) else "")

    def think_until(self, thinking: Thinking, room: int) -> int | None:
        """After how many tokens thinking must end, if an answer has `room` for so many; None for never.

        Only who asks for an effort or a budget has one.
        """
        asked = thinking.effort, thinking.budget, thinking.reply_budget
        if asked == (None, None, None):
            return None
        most = max([self.max_tokens - self.reply, *self.tiers.values()])
        first = most if thinking.effort is None else self.tiers.get(_plain(thinking.effort), most)
        if thinking.budget is not None:
            first = min(thinking.budget, most)
        reply = thinking.reply_budget
        if reply is None:
            reply = min(self.reply, room // 2)
        return max(0, min(first, room - reply))


def _plain(effort: str) -> str:
    name = effort.strip().lower().replace("xhigh", "x-high").replace("x_high", "x-high")
    return "low" if name == "minimal" else name


def _count(value: Any, usual: int) -> int:
    return value if type(value) is int and value > 0 else usual


class Parts(NamedTuple):
    """An answer in two parts; `open` while the thinking has not ended; `at` is where the answer starts."""

    thinking: str
    answer: str
    open: bool
    at: int


def opened_by(prompt: str) -> Marks | None:
    """The marks whose opening one ends a prompt, so that the answer begins inside reasoning."""
    tail = prompt.rstrip()
    return next((marks for marks in MARKS if tail.endswith(marks.open)), None)


def known_to(template: str) -> Marks | None:
    """The marks of thinking that a chat template knows."""
    return next((marks for marks in MARKS if marks.close in template), None)


def split_thinking(text: str) -> Parts:
    """Split a whole text; a closing mark alone ends thinking that the prompt's template began.

    Only a mark at the start of the text opens thinking, so an answer may write about the marks.
    """
    body = text.lstrip()
    lead = len(text) - len(body)
    marks = next((m for m in MARKS if body.startswith(m.open)), None)
    if marks is not None:
        start = lead + len(marks.open)
        end = text.find(marks.close, start)
        if end < 0:
            return Parts(text[start:], "", True, len(text))
    else:
        marks, start = THINK, lead
        end = text.find(marks.close, start)
        if end < 0 or _quoted(text, end):
            return Parts("", text, False, 0)
    at = end + len(marks.close)
    return Parts(text[start:end], text[at:], False, at)


def _quoted(text: str, at: int) -> bool:
    """Whether a mark stands inside code, where it is part of what the answer talks about."""
    line = text.rfind("\n", 0, at) + 1
    return text.count("```", 0, at) % 2 == 1 or text.count("`", line, at) % 2 == 1
