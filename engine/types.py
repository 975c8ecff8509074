"""The vocabulary that scheduler, runner, engine and their callers share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import SamplingParams
from engine.pieces import Part, Piece
from engine.reasoning import Thinking, ThinkingLimits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engine.cache.prefix import Saved
    from engine.ops.ranking import Late
    from engine.pages import Node


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether tools may be called (`mode` auto), must be (required) or must not be (none).

    `names` are the only ones that may be called, None for all.
    """

    mode: str = "auto"
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """What an answer must look like: `kind` is json_object, json_schema, regex or lark.

    `source` is the JSON schema as a mapping, the regular expression, or the Lark grammar.
    """

    kind: str
    source: Any = None


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to generate: exactly one of `messages`, `text` and `ids` is given.

    `messages` are chat messages ({"role", "content", ...}) rendered by the model's template; `text` is
    encoded as it stands, without markers turned into control tokens; `ids` are token ids. `tools` and what
    follows from them, and `thinking`, are for messages only. `logprobs` is how many alternatives are wanted
    for each token, None for no log-probabilities at all. Without `drafts` no tokens are guessed ahead, which
    changes the speed and not the text. Without `prefix_cache` nothing of it is taken from or left for other
    requests, without `agent_turn_cache` nothing that was written. `disk_tokens`, from the first on, may be
    kept on disk, None for all. `owner` is the name of the program that asks, by which pages are counted.
    """

    messages: Seq[Mapping[str, Any]] | None = None
    text: str | None = None
    ids: Seq[int] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    tools: Seq[Mapping[str, Any]] | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    thinking: Thinking = Thinking()
    format: Format | None = None
    logprobs: int | None = None
    drafts: bool = True
    prefix_cache: bool = True
    agent_turn_cache: bool = True
    disk_tokens: int | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Switch:
    """Speculation paused by itself, or went on: `state` is paused or on, by the `speedup` over no drafts that
    the last `steps` verified drafts brought.
    """

    state: str
    speedup: float
    steps: int

    @property
    def text(self) -> str:
        """For people."""
        if self.state == "paused":
            return f"Speculation paused: measured {self.speedup:.2f}x over {self.steps} steps."
        return f"Speculation goes on: measured {self.speedup:.2f}x over {self.steps} steps."


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts and times of one request; times in seconds, None until known. Of the `drafted_tokens` that were
    guessed the `accepted_tokens` are part of the answer; `switches` tell where guessing paused or went on.
    `reused_answer`: of the `reused_tokens` some were written for an earlier request, and not only read.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    reused_answer: bool = False
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    first_token_s: float | None = None
    prefill_s: float = 0.0
    decode_s: float = 0.0
    switches: tuple[Switch, ...] = ()

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
class TokenLogprob:
    """A token's log-probability before temperature, penalties and filters, as OpenAI's API tells it.

    `data` are the bytes that it gives to the text, `top` the likeliest tokens at its place, and `part` what
    it is part of.
    """

    token: int
    data: bytes
    logprob: float
    top: tuple[TokenLogprob, ...] = ()
    part: Part = Part.CONTENT


@dataclass(frozen=True, slots=True)
class Verified(Event):
    """A pass judged a draft of `drafted` tokens: the next `accepted` tokens of the text are of it."""

    drafted: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Switched(Event):
    """Speculation paused, or went on, while the answer was being written."""

    switch: Switch


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """New text (never half a character; may be empty) and the tokens that were accepted for it.

    `text` is as the model wrote it, marks of reasoning and calls included, and `pieces` what it means.
    `logprobs` are of the tokens whose text is now shown: those of text that a stop string takes away do not
    come.
    """

    text: str
    tokens: tuple[int, ...]
    pieces: tuple[Piece, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The last event of a request that did not fail; `stop` is the stop string that ended it.

    `context_full` tells of a length that it was the context's end and not the answer length asked for, and
    `loop` that the model only repeated itself. `thinking_cut`: its budget ended the thinking. `form_cut`: the
    answer lacks a part of the form that was asked for.
    """

    reason: FinishReason
    usage: Usage
    stop: str | None = None
    context_full: bool = False
    loop: bool = False
    thinking_cut: bool = False
    form_cut: bool = False


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
    """What is known of a loaded model; sizes in bytes, and its `card` as it stands in its file.

    `warnings` are faults that may spoil answers, `notes` what was chosen for the user; `device` is where it
    runs, such as "cpu" or "cuda:0", and `prefill_chunk` how many tokens of a prompt a step reads.
    """

    path: Path
    name: str
    architecture: str
    quant: str
    n_params: int
    file_bytes: int
    max_ctx: int
    vocab_size: int
    sampling: SamplingParams
    thinking: ThinkingLimits = ThinkingLimits()
    card: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    device: str = "cpu"
    prefill_chunk: int = 0


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
    slot: int = -1
    seed: int = 0
    ends: frozenset[int] = frozenset()  # tokens after which there is nothing to write
    ended_by: int = -1  # the one of those that came behind `tokens`
    n_most: int = 1 << 62  # tokens that it may come to, answer included
    cached: bool = True  # whether it shares prefixes with others
    keeps_answer: bool = True  # whether that goes for what it writes too
    disk_tokens: int | None = None  # how many, from the first on, may be kept on disk; None for all
    n_known: int = 0  # pages from the first on that are in the prefix index
    n_given: int = -1  # tokens that it needed not to compute when it first began
    given_answer: bool = False  # whether some of them were written, and not read, before
    branch: int = 0  # tokens that are known of another prompt, though not the state behind them
    kept: list[tuple[int, int]] = field(default_factory=list)  # what its running span keeps
    checkpoint: Node | None = None  # where its newest state inside the answer is kept
    saved: Saved | None = None  # what it had when it gave its place to another
    drafts: bool = True  # whether its tokens may be guessed ahead
    owner: str = ""  # the program that it is for


@dataclass(frozen=True, slots=True)
class Likely:
    """A distribution by its possible tokens: `ids` (k,) and their probabilities `p` (k,), of sum 1."""

    ids: NDArray[np.intp]
    p: NDArray[np.float64]

    def of(self, token: int) -> float:
        """The probability of a token."""
        return float(self.p[self.ids == token].sum())

    def at(self, ids: NDArray[np.intp]) -> NDArray[np.float64]:
        """The probabilities of `ids`."""
        import numpy as np  # here, as the window does not wait for it

        order = np.argsort(self.ids)
        place = np.minimum(np.searchsorted(self.ids, ids, sorter=order), len(order) - 1)
        found = order[place]
        return np.where(self.ids[found] == ids, self.p[found], 0.0)


@dataclass(frozen=True, slots=True)
class Draft:
    """Guessed tokens; node i follows node `parents[i]` < i, or the sequence's last token where that is -1.

    Children of a node differ. `probabilities` are there for a chain whose tokens were drawn at random: what
    each was drawn from. Without them a token is taken where the target draws the same. `late` tokens are 0.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    probabilities: tuple[Likely, ...] = ()
    late: Late | None = None

    @classmethod
    def chain(cls, tokens: Seq[int], probabilities: Seq[Likely] = ()) -> Draft:
        """Tokens that follow each other."""
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)), tuple(probabilities))

    @property
    def is_chain(self) -> bool:
        """Whether each token follows the one before it."""
        return self.parents == tuple(range(-1, len(self.tokens) - 1))

    @property
    def depths(self) -> tuple[int, ...]:
        """How many tokens each node is after the sequence's last, from 1 on."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return tuple(depths)


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive tokens of one sequence to compute: a prefill chunk, or a decode token and a draft after it.

    `start` is the position of `tokens[0]`; `want_logits` asks for the last token's logits, or with a draft,
    which is all but the first of `tokens`, for every token's. Of a step that is launched before its tokens
    are known they are -1 - r, for what row r of the one before gives. Of each of `keeps`, (n, slot), the
    recurrent state after the first n tokens is to be in the slot, too.
    """

    sequence: Sequence
    start: int
    tokens: tuple[int, ...]
    want_logits: bool
    draft: Draft | None = None
    keeps: tuple[tuple[int, int], ...] = ()

    @property
    def parents(self) -> tuple[int, ...]:
        """For each token the index of the one before it, -1 for the first."""
        if self.draft is None:
            return tuple(range(-1, len(self.tokens) - 1))
        return (-1, *(parent + 1 for parent in self.draft.parents))

    @property
    def positions(self) -> tuple[int, ...]:
        """Where each token stands in its sequence; branches share positions."""
        if self.draft is None:
            return tuple(range(self.start, self.start + len(self.tokens)))
        return (self.start, *(self.start + depth for depth in self.draft.depths))


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
    """Per span, in order: the tokens that were decided on, none where no logits were wanted or on an error.

    With a draft these are its accepted tokens and one more, and `paths` are the rows of the span that stand:
    0 for the decode token, then the accepted ones. `sampling_s` of `seconds`, from `began` on, went into
    choosing tokens.
    """

    tokens: tuple[tuple[int, ...], ...]
    paths: tuple[tuple[int, ...], ...] = ()
    errors: Mapping[int, Exception] = field(default_factory=dict)
    seconds: float = 0.0
    sampling_s: float = 0.0
    began: float = 0.0


def request_ids() -> Callable[[], int]:
    """A fresh counter of request ids, starting at 1."""
    return itertools.count(1).__next__
