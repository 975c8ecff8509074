"""From a draft as its makers publish it to GGUF files of chosen sizes, in one go."""

from __future__ import annotations

import json
import math
import re
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.convert.drafts import SCHEMES, convert_draft, quantize_draft, scheme_type
from engine.draft.files import DraftFile, open_draft
from engine.draft.safetensors_file import is_safetensors
from engine.errors import BadRequest
from engine.quants import by_name

OnProgress = Callable[[str, int, int], None]
"""Gets the scheme that is being written ("" while the source is converted), bytes done and in all."""

_MOST_CONFIG = 1 << 20


def make_draft(
    source: Path,
    folder: Path,
    schemes: Sequence[str],
    target: Path | None = None,
    on_progress: OnProgress | None = None,
    on_made: Callable[[str, Path], None] | None = None,
    cancel: threading.Event | None = None,
) -> dict[str, Path]:
    """Write a draft once for each of `schemes` into `folder`; the files by scheme.

    `source` is what `convert_draft` takes and stays as it is. Each file appears whole and checked, and
    `on_made` is told of it; those that were made before a stop or an error stay. `target` gives llama.cpp's
    loader its tokenizer. Raises as `convert_draft`.
    """
    if unknown := [scheme for scheme in schemes if scheme not in SCHEMES]:
        raise BadRequest(f"Found the scheme {unknown[0]}; expected one of {', '.join(SCHEMES)}.")
    outs = {s: folder / f"{draft_stem(source)}.{s.upper()}.gguf" for s in schemes}
    for scheme, out in outs.items():
        if out.resolve() == source.resolve():
            raise BadRequest(f"{out.name} is the source itself; leave {scheme.upper()} out.")
    say = on_progress or (lambda scheme, done, total: None)
    draft = open_draft(source)
    made: dict[str, Path] = {}
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the files to be: the disk that holds these holds it, and the library looks into no such folder.
    with tempfile.TemporaryDirectory(prefix=".draft-", suffix=".part", dir=folder) as scratch:
        exact = Path(scratch) / f"{draft_stem(source)}.gguf"
        convert_draft(
            source, exact, _exact_type(draft), _dialect(draft), target,
            lambda done, total: say("", done, total), cancel,
        )  # fmt: skip
        for scheme, out in outs.items():

            def progress(done: int, total: int, scheme: str = scheme) -> None:
                say(scheme, done, total)

            quantize_draft(exact, out, scheme, progress, cancel)
            made[scheme] = out
            if on_made is not None:
                on_made(scheme, out)
    return made


def draft_stem(source: Path) -> str:
    """The name of a draft's files without the scheme: the folder's, where a file is only called model."""
    if source.is_dir():
        return source.name
    if source.stem.lower().startswith("model"):
        return source.parent.name
    known = "|".join(map(re.escape, SCHEMES))
    return re.sub(rf"[.-]({known})$", "", source.stem, flags=re.IGNORECASE)


def is_published_draft(path: Path) -> bool:
    """Whether a folder, or a .safetensors file in one, is a DFlash draft by the words of its config.json."""
    if not is_safetensors(path):
        return False
    folder = path if path.is_dir() else path.parent
    try:
        with (folder / "config.json").open("rb") as file:
            found = json.loads(file.read(_MOST_CONFIG))
        weights = next(folder.glob("*.safetensors"), None)
    except (OSError, ValueError, RecursionError):
        return False
    if weights is None or not isinstance(found, dict):
        return False
    return "dflash_config" in found or "dflash" in str(found.get("architectures")).lower()


def size_in(draft: DraftFile, scheme: str) -> int:
    """Bytes of all tensors of a draft in a scheme; vectors are float32 in all of them."""
    total = 0
    for tensor in draft.tensors.values():
        matrix = len(tensor.shape) == 2
        kind = scheme_type(tensor, SCHEMES[scheme]) if matrix else by_name("F32")
        total += math.prod(tensor.shape[:-1]) * kind.row_bytes(tensor.shape[-1])
    return total


def _exact_type(draft: DraftFile) -> str:
    """What holds the source's matrices without loss."""
    types = {t.type.name for t in draft.tensors.values() if len(t.shape) == 2}
    return "f16" if types <= {"F16"} else "bf16" if types <= {"BF16"} else "f32"


def _dialect(draft: DraftFile) -> str:
    """llama.cpp's, which can say all of a published draft; what it cannot say is in Lucebox's own files."""
    cfg = draft.config
    return "lucebox" if cfg.gate or cfg.aux_norms or cfg.normed_context else "llama.cpp"
