"""Where the keyboard is in a tree of widgets, to put it there again in one built anew, and where it goes."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

Place = tuple[tuple[str, int], ...]
"""From a root downwards: the class of each child, and how many of that class come before it."""


def place_of(root: QWidget, widget: QWidget | None) -> Place | None:
    """Where a widget is below `root`; None where it is not."""
    steps: list[tuple[str, int]] = []
    at: QObject | None = widget
    while at is not None and at is not root:
        parent = at.parent()
        if parent is None:
            return None
        steps.append((type(at).__name__, _alike(parent, type(at).__name__).index(at)))
        at = parent
    return tuple(reversed(steps)) if at is root else None


def focus_at(root: QWidget, place: Place) -> bool:
    """Focus what is at a place below `root`; false where nothing is there that takes the keyboard."""
    at: QObject = root
    for kind, nth in place:
        alike = _alike(at, kind)
        if nth >= len(alike):
            return False
        at = alike[nth]
    if not isinstance(at, QWidget) or not (at.isVisible() and at.isEnabled()):
        return False
    at.setFocus(Qt.FocusReason.OtherFocusReason)
    return at.window().focusWidget() is at


def tab_through(first: QWidget, part: QWidget) -> None:
    """Let Tab go from `first`, or what takes it before that, through all of `part`, which came later."""
    start = first
    while not _takes_tab(first):
        first = first.previousInFocusChain() or start
        if first is start:
            return
    for child in part.findChildren(QWidget):
        if _takes_tab(child) and child.focusProxy() is None:
            QWidget.setTabOrder(first, child)
            first = child


def _takes_tab(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


def _alike(parent: QObject, kind: str) -> list[QObject]:
    return [child for child in parent.children() if type(child).__name__ == kind]
