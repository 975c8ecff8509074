"""The header of one GGUF file (version 2 or 3): parsed, and checked before anything is believed.

It is read, not mapped, so that a file which shrinks meanwhile gives an error. Every count is checked
against the bytes that are left before anything is allocated for it.
"""

from __future__ import annotations

import itertools
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from engine import quants
from engine.errors import ModelFileError, UnsupportedModel
from engine.quants import QuantType

# Bounds far above any real model (a 262k vocabulary with 515k merges is 1.3M items and 12 MB of text).
_MAX_HEADER = 128 << 20
_MAX_ITEMS = 1 << 22
_MAX_STRING = 16 << 20
_MAX_KEYS = 1 << 16
_MAX_TENSORS = 1 << 18
_MAX_NAME = 65_535
_MAX_DIMS = 4
_MAX_NESTING = 2

_READ = 1 << 20
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_STRING, _ARRAY, _BOOL = 8, 9, 7
_NUMBERS = {
    0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", _BOOL: "u1",
    10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_AGAIN = "Download the file again."
_OTHER = "Choose another file, or download this one again."


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies: `shape` in NumPy order, `offset` and `n_bytes` in file number `part`."""

    name: str
    shape: tuple[int, ...]
    type: QuantType
    part: int
    offset: int
    n_bytes: int


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; folders, pipes and devices are refused, not waited for."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError(f"{path.name}: found a folder or device, expected a GGUF file.")
        return open(path, "rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelFileError(f"{path.name}: the file cannot be read: {reason}.") from error


def cut_off(path: Path, what: str, need: int) -> ModelFileError:
    """The error of a file that ends before `what` does."""
    return ModelFileError(
        f"{path.name}: the file is truncated: {what} runs to byte {need:,}, past the end of the file. "
        f"The download is incomplete or the file is corrupt. {_AGAIN}"
    )


class Header:
    """One file's header, parsed and checked: `meta`, `tensors` (as of part `no`), `size` in bytes."""

    def __init__(self, path: Path, no: int) -> None:
        self.path, self._no = path, no
        with open_regular(path) as file:
            self._file = file
            self.size = os.fstat(file.fileno()).st_size
            self._buf, self._at, self._base = b"", 0, 0
            self._items = _MAX_ITEMS
            try:
                self._check_magic()
                n_tensors = self._count("tensor count", _MAX_TENSORS, 32)
                n_keys = self._count("metadata count", _MAX_KEYS, 13)
                self.meta = self._read_meta(n_keys)
                self.tensors = self._read_tensors(n_tensors)
            except OSError as error:
                raise self._bad(
                    f"reading failed: {error.strerror or error}. Check the disk or the network drive."
                ) from error
            self._buf = b""

    def _bad(self, text: str) -> ModelFileError:
        return ModelFileError(f"{self.path.name}: {text}")

    def _need(self, n: int, what: str) -> None:
        """Make `n` more bytes readable at `_at`, or raise."""
        if n <= len(self._buf) - self._at:
            return
        end = self._base + self._at + n
        if end > self.size:
            raise cut_off(self.path, what, end)
        if end > _MAX_HEADER:
            raise self._bad(
                f"{what} runs past {_MAX_HEADER:,} bytes of header, which no sound file has. "
                f"The file is corrupt. {_AGAIN}"
            )
        kept = self._buf[self._at :]
        self._base += self._at
        self._buf, self._at = kept + self._file.read(max(_READ, n - len(kept))), 0
        if len(self._buf) < n:  # cut since its size was taken
            raise cut_off(self.path, what, end)

    def _take(self, n: int, what: str) -> bytes:
        self._need(n, what)
        self._at += n
        return self._buf[self._at - n : self._at]

    def _u32(self, what: str) -> int:
        return int(_U32.unpack(self._take(4, what))[0])

    def _u64(self, what: str) -> int:
        return int(_U64.unpack(self._take(8, what))[0])

    def _count(self, what: str, most: int, least_bytes: int) -> int:
        """A count of things of at least `least_bytes` each, checked against what is left of the file."""
        n = self._u64(what)
        left = self.size - self._base - self._at
        if n > most or n * least_bytes > left:
            raise self._bad(
                f"the {what} is {n:,}, expected at most {min(most, left // least_bytes):,} in the "
                f"{left:,} bytes that are left. The file is corrupt. {_AGAIN}"
            )
        return n

    def _string(self, what: str, most: int = _MAX_STRING) -> str:
        n = self._u64(f"the length of {what}")
        if n > most:
            raise self._bad(
                f"the length of {what} is {n:,}, expected at most {most:,}. The file is corrupt. {_AGAIN}"
            )
        return _text(self._take(n, what))

    def _check_magic(self) -> None:
        head = self._file.read(64)
        self._file.seek(0)
        if head[:4] != b"GGUF":
            raise self._bad(_not_gguf(head, self.size))
        self._need(24, "the header")
        self._at = 4
        version = self._u32("the version")
        if version & 0xFFFF == 0 and version:
            raise self._bad(
                "this is a big-endian file (for mainframes); expected little-endian byte order. "
                "Get the usual version of the model."
            )
        if version not in (2, 3):
            advice = _AGAIN if version == 0 else "Get a newer conversion of the model."
            if version > 3:
                advice = "Update this application."
            raise UnsupportedModel(
                f"{self.path.name}: found GGUF version {version}, expected 2 or 3. {advice}"
            )

    def _read_meta(self, n: int) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        for i in range(n):
            key = self._string(f"metadata key {i + 1} of {n}", _MAX_NAME)
            if not key:
                raise self._bad(f"metadata key {i + 1} is empty. The file is corrupt. {_AGAIN}")
            if key in meta:
                raise self._bad(f"metadata key {key} is there twice. The file is corrupt. {_AGAIN}")
            meta[key] = self._value(self._u32(f"the type of {key}"), key, 0)
        return meta

    def _value(self, kind: int, key: str, depth: int) -> Any:
        if kind == _STRING:
            return self._string(f"the string {key}")
        if kind == _ARRAY:
            if depth == _MAX_NESTING:
                raise self._bad(f"{key}: arrays inside arrays inside arrays. The file is corrupt.")
            of = self._u32(f"the type of {key}")
            least = 8 if of == _STRING else 12 if of == _ARRAY else self._width(of, key)
            count = self._count(f"item count of {key}", self._items, least)
            self._items -= count
            if of == _STRING:
                return self._strings(count, key)
            if of == _ARRAY:
                return [self._value(of, key, depth + 1) for _ in range(count)]
            return self._numbers(of, count, key)
        return self._numbers(kind, 1, key)[0]

    def _width(self, kind: int, key: str) -> int:
        if kind not in _NUMBERS:
            raise self._bad(
                f"{key}: found value type {kind}, expected 0 to 12. The file is corrupt. {_AGAIN}"
            )
        return int(_NUMBERS[kind][-1])

    def _numbers(self, kind: int, count: int, key: str) -> list[Any]:
        data = self._take(self._width(kind, key) * count, f"the value of {key}")
        values = np.frombuffer(data, _NUMBERS[kind])
        if kind == _BOOL:
            if (values > 1).any():
                raise self._bad(f"{key}: found truth value {values.max()}, expected 0 or 1.")
            values = values.astype(bool)
        out: list[Any] = values.tolist()
        return out

    def _strings(self, count: int, key: str) -> list[str]:
        """Vocabularies come here: one tight loop, a quarter of a microsecond for each string."""
        out: list[str] = []
        unpack = _U64.unpack_from
        buf, at, end = self._buf, self._at, len(self._buf)
        for _ in range(count):
            stop = at + 8
            if stop <= end:
                stop += unpack(buf, at)[0]
            if stop > end:  # rare: read on, with all checks
                self._at = at
                out.append(self._string(f"the string {len(out) + 1} of {key}"))
                buf, at, end = self._buf, self._at, len(self._buf)
                continue
            out.append(str(buf[at + 8 : stop], "utf-8", "backslashreplace"))
            at = stop
        self._at = at
        return out

    def _read_tensors(self, n: int) -> dict[str, TensorInfo]:
        align = self.meta.get("general.alignment", 32)
        if type(align) is not int or not 8 <= align <= 1 << 20 or align & (align - 1):
            raise self._bad(
                f"general.alignment is {align!r}, expected a power of two from 8. "
                f"The file is corrupt. {_AGAIN}"
            )
        seen: set[str] = set()
        raw = []
        for i in range(n):
            entry = self._read_tensor(f"tensor {i + 1} of {n}", align)
            if entry[0] in seen:
                raise self._bad(f"tensor {entry[0]} is there twice. The file is corrupt. {_AGAIN}")
            seen.add(entry[0])
            raw.append(entry)
        end = self._base + self._at
        start = end + -end % align
        tensors: dict[str, TensorInfo] = {}
        for name, shape, kind, offset, n_bytes in raw:
            if start + offset + n_bytes > self.size:
                raise cut_off(self.path, f"tensor {name}", start + offset + n_bytes)
            tensors[name] = TensorInfo(name, shape, kind, self._no, start + offset, n_bytes)
        ordered = sorted(tensors.values(), key=lambda t: t.offset)
        for a, b in itertools.pairwise(ordered):
            if a.offset + a.n_bytes > b.offset:
                raise self._bad(
                    f"tensors {a.name} and {b.name} overlap. The file is corrupt. {_AGAIN}"
                )
        return tensors

    def _read_tensor(
        self, what: str, align: int
    ) -> tuple[str, tuple[int, ...], QuantType, int, int]:
        name = self._string(f"the name of {what}", _MAX_NAME)
        if not name:
            raise self._bad(f"{what} has no name. The file is corrupt. {_AGAIN}")
        n_dims = self._u32(f"the dimensions of tensor {name}")
        if not 1 <= n_dims <= _MAX_DIMS:
            raise self._bad(
                f"tensor {name} has {n_dims} dimensions, expected 1 to {_MAX_DIMS}. "
                f"The file is corrupt. {_AGAIN}"
            )
        dims = [self._u64(f"a dimension of tensor {name}") for _ in range(n_dims)]
        type_id = self._u32(f"the type of tensor {name}")
        offset = self._u64(f"the offset of tensor {name}")
        if 0 in dims:
            raise self._bad(
                f"tensor {name} has shape {dims}; a dimension of zero is invalid. "
                f"The file is corrupt. {_AGAIN}"
            )
        kind = quants.TYPES.get(type_id)
        if kind is None:
            raise UnsupportedModel(
                f"{self.path.name}: tensor {name} has quantisation type {type_id}, which this version "
                "does not know. Get another quantisation of the model, or update this application."
            )
        if dims[0] % kind.block:
            raise self._bad(
                f"tensor {name} has rows of {dims[0]:,}, expected a multiple of {kind.block} for "
                f"{kind}. The file is corrupt. {_AGAIN}"
            )
        n_bytes = kind.row_bytes(dims[0])
        for dim in dims[1:]:
            n_bytes *= dim
        if n_bytes > self.size or offset > self.size:
            raise cut_off(self.path, f"tensor {name}", offset + n_bytes)
        if offset % align:
            raise self._bad(
                f"tensor {name} starts at offset {offset:,}, expected a multiple of the alignment "
                f"{align}. The file is corrupt. {_AGAIN}"
            )
        return name, tuple(reversed(dims)), kind, offset, n_bytes


def _text(data: bytes) -> str:
    """UTF-8, with bytes that are none shown as `\\xNN`: always printable, and different stays different."""
    return str(data, "utf-8", "backslashreplace")


def _not_gguf(head: bytes, size: int) -> str:
    """What a file without GGUF's first bytes seems to be, and what to do."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if size == 0:
        return f"the file is empty, expected a GGUF model. {_AGAIN}"
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")):
        return (
            "not a GGUF model but a web page (HTML), often a log-in or error page saved in its place. "
            "Download the model again, signed in if the site asks for it."
        )
    if start.startswith(b"version https://git-lfs"):
        return "not a GGUF model but a Git LFS pointer to one. Fetch the real file with `git lfs pull`."
    if start.startswith(b"pk\x03\x04"):
        return "not a GGUF model but a ZIP or PyTorch file. Get the model in GGUF format."
    if head[8:9] == b"{":
        return "not a GGUF model but a safetensors file. Get the model in GGUF format."
    if start.startswith((b"{", b"[")):
        return f"not a GGUF model but JSON text, perhaps a server's error message. {_AGAIN}"
    if head[:4] in (b"lmgg", b"tjgg", b"fmgg", b"algg"):
        return "an old GGML file from before GGUF. Get the model in GGUF format."
    if head[:4] == b"FUGG":
        return "not a GGUF model in the expected byte order: its magic is reversed. Get another version."
    if not any(head):
        return f"not a GGUF model: it starts with zeros, so the download never finished. {_AGAIN}"
    words = " ".join(_text(head).split())
    if size >= 4 and words.isprintable() and "\\x" not in words[:24]:
        return f'not a GGUF model but a text, which begins with "{words[:24]}". {_OTHER}'
    first = head[:4].hex(" ").upper()
    return (
        f"not a GGUF model: its first bytes are {first}, expected 47 47 55 46, which spell GGUF."
        f" {_OTHER}"
    )
