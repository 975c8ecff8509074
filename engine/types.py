"""The vocabulary that scheduler, runner, engine and their callers share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.config import SamplingParams


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to generate: exactly one of `messages`, `text` and `ids` is given.

    `messages` are chat messages ({"role", "content", ...}) rendered by the model's template; `text` is
    encoded as it stands, without markers turned into control tokens; `ids` are token ids.
    """

    messages: Seq[Mapping[str, Any]] | None = None
    text: str | None = None
    ids: Seq[int] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    tools: Seq[Mapping[str, Any]] | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts and times of one request; times in seconds, None until known."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    completion_tokens: int = 0
    first_token_s: float | None = None
    prefill_s: float = 0.0
    decode_s: float = 0.0

    @property
    def prefill_rate(self) -> float | None:
        """Prompt tokens computed a second."""
        done = self.prompt_tokens - self.reused_tokens
        return done / self.prefill_s if self.prefill_s > 0 and done > 0 else None

    @property
    def decode_rate(self) -> float | None:
        """Tokens written a second, the first one not counted: it belongs to the prompt's time."""
        n = self.completion_tokens - 1
        return n / self.decode_s if self.decode_s > 0 and n > 0 else None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a request; listeners get them in order from the serving thread."""

    request_id: int


@dataclass(frozen=True, slots=True)
class Accepted(Event):
    """The request is sound and waits its turn; its prompt fits the context and ends with `prompt_end`."""

    prompt_tokens: int
    prompt_end: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The request is admitted; `reused_tokens` of it need no computing."""

    prompt_tokens: int
    reused_tokens: int


@dataclass(frozen=True, slots=True)
class PrefillProgress(Event):
    """`done` of `total` prompt tokens are read."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """New text (never half a character; may be empty) and the tokens that were accepted for it."""

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The last event of a request that did not fail; `stop` is the stop string that ended it.

    `context_full` tells of a length that it was the context's end and not the answer length asked for.
    """

    reason: FinishReason
    usage: Usage
    stop: str | None = None
    context_full: bool = False


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """The last event of a request that failed; `error` is an `EngineError` fit to be shown."""

    error: Exception
    usage: Usage


OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is, by `stage`: "reading" in bytes of the file, "preparing" in kernels to compile
    (0 in all where that is not known), "warming up" in steps."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a loaded model; sizes in bytes.

    `warnings` are faults that may spoil answers, `notes` what was chosen for the user.
    """

    path: Path
    name: str
    architecture: str
    quant: str
    n_params: int
    file_bytes: int
    max_ctx: int
    vocab_size: int
    has_chat_template: bool
    sampling: SamplingParams
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One owner of memory; `kind` is one of model, draft, kv, work, other, free, reserve."""

    kind: str
    title: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """A moment's numbers; the GUI, the API and the bench read these and compute none of their own.

    Rates are means over the last second, 0 while nothing runs. `context_used` is of the sequence that
    ran last.
    """

    running: int = 0
    queued: int = 0
    prefill_rate: float = 0.0
    decode_rate: float = 0.0
    first_token_s: float | None = None
    context_used: int = 0
    context_max: int = 0
    reused_tokens: int = 0
    pages_used: int = 0
    pages_total: int = 0
    steps: int = 0
    step_ms: float = 0.0
    prompt_tokens_total: int = 0
    completion_tokens_total: int = 0
    memory: tuple[MemoryPart, ...] = ()


@dataclass(slots=True, eq=False)
class Sequence:
    """One request's tokens and where they stand. The scheduler owns it; the runner only reads.

    `n_computed` tokens have their keys and values in `pages`, and their recurrent state, for models that
    have one, in `slot`; `tokens` is prompt and answer so far.
    """

    request_id: int
    tokens: list[int]
    n_prompt: int
    sampling: SamplingParams
    pages: list[int] = field(default_factory=list)
    n_computed: int = 0
    n_reused: int = 0
    slot: int = -1
    checkpoint: int = -1  # the page of its newest checkpoint inside the answer


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive tokens of one sequence to compute: a prefill chunk or a decode token.

    `start` is the position of `tokens[0]`; `want_logits` asks for the last token's logits.
    """

    sequence: Sequence
    start: int
    tokens: tuple[int, ...]
    want_logits: bool


@dataclass(frozen=True, slots=True)
class Step:
    """What the runner computes in one go."""

    spans: tuple[Span, ...]

    @property
    def n_tokens(self) -> int:
        """Rows of the step, M."""
        return sum(len(s.tokens) for s in self.spans)


@dataclass(frozen=True, slots=True)
class StepResult:
    """Per span, in order: the sampled token, None where no logits were wanted, or the error."""

    tokens: tuple[int | None, ...]
    errors: Mapping[int, Exception] = field(default_factory=dict)
    seconds: float = 0.0


def request_ids() -> Callable[[], int]:
    """A fresh counter of request ids, starting at 1."""
    return itertools.count(1).__next__
