"""Bytes of a card on their way to ordinary memory."""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from engine.ops.cuda_device import Card

SIZE = 16 << 20
COUNT = 3


@dataclass(slots=True, eq=False)
class _Buffer:
    array: NDArray[np.uint8]
    owner: Any
    filled: Any  # an event behind the copy to it


class Outgoing:
    """Copies that nobody has to wait for: through pinned buffers, which a thread empties.

    A copy straight to ordinary memory holds up the stream, and the thread that asks for it, until the system
    has found room for its pages, which takes several times as long as the transfer.
    """

    def __init__(self, card: Card) -> None:
        self._card = card
        self._free: SimpleQueue[_Buffer] = SimpleQueue()
        self._full: SimpleQueue[tuple[_Buffer, NDArray[np.uint8]] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._error: Exception | None = None

    def send(self, to: NDArray[np.uint8], source: int, pitch: int, size: int) -> None:
        """Fill `to` with pieces of `size` bytes, `pitch` bytes apart on the card, in the stream's order.

        It is filled once `settle` returns; what is on the card may change at once.
        """
        step = SIZE // size
        if step == 0:
            self._card.copy_rows(to.ctypes.data, size, source, pitch, size, len(to) // size)
            self._card.stream.synchronize()
            return
        self._start()
        for first in range(0, len(to), step * size):
            part, buffer = to[first : first + step * size], self._free.get()
            at = source + first // size * pitch
            self._card.copy_rows(buffer.array.ctypes.data, size, at, pitch, size, len(part) // size)
            buffer.filled.record(self._card.stream)
            self._full.put((buffer, part))

    def settle(self) -> None:
        """Wait until all that was sent is there; raises what kept it from coming."""
        if self._thread is None:
            return
        for buffer in [self._free.get() for _ in range(COUNT)]:
            self._free.put(buffer)
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """End the thread, behind what was sent."""
        if self._thread is not None:
            self._full.put(None)
            self._thread.join()
        self._thread = None
        self._free = SimpleQueue()

    def _start(self) -> None:
        if self._thread is not None:
            return
        for _ in range(COUNT):
            self._free.put(_Buffer(*self._card.pinned(SIZE), self._card.mark()))
        self._thread = Thread(target=self._empty, name="outgoing", daemon=True)
        self._thread.start()

    def _empty(self) -> None:
        while (job := self._full.get()) is not None:
            buffer, to = job
            try:
                buffer.filled.synchronize()
                to[:] = buffer.array[: len(to)]
            except Exception as error:  # told by `settle`: whoever sent it is elsewhere by now
                self._error = error
            self._free.put(buffer)
