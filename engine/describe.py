"""What a model file holds, as facts for JSON and as text; the weights are not read."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from engine.entry import inspect
from engine.gguf import read_header
from engine.placement import size_text

_LONG_LIST = 16


def describe(path: Path) -> dict[str, Any]:
    """All facts of a model file; raises `ModelFileError` or `UnsupportedModel` for one without a header.

    Keys: path, files, name, kind, problem ("" for a model that can be run), architecture, quant,
    parameters, file_bytes, context, layers, types (type, kernel on the processor and on a card,
    tensors, bytes of each), tensors (name, shape (out, in), type, both kernels, bytes), metadata (long
    lists as {"length", "first"}).
    """
    header = read_header(path)
    entry = inspect(path)
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for info in header.infos.values():
        count[info.type.name] += 1
        size[info.type.name] += info.n_bytes
    kernels = {name: {"kernel": kernel_of(name), "card": card_kernel_of(name)} for name in count}
    return {
        "path": str(header.path),
        "files": [str(file) for file in header.files],
        "name": header.name,
        "kind": entry.kind,
        "problem": entry.problem,
        "architecture": header.architecture,
        "quant": header.quant,
        "parameters": header.n_params,
        "file_bytes": header.file_bytes,
        "context": entry.context,
        "layers": entry.n_layers,
        "types": [
            {"type": name, **kernels[name], "tensors": count[name], "bytes": n_bytes}
            for name, n_bytes in size.most_common()
        ],
        "tensors": [
            {
                "name": info.name,
                "shape": list(info.shape),
                "type": info.type.name,
                **kernels[info.type.name],
                "bytes": info.n_bytes,
            }
            for info in header.infos.values()
        ],
        "metadata": {key: _plain(value) for key, value in header.meta.items()},
    }


def kernel_of(type_name: str) -> str:
    """How the CPU multiplies matrices of a type: its blocks as they are, or widened at load."""
    from kernels.cpu.formats import FORMATS  # loads LLVM

    return "blocks" if type_name in FORMATS else "dense"


def card_kernel_of(type_name: str) -> str:
    """How a card multiplies matrices of a type, and the bits that a weight takes there."""
    from engine.ops.cuda_device import stored_as
    from engine.quants import by_name
    from kernels import variants

    kept = stored_as(by_name(type_name).id)
    if kept == variants.F16_TILES:
        return "f16, 16 bits"
    bits = variants.PACKED[kept] * 8 / (16 * 256) if kept in variants.PACKED else 32
    return f"blocks, {bits:.2g} bits" if kept in variants.PACKED else "f32, 32 bits"


def show(facts: dict[str, Any], tensors: bool = False, metadata: bool = False) -> str:
    """The facts as text for people."""
    context = f"{facts['context']:,} tokens" if facts["context"] else "not said"
    lines = [
        f"{facts['name']}",
        f"  file          {facts['path']}"
        + (f" and {len(facts['files']) - 1} more" if len(facts["files"]) > 1 else ""),
        f"  kind          {facts['kind']}",
        f"  architecture  {facts['architecture'] or 'not said'}",
        f"  weights       {facts['parameters']:,} in {facts['quant']}, {size_text(facts['file_bytes'])}",
        f"  layers        {facts['layers'] or 'not said'}",
        f"  context       {context}",
    ]
    if facts["problem"]:
        lines.append(f"  problem       {facts['problem']}")
    lines.append("")
    lines.append(f"  {'type':<10}{'tensors':>8}{'size':>12}  CPU kernel  card")
    for row in facts["types"]:
        size = size_text(row["bytes"])
        lines.append(
            f"  {row['type']:<10}{row['tensors']:>8}{size:>12}  {row['kernel']:<10}  {row['card']}"
        )
    if metadata:
        lines.append("")
        lines += [f"  {key} = {_short(value)}" for key, value in facts["metadata"].items()]
    if tensors:
        lines.append("")
        for row in facts["tensors"]:
            shape = " x ".join(map(str, row["shape"]))
            kernel = f"{row['kernel']:<7} {row['card']:<16}"
            lines.append(f"  {row['name']:<40} {row['type']:<8} {kernel} {shape}")
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Metadata as JSON can hold it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        first = [_plain(item) for item in list(value[:_LONG_LIST])]
        return first if len(value) <= _LONG_LIST else {"length": len(value), "first": first}
    return value.item() if hasattr(value, "item") else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
