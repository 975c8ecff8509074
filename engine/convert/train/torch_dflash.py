"""The DFlash drafter in PyTorch, for training: many blocks of many texts in one pass."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from engine.convert.train.torch_llama import angles, rms_norm, rotate
from engine.draft.config import DraftConfig


class Layer(nn.Module):
    """One layer; attributes follow the names in the file."""

    def __init__(self, cfg: DraftConfig) -> None:
        super().__init__()
        q_dim, kv_dim = cfg.n_heads * cfg.head_dim, cfg.n_kv_heads * cfg.head_dim
        self.attn_norm = nn.Parameter(torch.ones(cfg.n_embd))
        self.attn_q = nn.Linear(cfg.n_embd, q_dim, bias=False)
        self.attn_k = nn.Linear(cfg.n_embd, kv_dim, bias=False)
        self.attn_v = nn.Linear(cfg.n_embd, kv_dim, bias=False)
        self.attn_q_norm = nn.Parameter(torch.ones(cfg.head_dim))
        self.attn_k_norm = nn.Parameter(torch.ones(cfg.head_dim))
        self.attn_output = nn.Linear(q_dim, cfg.n_embd, bias=False)
        self.ffn_norm = nn.Parameter(torch.ones(cfg.n_embd))
        self.ffn_gate = nn.Linear(cfg.n_embd, cfg.n_ff, bias=False)
        self.ffn_up = nn.Linear(cfg.n_embd, cfg.n_ff, bias=False)
        self.ffn_down = nn.Linear(cfg.n_ff, cfg.n_embd, bias=False)


class TorchDflash(nn.Module):
    """A drafter for blocks after any positions of texts whose features are known."""

    def __init__(self, cfg: DraftConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.fc = nn.Linear(cfg.n_features, cfg.n_embd, bias=False)
        self.enc_output_norm = nn.Parameter(torch.ones(cfg.n_embd))
        self.blk = nn.ModuleList(Layer(cfg) for _ in range(cfg.n_layers))
        self.output_norm = nn.Parameter(torch.ones(cfg.n_embd))
        for name, p in self.named_parameters():
            if p.dim() == 2:
                into_residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
                shrink = (2 * cfg.n_layers) ** -0.5 if into_residual else 1.0
                nn.init.normal_(p, std=0.5 * p.shape[1] ** -0.5 * shrink)

    def forward(
        self, features: Tensor, anchors: Tensor, token_embd: Tensor, last: Tensor, size: int
    ) -> Tensor:
        """Normed rows (B, A, size, n_embd) of the blocks of `size` that begin at `anchors` (B, A).

        `features` are (B, T, n_features); `last` (B, A) the tokens at the anchors, which stand first in
        their blocks; a block sees the features before its anchor.
        """
        cfg, (n_rows, n_anchors) = self.cfg, anchors.shape
        n = features.shape[1]
        c = rms_norm(self.fc(features), self.enc_output_norm, cfg.eps)
        tokens = torch.full((n_rows, n_anchors, size), cfg.mask, device=last.device)
        tokens[:, :, 0] = last
        x = token_embd[tokens].flatten(1, 2).float()
        inside = torch.arange(size, device=last.device)
        position = (anchors[:, :, None] + inside).flatten(1)
        seen = self._seen(n, size, anchors, position)
        cos, sin = angles(cfg.rope, n + size, last.device)
        own = (cos[position][:, None], sin[position][:, None])
        for layer in self.blk:
            x = self._layer(layer, x, c, seen, (cos[:n], sin[:n]), own)
        return rms_norm(x, self.output_norm, cfg.eps).unflatten(1, (n_anchors, size))

    def _seen(self, n: int, size: int, anchors: Tensor, position: Tensor) -> Tensor:
        """Which keys, n of the context and then all blocks', each block row sees: (B, 1, rows, keys)."""
        at = torch.arange(n, device=anchors.device)
        first = anchors.repeat_interleave(size, 1)[:, :, None]
        context = at < first
        if window := self.cfg.windows[0]:
            context = context & (at > position[:, :, None] - window)
        block = torch.arange(anchors.shape[1], device=anchors.device).repeat_interleave(size)
        same = (block[:, None] == block[None]).expand(len(anchors), -1, -1)
        return torch.cat([context, same], -1)[:, None]

    def _layer(
        self, layer: nn.Module, x: Tensor, c: Tensor, seen: Tensor, context: tuple[Tensor, Tensor],
        own: tuple[Tensor, Tensor],
    ) -> Tensor:  # fmt: skip
        cfg = self.cfg

        def heads(y: Tensor) -> Tensor:
            return y.unflatten(-1, (-1, cfg.head_dim)).transpose(1, 2)

        def keys(y: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
            k = rms_norm(heads(layer.attn_k(y)), layer.attn_k_norm, cfg.eps)
            return rotate(k, *turn, interleaved=False)

        a = rms_norm(x, layer.attn_norm, cfg.eps)
        q = rms_norm(heads(layer.attn_q(a)), layer.attn_q_norm, cfg.eps)
        q = rotate(q, *own, interleaved=False)
        k = torch.cat([keys(c, context), keys(a, own)], 2)
        v = torch.cat([heads(layer.attn_v(c)), heads(layer.attn_v(a))], 2)
        group = cfg.n_heads // cfg.n_kv_heads
        k, v = (t.repeat_interleave(group, 1) for t in (k, v))
        o = F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype), attn_mask=seen)
        x = x + layer.attn_output(o.transpose(1, 2).flatten(2))
        f = rms_norm(x, layer.ffn_norm, cfg.eps)
        out: Tensor = x + layer.ffn_down(F.silu(layer.ffn_gate(f)) * layer.ffn_up(f))
        return out
