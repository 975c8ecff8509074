"""The threads that run a program, and the code that they run."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import mmap
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from kernels.cpu import program
from kernels.cpu.compiler import fingerprint
from kernels.cpu.layout import ASLEEP_STEP, Head

Operation = Callable[..., None]
"""A function of integers; what an instruction begins with takes those that `instructions` says."""

_HUGE = 2 << 20


def aligned(n_bytes: int) -> NDArray[np.uint8]:
    """Zeroed bytes that start at a cache line, on huge pages where the system has them.

    Reading weights from small pages is 1.7 times slower on the machine where this was measured. Raises
    `MemoryError`.
    """
    if n_bytes < _HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        raw = np.zeros(n_bytes + 64, np.uint8)
        start = -raw.ctypes.data % 64
        return raw[start : start + n_bytes]
    try:
        memory = mmap.mmap(-1, n_bytes + _HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as e:
        raise MemoryError from e
    with contextlib.suppress(OSError):  # a kernel without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(memory, np.uint8)
    start = -raw.ctypes.data % _HUGE
    return raw[start : start + n_bytes]


class Arena:
    """Hands out zeroed, aligned bytes from few large pieces, so that small tensors share huge pages."""

    _PIECE = 64 << 20

    def __init__(self) -> None:
        self._piece = aligned(0)
        self._used = 0

    def take(self, n_bytes: int) -> NDArray[np.uint8]:
        """`n_bytes` that live as long as anything refers to them; raises `MemoryError`."""
        if n_bytes > self._PIECE // 4:
            return aligned(n_bytes)
        if self._used + n_bytes > len(self._piece):
            self._piece, self._used = aligned(self._PIECE), 0
        taken = self._piece[self._used : self._used + n_bytes]
        self._used += -(-n_bytes // 64) * 64
        return taken


def cache_folder(parent: Path | None) -> Path | None:
    """The folder inside `parent` for compiled code of this version and processor; None if not writable."""
    if parent is None:
        return None
    folder = parent / f"cpu-{fingerprint()}"
    probe = folder / f"probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError:
        return None
    return folder


@functools.cache
def _entry(folder: Path | None) -> Callable[[int, int, int], int]:
    """`program.enter`, compiled; it holds no lock of Python while it runs."""
    i = types.int64
    return _compile(functools.partial(numba.njit, i(i, i, i), nogil=True), program.enter, folder)


@functools.cache
def _operation(function: Operation, folder: Path | None) -> Any:
    """An operation, compiled; `address` is what an instruction begins with."""
    signature = types.void(*[types.int64] * len(inspect.signature(function).parameters))
    compile_it = functools.partial(numba.cfunc, signature, error_model="numpy")
    return _compile(compile_it, function, folder)


def _compile(
    decorator: Callable[..., Any], function: Callable[..., Any], folder: Path | None
) -> Any:
    config: Any = numba.config
    before = config.CACHE_DIR
    for again in (False, True) if folder is not None else ():
        config.CACHE_DIR = str(folder)
        try:
            return decorator(cache=True)(function)
        except (OSError, RuntimeError):  # a full disk, or a folder lost meanwhile: do without
            break
        except (
            Exception
        ):  # numba reads a file of its cache that a full disk or a power cut left cut off
            if again:
                break
            _forget(folder)
        finally:
            config.CACHE_DIR = before
    return decorator()(function)


def _forget(folder: Path | None) -> None:
    """Remove numba's part of the cache."""
    for file in folder.rglob("*.nb[ci]") if folder is not None else ():
        with contextlib.suppress(OSError):
            file.unlink()


def _give_way() -> int:
    """The address of the system's function that lets other threads run."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class Runtime:
    """`threads` threads for one program; the caller of `run` is the first of them."""

    def __init__(self, threads: int, folder: Path | None) -> None:
        self._folder = folder
        self._enter = _entry(folder)
        self._bytes = aligned(8 * (Head.ASLEEP + ASLEEP_STEP * threads + 8))
        self.header = self._bytes.view(np.int64)
        self.header[Head.THREADS] = threads
        self.header[Head.YIELD] = _give_way()
        self._address = self.header.ctypes.data
        self._bells: list[threading.Semaphore] = []
        self._threads: list[threading.Thread] = []
        self._process = 0

    def operation(self, function: Operation) -> int:
        """The address of an operation, compiled when it is first asked for."""
        return int(_operation(function, self._folder).address)

    def run(self, begin: int, end: int, step: NDArray[np.int64] | None = None) -> None:
        """Run instructions [begin, end) of the program; `ValueError` if the header's step is bad.

        `step` is a header from which the program and all of its variables are taken first.
        """
        if step is not None:
            self.header[Head.PROGRAM] = step[Head.PROGRAM]
            self.header[Head.M : Head.ASLEEP] = step[Head.M : Head.ASLEEP]
        if self._process != os.getpid():  # the first run, or this is a fork without the threads
            self._start()
        self.header[Head.BEGIN], self.header[Head.END] = begin, end
        asleep = self._enter(self._address, program.BEGIN, 0)
        if asleep < 0:
            raise ValueError("a token, position, sequence, page or logit row is out of its range")
        if asleep:
            for tid, bell in enumerate(self._bells, 1):
                place = Head.ASLEEP + ASLEEP_STEP * tid + 1
                if self.header[place]:
                    self.header[place] = 0
                    bell.release()
        self._enter(self._address, 0, 0)

    def close(self) -> None:
        """End the threads."""
        if self._process == os.getpid():
            self.header[Head.STOP] = 1
            self.header[Head.EPOCH] += 1
            for bell in self._bells:
                bell.release()
            for thread in self._threads:
                thread.join()
        self._threads = []

    def _start(self) -> None:
        self._process = os.getpid()
        n = int(self.header[Head.THREADS])
        self.header[Head.EPOCH] = self.header[Head.ARRIVED] = 0
        self.header[Head.ASLEEP :] = 0
        self._bells = [threading.Semaphore(0) for _ in range(1, n)]
        self._threads = [
            threading.Thread(target=self._live, args=(tid, bell), name=f"cpu-{tid}", daemon=True)
            for tid, bell in enumerate(self._bells, 1)
        ]
        for thread in self._threads:
            thread.start()

    def _live(self, tid: int, bell: threading.Semaphore) -> None:
        epoch = 0
        while True:
            epoch = self._enter(self._address, tid, epoch)
            if epoch < 0:
                return
            bell.acquire()
