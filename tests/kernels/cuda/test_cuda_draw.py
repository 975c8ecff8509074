"""What is told to a card of how it is to choose tokens, and the launches for that."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace

import numpy as np

from engine.ops import cuda_draw
from engine.ops.base import MOST_CHOSEN
from engine.ops.choosing import Changes, Choice, Penalties
from engine.ops.cuda import CudaOps
from kernels.loader import SOURCES
from tests.kernels.cuda.test_cuda_ops_without_card import Notes, notes, parameters, record, step

__all__ = ["notes"]


def test_what_is_told_of_choices_is_as_the_kernels_read_it(notes: Notes) -> None:
    source = (SOURCES / "sample.cu").read_text(encoding="utf-8")
    for name, fields in (("Choice", cuda_draw.CHOICE), ("Change", cuda_draw.CHANGE)):
        body = re.search(rf"struct {name} \{{(.*?)\}};", source, re.DOTALL)
        assert body
        declared = [
            (name.strip(), np.dtype({"int": np.int32, "double": np.float64}[kind]))
            for kind, names in re.findall(r"(int|double) ([^;]+);", body[1])
            for name in names.split(",")
        ]
        assert declared == [(n, fields[n]) for n in fields.names or ()]


def test_drawn_tokens_need_two_more_launches(notes: Notes) -> None:
    ops = CudaOps()
    record(ops, ("Q4_K", "Q4_K", "Q4_K"))
    ops.run(step(3, 3))
    notes.launches.clear()
    ids, counts = np.array([4, 9], np.int32), np.array([2, 0], np.int32)
    changes = Changes(ids, counts, np.array([0.5, -1.0]), Penalties(1.2, 0.3, 0.1), -2)
    may = np.packbits(np.arange(90) % 2 > 0, bitorder="little")
    choices = [
        Choice(90),
        Choice(90, 40, 0.8, 0.95, 0.05, 0.25, changes),
        Choice(90, 1, mask=lambda: may),
    ]
    launched = ops.launch(replace(step(3, 3), choices=choices))
    assert [name for name, *_ in notes.launches] == ["candidates", "choose"]
    expected = parameters()
    assert all(n == expected[name] for name, _, _, n in notes.launches)
    assert len(ops.collect(launched)) == 3
    told = (ctypes.c_char * cuda_draw.Told.size(99)).from_address(ops._draws.there)
    rows = np.frombuffer(told, cuda_draw.CHOICE, 3)
    assert rows["n_vocab"].tolist() == [90] * 3 and rows["top_k"].tolist() == [0, 40, 1]
    assert rows["mask"].tolist() == [-1, -1, 0] and rows["has_newest"].tolist() == [0, 1, 0]
    assert rows[1]["newest"] == -2 and rows[1]["n_changes"] == 2 and rows[1]["u"] == 0.25
    at = MOST_CHOSEN * rows.itemsize
    listed = np.frombuffer(told, cuda_draw.CHANGE, 2, at)
    assert listed["column"].tolist() == [4, 9] and listed["bias"].tolist() == [0.5, -1.0]
    mask = np.frombuffer(told, np.uint8, 16, at + listed.nbytes)
    assert np.unpackbits(mask, bitorder="little")[:90].tolist() == [0, 1] * 45
    assert not mask[12:].any()
    ops.close()
    assert not notes.memory
