"""Measures how long the GUI thread is held while a long chat scrolls and an answer streams.

    python -m tests.bench.chat_scroll [--messages 300] [--chars 2000] [--tokens 2000] [--json]

Two figures for each phase, in milliseconds. "gap": the time between two ticks of a 1 ms timer, which
holds what everything on the machine does; "cpu": the processor time that the GUI thread spent between
the same two ticks, which holds only our own work. A block is what a user would feel as one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import dataclass, field

from PySide6.QtCore import QElapsedTimer, QEventLoop, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from app.chat.entry import Shown
from app.chat.tree import Chat, ChatInfo, Message, Role, State
from app.chat.view import MessageView
from app.garbage import Collector
from app.theme import theme

LIMIT_MS = 16.0
SENTENCE = (
    "the file is read whole because of its size so iterate over lines instead and keep one buffer "
    "`code` **bold** measure memory before after loop [link](https://example.com) value result"
)
CODE = "def slow(path: str, limit: float) -> list[str]:\n    return [x for x in open(path) if x]\n"


@dataclass
class Gaps:
    """Times between ticks, in ms."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def row(self) -> dict[str, float]:
        """Percentiles of both."""
        found: dict[str, float] = {"ticks": len(self.wall)}
        for name, values in (("gap", sorted(self.wall)), ("cpu", sorted(self.cpu))):
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
        self._wall, self._cpu = time.perf_counter(), time.thread_time()
        self._timer.start()

    def _tick(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        self.gaps.wall.append((wall - self._wall) * 1e3)
        self.gaps.cpu.append((cpu - self._cpu) * 1e3)
        self._wall, self._cpu = wall, cpu

    def take(self) -> Gaps:
        """What was noted so far; begin anew."""
        found, self.gaps = self.gaps, Gaps()
        self._wall, self._cpu = time.perf_counter(), time.thread_time()
        return found


def text(chars: int, rng: random.Random) -> str:
    """An answer of paragraphs, a list, and code."""
    parts: list[str] = []
    while sum(map(len, parts)) < chars:
        kind = rng.random()
        if kind < 0.15:
            parts.append("```python\n" + CODE * 3 + "```")
        elif kind < 0.35:
            parts.append("\n".join(f"{i}. " + sentence(rng, 8) for i in range(1, 5)))
        else:
            parts.append(sentence(rng, 60))
    return "\n\n".join(parts)[:chars]


def sentence(rng: random.Random, count: int) -> str:
    """Some words."""
    return " ".join(rng.choice(SENTENCE.split()) for _ in range(count))


def spin(seconds: float) -> None:
    """Let the event loop run."""
    clock = QElapsedTimer()
    clock.start()
    while clock.elapsed() < seconds * 1000:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 5)


def turn_wheel(view: MessageView, notches: int) -> None:
    """One turn of the wheel, as the window system would deliver it."""
    at = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        at, view.viewport().mapToGlobal(at), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)


def main() -> int:
    """Run all phases and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--chars", type=int, default=2000)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    app = QApplication.instance() or QApplication(sys.argv[:1])
    theme().apply("dark")
    rng = random.Random(7)
    chat = Chat(ChatInfo())
    for i in range(args.messages):
        role = Role.ASSISTANT if i % 2 else Role.USER
        chat.add(Message(chat.info.id, chat.info.leaf, role, text(args.chars, rng), model="model"))
    view = MessageView()
    view.resize(800, 720)
    view.show()
    spin(0.5)
    # As the application does: garbage is collected between events, and not in what is there for good.
    collector = Collector()
    collector.keep()
    watch, found = Watch(), {}

    began = time.perf_counter()
    view.set_messages(chat.path())
    opened = (time.perf_counter() - began) * 1e3
    spin(1.5)
    found["open"] = watch.take()

    bar = view.verticalScrollBar()
    while bar.value() > bar.minimum():
        turn_wheel(view, 3)
        spin(0.016)
    found["wheel to the top"] = watch.take()
    for i in range(60):
        bar.setValue(bar.maximum() * ((i * 37) % 61) // 60)
        spin(0.05)
    found["jump about"] = watch.take()

    view.to_end()
    spin(0.3)
    answer = Message(
        chat.info.id, chat.info.leaf, Role.ASSISTANT, state=State.WRITING, model="model"
    )
    chat.add(answer)
    view.set_messages(chat.path())
    spin(0.2)
    watch.take()
    whole = text(args.tokens * 5, rng)
    size = max(len(whole) // args.tokens, 1)
    per_frame = 4  # 120 tokens a second at 30 frames
    for at in range(0, len(whole), size * per_frame):
        answer.text = whole[: at + size * per_frame]
        view.set_shown(answer.id, Shown(progress="", rate=120.0))
        view.refresh(answer.id)
        spin(0.033)
    found["stream"] = watch.take()

    collector.end()
    result = {"set_messages ms": round(opened, 1)} | {k: g.row() for k, g in found.items()}
    if args.json:
        print(json.dumps(result))
        return 0
    print(f"{args.messages} messages of {args.chars} characters; {args.tokens} tokens streamed")
    print(f"handing the messages over: {opened:.1f} ms")
    names = list(next(iter(found.values())).row())
    print("phase".ljust(18) + "".join(n.rjust(14) for n in names))
    for phase, gaps in found.items():
        print(phase.ljust(18) + "".join(f"{v:g}".rjust(14) for v in gaps.row().values()))
    app.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
