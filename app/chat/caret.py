"""Where the keys move one end of a selection inside a text."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QTextLayout, QTextLine

from app.chat.boxes import Run
from app.chat.laid import Laid, Place

_BACK = (Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_Home)
KEYS = (*_BACK, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_End)


def goes_back(key: int) -> bool:
    """Whether a key goes towards the beginning."""
    return key in _BACK


def first(laid: Laid) -> Place:
    """The beginning of a text."""
    return next((Place(b) for b, box in enumerate(laid.boxes) if box.runs), Place())


def last(laid: Laid) -> Place:
    """The end of a text."""
    for b in range(len(laid.boxes) - 1, -1, -1):
        if runs := laid.boxes[b].runs:
            return Place(b, len(runs) - 1, runs[-1].length)
    return Place()


def rect_of(laid: Laid, place: Place) -> QRectF:
    """Where a place is, from the text's own top left: a rectangle without width."""
    run = _run(laid, place)
    if run is None or (line := _line(run, place)) is None:
        return QRectF()
    x, y = _x(line, place.at) + run.at.x(), line.y() + run.at.y()
    return QRectF(x, y + laid.boxes[place.box].y, 0, line.height())


def moved(laid: Laid, place: Place, key: int, far: bool) -> Place:
    """The place to which a key of `KEYS` goes; `far`, as with Ctrl, by words or to the ends."""
    place = min(max(place, first(laid)), last(laid))
    run = _run(laid, place)
    if run is None:
        return place
    match key:
        case Qt.Key.Key_Left | Qt.Key.Key_Right:
            return _sideways(laid, place, run, key == Qt.Key.Key_Right, far)
        case Qt.Key.Key_Home | Qt.Key.Key_End if far:
            return last(laid) if key == Qt.Key.Key_End else first(laid)
        case Qt.Key.Key_Home | Qt.Key.Key_End:
            return _line_end(run, place, key == Qt.Key.Key_End)
    return _vertically(laid, place, down=key == Qt.Key.Key_Down)


def _sideways(laid: Laid, place: Place, run: Run, on: bool, word: bool) -> Place:
    mode = QTextLayout.CursorMode.SkipWords if word else QTextLayout.CursorMode.SkipCharacters
    layout = run.layout
    step = layout.nextCursorPosition if on else layout.previousCursorPosition
    at = step(place.at, mode)
    if at != place.at:
        return place._replace(at=at)
    order = [(b, r) for b, box in enumerate(laid.boxes) for r in range(len(box.runs))]
    near = order.index(place[:2]) + (1 if on else -1)
    if not 0 <= near < len(order):
        return place
    box, number = order[near]
    return Place(box, number, 0 if on else laid.boxes[box].runs[number].length)


def _line_end(run: Run, place: Place, end: bool) -> Place:
    line = _line(run, place)
    if line is None:
        return place
    at = line.textStart() + (line.textLength() if end else 0)
    # Behind the last letter of a line that goes on is the beginning of the next line.
    if end and at < run.length:
        at = run.layout.previousCursorPosition(at)
    return place._replace(at=at)


def _vertically(laid: Laid, place: Place, down: bool) -> Place:
    """The nearest place on the next line, over the room between boxes; past the last line its end."""
    rect = rect_of(laid, place)
    y, step = rect.center().y(), max(rect.height() / 2, 4.0)
    while 0 <= y <= laid.height:
        y += step if down else -step
        found = laid.place_at(rect.x(), y)
        here = rect_of(laid, found)
        if here.top() >= rect.bottom() - 1 if down else here.bottom() <= rect.top() + 1:
            return found
    return last(laid) if down else first(laid)


def _run(laid: Laid, place: Place) -> Run | None:
    if place.box >= len(laid.boxes) or place.run >= len(laid.boxes[place.box].runs):
        return None
    return laid.boxes[place.box].runs[place.run]


def _line(run: Run, place: Place) -> QTextLine | None:
    line = run.layout.lineForTextPosition(min(place.at, run.length))
    return line if line.isValid() else None


def _x(line: QTextLine, at: int) -> float:
    found: Any = line.cursorToX(at)  # With the position that was used, where it was moved.
    return float(found[0] if isinstance(found, tuple) else found)
