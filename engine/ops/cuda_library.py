"""Matrix products of NVIDIA's cuBLAS, where it is installed: fastest for prompts on data-centre cards.

Whether it is, is measured once for each shape on each card.
"""

from __future__ import annotations

import ctypes
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.files import write_atomically
from engine.ops.cuda_device import Card
from kernels.libraries import candidates

log = logging.getLogger(__name__)

WORKSPACE = 32 << 20
OWN = 64 << 20
"""Bytes that a handle takes itself, on an H200."""
_TRANSPOSED, _PLAIN = 1, 0
_F32, _F16 = 0, 2
_COMPUTE_F32 = 68
_DEFAULT = -1
_REPEATS = 3

Shape = tuple[int, int, int, int]
"""Format of the weights, their rows and columns, and batch rows."""


class LibraryError(RuntimeError):
    """A call of cuBLAS failed."""


class Library:
    """cuBLAS on a card's stream; what was measured is kept in `folder`."""

    def __init__(self, lib: Any, card: Card, workspace: int, folder: Path | None) -> None:
        self._lib, self._card = lib, card
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(card.stream.ptr))
        self._call(
            "cublasSetWorkspace_v2", self._handle, ctypes.c_void_p(workspace), ctypes.c_size_t(WORKSPACE)
        )  # fmt: skip
        self._path = folder / f"products-{card.arch}.json" if folder else None
        self._key = f"{card.name}, {card.processors}"
        self._faster = self._read()
        self._failed = False

    @classmethod
    def of(cls, card: Card, allocate: Callable[[int], int], folder: Path | None) -> Library | None:
        """None where there is none that the driver can run."""
        for path in candidates(card.driver // 1000, "cublas", "libcublas.so.{}", "cublas64_{}.dll"):
            try:
                lib = ctypes.CDLL(path)
            except OSError:
                continue
            try:
                return cls(lib, card, allocate(WORKSPACE), folder)
            except (LibraryError, AttributeError) as error:
                log.info("cuBLAS is not used: %s", error)
                return None
        return None

    def _call(self, name: str, *args: Any) -> None:
        if code := getattr(self._lib, name)(*args):
            raise LibraryError(f"{name} failed with status {code}")

    def close(self) -> None:
        """Give its handle back."""
        if self._handle:
            self._lib.cublasDestroy_v2(self._handle)
            self._handle = ctypes.c_void_p()

    def multiply(
        self, weights: int, rows: int, y: int, n: int, m: int, k: int, stride: int, scale: float
    ) -> None:
        """y (m, n), float32, `stride` apart = scale * rows (m, k) @ weights (n, k).T, both f16."""
        self._call(
            "cublasGemmEx", self._handle, _TRANSPOSED, _PLAIN, n, m, k,
            ctypes.byref(ctypes.c_float(scale)), ctypes.c_void_p(weights), _F16, k,
            ctypes.c_void_p(rows), _F16, k, ctypes.byref(ctypes.c_float(0.0)),
            ctypes.c_void_p(y), _F32, stride, _COMPUTE_F32, _DEFAULT,
        )  # fmt: skip
        if self._card.timeline is not None:
            self._card.timeline.append(("cublas", self._card.event()))

    def is_faster(
        self, shape: Shape, library: Callable[[], None], fused: Callable[[], None]
    ) -> bool:
        """Whether `library` takes less time than `fused` at this shape; both are run when it is not known.

        A call of `library` that failed is never repeated: cuBLAS loads its kernels at their first use, for
        which a full card has no memory.
        """
        if self._failed:
            return False
        type_id, n, k, rows = shape
        known = f"{self._key}: {type_id} {n}x{k} {1 << (rows - 1).bit_length()}"
        if known not in self._faster:
            times = []
            for run in (library, fused):
                run()
                first = self._card.event()
                for _ in range(_REPEATS):
                    run()
                last = self._card.event()
                last.synchronize()
                times.append(self._card.seconds(first, last))
            self._faster[known] = times[0] < times[1]
            self._keep()
        return self._faster[known]

    def gave_up(self, error: LibraryError) -> None:
        """Leave products to the fused kernels from now on."""
        log.warning("cuBLAS is not used any more: %s", error)
        self._failed = True

    def _read(self) -> dict[str, bool]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8")) if self._path else {}
        except (OSError, ValueError):
            return {}
        return (
            {k: v for k, v in found.items() if isinstance(v, bool)}
            if isinstance(found, dict)
            else {}
        )

    def _keep(self) -> None:
        if self._path is None:
            return
        try:
            write_atomically(self._path, json.dumps(self._faster, indent=0).encode())
        except OSError as error:
            log.info("Measured products are not kept: %s", error)
