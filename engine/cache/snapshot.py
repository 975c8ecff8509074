"""A prefix taken out of a model: what a store keeps, and what a model of the same fingerprint takes in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Blob = NDArray[np.uint8]
"""Bytes (n,) of one page, or of one recurrent state, of all layers, as the model's device lays them out."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Keys and values of all `tokens` but those of the `first` pages, and the recurrent state after the last.

    `pages` has a blob for each `page_tokens` tokens, the last one perhaps for fewer; `state` is there for
    models that have one. `fingerprint` stands for all that decides over the blobs but the tokens: the model's
    weights, its draft's, the device's layout and precision. Only a model with the same may take it in.
    """

    fingerprint: bytes
    page_tokens: int
    tokens: tuple[int, ...]
    pages: tuple[Blob, ...]
    state: Blob | None = None
    first: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of all blobs."""
        return sum(page.nbytes for page in self.pages) + (
            self.state.nbytes if self.state is not None else 0
        )


def page_names(fingerprint: bytes, page_tokens: int, tokens: Seq[int]) -> list[bytes]:
    """A name (32 bytes) for each full page of `tokens`, made from the page's tokens and all before them.

    Who finds something by its name is to compare the tokens themselves, so that a collision is no hit.
    """
    names, name = [], fingerprint
    ids = np.asarray(tokens, "<i4")
    for end in range(page_tokens, len(ids) + 1, page_tokens):
        name = hashlib.blake2b(
            name + ids[end - page_tokens : end].tobytes(), digest_size=32
        ).digest()
        names.append(name)
    return names


class Archive(Protocol):
    """Keeps snapshots outside this process; may be called from any thread, and raises nothing."""

    def reaches(self, fingerprint: bytes, page_tokens: int, tokens: Seq[int]) -> int:
        """How many leading pages of `tokens` it could give, as far as can be told without reading them.

        With a recurrent model only up to a page that has a state.
        """
        ...

    def read(
        self, fingerprint: bytes, page_tokens: int, tokens: Seq[int], first: int
    ) -> Snapshot | None:
        """The longest prefix of `tokens` in full pages that it has, from page `first` on; None where it is
        not longer than these."""
        ...

    def write(self, snapshot: Snapshot, then: Callable[[], None] = lambda: None) -> None:
        """Keep a snapshot of full pages, of which the first may be left out where they are here already.

        Returns at once, writes later what it lacks, and then calls `then` on a thread of its own, unless it
        dropped the snapshot.
        """
        ...
