"""Texts whose tokens are known: each turn of a chat holds all the former ones again."""

from __future__ import annotations

import re
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator

CHARACTERS = 4 << 20
SHORT = 64  # characters; below that looking up gains little
PIECE = 1024

Encode = Callable[[str, bool], list[int]]


class Remembered:
    """`encode` with what came of the newest longer texts at hand, up to `most` characters; for any thread.

    Behind the first character of each match of `cut` a text may be encoded in two: so texts that begin alike
    share what is known of their beginning.
    """

    def __init__(
        self, encode: Encode, most: int = CHARACTERS, cut: re.Pattern[str] | None = None
    ) -> None:
        self._encode = encode
        self._most = most
        self._cut = cut
        self._known: OrderedDict[tuple[str, bool], array[int]] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def __call__(self, text: str, first: bool) -> list[int]:
        """The ids of `text`; what `first` means is the encoder's."""
        if not SHORT <= len(text) <= self._most // 4:
            return self._encode(text, first)
        ids: list[int] = []
        for piece in self._pieces(text):
            ids += self._ids(piece, first and not ids)
        return ids

    def _pieces(self, text: str) -> Iterator[str]:
        at = 0
        while self._cut and (found := self._cut.search(text, at + PIECE)):
            end = found.start() + 1
            yield text[at:end]
            at = end
        yield text[at:]

    def _ids(self, text: str, first: bool) -> list[int]:
        key = (text, first)
        with self._lock:
            if (known := self._known.get(key)) is not None:
                self._known.move_to_end(key)
        if known is not None:
            return known.tolist()
        ids = self._encode(text, first)
        with self._lock:
            if key not in self._known:
                self._known[key] = array("i", ids)
                self._held += len(text)
            while self._held > self._most:
                (old, _), _ = self._known.popitem(last=False)
                self._held -= len(old)
        return ids

    def forget(self) -> None:
        """Hold no text any more."""
        with self._lock:
            self._known.clear()
            self._held = 0
