"""SentencePiece's byte-pair encoding: the best-scored merge first, the leftmost among equals.

`tokenizers` ranks pairs instead of pieces, which differs where a piece can be made in two ways.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

SPACE = "\u2581"
"""Stands for a space inside pieces."""

_CACHED_WORDS = 20_000


class GreedyMerges:
    """Encodes text by the scores of a vocabulary's pieces; may be shared by threads."""

    def __init__(
        self,
        pieces: Mapping[str, int],
        scores: Sequence[float],
        unused: frozenset[int],
        byte_ids: Sequence[int] | None,
        unknown_id: int | None,
    ) -> None:
        """`pieces` are the mergeable ones; `scores` are by id; `byte_ids` has 256 ids or is None.

        `unused` pieces may arise on the way but are taken apart again in the end.
        """
        self._pieces = pieces
        self._scores = scores
        self._unused = unused
        self._byte_ids = byte_ids
        self._unknown_id = unknown_id
        # Where no piece goes on behind a word's end, words cannot influence each other.
        crossing = any(SPACE in p.lstrip(SPACE) for p in pieces)
        self._words = re.compile(".+" if crossing else f"{SPACE}*[^{SPACE}]+|{SPACE}+", re.DOTALL)
        self._encode_word = lru_cache(_CACHED_WORDS)(self._merge)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, in which spaces are `SPACE`."""
        ids: list[int] = []
        for word in self._words.findall(text):
            found = self._encode_word(word) if len(word) < 64 else self._merge(word)
            if found and ids and found[0] == ids[-1] == self._unknown_id:
                found = found[1:]
            ids.extend(found)
        return ids

    def _merge(self, word: str) -> tuple[int, ...]:
        pieces, scores = self._pieces, self._scores
        symbols = list(word)
        end = len(symbols)
        before = list(range(-1, end - 1))
        after = list(range(1, end + 1))
        made_of: dict[str, tuple[str, str]] = {}
        heap: list[tuple[float, int, int, str]] = []

        def consider(left: int, right: int) -> None:
            if left >= 0 and right < end:
                piece = symbols[left] + symbols[right]
                found = pieces.get(piece)
                if found is not None:
                    heapq.heappush(heap, (-scores[found], left, right, piece))
                    if found in self._unused:
                        made_of[piece] = symbols[left], symbols[right]

        for i in range(end - 1):
            consider(i, i + 1)
        while heap:
            _, left, right, piece = heapq.heappop(heap)
            # A symbol that was merged since is empty or longer.
            if symbols[left] + symbols[right] != piece or not symbols[left] or not symbols[right]:
                continue
            symbols[left], symbols[right] = piece, ""
            after[left] = after[right]
            if after[left] < end:
                before[after[left]] = left
            consider(before[left], left)
            consider(left, after[left])

        ids: list[int] = []
        stack = [symbol for symbol in reversed(symbols) if symbol]
        while stack:
            symbol = stack.pop()
            found = pieces.get(symbol)
            if found in self._unused and symbol in made_of:
                stack.extend(reversed(made_of[symbol]))
            elif found is not None:
                ids.append(found)
            elif self._byte_ids is not None:
                ids.extend(self._byte_ids[b] for b in symbol.encode())
            elif self._unknown_id is not None and ids[-1:] != [self._unknown_id]:
                ids.append(self._unknown_id)
        return tuple(ids)
