"""The operations that a model file may use; every backend implements the same names with the same meaning.

A model's `forward` is recorded once, after the buffers are allocated, and replayed for every step: all that
varies between steps (tokens, positions, page tables, the number of rows) sits in buffers that `run` fills.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.gguf import Tensor
from engine.ops.choosing import Choice
from engine.ops.ranking import Ranked

Buffer = Any
"""A backend's handle of a (M, width) activation; model files pass it on and never look inside."""

Weight = Any
"""A backend's handle of an uploaded tensor."""

Recording = Any
"""A backend's handle of what `recording` took down."""

Rows = Any
"""A backend's handle of (n, width) float32 rows on its device: `len(rows)`, `rows[a:b]` and `rows[[2, 0]]`
give rows; `np.asarray(rows)` brings them to the host. An array of NumPy serves everywhere."""

Launched = Any
"""A backend's handle of a step that was started."""

MOST_CHOSEN = 32
"""Rows of a step whose tokens a backend chooses."""

MOST_TRIED = 32
"""Most rows that a sequence may have tried in one step: a backend keeps who sees whom in 32 bits."""


MOST_KEPT, LEAST_KEPT = 3, 64
"""States that a step may leave on its way, and how many rows must lie between them."""


def no_numbers() -> NDArray[np.int32]:
    """The value of a step's variable that is not used."""
    return np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding of the first `n_rot` dims of a head.

    `interleaved` rotates pairs (2i, 2i+1), else (i, i + n_rot/2). The angle of pair i at position p is
    p * base^(-2i/n_rot) * scale / factors[i]; sines and cosines are multiplied by `magnitude` (YaRN).
    """

    n_rot: int
    base: float
    interleaved: bool
    scale: float = 1.0
    magnitude: float = 1.0
    factors: NDArray[np.float32] | None = None

    def frequencies(self) -> NDArray[np.float64]:
        """Radians for each position, of each pair."""
        exponent = np.arange(0, self.n_rot, 2, dtype=np.float64) / self.n_rot
        frequency = np.float64(self.base) ** -exponent * self.scale
        return frequency if self.factors is None else frequency / self.factors


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """Gated DeltaNet layers: `n_v_heads` states of (head_dim, head_dim) float32 each, and the last
    `conv_kernel` - 1 rows of q|k|v before the convolution; v-head j goes with k-head j % n_k_heads.
    """

    n_layers: int
    n_k_heads: int
    n_v_heads: int
    head_dim: int
    conv_kernel: int

    @property
    def qkv(self) -> int:
        """Columns of q|k|v."""
        return (2 * self.n_k_heads + self.n_v_heads) * self.head_dim


@dataclass(frozen=True, slots=True)
class Shape:
    """What a backend must allocate for a model of `n_layers`, those of `delta` recurrent, all others with
    attention over `n_kv_heads` of `head_dim`.
    """

    n_layers: int
    n_embd: int
    n_vocab: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    delta: DeltaShape | None = None

    @property
    def n_kv_layers(self) -> int:
        """Layers with attention."""
        return self.n_layers - (self.delta.n_layers if self.delta else 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Capacities: `rows` tokens and `sequences` a step, `pages` of `page_tokens`, `pages_per_sequence`,
    and `slots` of recurrent state for models that have it; `tried` of the rows may be tried.
    """

    rows: int
    sequences: int
    pages: int
    page_tokens: int
    pages_per_sequence: int
    slots: int = 0
    tried: int = 0


@dataclass(frozen=True, slots=True)
class StepInput:
    """One step's variables, all int32.

    `tokens`, `positions` and `sequence` are (M,); row m belongs to row `sequence[m]` of `page_table`
    (S, P), stores its key and value at `positions[m]` and attends to positions 0..positions[m] of its
    sequence (rows of the same step included). `logit_rows` (R,) are the rows whose logits are wanted.
    `slots` (S,) hold the sequences' recurrent states, which are zero before position 0; the rows of a
    sequence stand together and in order.

    A tree of guesses: `parents` (M,), empty where each row follows the one before, is for each row the row
    of the step that comes before it in the text, -1 where that is not in the step. Row m attends to its
    ancestors and itself, and to all of its sequence before the step; its state goes on from its parent's.
    Key and value of the i-th row of a sequence always lie at its first row's position + i, also where
    branches share a position. Rows of sequences with `tried` (S,) not 0 (empty: none) leave the states
    as they are, until `Ops.accept` says which of them stand; up to `MOST_TRIED` of them a sequence.

    Each of `keeps`, (sequence, n, slot), asks that the state after the first n rows of a sequence that is not
    tried be in `slot`, too, where `Ops.keeps` says so; up to `MOST_KEPT` a step, `LEAST_KEPT` rows or more
    apart, and rows follow.

    Of each of `late`, (row, n, what `Ranks.rank` started), the tokens of n rows from `row` on are the
    likeliest of the ranked ones, whatever `tokens` has there.

    `given` are the rows (M, width) of `Ops.given`. `choices`, for `Chooses.launch`, are one for each of
    `logit_rows`.
    """

    tokens: NDArray[np.int32]
    positions: NDArray[np.int32]
    sequence: NDArray[np.int32]
    page_table: NDArray[np.int32]
    logit_rows: NDArray[np.int32]
    slots: NDArray[np.int32] = field(default_factory=no_numbers)
    parents: NDArray[np.int32] = field(default_factory=no_numbers)
    tried: NDArray[np.int32] = field(default_factory=no_numbers)
    given: Rows | None = None
    choices: Seq[Choice] = ()
    keeps: Seq[tuple[int, int, int]] = ()
    late: Seq[tuple[int, int, Launched]] = ()


@runtime_checkable
class Chooses(Protocol):
    """A backend that chooses tokens itself, so that logits need not leave its device, and which can take one
    more step before the tokens of the last one are read."""

    def launch(self, step: StepInput) -> Launched:
        """Start a step that wants at most `MOST_CHOSEN` tokens; it ends in its turn with all else that is
        asked of the device, pages and states that are moved included.

        In a step of at most that many rows, a token -1 - r stands for the one that row r of the step
        launched last finds, if nothing else ran since; of one that finds none, for any.
        """
        ...

    def collect(self, launched: Launched) -> NDArray[np.int32]:
        """The tokens (R,), as `choosing.chosen` has them, of the step launched last or the one before."""
        ...

    def logits(self) -> NDArray[np.float32]:
        """The logits (R, n_vocab) of what was launched or run last."""
        ...


@runtime_checkable
class Ranks(Protocol):
    """A backend that ranks tokens itself, so that the logits of a drafter need not leave its device."""

    def rank(
        self, step: StepInput, recording: Recording, scale: float = 1.0, cap: float = 0.0
    ) -> Launched:
        """Start a step of at most `MOST_CHOSEN` rows, and rank the tokens of those that are wanted.

        A logit v counts as cap * tanh(scale * v / cap), as scale * v where `cap` is 0; `scale` > 0. What was
        started may be left unread.
        """
        ...

    def ranked(self, launched: Launched) -> Ranked:
        """The `MOST_RANKED` likeliest tokens of each wanted row of one of the last steps."""
        ...


class Ops(Protocol):
    """One device's operations. `M` is the number of rows of the running step."""

    def expect(self, tensors: Iterable[Tensor]) -> None:
        """Make room for tensors that are going to be uploaded; raises `OutOfMemory` with the addends."""
        ...

    def upload(self, tensor: Tensor) -> Weight:
        """Take a tensor's data to the device, in the device's own layout; 1-D tensors become float32."""
        ...

    def allocate(self, shape: Shape, limits: Limits) -> None:
        """Allocate pages and step buffers; raises `OutOfMemory` with the addends."""
        ...

    def memory(self) -> dict[str, int]:
        """Bytes held by owner: "model", "kv" and "work"."""
        ...

    def beside(self) -> Ops:
        """Other buffers on the same device, which can use this one's weights; closed before it."""
        ...

    def recording(self, capture: Seq[int] = ()) -> AbstractContextManager[Recording]:
        """Operations called inside are recorded for `run`; nothing is computed yet.

        The residual after the layers `capture`, in this order, is kept for `hidden`; n_layers stands for
        what `head` takes, the rows after the last norm. There may be several recordings over the same
        pages.
        """
        ...

    def run(self, step: StepInput, recording: Recording | None = None) -> NDArray[np.float32]:
        """Replay a recording, the first one by default; returns logits (R, n_vocab), valid until the next
        call.
        """
        ...

    def hidden(self) -> Rows:
        """What the last `run` captured: (M, len(capture) * n_embd), valid until the next one."""
        ...

    def join(self, parts: Seq[Rows]) -> Rows:
        """Rows one after the other, in memory of their own; of one part, a copy."""
        ...

    def accept(self, sequence: int, rows: Seq[int]) -> None:
        """Let `rows` of the last `run` stand: a path of the tried rows of its sequence number `sequence`.

        Counted in the sequence's own rows, 0 first, or further down the path from where the last call for it
        ended. Their keys and values come to lie one after the other, and the sequence's state is moved on.
        """
        ...

    def first_bad_layer(self, step: StepInput) -> int | None:
        """Run a step and find the layer after which the residual first holds NaN or infinity.

        -1 is the embedding, n_layers the head; None when all is finite. As with `run`, keys and values are
        written and states move on.
        """
        ...

    def page_bytes(self) -> int:
        """Bytes of one page of every layer, keys and values."""
        ...

    def alike(self) -> int | None:
        """Most rows of a step in which a row has the bits that it has alone; None where it always has."""
        ...

    def keeps(self) -> bool:
        """Whether a step can leave states on its way, `StepInput.keeps`."""
        ...

    def state_bytes(self) -> int:
        """Bytes of one slot of recurrent state, all layers; 0 for models that have none."""
        ...

    def read_page(self, page: int, to: NDArray[np.uint8]) -> None:
        """Copy one page of every layer to the host, in the backend's own layout: `to` (page_bytes,).

        It may come later, but is there once `settle` returns; the page may change at once.
        """
        ...

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Give a page the content that `read_page` had."""
        ...

    def copy_page(self, source: int, target: int) -> None:
        """Copy one page of every layer, keys and values."""
        ...

    def read_state(self, slot: int, to: NDArray[np.uint8]) -> None:
        """Copy one slot of recurrent state to the host, in the backend's own layout: `to` (state_bytes,).

        It may come later, as with `read_page`.
        """
        ...

    def write_state(self, slot: int, data: NDArray[np.uint8]) -> None:
        """Give a slot the state that `read_state` had."""
        ...

    def copy_state(self, source: int, target: int) -> None:
        """Copy one slot of recurrent state, all layers."""
        ...

    def settle(self) -> None:
        """Wait until all that was read of pages and states is in its place."""
        ...

    def close(self) -> None:
        """Free everything; the object is unusable after it."""
        ...

    def embed(self, token_embd: Weight) -> Buffer:
        """The residual stream x (M, n_embd) of the step's tokens."""
        ...

    def norm(self, x: Buffer, weight: Weight, eps: float) -> Buffer:
        """RMSNorm: weight * x / sqrt(mean(x^2) + eps), ready for `linear`."""
        ...

    def add_norm(self, x: Buffer, y: Buffer, weight: Weight, eps: float) -> Buffer:
        """x += y in place, then `norm` of x."""
        ...

    def linear(self, x: Buffer, *weights: Weight) -> Buffer:
        """x @ W.T for each weight (out, in), results side by side: (M, sum of out)."""
        ...

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
        """Attention of q|k|v rows: per-head RMSNorm where given, rope, store k and v, softmax(qk/sqrt(d)) v.

        Takes (M, (n_heads + 2 n_kv_heads) * head_dim), gives (M, n_heads * head_dim). `layer` counts the
        layers with attention. With `gated` each head of q is q|gate, and its output is multiplied by
        sigmoid(gate).

        Without `causal` a row sees all rows of its sequence in the step, those after it too. With `window`
        a row at position p sees positions p - window + 1 on, or, without `window_per_row`, all rows see
        P - window on, P the position of their sequence's first row in the step.
        """
        ...

    def store(
        self, kv: Buffer, layer: int, rope: Rope, k_norm: Weight | None = None, eps: float = 0.0
    ) -> None:
        """The part of `attend` that stores k and v, of k|v rows (M, 2 n_kv_heads * head_dim)."""
        ...

    def given(self, width: int) -> Buffer:
        """The rows (M, width) that come with the step, as `StepInput.given`."""
        ...

    def concat(self, *parts: Buffer) -> Buffer:
        """Buffers side by side: (M, sum of their widths)."""
        ...

    def delta(
        self,
        mixed: Buffer,
        layer: int,
        conv1d: Weight,
        dt_bias: Weight,
        a: Weight,
        norm: Weight,
        eps: float,
    ) -> Buffer:
        """Gated DeltaNet (arXiv 2412.06464) of rows q|k|v|z|alpha|beta; moves the sequences' states on.

        q|k|v go through a causal depthwise convolution `conv1d` (columns, kernel) and silu; q and k are
        scaled to length 1, q also by 1/sqrt(head_dim). With g = exp(a * softplus(alpha + dt_bias)) and
        b = sigmoid(beta): S <- g S; S <- S + k (b (v - S^T k))^T; o = S^T q. Gives
        RMSNorm(o, norm) * silu(z): (M, n_v_heads * head_dim). `layer` counts the recurrent layers.
        """
        ...

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
        """Mixture of experts: of softmax(router h) the `n_used` largest, scaled to sum 1, weigh
        down(silu(gate h) * up h); that of `shared`, its gate, up and down, is added, times
        sigmoid(shared_gate h).

        Stacks are (n_experts, out, in); the result (M, n_embd).
        """
        ...

    def scale(self, x: Buffer, factor: float) -> None:
        """x *= factor, in place; x is what `embed` gave."""
        ...

    def convolve(self, x: Buffer, kernels: Buffer, base: Weight, part: int, taps: int) -> Buffer:
        """y[t] = sum over i < `taps` of (base[part, i] + kernels[t, part, i]) * x[t - i], over a sequence's
        rows of the step; those before its first are zero (DFlash 2).

        `kernels` (M, 2 * taps * groups) share a number among the columns of a group; `base` is the vector
        of (2, taps, width).
        """
        ...

    def swiglu(self, gate_up: Buffer) -> Buffer:
        """silu(gate) * up of (M, 2F) rows gate|up: (M, F). Nothing else may read `gate_up`."""
        ...

    def end_layer(self, layer: int, x: Buffer) -> None:
        """Marks the end of a layer, for `first_bad_layer`."""
        ...

    def head(self, h: Buffer, output: Weight) -> None:
        """The logits of the wanted rows; the last operation of a recording."""
        ...
