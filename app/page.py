"""What a page of the window is, and what every page is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from app.controller import EngineController
from app.settings import Settings
from app.theme import theme
from app.widgets.basic import label
from app.widgets.toast import Said


class Actions(QObject):
    """The actions that the command palette and the key map (F1) list.

    Signals:
        changed: an action was added or went away with its page.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._actions: list[QAction] = []

    def add(self, action: QAction) -> QAction:
        """List an action under its text; its shortcut is shown beside it."""
        self._actions.append(action)
        action.destroyed.connect(self._forget)
        self.changed.emit()
        return action

    def all(self) -> list[QAction]:
        """The listed actions, in the order of their adding."""
        return list(self._actions)

    def _forget(self) -> None:
        import shiboken6

        self._actions = [a for a in self._actions if shiboken6.isValid(a)]
        self.changed.emit()


@dataclass
class Services:
    """What pages share; `page`, `navigate`, `toast`, `toast_undo` and `open_paths` are set by the window.

    page: the name of the page that is shown.
    navigate(page, **kw): show a page; `kw` go to its `open(**kw)`.
    toast(said), toast_undo(said, undo): a short notice, the second with an Undo button: `Toast.say`.
    open_paths(paths): files or folders that were dropped, picked or handed over by a second launch.
    status(text, icon=""): the right end of the status strip, "" clears it.
    """

    controller: EngineController
    settings: Settings
    chat_store: Path
    library: Any = None
    actions: Actions = field(default_factory=Actions)
    page: str = ""
    navigate: Callable[..., None] = lambda page, **kw: None
    toast: Callable[[Said], None] = lambda said: None
    toast_undo: Callable[[Said, Callable[[], None]], None] = lambda said, undo: None
    open_paths: Callable[[list[Path]], None] = lambda paths: None
    status: Callable[..., None] = lambda text, icon="": None


@dataclass(frozen=True, slots=True)
class PageSpec:
    """A page's place in the rail and the class that is imported on the first visit.

    `where` is "module:Class"; a page without an item of its own lights the item `under`. The item of an
    `expert` page shows while the Expert switch is on, or the page itself is shown.
    """

    name: str
    icon: str
    where: str
    bottom: bool = False
    under: str = ""
    expert: bool = False


PAGES = (
    PageSpec("chat", "chat", "app.chat.page:ChatPage"),
    PageSpec("models", "models", "app.models.page:ModelsPage"),
    PageSpec("tune", "tune", "app.tune.page:TunePage", expert=True),
    PageSpec("devices", "devices", "app.devices.page:DevicesPage", expert=True),
    PageSpec("server", "server", "app.server.page:ServerPage", expert=True),
    PageSpec("settings", "settings", "app.settings_page:SettingsPage", bottom=True),
    PageSpec("make_draft", "draft", "app.models.making:MakeDraftPage", under="models"),
    PageSpec("first_run", "chat", "app.first_run:FirstRunPage", under="chat"),
)


class Page(QWidget):
    """One page in the window's centre, made on first visit; it is whole once `build` has ended.

    The header belongs to the page: `_make_header` makes one that shows `title`, which subclasses set.
    """

    title = ""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.services = services

    def build(self) -> Iterator[None]:
        """Make what `__init__` has not, in steps of a few milliseconds: the window answers in between."""
        yield from ()

    def focus_first(self) -> None:
        """Put the keyboard focus where the user will start."""
        self.setFocus()

    def inspector(self) -> QWidget | None:
        """The widget for the right pane, made once; None hides the pane."""
        return None

    def open(self, **kw: Any) -> None:
        """Go to something in the page; what, the page says."""

    def memory(self) -> dict[str, Any]:
        """What `open(**memory)` needs to come back here; pages are built anew for another language."""
        return {}

    def can_close(self) -> bool:
        """Save what is not saved yet; called before the window closes, with 1 s at most."""
        return True

    def _make_header(self) -> tuple[QFrame, QHBoxLayout]:
        """The bar with the page's title, as high as the theme has it, and the row for what else is in it."""
        header = self._top = QFrame()
        header.setProperty("kind", "header")
        row = QHBoxLayout(header)
        row.setContentsMargins(24, 0, 16, 0)
        row.setSpacing(theme().space(2))
        row.addWidget(label(self.title, "lead"))
        theme().changed.connect(self._fit_header)
        self._fit_header()
        return header, row

    def _scroll_below(self, header: QFrame, body: QWidget) -> QScrollArea:
        """Fill the page with a header and a body that scrolls below it."""
        body.setProperty("scroll", True)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(body)
        scroll.setAccessibleName(self.title)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(header)
        column.addWidget(scroll, 1)
        return scroll

    def _fit_header(self) -> None:
        self._top.setFixedHeight(theme().size("header"))
