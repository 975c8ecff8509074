"""Small pages for tests of the window alone."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.page import Page, Services


class StubPage(Page):
    """One field; notes what it is asked to do."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.field = QLineEdit()
        self.field.setAccessibleName("Field")
        self.opened: list[dict[str, Any]] = []
        self.closed = 0
        column = QVBoxLayout(self)
        self.button = QPushButton("Do it")
        column.addWidget(self.field)
        column.addWidget(self.button)

    def focus_first(self) -> None:
        self.field.setFocus()

    def open(self, **kw: Any) -> None:
        self.opened.append(kw)

    def memory(self) -> dict[str, Any]:
        return {"text": self.field.text()}

    def can_close(self) -> bool:
        self.closed += 1
        return True


class InspectedPage(StubPage):
    """Has an inspector."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.side = QLabel("Side")
        self.side.setWindowTitle("Live")
        self.side.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def inspector(self) -> QWidget | None:
        return self.side
