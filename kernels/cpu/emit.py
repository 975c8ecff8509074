"""A thin writer of LLVM IR for SIMD kernels: typed vectors, pointers and loops over `llvmlite.ir`.

A kernel takes 64-bit integers only (addresses and counts) and returns nothing, so that one call
instruction in the program interpreter serves them all. Floating-point order is what is written here: no
fast-math, fused multiply-add only where `fma` says so. So every target gives the same bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32 = ir.HalfType(), ir.FloatType()
PTR = ir.PointerType()
Value = Any
"""An `ir.Value`; llvmlite ships no types."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the generated code may use.

    `dot` multiplies u8 by s8: "avx512vnni", "avxvnni", "avx2" or "plain"; all give the same integers.
    `lanes` output rows are held in one vector (16 or 8); `f16` and `fma` tell of native instructions.
    """

    dot: str
    lanes: int
    f16: bool
    fma: bool

    @property
    def row_blocks(self) -> tuple[int, ...]:
        """Activation rows that one product kernel takes at once, largest first, down to 1."""
        return (8, 4, 2, 1) if self.lanes == 16 else (4, 2, 1)


def vec(element: Value, lanes: int = 16) -> Value:
    """The type of `lanes` elements."""
    return ir.VectorType(element, lanes)


class Emitter:
    """Builds one kernel `name(i64 x n_args)`; `arg[i]` are its arguments."""

    def __init__(self, name: str, n_args: int, target: Target) -> None:
        self.target = target
        self.module = ir.Module(name)
        kind = ir.FunctionType(ir.VoidType(), [I64] * n_args)
        self.function = ir.Function(self.module, kind, name)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.arg: tuple[Value, ...] = tuple(self.function.args)

    def finish(self) -> str:
        """End the function; the module's text."""
        self.b.ret_void()
        return str(self.module)

    # ---- addresses -----------------------------------------------------------------------------

    def pointer(self, address: Value) -> Value:
        """An integer address as pointer."""
        return self.b.inttoptr(address, PTR)

    def move(self, pointer: Value, offset: Value | int) -> Value:
        """`pointer` moved by bytes."""
        if isinstance(offset, int):
            if offset == 0:
                return pointer
            offset = I64(offset)
        return self.b.gep(pointer, [offset], source_etype=I8)

    def load(self, kind: Value, pointer: Value, offset: Value | int = 0) -> Value:
        """An unaligned load."""
        return self.b.load(self.move(pointer, offset), typ=kind, align=1)

    def store(self, value: Value, pointer: Value, offset: Value | int = 0) -> None:
        """An unaligned store."""
        self.b.store(value, self.move(pointer, offset), align=1)

    def prefetch(self, pointer: Value, offset: int = 0) -> None:
        """Ask for a cache line that is read soon; any address will do."""
        name = "llvm.prefetch.p0"
        function = self.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(ir.VoidType(), [PTR, I32, I32, I32])
            function = ir.Function(self.module, kind, name)
        self.b.call(function, [self.move(pointer, offset), I32(0), I32(3), I32(1)])

    # ---- values --------------------------------------------------------------------------------

    def splat(self, value: Value, lanes: int = 16) -> Value:
        """A scalar in every lane."""
        kind = vec(value.type, lanes)
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
        mask = ir.Constant(vec(I32, lanes), [0] * lanes)
        return self.b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), mask)

    def const(self, kind: Value, number: float | int) -> Value:
        """A constant scalar, or vector of equal lanes; floats are rounded to f32."""
        scalar = kind.element if isinstance(kind, ir.VectorType) else kind
        if isinstance(scalar, ir.FloatType):
            number = struct.unpack("f", struct.pack("f", number))[0]
        return ir.Constant(kind, [number] * kind.count if scalar is not kind else number)

    def call(self, name: str, result: Value, *args: Value) -> Value:
        """Call an LLVM intrinsic by its full name."""
        function = self.module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(result, [a.type for a in args])
            function = ir.Function(self.module, kind, name)
        return self.b.call(function, args)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c, rounded once where the processor can."""
        if not self.target.fma:
            return self.b.fadd(self.b.fmul(a, b), c)
        return self.call(f"llvm.fma.{_suffix(a.type)}", a.type, a, b, c)

    def fmax(self, a: Value, b: Value) -> Value:
        """The larger one; b where a is NaN."""
        return self.b.select(self.b.fcmp_ordered(">", a, b), a, b)

    def fabs(self, a: Value) -> Value:
        """|a|."""
        return self.call(f"llvm.fabs.{_suffix(a.type)}", a.type, a)

    def tree(self, op: Callable[[Value, Value], Value], vector: Value) -> Value:
        """Reduce the lanes of a vector to a scalar, halving each time: a fixed order."""
        lanes = vector.type.count
        while lanes > 1:
            half = lanes // 2
            none = ir.Constant(vector.type, ir.Undefined)
            low, high = (
                self.b.shuffle_vector(
                    vector, none, ir.Constant(vec(I32, half), list(range(s, s + half)))
                )
                for s in (0, half)
            )
            vector = op(low, high)
            lanes = half
        return self.b.extract_element(vector, I32(0))

    def from_f16(self, halves: Value) -> Value:
        """Vector of f16 bits (i16 lanes) -> f32, exact."""
        lanes = halves.type.count
        if self.target.f16:
            return self.b.fpext(self.b.bitcast(halves, vec(F16, lanes)), vec(F32, lanes))
        wide = vec(I32, lanes)
        bits = self.b.zext(halves, wide)
        sign = self.b.shl(self.b.and_(bits, self.const(wide, 0x8000)), self.const(wide, 16))
        shifted = self.b.shl(self.b.and_(bits, self.const(wide, 0x7FFF)), self.const(wide, 13))
        scaled = self.b.fmul(
            self.b.bitcast(shifted, vec(F32, lanes)), self.const(vec(F32, lanes), 2.0**112)
        )
        special = self.b.icmp_unsigned(">=", shifted, self.const(wide, 0x0F800000))
        whole = self.b.or_(shifted, self.const(wide, 0x7F800000))
        magnitude = self.b.select(special, whole, self.b.bitcast(scaled, wide))
        return self.b.bitcast(self.b.or_(magnitude, sign), vec(F32, lanes))

    def exp(self, x: Value) -> Value:
        """e^x of an f32 vector, within 2 ulp; 0 below -87.3, infinity above 88.7, NaN stays."""
        kind, ints = x.type, vec(I32, x.type.count)
        c = lambda number: self.const(kind, number)  # noqa: E731
        low = self.b.fcmp_ordered("<", x, c(-87.3))
        high = self.b.fcmp_ordered(">", x, c(88.7))
        # Adding 1.5 * 2^23 rounds x / ln 2 to an integer in the low bits.
        magic = self.fma(x, c(1.4426950408889634), c(12582912.0))
        n = self.b.fsub(magic, c(12582912.0))
        r = self.fma(n, c(-0.693359375), x)
        r = self.fma(n, c(2.12194440e-4), r)
        p = c(1.9875691500e-4)
        for k in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5):
            p = self.fma(p, r, c(k))
        p = self.fma(self.b.fmul(p, r), r, self.b.fadd(r, c(1.0)))
        shift = self.b.shl(self.b.bitcast(magic, ints), self.const(ints, 23))
        y = self.b.bitcast(self.b.add(self.b.bitcast(p, ints), shift), kind)
        y = self.b.select(low, c(0.0), y)
        y = self.b.select(high, c(float("inf")), y)
        return self.b.select(self.b.fcmp_unordered("uno", x, x), x, y)

    # ---- control -------------------------------------------------------------------------------

    @contextmanager
    def loop(self, count: Value, carried: Sequence[Value] = ()) -> Iterator[Loop]:
        """Repeat the body `count` times (none if <= 0); `carried` values go from turn to turn.

        The body reads `loop.index` and `loop.values`, and sets `loop.next`; after it, `loop.results`.
        """
        b = self.b
        before = b.block
        body = self.function.append_basic_block()
        after = self.function.append_basic_block()
        b.cbranch(b.icmp_signed(">", count, I64(0)), body, after)
        b.position_at_end(body)
        index = b.phi(I64)
        phis = [b.phi(v.type) for v in carried]
        loop = Loop(index, phis)
        yield loop
        index.add_incoming(I64(0), before)
        following = b.add(index, I64(1))
        index.add_incoming(following, b.block)
        for phi, first, last in zip(phis, carried, loop.next, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, b.block)
        end = b.block
        b.cbranch(b.icmp_signed("<", following, count), body, after)
        b.position_at_end(after)
        for first, last in zip(carried, loop.next, strict=True):
            result = b.phi(first.type)
            result.add_incoming(first, before)
            result.add_incoming(last, end)
            loop.results.append(result)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Run the body only if `condition` holds; it must not define values used after it."""
        with self.b.if_then(condition):
            yield


def new_kernel(name: str, n_args: int, target: Target) -> tuple[Emitter, Value, tuple[Value, ...]]:
    """An emitter with its builder and its arguments, which a kernel's first line names."""
    e = Emitter(name, n_args, target)
    return e, e.b, e.arg


class Loop:
    """The state of one `Emitter.loop`."""

    def __init__(self, index: Value, values: list[Value]) -> None:
        self.index, self.values = index, values
        self.next: list[Value] = []
        self.results: list[Value] = []


def _suffix(kind: Value) -> str:
    return f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
