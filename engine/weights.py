"""Tensors of a model file -> a device, as a tree whose names are the GGUF tensor names."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import LoadCancelled, ModelFileError, UnsupportedModel
from engine.gguf import ModelFile, Tensor
from engine.models.base import TensorSpec
from engine.ops.base import Ops
from engine.types import LoadProgress

_PIECE = 16 << 20
_PROJECTOR = ("v.", "mm.", "a.")  # of images and sound, in the file of the model itself


def check_tensors(file: ModelFile, specs: Iterable[TensorSpec]) -> list[TensorSpec]:
    """The expected tensors that are present; refuses missing, misshapen and unknown ones.

    An unknown tensor means a variant of the architecture whose mathematics we would get wrong.
    Those of a projector do not: the text part is whole without it.
    """
    present, unknown = [], {n for n in file.tensors if not n.startswith(_PROJECTOR)}
    for spec in specs:
        tensor = file.tensors.get(spec.name)
        unknown.discard(spec.name)
        if tensor is None:
            if spec.optional:
                continue
            raise ModelFileError(
                f"The file has no tensor {spec.name}, expected with shape {spec.shape}."
                " It is damaged or not a whole model; download it again."
            )
        if tensor.shape not in (spec.shape, spec.shape[spec.shape[:1] == (1,) :]):
            raise ModelFileError(
                f"Tensor {spec.name} has shape {tensor.shape}, expected {spec.shape} from the file's"
                " metadata."
            )
        present.append(spec)
    if unknown:
        some = ", ".join(sorted(unknown)[:3])
        raise UnsupportedModel(
            f"The file has {len(unknown)} tensors that this version of {file.architecture} does not use"
            f" ({some}); it is a variant that cannot be run yet."
        )
    return present


def load_weights(
    file: ModelFile,
    specs: Iterable[TensorSpec],
    ops: Ops,
    on_progress: Callable[[LoadProgress], None] | None = None,
    cancel: threading.Event | None = None,
) -> SimpleNamespace:
    """Upload every tensor: `blk.3.attn_q.weight` becomes `w.blk[3].attn_q`, `ssm_dt.bias` `ssm_dt_bias`.

    A file without `output.weight` has it tied to `token_embd.weight`. Raises `LoadCancelled`.
    """
    present = [s for s in check_tensors(file, specs) if not s.unused]
    root = upload(file, present, ops, on_progress, cancel)
    if not hasattr(root, "output"):
        root.output = root.token_embd
    return root


def upload(
    file: ModelFile,
    present: Sequence[TensorSpec],
    ops: Ops,
    on_progress: Callable[[LoadProgress], None] | None = None,
    cancel: threading.Event | None = None,
) -> SimpleNamespace:
    """Upload tensors that are there; see `load_weights`."""
    tensors = [_shaped(file.tensors[spec.name], spec) for spec in present]
    ops.expect(tensors)
    total = sum(tensor.data.nbytes for tensor in tensors)
    root = SimpleNamespace(blk=[])
    done = 0
    for tensor in tensors:
        owner, name = root, tensor.name.removesuffix(".weight")
        if name.startswith("blk."):
            _, index, name = name.split(".", 2)
            while len(root.blk) <= int(index):
                root.blk.append(SimpleNamespace())
            owner = root.blk[int(index)]
        for n_bytes in _read_in(tensor.data):
            if cancel is not None and cancel.is_set():
                raise LoadCancelled("The load was stopped.")
            done += n_bytes
            if on_progress is not None:
                on_progress(LoadProgress("reading", done, total))
        setattr(owner, name.replace(".", "_"), ops.upload(tensor))
    return root


def _shaped(tensor: Tensor, spec: TensorSpec) -> Tensor:
    """A tensor as it is expected: a matrix of one row may be stored as a vector."""
    if tensor.shape == spec.shape:
        return tensor
    return replace(tensor, shape=spec.shape, data=tensor.data.reshape(1, -1))


def _read_in(data: NDArray[Any]) -> Iterator[int]:
    """Bring mapped bytes into memory piece by piece, so that a large tensor on a slow disk can be stopped
    inside; yields the bytes of each piece."""
    flat = data.reshape(-1).view(np.uint8)
    for at in range(0, len(flat), _PIECE):
        piece = flat[at : at + _PIECE]
        piece[:: mmap.PAGESIZE].sum()
        yield len(piece)
