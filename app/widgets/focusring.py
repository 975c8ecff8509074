"""The focus ring: one overlay per window, shown for the keyboard only."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QSlider,
    QStyle,
    QStyleOptionSlider,
    QWidget,
)

from app.theme import theme

_GAP = 2
_MOVES = (QEvent.Type.Move, QEvent.Type.Resize, QEvent.Type.Hide, QEvent.Type.Show)
_VIEW_MOVES = (*_MOVES, QEvent.Type.Paint)


class FocusRing(QWidget):
    """Draws a ring 2 px outside of the focused widget of one window: of a list's row, of a slider's knob.

    The ring of the main window gives every dialog and popup that comes up a ring of its own.
    A widget may set the properties "ringRadius" (px) and "focusRing" (False: it shows focus itself).
    """

    def __init__(self, window: QWidget, keyboard: bool = False, spread: bool = True) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._target: QWidget | None = None
        self._frame = QRect()
        self._watched: list[QWidget] = []
        self._keyboard = keyboard
        self._spread = spread
        self.hide()
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus)
        theme().changed.connect(self.update)

    def watch(self) -> None:
        """Begin to tell keyboard from mouse; call once the window has a native handle."""
        handle = self.window().windowHandle()
        if handle is not None:
            handle.installEventFilter(self)

    def by_keyboard(self) -> None:
        """The next focus change comes from a shortcut: show it."""
        self._keyboard = True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.MouseButtonPress:
            self._keyboard = False
            self._follow(None)
        elif kind == QEvent.Type.KeyPress:
            self._keyboard = True
        elif watched in self._watched and kind in (
            # A list that goes to another row or scrolls tells only by painting.
            _VIEW_MOVES if watched is self._watched[0] else _MOVES
        ):
            self._place()
        return False

    def _on_focus(self, old: QWidget | None, now: QWidget | None) -> None:
        if self._spread and now is not None:
            self._give_ring(now)
        shown = now is not None and self._keyboard and now.window() is self.window()
        if shown and now is not None and now.property("focusRing") is False:
            shown = False
        self._follow(now if shown else None)

    def _give_ring(self, focus: QWidget) -> None:
        window = focus.window()
        popup = window.windowType() == Qt.WindowType.Popup
        list_of_a_field = popup and isinstance(focus, QAbstractItemView)
        if window is self.window() or window.findChild(FocusRing) is not None or list_of_a_field:
            return
        ring = FocusRing(window, self._keyboard, spread=False)
        ring.watch()
        ring._on_focus(None, focus)

    def _follow(self, target: QWidget | None) -> None:
        for watched in self._watched:
            watched.removeEventFilter(self)
        self._watched = []
        self._target = target
        widget = target.viewport() if isinstance(target, QAbstractItemView) else target
        while widget is not None and widget is not self.window():
            widget.installEventFilter(self)
            self._watched.append(widget)
            widget = widget.parentWidget()
        self._place()

    def _place(self) -> None:
        target = self._target
        if target is None or not target.isVisible():
            self.hide()
            return
        if isinstance(target, QAbstractItemView):
            rect = seen = _row(target)
            rect.moveTopLeft(target.viewport().mapTo(self.window(), rect.topLeft()))
        else:
            gap = _GAP + theme().size("focusRing")
            rect = self._rect_of(target)
            if isinstance(target, QSlider):
                rect = _handle(target).translated(rect.topLeft())
            rect = rect.adjusted(-gap, -gap, gap, gap)
            seen = rect
            for parent in self._watched[1:]:
                seen = seen.intersected(self._rect_of(parent).adjusted(-gap, -gap, gap, gap))
        if seen.isEmpty():
            self.hide()
            return
        frame = rect.translated(-seen.topLeft())
        if seen != self.geometry() or frame != self._frame or self.isHidden():
            self._frame = frame
            self.setGeometry(seen)
            self.update()
            self.show()
            self.raise_()

    def _rect_of(self, widget: QWidget) -> QRect:
        return QRect(widget.mapTo(self.window(), QPoint(0, 0)), widget.size())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._target is None:
            return
        width = theme().size("focusRing")
        radius = self._target.property("ringRadius") or theme().radius("control") + _GAP
        if isinstance(self._target, QSlider):
            radius = self._frame.height() / 2
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().color("accent.base"), width))
        half = width / 2
        painter.drawRoundedRect(
            QRectF(self._frame).adjusted(half, half, -half, -half), radius, radius
        )


def _handle(slider: QSlider) -> QRect:
    """Where a slider's knob is, in its own px."""
    option = QStyleOptionSlider()
    slider.initStyleOption(option)
    return slider.style().subControlRect(
        QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, slider
    )


def _row(view: QAbstractItemView) -> QRect:
    """What is seen of the current row, all of the view where there is none; in viewport px."""
    room = view.viewport().rect()
    row = view.visualRect(view.currentIndex())
    return room.intersected(QRect(room.x(), row.y(), room.width(), row.height())) or room
