"""Stop strings in streamed text, across the borders of its pieces."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import BadRequest


class StopMatcher:
    """Lets text through up to the stop string that is complete first, and holds back what may become one.

    Of stop strings that are complete at the same character the longest counts. How the text is cut into
    pieces makes no difference.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """`BadRequest` for an empty stop string."""
        if not all(stops):
            raise BadRequest("A stop string is empty, expected at least one character; remove it.")
        # The longest first: it wins where several are complete at once.
        self._stops = sorted(dict.fromkeys(stops), key=len, reverse=True)
        self._borders = [_borders(stop) for stop in self._stops]
        self._matched = [0] * len(self._stops)
        self._held = ""
        self._hit: str | None = None

    def push(self, text: str) -> tuple[str, str | None]:
        """The text that can be shown now, and the stop string that ended it; nothing passes after that."""
        if self._hit is not None:
            return "", self._hit
        if not self._stops:
            return text, None
        seen = self._held + text
        for position, character in enumerate(text, len(self._held) + 1):
            for i, stop in enumerate(self._stops):
                self._matched[i] = self._advance(i, character)
                if self._matched[i] == len(stop) and self._hit is None:
                    self._hit = stop
            if self._hit is not None:
                self._held = ""
                return seen[: position - len(self._hit)], self._hit
        shown = len(seen) - max(self._matched)
        self._held = seen[shown:]
        return seen[:shown], None

    def flush(self) -> str:
        """What was held back, once no more text will come."""
        held, self._held = self._held, ""
        self._matched = [0] * len(self._stops)
        return held

    def _advance(self, i: int, character: str) -> int:
        """How much of stop string `i` the text ends with after `character` (Knuth, Morris, Pratt)."""
        stop, borders, matched = self._stops[i], self._borders[i], self._matched[i]
        while matched and stop[matched] != character:
            matched = borders[matched - 1]
        return matched + 1 if stop[matched] == character else 0


def _borders(text: str) -> list[int]:
    """For each prefix of `text`, the length of its longest proper prefix that also ends it."""
    borders = [0] * len(text)
    length = 0
    for i in range(1, len(text)):
        while length and text[i] != text[length]:
            length = borders[length - 1]
        length += text[i] == text[length]
        borders[i] = length
    return borders
