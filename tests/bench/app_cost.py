"""What the window costs: tokens a second streamed into the chat beside the same answer without it.

    python -m tests.bench.app_cost [MODEL.gguf | --demo] [-n 256] [-r 3] [--device auto]

The whole application runs offscreen over the real engine. Rounds alternate: an answer that only counts its
tokens while the window does nothing, and the same answer streamed into the open chat. The ratio is that of
the medians of both decode rates; goal 0.97 or more. Run it on an otherwise idle machine. It needs what the
application needs and Qt's system libraries, which `installers/linux/qt_libraries.py` names.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer

from app.chat.session import ChatSession
from app.crash import Watch as CrashWatch
from app.garbage import Collector
from app.instance import Instance
from app.main import Application, Wanted, make_application
from app.worker import make_engine
from engine import demo
from engine.config import SamplingParams
from engine.follow import follow
from engine.types import Finished, Request

LONGEST_S = 300.0
_LOOK_MS = 20
QUESTION = "Write a long story about a lighthouse and the people who live near it."


def until(done: Callable[[], bool]) -> None:
    """Let the event loop run, which sleeps where nothing happens, until something holds."""
    loop, timer, end = QEventLoop(), QTimer(), time.monotonic() + LONGEST_S
    timer.timeout.connect(lambda: loop.quit() if done() or time.monotonic() > end else None)
    timer.start(_LOOK_MS)
    loop.exec()
    assert done(), f"It did not happen within {LONGEST_S:.0f} s."


def rest(seconds: float) -> None:
    """Let the event loop run for so long."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end)


def measure(path: Path, n: int, rounds: int, device: str) -> dict[str, list[float]]:
    """Tokens a second of each round, "headless" and "window"."""
    crash, instance = CrashWatch(), Instance()
    app = make_application([])
    collector = Collector()
    instance.claim({"files": [], "demo": False})
    application = Application(
        app, crash, instance, Wanted((str(path),)), make_engine, garbage=collector
    )
    settings = application.settings
    chosen = {"temperature": 0.0, "max_tokens": n}
    settings.update(sampling={str(path): chosen}, engine={"device": device}, load_last_model=False)
    application.open()
    until(lambda: application.begun and application.controller.model is not None)
    rest(1.0)
    session = ChatSession.of(application.services)
    engine = application.controller.engine
    info = application.controller.model
    assert info is not None
    sampling = SamplingParams(temperature=0.0, max_tokens=n, stop=info.sampling.stop)
    request = Request(messages=[{"role": "user", "content": QUESTION}], sampling=sampling)
    found: dict[str, list[float]] = {"headless": [], "window": []}
    for number in range(rounds + 1):
        *_, end = follow(engine, request)
        assert isinstance(end, Finished)
        headless = end.usage.decode_rate or 0.0
        session.new_chat()
        rest(0.2)
        session.send(QUESTION)
        chat = session.chat.info.id
        until(lambda chat=chat: session.generation(chat) is None)  # type: ignore[misc]
        rest(0.2)
        window = session.chat.path()[-1].usage["decode_rate"]
        if number:  # the first warms both up
            found["headless"].append(headless)
            found["window"].append(window)
            print(f"round {number}: {headless:.1f} headless, {window:.1f} in the window",
                  file=sys.stderr)  # fmt: skip
    application.window.close()
    instance.release()
    collector.end()
    return found


def main() -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("-n", type=int, default=256, help="tokens to write")
    parser.add_argument("-r", type=int, default=3, help="rounds")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    path = args.model or (demo.install() if args.demo else None)
    if path is None:
        parser.error("give a model file, or --demo")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("DATA", "CONFIG", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = folder
        found = measure(path.resolve(), args.n, args.r, args.device)
    middle = {name: statistics.median(values) for name, values in found.items()}
    ratio = middle["window"] / middle["headless"]
    print(json.dumps({"model": path.name, "rounds": found, **middle, "ratio": ratio}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
