"""Measures the time from the start of the process to the window on the screen.

    python -m tests.bench.start_up [--runs 10] [--through-start] [--display :0] [--json]

Each run opens the application in user folders of its own and reads its log: the time of the line "The window
is on the screen" less the start of the process by /proc/PID/stat, which counts in hundredths of a second.
The processor time that the process spent until then is noted beside it, and tells more on a busy machine.
`--through-start` runs `./start`, whose shell becomes the application, so its look at the set-up counts too.
Without `--display` a screen is made by Xvfb. Goal: 0.6 s.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = "The window is on the screen."
TICK = 1 / os.sysconf("SC_CLK_TCK")
LATEST_S = 60.0


@contextmanager
def screen(wanted: str | None) -> Iterator[str]:
    """The display to use; a virtual one unless one is named."""
    if wanted:
        yield wanted
        return
    told, tell = os.pipe()
    command = ["Xvfb", "-displayfd", str(tell), "-screen", "0", "1920x1080x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=(tell,), stderr=subprocess.DEVNULL)
    os.close(tell)
    try:
        with os.fdopen(told) as answer:
            yield f":{int(answer.readline())}"
    finally:
        server.terminate()
        server.wait()


def stat(pid: int) -> tuple[float, float]:
    """When a process began, as `time.time()` has it, and the processor time it has spent, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used, began = int(fields[11]) + int(fields[12]), int(fields[19])
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return boot + began * TICK, used * TICK


def seen_at(log: Path, process: subprocess.Popen[bytes]) -> float:
    """Wait until the log tells of the window; when that was."""
    end = time.monotonic() + LATEST_S
    while time.monotonic() < end and process.poll() is None:
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        for line in text.splitlines():
            if LINE in line:
                return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
        time.sleep(0.002)
    raise SystemExit(f"The window did not come. Is its log empty? {log}")


def once(display: str, through_start: bool, folder: Path) -> tuple[float, float]:
    """Open the application; seconds from its start to the window: by the clock, and of processor time."""
    log = folder / "state" / "lucebox" / "log" / "lucebox.log"
    log.unlink(missing_ok=True)
    places = {f"XDG_{n.upper()}_HOME": str(folder / n) for n in ("data", "config", "state")}
    command = ["./start"] if through_start else [sys.executable, "-P", "-m", "engine.cli"]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **places, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"},
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        seen = seen_at(log, process)
        began, used = stat(process.pid)
        return seen - began, used
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LATEST_S)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--through-start", action="store_true")
    parser.add_argument("--display")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with screen(args.display) as display, tempfile.TemporaryDirectory() as folder:
        once(display, args.through_start, Path(folder))  # Files come into the system's cache.
        found = [once(display, args.through_start, Path(folder)) for _ in range(args.runs)]
    walls, used = zip(*found, strict=True)
    figures = {
        "runs": args.runs,
        "window s": round(statistics.median(walls), 3),
        "slowest s": round(max(walls), 3),
        "processor s": round(statistics.median(used), 3),
    }
    print(json.dumps(figures) if args.json else "\n".join(f"{k}: {v}" for k, v in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
