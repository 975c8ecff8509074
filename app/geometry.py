"""Where the window was, made fit for the screens of today."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize

TITLE_BAR = 32
"""Room kept above the window's content, so that it can be moved with the mouse."""


def repaired(wanted: QRect, screens: Sequence[QRect], least: QSize, usual: QSize) -> QRect:
    """The nearest place to `wanted` that lies wholly on one screen, title bar included.

    `screens` are available areas, the first one the primary; `usual` is taken for a missing size.
    """
    if not screens:
        return QRect(wanted.topLeft(), usual)
    known = wanted.width() > 0 and wanted.height() > 0
    rect = QRect(wanted) if known else QRect(wanted.topLeft(), usual)
    screen = max(screens, key=lambda s: _area(s.intersected(rect)))
    if not _area(screen.intersected(rect)):
        screen = screens[0]
    room = screen.adjusted(0, min(TITLE_BAR, screen.height() // 4), 0, 0)
    width = min(max(rect.width(), least.width()), room.width())
    height = min(max(rect.height(), least.height()), room.height())
    x = min(max(rect.x(), room.x()), room.x() + room.width() - width)
    y = min(max(rect.y(), room.y()), room.y() + room.height() - height)
    return QRect(x, y, width, height)


def _area(rect: QRect) -> int:
    return max(rect.width(), 0) * max(rect.height(), 0)
