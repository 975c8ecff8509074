"""What a model's steps take of a graphics card's memory, summed up from the shapes of its tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from engine.draft.mtp import AT_ONCE
from engine.gguf import HeaderSummary
from kernels.variants import BLOCK_BYTES, F16

_MIB = 1 << 20
LIBRARY = 96 * _MIB
"""NVIDIA's products work in so much, of which they take 64 themselves; a draft uses its target's."""
_SCRATCH = 192 * _MIB  # and have at most so many weights as f16
_PARTS = 20 * _MIB  # sums of blocks that share a product, on a large card
_F16 = BLOCK_BYTES[F16] / 2048  # bytes of a value in 8 rows of 256, with what the block has besides
_SPLIT = 1024  # sums of attention that short steps have more than long ones
WORD = 163
"""Bytes of logits, and of what is drawn from them, for each word."""
_TILE = 64  # rows of an expert that are computed together

_STAGES = (
    ("attn_output", ("attn_q", "attn_k", "attn_v")),
    ("ssm_out", ("attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha")),
    ("ffn_down", ("ffn_gate", "ffn_up")),
    ("ffn_down_shexp", ("ffn_gate_shexp", "ffn_up_shexp")),
)
"""Matrices that read what those before them wrote, which are multiplied together."""


def steps_on_card(header: HeaderSummary, n_vocab: int) -> tuple[int, int, int]:
    """Bytes of each row of a step, of every step, and of each guessed row until it is verified.

    They follow what `engine.ops.cuda*` allocate; a test compares. Zeros where the file has no layers.
    """
    blocks = _blocks(header)
    embd = max((b["attn_norm"][0] for b in blocks.values() if "attn_norm" in b), default=0)
    if not embd:
        return 0, 0, 0
    widest, heads, scratch, columns = _widths(blocks)
    step = min(_SCRATCH, 2 * scratch) + _PARTS + n_vocab * WORD + 4 * heads * _SPLIT
    values, recurrent = _recurrent(header, blocks)
    for_rows, for_tiles = _experts(header, blocks, embd)
    row = 4 * embd + max(widest, for_rows) + 6 * heads + 2 * max(columns, embd) + 4 * values[0]
    return row, step + for_tiles, 4 * values[1] * recurrent


def draft_step_on_card(header: HeaderSummary, block: str) -> int:
    """Bytes of the steps of a file's own draft layer `block`, without its logits."""
    blocks = {n: tensors for n, tensors in _blocks(header).items() if n == block}
    embd = max((b["attn_norm"][0] for b in blocks.values() if "attn_norm" in b), default=0)
    widest, heads, *_ = _widths(blocks)
    for_rows, for_tiles = _experts(header, blocks, embd)
    row = int((12 + 2 * _F16) * embd) + max(widest, for_rows) + 6 * heads
    return AT_ONCE * row + _PARTS + 4 * heads * _SPLIT + for_tiles


def shown_to_draft(header: HeaderSummary) -> int:
    """Values of a token that a draft reads of its target's layers; 0 for a model that reads none."""
    for name in ("dflash_fc.weight", "fc.weight"):
        if name in header.infos:
            return header.infos[name].shape[-1]
    return 0


def _blocks(header: HeaderSummary) -> dict[str, dict[str, tuple[int, ...]]]:
    """Shapes of each layer's tensors."""
    blocks: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, info in header.infos.items():
        parts = name.split(".")
        if len(parts) == 4 and parts[0] == "blk" and parts[3] == "weight" and info.shape:
            blocks.setdefault(parts[1], {})[parts[2]] = info.shape
    return blocks


def _widths(blocks: Mapping[str, Mapping[str, Any]]) -> tuple[int, int, int, int]:
    """Bytes of a row of the widest stage, values of a row's heads, weights of the largest product, and
    columns of the widest matrix."""
    widest = heads = scratch = columns = 0
    for block in blocks.values():
        for last, firsts in _STAGES:
            if last not in block:
                continue
            first = [block[name] for name in firsts if name in block]
            widest = max(widest, int(4 * sum(s[0] for s in first) + _F16 * block[last][-1]))
            scratch = max([scratch, sum(map(math.prod, first)), math.prod(block[last])])
            columns = max([columns, block[last][-1]])
        if "attn_output" in block:
            heads = max(heads, block["attn_output"][-1])
    return widest, heads, scratch, columns


def _recurrent(
    header: HeaderSummary, blocks: Mapping[str, Mapping[str, Any]]
) -> tuple[tuple[int, int], int]:
    """Values of a row that recurrent layers share, those that each keeps of a guessed one, and how many
    layers there are."""
    n_v, n_k, size = (
        _number(header, f"ssm.{key}") for key in ("time_step_rank", "group_count", "state_size")
    )
    keys, inner = n_k * size, n_v * size
    values = 2 * keys + 3 * inner + 2 * n_v + n_k
    return (values, values + 2 * keys + inner), sum("ssm_conv1d" in b for b in blocks.values())


def _experts(
    header: HeaderSummary, blocks: Mapping[str, Mapping[str, Any]], embd: int
) -> tuple[int, int]:
    """Bytes of a row, and of the tiles that experts fill up, of rows that are sorted by expert."""
    used = _number(header, "expert_used_count")
    stacks = [b["ffn_gate_exps"] for b in blocks.values() if len(b.get("ffn_gate_exps", ())) == 3]
    if not used or not stacks:
        return 0, 0
    n, inner = max(s[0] for s in stacks), max(s[1] for s in stacks)
    place = int((4 + _F16) * embd + (8 + _F16) * inner)
    return used * place + 14 * embd, _TILE * n * place


def _number(header: HeaderSummary, key: str) -> int:
    value = header.meta.get(f"{header.architecture}.{key}")
    return value if type(value) is int and 0 < value < 1 << 32 else 0
