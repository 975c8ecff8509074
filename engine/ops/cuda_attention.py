"""Attention on a card: keys and values in pages, and the launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from collections.abc import Sequence as Seq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ops.base import MOST_TRIED, Rope
from engine.ops.cuda_buffers import (
    MOST_ROWS,
    Buffer,
    Float,
    Int,
    Pass,
    Pointer,
    activation_of,
    is_whole,
)
from engine.ops.cuda_device import Weight, told
from engine.ops.cuda_recorder import Recorder
from engine.ops.cuda_step import TILES, StepVariables
from kernels import variants

PAGE = 64
_NARROW, _WIDE = 16, 32  # (query, head) rows of a tile of short steps
_MOST_NARROW = 4
"""Narrow tiles of a step that suffice, so that more blocks share its pages."""
_FEW = 512  # rows of a step from which on its tiles are large
_MOST_SHARES, _SHARED, _LEAST_SEEN = 8, 768, 512
"""Blocks that share the tokens of a tile, their rows together, and the tokens of each."""
_TOGETHER = 16  # rows of a block of `rope_store_rows` that takes values


class View(ctypes.Structure):
    """`View` of kernels/include/pages.cuh: which keys a query sees."""

    _fields_ = (("window", Int), ("per_row", Int), ("causal", Int))


class Path(ctypes.Structure):
    """`Path` of kernels/rope.cu and delta.cu: tried rows that stand."""

    _fields_ = (("count", Int), ("row", Int * MOST_TRIED))

    @classmethod
    def of(cls, rows: Seq[int]) -> Path:
        """From row numbers."""
        return cls(len(rows), (Int * MOST_TRIED)(*rows))


class AttentionOps(Recorder):
    """`Ops.attend` and `Ops.store`."""

    _kv: int
    _layer_bytes: int

    def _allocate_attention(self) -> None:
        """Pages, a step's variables, and room for queries and for what the blocks of a row have added up."""
        shape, limits = self.shape, self._limits
        self._page_bytes = shape.n_kv_heads * PAGE * shape.head_dim * 2
        self._layer_bytes = limits.pages * self._page_bytes
        size = 2 * shape.n_kv_layers * self._layer_bytes
        self._kv = self._allocate("kv", size)
        self.card.runtime.memsetAsync(self._kv, 0, size, self.card.stream.ptr)
        few, many = (variants.flash(shape.head_dim, self.card.arch, few) for few in (True, False))
        self._flashes = few, many
        self._splits = max(1, min(64, -(-2 * self.card.processors // shape.n_kv_heads)))
        heads, dim = shape.n_heads, shape.head_dim
        states = heads * max(variants.MOST_SHORT * self._splits, self._rows + self._share_rows())
        self._queries = self._allocate("work", self._rows * heads * dim * 2)
        self._sums = self._allocate("work", states * dim * 4)
        self._stats = self._allocate("work", states * 8)
        self.card.build([*variants.of_head(dim), few.variant, many.variant])
        at = self._allocate("work", StepVariables.size(self._rows, limits))
        self._step = StepVariables(
            self.card, at, self._rows, limits, self._tile_rows, self._shares, self._share_rows()
        )

    def _flash_for(self, rows: int) -> variants.Flash:
        return self._flashes[rows > _FEW]

    def _shares(self, rows: int, seen: int) -> int:
        """How many blocks share the `seen` tokens of a sequence of `rows` rows in a long step, if these make
        few tiles. They follow from the sequence alone, and tiles with them are no more than rows."""
        tiles = -(-rows // self._tile_rows(MOST_ROWS + 1))
        together = _SHARED // (-(-rows // 64) * 64)
        return max(1, min(_MOST_SHARES, together, seen // _LEAST_SEEN, rows // tiles))

    def _share_rows(self) -> int:
        """Rows for the results of shares after the first, of two sequences."""
        return min(2 * _SHARED, (_MOST_SHARES - 1) * self._rows)

    def _tile(self, rows: int) -> tuple[int, int]:
        """Heads of a tile in a step of `rows`, and its (query, head) rows."""
        group = self.shape.n_heads // self.shape.n_kv_heads
        if rows > MOST_ROWS:
            of_tile = self._flash_for(rows).rows
        else:
            narrow = _NARROW // min(group, _NARROW)
            of_tile = _NARROW if rows <= _MOST_NARROW * narrow else _WIDE
        return min(group, of_tile), of_tile

    def _row_threads(self) -> int:
        """Threads of a block of `attention_row.cu`, 0 where a key/value head has too many heads."""
        group = self.shape.n_heads // self.shape.n_kv_heads
        least = 8 if self.shape.head_dim == 256 else 4
        return 32 * max(least, group + 2) if group <= 8 else 0

    def _tile_rows(self, rows: int) -> int:
        """Batch rows of a tile in a step of `rows`."""
        heads, of_tile = self._tile(rows)
        return of_tile // heads

    def page_bytes(self) -> int:
        return 2 * self.shape.n_kv_layers * self._page_bytes

    def read_page(self, page: int, to: NDArray[np.uint8]) -> None:
        with told():
            self.card.use()
            self.card.outgoing.send(to, self._page_at(page), self._layer_bytes, self._page_bytes)

    def settle(self) -> None:
        with told():
            self.card.outgoing.settle()

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        self._move_page(self._page_at(page), self._layer_bytes, data.ctypes.data, self._page_bytes)
        self.card.stream.synchronize()  # nobody else holds `data`

    def copy_page(self, source: int, target: int) -> None:
        pitch = self._layer_bytes
        self._move_page(self._page_at(target), pitch, self._page_at(source), pitch)

    def _page_at(self, page: int) -> int:
        return self._kv + page * self._page_bytes

    def _move_page(self, target: int, target_pitch: int, source: int, source_pitch: int) -> None:
        rows = 2 * self.shape.n_kv_layers
        with told():
            self.card.use()
            self.card.copy_rows(target, target_pitch, source, source_pitch, self._page_bytes, rows)

    def attend(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None = None,
        k_norm: Weight | None = None,
        eps: float = 0.0,
        gated: bool = False,
        causal: bool = True,
        window: int = 0,
        window_per_row: bool = True,
    ) -> Buffer:
        s, view = self.shape, View(window, window_per_row, causal)
        out = Buffer(s.n_heads * s.head_dim)
        _, tiled, *_ = variants.of_head(s.head_dim)
        narrow, wide = (self.card.kernel(tiled, n) for n in ("attention", "attention_wide"))
        flashes = {
            flash: self.card.kernel(flash.variant, "flash", flash.shared) for flash in self._flashes
        }
        combine, combine_rows = (
            self.card.kernel(tiled, name) for name in ("combine", "combine_rows")
        )
        keys, values = self._pages(layer)
        queries, sums, stats = Pointer(self._queries), Pointer(self._sums), Pointer(self._stats)
        heads, kv_heads = Int(s.n_heads), Int(s.n_kv_heads)
        group = s.n_heads // s.n_kv_heads
        store = self._storing(qkv, layer, rope, q_norm, k_norm, eps, s.n_heads, gated)
        if threads := self._row_threads():
            row = self.card.kernel(variants.attention_row(s.head_dim), "attention_row")
        turned = self._turned(rope, q_norm, k_norm, eps)

        def launch(p: Pass) -> None:
            rows, product, to = self._step.rows(p), self._product(qkv, p), activation_of(out, p)
            args: tuple[Any, ...]
            splits = self._splits if p.short else 0
            if p.rows == 1 and threads:
                args = (
                    product, rows, view, Int(gated), *turned, heads, kv_heads, keys, values, sums, stats
                )  # fmt: skip
                self._launch(row, (s.n_kv_heads, splits, 1), threads, args)
            else:
                store(p)
                tiles = Pointer(self._step.at(TILES, p))
                tile_heads, of_tile = self._tile(p.rows)
                args = (
                    queries, keys, values, tiles, rows, view, heads, kv_heads, Int(tile_heads), sums,
                    stats,
                )  # fmt: skip
                blocks = s.n_kv_heads * -(-group // tile_heads)
                if p.short:
                    attention = narrow if of_tile == _NARROW else wide
                    of_block = 256 if s.head_dim == 256 else 128
                    self._launch(attention, (p.tiles, blocks, splits), of_block, args)
                else:
                    flash = self._flash_for(p.rows)
                    self._launch(flashes[flash], (blocks, 1, p.tiles), 32 * flash.warps, args)
            if not p.short and is_whole(product):
                args = (
                    sums, stats, rows, Int(out.width), Int(p.rows), product, Int(gated), to
                )  # fmt: skip
                self._launch_many(combine_rows, out.width, p, args)
                return
            args = (
                sums, stats, rows, view, Int(splits), Int(out.width), product, Int(gated), to
            )  # fmt: skip
            self._launch_shared(combine, out.width, p, args)

        self._add(launch, qkv, out)
        return out

    def store(
        self, kv: Buffer, layer: int, rope: Rope, k_norm: Weight | None = None, eps: float = 0.0
    ) -> None:
        self._add(self._storing(kv, layer, rope, None, k_norm, eps, 0, False), kv)

    def _pages(self, layer: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """Keys and values of a layer with attention."""
        at = self._kv + 2 * layer * self._layer_bytes
        return Pointer(at), Pointer(at + self._layer_bytes)

    def _storing(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None,
        k_norm: Weight | None,
        eps: float,
        n_heads: int,
        gated: bool,
    ) -> Callable[[Pass], None]:
        """Launches that bring keys and values to their pages, and queries, if any, to their buffer."""
        s = self.shape
        few, many = (
            self.card.kernel(next(variants.of_head(s.head_dim)), name)
            for name in ("rope_store", "rope_store_rows")
        )
        keys, values = self._pages(layer)
        args = (
            *self._turned(rope, q_norm, k_norm, eps), Int(n_heads), Int(s.n_kv_heads),
            Pointer(self._queries), keys, values,
        )  # fmt: skip

        def store(p: Pass) -> None:
            product = self._product(qkv, p)
            whole = product, self._step.rows(p), Int(gated), *args
            if p.short or rope.n_rot % 4 or not is_whole(product):
                warps = 4 if p.several else 1
                grid = (n_heads + 2 * s.n_kv_heads, p.rows // warps, 1)
                self._launch(few, grid, 32 * warps, whole)
                return
            blocks = p.rows + s.n_kv_heads * -(-p.rows // _TOGETHER)
            self._launch(many, (blocks, 1, 1), 128, (*whole, Int(p.rows)))

        return store

    def _turned(
        self, rope: Rope, q_norm: Weight | None, k_norm: Weight | None, eps: float
    ) -> tuple[Any, ...]:
        """How heads are normed and turned, as kernels take it."""
        return (
            Pointer(q_norm.address if q_norm else None), Pointer(k_norm.address if k_norm else None),
            Float(eps), Pointer(self._frequencies(rope)), Int(rope.n_rot), Int(rope.interleaved),
            Float(rope.magnitude),
        )  # fmt: skip

    def _move_rows(self, sequence: int, rows: Seq[int], kept: int, p: Pass) -> None:
        """Keys and values of tried `rows` to the places from `kept` on of their sequence."""
        if list(rows) == list(range(kept, kept + len(rows))):
            return
        s = self.shape
        kernel = self.card.kernel(next(variants.of_head(s.head_dim)), "move_rows")
        args = (
            self._step.rows(p), Int(sequence), Path.of(rows), Int(kept), Int(s.n_kv_heads),
            Pointer(self._kv), ctypes.c_longlong(self._layer_bytes // 2),
        )  # fmt: skip
        self._launch(kernel, (s.n_kv_heads, s.n_kv_layers, 1), 128, args)
