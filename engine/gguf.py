"""Opens GGUF models: one file or a split set given by any of its parts, mapped, with typed metadata."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType, TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine import quants
from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf_header import Header, TensorInfo, cut_off, open_regular
from engine.quants import QuantType

_MAX_PARTS = 10_000
_PART = re.compile(r"^(?P<stem>.+)-(?P<no>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)
_QUANT_ENDING = re.compile(
    r"[-._](?:UD-)?(?:I?Q\d[A-Z0-9_]*|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|F32)$", re.IGNORECASE
)
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4", 39: "NVFP4",
    40: "Q1_0",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a mapped file: `shape` in NumPy order (out, in), `data` uint8 (..., row bytes)."""

    name: str
    shape: tuple[int, ...]
    type: QuantType
    data: NDArray[np.uint8]

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        return self.data.nbytes

    def dequantize(self) -> NDArray[np.float32]:
        """All weights as float32 of `shape`."""
        return quants.dequantize(self.data, self.type)


class HeaderSummary:
    """What a model says of itself, all parts of a split set together; no tensor data is touched.

    `files` are the parts in order, `meta` the first part's metadata (numbers, strings, lists of these),
    `infos` the tensors by name, `file_bytes` the size of all parts.
    """

    def __init__(
        self, files: tuple[Path, ...], meta: Mapping[str, Any], infos: Mapping[str, TensorInfo],
        file_bytes: int,
    ) -> None:  # fmt: skip
        self.path, self.files, self.meta, self.infos = files[0], files, meta, infos
        self.file_bytes = file_bytes

    @property
    def architecture(self) -> str:
        """`general.architecture`, or "" where the file names none."""
        found = self.meta.get("general.architecture")
        return found if isinstance(found, str) else ""

    @property
    def name(self) -> str:
        """What people call it: the file name without quantisation where it is one of this model.

        Converters put training names in `general.name`; a file that begins with the model's base name
        was named by a person. A blob or "model.gguf" goes by `general.name`.
        """
        found = self.meta.get("general.name")
        named = found.strip() if isinstance(found, str) else ""
        base = self.meta.get("general.basename")
        base = base if isinstance(base, str) and base.strip() else named.split(" ")[0]
        short, stem = _letters(base), _letters(self.stem)
        if named and short and stem != short and stem.startswith(short):
            return _QUANT_ENDING.sub("", self.stem)
        return named or self.stem

    @property
    def stem(self) -> str:
        """The file name without ending and part number."""
        part = _PART.match(self.path.name)
        return part["stem"] if part else self.path.stem

    @property
    def quant(self) -> str:
        """The usual name of the quantisation, "Q4_K_M"; by the bytes where the file does not say."""
        sizes: dict[str, int] = {}
        for info in self.infos.values():
            sizes[info.type.name] = sizes.get(info.type.name, 0) + info.n_bytes
        most = max(sizes, key=lambda name: sizes[name]) if sizes else ""
        found = self.meta.get("general.file_type")
        label = _FILE_TYPES.get(found & 1023, "") if isinstance(found, int) else ""
        family = label[: 3 if label.startswith("IQ") else 4]
        # Some tools leave the key at F32 or F16, or at that of another file: the bytes must bear it out.
        if label in ("", "F32", "F16") or not any(name.startswith(family) for name in sizes):
            return most
        return label

    @property
    def n_params(self) -> int:
        """Weights of all tensors."""
        return sum(i.n_bytes // i.type.bytes * i.type.block for i in self.infos.values())


class ModelFile(HeaderSummary):
    """An open model: the header and every tensor as a view on the mapped file.

    The size is checked at opening. A file that is cut *while mapped* raises SIGBUS (Linux, macOS) when its
    missing pages are touched, which no process can catch safely: call `changed` before long work. Windows
    refuses to cut a mapped file. `close` lets go; pages stay mapped until the last view is gone.
    """

    def __init__(self, header: HeaderSummary) -> None:
        super().__init__(header.files, header.meta, header.infos, header.file_bytes)
        maps, self._seen = [], []
        for path in self.files:
            with open_regular(path) as file:
                self._seen.append(os.fstat(file.fileno()))
                maps.append(_map(file))
        self.tensors: dict[str, Tensor] = {}
        for info in self.infos.values():
            bytes_ = maps[info.part][info.offset : info.offset + info.n_bytes]
            if bytes_.size != info.n_bytes:
                raise cut_off(
                    self.files[info.part], f"tensor {info.name}", info.offset + info.n_bytes
                )
            rows = bytes_.reshape(*info.shape[:-1], info.type.row_bytes(info.shape[-1]))
            self.tensors[info.name] = Tensor(info.name, info.shape, info.type, rows)

    @property
    def stamps(self) -> list[tuple[int, int]]:
        """Size and time of the last change (ns) of each part when it was opened."""
        return [(seen.st_size, seen.st_mtime_ns) for seen in self._seen]

    def changed(self) -> str | None:
        """A sentence if a file was cut or written to since it was opened, else None."""
        for path, seen in zip(self.files, self._seen, strict=True):
            try:
                now = path.stat()
            except OSError:
                continue  # deleted or renamed: the mapped data stays valid
            same = (now.st_dev, now.st_ino) == (seen.st_dev, seen.st_ino)
            if same and now.st_size != seen.st_size:
                return f"{path.name} had {seen.st_size:,} bytes when opened and has {now.st_size:,} now."
            if same and now.st_mtime_ns != seen.st_mtime_ns:
                return f"{path.name} was written to since it was opened."
        return None

    def close(self) -> None:
        """Let go of the tensors; a second call does nothing."""
        self.tensors = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()


def open_model(path: str | os.PathLike[str]) -> ModelFile:
    """Open a model with all parts of its set, given any of them; `ModelFileError`, `UnsupportedModel`."""
    return ModelFile(read_header(path))


def read_header(path: str | os.PathLike[str]) -> HeaderSummary:
    """Read and check the header of a model, all parts of its set included, given any of them."""
    path = Path(path)
    first = Header(path, 0)
    count = meta_int(first.meta, "split.count", 1, low=0, high=_MAX_PARTS, where=path.name)
    if count <= 1:
        return HeaderSummary((path,), first.meta, first.tensors, first.size)
    files = _part_paths(path, count)
    infos: dict[str, TensorInfo] = {}
    meta: Mapping[str, Any] = {}
    size = 0
    for no, file in enumerate(files):
        part = Header(file, no)
        if no == 0:
            meta = part.meta
        for key, expected in (("split.no", no), ("split.count", count)):
            found = part.meta.get(key)
            if found != expected:
                raise ModelFileError(
                    f"{file.name}: {key} is {found!r}, expected {expected}. "
                    "The files are not parts of one model, or were renamed; get the whole set again."
                )
        for name in part.tensors.keys() & infos.keys():
            raise ModelFileError(
                f"{file.name}: tensor {name} is already in an earlier part. Get the whole set again."
            )
        infos |= part.tensors
        size += part.size
    total = meta_int(meta, "split.tensors.count", len(infos), where=path.name)
    if total != len(infos):
        raise ModelFileError(
            f"{files[0].name}: the parts hold {len(infos)} tensors, expected {total}. "
            "The set is incomplete; get all its parts again."
        )
    return HeaderSummary(files, meta, infos, size)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def part_of(name: str) -> tuple[str, int, int] | None:
    """Stem, number (from 1) and count of a file name like `model-00002-of-00003.gguf`, else None."""
    found = _PART.match(name)
    return (found["stem"], int(found["no"]), int(found["count"])) if found else None


def _part_paths(path: Path, count: int) -> tuple[Path, ...]:
    """The files of a set beside one of its parts; `ModelFileError` names those that are not there."""
    found = _PART.match(path.name)
    if not found or int(found["count"]) != count:
        raise ModelFileError(
            f"{path.name}: this is one of {count} parts of a model, but its name does not end in "
            f"-00001-of-{count:05d}.gguf or the like. Give the parts their original names."
        )
    ending = path.name[found.end("count") :]
    files = tuple(
        path.with_name(f"{found['stem']}-{no:05d}-of-{found['count']}{ending}")
        for no in range(1, count + 1)
    )
    missing = [file.name for file in files if not os.path.isfile(file)]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ModelFileError(
            f"{path.name}: {len(missing)} of {count} parts are missing ({', '.join(missing[:3])}{more}). "
            "Put all parts in one folder, or download the rest."
        )
    return files


def _map(file: BinaryIO) -> NDArray[np.uint8]:
    """A file's bytes as a read-only view."""
    try:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{Path(file.name).name}: cannot be mapped: {error}.") from error


_T = TypeVar("_T", int, float, str, bool)
_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _typed(value: Any, kind: type[_T], key: str, where: str) -> _T:
    """`value` if it is of `kind`; whole numbers pass as float, truth values never pass as numbers."""
    if type(value) is kind:
        return value
    if kind is float and type(value) is int:
        return kind(value)
    shown = repr(value)
    raise ModelFileError(
        f"{where}: {key} is {shown[:60]}{'...' if len(shown) > 60 else ''}, expected {_WORDS[kind]}. "
        "The file is damaged or made by a faulty tool; get another version of the model."
    )


def _get(meta: Mapping[str, Any], key: str, default: Any, where: str) -> Any:
    if key in meta:
        return meta[key]
    if default is ...:
        raise ModelFileError(
            f"{where}: the metadata has no {key}. The file is incomplete or made by a faulty tool; "
            "get another version of the model."
        )
    return default


def _in_bounds(value: _T, key: str, low: float | None, high: float | None, where: str) -> _T:
    if (low is not None and not value >= low) or (high is not None and not value <= high):  # type: ignore[operator]
        bounds = f"up to {high:,}" if low is None else f"from {low:,}"
        if low is not None and high is not None:
            bounds = f"from {low:,} to {high:,}"
        raise UnsupportedModel(f"{where}: {key} is {value}, expected {bounds}.")
    return value


def meta_int(
    meta: Mapping[str, Any], key: str, default: int | EllipsisType = ..., low: int | None = None,
    high: int | None = None, where: str = "model",
) -> int:  # fmt: skip
    """A whole number of the metadata, `default` where it is missing (... means: required).

    `ModelFileError` if it is missing or of another type, `UnsupportedModel` outside `low`..`high`.
    """
    value = _get(meta, key, default, where)
    return _in_bounds(_typed(value, int, key, where), key, low, high, where)


def meta_float(
    meta: Mapping[str, Any], key: str, default: float | EllipsisType = ..., low: float | None = None,
    high: float | None = None, where: str = "model",
) -> float:  # fmt: skip
    """A finite number of the metadata; otherwise as `meta_int`."""
    value = _typed(_get(meta, key, default, where), float, key, where)
    if not np.isfinite(value):
        raise UnsupportedModel(f"{where}: {key} is {value}, expected a finite number.")
    return _in_bounds(value, key, low, high, where)


def meta_bool(
    meta: Mapping[str, Any], key: str, default: bool | EllipsisType = ..., where: str = "model"
) -> bool:
    """A truth value of the metadata; otherwise as `meta_int`."""
    return _typed(_get(meta, key, default, where), bool, key, where)


def meta_str(
    meta: Mapping[str, Any], key: str, default: str | EllipsisType = ...,
    choices: tuple[str, ...] = (), where: str = "model",
) -> str:  # fmt: skip
    """Text of the metadata; `UnsupportedModel` if there are `choices` and it is none of them."""
    value = _typed(_get(meta, key, default, where), str, key, where)
    if choices and value not in choices:
        raise UnsupportedModel(
            f"{where}: {key} is {value!r}, expected one of {', '.join(choices)}."
        )
    return value


def meta_array(
    meta: Mapping[str, Any], key: str, of: type[_T], default: list[_T] | EllipsisType = ...,
    length: int | None = None, where: str = "model",
) -> list[_T]:  # fmt: skip
    """A list of the metadata whose items are all `of` one type; `ModelFileError` for another `length`."""
    value = _get(meta, key, default, where)
    if not isinstance(value, list):
        raise ModelFileError(f"{where}: {key} is {str(value)[:60]!r}, expected a list.")
    if length is not None and len(value) != length:
        raise ModelFileError(f"{where}: {key} has {len(value):,} items, expected {length:,}.")
    if all(type(item) is of for item in value):
        return value
    return [_typed(item, of, key, where) for item in value]
