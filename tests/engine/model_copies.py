"""Copies of model files with other tensors, for tests; needs the `gguf` package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize
from numpy.typing import NDArray

Stored = tuple[NDArray[Any], Type]
"""A tensor's bytes (or numbers), and what they are."""


def copy_model(
    source: Path,
    target: Path,
    change: Callable[[str, NDArray[np.float32]], Stored | None] = lambda *_: None,
    numbers: Mapping[str, int] | None = None,
    more: Mapping[str, NDArray[np.float32]] | None = None,
) -> Path:
    """Write `source` again with `change(name, values)` where that is not None.

    `numbers` are whole numbers of the metadata to set, `more` tensors to add, as F32. Returns `target`.
    """
    numbers, reader = dict(numbers or {}), gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture" and name not in numbers:
            of = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], of)
    for name, number in numbers.items():
        writer.add_uint32(name, number)
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        data, kind = change(tensor.name, values) or (tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    for name, values in (more or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def as_type(values: NDArray[np.float32], name: str) -> Stored:
    """Values in a type that the `gguf` package can make."""
    return quantize(values, Type[name]), Type[name]
