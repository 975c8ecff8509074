"""Whether llama.cpp loads the drafts that we write, and drafts with them: not part of the tests.

    python -m tests.bench.llama_draft TARGET.gguf DRAFT IDS.json --peer PYTHON [-n 64]

DRAFT is converted and quantised every way that there is; each file is loaded beside the target by the Python
PYTHON, which has the wheel `xllamacpp`. The text must be the one that is written without a draft. The exit
code is 1 where a file fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.convert.drafts import SCHEMES, TYPES, convert_draft, quantize_draft
from engine.draft.files import open_draft


def written(draft: Path, target: Path, folder: Path) -> Iterator[Path]:
    """The draft in every type and scheme, in llama.cpp's dialect."""
    for kind in TYPES:
        out = folder / f"{kind}.gguf"
        convert_draft(draft, out, kind, "llama.cpp", target)
        yield out
    for scheme in SCHEMES:
        out = folder / f"f16-{scheme}.gguf"
        quantize_draft(folder / "f16.gguf", out, scheme)
        yield out


def load(peer: str, *arguments: str) -> dict[str, Any]:
    """What `llama_load` says; {"problem"} where it ends with an error."""
    program = Path(__file__).with_name("llama_load.py")
    done = subprocess.run([peer, str(program), *arguments], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"problem": "\n".join(done.stderr.splitlines()[-5:])}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def main() -> int:
    """Write, load and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path)
    parser.add_argument("ids", type=Path)
    parser.add_argument("--peer", required=True, help="a Python that has xllamacpp")
    parser.add_argument("-n", type=int, default=64)
    args = parser.parse_args()
    common = (str(args.target), str(args.ids), str(args.n))
    alone = load(args.peer, *common)
    most = open_draft(args.draft).config.block - 1
    failed = "text" not in alone
    with tempfile.TemporaryDirectory() as folder:
        for path in written(args.draft, args.target, Path(folder)):
            found = load(args.peer, *common, str(path), str(most))
            sound = "problem" not in found and found["text"] == alone.get("text")
            failed |= not sound
            facts = {k: v for k, v in found.items() if k != "text"}
            print(json.dumps({"file": path.name, "sound": sound, **facts}))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
