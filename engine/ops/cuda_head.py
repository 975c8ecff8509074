"""The end of a step on a card: logits of the wanted rows, and the tokens that are chosen there."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ops.base import MOST_CHOSEN, StepInput
from engine.ops.choosing import Choice
from engine.ops.cuda_buffers import (
    MOST_ROWS,
    Buffer,
    Int,
    Launch,
    Pass,
    Pointer,
    activation_of,
)
from engine.ops.cuda_device import Card, Weight, told
from engine.ops.cuda_draw import Draws
from engine.ops.cuda_ranks import Ranking, Ranks
from engine.ops.cuda_recorder import Recorder, form_read
from engine.ops.cuda_step import WANTED
from engine.ops.ranking import Ranked
from kernels.variants import Variant

_PIECES = 32
_BEST_BYTES = 12 * _PIECES  # of a row; kernels/head.cu


@dataclass(frozen=True, slots=True)
class Found:
    """The tokens of a launched step: where they come to lie on the host, and the event behind them."""

    tokens: NDArray[np.int32]
    event: Any = None


class _Place:
    """Where the card puts tokens; there are two in turn, as one more step may end before they are read."""

    def __init__(self, card: Card) -> None:
        pinned, self._owner = card.pinned(4 * MOST_CHOSEN)
        self.tokens: NDArray[np.int32] = pinned.view(np.int32)
        self.event = card.mark()


class HeadOps(Recorder):
    """`Ops.head`, and what is read of a step."""

    _logits: NDArray[np.float32]
    _host: NDArray[np.float32] | None

    def _allocate_head(self) -> None:
        n_vocab = self.shape.n_vocab
        pinned, self._logits_owner = self.card.pinned(4 * MOST_ROWS * n_vocab)
        self._logits = pinned.view(np.float32).reshape(MOST_ROWS, n_vocab)
        self._logits_there = self._allocate("work", self._logits.nbytes)
        self._found_there = self._allocate("work", MOST_ROWS * (_BEST_BYTES + 4))
        self._found = [_Place(self.card) for _ in range(2)]
        self._draws = Draws(self.card, self._allocate, n_vocab)
        self._ranks = Ranks(self.card, self._allocate, n_vocab)

    def head(self, h: Buffer, output: Weight) -> None:
        h.forms.add(32)
        self._capture(self.shape.n_layers, h)
        rows = Buffer(h.width, {form_read(output)}, rows=MOST_ROWS, eps=h.eps)
        rows.weight_bytes = output.size
        y = Buffer(
            output.rows,
            rows=MOST_ROWS,
            launches=(Launch((output,), 0),),
            source=None if h.eps is None else rows,
        )
        gather = self.card.kernel(Variant("head.cu"), "gather")
        collect = self.card.kernel(Variant("head.cu"), "collect")

        def launch(p: Pass) -> None:
            wanted = Pass(p.wanted, self._short_form, 0, 0)
            normed = h.eps is not None
            args: tuple[Any, ...] = (
                Pointer(h.at("32")), Pointer(h.at("squares") if normed else None),
                Pointer(self._step.at(WANTED, p, p.from_wanted)), Int(h.width),
                Pointer(rows.at("squares") if normed else None), activation_of(rows, wanted),
            )  # fmt: skip
            self._launch_rows(gather, h.width, p.wanted, args)
            self._matmul(rows, y, y.launches[0], 0, wanted)
            args = self._product(y, wanted), Pointer(self._logits_there), Int(output.rows)
            self._launch(collect, (-(-output.rows // 1024), p.wanted, 1), 256, args)
            if p.ranked is None:
                self._find(p.wanted)
            else:
                self._ranks.look(self._logits_there, p.wanted, *p.ranked)

        self._tape.head = self._add(launch, h, rows, y)

    def _keep(self, value: Buffer, to: int, stride: int, p: Pass) -> None:
        """A product, or other rows in float32, with what they lack, to rows `stride` floats apart."""
        kernel = self.card.kernel(Variant("head.cu"), "collect")
        args = self._read(value, p), Pointer(to), Int(stride)
        self._launch(kernel, (-(-value.width // 1024), p.rows, 1), 256, args)

    def _capture(self, layer: int, x: Buffer) -> None:
        """Keep rows for `hidden`, if that layer is wanted."""
        tape = self._tape
        places = [i for i, wanted in enumerate(tape.capture) if wanted == layer]
        stride = len(tape.capture) * self.shape.n_embd

        def launch(p: Pass) -> None:
            for place in places:
                self._keep(x, tape.kept + 4 * place * self.shape.n_embd, stride, p)

        if places:
            x.forms.add(32)
            self._add(launch, x)

    # What is read

    def collect(self, launched: Found) -> NDArray[np.int32]:
        if launched.event is not None:
            with told():
                launched.event.synchronize()
        return launched.tokens

    def ranked(self, launched: Ranking) -> Ranked:
        with told():
            return self._ranks.read(launched)

    def logits(self) -> NDArray[np.float32]:
        if self._host is not None:
            return self._host
        with told():
            self.card.use()
            return self._read_logits(self._wanted)

    def tokens_of(
        self, logits: NDArray[np.float32], choices: Seq[Choice], tokens: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """What is chosen from logits (R, n_vocab) of the host's, as after a step of `tokens`: to check it."""
        rows = len(logits)
        zeros = np.zeros(rows, np.int32)
        step = StepInput(zeros, zeros, zeros, np.zeros((1, 1), np.int32), zeros, choices=choices)
        with told():
            self.card.use()
            self._step.send(step, MOST_ROWS)
            self.card.copy(self._logits_there, logits.ctypes.data, logits.nbytes)
            self.card.copy(self._draws.tokens, tokens.ctypes.data, tokens.nbytes)
            self._find(rows)
            self._draws.launch(self._logits_there, choices, self._found_there)
            return self.collect(self._send_found(rows)).copy()

    def _find(self, rows: int) -> None:
        """Of the logits of the last launch: the likeliest tokens."""
        pieces = Pointer(self._found_there + 4 * MOST_ROWS)
        width, known = Int(self.shape.n_vocab), Pointer(self._step.known)
        args: tuple[Any, ...] = Pointer(self._logits_there), width, known, pieces
        best_of = self.card.kernel(Variant("head.cu"), "best_of")
        self._launch(best_of, (_PIECES, rows, 1), 256, args)
        likeliest = self.card.kernel(Variant("head.cu"), "likeliest")
        self._launch(likeliest, (rows, 1, 1), 32, (pieces, Pointer(self._found_there)))

    def _send_found(self, rows: int) -> Found:
        """Of the last launch of the head: its tokens, on their way to the host."""
        self._wanted = rows
        self._found.reverse()
        place = self._found[0]
        if rows:
            self.card.copy(place.tokens.ctypes.data, self._found_there, 4 * rows)
        place.event.record(self.card.stream)
        return Found(place.tokens[:rows], place.event)

    def _read_logits(self, rows: int) -> NDArray[np.float32]:
        """Of the last launch of the head: its rows. For none nobody waits."""
        self._wanted = rows
        if rows:
            size = rows * self.shape.n_vocab * 4
            self.card.copy(self._logits.ctypes.data, self._logits_there, size)
            self.card.stream.synchronize()
        return self._logits[:rows]
