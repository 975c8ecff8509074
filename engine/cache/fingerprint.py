"""What decides over the keys and values of a prefix beside its tokens, as a few bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from engine.config import Plan
from engine.gguf import ModelFile

_VERSION = 1  # of the layouts of pages and states in all backends
_SAMPLE = 256  # bytes at a tensor's beginning, middle and end


def fingerprint_of(
    file: ModelFile, plan: Plan, draft: str, page_bytes: int, state_bytes: int
) -> bytes:
    """32 bytes that differ where the model's weights or shape, the draft whose pages go with the model's, the
    kind of device or the precision do. The last byte is 1 for models with recurrent state, else 0.

    Of the weights samples are read, and the files' sizes and times stand for the rest: no file that was
    written to since is taken for the former one. `draft` is from `draft_name`, or empty for one
    without pages. The template and the context's length change nothing.
    """
    digest = hashlib.blake2b(digest_size=31)
    kind = plan.device.partition(":")[0]
    facts = [_VERSION, file.architecture, kind, str(plan.precision), plan.page_tokens, draft]
    facts += [page_bytes, state_bytes, *file.stamps]
    own = {k: v for k, v in file.meta.items() if k.startswith(f"{file.architecture}.")}
    digest.update(repr([*facts, sorted(own.items())]).encode())
    for name, tensor in sorted(file.tensors.items()):
        digest.update(repr((name, tensor.shape, tensor.type.id)).encode())
        data = tensor.data.reshape(-1)
        for start in (0, data.size // 2, max(0, data.size - _SAMPLE)):
            digest.update(data[start : start + _SAMPLE].tobytes())
    return digest.digest() + bytes([state_bytes > 0])


def draft_name(kind: str, path: Path | None) -> str:
    """Names a drafter and the file or folder that it was read from, another one after each change to it."""
    if path is None:
        return kind
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = [(file.name, file.stat()) for file in files if file.is_file()]
    return repr((kind, [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]))
