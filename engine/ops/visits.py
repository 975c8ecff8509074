"""In which order a recurrent layer goes through the rows of a tree, so that it seldom has to go back.

A row without children needs the state in front of it and leaves none, so it comes right behind its parent.
Then the first of the other children goes on from where its parent is; the others have to go back later.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAF, BACK = 1 << 5, 1 << 6
"""kernels/recur.cu: beside a row's number."""


def visits(parents: Sequence[int]) -> list[int]:
    """The rows of a tree of up to 32 in order: row, `LEAF` where no state is left, and `BACK` where the state
    in front of it is not that of the row before.

    `parents` are the rows' own, -1 where they follow what is before the tree.
    """
    n = len(parents)
    leaves: list[list[int]] = [[] for _ in range(n + 1)]  # the last one those of -1
    inner: list[list[int]] = [[] for _ in range(n + 1)]
    goes_on = set(parents)
    for row, parent in enumerate(parents):
        if row in goes_on:
            inner[parent].append(row)
        else:
            leaves[parent].append(row | LEAF)
    found: list[int] = []
    later: list[int] = []
    row = -1
    while True:
        found += leaves[row]
        children = inner[row]
        later += [child | BACK for child in children[1:]]
        if not (children or later):
            return found
        found.append(children[0] if children else later.pop())
        row = found[-1] % LEAF
