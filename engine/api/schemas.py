"""What all request bodies have in common: unknown fields are refused by name, and null means absent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from engine.api.errors import refused
from engine.reasoning import Thinking

Effort = Literal["none", "minimal", "low", "medium", "high", "x-high", "xhigh", "max"]
Tier = Literal["auto", "default", "flex", "priority", "fast", "scale"]
Stop = str | list[str] | None
MOST_STOPS = 16
MOST_CHOICES = 128
MOST_ALTERNATIVES = 20
MOST_ITEMS = 32_768

Item = TypeVar("Item")
Many = Annotated[list[Item], Field(max_length=MOST_ITEMS)]
"""A list that is not checked for seconds, in which all other streams would stand still."""


class Body(BaseModel):
    """A JSON object with known fields only."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=()
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: v for k, v in value.items() if v is not None}
        return value


class ThinkingField(Body):
    """Anthropic's `thinking`, with Lucebox Hub's `reply_budget`."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = Field(None, ge=0, le=16_777_216)
    reply_budget: int | None = Field(None, ge=0, le=16_777_216)
    display: Literal["summarized", "omitted"] | None = None


class ReasoningField(Body):
    """OpenAI's `reasoning`."""

    effort: Effort | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    context: Literal["auto"] | None = None  # the template decides what it shows of earlier thinking
    mode: Literal["standard"] | None = None
    enabled: bool | None = None
    max_tokens: int | None = Field(None, ge=0, le=16_777_216)


class PromptCacheOptions(Body):
    """OpenAI's `prompt_cache_options`; every prefix is kept here anyway, so there is nothing to do."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: str | None = None


_MILLION = "([1-9][0-9]{0,5}|1000000)"
_SCOPES = f"off|full|auto(:{_MILLION})?|{_MILLION}"


def _scope(value: Any) -> str:
    known = isinstance(value, (str, int)) and not isinstance(value, bool)
    if not known or re.fullmatch(_SCOPES, str(value)) is None:
        raise ValueError(
            "expected off, full, auto, auto:WINDOW or a number of tokens, both 1 to 1,000,000"
        )
    return str(value)


Scope = Annotated[
    str,
    PlainValidator(_scope),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^({_SCOPES})$"},
                {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            ]
        }
    ),
]


class PrefixCacheField(Body):
    """Lucebox Hub's `prefix_cache`."""

    scope: Scope | None = None
    window: int | None = Field(None, ge=1, le=1_000_000)


class SamplingFields(Body):
    """Sampling and Lucebox Hub's own fields, which every dialect takes."""

    temperature: float | None = Field(None, ge=0, le=5)
    top_p: float | None = Field(None, ge=0, le=1)
    top_k: int | None = Field(None, ge=-1, le=1_000_000)
    min_p: float | None = Field(None, ge=0, le=1)
    typical_p: float | None = Field(None, ge=0, le=1)
    seed: int | None = None
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, ge=0.01, le=10)
    rep_pen: float | None = Field(None, ge=0.01, le=10)
    repeat_penalty: float | None = Field(None, ge=0.01, le=10)
    rep_window: int | None = Field(None, ge=-1, le=16_777_216)
    repeat_last_n: int | None = Field(None, ge=-1, le=16_777_216)
    ignore_eos: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    thinking: ThinkingField | None = None
    reasoning: ReasoningField | None = None
    reasoning_effort: Effort | None = None
    prefix_cache: PrefixCacheField | None = None
    session_id: str | None = None
    extra_body: dict[str, Any] | None = None
    agent_turn_cache: bool | None = None

    def sampling(self) -> dict[str, Any]:
        """The fields of `SamplingParams` that were given."""
        self._refuse_what_is_missing()
        found: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": None if self.top_k is None else max(0, self.top_k),
            "min_p": self.min_p,
            "typical_p": self.typical_p,
            "seed": None if self.seed is None else self.seed % 2**63,
            "frequency_penalty": self.frequency_penalty,
            "presence_penalty": self.presence_penalty,
            "repetition_penalty": _first(
                self.repetition_penalty, self.rep_pen, self.repeat_penalty
            ),
            "penalty_last_n": _first(self.rep_window, self.repeat_last_n),
            "ignore_eos": self.ignore_eos,
        }
        return {name: value for name, value in found.items() if value is not None}

    def thought(self) -> Thinking:
        """How much thinking is wanted; the template's own `enable_thinking` has the last word."""
        enabled: bool | None = None
        effort = self.reasoning_effort
        budget = reply = None
        if self.reasoning is not None:
            effort = self.reasoning.effort or effort
            budget = self.reasoning.max_tokens
            enabled = True if self.reasoning.enabled is None else self.reasoning.enabled
        if effort is not None:
            enabled = effort != "none"
        if self.thinking is not None:
            enabled = self.thinking.type != "disabled"
            budget, reply = self.thinking.budget_tokens, self.thinking.reply_budget
        wanted = (self.chat_template_kwargs or {}).get("enable_thinking")
        if isinstance(wanted, bool):
            enabled = wanted
        if effort in ("none", None) or not enabled:
            return Thinking(enabled, None, budget, reply)
        return Thinking(enabled, "x-high" if effort == "xhigh" else effort, budget, reply)

    def caching(self) -> dict[str, Any]:
        """Which of what is kept of prompts may be used and added to; all of it where nothing is said.

        Scope off is for nothing at all. The others say how much goes to disk: full for all, a number for that
        many tokens. With auto Lucebox writes what recent prompts have in common; here each page is written
        once, whoever shares it, and goes by its use, so it is as full, and a window changes nothing.
        """
        scope = (self.prefix_cache.scope if self.prefix_cache else None) or ""
        return {
            "prefix_cache": scope != "off",
            "disk_tokens": int(scope) if scope.isdecimal() else None,
            "agent_turn_cache": self.agent_turn_cache is not False,
        }

    def _refuse_what_is_missing(self) -> None:
        if unknown := set(self.extra_body or {}) - {"session_id"}:
            raise refused(
                f"extra_body.{sorted(unknown)[0]}", "only session_id is read in extra_body"
            )


Number = Annotated[float, Field(ge=-100, le=100)]


def biases(given: Mapping[str, float] | None) -> dict[int, float]:
    """`logit_bias` with token ids as numbers."""
    try:
        return {int(token): bias for token, bias in (given or {}).items()}
    except ValueError:
        raise refused("logit_bias", "its keys are token ids, such as 1234") from None


def stops(given: Stop, name: str = "stop") -> tuple[str, ...]:
    """Stop strings, one or several."""
    found = (given,) if isinstance(given, str) else tuple(given or ())
    if len(found) > MOST_STOPS or any(not stop or len(stop) > 1000 for stop in found):
        raise refused(name, f"expected at most {MOST_STOPS} texts of 1 to 1,000 characters each")
    return found


def refuse_all(fields: Mapping[str, Any], reasons: Mapping[str, str]) -> None:
    """Refuse the first of the fields that is given and has a reason against it."""
    for name, why in reasons.items():
        if fields.get(name) is not None:
            raise refused(name, why)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
