"""Write the locked requirement files anew from pyproject.toml: `python installers/refresh_requirements.py`.

Needs `uv` (in the `dev` extra). Only releases that are at least `COOLDOWN` old are taken, so that a broken or
hostile release is noticed by others first. The files name no registry: pip asks the one it is set up for.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
EXTRAS = ("cuda12", "cuda13", "rocm", "dev")
COOLDOWN = datetime.timedelta(days=7)
HEADER = "# Locked by installers/refresh_requirements.py from pyproject.toml; do not edit.\n"


def lock(uv: str, target: Path, newest: str, extra: str | None, upgrade: bool) -> None:
    """Resolve for every supported Python on Linux and Windows at once, and write `target`."""
    command = [
        uv, "pip", "compile", "pyproject.toml", "--quiet", "--universal", "--generate-hashes",
        "--python-version", "3.11", "--only-binary", ":all:", "--exclude-newer", newest,
        "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links",
        "--output-file", str(target),
    ]  # fmt: skip
    if extra:
        command += ["--extra", extra, "--constraint", str(FOLDER / "base.txt")]
    if upgrade:
        command.append("--upgrade")
    subprocess.run(command, cwd=ROOT, check=True)
    target.write_text(HEADER + target.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")


def main() -> int:
    """Refresh all files; the extras are held to the versions of the base."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep locked versions that still fit")
    upgrade = not parser.parse_args().keep
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if not uv:
        print("uv was not found; install the `dev` extra first: ./test does.", file=sys.stderr)
        return 1
    now = datetime.datetime.now(datetime.UTC)
    newest = (now - COOLDOWN).strftime("%Y-%m-%dT%H:%M:%SZ")
    FOLDER.mkdir(exist_ok=True)
    for extra in (None, *EXTRAS):
        target = FOLDER / f"{extra or 'base'}.txt"
        lock(uv, target, newest, extra, upgrade)
        print(f"{target.relative_to(ROOT)}: releases up to {newest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
