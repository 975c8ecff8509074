"""DFlash and DFlash 2 drafting in plain NumPy, float32, everything computed anew for each block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.draft.config import DraftConfig
from engine.draft.files import DraftFile
from engine.ops.numpy_ops import rms_norm, rotate, sigmoid

F32 = NDArray[np.float32]


@dataclass
class Drafted:
    """One block's numbers; `hidden` and `logits` have a row for each of its tokens."""

    fused: F32
    layers: list[F32]
    hidden: F32
    logits: F32


class NumpyDflash:
    """A fitted draft with the target's embedding and head, (n_vocab, n_embd) each."""

    def __init__(self, file: DraftFile, cfg: DraftConfig, token_embd: F32, output: F32) -> None:
        self.cfg, self.token_embd, self.output = cfg, token_embd, output
        self.w = {name: t.dequantize() for name, t in file.tensors.items()}

    def fuse(self, features: F32) -> F32:
        """Context rows (C, n_embd) of captured outputs (C, n_features)."""
        cfg = self.cfg
        if cfg.aux_norms:
            parts = np.split(features, cfg.n_capture, axis=1)
            named = [
                rms_norm(x, self.w[f"aux_norm.{k}.weight"], cfg.eps) for k, x in enumerate(parts)
            ]
            features = np.concatenate(named, axis=1)
        return rms_norm(features @ self.w["fc.weight"].T, self.w["enc.output_norm.weight"], cfg.eps)

    def block(self, features: F32, last: int, size: int) -> Drafted:
        """The block of `last` and `size` - 1 masks after `features`, one row for each token before it."""
        cfg = self.cfg
        c = self.fuse(features)
        tokens = [last] + [cfg.mask] * (size - 1)
        x = self.token_embd[tokens] * np.float32(cfg.embedding_scale)
        layers = []
        for i in range(cfg.n_layers):
            x = self._layer(i, x, c)
            layers.append(x)
        hidden = rms_norm(x, self.w["output_norm.weight"], cfg.eps)
        logits = hidden @ self.w.get("output.weight", self.output).T * np.float32(cfg.logit_scale)
        if cfg.softcap:
            logits = np.tanh(logits / cfg.softcap) * np.float32(cfg.softcap)
        return Drafted(c, layers, hidden, logits)

    def tokens(self, drafted: Drafted, last: int) -> list[int]:
        """The proposed tokens after `last`."""
        if self.cfg.selector is None:
            return [int(row.argmax()) for row in drafted.logits[1:]]
        out, previous = [], last
        for row, h in zip(drafted.logits[1:], drafted.hidden[1:], strict=True):
            ids = np.argsort(-row, kind="stable")[: self.cfg.selector.top_k]
            gate = self.w["selector_hidden.weight"] @ h
            tie = self.w["selector_predecessor.weight"][previous] * gate
            score = row[ids] + self.w["selector_successor.weight"][ids] @ tie
            previous = int(ids[score.argmax()])
            out.append(previous)
        return out

    def _layer(self, i: int, x: F32, c: F32) -> F32:
        cfg, w = self.cfg, {k: v for k, v in self.w.items() if k.startswith(f"blk.{i}.")}

        def of(name: str) -> F32:
            return w[f"blk.{i}.{name}"]

        a = rms_norm(x, of("attn_norm.weight"), cfg.eps)
        context = rms_norm(c, of("attn_norm.weight"), cfg.eps) if cfg.normed_context else c
        a, undo = self._convolved(i, "attn", a)
        n, start = len(x), len(c)
        rows = np.concatenate([context, a])
        q = self._heads(a @ of("attn_q.weight").T, of("attn_q_norm.weight"))
        k = self._heads(rows @ of("attn_k.weight").T, of("attn_k_norm.weight"))
        v = (rows @ of("attn_v.weight").T).reshape(len(rows), -1, cfg.head_dim)
        at = np.arange(start + n)
        q, k = rotate(q, at[start:], cfg.rope), rotate(k, at, cfg.rope)
        seen = np.ones((n, start + n), bool)
        if cfg.causal[i]:
            seen &= at[None] <= at[start:, None]
        if window := cfg.windows[i]:
            low = at[start:, None] - window + 1 if cfg.window_per_row else start - window
            seen &= at[None] >= low
            seen &= at[None] - at[start:, None] < window
        o = np.empty((n, cfg.n_heads, cfg.head_dim), np.float32)
        group = cfg.n_heads // cfg.n_kv_heads
        for h in range(cfg.n_heads):
            score = q[:, h] @ k[:, h // group].T / np.float32(np.sqrt(cfg.head_dim))
            score = np.where(seen, score, -np.inf)
            p = np.exp(score - score.max(axis=1, keepdims=True))
            o[:, h] = p / p.sum(axis=1, keepdims=True) @ v[:, h // group]
        if cfg.gate:
            g = np.logaddexp(0, a @ of("attn_gate.weight").T)
            o *= g.reshape(n, cfg.n_heads, -1)
        x = x + undo(o.reshape(n, -1) @ of("attn_output.weight").T)
        f = rms_norm(x, of("ffn_norm.weight"), cfg.eps)
        f, undo = self._convolved(i, "ffn", f)
        gate = f @ of("ffn_gate.weight").T
        up = f @ of("ffn_up.weight").T
        return x + undo((gate * sigmoid(gate) * up) @ of("ffn_down.weight").T)

    def _heads(self, x: F32, norm: F32) -> F32:
        return rms_norm(x.reshape(len(x), -1, self.cfg.head_dim), norm, self.cfg.eps)

    def _convolved(self, i: int, part: str, h: F32):  # type: ignore[no-untyped-def]
        """The convolution before a sub-layer, and a function for the one after it."""
        if (conv := self.cfg.conv) is None:
            return h, lambda y: y
        base = self.w[f"blk.{i}.{part}_conv_base"]
        kernels = h @ self.w[f"blk.{i}.{part}_conv_proj.weight"].T
        kernels = kernels.reshape(len(h), 2, conv.kernel, -1).repeat(conv.group, axis=3)

        def convolve(x: F32, which: int) -> F32:
            y = np.zeros_like(x)
            for tap in range(min(conv.kernel, len(x))):
                taps = base[which, tap] + kernels[tap:, which, tap]
                y[tap:] += taps * x[: len(x) - tap]
            return y

        return convolve(h, 0), lambda y: convolve(y, 1)
