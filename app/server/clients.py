"""Settings for other programs, to copy: what `lucebox connect` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import ElidedLabel, button, label
from engine.connect import CLIENTS, Target, recipe

_NAMES = {"claude-code": "Claude Code", "codex": "Codex", "opencode": "OpenCode", "pi": "Pi"}


class Client(QFrame):
    """One program: the file that its settings go into, and the command that starts it with them."""

    copied = Signal(str)

    def __init__(self, client: str, target: Callable[[], Target | None]) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._client, self._target = client, target
        name, home = _NAMES.get(client, client), Path.home()
        file = recipe(client, Target("", "", 0), home).file
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(label(name, "strong"))
        place = ElidedLabel(f"~/{file.relative_to(home).as_posix()}", "small")
        place.setToolTip(str(file))
        texts.addWidget(place)
        self._settings = button(self.tr("Settings"), self._copy_settings, "quiet", "copy")
        self._settings.setAccessibleName(self.tr("Copy the settings for {name}").format(name=name))
        self._command = button(self.tr("Command"), self._copy_command, "quiet", "copy")
        self._command.setAccessibleName(
            self.tr("Copy the command that starts {name}").format(name=name)
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 8, 8)
        row.setSpacing(theme().space(1))
        row.addLayout(texts)
        row.addStretch(1)
        row.addWidget(self._settings)
        row.addWidget(self._command)

    def show_target(self, why_not: str) -> None:
        """Copying is possible unless there is a reason against it."""
        for one in (self._settings, self._command):
            one.setEnabled(not why_not)
            one.setToolTip(why_not or one.accessibleName())

    def _copy_settings(self) -> None:
        if (target := self._target()) is not None:
            self.copied.emit(recipe(self._client, target).text)

    def _copy_command(self) -> None:
        if (target := self._target()) is not None:
            self.copied.emit(recipe(self._client, target).start)


class Clients(QWidget):
    """All programs that `lucebox connect` knows.

    Signals:
        copied: carries the text that the user wants on the clipboard.
    """

    copied = Signal(str)

    def __init__(self, target: Callable[[], Target | None]) -> None:
        super().__init__()
        self._target = target
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(theme().space(2))
        self._beside = 0
        self.all: list[Client] = []

    def build(self) -> Iterator[None]:
        """Make one program after the other."""
        for name in CLIENTS:
            one = Client(name, self._target)
            one.copied.connect(self.copied)
            self.all.append(one)
            self._grid.addWidget(one, len(self.all) - 1, 0)
            yield

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        least = max((one.minimumSizeHint().width() for one in self.all), default=0)
        self._arrange(2 if event.size().width() > 2 * least + self._grid.spacing() else 1)

    def minimumSizeHint(self) -> QSize:
        """As wide as one program: two stand side by side only where there is room."""
        least = max((one.minimumSizeHint().width() for one in self.all), default=0)
        return QSize(least, super().minimumSizeHint().height())

    def _arrange(self, beside: int) -> None:
        if beside == self._beside:
            return
        self._beside = beside
        for one in self.all:
            self._grid.removeWidget(one)
        for n, one in enumerate(self.all):
            self._grid.addWidget(one, n // beside, n % beside)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, beside - 1)

    def show_target(self, why_not: str) -> None:
        """Copying is possible unless there is a reason against it."""
        for one in self.all:
            one.show_target(why_not)
