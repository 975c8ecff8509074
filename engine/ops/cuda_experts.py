"""Mixture of experts on a card: rows are sorted by expert there, and each expert multiplies its own."""

from __future__ import annotations

import ctypes
from typing import Any

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
from kernels.variants import Variant

MOST_EXPERTS, MOST_USED = 1024, 32


class ExpertOps(Recorder):
    """`Ops.experts`."""

    _routes: list[int]

    def experts(
        self,
        h: Buffer,
        router: Weight,
        gate: Weight,
        up: Weight,
        down: Weight,
        n_used: int,
        shared: Buffer,
        shared_gate: Weight,
    ) -> Buffer:
        n = router.rows
        inner, embd = gate.rows // n, down.rows // n
        self._check(n, n_used, inner, embd, gate, up, down)
        scores = self.linear(h, router, shared_gate)
        h.forms.add(32)
        arch, rows = self.card.arch, self._rows

        def tiles_of(m: int, columns: int) -> int:
            return min(m * n_used, n + m * n_used // columns)

        def sorted_rows(p: Pass) -> tuple[int, int]:
            """Rows of a tile, and tiles of a pass."""
            columns = GROUP * (1 if p.short else variants.expert_groups(arch))
            return columns, tiles_of(p.rows, columns)

        long_columns = GROUP * variants.expert_groups(arch)
        short = GROUP * tiles_of(MOST_ROWS, GROUP)
        most = max(short, long_columns * tiles_of(rows, long_columns))

        def value(width: int, *forms: int) -> Buffer:
            return Buffer(width, set(forms), rows=most, short_rows=short)

        def numbers(width: int) -> Buffer:
            whole = Launch((Weight(0, width, 0, 0, 0),), 0)
            return Buffer(width, rows=most, short_rows=short, launches=(whole,))

        if most > 65535:
            raise UnsupportedModel(
                f"{rows:,} tokens a step with {n_used} of {n} experts are more than a card takes at once;"
                " choose a smaller prefill chunk."
            )
        x, gate_up = value(embd, form_read(gate), form_read(up)), numbers(2 * inner)
        activation, result = value(inner, form_read(down)), numbers(embd)
        out = Buffer(embd, launches=(Launch((Weight(0, embd, 0, 0, 0),), 0),))
        table = self._route_table(rows * n_used, most, most // GROUP)
        route, plan, gather, weigh = (
            self.card.kernel(Variant("moe.cu"), name)
            for name in ("route", "plan", "gather_rows", "weigh")
        )
        swiglu = self.card.kernel(Variant("swiglu.cu"), "swiglu")

        def launch(p: Pass) -> None:
            columns, tiles = sorted_rows(p)
            places = Pass(columns * tiles, p.form, 0, 0)
            chosen, weights, of_shared, at, row_of, expert = (Pointer(a) for a in table)
            args: tuple[Any, ...] = (
                self._product(scores, p), Pointer(self._step.at(POSITIONS, p)), Int(n), Int(n_used),
                chosen, weights, of_shared,
            )  # fmt: skip
            self._launch(route, (p.rows, 1, 1), 128, args)
            args = (
                chosen, Int(p.rows * n_used), Int(n_used), Int(n), Int(columns), Int(tiles), at,
                row_of, expert,
            )  # fmt: skip
            self._launch(plan, (1, 1, 1), 1024, args)
            norm = self._product(scores, p) if h.eps is not None else Product()
            args = (
                Pointer(h.at("32")), norm, row_of, Int(places.rows), Int(embd),
                activation_of(x, places),
            )  # fmt: skip
            self._launch(gather, (-(-embd // SUPERBLOCK), -(-places.rows // 4), 1), 128, args)
            pairs = [(gate, up)] if gate.type_id == up.type_id else [(gate, None), (up, None)]
            for i, (first, second) in enumerate(pairs):
                self._expert_product(
                    x,
                    gate_up.at("y") + 4 * i * inner,
                    2 * inner,
                    first,
                    second,
                    n,
                    expert,
                    tiles,
                    p,
                )
            args = (
                self._product(gate_up, places), Int(inner), Int(0), activation_of(activation, places),
            )  # fmt: skip
            self._launch_rows(swiglu, inner, places.rows, args)
            self._expert_product(activation, result.at("y"), embd, down, None, n, expert, tiles, p)
            args = (
                Pointer(result.at("y")), at, chosen, weights, Int(n_used), self._product(shared, p),
                of_shared, Int(embd), Pointer(out.at("y")),
            )  # fmt: skip
            self._launch(weigh, (-(-embd // 512), p.rows, 1), 128, args)

        self._add(launch, h, scores, x, gate_up, activation, result, shared, out)
        return out

    def _expert_product(
        self,
        x: Buffer,
        y: int,
        stride: int,
        first: Weight,
        second: Weight | None,
        n: int,
        expert: ctypes.c_void_p,
        tiles: int,
        p: Pass,
    ) -> None:
        """Rows of `first`, and beside them of `second`, for tiles of sorted rows."""
        form = p.form_of(first.type_id)
        build = variants.experts(first.type_id, form, p.short, self.card.arch)
        kernel = self.card.kernel(build.variant, "experts", build.shared)
        row_tiles = first.rows // n // TILE
        blocks = -(-row_tiles // build.tiles) * (2 if second else 1)
        groups = variants.groups_for(tiles * build.groups * GROUP)
        args = (
            Pointer(first.address), Pointer(second.address if second else None), Int(row_tiles), expert,
            Pointer(x.at(str(form))), Int(groups), Pointer(y), Int(stride), Int(first.superblocks),
        )  # fmt: skip
        self._launch(kernel, (blocks, tiles, 1), 128, args)

    def _route_table(self, pairs: int, places: int, tiles: int) -> list[int]:
        """Addresses of what rows choose and where they lie; the layers use it one after the other."""
        if not self._routes:
            sizes = (4 * pairs, 4 * pairs, 4 * self._rows, 4 * pairs, 4 * places, 4 * tiles)
            self._routes = [self._allocate("work", size) for size in sizes]
        return self._routes

    def _check(self, n: int, n_used: int, inner: int, embd: int, *stacks: Weight) -> None:
        """Refuse what the kernels cannot do."""
        where = "Load the model on the processor."
        if n > MOST_EXPERTS or n_used > MOST_USED:
            raise UnsupportedModel(
                f"{n} experts, {n_used} of them a token; a card takes up to {MOST_EXPERTS} and"
                f" {MOST_USED}. {where}"
            )
        if inner % TILE or embd % TILE or not all(w.packed for w in stacks):
            raise UnsupportedModel(
                f"Experts of {inner} x {embd} in this format have no kernel for this card; expected"
                f" multiples of {TILE} and a format other than F32. {where}"
            )
