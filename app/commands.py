"""The window's own actions and their keys; pages add theirs to `services.actions`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction, QKeySequence

from app.choose import choose_files
from engine.config import AppSettings, info_of

if TYPE_CHECKING:
    from app.window import MainWindow


def plain(text: str) -> str:
    """An action's text without the mark of its accelerator."""
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&")


def keys(action: QAction) -> str:
    """An action's shortcut as the system writes it."""
    return action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)


class Commands(QObject):
    """Actions by name in `actions`; `retranslate` gives them their words."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.actions: dict[str, QAction] = {}
        self._add("new", "Ctrl+N", partial(window.navigate, "chat", new=True))
        self._add("open", "Ctrl+O", self._open)
        self._add("pick", "Ctrl+L", partial(window.navigate, "chat", pick=True))
        self._add("search", "Ctrl+Shift+F", partial(window.navigate, "chat", search=True))
        for number, name in enumerate(window.page_names, 1):
            key = "Ctrl+," if name == "settings" else f"Ctrl+{number}"
            self._add(f"page.{name}", key, partial(window.navigate, name))
        self._add("palette", "Ctrl+K", self._palette)
        self._add("rail", "Ctrl+B", window.toggle_rail)
        self._add("pane", "Ctrl+I", window.toggle_pane)
        self._add("next", "F6", partial(window.jump, 1))
        self._add("previous", "Shift+F6", partial(window.jump, -1))
        self._add("larger", "Ctrl++", partial(self._resize_text, 1), "Ctrl+=")
        self._add("smaller", "Ctrl+-", partial(self._resize_text, -1))
        self._add("usual", "Ctrl+0", partial(self._resize_text, 0))
        self._add("keys", "F1", self._keys)
        self._add("quit", "Ctrl+Q", window.close)
        self.retranslate()

    def key_of(self, name: str) -> str:
        """An action's keys as the system writes them."""
        return keys(self.actions[name])

    def retranslate(self) -> None:
        """Take the words of the current language."""
        texts = {
            "new": self.tr("New chat"),
            "open": self.tr("Open a model file"),
            "pick": self.tr("Choose a model"),
            "search": self.tr("Search all chats"),
            "palette": self.tr("Commands"),
            "rail": self.tr("Show or hide the rail"),
            "pane": self.tr("Show or hide the right pane"),
            "next": self.tr("Next part of the window"),
            "previous": self.tr("Previous part of the window"),
            "larger": self.tr("Larger text"),
            "smaller": self.tr("Smaller text"),
            "usual": self.tr("Usual text size"),
            "keys": self.tr("Keys"),
            "quit": self.tr("Quit"),
        }
        for name, title in self._window.titles().items():
            texts[f"page.{name}"] = self.tr("Go to {page}").format(page=title)
        for name, text in texts.items():
            if name in self.actions:
                self.actions[name].setText(text)

    def _add(self, name: str, key: str, slot: Callable[[], object], also: str = "") -> None:
        action = QAction(self._window)
        action.setShortcuts([QKeySequence(k) for k in (key, also) if k])
        action.triggered.connect(lambda _checked=False, call=slot: call())
        self._window.addAction(action)
        self.actions[name] = self._window.services.actions.add(action)

    @Slot()
    def _open(self) -> None:
        window = self._window
        names = self.tr("Models") + " (*.gguf *.GGUF);;" + self.tr("All files") + " (*)"
        if files := choose_files(window, self.tr("Open a model file"), names):
            window.services.open_paths(files)

    @Slot()
    def _palette(self) -> None:
        from app.palette import Palette

        Palette(self._window.services.actions, self._window).open()

    @Slot()
    def _keys(self) -> None:
        from app.palette import KeyMap

        KeyMap(self._window.services.actions, self._window).open()

    def _resize_text(self, steps: int) -> None:
        settings = self._window.services.settings
        info = info_of(AppSettings, "text_size")
        assert info.low is not None and info.high is not None and info.step is not None
        size = settings.value.text_size + steps * info.step if steps else AppSettings().text_size
        settings.update(text_size=min(max(size, info.low), info.high))
