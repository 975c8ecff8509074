"""Writes GGUF bytes, sound or wrong, for tests of the reader."""

from __future__ import annotations

import struct
from typing import Any

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = {
    U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q",
    I64: "q", F64: "d",
}  # fmt: skip


def text(value: str | bytes) -> bytes:
    """A GGUF string."""
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind: int, value: Any) -> bytes:
    """A value without its type; an array is (item type, items)."""
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        of, items = value
        return struct.pack("<IQ", of, len(items)) + b"".join(scalar(of, item) for item in items)
    return struct.pack("<" + _FORMATS[kind], value)


def pair(key: str, kind: int, value: Any) -> bytes:
    """A metadata entry."""
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def tensor(name: str, dims: list[int], kind: int = 0, offset: int = 0) -> bytes:
    """A tensor's entry in the header."""
    return (
        text(name)
        + struct.pack("<I", len(dims))
        + b"".join(struct.pack("<Q", d) for d in dims)
        + struct.pack("<IQ", kind, offset)
    )


def gguf(
    pairs: list[bytes] = [],  # noqa: B006
    tensors: list[bytes] = [],  # noqa: B006
    data: bytes = b"",
    version: int = 3,
    align: int = 32,
) -> bytes:
    """A whole file."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    head += b"".join(pairs) + b"".join(tensors)
    return head + b"\0" * (-len(head) % align) + data


def model(arch: str = "llama", name: str = "", more: list[bytes] | None = None) -> bytes:
    """A small sound file of one F32 tensor of four ones."""
    pairs = [pair("general.architecture", STRING, arch)]
    if name:
        pairs.append(pair("general.name", STRING, name))
    ones = struct.pack("<4f", 1, 1, 1, 1)
    return gguf(pairs + (more or []), [tensor("token_embd.weight", [4])], ones)
