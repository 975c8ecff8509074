"""The folder of compiled code."""

from __future__ import annotations

import os
import time
from pathlib import Path

from kernels.cpu.compiler import fingerprint, prune


def test_only_folders_that_no_start_used_for_long_go(tmp_path: Path) -> None:
    own, old, young = (tmp_path / f"cpu-{name}" for name in (fingerprint(), "old", "young"))
    other = tmp_path / "kernels"
    for folder in (own, old, young, other):
        folder.mkdir()
        (folder / "code.o").write_bytes(b"code")
    month_ago = time.time() - 30 * 24 * 3600
    for folder in (own, old, other):
        os.utime(folder, (month_ago, month_ago))
    prune(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {own.name, young.name, other.name}
    assert (own / "code.o").exists()
    prune(tmp_path / "nowhere")
