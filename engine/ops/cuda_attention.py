"""Attention on a card: keys and values in pages, and the launches."""

from __future__ import annotations

import ctypes
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
)
from engine.ops.cuda_device import Weight, told
from engine.ops.cuda_recorder import Recorder
from engine.ops.cuda_step import TILES
from kernels import variants

PAGE = 64


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


class Heads(ctypes.Structure):
    """`Heads` of kernels/include/heads.cuh: from a product to heads."""

    _fields_ = (
        ("q_norm", Pointer), ("k_norm", Pointer), ("frequencies", Pointer), ("eps", Float),
        ("magnitude", Float), ("n_rot", Int), ("interleaved", Int), ("gated", Int), ("n_heads", Int),
        ("n_kv_heads", Int),
    )  # fmt: skip


class Splits(ctypes.Structure):
    """`Splits` of kernels/attention.cu: what the blocks of a row have added up."""

    _fields_ = (("sums", Pointer), ("stats", Pointer), ("count", Int))


class AttentionOps(Recorder):
    """`Ops.attend` and `Ops.store`."""

    _kv: int
    _layer_bytes: int

    def _allocate_attention(self) -> None:
        """Pages, and room for queries and for what the blocks of a row have added up."""
        shape, limits = self.shape, self._limits
        self._page_bytes = shape.n_kv_heads * PAGE * shape.head_dim * 2
        self._layer_bytes = limits.pages * self._page_bytes
        size = 2 * shape.n_kv_layers * self._layer_bytes
        self._kv = self._allocate("kv", size)
        self.card.runtime.memsetAsync(self._kv, 0, size, self.card.stream.ptr)
        self._flash = variants.flash(shape.head_dim, self.card.arch)
        self._splits = max(1, min(64, -(-2 * self.card.processors // shape.n_kv_heads)))
        heads, dim = shape.n_heads, shape.head_dim
        states = heads * max(variants.MOST_SHORT * self._splits, self._rows)
        self._queries = self._allocate("work", self._rows * heads * dim * 2)
        self._sums = self._allocate("work", states * dim * 4)
        self._stats = self._allocate("work", states * 8)
        size = 4 * variants.MOST_WHOLE * shape.n_kv_heads
        self._ended = self._allocate("work", size)
        self.card.runtime.memsetAsync(self._ended, 0, size, self.card.stream.ptr)
        self.card.build(variants.of_head(dim, self.card.arch))

    def _tile(self, rows: int) -> tuple[int, int]:
        """Batch rows and heads of a tile in a step of `rows`."""
        dim, arch = self.shape.head_dim, self.card.arch
        short = rows <= MOST_ROWS
        room = variants.attention(dim, rows, arch).rows if short else self._flash.rows
        heads = min(self.shape.n_heads // self.shape.n_kv_heads, room)
        return room // heads, heads

    def page_bytes(self) -> int:
        return 2 * self.shape.n_kv_layers * self._page_bytes

    def read_page(self, page: int, to: NDArray[np.uint8]) -> None:
        self._move_page(to.ctypes.data, self._page_bytes, self._page_at(page), self._layer_bytes)
        self.card.stream.synchronize()

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
        heads = self._heads(rope, q_norm, k_norm, eps, s.n_heads, gated)
        flash = self.card.kernel(self._flash.variant, "flash", self._flash.shared)
        keys, values = self._pages(layer)
        queries = Pointer(self._queries)
        group = s.n_heads // s.n_kv_heads

        def launch(p: Pass) -> None:
            build = variants.attention(s.head_dim, p.rows, self.card.arch)
            product, rows, to = self._product(qkv, p), self._step.rows(p), activation_of(out, p)
            tiles, tile_heads = Pointer(self._step.at(TILES, p)), self._tile(p.rows)[1]
            splits = Splits(self._sums, self._stats, self._splits if p.short else 1)
            blocks = s.n_kv_heads * -(-group // tile_heads)
            if not (p.short and build.whole):
                self._store(qkv, layer, heads, p)
            args: tuple[Any, ...]
            if p.short:
                kernel = self.card.kernel(build.variant, "attention", build.shared)
                args = (
                    product, rows, view, heads, tiles, Int(tile_heads), Int(p.rows), queries, keys, values,
                    splits, Pointer(self._ended), to,
                )  # fmt: skip
                self._launch(kernel, (blocks, self._splits, p.tiles), 256, args)
                if build.whole:
                    return
            else:
                args = (
                    queries, keys, values, tiles, rows, view, Int(s.n_heads), Int(s.n_kv_heads),
                    Int(tile_heads), Pointer(self._sums), Pointer(self._stats),
                )  # fmt: skip
                self._launch(flash, (blocks, 1, p.tiles), 2 * self._flash.rows, args)
            combine = self.card.kernel(
                variants.attention(s.head_dim, MOST_ROWS, self.card.arch).variant, "combine"
            )
            args = product, rows, view, Int(gated), splits, to
            self._launch_shared(combine, out.width, p, args)

        self._add(launch, qkv, out)
        return out

    def store(
        self, kv: Buffer, layer: int, rope: Rope, k_norm: Weight | None = None, eps: float = 0.0
    ) -> None:
        heads = self._heads(rope, None, k_norm, eps, 0, False)
        self._add(lambda p: self._store(kv, layer, heads, p), kv)

    def _heads(
        self,
        rope: Rope,
        q_norm: Weight | None,
        k_norm: Weight | None,
        eps: float,
        n_heads: int,
        gated: bool,
    ) -> Heads:
        return Heads(
            q_norm.address if q_norm else None, k_norm.address if k_norm else None,
            self._frequencies(rope), eps, rope.magnitude, rope.n_rot, rope.interleaved, gated,
            n_heads, self.shape.n_kv_heads,
        )  # fmt: skip

    def _pages(self, layer: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """Keys and values of a layer with attention."""
        at = self._kv + 2 * layer * self._layer_bytes
        return Pointer(at), Pointer(at + self._layer_bytes)

    def _store(self, qkv: Buffer, layer: int, heads: Heads, p: Pass) -> None:
        """Keys and values to their pages, and queries, if there are any, to their buffer."""
        kernel = self.card.kernel(variants.rope(self.shape.head_dim), "rope_store")
        args = (
            self._product(qkv, p), self._step.rows(p), heads, Pointer(self._queries), *self._pages(layer),
        )  # fmt: skip
        self._launch(kernel, (heads.n_heads + 2 * heads.n_kv_heads, p.rows, 1), 32, args)

    def _move_rows(self, sequence: int, rows: Seq[int], kept: int, p: Pass) -> None:
        """Keys and values of tried `rows` to the places from `kept` on of their sequence."""
        if list(rows) == list(range(kept, kept + len(rows))):
            return
        s = self.shape
        kernel = self.card.kernel(variants.rope(s.head_dim), "move_rows")
        args = (
            self._step.rows(p), Int(sequence), Path.of(rows), Int(kept), Int(s.n_kv_heads),
            Pointer(self._kv), ctypes.c_longlong(self._layer_bytes // 2),
        )  # fmt: skip
        self._launch(kernel, (s.n_kv_heads, s.n_kv_layers, 1), 128, args)
