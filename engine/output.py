"""From the text of an answer to its pieces: reasoning, content and tool calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.pieces import (
    Content,
    Part,
    Piece,
    Reasoning,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
    merged,
)
from engine.reader import Reader, Reading, begun
from engine.reasoning import MARKS, Marks, opened_by
from engine.toolcalls.forms import OPENERS, Calls, bare_call, new_call_id

__all__ = [
    "Content",
    "OutputParser",
    "Part",
    "Piece",
    "Reasoning",
    "ToolCallArguments",
    "ToolCallEnd",
    "ToolCallStart",
    "output_parser",
]

_ANYWHERE = {marks.open: marks for marks in MARKS if marks.anywhere}


class OutputParser:
    """Tells the parts of one answer apart as its text comes; how the text is cut makes no difference.

    Calls are recognised in every known syntax, but only of declared tools; what cannot be read as a call
    stays text. White space at the borders of reasoning is left out, and between and after calls.
    """

    def __init__(
        self,
        opened: Marks | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        parallel: bool = True,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """`opened`: marks of the reasoning that the prompt began; `tools` as in OpenAI's chat requests.

        Without `parallel` nothing is read behind the first call.
        """
        self.part = Part.REASONING if opened else Part.CONTENT
        self.done = False
        self._reader = Reader()
        self._pieces: list[Piece] = []
        self._calls = Calls(self._reader, self._pieces.append, tools or (), new_id)
        self._parallel = parallel
        self._held = ""
        self._drop_space = False
        self._openers = (*_ANYWHERE, *(OPENERS if tools else ()))
        self._search = re.compile("|".join(map(re.escape, self._openers))).search
        self._work = self._read(opened)
        self._step()

    def push(self, text: str) -> list[Piece]:
        """The pieces that `text` completes; empty where all of it may yet become part of a mark."""
        if self.done:
            return []
        self._reader.feed(text)
        self._step()
        return self._taken()

    def finish(self) -> list[Piece]:
        """What was held back, once no more text will come."""
        self._reader.ended = True
        self._step()
        return self._taken()

    @property
    def n_calls(self) -> int:
        """Calls begun so far."""
        return self._calls.n

    def _step(self) -> None:
        if not self.done:
            try:
                next(self._work)
            except StopIteration:
                self.done = True

    def _taken(self) -> list[Piece]:
        found = merged(self._pieces)
        self._pieces.clear()
        return found

    def _read(self, opened: Marks | None) -> Reading[None]:
        reader = self._reader
        if opened is None:
            reader.keep = reader.at
            yield from reader.space()
            mark = yield from reader.which(m.open for m in MARKS)
            opened = next((m for m in MARKS if m.open == mark), None)
            if opened is None:
                reader.at = reader.keep
            else:
                reader.at += len(opened.open)
            reader.keep = None
        if opened is not None:
            yield from self._reasoning(opened)
        if self._calls.known and (yield from bare_call(self._calls)):
            yield from self._after_call()
        while (opener := (yield from self._text())) is not None:
            if opener in _ANYWHERE:
                self._say_held()
                reader.at += len(opener)
                yield from self._reasoning(_ANYWHERE[opener])
            elif not self.done and (yield from self._call(opener)):
                yield from self._after_call()

    def _reasoning(self, marks: Marks) -> Reading[None]:
        """Read up to the closing mark."""
        self.part = Part.REASONING
        reader = self._reader
        yield from reader.space()
        while (end := reader.text.find(marks.close, reader.at)) < 0:
            self._think(len(reader.text) - begun(reader.text, (marks.close,), reader.at))
            if not (yield from reader.more()):
                self._think(len(reader.text))
                reader.at = len(reader.text)
                return
        self._think(end)
        reader.at = end + len(marks.close)
        self.part = Part.CONTENT
        self._drop_space = True

    def _think(self, end: int) -> None:
        reader = self._reader
        shown = reader.text[reader.at : end].rstrip()
        self._pieces.append(Reasoning(shown))
        reader.at += len(shown)

    def _text(self) -> Reading[str | None]:
        """Let text through up to an opener, at which the reader then stands."""
        reader = self._reader
        while True:
            found = self._search(reader.text, reader.at)
            end = found.start() if found else len(reader.text)
            if found is None and not reader.ended:
                end -= begun(reader.text, self._openers, reader.at)
            self._say(reader.text[reader.at : end])
            reader.at = end
            if found is not None:
                return found[0]
            if not (yield from reader.more()):
                return None

    def _call(self, opener: str) -> Reading[bool]:
        """Read a call; one that cannot be read gives back its opener as text."""
        reader, start = self._reader, self._reader.at
        reader.keep = start
        reader.at += len(opener)
        n = self._calls.n
        self.part = Part.TOOL_CALL
        yield from OPENERS[opener](self._calls, opener)
        self.part = Part.CONTENT
        if self._calls.n > n:
            reader.keep = None
            return True
        assert reader.keep is not None
        reader.at = reader.keep
        reader.keep = None
        self._say(opener)
        reader.at += len(opener)
        return False

    def _after_call(self) -> Reading[None]:
        """White space behind a call is shown only where other text follows."""
        self._held = ""
        self._held = yield from self._reader.space()
        if not self._parallel:
            self._reader.ended = True
            self._reader.at = len(self._reader.text)

    def _say(self, text: str) -> None:
        if self._drop_space:
            text = text.lstrip("\r\n")
        if text:
            self._say_held()
            self._drop_space = False
            self._pieces.append(Content(text))

    def _say_held(self) -> None:
        if self._held:
            self._pieces.append(Content(self._held))
            self._held = ""


def output_parser(
    prompt: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
    parallel: bool = True,
) -> OutputParser:
    """The parser for an answer to `prompt`, of which the end is enough."""
    return OutputParser(opened_by(prompt), tools, parallel)
