"""The parts that pages are built of."""

from app.widgets.basic import ElidedLabel, Hairline, IconButton, button, label, scrolling
from app.widgets.cards import Banner, EmptyState, ErrorCard, Note
from app.widgets.focusring import FocusRing
from app.widgets.memorybar import EndNote, MemoryBar, MemoryKey, MemoryKeys, done_of, gigabytes
from app.widgets.progress import ProgressLine
from app.widgets.search import SearchField
from app.widgets.shrinkable import ScrollBody, Shrinkable
from app.widgets.switch import Switch
from app.widgets.toast import Toast

__all__ = [
    "Banner",
    "ElidedLabel",
    "EmptyState",
    "EndNote",
    "ErrorCard",
    "FocusRing",
    "Hairline",
    "IconButton",
    "MemoryBar",
    "MemoryKey",
    "MemoryKeys",
    "Note",
    "ProgressLine",
    "ScrollBody",
    "SearchField",
    "Shrinkable",
    "Switch",
    "Toast",
    "button",
    "done_of",
    "gigabytes",
    "label",
    "scrolling",
]
