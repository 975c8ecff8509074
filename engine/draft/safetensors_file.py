"""Opens drafts as Hugging Face keeps them: safetensors with a config.json beside them, mapped."""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import Tensor
from engine.quants import by_name

_TYPES = {"F32": "F32", "F16": "F16", "BF16": "BF16"}
_PART = re.compile(r"(.+)-\d+-of-(\d+)\.safetensors")
_MOST = 100 << 20  # the format's own limit of the header


def is_safetensors(path: Path) -> bool:
    """Whether a draft is one as its makers publish it: a folder of safetensors, or a file in one."""
    # Unlike Path.is_dir before Python 3.14, also False for a name that is too long for the disk.
    return os.path.isdir(path) or path.suffix.lower() == ".safetensors"


def open_folder(path: Path) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
    """All tensors of a folder or of one .safetensors file, and config.json.

    Raises `ModelFileError` for what is damaged or missing.
    """
    folder = path if path.is_dir() else path.parent
    files = _whole(sorted(folder.glob("*.safetensors")) if path.is_dir() else [path])
    if not files:
        raise ModelFileError(
            f"{folder.name}: no .safetensors file is in the folder. Choose the folder that holds the draft's"
            " weights and its config.json."
        )
    config_file = folder / "config.json"
    try:
        config = json.loads(config_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(
            f"{folder.name}: config.json is missing beside {files[0].name}; it says how the draft is"
            " built. Get the whole folder."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{config_file.name} cannot be read: {error}.") from error
    if not isinstance(config, dict):
        raise ModelFileError(f"{config_file.name}: expected a JSON object.")
    tensors: dict[str, Tensor] = {}
    for file in files:
        for name, tensor in read_tensors(file).items():
            if name in tensors:
                raise ModelFileError(f"{file.name}: tensor {name} is in another file too.")
            tensors[name] = tensor
    return tensors, config


def _whole(files: list[Path]) -> list[Path]:
    """The files, with all parts of those that are one of several; `ModelFileError` for a missing one."""
    found = dict.fromkeys(files)
    for file in files:
        if (part := _PART.fullmatch(file.name)) is None:
            continue
        stem, last = part[1], part[2]
        for i in range(1, int(last) + 1):
            other = file.with_name(f"{stem}-{i:0{len(last)}}-of-{last}.safetensors")
            if not os.path.isfile(other):
                raise ModelFileError(
                    f"{file.parent.name}: {other.name} is missing, which is one of the {int(last)} files of"
                    " the draft. Get the whole folder."
                )
            found[other] = None
    return sorted(found)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of one file as views on the mapping; names as they stand."""
    import safetensors

    try:
        with safetensors.safe_open(path, framework="np"):
            pass  # the library checks the header, offsets and the size of the file
        with path.open("rb") as file:
            data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        (size,) = struct.unpack("<Q", data[:8].tobytes())
        if size > min(_MOST, len(data) - 8):
            raise ValueError(f"its header claims {size:,} bytes")
        header = json.loads(data[8 : 8 + size].tobytes())
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ModelFileError(
            f"{path.name} is no sound safetensors file: {error}. Get it again."
        ) from error
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        kind = _TYPES.get(info["dtype"])
        if kind is None:
            raise UnsupportedModel(
                f"{path.name}: {name} is {info['dtype']}, expected {', '.join(_TYPES)}."
            )
        type, shape = by_name(kind), tuple(info["shape"])
        begin, end = (8 + size + at for at in info["data_offsets"])
        if not shape or 0 in shape:
            raise ModelFileError(f"{path.name}: {name} has the shape {shape}.")
        rows = data[begin:end].reshape(*shape[:-1], type.row_bytes(shape[-1]))
        tensors[name] = Tensor(name, shape, type, rows)
    return tensors
