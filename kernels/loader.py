"""Kernels of this folder -> code for a card, kept in a folder of files.

A file is named by all that the code depends on: the source with its includes, the defines, the
architecture and NVRTC's version.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels.nvrtc import CompileError, Nvrtc
from kernels.variants import Variant

SOURCES = Path(__file__).resolve().parent
OPTIONS = ("-std=c++17", "--ptxas-options=-v", "-diag-suppress=177")
_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)
_ONCE = "#pragma once\n"
_DIGEST = 32


def expand(file: str) -> str:
    """The text of a source with our headers put in, those with `#pragma once` where first included."""
    seen: set[str] = set()

    def read(path: Path) -> str:
        text = path.read_text(encoding="utf-8")
        if _ONCE in text:
            if path.name in seen:
                return ""
            seen.add(path.name)
        return _INCLUDE.sub(
            lambda match: read(SOURCES / "include" / match[1]), text.replace(_ONCE, "")
        )

    return read(SOURCES / file)


def options(variant: Variant) -> tuple[str, ...]:
    """NVRTC's options for a variant, without the architecture."""
    return OPTIONS + tuple(f"-D{name}={value}" for name, value in variant.defines)


class Loader:
    """Code for compute capability `arch` (89 is 8.9), compiled once and kept in `folder` (None: nowhere).

    `newest` is the newest major version of NVRTC to use.
    """

    def __init__(self, arch: int, folder: Path | None, newest: int = 99) -> None:
        self.arch = arch
        self._folder = folder
        self._newest = newest
        self._nvrtc: Nvrtc | None = None

    @property
    def target(self) -> int:
        """The compute capability that code is made for: the card's, or an older one."""
        return int(self._compiler().target(self.arch)[0].split("_")[1])

    def load(
        self, variants: Iterable[Variant], on_progress: Callable[[int, int], None] | None = None
    ) -> dict[Variant, bytes]:
        """Code of every variant; `on_progress(done, total)` only if something must be compiled.

        Raises `CompileError`.
        """
        wanted = list(dict.fromkeys(variants))
        sources = {file: expand(file) for file in {v.file for v in wanted}}
        code = {v: c for v in wanted if (c := self._cached(v, sources[v.file])) is not None}
        missing = [v for v in wanted if v not in code]
        if not missing:
            return code
        nvrtc = self._compiler()

        def build(variant: Variant) -> bytes:
            source = sources[variant.file]
            result, _ = nvrtc.compile(source, variant.file, self.arch, options(variant))
            self._keep(variant, source, result)
            return result

        with ThreadPoolExecutor(min(len(missing), os.cpu_count() or 1)) as pool:
            for done, (variant, result) in enumerate(
                zip(missing, pool.map(build, missing), strict=True), 1
            ):
                code[variant] = result
                if on_progress is not None:
                    on_progress(done, len(missing))
        return code

    def _compiler(self) -> Nvrtc:
        if self._nvrtc is None:
            self._nvrtc = Nvrtc(self._newest)
        return self._nvrtc

    def _path(self, variant: Variant, source: str) -> Path | None:
        if self._folder is None:
            return None
        parts = (source, options(variant), self.arch, self._compiler().version)
        return self._folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.cubin"

    def _cached(self, variant: Variant, source: str) -> bytes | None:
        path = self._path(variant, source)
        try:
            data = path.read_bytes() if path is not None else b""
        except OSError:
            return None
        digest, result = data[:_DIGEST], data[_DIGEST:]
        return result if result and hashlib.sha256(result).digest() == digest else None

    def _keep(self, variant: Variant, source: str, code: bytes) -> None:
        """Write a file whole or not at all; a folder that cannot be written only costs time."""
        path = self._path(variant, source)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(file.name, path)
        except OSError:
            return


__all__ = ["CompileError", "Loader", "expand", "options"]
