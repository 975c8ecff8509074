"""Settings: how the window looks, where models live, how they run."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.page import Page, Services
from app.widgets import label


class SettingsPage(Page):
    """Forms made from the settings' own descriptions."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        column = QVBoxLayout(self)
        column.addWidget(label(self.tr("Settings"), "title"))
        column.addStretch(1)
