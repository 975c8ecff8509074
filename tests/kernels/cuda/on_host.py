"""Builds kernel sources with the system's C++ compiler, to run them on the processor."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

from engine.ops.cuda_device import codebook
from engine.quants import QuantType

FLAGS = ("-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-w")


def build(source: Path, library: Path, *flags: str) -> ctypes.CDLL:
    """The library made of a source file, loaded; `flags` come behind `FLAGS`."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert compiler, "A C++ compiler is needed to run kernels on the processor."
    command = [compiler, *FLAGS, *flags, "-o", str(library), str(source)]
    subprocess.run(command, check=True, timeout=120)
    return ctypes.CDLL(str(library))


def fill_codebook(library: ctypes.CDLL, kind: QuantType) -> None:
    """Put a format's codebook where its kernels look it up."""
    book = codebook(kind)
    (ctypes.c_uint16 * book.size).in_dll(library, "codebook")[:] = book.tolist()
