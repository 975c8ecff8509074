"""The system prompt of a chat."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.chat.session import ChatSession
from app.page import Services
from app.theme import theme
from app.widgets import button, label

WIDTH, HEIGHT = 480, 180


class PromptPanel(QWidget):
    """An editor; what is typed holds for this chat at once, and for new chats on request."""

    def __init__(
        self, services: Services, session: ChatSession, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._services = services
        self._session = session
        self.edit = QPlainTextEdit()
        self.edit.setAccessibleName(self.tr("System prompt"))
        self.edit.setPlaceholderText(
            self.tr("How the model should answer, for example: Answer briefly.")
        )
        self.edit.setTabChangesFocus(True)
        self.edit.setMinimumHeight(HEIGHT)
        self.keep = button(self.tr("Use for new chats"), self._on_keep)
        self.clear = button(self.tr("Clear"), self.edit.clear, kind="quiet")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(theme().space(2))
        column.addWidget(label(self.tr("System prompt of this chat"), "section"))
        column.addWidget(
            label(self.tr("Sent ahead of the messages, from the next answer on."), "small")
        )
        column.addWidget(self.edit, 1)
        row = QHBoxLayout()
        row.addWidget(self.keep)
        row.addWidget(self.clear)
        row.addStretch(1)
        column.addLayout(row)
        self.setFixedWidth(round(WIDTH * theme().scale))
        self.setFocusProxy(self.edit)
        self.refresh()
        self.edit.textChanged.connect(self._on_text)

    @Slot()
    def refresh(self) -> None:
        """Show the open chat's prompt."""
        text = self._session.chat.info.system_prompt
        if text != self.edit.toPlainText():
            self.edit.blockSignals(True)
            self.edit.setPlainText(text)
            self.edit.blockSignals(False)
        self._update()

    @Slot()
    def _on_text(self) -> None:
        self._session.set_system_prompt(self.edit.toPlainText())
        self._update()

    def _update(self) -> None:
        same = self.edit.toPlainText() == self._services.settings.value.system_prompt
        self.keep.setEnabled(not same)
        self.clear.setEnabled(bool(self.edit.toPlainText()))

    @Slot()
    def _on_keep(self) -> None:
        self._services.settings.update(system_prompt=self.edit.toPlainText())
        self._update()
