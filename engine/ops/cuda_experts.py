"""Mixture of experts on a card: of short steps it multiplies rows where they are, of others sorted ones."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.errors import UnsupportedModel
from engine.ops.cuda_buffers import (
    GROUP,
    MOST_ROWS,
    Buffer,
    Int,
    Launch,
    Pass,
    Pointer,
    Product,
    activation_of,
)
from engine.ops.cuda_device import SUPERBLOCK, TILE, Weight
from engine.ops.cuda_recorder import Recorder, form_read
from engine.ops.cuda_step import POSITIONS
from kernels import variants
from kernels.variants import INT8, Variant

MOST_EXPERTS, MOST_USED = 1024, 31
KEPT = 2  # kernels/experts_short.cu


class Routes(ctypes.Structure):
    """`Routes` of kernels/include/routes.cuh."""

    _fields_ = (
        ("expert", Pointer),
        ("places", Pointer),
        ("weights", Pointer),
        ("factors", Pointer),
        ("used", Int),
        ("most", Int),
    )


class Work(ctypes.Structure):
    """`Work` of kernels/experts_short.cu."""

    _fields_ = (("shared_tiles", Int), ("groups", Int), ("rows", Int), ("slots", Int))


class Stack(ctypes.Structure):
    """`Stack` of kernels/experts_short.cu: up to two matrices of each of `n` experts."""

    _fields_ = (("first", Pointer), ("second", Pointer), ("row_tiles", Int), ("superblocks", Int))

    @classmethod
    def of(cls, n: int, first: Weight, second: Weight | None = None) -> Stack:
        """Weights of `n` experts, one below the other."""
        below = second.address if second else None
        return cls(first.address, below, first.rows // n // TILE, first.superblocks)

    @property
    def parts(self) -> int:
        """Warps that share the columns of a row tile."""
        return 4 if self.superblocks >= 4 else 2 if self.superblocks >= 2 else 1

    @property
    def turns(self) -> int:
        """Turns of one block that takes all row tiles of a tile."""
        return -(-self.row_tiles * (2 if self.second else 1) // (4 // self.parts))

    @property
    def units(self) -> int:
        """Superblocks of a warp."""
        return -(-self.superblocks // self.parts)


@dataclass(frozen=True, slots=True)
class Table:
    """Addresses of what rows choose and where they lie; the layers use it one after the other."""

    expert: int
    places: int
    weights: int
    factors: int
    arrived: int
    chosen: int
    place: int
    row: int
    tile_expert: int


@dataclass(frozen=True, slots=True)
class _Mixture:
    """The operands of `ExpertOps.experts`; `shared` are gate, up and down."""

    h: Buffer
    router: Weight
    gate: Weight
    up: Weight
    down: Weight
    shared: tuple[Weight, Weight, Weight]
    shared_gate: Weight
    used: int

    @property
    def n(self) -> int:
        """Experts."""
        return self.router.rows

    @property
    def inner(self) -> int:
        """Rows of an expert's gate."""
        return self.gate.rows // self.n

    @property
    def embd(self) -> int:
        """Rows of an expert's down."""
        return self.down.rows // self.n

    @property
    def is_short(self) -> bool:
        """Whether short steps have kernels of their own."""
        return all(w.packed and w.rows % TILE == 0 for w in self.shared)

    @property
    def routed_at_once(self) -> bool:
        """Whether one kernel multiplies by the router and routes."""
        return self.router.type_id == self.shared_gate.type_id == 0

    def tiles(self, rows: int, columns: int) -> int:
        """The most tiles of so many sorted rows that a pass can have."""
        return min(rows * self.used, self.n + rows * self.used // columns)


class ExpertOps(Recorder):
    """`Ops.experts`."""

    _routes: Table | None
    swiglu: Callable[[Buffer], Buffer]

    def experts(
        self,
        h: Buffer,
        router: Weight,
        gate: Weight,
        up: Weight,
        down: Weight,
        n_used: int,
        shared: Seq[Weight],
        shared_gate: Weight,
    ) -> Buffer:
        of_shared = shared[0], shared[1], shared[2]
        mix = _Mixture(h, router, gate, up, down, of_shared, shared_gate, n_used)
        self._check(mix)
        self._build(mix)
        for weight in (gate, up):
            h.forms.add(form_read(weight))
        h.forms.add(32)
        nodes = self._tape.nodes
        first = len(nodes)
        shared_result = self.linear(self.swiglu(self.linear(h, *shared[:2])), shared[2])
        if mix.is_short:
            for node in nodes[first:]:
                node.launch = _in_long_steps(node.launch)
        scores = self.linear(h, router, shared_gate)
        if mix.routed_at_once and mix.is_short:
            nodes[-1].launch = _in_long_steps(nodes[-1].launch)

        columns, places = GROUP * variants.expert_groups(self.card.arch), MOST_ROWS * (n_used + 1)
        most = max(columns * mix.tiles(self._rows, columns), places)
        if most > 65535:
            raise UnsupportedModel(
                f"{self._rows:,} tokens a step with {n_used} of {mix.n} experts are more than a card takes"
                " at once; choose a smaller prefill chunk."
            )

        def numbers(width: int, rows: int) -> Buffer:
            whole = Launch((Weight(0, width, 0, 0, 0),), 0)
            return Buffer(width, rows=rows, launches=(whole,))

        def value(width: int, *forms: int) -> Buffer:
            return Buffer(width, set(forms), rows=most, short_rows=0 if mix.is_short else most)

        x = value(mix.embd, form_read(gate), form_read(up))
        gate_up = numbers(2 * max(mix.inner, shared[0].rows), most)
        activation, result = value(mix.inner, form_read(down)), numbers(mix.embd, most)
        out = numbers(mix.embd, max(self._rows, places))
        table = self._route_table(mix, most, most // columns)

        def launch(p: Pass) -> None:
            if p.short and mix.is_short:
                self._experts_short(mix, table, scores, gate_up, out, p)
            else:
                self._experts_long(
                    mix, table, scores, x, gate_up, activation, result, shared_result, out, p
                )

        self._add(launch, h, scores, x, gate_up, activation, result, shared_result, out)
        return out

    # Short steps

    def _experts_short(
        self, mix: _Mixture, table: Table, scores: Buffer, gate_up: Buffer, out: Buffer, p: Pass
    ) -> None:
        """Up, then down: each place's result, which the reader of `out` weighs and adds."""
        groups = -(-p.rows // GROUP)
        routes = _routes(mix, table, min(mix.n, min(GROUP, p.rows) * mix.used))
        h, positions = mix.h, Pointer(self._step.at(POSITIONS, p))
        if mix.routed_at_once:
            args = (
                Pointer(mix.router.address), Pointer(mix.shared_gate.address), Pointer(h.at("32")),
                self._norm_of(scores, p), positions, Int(mix.n), Int(mix.router.columns), Int(p.rows),
                Pointer(scores.at("y")), Pointer(table.arrived), routes,
            )  # fmt: skip
            kernel = self.card.kernel(Variant("moe.cu"), "router")
            self._launch(kernel, (-(-(mix.n + 1) // 2), groups, 1), 256, args)
        else:
            self._route(mix, scores, None, routes, p)
        gate, up, down = mix.shared
        stride = Int(gate_up.width)
        for routed, shared, at in _side_by_side(
            _pieces(mix.gate, mix.up, mix.n), _pieces(gate, up, 1)
        ):
            weight = (routed or shared)[0]  # type: ignore[index]
            self._short_product("experts_up", weight, routed, shared, routes, p, (
                Pointer(h.at(str(p.form_of(weight.type_id)))), Int(p.groups),
                Pointer(gate_up.at("y") + 4 * at), stride,
            ))  # fmt: skip
        for routed, shared, _ in _side_by_side(
            _pieces(mix.down, None, mix.n), _pieces(down, None, 1)
        ):
            weight = (routed or shared)[0]  # type: ignore[index]
            self._short_product("experts_down", weight, routed, shared, routes, p, (
                Pointer(gate_up.at("y")), stride, Int(mix.inner), Int(gate.rows),
                Pointer(out.at("y")), Int(out.width),
            ))  # fmt: skip
        out.launches[0].factors, out.launches[0].addends = table.weights, mix.used + 1

    def _short_product(
        self,
        name: str,
        weight: Weight,
        routed: tuple[Weight, Stack, int] | None,
        shared: tuple[Weight, Stack, int] | None,
        routes: Routes,
        p: Pass,
        rest: tuple[Any, ...],
    ) -> None:
        """Products of the routed experts' tiles, of the shared expert's, or of both."""
        groups = -(-p.rows // GROUP)
        build = variants.experts_short(weight.type_id, p.form_of(weight.type_id), self.card.arch)
        stacks = [found[1] for found in (routed, shared) if found]
        tiles = (groups * routes.most if routed else 0) + (groups if shared else 0)
        most = max(stack.turns for stack in stacks)
        blocks = -(-most // _turns(name, p.rows))
        slots = max(
            stack.superblocks if stack.units <= KEPT else 4 * build.stages for stack in stacks
        )
        stages = max(-(-stack.turns // blocks) * stack.units for stack in stacks)
        work = Work(groups if shared else 0, groups, p.rows, slots)
        operands = (found[1] if found else Stack() for found in (routed, shared))
        kernel = self.card.kernel(build.variant, name, build.shared(slots, stages), build.most)
        self._launch(kernel, (blocks, tiles, 1), 128, (*operands, work, routes, *rest))

    def _route(
        self, mix: _Mixture, scores: Buffer, chosen: int | None, routes: Routes, p: Pass
    ) -> None:
        """Scores to what rows choose."""
        args = (
            self._product(scores, p), Pointer(self._step.at(POSITIONS, p)), Int(mix.n), Int(p.rows),
            Pointer(chosen), routes,
        )  # fmt: skip
        kernel = self.card.kernel(Variant("moe.cu"), "route")
        self._launch(kernel, (-(-p.rows // GROUP), 1, 1), 256, args)

    def _norm_of(self, scores: Buffer, p: Pass) -> Product:
        """The norm in front of the router."""
        return self._product(scores, p) if scores.source else Product()

    # Others

    def _experts_long(
        self,
        mix: _Mixture,
        table: Table,
        scores: Buffer,
        x: Buffer,
        gate_up: Buffer,
        activation: Buffer,
        result: Buffer,
        shared: Buffer,
        out: Buffer,
        p: Pass,
    ) -> None:
        """Rows sorted by expert, the products, and the weighted sums."""
        n, used, inner, embd = mix.n, mix.used, mix.inner, mix.embd
        columns = GROUP * variants.expert_groups(self.card.arch)
        tiles = mix.tiles(p.rows, columns)
        places = Pass(columns * tiles, p.form, 0, 0)
        chosen, at, row_of = (Pointer(a) for a in (table.chosen, table.place, table.row))
        plan, gather, weigh = self._kernels("moe.cu", "plan", "gather_rows", "weigh")
        swiglu = self.card.kernel(Variant("swiglu.cu"), "swiglu")
        self._route(mix, scores, table.chosen, _routes(mix, table, 0), p)
        args: tuple[Any, ...] = (
            chosen, Int(p.rows * used), Int(used), Int(n), Int(columns), Int(tiles), at, row_of,
            Pointer(table.tile_expert),
        )  # fmt: skip
        self._launch(plan, (1, 1, 1), 1024, args)
        args = (
            Pointer(mix.h.at("32")), self._norm_of(scores, p), row_of, Int(places.rows), Int(embd),
            activation_of(x, places),
        )  # fmt: skip
        self._launch(gather, (-(-embd // SUPERBLOCK), -(-places.rows // 4), 1), 128, args)
        for weight, stack, row in _pieces(mix.gate, mix.up, n):
            y = gate_up.at("y") + 4 * row
            self._long_product(x, y, 2 * inner, weight, stack, table, tiles, p)
        by_place = Product(gate_up.at("y"), 2 * inner, 1)
        by_place.part[0].row_end = 2 * inner
        args = by_place, Int(inner), Int(0), activation_of(activation, places)
        self._launch_rows(swiglu, inner, places.rows, args)
        for weight, stack, _ in _pieces(mix.down, None, n):
            self._long_product(activation, result.at("y"), embd, weight, stack, table, tiles, p)
        args = (
            Pointer(result.at("y")), at, chosen, Pointer(table.weights), Int(used),
            self._product(shared, p), Int(embd), Pointer(out.at("y")),
        )  # fmt: skip
        self._launch(weigh, (-(-embd // 512), p.rows, 1), 128, args)
        out.launches[0].factors, out.launches[0].addends = 0, 1

    def _long_product(
        self,
        x: Buffer,
        y: int,
        stride: int,
        weight: Weight,
        stack: Stack,
        table: Table,
        tiles: int,
        p: Pass,
    ) -> None:
        """Rows of a stack's matrices for tiles of sorted rows."""
        form = p.form_of(weight.type_id)
        build = variants.experts(weight.type_id, form, self.card.arch)
        kernel = self.card.kernel(build.variant, "experts", build.shared)
        blocks = -(-stack.row_tiles // build.tiles) * (2 if stack.second else 1)
        groups = variants.groups_for(tiles * build.groups * GROUP)
        args = (
            Pointer(stack.first), Pointer(stack.second), Int(stack.row_tiles),
            Pointer(table.tile_expert), Pointer(x.at(str(form))), Int(groups),
            Pointer(y), Int(stride), Int(stack.superblocks),
        )  # fmt: skip
        self._launch(kernel, (blocks, tiles, 1), 128, args)

    def _route_table(self, mix: _Mixture, places: int, tiles: int) -> Table:
        if self._routes is None:
            pairs, short = self._rows * mix.used, MOST_ROWS * mix.used
            sizes = (short, 2 * short, self._rows * (mix.used + 1), self._rows)
            found = [self._allocate("work", 4 * size) for size in sizes]
            found.append(self._put(np.zeros(MOST_ROWS // GROUP, np.int32)))
            found += [self._allocate("work", 4 * size) for size in (pairs, pairs, places, tiles)]
            self._routes = Table(*found)
        return self._routes

    def _build(self, mix: _Mixture) -> None:
        """Kernels of short steps, which must be there before a graph is captured."""
        arch, form = self.card.arch, self._short_form
        wanted = [Variant("moe.cu")]
        for weight in (mix.gate, mix.up, mix.down, *(mix.shared if mix.is_short else ())):
            wanted += variants.of_experts(weight.type_id, arch, form)
            if not mix.is_short and form_read(weight) == INT8:
                wanted.append(variants.experts(weight.type_id, form, arch).variant)
        self.card.build(wanted)

    def _check(self, mix: _Mixture) -> None:
        """Refuse what the kernels cannot do."""
        where = "Load the model on the processor."
        if mix.n > MOST_EXPERTS or mix.used > MOST_USED:
            raise UnsupportedModel(
                f"{mix.n} experts, {mix.used} of them a token; a card takes up to {MOST_EXPERTS} and"
                f" {MOST_USED}. {where}"
            )
        packed = all(w.packed for w in (mix.gate, mix.up, mix.down))
        if mix.inner % TILE or mix.embd % TILE or not packed:
            raise UnsupportedModel(
                f"Experts of {mix.inner} x {mix.embd} in this format have no kernel for this card; expected"
                f" multiples of {TILE} and a format other than F32. {where}"
            )


def _turns(name: str, rows: int) -> int:
    """Turns of a block, as measured: more where there are many tiles, and where weights come early."""
    doublings = rows.bit_length() - 1
    return 1 << (max(1, (doublings + 1) // 2) if name == "experts_down" else doublings // 2)


def _in_long_steps(launch: Callable[[Pass], None]) -> Callable[[Pass], None]:
    return lambda p: None if p.short else launch(p)


def _routes(mix: _Mixture, table: Table, most: int) -> Routes:
    return Routes(table.expert, table.places, table.weights, table.factors, mix.used, most)


def _pieces(first: Weight, second: Weight | None, n: int) -> list[tuple[Weight, Stack, int]]:
    """What is multiplied at once of matrices side by side, and its first row: those of one format."""
    if second is None or first.type_id == second.type_id:
        return [(first, Stack.of(n, first, second), 0)]
    return [(first, Stack.of(n, first), 0), (second, Stack.of(n, second), first.rows // n)]


def _side_by_side(
    routed: list[tuple[Weight, Stack, int]], shared: list[tuple[Weight, Stack, int]]
) -> list[tuple[tuple[Weight, Stack, int] | None, tuple[Weight, Stack, int] | None, int]]:
    """Pieces of both in one launch where formats and first rows are the same."""

    def kind(piece: tuple[Weight, Stack, int]) -> tuple[int, int]:
        return piece[0].type_id, piece[2]

    both = [(a, next((b for b in shared if kind(a) == kind(b)), None), a[2]) for a in routed]
    alone = [(None, b, b[2]) for b in shared if all(kind(a) != kind(b) for a in routed)]
    return [*both, *alone]
