"""One answer being written: what its events do to its message."""

from __future__ import annotations

import time
from collections.abc import Iterable

from app.chat.drafted import add_drafted
from app.chat.tree import Chat, Message, State
from engine.errors import EngineError
from engine.pieces import Content, Piece, Reasoning
from engine.reasoning import THINK
from engine.types import (
    Event,
    Failed,
    Finished,
    FinishReason,
    PrefillProgress,
    Started,
    TextDelta,
    Usage,
    Verified,
)

_STATES = {
    FinishReason.STOP: State.DONE,
    FinishReason.LENGTH: State.LENGTH,
    FinishReason.CANCELLED: State.STOPPED,
    FinishReason.ERROR: State.FAILED,
}


class Generation:
    """An answer under way; `read` and `prompt` are the prompt's tokens done and in all."""

    def __init__(self, chat: Chat, message: Message) -> None:
        self.chat = chat
        self.message = message
        self.request_id = 0
        self.read = 0
        self.prompt = 0
        self.started = False
        self.rate: float | None = None
        self.unsaved = False
        self._first: float | None = None
        self._thinking = False
        self._drafted = 0  # of the tokens that come next

    @property
    def reading(self) -> bool:
        """Whether the prompt is still being read."""
        return self._first is None

    def take(self, event: Event) -> None:
        """Put down what an event says."""
        match event:
            case Started(prompt_tokens=prompt, reused_tokens=reused):
                self.started, self.prompt, self.read = True, prompt, reused
            case PrefillProgress(done=done, total=total):
                self.read, self.prompt = done, total
            case Verified(accepted=accepted):
                self._drafted = accepted
            case TextDelta(pieces=pieces, tokens=tokens):
                start = len(self.message.text)
                self._add(pieces)
                if tokens and self._drafted:
                    self._drafted -= len(tokens)
                    add_drafted(self.message.usage, start, len(self.message.text))
            case Finished(reason=reason, usage=usage, context_full=full, loop=loop):
                self._end(_STATES[reason], usage)
                self.message.usage |= (
                    {"context_full": True} if full else {"loop": True} if loop else {}
                )
            case Failed(error=error, usage=usage):
                self.message.error = str(error) or type(error).__name__
                if not isinstance(error, EngineError):
                    self.message.error = f"{type(error).__name__}: {error}"
                self.message.error_kind = type(error).__name__
                self._end(State.FAILED, usage)

    def _add(self, pieces: Iterable[Piece]) -> None:
        """Put down what was written; thinking stands between the same marks whatever the model's are."""
        message = self.message
        for piece in pieces:
            if self._first is None:
                self._first = time.monotonic()
            if isinstance(piece, Reasoning):
                message.text += piece.text if self._thinking else f"{THINK.open}\n{piece.text}"
                self._thinking = True
            elif isinstance(piece, Content):
                if self._thinking:
                    self._thinking = False
                    message.text += f"\n{THINK.close}\n\n"
                    message.usage.setdefault("thought_s", round(time.monotonic() - self._first, 1))
                message.text += piece.text
            self.unsaved = True

    def _end(self, state: State, usage: Usage) -> None:
        self.message.state = state
        if state is not State.DONE:
            # Half a character: one of Korean takes a small model three tokens, and it was cut in between.
            self.message.text = self.message.text.removesuffix("\N{REPLACEMENT CHARACTER}")
        self.unsaved = False
        self.message.usage |= {
            "prompt_tokens": usage.prompt_tokens,
            "reused_tokens": usage.reused_tokens,
            "completion_tokens": usage.completion_tokens,
            "accepted_tokens": usage.accepted_tokens,
            "first_token_s": usage.first_token_s,
            "prefill_rate": usage.prefill_rate,
            "decode_rate": usage.decode_rate,
        }
