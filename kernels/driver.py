"""Compiled kernels on a card: loading and launching through the CUDA driver.

CuPy has the memory, streams and graphs; its own launches know no programmatic dependent launch.
"""

from __future__ import annotations

import ctypes
import re
import sys
from typing import Any

_DYNAMIC_SHARED = 8
_SERIALIZATION = 6
_SECTION = re.compile(rb"\.text\.([A-Za-z]\w*)\0")


def kernels_of(code: bytes) -> list[str]:
    """Names of the kernels in machine code; none of PTX."""
    return sorted({name.decode() for name in _SECTION.findall(code)})


class DriverError(Exception):
    """A call of the CUDA driver failed; `code` is its CUresult."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call}: {text}")
        self.code = code


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint) for name in ("x", "y", "z", "threads", "threads_y", "threads_z")),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("n_attributes", ctypes.c_uint),
    )


class Driver:
    """The CUDA driver; a context must be current in each thread that calls it."""

    def __init__(self) -> None:
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            self._lib = ctypes.CDLL(name)
        except OSError as error:
            raise DriverError(name, -1, "not found; install NVIDIA's driver") from error

    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver; raises `DriverError`."""
        code = getattr(self._lib, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self._lib.cuGetErrorString(code, ctypes.byref(text))
            raise DriverError(name, code, (text.value or b"unknown error").decode())

    def load(self, code: bytes) -> Module:
        """A module of machine code or PTX, whose machine code is on the card when this returns.

        By itself the driver brings each kernel there at its first use, when a full card may have no memory.
        """
        handle = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(handle), code)
        module = Module(self, handle)
        for name in kernels_of(code):
            module.kernel(name)
        return module


class Module:
    """Loaded code; its kernels live as long as it does."""

    def __init__(self, driver: Driver, handle: ctypes.c_void_p) -> None:
        self._driver, self._handle = driver, handle

    def kernel(self, name: str, shared: int = 0, most: int = 0) -> Kernel:
        """A kernel with `shared` bytes of dynamic shared memory; others of it may have up to `most`."""
        handle = ctypes.c_void_p()
        self._driver.call("cuModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        most = max(shared, most)
        if most > 32 << 10:  # static memory counts too
            self._driver.call("cuFuncSetAttribute", handle, _DYNAMIC_SHARED, most)
        return Kernel(self._driver, handle, name, shared)

    def fill(self, name: str, data: bytes) -> None:
        """Give a variable of the code its value."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._driver.call(
            "cuModuleGetGlobal_v2",
            ctypes.byref(address),
            ctypes.byref(size),
            self._handle,
            name.encode(),
        )
        if size.value != len(data):
            raise DriverError(name, -1, f"found {size.value} bytes, expected {len(data)}")
        self._driver.call("cuMemcpyHtoD_v2", address, data, size)

    def unload(self) -> None:
        """Give the code back; its kernels are unusable after it."""
        self._driver.call("cuModuleUnload", self._handle)


class Kernel:
    """A kernel to launch, by one thread at a time."""

    def __init__(self, driver: Driver, handle: ctypes.c_void_p, name: str, shared: int) -> None:
        self._driver, self._handle, self.name = driver, handle, name
        dependent = _Attribute(_SERIALIZATION, 0, (ctypes.c_int * 16)(1))
        # A launch takes a small model's host longer than its card, so what can be is made once.
        self._config = _Config(1, 1, 1, 1, 1, 1, shared, None, ctypes.pointer(dependent), 0)
        self._at = ctypes.byref(self._config)
        self._pointers = (ctypes.c_void_p * 0)()

    def launch(
        self,
        stream: int,
        grid: tuple[int, int, int],
        threads: int,
        args: tuple[Any, ...],
        dependent: bool = False,
    ) -> None:
        """Put it on a stream; `args` are ctypes values in the kernel's order.

        `dependent` lets it start before the kernel in front has ended; both must be written for that.
        """
        config, pointers = self._config, self._pointers
        config.x, config.y, config.z = grid
        config.threads, config.stream, config.n_attributes = threads, stream, dependent
        if len(pointers) != len(args):
            pointers = self._pointers = (ctypes.c_void_p * len(args))()
        pointers[:] = [ctypes.addressof(a) for a in args]
        self._driver.call("cuLaunchKernelEx", self._at, self._handle, pointers, None)
