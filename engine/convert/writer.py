"""Writes a GGUF file so that it appears whole or not at all, and reads it back."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import files
from engine.errors import BadRequest, EngineError, LoadCancelled, ModelFileError
from engine.gguf import open_model
from engine.quants import QuantType

OnProgress = Callable[[int, int], None]
"""Gets bytes written and bytes in all."""


@dataclass(frozen=True, slots=True)
class Key:
    """One metadata entry; `kind` is gguf's name of the type, for a list of its items: "uint32", "string"."""

    name: str
    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor to write: `shape` in NumPy order; `rows` makes its bytes, uint8 (..., row bytes)."""

    name: str
    shape: tuple[int, ...]
    type: QuantType
    rows: Callable[[], NDArray[np.uint8]]

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        n = int(np.prod(self.shape[:-1], dtype=np.int64))
        return n * self.type.row_bytes(self.shape[-1])


def write_gguf(
    path: Path,
    architecture: str,
    keys: Sequence[Key],
    outputs: Sequence[Output],
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> None:
    """Write a file in place of `path`, in the order given, and compare it with what was meant.

    Raises `LoadCancelled`, `BadRequest` where `path` cannot be a file, `EngineError` for a full disk; then
    `path` is as it was.
    """
    from gguf import GGUFValueType, GGUFWriter
    from gguf.constants import GGMLQuantizationType

    path = path.resolve()
    if os.path.isdir(path):
        raise BadRequest(f"{path.name} is a folder; expected the name of a file to write.")
    total, done = sum(o.n_bytes for o in outputs), 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise BadRequest(f"{path} cannot be written: {error.strerror or error}.") from error
    part = Path(name)
    writer = GGUFWriter(part, architecture)
    try:
        for key in keys:
            kind = GGUFValueType[key.kind.upper()]
            if isinstance(key.value, list):
                writer.add_key_value(key.name, key.value, GGUFValueType.ARRAY, kind)
            else:
                writer.add_key_value(key.name, key.value, kind)
        for o in outputs:
            dtype = GGMLQuantizationType(o.type.id)
            writer.add_tensor_info(o.name, o.shape, np.dtype(np.float32), o.n_bytes, dtype)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for o in outputs:
            if cancel is not None and cancel.is_set():
                raise LoadCancelled("Writing was stopped; nothing is left of the file.")
            rows = o.rows()
            assert rows.dtype == np.uint8 and rows.nbytes == o.n_bytes, o.name
            writer.write_tensor_data(np.ascontiguousarray(rows))
            done += o.n_bytes
            if on_progress is not None:
                on_progress(done, total)
        writer.close()
        with part.open("rb") as file:
            os.fsync(file.fileno())
        _read_back(part, architecture, keys, outputs)
        part.chmod(0o644)
        os.replace(part, path)
    except OSError as error:
        # NumPy, which writes the tensors, tells of a full disk in numbers of items and without a reason.
        reason = error.strerror or os.strerror(errno.ENOSPC)
        raise EngineError(f"{path} cannot be written: {reason}.") from error
    finally:
        with contextlib.suppress(Exception):
            writer.close()
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    files.sync_folder(path.parent)


def _read_back(
    part: Path, architecture: str, keys: Sequence[Key], outputs: Sequence[Output]
) -> None:
    """What our own loader finds must be what was meant, up to the last tensor's bytes."""
    with open_model(part) as found:
        same = found.architecture == architecture and set(found.tensors) == {
            o.name for o in outputs
        }
        for key in keys:
            same &= _equal(found.meta.get(key.name), key.value)
        for o in outputs:
            tensor = found.tensors.get(o.name)
            same &= tensor is not None and (tensor.shape, tensor.type) == (o.shape, o.type)
        if same and outputs:
            last = outputs[-1]
            same = np.array_equal(
                found.tensors[last.name].data.reshape(-1), last.rows().reshape(-1)
            )
    if not same:
        raise ModelFileError("The written file does not read back as it was meant; try again.")


def _equal(found: Any, meant: Any) -> bool:
    if isinstance(meant, float) and isinstance(found, (int, float)):
        return bool(np.float32(meant) == np.float32(found))
    if isinstance(meant, list) and isinstance(found, list):
        return len(found) == len(meant) and all(map(_equal, found, meant))
    return bool(found == meant)
