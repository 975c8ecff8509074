"""Mutated files: a clean error or a readable model, never a crash, a hang or a large allocation."""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import open_model
from engine.library import inspect
from tests.engine.gguf_writer import (
    ARRAY,
    BOOL,
    F32,
    F64,
    I8,
    STRING,
    U32,
    U64,
    gguf,
    pair,
    tensor,
)

CASES = Path(__file__).parents[1] / "fixtures" / "gguf"
SEEDS = [
    (CASES / "h01_valid_v3_align64.gguf").read_bytes(),
    gguf(
        [
            pair("general.architecture", STRING, "llama"),
            pair("general.alignment", U32, 32),
            pair("llama.context_length", U32, 2048),
            pair("llama.rope.freq_base", F32, 1e4),
            pair("b", BOOL, 1),
            pair("d", F64, 0.1),
            pair("u", U64, 2**63),
            pair("i", I8, -1),
            pair("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "", "Ġb", "\n"])),
            pair("nested", ARRAY, (ARRAY, [(U32, [1, 2]), (STRING, ["x"])])),
        ],
        [tensor("a", [4, 2]), tensor("q", [256, 2], 12, 32)],
        bytes(range(32)) + bytes(288),
    ),
]
NUMBERS = [0, 1, 2, 7, 31, 255, 2**16, 2**31 - 1, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A sound file with some bytes, numbers or lengths changed, cut out, doubled or cut off."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["byte", "u32", "u64", "cut", "double", "end"])):
            case "byte":
                data[at] = draw(st.integers(0, 255))
            case "u32":
                data[at : at + 4] = struct.pack("<I", draw(st.sampled_from(NUMBERS)) & 0xFFFFFFFF)
            case "u64":
                data[at : at + 8] = struct.pack("<Q", draw(st.sampled_from(NUMBERS)))
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 40))]
            case "end":
                del data[at:]
        if not data:
            break
    return bytes(data)


def check(data: bytes) -> None:
    """Open, and touch all that was promised; the errors of damaged files are the only ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        path.write_bytes(data)
        with contextlib.suppress(ModelFileError, UnsupportedModel), open_model(path) as file:
            assert isinstance(file.quant, str) and file.n_params >= 0 and file.name
            for tensor_ in file.tensors.values():
                assert tensor_.data.nbytes <= len(data)
                if tensor_.type.can_dequantize:
                    assert tensor_.dequantize().shape == tensor_.shape
            str(file.meta).encode("utf-8")
        entry = inspect(path)
        assert (entry.kind == "broken") <= bool(entry.problem)


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_mutated_files(data: bytes) -> None:
    check(data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_after_the_magic(data: bytes) -> None:
    check(b"GGUF" + struct.pack("<I", 3) + data)


def test_every_place_where_a_file_can_be_cut() -> None:
    for size in range(len(SEEDS[1])):
        check(SEEDS[1][:size])


def test_every_number_of_the_header_at_its_largest() -> None:
    header = SEEDS[1].index(b"q" + struct.pack("<I", 2)) + 40
    for at in range(4, header):
        data = bytearray(SEEDS[1])
        data[at : at + 8] = b"\xff" * 8
        check(bytes(data))


@pytest.mark.parametrize("n", [2**20, 2**31, 2**60])
@pytest.mark.parametrize("of", [0, 4, STRING, ARRAY, 10])
def test_no_allocation_by_a_count_that_is_not_there(tmp_path: Path, of: int, n: int) -> None:
    """A megabyte of file claims up to 2^60 items; a tenth of the real bytes more is all that may go."""
    path = tmp_path / "m.gguf"
    body = struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", ARRAY, of, n)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + body + bytes(1 << 18))
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelFileError):
            open_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.skipif(os.name == "nt", reason="the file would take its whole size on the disk")
def test_a_sparse_file_of_many_gigabytes_with_no_sense(tmp_path: Path) -> None:
    """Counts that the size of the file would allow, but no sound header has."""
    path = tmp_path / "m.gguf"
    body = struct.pack("<Q", 1) + b"a" + struct.pack("<IIQ", ARRAY, 0, 2**33)
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + body)
        file.truncate(2**34)
    with pytest.raises(ModelFileError, match="count"):
        open_model(path)


def test_zeros_dequantize_to_zeros() -> None:
    """The seeds are sound: what `check` swallows in mutants does not hide in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        path.write_bytes(SEEDS[1])
        with open_model(path) as file:
            assert file.meta["nested"] == [[1, 2], ["x"]] and file.meta["u"] == 2**63
            assert np.count_nonzero(file.tensors["q"].dequantize()) == 0
            assert file.tensors["a"].data.tobytes() == bytes(range(32))
