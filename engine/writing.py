"""From the tokens of one answer to its text, up to a stop string, and to its pieces."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from engine.output import OutputParser
from engine.pieces import Content, Part, Piece
from engine.stops import StopMatcher
from engine.tokenizer import Detokenizer
from engine.types import TokenLogprob


@dataclass(frozen=True, slots=True)
class Shown:
    """What can be shown now; `stop` is the stop string that ended the text."""

    text: str
    pieces: tuple[Piece, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    stop: str | None = None


class Writing:
    """The text of one answer; stop strings count everywhere but inside tool calls.

    Log-probabilities are shown with the first character of their token, so they join to the text.
    """

    def __init__(
        self, detokenizer: Detokenizer, stops: StopMatcher, parser: OutputParser | None
    ) -> None:
        """Without a `parser` all text is content."""
        self.reasoning_tokens = 0
        self._detokenizer = detokenizer
        self._stops = stops
        self._parser = parser
        self._part = parser.part if parser else Part.CONTENT
        self._read = 0  # characters
        self._shown = 0
        self._waiting: deque[tuple[int, TokenLogprob]] = deque()

    @property
    def part(self) -> Part:
        """Where the last text belongs."""
        return self._part

    @property
    def done(self) -> bool:
        """Whether nothing more is wanted, since one call is all that may be made."""
        return self._parser is not None and self._parser.done

    def push(self, token: int, logprob: TokenLogprob | None = None) -> Shown:
        """What one more token lets show."""
        start, part = self._read, self._part
        if part is Part.REASONING:
            self.reasoning_tokens += 1
        told = self._told(token, logprob)
        shown, pieces, hit = self._take(self._detokenizer.push(token))
        if told is not None:
            part = part if part is not Part.CONTENT else self._part
            self._waiting.append((start, replace(told, part=part)))
        return Shown(shown, pieces, self._released(end=False), hit)

    def _told(self, token: int, logprob: TokenLogprob | None) -> TokenLogprob | None:
        """With the bytes of the tokens, if they come next."""
        if logprob is None:
            return None
        data = self._detokenizer.data
        top = tuple(replace(t, data=data(t.token)) for t in logprob.top)
        return replace(logprob, data=data(token), top=top)

    def flush(self) -> Shown:
        """What was held back, once no more tokens will come."""
        shown, pieces, hit = self._take(self._detokenizer.flush())
        if hit is None:
            rest = self._stops.flush()
            shown += rest
            pieces += self._pieces(rest)
        if self._parser is not None:
            pieces += tuple(self._parser.finish())
            self._part = self._parser.part
        return Shown(shown, pieces, self._released(end=hit is None), hit)

    def _take(self, text: str) -> tuple[str, tuple[Piece, ...], str | None]:
        self._read += len(text)
        hit = None
        if self._part is Part.TOOL_CALL:
            text = self._stops.flush() + text
        else:
            text, hit = self._stops.push(text)
        return text, self._pieces(text), hit

    def _pieces(self, text: str) -> tuple[Piece, ...]:
        self._shown += len(text)
        if self._parser is None:
            return (Content(text),) if text else ()
        found = tuple(self._parser.push(text))
        self._part = self._parser.part
        return found

    def _released(self, end: bool) -> tuple[TokenLogprob, ...]:
        found = []
        while self._waiting and (
            end
            or self._waiting[0][0] < self._shown
            or (not self._waiting[0][1].data and self._waiting[0][0] == self._shown)
        ):
            found.append(self._waiting.popleft()[1])
        return tuple(found)
