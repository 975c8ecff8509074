"""Slots of recurrent state: who holds which, and which prefixes they remember. Integers only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Sequence as Seq

from engine.pages import Node

CHECKPOINT_TOKENS = 1024


class StateSlots:
    """A running sequence holds one slot; the others keep checkpoints of prefixes.

    A checkpoint is the state after the last token of a node of the prefix index. The least recently used one
    goes when a slot is needed.
    """

    def __init__(
        self,
        n_slots: int,
        evict: Callable[[Node], None] | None = None,
        spacing: int = CHECKPOINT_TOKENS,
    ) -> None:
        """`evict` hears of a node before the slot with its state gets another one. In a prompt there is a
        checkpoint every `spacing` tokens."""
        self.spacing = spacing
        self.evict, self.n_slots = evict, n_slots
        self._free = list(range(n_slots - 1, -1, -1))
        self._checkpoints: OrderedDict[Node, None] = OrderedDict()

    @property
    def n_checkpoints(self) -> int:
        """Slots that remember a prefix."""
        return len(self._checkpoints)

    def take(self) -> int | None:
        """A slot with undefined content, or None when all are held by sequences."""
        if self._free:
            return self._free.pop()
        if not self._checkpoints:
            return None
        node = next(iter(self._checkpoints))
        if self.evict is not None:
            self.evict(node)
        self.forget(node)  # does nothing where that came of it already
        return self._free.pop()

    def give(self, slot: int) -> None:
        """A sequence's slot is not needed any more."""
        assert slot not in self._free and all(slot != node.slot for node in self._checkpoints)
        self._free.append(slot)

    def remember(self, node: Node) -> int | None:
        """A slot to copy the state after `node` into; None when it is known or there is no room."""
        if node.slot >= 0:
            self._checkpoints.move_to_end(node)
            return None
        slot = self.take()
        if slot is not None:
            self.adopt(node, slot)
        return slot

    def adopt(self, node: Node, slot: int) -> None:
        """A slot that a sequence held has the state after `node` from now on."""
        assert node.slot < 0
        node.slot = slot
        self._checkpoints[node] = None

    def touch(self, node: Node) -> None:
        """The checkpoint of a node is used now."""
        if node.slot >= 0:
            self._checkpoints.move_to_end(node)

    def forget(self, node: Node) -> None:
        """The node is not known any more, or its checkpoint is superseded."""
        if node.slot >= 0:
            del self._checkpoints[node]
            self._free.append(node.slot)
            node.slot = -1

    def check(self, held: Seq[int], known: Seq[Node]) -> None:
        """Assert that each slot is free, `held` by a sequence, or a checkpoint of a `known` node."""
        assert set(known) == set(self._checkpoints)
        slots = [*self._free, *held, *(node.slot for node in known)]
        assert sorted(slots) == list(range(self.n_slots)), slots
