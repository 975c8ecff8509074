"""Draft files of every dialect -> one checked configuration and tensors under llama.cpp's names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.draft import safetensors_file
from engine.draft.config import Conv, DraftConfig, Keys, Selector, read_config
from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import Tensor, open_model
from engine.models.base import TensorSpec

LUCEBOX = ("qwen35-dflash-draft", "dflash-draft", "gemma4-dflash-draft")
LLAMA_CPP = "dflash"
ARCHITECTURES = (*LUCEBOX, LLAMA_CPP)
"""`general.architecture` of GGUF files that are DFlash drafts."""

_Names = tuple[tuple[str, str], ...]

_LUCEBOX_NAMES: _Names = (
    (r"dflash[._]fc\.weight", "fc.weight"),
    (r"dflash[._]hidden_norm\.weight", "enc.output_norm.weight"),
    (r"dflash\.aux_hidden_norm\.(\d+)\.weight", r"aux_norm.\1.weight"),
    (r"blk\.(\d+)\.post_attention_norm\.weight", r"blk.\1.ffn_norm.weight"),
)
_HF_NAMES: _Names = (
    (r"hidden_norm\.weight", "enc.output_norm.weight"),
    (r"norm\.weight", "output_norm.weight"),
    (r"embed_tokens\.weight", "token_embd.weight"),
    (r"lm_head\.weight", "output.weight"),
    (r"candidate_selector\.(predecessor|successor)_codebook(\.weight)?", r"selector_\1.weight"),
    (r"candidate_selector\.hidden_projection\.weight", "selector_hidden.weight"),
    (r"layers\.(\d+)\.input_layernorm\.weight", r"blk.\1.attn_norm.weight"),
    (r"layers\.(\d+)\.post_attention_layernorm\.weight", r"blk.\1.ffn_norm.weight"),
    (r"layers\.(\d+)\.self_attn\.([qkv])_proj\.weight", r"blk.\1.attn_\2.weight"),
    (r"layers\.(\d+)\.self_attn\.o_proj\.weight", r"blk.\1.attn_output.weight"),
    (r"layers\.(\d+)\.self_attn\.([qk])_norm\.weight", r"blk.\1.attn_\2_norm.weight"),
    (r"layers\.(\d+)\.mlp\.(gate|up|down)_proj\.weight", r"blk.\1.ffn_\2.weight"),
    (r"layers\.(\d+)\.attention_conv\.base_kernel", r"blk.\1.attn_conv_base"),
    (r"layers\.(\d+)\.mlp_conv\.base_kernel", r"blk.\1.ffn_conv_base"),
    (r"layers\.(\d+)\.attention_conv\.kernel_projection\.weight", r"blk.\1.attn_conv_proj.weight"),
    (r"layers\.(\d+)\.mlp_conv\.kernel_projection\.weight", r"blk.\1.ffn_conv_proj.weight"),
)
_HEADS = re.compile(r"dflash\.(dspark|domino)\.")


@dataclass(frozen=True, slots=True)
class DraftFile:
    """A checked draft: `tensors` by llama.cpp's names (`fc.weight`, `blk.0.attn_q.weight`, ...).

    `meta` are the metadata as they stand in the file, GGUF keys or config.json.
    """

    path: Path
    config: DraftConfig
    tensors: Mapping[str, Tensor]
    meta: Mapping[str, Any]

    @property
    def n_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(t.n_bytes for t in self.tensors.values())


def is_draft(architecture: str) -> bool:
    """Whether a GGUF architecture is a DFlash draft and no model of its own."""
    return architecture in ARCHITECTURES


def open_draft(path: Path) -> DraftFile:
    """Open a GGUF file, a .safetensors file with its config.json, or a folder of these.

    Raises `ModelFileError` for a damaged file and `UnsupportedModel` for a variant that cannot be run.
    """
    path = Path(path)
    if safetensors_file.is_safetensors(path):
        found, meta = safetensors_file.open_folder(path)
        dialect, names = "Hugging Face", _HF_NAMES
    else:
        file = open_model(path)
        if not is_draft(file.architecture):
            raise UnsupportedModel(
                f"{path.name} is a {file.architecture or 'nameless'} file, expected a DFlash draft"
                f" ({', '.join(ARCHITECTURES)})."
            )
        found, meta = file.tensors, file.meta
        dialect = "llama.cpp" if file.architecture == LLAMA_CPP else "Lucebox"
        names = () if dialect == "llama.cpp" else _LUCEBOX_NAMES
    warnings: list[str] = []
    tensors = _renamed(found, names, path.name)
    for name in ("token_embd.weight", "output.weight"):
        if dialect == "Lucebox" and tensors.pop(name, None) is not None:
            warnings.append(f"{name} of the draft is not used: Lucebox drafts take the target's.")
    if heads := sorted({m[1] for n in tensors if (m := _HEADS.match(n))}):
        tensors = {n: t for n, t in tensors.items() if not _HEADS.match(n)}
        warnings.append(f"The {' and '.join(heads)} head of the draft is not used.")
    keys = Keys(meta, dialect, path.name)
    config = read_config(keys, {n: t.shape for n, t in tensors.items()})
    config = replace(config, warnings=(*config.warnings, *warnings))
    _check(config, tensors, path.name)
    return DraftFile(path, config, tensors, meta)


def _renamed(tensors: Mapping[str, Tensor], names: _Names, where: str) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    for tensor in tensors.values():
        name = tensor.name.removeprefix("model.")
        for pattern, replacement in names:
            if re.fullmatch(pattern, name):
                name = re.sub(pattern, replacement, name)
                break
        if name in out:
            raise ModelFileError(f"{where}: {tensor.name} is there twice, under two spellings.")
        out[name] = replace(tensor, name=name)
    return out


def tensor_specs(cfg: DraftConfig) -> Iterator[TensorSpec]:
    """The tensors of a draft, with shapes (out, in)."""
    embd, q_dim, kv_dim = cfg.n_embd, cfg.n_heads * cfg.head_dim, cfg.n_kv_heads * cfg.head_dim
    yield TensorSpec("fc.weight", (embd, cfg.n_features))
    yield TensorSpec("enc.output_norm.weight", (embd,))
    yield TensorSpec("output_norm.weight", (embd,))
    if cfg.n_vocab:
        yield TensorSpec("token_embd.weight", (cfg.n_vocab, embd), optional=True)
        yield TensorSpec("output.weight", (cfg.n_vocab, embd), optional=True)
    if cfg.aux_norms:
        for k in range(cfg.n_capture):
            yield TensorSpec(f"aux_norm.{k}.weight", (cfg.n_features // cfg.n_capture,))
    if (s := cfg.selector) is not None:
        yield TensorSpec("selector_hidden.weight", (s.rank, embd))
        yield TensorSpec("selector_predecessor.weight", (cfg.n_vocab, s.rank))
        yield TensorSpec("selector_successor.weight", (cfg.n_vocab, s.rank))
    block: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (embd,),
        "attn_q.weight": (q_dim, embd),
        "attn_k.weight": (kv_dim, embd),
        "attn_v.weight": (kv_dim, embd),
        "attn_q_norm.weight": (cfg.head_dim,),
        "attn_k_norm.weight": (cfg.head_dim,),
        "attn_output.weight": (embd, q_dim),
        "ffn_norm.weight": (embd,),
        "ffn_gate.weight": (cfg.n_ff, embd),
        "ffn_up.weight": (cfg.n_ff, embd),
        "ffn_down.weight": (embd, cfg.n_ff),
    }
    if cfg.gate:
        block["attn_gate.weight"] = (cfg.gate, embd)
    if (c := cfg.conv) is not None:
        for part in ("attn", "ffn"):
            block[f"{part}_conv_base"] = (2, c.kernel, embd)
            block[f"{part}_conv_proj.weight"] = (2 * c.kernel * embd // c.group, embd)
    for i in range(cfg.n_layers):
        for name, shape in block.items():
            yield TensorSpec(f"blk.{i}.{name}", shape)


def _check(cfg: DraftConfig, tensors: dict[str, Tensor], where: str) -> None:
    unknown = set(tensors)
    for spec in tensor_specs(cfg):
        unknown.discard(spec.name)
        tensor = tensors.get(spec.name)
        if tensor is None:
            if spec.optional:
                continue
            raise ModelFileError(
                f"{where}: the draft has no tensor {spec.name} {spec.shape}. The file is not whole; get it"
                " again."
            )
        if tensor.shape != spec.shape:
            raise ModelFileError(
                f"{where}: {spec.name} has shape {tensor.shape}, expected {spec.shape} from the"
                " metadata."
            )
        if not tensor.type.can_dequantize:
            raise UnsupportedModel(f"{where}: {spec.name} is {tensor.type}, which cannot be read.")
        # A NaN in the small tensors would spread into every draft.
        if len(spec.shape) == 1 and not np.isfinite(tensor.dequantize()).all():
            raise ModelFileError(f"{where}: {spec.name} holds NaN or infinity.")
    if unknown:
        some = ", ".join(sorted(unknown)[:3])
        raise UnsupportedModel(
            f"{where}: the draft has {len(unknown)} tensors that this version does not use ({some});"
            " it is a variant that cannot be run yet."
        )


__all__ = ["Conv", "DraftConfig", "DraftFile", "Selector", "is_draft", "open_draft", "tensor_specs"]
