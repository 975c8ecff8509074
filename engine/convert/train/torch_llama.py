"""A dense target in PyTorch: to write the texts that a drafter learns from, and to show what it reads."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from engine.errors import UnsupportedModel
from engine.gguf import ModelFile
from engine.models.base import DenseConfig, model_of
from engine.ops.base import Rope

ARCHITECTURES = ("llama", "qwen3")
MIN_P = 0.05
"""Sampled tokens have at least this share of the likeliest one's probability."""


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm over the last axis."""
    return F.rms_norm(x, weight.shape, weight.to(x.dtype), eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Rotary embedding of heads x (..., T, head_dim); cos and sin broadcast against (..., T, n_rot / 2)."""
    half = cos.shape[-1]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        out = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    else:
        a, b = turned[..., :half], turned[..., half:]
        out = torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
    return torch.cat([out.to(x.dtype), rest], -1) if rest.shape[-1] else out.to(x.dtype)


def angles(rope: Rope, n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines (n, n_rot / 2) of positions 0 .. n - 1."""
    frequency = torch.tensor(rope.frequencies(), dtype=torch.float64)
    angle = torch.arange(n, dtype=torch.float64)[:, None] * frequency
    turns = (angle.cos() * rope.magnitude, angle.sin() * rope.magnitude)
    cos, sin = (t.float().to(device) for t in turns)
    return cos, sin


class TorchTarget:
    """A llama or qwen3 model with its weights dequantised to `dtype` on `device`; never trained."""

    def __init__(self, file: ModelFile, device: torch.device, dtype: torch.dtype) -> None:
        if file.architecture not in ARCHITECTURES:
            raise UnsupportedModel(
                f"{file.architecture} targets cannot be trained for in this version; expected one of"
                f" {', '.join(ARCHITECTURES)}."
            )
        self.cfg: DenseConfig = model_of(file.architecture).read_config(file)
        self.device, self.dtype = device, dtype
        self.w = {
            name.removesuffix(".weight"): torch.from_numpy(t.dequantize()).to(device, dtype)
            for name, t in file.tensors.items()
        }
        self.token_embd = self.w["token_embd"]
        self.output = self.w.get("output", self.token_embd)

    @torch.no_grad()
    def features(self, tokens: Tensor, capture: Sequence[int]) -> Tensor:
        """What the layers `capture` give for whole texts (B, T): (B, T, len(capture) * n_embd)."""
        n = tokens.shape[1]
        cos, sin = angles(self.cfg.rope, n, self.device)
        x, found = self.token_embd[tokens], {}
        for i in range(max(capture) + 1):

            def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

            x = self._layer(i, x, cos, sin, attend)
            if i in capture:
                found[i] = x
        return torch.cat([found[i] for i in capture], -1)

    @torch.no_grad()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        most: int,
        stop: int,
        heat: Sequence[float],
        seed: int,
    ) -> list[list[int]]:
        """Go on from prompts until `stop` or `most` tokens in all, each at its temperature, 0 is greedy.

        All rows stand at the same position: a row that still reads its prompt takes the prompt's token.
        """
        c, n_rows = self.cfg, len(prompts)
        lengths = torch.tensor([len(p) for p in prompts], device=self.device)
        tokens = torch.full((n_rows, most), stop, dtype=torch.long)
        for row, prompt in zip(tokens, prompts, strict=True):
            row[: len(prompt)] = torch.tensor(prompt[:most])
        tokens = tokens.to(self.device)
        hot = torch.tensor([i for i, h in enumerate(heat) if h > 0], device=self.device)
        degree = torch.tensor([h for h in heat if h > 0], device=self.device)[:, None]
        random = torch.Generator(self.device).manual_seed(seed)
        cos, sin = angles(c.rope, most, self.device)
        shape = (c.n_layers, 2, n_rows, c.n_kv_heads, most, c.head_dim)
        cache = torch.empty(shape, dtype=self.dtype, device=self.device)
        ended = torch.zeros(n_rows, dtype=torch.bool, device=self.device)
        for t in range(most - 1):
            x = self.token_embd[tokens[:, t : t + 1]]
            for i in range(c.n_layers):

                def attend(
                    q: Tensor, k: Tensor, v: Tensor, kv: Tensor = cache[i], at: int = t
                ) -> Tensor:
                    kv[0, :, :, at : at + 1], kv[1, :, :, at : at + 1] = k, v
                    seen = kv[:, :, :, : at + 1]
                    return F.scaled_dot_product_attention(q, seen[0], seen[1], enable_gqa=True)

                x = self._layer(i, x, cos[t : t + 1], sin[t : t + 1], attend)
            reading = lengths > t + 1
            if bool(reading.all()):
                continue
            logits = self.logits(rms_norm(x[:, 0], self.w["output_norm"], c.eps))
            best = logits.argmax(-1)
            if len(hot):
                scores = logits[hot].float() / degree
                floor = scores.amax(-1, keepdim=True) + math.log(MIN_P)
                noise = torch.empty_like(scores).exponential_(generator=random).log_()
                best[hot] = scores.masked_fill_(scores < floor, -math.inf).sub_(noise).argmax(-1)
            chosen = torch.where(ended, stop, best)
            tokens[:, t + 1] = torch.where(reading, tokens[:, t + 1], chosen)
            ended |= ~reading & (chosen == stop)
            if t % 16 == 0 and bool(ended.all()):
                break
        rows = tokens.tolist()
        return [_until(row, len(p), stop) for row, p in zip(rows, prompts, strict=True)]

    def logits(self, hidden: Tensor) -> Tensor:
        """The scores of all tokens for normed rows (..., n_embd)."""
        return hidden @ self.output.T

    def _layer(self, i: int, x: Tensor, cos: Tensor, sin: Tensor, attend) -> Tensor:  # type: ignore[no-untyped-def]
        c, w, b = self.cfg, self.w, f"blk.{i}."
        a = rms_norm(x, w[b + "attn_norm"], c.eps)
        q, k, v = (self._heads(a @ w[f"{b}attn_{n}"].T) for n in "qkv")
        if b + "attn_q_norm" in w:
            q = rms_norm(q, w[b + "attn_q_norm"], c.eps)
            k = rms_norm(k, w[b + "attn_k_norm"], c.eps)
        q, k = (rotate(h, cos, sin, c.rope.interleaved) for h in (q, k))
        o = attend(q, k, v).transpose(1, 2).flatten(2)
        x = x + o @ w[b + "attn_output"].T
        f = rms_norm(x, w[b + "ffn_norm"], c.eps)
        return x + (F.silu(f @ w[b + "ffn_gate"].T) * (f @ w[b + "ffn_up"].T)) @ w[b + "ffn_down"].T

    def _heads(self, x: Tensor) -> Tensor:
        """(B, T, heads * head_dim) -> (B, heads, T, head_dim)."""
        return x.unflatten(-1, (-1, self.cfg.head_dim)).transpose(1, 2)


def _until(row: list[int], start: int, stop: int) -> list[int]:
    """A row up to its first `stop` from `start` on, that one included."""
    try:
        return row[: row.index(stop, start) + 1]
    except ValueError:
        return row
