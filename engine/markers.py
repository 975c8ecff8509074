"""Finding whole tokens, such as template markers, in text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping


class Markers:
    """Texts that are tokens as they stand; the longest wins where several begin.

    A vocabulary may hold thousands, so texts are looked up by their first character and length.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = {text: token for text, token in ids.items() if text}
        lengths: dict[str, set[int]] = {}
        for text in self._ids:
            lengths.setdefault(text[0], set()).add(len(text))
        self._lengths = {first: sorted(of, reverse=True) for first, of in lengths.items()}
        self._first = re.compile(f"[{re.escape(''.join(self._lengths))}]") if lengths else None
        self._longest = max(map(len, self._ids), default=0)
        self._openings: frozenset[str] | None = None

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Start, end and id of each marker in `text`, in order, none overlapping."""
        position = 0
        while self._first and (start := self._first.search(text, position)):
            at = position = start.start()
            for length in self._lengths[text[at]]:
                token = self._ids.get(text[at : at + length])
                if token is not None:
                    yield at, at + length, token
                    position = at + length
                    break
            else:
                position += 1

    def split(self, text: str) -> Iterator[str | int]:
        """`text` as ids of markers and the non-empty pieces of text between them."""
        done = 0
        for start, end, token in self.find(text):
            if start > done:
                yield text[done:start]
            yield token
            done = end
        if done < len(text):
            yield text[done:]

    def encode(self, text: str, encode: Callable[[str], list[int]]) -> list[int]:
        """The ids of `text`, in which `encode` makes those of what is between the markers."""
        ids: list[int] = []
        for piece in self.split(text):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids += encode(piece)
        return ids

    def break_up(self, text: str, shield: str, keep: frozenset[str] = frozenset()) -> str:
        """`text` with `shield` inside every marker but those in `keep`, and in one begun at its end.

        What follows in a prompt can then not complete a marker that the text begins.
        """
        if self._first is None or not self._first.search(text):
            return text
        parts: list[str] = []
        done = 0
        for start, end, _ in self.find(text):
            if text[start:end] not in keep:
                # Behind each character: another marker may begin inside and end beyond this one.
                parts += text[done:start], *(c + shield for c in text[start:end])
                done = end
        parts.append(text[done:])
        broken = "".join(parts)
        return broken + shield if self._may_go_on(text) else broken

    def _may_go_on(self, text: str) -> bool:
        if self._openings is None:
            self._openings = frozenset(t[:n] for t in self._ids for n in range(1, len(t)))
        end = text[-self._longest :]
        return any(end[-n:] in self._openings for n in range(1, len(end) + 1))
