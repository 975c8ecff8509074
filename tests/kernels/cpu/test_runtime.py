"""Threads, compiled code and its cache."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import types

from kernels.cpu import rowwise, runtime
from kernels.cpu.compiler import Compiler, detect
from kernels.cpu.emit import F32, I16, I64, Emitter, Target, vec
from kernels.cpu.runtime import cache_folder
from tests.kernels.cpu.helpers import make, rows, tensor

ROOT = Path(__file__).parents[3]


def record(ops):  # type: ignore[no-untyped-def]
    w = ops.upload(tensor("Q4_0", (512, 64)))
    x = ops.embed(w)
    for _ in range(4):
        x = ops.linear(x, ops.upload(tensor("Q4_0", (64, 64))))
    ops.head(x, w)


def workers() -> int:
    return sum(t.name.startswith("cpu-") for t in threading.enumerate())


def test_two_engines_work_at_once_and_end_their_threads() -> None:
    before = workers()
    all_ops = [make(record, threads=3)[0] for _ in range(2)]
    truth = all_ops[0].run(rows(5)).copy()
    assert workers() >= before + 2
    wrong: list[int] = []

    def live(ops) -> None:  # type: ignore[no-untyped-def]
        for i in range(100):
            if not np.array_equal(ops.run(rows(5)), truth):
                wrong.append(i)

    threads = [threading.Thread(target=live, args=(ops,)) for ops in all_ops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for ops in all_ops:
        ops.close()
    assert workers() == before


def test_sleeping_workers_wake() -> None:
    """Workers that waited so long that they sleep take part in the next run."""
    ops, _ = make(record, threads=3)
    truth = ops.run(rows(70)).copy()
    header = ops._runtime.header
    from kernels.cpu.layout import ASLEEP_STEP, Head

    places = [Head.ASLEEP + ASLEEP_STEP * tid for tid in (1, 2)]
    for _ in range(3):
        while not all(header[p] for p in places):
            threading.Event().wait(0.001)
        np.testing.assert_array_equal(ops.run(rows(70)), truth)
    ops.close()


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system cannot fork")
def test_a_fork_gets_threads_of_its_own() -> None:
    code = """
import os, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from tests.kernels.cpu.helpers import make, rows
from tests.kernels.cpu.test_runtime import record
ops, _ = make(record)
truth = ops.run(rows(70)).copy()
child = os.fork()
same = np.array_equal(ops.run(rows(70)), truth)
ops.close()
if child == 0:
    os._exit(0 if same else 1)
sys.exit(0 if same and os.waitpid(child, 0)[1] == 0 else 1)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=100)


def kernel(compiler: Compiler, target: Target, name: str = "divide"):  # type: ignore[no-untyped-def]
    address = compiler.address(name, lambda n: rowwise.divide(n, target))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)


def works(compiler: Compiler) -> bool:
    source = np.arange(20, dtype=np.float32)
    source[1], out = 2, np.zeros(16, np.float32)
    kernel(compiler, detect())(source.ctypes.data, out.ctypes.data, 16)
    return np.array_equal(out, source[4:] / 2)


def test_compiled_kernels_come_from_the_cache(tmp_path: Path) -> None:
    folder = cache_folder(tmp_path)
    assert folder is not None and cache_folder(tmp_path) == folder
    first, second = Compiler(folder), Compiler(folder)
    assert works(first) and first.compiled == 1
    assert works(second) and second.compiled == 0
    assert [p.suffix for p in folder.iterdir()] == [".o"]


@pytest.mark.parametrize("damage", [b"", b"not machine code", None])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    assert works(Compiler(tmp_path))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7] if damage is None else damage)
    again, after = Compiler(tmp_path), Compiler(tmp_path)
    assert works(again) and again.compiled == 1
    assert works(after) and after.compiled == 0


def test_without_a_writable_folder_all_works_uncached(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    assert cache_folder(file) is None and cache_folder(None) is None
    lost = Compiler(file / "folder")
    assert works(lost) and lost.compiled == 1
    assert works(Compiler(None))


def vector_function(write, size_in: int, target: Target):  # type: ignore[no-untyped-def]
    """A kernel (source, result) that maps 16 numbers by `write(emitter, vector)`."""
    e = Emitter("f", 2, target)
    source, result = (e.pointer(a) for a in e.arg)
    e.store(write(e, e.load(vec(I16 if size_in == 2 else F32), source)), result)
    compiler = Compiler(None)
    address = compiler.address("f", lambda _: e.finish())
    return compiler, ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(address)


def test_exp() -> None:
    keep, function = vector_function(lambda e, x: e.exp(x), 4, detect())
    x = np.linspace(-87, 88.5, 16 * 200, dtype=np.float32)
    x[:5] = 0, np.nan, -np.inf, np.inf, -200
    x[5] = np.uint32(0x7FC00123).view(np.float32)  # a NaN that carries bits
    y = np.empty_like(x)
    for i in range(0, len(x), 16):
        function(x[i:].ctypes.data, y[i:].ctypes.data)
    with np.errstate(over="ignore"):
        truth = np.exp(x.astype(np.float64))
    assert y[0] == 1 and y[2] == 0 and y[3] == np.inf and y[4] == 0
    assert np.isnan(y[[1, 5]]).all()
    np.testing.assert_allclose(y[6:], truth[6:], rtol=3e-7)
    keep.close()


@pytest.mark.parametrize("native", [True, False])
def test_every_f16_becomes_the_same_f32(native: bool) -> None:
    target = detect()
    target = Target(target.dot, target.lanes, native and target.f16, target.fma)
    keep, function = vector_function(lambda e, x: e.from_f16(x), 2, target)
    bits = np.arange(65536, dtype=np.uint16)
    y = np.empty(65536, np.float32)
    for i in range(0, 65536, 16):
        function(bits[i:].ctypes.data, y[i:].ctypes.data)
    np.testing.assert_array_equal(y, bits.view(np.float16).astype(np.float32))
    keep.close()


def test_loops_of_no_turns_are_skipped() -> None:
    e = Emitter("f", 2, detect())
    with e.loop(e.arg[0], [I64(7)]) as loop:
        loop.next = [e.b.add(loop.values[0], loop.index)]
    e.store(loop.results[0], e.pointer(e.arg[1]))
    compiler = Compiler(None)
    address = compiler.address("f", lambda _: e.finish())
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(address)
    out = np.zeros(1, np.int64)
    for count, expected in ((0, 7), (-3, 7), (1, 7), (5, 17)):
        function(count, out.ctypes.data)
        assert out[0] == expected
    compiler.close()


def _increased(x: int) -> int:
    return x + 1


@pytest.mark.parametrize("size", [0, 100])
def test_a_cut_index_of_numba_is_made_again(tmp_path: Path, size: int) -> None:
    compile_it = functools.partial(numba.njit, types.int64(types.int64))
    assert runtime._compile(compile_it, _increased, tmp_path)(1) == 2
    files = [*tmp_path.rglob("*.nb[ci]")]
    assert {f.suffix for f in files} == {".nbi", ".nbc"}
    for file in files:
        file.write_bytes(file.read_bytes()[:size])
    assert runtime._compile(compile_it, _increased, tmp_path)(1) == 2
    assert all(f.stat().st_size > size for f in files)
    before = {f: f.stat().st_mtime_ns for f in files}
    assert runtime._compile(compile_it, _increased, tmp_path)(1) == 2
    assert before == {f: f.stat().st_mtime_ns for f in files}
