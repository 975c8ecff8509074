"""NVIDIA's run-time compiler, called through ctypes: it needs neither CuPy nor a GPU."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernels.libraries import candidates


class CompileError(Exception):
    """NVRTC is missing, or refused a source; the message holds its log."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What ptxas gave a kernel: registers a thread, bytes of static shared memory, stack and spills."""

    registers: int
    shared: int
    stack: int
    spills: int


def _candidates(newest: int) -> Iterator[str]:
    return candidates(newest, "cuda_nvrtc", "libnvrtc.so.{}", "nvrtc64_{}0_0.dll")


class Nvrtc:
    """A loaded NVRTC, of at most major version `newest` (a driver runs nothing newer than itself)."""

    def __init__(self, newest: int = 99) -> None:
        for path in _candidates(newest):
            try:
                self._lib = ctypes.CDLL(path)
                break
            except OSError:
                continue
        else:
            raise CompileError(
                "NVRTC, the compiler of the GPU kernels, was not found; expected the package"
                " nvidia-cuda-nvrtc-cu12 or nvidia-cuda-nvrtc beside this one. Install the GPU part again."
            )
        self._lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor, n = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(n))
        archs = (ctypes.c_int * n.value)()
        self._call("nvrtcGetSupportedArchs", archs)
        self.version = (major.value, minor.value)
        self.architectures = tuple(sorted(archs))

    def _call(self, name: str, *args: Any) -> None:
        code = getattr(self._lib, name)(*args)
        if code:
            text = self._lib.nvrtcGetErrorString(code).decode()
            raise CompileError(f"{name}: {text}")

    def target(self, arch: int) -> tuple[str, bool]:
        """The -arch value for a card, and whether the result is machine code (else PTX).

        A card that this NVRTC does not know runs the code of an older one of its generation, or PTX.
        """
        older = [a for a in self.architectures if a <= arch]
        if not older:
            raise CompileError(
                f"The card has compute capability {arch / 10}; expected {self.architectures[0] / 10} or more."
            )
        best = older[-1]
        native = best // 10 == arch // 10
        return (f"sm_{best}" if native else f"compute_{best}"), native

    def compile(
        self, source: str, name: str, arch: int, options: tuple[str, ...]
    ) -> tuple[bytes, str]:
        """Machine code (or PTX) and the log; raises `CompileError`."""
        target, native = self.target(arch)
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            source.encode(),
            name.encode(),
            0,
            None,
            None,
        )
        try:
            flags = [f"-arch={target}", *options]
            array = (ctypes.c_char_p * len(flags))(*(f.encode() for f in flags))
            code = self._lib.nvrtcCompileProgram(program, len(flags), array)
            log = self._read("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
            if code:
                raise CompileError(f"{name} for {target}: {log}")
            return self._read("CUBIN" if native else "PTX", program), log
        finally:
            self._lib.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(max(1, size.value))
        self._call(f"nvrtcGet{what}", program, data)
        return data.raw[: size.value]


def resources(log: str) -> dict[str, Resources]:
    """Kernels of a log made with --ptxas-options=-v."""
    found = {}
    pattern = (
        r"Function properties for (\w+)\s+(?:ptxas\s*\.)?\s*(\d+) bytes stack frame,"
        r" (\d+) bytes spill stores, (\d+) bytes spill loads\s+ptxas info\s*: Used (\d+) registers(.*)"
    )
    for name, stack, stores, loads, registers, rest in re.findall(pattern, log):
        shared = re.search(r"(\d+) bytes smem", rest)
        found[name] = Resources(
            int(registers), int(shared[1]) if shared else 0, int(stack), int(stores) + int(loads)
        )
    return found
