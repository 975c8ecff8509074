"""Content that is shown whole where there is room, and scrolls where there is not."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

LEAST = 96


class ScrollBody(QWidget):
    """What scrolls up and down in a page or pane where it is higher, at the width it has, than its place."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("scroll", True)

    def minimumSizeHint(self) -> QSize:
        hint, layout = super().minimumSizeHint(), self.layout()
        if layout is not None and layout.hasHeightForWidth():
            # Else that of its least width, with all texts broken into many lines: a bar in a place with room.
            hint.setHeight(0)
        return hint


class Shrinkable(QScrollArea):
    """Wants the height of its content at its own width, and takes less."""

    def __init__(self, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self._content = content
        if content.hasHeightForWidth():
            # Else its least height would be that of its least width, with all texts broken into many lines.
            content.setMinimumHeight(1)
        self.setWidget(content)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def sizeHint(self) -> QSize:
        content, hint = self._content, self._content.sizeHint()
        width = self.width() if self.isVisible() else hint.width()
        height = content.heightForWidth(width) if content.hasHeightForWidth() else hint.height()
        return QSize(hint.width(), max(height, hint.height() if height < 0 else 0))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, min(LEAST, self.sizeHint().height()))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._offer_bar()
        return super().event(event)

    def _offer_bar(self) -> None:
        """Offer a bar only where it is needed at full width.

        One left from a layout on the way would take width, and the content taller for it would keep the bar.
        """
        needed = self.sizeHint().height() > self.height()
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if needed else policy.ScrollBarAlwaysOff
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._offer_bar()
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()
        focus = self._content.focusWidget()
        if focus is not None and focus.hasFocus():
            self.ensureWidgetVisible(focus)
