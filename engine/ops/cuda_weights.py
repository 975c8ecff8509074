"""Weights on a card: one piece of memory for all of a file.

CUDA rounds every allocation up to 2 MiB, so tensors that lie alone take 5 to 35 % more.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.gguf import Tensor
from engine.ops.cuda_device import Weight
from engine.ops.cuda_recorder import Recorder
from kernels.variants import F16


class WeightOps(Recorder):
    """`Ops.expect` and `Ops.upload`."""

    formats: set[int]
    _free_room: tuple[int, int]

    def expect(self, tensors: Iterable[Tensor]) -> None:
        self.card.use()
        size = sum(map(self.card.room_of, tensors))
        address = self.card.allocate(size, {"weights": size})
        self._own.append(address)
        self._free_room = address, address + size

    def upload(self, tensor: Tensor) -> Weight:
        weight = self.card.upload(tensor, self._place_weight)
        self._memory["model"] += weight.size
        self.formats.add(tensor.type.id)
        if weight.type_id in self.distrust.int8:
            self._short_form = F16
        return weight

    def _place_weight(self, size: int, name: str) -> int:
        """Where a tensor goes: into the room that was made, else into memory of its own."""
        address, end = self._free_room
        if address + size <= end:
            self._free_room = address + size, end
            return address
        address = self.card.allocate(size, {"weights so far": self._memory["model"], name: size})
        self._own.append(address)
        return address
