"""What was moved to the bin: brought back or deleted for good."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.i18n import told
from app.models.library import Library
from app.page import Services
from app.theme import theme
from app.widgets import gigabytes

if TYPE_CHECKING:
    from engine.copies import Binned


class BinButton(QPushButton):
    """Shown while the bin holds something; its menu brings models back or frees their space."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._library: Library = services.library
        self._menu = QMenu(self)
        self.setProperty("kind", "quiet")
        self.setMenu(self._menu)
        theme().tint(self, "trash", size=16)
        self._library.bin_changed.connect(self.look)
        self.hide()

    @Slot()
    def look(self) -> None:
        """See what is in the bin."""
        self._library.in_bin(self, self._show)

    def _show(self, binned: tuple[Binned, ...]) -> None:
        self.setVisible(bool(binned))
        self.setText(self.tr("Bin, %n model(s)", None, len(binned)))
        self._menu.clear()
        for one in binned:
            text = self.tr("Bring back {name}").format(name=one.name)
            self._menu.addAction(text, partial(self._library.restore, one, self._failed))
        self._menu.addSeparator()
        size = gigabytes(sum(one.size for one in binned))
        text = self.tr("Delete for good, frees {size}").format(size=size)
        self._menu.addAction(text, partial(self._library.empty_bin, binned))

    def _failed(self, error: Exception) -> None:
        self._services.toast(told(str(error)))
