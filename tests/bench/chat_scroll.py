"""Measures how long the GUI thread is held from the first picture on, with a long chat and an answer.

    python -m tests.bench.chat_scroll [--messages 300] [--chars 2000] [--tokens 2000] [--plain] [--json]

The whole application runs over an engine that streams a text at 120 tokens a second. Two figures for each
phase, in milliseconds. "wall": the time between two ticks of a 1 ms timer, which holds what everything on
the machine does; "own": the processor time that the GUI thread spent between the same two ticks, which
holds only our own work. A block is what a user would feel as one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QElapsedTimer, QEventLoop, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from app.chat.page import ChatPage
from app.chat.session import ChatSession
from app.chat.store import ChatStore
from app.chat.tree import Chat, ChatInfo, Message, Role, State
from app.chat.view import MessageView
from app.crash import Watch as CrashWatch
from app.garbage import Collector
from app.instance import Instance
from app.main import Application, Wanted, make_application
from engine import paths
from tests.app.fake_engine import FakeEngine

LIMIT_MS = 16.0
RATE = 120
SENTENCE = (
    "the file is read whole because of its size so iterate over lines instead and keep one buffer "
    "`code` **bold** measure memory before after loop [link](https://example.com) value result"
)
OTHER = (
    "이 함수는 파일 전체를 한 번에 읽습니다 그래서 메모리를 많이 씁니다 **굵게** `코드` 👍 → ≤ 🚀 "
    "これは 例です 这是 例子 это пример ésta está ½ ✓ 🎉"
)
CODE = "def slow(path: str, limit: float) -> list[str]:\n    return [x for x in open(path) if x]\n"
RUST = 'fn main() {\n    let x: Vec<u8> = vec![1, 2];\n    println!("{:?}", x); // why\n}\n'
TABLE = "| name | **size** | note |\n|---|---:|:---:|\n" + "| `row` | 12.5 | some words |\n" * 4


@dataclass
class Gaps:
    """Times between ticks, in ms."""

    wall: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    def row(self) -> dict[str, float]:
        """Percentiles of both."""
        found: dict[str, float] = {"ticks": len(self.wall)}
        for name, values in (("wall", sorted(self.wall)), ("own", sorted(self.own))):
            for label, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                at = min(int(share * len(values)), len(values) - 1)
                found[f"{name} {label}"] = round(values[at], 2)
            found[f"{name} over {LIMIT_MS:g}"] = sum(v > LIMIT_MS for v in values)
        return found


class Watch(QObject):
    """Ticks each millisecond and notes how late it is."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps = Gaps()
        self._timer = QTimer(self, interval=1, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)

    def begin(self) -> None:
        """Note from now on."""
        self.gaps = Gaps()
        self._wall, self._own = time.perf_counter(), time.thread_time()
        self._timer.start()

    def _tick(self) -> None:
        wall, own = time.perf_counter(), time.thread_time()
        self.gaps.wall.append((wall - self._wall) * 1e3)
        self.gaps.own.append((own - self._own) * 1e3)
        self._wall, self._own = wall, own

    def take(self) -> Gaps:
        """What was noted so far; begin anew."""
        found = self.gaps
        self.begin()
        return found


def text(chars: int, rng: random.Random, plain: bool) -> str:
    """An answer of paragraphs, lists and code; unless `plain`, of tables, headings and other scripts too."""
    makers: list[Callable[[], str]] = [
        lambda: "```python\n" + CODE * 3 + "```",
        lambda: "\n".join(f"{i}. " + sentence(rng, 8) for i in range(1, 5)),
        *[lambda: sentence(rng, 60)] * 4,
    ]
    if not plain:
        makers += [
            lambda: "```rust\n" + RUST * 2 + "```",
            lambda: "## " + sentence(rng, 4, OTHER) + "\n\n> " + sentence(rng, 20),
            lambda: TABLE,
            lambda: "- " + sentence(rng, 9, OTHER) + "\n  - *" + sentence(rng, 5) + "*",
            *[lambda: sentence(rng, 40, OTHER)] * 2,
        ]
    parts: list[str] = []
    while sum(map(len, parts)) < chars:
        parts.append(rng.choice(makers)())
    return "\n\n".join(parts)[:chars]


def sentence(rng: random.Random, count: int, words: str = SENTENCE) -> str:
    """Some words."""
    return " ".join(rng.choice(words.split()) for _ in range(count))


def spin(seconds: float) -> None:
    """Let the event loop run."""
    clock = QElapsedTimer()
    clock.start()
    while clock.elapsed() < seconds * 1000:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 5)


def until(done: Callable[[], bool], seconds: float = 60) -> None:
    """Let the event loop run until something holds."""
    clock = QElapsedTimer()
    clock.start()
    while not done():
        assert clock.elapsed() < seconds * 1000, "It does not happen."
        spin(0.01)


def turn_wheel(view: MessageView, notches: int) -> None:
    """One turn of the wheel, as the window system would deliver it."""
    at = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        at, view.viewport().mapToGlobal(at), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)


def save_chat(args: argparse.Namespace, rng: random.Random) -> str:
    """Put a long chat where the application keeps them; its id."""
    chat = Chat(ChatInfo(title="A long chat"))
    for i in range(args.messages):
        role = Role.ASSISTANT if i % 2 else Role.USER
        words = text(args.chars, rng, args.plain)
        chat.add(Message(chat.info.id, chat.info.leaf, role, words, model="model"))
    store = ChatStore(paths.data_dir() / "chats.sqlite")
    store.save_chat(chat.info)
    for message in chat.path():
        store.save_message(message)
    store.close(60)
    return chat.info.id


def measure(args: argparse.Namespace, home: Path) -> dict[str, Gaps]:
    """Run all phases."""
    rng = random.Random(7)
    chat_id = save_chat(args, rng)
    model = home / "model.gguf"
    model.touch()
    answer = text(args.tokens * 5, rng, args.plain)
    crash, instance = CrashWatch(), Instance()
    app = make_application([])
    collector = Collector()
    instance.claim({"files": [], "demo": False})
    application = Application(
        app, crash, instance, Wanted((str(model),)), lambda: FakeEngine(answer, 1 / RATE),
        garbage=collector,
    )  # fmt: skip
    application.settings.update(expert=True)
    watch, found = Watch(), {}
    application.open()
    application.window.painted.connect(watch.begin)
    until(lambda: application.begun and application.controller.model is not None)
    spin(1.5)
    found["start, once painted"] = watch.take()
    until(lambda: not application.window.ahead.isActive())
    found["pages made ahead"] = watch.take()

    session = ChatSession.of(application.services)
    view = application.window.findChild(MessageView)
    assert view is not None
    session.open(chat_id)
    until(lambda: len(view.messages()) == args.messages)
    spin(1.5)
    found["open the chat"] = watch.take()

    bar = view.verticalScrollBar()
    while bar.value() > bar.minimum():
        turn_wheel(view, 3)
        spin(0.016)
    found["wheel to the top"] = watch.take()
    for i in range(60):
        bar.setValue(bar.maximum() * ((i * 37) % 61) // 60)
        spin(0.05)
    found["jump about"] = watch.take()

    for name in application.window.page_names:
        application.window.navigate(name)
        spin(0.4)
    found["visit all pages"] = watch.take()

    application.window.navigate("chat")
    view.to_end()
    chat = application.window.page
    assert isinstance(chat, ChatPage)
    chat.composer.set_text("Go on.")
    spin(0.5)
    watch.take()
    chat.composer.editor.submitted.emit()
    spin(0.05)
    found["send"] = watch.take()
    until(lambda: session.generation(chat_id) is None, 600)
    spin(0.5)
    found["stream"] = watch.take()
    assert session.chat.path()[-1].state is State.DONE

    application.window.close()
    instance.release()
    collector.end()
    return found


def main() -> int:
    """Run all phases and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--chars", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--plain", action="store_true", help="one script, no tables")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("DATA", "CONFIG", "STATE", "CACHE"):
            os.environ[f"XDG_{name}_HOME"] = folder
        found = {phase: gaps.row() for phase, gaps in measure(args, Path(folder)).items()}
    if args.json:
        print(json.dumps(found))
        return 0
    print(f"{args.messages} messages of {args.chars} characters; {args.tokens} tokens streamed")
    print("phase".ljust(20) + "".join(n.rjust(13) for n in next(iter(found.values()))))
    for phase, row in found.items():
        print(phase.ljust(20) + "".join(f"{v:g}".rjust(13) for v in row.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
