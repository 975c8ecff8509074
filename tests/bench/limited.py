"""Other programs that have so long and no longer, with what they said until then."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

_TELLING = ("error", "assert", "abort", "refused", "not found")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program wrote, and its exit code; None where it was stopped after `limit_s` seconds."""

    code: int | None
    out: str
    err: str
    limit_s: float

    @property
    def problem(self) -> str:
        """How it failed, with its most telling line; empty where it did not."""
        if self.code == 0:
            return ""
        how = f"ended with {self.code}"
        if self.code is None:
            how = f"did not end within {self.limit_s:.0f} s"
        lines = [line.strip() for line in self.err.splitlines() if line.strip()] or ["nothing"]
        telling = [line for line in lines if any(word in line.lower() for word in _TELLING)]
        return f"{how}: {(telling or lines)[-1][:160]}"


def run(command: Sequence[str], limit_s: float, alone: bool = False) -> Ended:
    """Let a program run for at most `limit_s` seconds; with `alone` what it started is stopped with it."""
    group = 0 if alone and os.name != "nt" else None  # a session of its own would outlive ours
    try:
        process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", process_group=group,
        )  # fmt: skip
    except OSError as error:
        return Ended(127, "", str(error), limit_s)
    ended = False
    try:
        out, err = process.communicate(timeout=limit_s)
        ended = True
    except subprocess.TimeoutExpired:
        _stop(process, alone)
        out, err = process.communicate()
    finally:
        if process.poll() is None:
            _stop(process, alone)
    return Ended(process.returncode if ended else None, out, err, limit_s)


def _stop(process: subprocess.Popen[str], alone: bool) -> None:
    if alone and os.name != "nt":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
