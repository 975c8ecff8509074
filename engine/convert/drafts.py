"""Converts DFlash drafts to GGUF and quantises them; callable from the command line and the window."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.convert.quantize import quantize
from engine.convert.writer import Key, OnProgress, Output, write_gguf
from engine.draft.candidates import fitted_to
from engine.draft.config import DraftConfig
from engine.draft.files import LLAMA_CPP, DraftFile, open_draft
from engine.draft.safetensors_file import is_safetensors
from engine.errors import BadRequest, ModelFileError, UnsupportedModel
from engine.gguf import ModelFile, Tensor, open_model
from engine.models.base import is_known
from engine.quants import QuantType, by_name

DIALECTS = ("llama.cpp", "lucebox")
TYPES = ("f16", "bf16", "f32")
"""What `convert_draft` stores matrices as; vectors are float32 always."""

LUCEBOX_ARCH = "dflash-draft"
_LUCEBOX_NAMES = (
    (r"fc\.weight", "dflash_fc.weight"),
    (r"enc\.output_norm\.weight", "dflash_hidden_norm.weight"),
    (r"aux_norm\.(\d+)\.weight", r"dflash.aux_hidden_norm.\1.weight"),
    (r"blk\.(\d+)\.ffn_norm\.weight", r"blk.\1.post_attention_norm.weight"),
)


_NOT_COMPARED = ("tokenizer.chat_template", "tokenizer.ggml.token_type", "tokenizer.ggml.scores")
"""Parts of the target's tokenizer that a draft's needs not: it writes no text, its tokens are compared."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """What `quantize_draft` makes of matrices: `fine` for what suffers most, `plain` for the rest.

    `fine` goes to the projection of the target's outputs, and with `mixed` to values and the feed-forward
    output too. `file_type` is GGUF's `general.file_type`.
    """

    plain: str
    fine: str
    file_type: int
    mixed: bool = False


SCHEMES = {
    "q8_0": Scheme("Q8_0", "Q8_0", 7),
    "q6_k": Scheme("Q6_K", "Q8_0", 18),
    "q5_k_m": Scheme("Q5_K", "Q6_K", 17, mixed=True),
    "q4_k_m": Scheme("Q4_K", "Q6_K", 15, mixed=True),
    "q4_0": Scheme("Q4_0", "Q8_0", 2),
    "f16": Scheme("F16", "F16", 1),
    "bf16": Scheme("BF16", "BF16", 32),
}


def convert_draft(
    source: Path,
    out: Path,
    type: str = "f16",
    dialect: str = "llama.cpp",
    target: Path | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> DraftFile:
    """Write a draft folder, .safetensors or GGUF as GGUF of a dialect; returns the written file, checked.

    llama.cpp's dialect carries a tokenizer, which `target` gives; Lucebox's needs none. Raises as
    `open_draft` and `write_gguf` do, `UnsupportedModel` for a target that the draft does not fit, and
    `BadRequest` for what the dialect cannot say.
    """
    draft = open_draft(source)
    if type not in TYPES or dialect not in DIALECTS:
        raise BadRequest(
            f"Found type {type} and dialect {dialect}; expected one of {', '.join(TYPES)} and of"
            f" {', '.join(DIALECTS)}."
        )
    _not_itself(source, out)
    cfg, kind = draft.config, by_name(type.upper())
    file = open_model(target) if target is not None else None
    if file is not None and is_known(file.architecture):
        fitted_to(file, cfg)
    keys = draft_keys(cfg, dialect, source.stem, file, kind)
    if cfg.dialect == "Hugging Face":
        keys.append(Key("lucebox.draft.config_json", "string", json.dumps(dict(draft.meta))))
    elif cfg.dialect == "llama.cpp" and file is None:
        keys += [k for k in _all_keys(source) if k.name.startswith("tokenizer.")]
    outputs = [
        _output(t, _stored(t, kind), draft_name(name, dialect)) for name, t in draft.tensors.items()
    ]
    architecture = LLAMA_CPP if dialect == "llama.cpp" else LUCEBOX_ARCH
    write_gguf(out, architecture, _unique(keys), outputs, on_progress, cancel)
    return open_draft(out)


def quantize_draft(
    source: Path,
    out: Path,
    scheme: str = "q8_0",
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> DraftFile:
    """Write a draft GGUF with its matrices quantised; all metadata and names stay as they are.

    Rows that are no whole blocks of the scheme become Q8_0, or F16 where even these do not fit. Raises as
    `convert_draft`.
    """
    if scheme not in SCHEMES:
        raise BadRequest(f"Found the scheme {scheme}; expected one of {', '.join(SCHEMES)}.")
    open_draft(source)  # refuses what is damaged or no draft
    if is_safetensors(source):
        raise BadRequest(f"{source.name} is no GGUF file; convert it first: lucebox convert-draft.")
    _not_itself(source, out)
    chosen = SCHEMES[scheme]
    with open_model(source) as file:
        keys = [k for k in _all_keys(source) if k.name != "general.file_type"]
        keys.append(Key("general.file_type", "uint32", chosen.file_type))
        outputs = [_output(t, scheme_type(t, chosen), t.name) for t in file.tensors.values()]
        write_gguf(out, file.architecture, _unique(keys), outputs, on_progress, cancel)
    return open_draft(out)


def draft_name(name: str, dialect: str) -> str:
    """A tensor's name in a dialect, from llama.cpp's."""
    if dialect == "llama.cpp":
        return name
    for pattern, replacement in _LUCEBOX_NAMES:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, replacement, name)
    return name


def draft_keys(
    cfg: DraftConfig, dialect: str, name: str, target: ModelFile | None, kind: QuantType
) -> list[Key]:
    """The metadata of a draft in a dialect; what the file did not say stays unsaid.

    Raises `BadRequest` for what the dialect cannot say.
    """
    a = LLAMA_CPP if dialect == "llama.cpp" else LUCEBOX_ARCH
    number = {"F16": 1, "BF16": 32, "F32": 0, "Q8_0": 7}[kind.name]
    sliding = tuple(w > 0 for w in cfg.windows)
    keys = [
        Key("general.type", "string", "model"),
        Key("general.name", "string", name),
        Key("general.file_type", "uint32", number),
        Key("general.quantization_version", "uint32", 2),
        Key(f"{a}.block_count", "uint32", cfg.n_layers),
        Key(f"{a}.embedding_length", "uint32", cfg.n_embd),
        Key(f"{a}.feed_forward_length", "uint32", cfg.n_ff),
        Key(f"{a}.attention.head_count", "uint32", cfg.n_heads),
        Key(f"{a}.attention.head_count_kv", "uint32", cfg.n_kv_heads),
        Key(f"{a}.attention.key_length", "uint32", cfg.head_dim),
        Key(f"{a}.attention.value_length", "uint32", cfg.head_dim),
    ]
    if "norm epsilon" not in cfg.unsaid:
        keys.append(Key(f"{a}.attention.layer_norm_rms_epsilon", "float32", cfg.eps))
    if cfg.max_ctx < 1 << 30:
        keys.append(Key(f"{a}.context_length", "uint32", cfg.max_ctx))
    if cfg.rope_base:
        keys.append(Key(f"{a}.rope.freq_base", "float32", cfg.rope_base))
    if any(sliding):
        keys.append(Key(f"{a}.attention.sliding_window", "uint32", max(cfg.windows)))
        if "windows" not in cfg.unsaid:
            keys.append(Key(f"{a}.attention.sliding_window_pattern", "bool", list(sliding)))
    if dialect == "llama.cpp":
        return keys + list(_llama_cpp_keys(cfg, a, sliding, target))
    return keys + list(_lucebox_keys(cfg, a, sliding, target))


def _llama_cpp_keys(
    cfg: DraftConfig, a: str, sliding: tuple[bool, ...], target: ModelFile | None
) -> Iterator[Key]:
    if cfg.gate or cfg.aux_norms or cfg.normed_context:
        raise BadRequest("llama.cpp's format has no gates or norms of the context; use lucebox's.")
    if cfg.causal != sliding:
        if len(set(cfg.causal)) > 1:
            raise BadRequest("llama.cpp's format can say causal for all layers or none only.")
        yield Key(f"{a}.attention.causal", "bool", cfg.causal[0])
    if "block size" not in cfg.unsaid:
        yield Key(f"{a}.block_size", "uint32", cfg.block)
    if cfg.capture:
        yield Key(f"{a}.target_layers", "int32", [layer + 1 for layer in cfg.capture])
    if cfg.embedding_scale != 1:
        yield Key(f"{a}.embedding_scale", "float32", cfg.embedding_scale)
    if cfg.logit_scale != 1:
        yield Key(f"{a}.logit_scale", "float32", cfg.logit_scale)
    if cfg.softcap:
        yield Key(f"{a}.final_logit_softcapping", "float32", cfg.softcap)
    if cfg.conv is not None:
        yield Key(f"{a}.conv_kernel_size", "uint32", cfg.conv.kernel)
        yield Key(f"{a}.conv_group_size", "uint32", cfg.conv.group)
    if cfg.selector is not None:
        yield Key(f"{a}.selector_rank", "uint32", cfg.selector.rank)
        yield Key(f"{a}.selector_top_k", "uint32", cfg.selector.top_k)
    if target is not None:
        if f"{target.architecture}.rope.dimension_sections" in target.meta:
            yield Key(f"{a}.rope.dimension_sections", "int32", [cfg.head_dim // 2, 0, 0, 0])
        for key in _all_keys(target.path):
            if key.name.startswith("tokenizer.") and key.name not in _NOT_COMPARED:
                yield key
    if "mask token" not in cfg.unsaid:
        yield Key("tokenizer.ggml.mask_token_id", "uint32", cfg.mask)


def _lucebox_keys(
    cfg: DraftConfig, a: str, sliding: tuple[bool, ...], target: ModelFile | None
) -> Iterator[Key]:
    scaled = (cfg.embedding_scale, cfg.logit_scale) != (1, 1) or cfg.softcap
    if cfg.conv or cfg.selector or scaled or cfg.causal != sliding:
        raise BadRequest(
            "Lucebox's format cannot say what this draft needs (DFlash 2, scales, or its own causality);"
            " use llama.cpp's."
        )
    n_vocab = cfg.n_vocab or _vocabulary(target)
    if n_vocab:
        yield Key(f"{a}.vocab_size", "uint32", n_vocab)
    if "block size" not in cfg.unsaid:
        yield Key(f"{a}.dflash.block_size", "uint32", cfg.block)
    if "mask token" not in cfg.unsaid:
        yield Key(f"{a}.dflash.mask_token_id", "uint32", cfg.mask)
    yield Key(f"{a}.dflash.n_target_layers", "uint32", cfg.n_capture)
    yield Key(f"{a}.dflash.n_target_features", "uint32", cfg.n_features)
    if cfg.capture:
        yield Key(f"{a}.dflash.target_layer_ids", "int32", list(cfg.capture))
    if cfg.normed_context and not (cfg.gate or cfg.aux_norms):
        yield Key(f"{a}.dflash.context_kv_layer_norm", "uint32", 1)


def _vocabulary(target: ModelFile | None) -> int:
    embd = target.tensors.get("token_embd.weight") if target is not None else None
    return embd.shape[0] if embd is not None else 0


def _stored(tensor: Tensor, kind: QuantType) -> QuantType:
    """Matrices become `kind`; vectors and the small stacks of convolutions float32."""
    return kind if len(tensor.shape) == 2 else by_name("F32")


def scheme_type(tensor: Tensor, scheme: Scheme) -> QuantType:
    """What a tensor is stored as in a scheme."""
    if len(tensor.shape) != 2:
        return tensor.type
    fine = re.search(r"fc\.weight$", tensor.name) or (
        scheme.mixed and re.search(r"\.(attn_v|ffn_down)\.weight$", tensor.name)
    )
    for name in (scheme.fine if fine else scheme.plain, "Q8_0"):
        if tensor.shape[1] % by_name(name).block == 0:
            return by_name(name)
    return by_name("F16")


def _output(tensor: Tensor, kind: QuantType, name: str) -> Output:
    return Output(name, tensor.shape, kind, partial(_rows, tensor, kind))


def _rows(tensor: Tensor, kind: QuantType) -> NDArray[np.uint8]:
    if tensor.type == kind:
        return tensor.data
    if tensor.type.name == "BF16" and kind.name == "F32":
        return tensor.dequantize().view(np.uint8)
    rows = quantize(tensor.dequantize(), kind)
    if kind.name == "F16" and not np.isfinite(rows.view(np.float16)).all():
        raise UnsupportedModel(f"{tensor.name} holds numbers beyond f16; use bf16.")
    return rows


def _not_itself(source: Path, out: Path) -> None:
    if Path(source).resolve() == Path(out).resolve():
        raise BadRequest("The output is the input file itself; give another name.")


def _unique(keys: list[Key]) -> list[Key]:
    """The last of each name; gguf writes the architecture itself."""
    named = {k.name: k for k in keys if k.name not in ("general.architecture",)}
    return list(named.values())


def _all_keys(path: Path) -> list[Key]:
    """Every metadata entry of a GGUF with its exact type."""
    from gguf import GGUFReader, GGUFValueType

    keys = []
    for name, field in GGUFReader(path).fields.items():
        if name.startswith("GGUF.") or not field.types:
            continue
        kind, value = field.types[-1], field.contents()
        if field.types[0] is GGUFValueType.ARRAY and not value:
            continue  # an empty list says nothing, and cannot be written
        if len(field.types) > 2:
            raise ModelFileError(f"{path.name}: {name} is a list of lists; expected a plain one.")
        keys.append(Key(name, kind.name.lower(), _plain(value)))
    return keys


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
