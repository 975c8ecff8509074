"""DDTree: a tree of guesses from what a block drafter says of each position, the likeliest paths first."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.ops.ranking import ranked
from engine.types import Draft

BRANCHES = 8
"""Likeliest tokens of a position that a tree takes its nodes from."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """For each of L positions the k likeliest tokens: `ids` (L, k) and `log_p` (L, k), falling."""

    ids: NDArray[np.integer]
    log_p: Floats


def likeliest(
    logits: NDArray[np.float32], nodes: int, temperature: float = 1.0, branches: int = BRANCHES
) -> Candidates:
    """The likeliest tokens of each of `logits` (L, V), as many as a tree of `nodes` needs.

    A tree of up to L nodes is a chain and needs the first of each.
    """
    k = min(branches, logits.shape[1]) if nodes > len(logits) else 1
    found = ranked(logits.astype(np.float64) / temperature, k)
    return Candidates(found.ids, found.log_p)


def grow(found: Candidates, nodes: int, seed: bool = True) -> tuple[Draft, Floats]:
    """The `nodes` likeliest continuations as a tree, and the log-probability of each one's path.

    All branches share a position's distribution. With `seed` the chain of first choices comes first, whole
    even where other nodes are likelier. Of equals the one that was found first goes first.
    """
    depth, width = found.ids.shape
    log_p = found.log_p
    tokens: list[int] = []
    parents: list[int] = []
    weights: list[float] = []
    heap: list[tuple[float, int, int, int, int]] = []  # (-weight, order, parent, position, rank)
    order = itertools.count()

    def offer(weight: float, parent: int, position: int, rank: int) -> None:
        heapq.heappush(heap, (-weight, next(order), parent, position, rank))

    def add(weight: float, parent: int, position: int, rank: int) -> None:
        tokens.append(int(found.ids[position, rank]))
        parents.append(parent)
        weights.append(weight)

    if seed:
        weight = 0.0
        for i in range(min(depth, nodes)):
            weight += float(log_p[i, 0])
            add(weight, i - 1, i, 0)
            if width > 1:
                offer(weight - log_p[i, 0] + log_p[i, 1], i - 1, i, 1)
    elif depth:
        offer(float(log_p[0, 0]), -1, 0, 0)
    while heap and len(tokens) < nodes:
        minus, _, parent, position, rank = heapq.heappop(heap)
        weight = -minus
        add(weight, parent, position, rank)
        if rank + 1 < width:
            sibling = weight - log_p[position, rank] + log_p[position, rank + 1]
            offer(sibling, parent, position, rank + 1)
        if position + 1 < depth:
            offer(weight + log_p[position + 1, 0], len(tokens) - 1, position + 1, 0)
    return Draft(tuple(tokens), tuple(parents)), np.array(weights)
