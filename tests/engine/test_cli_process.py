"""The `lucebox` command as a process: how it ends from outside, and what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.oracle import model_path

ROOT = Path(__file__).parents[2]
LLAMA = str(model_path("llama"))


def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "engine.cli", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_ends_cleanly() -> None:
    # A shell that starts this in the background has it, and all below it, ignore Ctrl-C.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = start("bench", LLAMA, "-r", "1000000", "--threads", "2", stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, former)
    assert process.stderr
    assert process.stderr.readline().startswith(b"Note: "), "told when the model is loaded"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == (b"", b"Stopped.\n")


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_broken_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    process = start("inspect", LLAMA, "--tensors", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


def test_help_needs_neither_numpy_nor_qt() -> None:
    code = (
        "import sys; from engine.cli import main; main(['--help']); main(['version'])\n"
        "sys.exit(bool({'numpy', 'numba', 'PySide6'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True).returncode == 0
    )
