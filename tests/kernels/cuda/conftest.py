"""Kernels that run on the processor, thread by thread, in the place of a card's."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.ops import cuda_device
from kernels.loader import SOURCES
from kernels.variants import Variant
from tests.kernels.cuda.on_host import build
from tests.kernels.cuda.test_cuda_ops_without_card import Notes, notes  # noqa: F401

HERE = Path(__file__).parent
FILES = (
    "rope.cu", "attention.cu", "attention_row.cu", "flash.cu", "norm.cu", "swiglu.cu", "delta.cu",
    "delta_rows.cu", "delta_chunk.cu", "recur.cu", "ranks.cu",
)  # fmt: skip
"""Whose kernels run; the others are only noted."""
NAMES = re.compile(r"__global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\(")
DRIVER = """
#include <utility>
template <typename... A, size_t... I>
static void call(void (*f)(A...), void** p, std::index_sequence<I...>) {
  f(*(std::remove_cv_t<std::remove_reference_t<A>>*)p[I]...);
}
template <typename... A>
static void call(void (*f)(A...), void** p) { call(f, p, std::index_sequence_for<A...>()); }
"""
ENTRY = """
extern "C" void run_{0}(void** p, const int* grid, int n) {{
  launch({{grid[0], grid[1], grid[2]}}, n, [&] {{ call({0}, p); }});
}}
"""


def _text(file: str, seen: set[str]) -> str:
    """A source with its headers, but for ptx.cuh."""
    lines = []
    for line in (SOURCES / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("#include"):
            name = line.split('"')[1]
            if name != "ptx.cuh" and name not in seen:
                seen.add(name)
                lines.append(_text(f"include/{name}", seen))
        elif not line.startswith("#pragma once"):
            line = line.replace("extern __shared__", "extern")
            lines.append(line.replace("__CUDA_ARCH__ >=", "0 >="))
    return "\n".join(lines)


def compiled(variant: Variant, folder: Path) -> ctypes.CDLL:
    name = "-".join([variant.file, *(str(n) for _, n in variant.defines)])
    library = folder / f"{name}.so"
    if not library.exists():
        text = f'#include "{HERE / "lockstep.h"}"\n' + _text(variant.file, set())
        entries = "".join(ENTRY.format(kernel) for kernel in NAMES.findall(text))
        source = folder / f"{name}.cpp"
        source.write_text(text + DRIVER + entries, encoding="utf-8")
        defines = [f"-D{key}={value}" for key, value in variant.defines]
        return build(source, library, *defines)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def card(notes: Notes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Notes:  # noqa: F811
    """The card that takes notes, which now also computes what `FILES` hold."""

    class Kernel:
        def __init__(self, variant: Variant, name: str) -> None:
            self.variant, self.name = variant, name

        def launch(
            self, stream: int, grid: Any, threads: int, args: Any, dependent: bool = False
        ) -> None:
            notes.launches.append((self.name, grid, threads, len(args)))
            if self.variant.file not in FILES:
                return
            pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
            library = compiled(self.variant, folder)
            getattr(library, f"run_{self.name}")(pointers, (ctypes.c_int * 3)(*grid), threads)

    def load(variant: Variant) -> Any:
        notes.allow()
        return SimpleNamespace(kernel=lambda name, shared=0, most=0: Kernel(variant, name))

    monkeypatch.setattr(cuda_device, "Driver", lambda: SimpleNamespace(load=load))
    monkeypatch.setattr(
        cuda_device.Loader, "load", lambda self, wanted, progress: {v: v for v in wanted}
    )
    return notes
