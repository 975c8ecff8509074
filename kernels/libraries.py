"""Where NVIDIA's libraries may lie."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path


def candidates(newest: int, wheel: str, linux: str, windows: str) -> Iterator[str]:
    """Names to load a library by, the likeliest first, of no major version above `newest`.

    `linux` and `windows` are its file's names with {} for the major version, `wheel` is the folder that
    packages for CUDA 12 put it in.
    """
    on_windows = sys.platform == "win32"
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    for major in (13, 12):
        if major > newest:
            continue
        name = (windows if on_windows else linux).format(major)
        for folder in (wheels / f"cu{major}", wheels / wheel):
            yield from (str(p) for p in sorted(folder.glob(f"**/{name}")))
        yield name
        if not on_windows:
            yield f"/usr/local/cuda/lib64/{name}"
