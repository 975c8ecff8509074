"""Notes, empty states and errors: cause, cure and a way past, never colour alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.report import ErrorReport, Way
from app.theme import theme
from app.widgets.basic import Hairline, IconButton, button, label

NOTE_ICONS = {"good": "fits", "warn": "warn", "bad": "error"}


class _Icon(QLabel):
    """A picture that follows the theme."""

    def __init__(self, name: str, color: str, size: int) -> None:
        super().__init__()
        self._what = (name, color, size)
        self._paint()
        theme().changed.connect(self._paint)

    def _paint(self) -> None:
        self.setPixmap(theme().pixmap(*self._what, ratio=self.devicePixelRatioF()))


class Note(QFrame):
    """One line with an icon on a soft colour."""

    def __init__(
        self, kind: Literal["good", "warn", "bad"], text: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._kind = kind
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(theme().space(2))
        self._icon = _Icon(NOTE_ICONS[kind], f"state.{kind}", 16)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        self._text = label(text, "", wrap=True)
        row.addWidget(self._text, 1)
        self._on_theme()
        theme().changed.connect(self._on_theme)

    @property
    def text(self) -> str:
        """What it says."""
        return self._text.text()

    def set_text(self, text: str) -> None:
        """Say something else."""
        self._text.setText(text)

    @Slot()
    def _on_theme(self) -> None:
        """The icon stands beside the middle of the first line."""
        self._icon.setFixedHeight(QFontMetrics(theme().font("ui")).lineSpacing())
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme().color(f"state.{self._kind}Soft"))
        radius = theme().radius("block")
        painter.drawRoundedRect(QRectF(self.rect()), radius, radius)


class Banner(Note):
    """A note across the window: with details to copy or an action (text, call), and a way to close it.

    Signals:
        closed: the user closed it; it goes away by itself.
    """

    closed = Signal()

    def __init__(
        self,
        kind: Literal["good", "warn", "bad"],
        text: str,
        details: str = "",
        action: tuple[str, Callable[[], object]] | None = None,
    ) -> None:
        super().__init__(kind, text)
        self._details = f"{text}\n\n{details}"
        row = self.layout()
        assert row is not None
        row.setAlignment(self._icon, Qt.AlignmentFlag.AlignVCenter)
        if details:
            row.addWidget(button(self.tr("Copy diagnostics"), self._copy, icon="copy"))
        if action is not None:
            row.addWidget(button(*action))
        close = IconButton("close", self.tr("Close this note"), size="controlCompact")
        close.clicked.connect(self.closed)
        close.clicked.connect(self.deleteLater)
        row.addWidget(close)

    def _copy(self) -> None:
        from app.crash import diagnostics

        QGuiApplication.clipboard().setText(diagnostics(self._details))


class EmptyState(QFrame):
    """Nothing here: what, why, and at most three buttons (text, action, optional icon)."""

    def __init__(
        self,
        title: str,
        cause: str,
        buttons: Sequence[
            tuple[str, Callable[[], object]] | tuple[str, Callable[[], object], str]
        ] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(theme().space(1))
        column.addWidget(label(title, "section", wrap=True))
        column.addWidget(label(cause, "muted", wrap=True))
        if buttons:
            row = QHBoxLayout()
            row.setSpacing(theme().space(2))
            for text, action, *icon in buttons:
                row.addWidget(button(text, action, icon=str(icon[0]) if icon else ""))
            row.addStretch(1)
            column.addSpacing(theme().space(2))
            column.addLayout(row)

    def in_the_middle(self) -> QWidget:
        """A place for a whole page with this card in its middle."""
        self.setMaximumWidth(480)
        place = QWidget()
        row = QHBoxLayout(place)
        row.addStretch(1)
        row.addWidget(self, 2, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        return place


class ErrorCard(QFrame):
    """What failed, why with numbers, buttons that fix it, Copy diagnostics, and a way past.

    Signals:
        dismissed: the user closed the card.
    """

    dismissed = Signal()

    def __init__(self, report: ErrorReport, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._report = report
        self.setAccessibleName(report.title)
        self.setAccessibleDescription(report.why)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._head())
        self._first: QWidget | None = None
        for i, way in enumerate(report.ways):
            column.addWidget(Hairline())
            column.addWidget(self._way(way, best=i == 0))
        column.addWidget(self._foot())

    def focus_first(self) -> None:
        """Put the focus on the first fix."""
        if self._first is not None:
            self._first.setFocus(Qt.FocusReason.OtherFocusReason)

    def _head(self) -> QHBoxLayout:
        words = QVBoxLayout()
        words.setSpacing(theme().space(1))
        words.addWidget(label(self._report.title, "lead", wrap=True))
        why = label(self._report.why, "muted", wrap=True)
        why.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        words.addWidget(why)
        head = QHBoxLayout()
        head.setContentsMargins(24, 20, 24, 16)
        head.setSpacing(theme().space(3))
        head.addWidget(_Icon("error", "state.bad", 20), 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        return head

    def _way(self, way: Way, best: bool) -> QWidget:
        """A way out: title over what it costs, need over speed, and its button."""
        row = QWidget()
        across = QHBoxLayout(row)
        across.setContentsMargins(24, 12, 16, 12)
        across.setSpacing(theme().space(4))
        names, sizes = QVBoxLayout(), QVBoxLayout()
        names.setSpacing(2)
        sizes.setSpacing(2)
        names.addWidget(label(way.title, "strong", wrap=True))
        names.addWidget(label(way.note, "small", wrap=True))
        for text, kind in ((way.need, "good"), (way.speed, "small")):
            if text:
                shown = label(text, kind)  # type: ignore[arg-type]
                sizes.addWidget(shown, 0, Qt.AlignmentFlag.AlignRight)
        take = button(self.tr("Apply and load"), way.take, kind="main" if best else "plain")
        take.setAccessibleName(f"{take.text()}: {way.title}")
        take.setAccessibleDescription(". ".join(t for t in (way.note, way.need, way.speed) if t))
        self._first = self._first or take
        across.addLayout(names, 1)
        across.addLayout(sizes)
        across.addWidget(take)
        return row

    def _foot(self) -> QFrame:
        foot = QFrame()
        foot.setProperty("kind", "foot")
        row = QHBoxLayout(foot)
        row.setContentsMargins(24, 12, 16, 12)
        row.setSpacing(theme().space(2))
        for i, (text, action) in enumerate(self._report.fixes):
            best = i == 0 and not self._report.ways
            fix = button(text, action, kind="main" if best else "plain")
            self._first = self._first or fix
            row.addWidget(fix)
        row.addStretch(1)
        row.addWidget(button(self.tr("Copy diagnostics"), self._copy, kind="quiet", icon="copy"))
        close = button(self.tr("Close"))
        close.clicked.connect(self.dismissed)
        row.addWidget(close)
        self._first = self._first or close
        return foot

    def _copy(self) -> None:
        from app.crash import diagnostics

        report = self._report
        text = diagnostics(f"{report.title}\n{report.why}\n\n{report.details}")
        QGuiApplication.clipboard().setText(text)
