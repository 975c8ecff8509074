"""Single machine instructions for numba code that works on addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_I64 = ir.IntType(64)
machine: Callable[[Any], Callable[..., Any]] = intrinsic
"""`intrinsic`, typed as its users see it."""

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
compiled: Callable[[Any], Callable[..., Any]] = njit(**_OPTIONS)
"""`njit` for functions that only compiled code calls: without the code to call them from Python."""


@machine
def call(typing: Any, address: Any, args: Any) -> Any:
    """Call a kernel: (address, tuple of int64)."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        n = len(args)
        kind = ir.FunctionType(ir.VoidType(), [_I64] * n)
        function = builder.inttoptr(values[0], kind.as_pointer())
        builder.call(function, [builder.extract_value(values[1], i) for i in range(n)])
        return context.get_dummy_value()

    return types.void(types.int64, args), codegen


def _loader(bits: int) -> Callable[..., Any]:
    @machine
    def load(typing: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(values[0], kind.as_pointer()))
            return builder.sext(value, _I64) if bits < 64 else value

        return types.int64(types.int64), codegen

    return load


load32, load64 = _loader(32), _loader(64)


@machine
def store64(typing: Any, address: Any, value: Any) -> Any:
    """Plain store of an int64."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], _I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@machine
def store32(typing: Any, address: Any, value: Any) -> Any:
    """Plain store of the low 32 bits."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.IntType(32)
        value = builder.trunc(values[1], kind)
        builder.store(value, builder.inttoptr(values[0], kind.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@machine
def load_float(typing: Any, address: Any) -> Any:
    """A float32."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], ir.FloatType().as_pointer()))

    return types.float32(types.int64), codegen


@machine
def store_float(typing: Any, address: Any, value: Any) -> Any:
    """Plain store of a number as float32."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FloatType()
        value = builder.fptrunc(values[1], kind)
        builder.store(value, builder.inttoptr(values[0], kind.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.float64), codegen


@machine
def clear(typing: Any, to: Any, n: Any) -> Any:
    """Set n bytes to zero."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        byte = ir.IntType(8)
        name = "llvm.memset.p0.i64"
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), byte, _I64, ir.IntType(1)])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        to = builder.inttoptr(values[0], byte.as_pointer())
        builder.call(function, [to, byte(0), values[1], ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@machine
def copy(typing: Any, to: Any, source: Any, n: Any) -> Any:
    """Copy n bytes that do not overlap."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        name = "llvm.memcpy.p0.p0.i64"
        kind = ir.FunctionType(ir.VoidType(), [byte, byte, _I64, ir.IntType(1)])
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(
            function,
            [*(builder.inttoptr(v, byte) for v in values[:2]), values[2], ir.IntType(1)(0)],
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@machine
def atomic_add(typing: Any, address: Any, value: Any) -> Any:
    """Add in one step, in an order that all threads agree on; returns the value before."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], _I64.as_pointer())
        return builder.atomic_rmw("add", pointer, values[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@machine
def atomic_swap(typing: Any, address: Any, value: Any) -> Any:
    """Exchange in one step; returns the value before."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], _I64.as_pointer())
        return builder.atomic_rmw("xchg", pointer, values[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@machine
def atomic_load(typing: Any, address: Any) -> Any:
    """Read what other threads wrote."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], _I64.as_pointer())
        return builder.load_atomic(pointer, "seq_cst", 8)

    return types.int64(types.int64), codegen


@machine
def pause(typing: Any) -> Any:
    """Tell the processor that this thread only waits."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        triple = builder.module.triple
        if triple.startswith(("x86", "i686", "amd64")):
            kind = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


@machine
def field(typing: Any, address: Any, i: Any) -> Any:
    """Integer number i from `address` on."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = builder.add(values[0], builder.shl(values[1], _I64(3)))
        return builder.load(builder.inttoptr(at, _I64.as_pointer()))

    return types.int64(types.int64, types.int64), codegen
