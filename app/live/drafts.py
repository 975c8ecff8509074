"""The part of the live pane about drafts: what they were worth, each number as text."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import told
from app.live.bars import STEPS, LengthBars, PositionBars, TimeBar
from app.models.words import NONE_YET
from app.theme import restyle, theme
from app.widgets import MemoryKey, label
from engine.metrics import Metrics, SpeculationMetrics


class DraftPanel(QWidget):
    """Acceptance of the last drafts, by position, a step's time, and the speed over no drafts.

    To be hidden while `show_metrics` says that nobody drafts.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Drafts"))
        self._speedup = label(NONE_YET, "section")
        self._drafter = label("", "small", wrap=True)
        self._mean = label(NONE_YET, "section")
        self.lengths = LengthBars(self.tr("Tokens of the last drafts"))
        self._lengths_text = label("", "small", wrap=True)
        self.positions = PositionBars(self.tr("Accepted by position"))
        self._first = label(NONE_YET, "section")
        self._positions_text = label("", "small", wrap=True)
        self._step = label(NONE_YET, "section")
        self.times = TimeBar(self.tr("Time per step with a draft"))
        self._times = [label(NONE_YET, "small") for _ in range(3)]
        self._build()

    def show_metrics(self, metrics: Metrics) -> bool:
        """Take the numbers of a moment; whether there is anything to say about drafts."""
        now = metrics.speculation
        if now is None or (now.state == "on" and not now.drafted_total):
            return False
        self._show(now)
        return True

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(1))
        column.addLayout(_titled(self.tr("Drafts"), self._speedup))
        column.addWidget(self._drafter)
        column.addSpacing(theme().space(2))
        column.addLayout(_titled(self.tr("Accepted per step"), self._mean))
        column.addWidget(self.lengths)
        keys = QHBoxLayout()
        keys.setSpacing(6)
        for kind, name in (("draft", self.tr("drafted")), ("model", self.tr("own"))):
            keys.addWidget(MemoryKey(kind))
            keys.addWidget(label(name, "small"))
            keys.addSpacing(theme().space(2))
        keys.addStretch(1)
        column.addLayout(keys)
        column.addWidget(self._lengths_text)
        column.addSpacing(theme().space(2))
        column.addLayout(_titled(self.tr("Accepted by position"), self._first))
        column.addWidget(self.positions)
        column.addWidget(self._positions_text)
        column.addSpacing(theme().space(2))
        column.addLayout(_titled(self.tr("Time per step with a draft"), self._step))
        column.addWidget(self.times)
        kinds = ("draft", "model", "work")
        names = (self.tr("Draft"), self.tr("Verify"), self.tr("Sample"))
        for kind, name, value in zip(kinds, names, self._times, strict=True):
            line = QHBoxLayout()
            line.setSpacing(6)
            line.addWidget(MemoryKey(kind))
            line.addWidget(label(name, "small"))
            line.addStretch(1)
            line.addWidget(value)
            column.addLayout(line)

    def _show(self, now: SpeculationMetrics) -> None:
        self._show_speed(now)
        mean = now.acceptance_length
        self._show_lengths(now, mean)
        rates = now.by_position
        self.positions.set(rates)
        _say(
            self._first,
            self.tr("first {n} %").format(n=_percent(rates[0])) if rates else NONE_YET,
        )
        gap = "\N{NO-BREAK SPACE}"
        text = ", ".join(f"{i}:{gap}{_percent(r)}{gap}%" for i, r in enumerate(rates, 1))
        _say(self._positions_text, text)
        self.positions.setAccessibleDescription(text)
        times = (now.draft_ms, now.verify_ms, now.sample_ms)
        self.times.set(times)
        for shown, part in zip((self._step, *self._times), (sum(times), *times), strict=True):
            text = NONE_YET if mean is None else self.tr("{n} ms").format(n=f"{part:.1f}")
            _say(shown, text)
        draft, verify, sample = (x.text() for x in self._times)
        self.times.setAccessibleDescription(
            self.tr("Draft {draft}, verify {verify}, sample {sample}").format(
                draft=draft, verify=verify, sample=sample
            )
        )

    def _show_speed(self, now: SpeculationMetrics) -> None:
        speedup, kind = now.speedup, "section"
        if now.state == "failed":
            text, kind = self.tr("failed"), "bad"
        elif now.state == "paused":
            text = self.tr("paused")
        elif speedup is None:
            text = NONE_YET
        else:
            text = self.tr("{n}× the speed").format(n=f"{speedup:.2f}")
            kind = "good" if speedup >= 1.05 else "warn" if speedup < 0.95 else "section"
        if self._speedup.property("kind") != kind:
            self._speedup.setProperty("kind", kind)
            restyle(self._speedup)
        _say(self._speedup, text)
        said = [drafter_text(now.drafter)]
        if now.problem:
            said.append(told(now.problem))
        elif now.state == "paused":
            said.append(
                self.tr("Drafts cost more than they brought here; they are tried again later.")
            )
            if now.switch is not None:
                measured = self.tr("Measured {n}× over {steps} steps.")
                said.append(measured.format(n=f"{now.switch.speedup:.2f}", steps=now.switch.steps))
        elif speedup is not None:
            said.append(self.tr("Compared with no drafts, measured here."))
        _say(self._drafter, " ".join(said))

    def _show_lengths(self, now: SpeculationMetrics, mean: float | None) -> None:
        if mean is None:
            self.lengths.set((), None)
            _say(self._mean, NONE_YET)
            text = self.tr("No draft was verified yet.")
        else:
            n = min(len(now.accepted_lengths), STEPS)
            _say(self._mean, self.tr("{mean} mean of {n}").format(mean=f"{mean:.1f}", n=n))
            # The length at which the time of these steps is that of as many tokens without drafts.
            even = mean / now.speedup if now.speedup else None
            self.lengths.set(now.accepted_lengths, even)
            text = self.tr("{mean} tokens a step, the model's own included.").format(
                mean=f"{mean:.1f}"
            )
            if even is not None:
                text += " " + self.tr("Break-even at {n} (dashed).").format(n=f"{even:.1f}")
        _say(self._lengths_text, text)
        self.lengths.setAccessibleDescription(text)


def drafter_text(drafter: str) -> str:
    """How a drafter of the engine is called."""
    translate = QCoreApplication.translate
    known = {
        "ngram": translate("drafts", "What the text repeats is guessed."),
        "mtp": translate("drafts", "The model's own draft layer guesses."),
        "dflash": translate("drafts", "A DFlash draft guesses."),
        "model": translate("drafts", "A small model guesses."),
    }
    return known.get(drafter, drafter)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _say(shown: QLabel, text: str) -> None:
    if shown.text() != text:
        shown.setText(text)


def _titled(title: str, value: QLabel) -> QHBoxLayout:
    row = QHBoxLayout()
    row.addWidget(label(title, "muted", wrap=True), 1)
    row.addWidget(value, 0, Qt.AlignmentFlag.AlignTop)
    return row
