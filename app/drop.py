"""Files that are dropped, picked, pasted or handed over: shown while they hover, then opened."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, QTimer, QUrl, Slot
from PySide6.QtGui import (
    QAction,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
)
from PySide6.QtWidgets import QMainWindow, QWidget

from app.i18n import told
from app.models.library import Library
from app.models.opener import opener_of
from app.models.overlay import DropOverlay, texts_of
from app.models.words import reason_text
from app.page import Services

if TYPE_CHECKING:
    from engine.library import Dropped

_OVERLAY_AFTER_MS = 80
_MOST_REASONS = 5
_DRAG_EVENTS = {
    QEvent.Type.DragEnter,
    QEvent.Type.DragMove,
    QEvent.Type.DragLeave,
    QEvent.Type.Drop,
}


class DropTarget(QObject):
    """Makes a whole window the target, and is the one way by which files come into the app.

    It watches the native window, so that no text field under the pointer takes the files first.
    """

    def __init__(self, window: QMainWindow, area: QWidget, services: Services) -> None:
        super().__init__(window)
        self._window = window
        self._services = services
        self._library: Library = services.library
        self._opener = opener_of(services)
        self._paths: tuple[Path, ...] = ()
        self._check: threading.Event | None = None
        self.overlay = DropOverlay(window, area, services)
        self._delay = QTimer(self, singleShot=True, interval=_OVERLAY_AFTER_MS)
        self._delay.timeout.connect(self._show_overlay)
        window.installEventFilter(self)
        self._watch_native()
        services.open_paths = self.open_paths
        self._paste = QAction(self.tr("Open the pasted file"), window)
        self._paste.setShortcut(QKeySequence.StandardKey.Paste)
        self._paste.triggered.connect(self._on_paste)
        window.addAction(self._paste)
        services.actions.add(self._paste)

    def open_paths(self, paths: Sequence[Path], copy: bool = False) -> None:
        """Check files and folders, list the models among them, and open one that stands alone."""
        if not paths:
            return
        self._services.status(self.tr("Checking %n file(s)", None, len(paths)), "search")
        self._library.check(self, paths, lambda dropped: self._take(dropped, copy))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window:
            if event.type() in (QEvent.Type.Show, QEvent.Type.WinIdChange):
                self._watch_native()
            elif event.type() == QEvent.Type.LanguageChange:
                self._paste.setText(self.tr("Open the pasted file"))
            return False
        if event.type() not in _DRAG_EVENTS:
            return False
        if isinstance(event, QDragEnterEvent):
            return self._enter(event)
        if isinstance(event, QDragMoveEvent):
            return self._move(event)
        if isinstance(event, QDropEvent):
            return self._drop(event)
        return self._leave()

    # The drag

    def _enter(self, event: QDragEnterEvent) -> bool:
        self._paths = local_paths(event.mimeData())
        if not self._paths:
            return False
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self._delay.start()
        self.overlay.begin(self._paths)
        self._check = self._library.check(self.overlay, self._paths, self.overlay.show_dropped)
        return True

    def _move(self, event: QDragMoveEvent) -> bool:
        if not self._paths:
            return False
        self.overlay.point_at(event.position().toPoint())
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        return True

    def _drop(self, event: QDropEvent) -> bool:
        if not self._paths:
            return False
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        paths, copy = self._paths, self.overlay.copy_wanted(event.position().toPoint())
        self._leave()
        self.open_paths(paths, copy)
        return True

    def _leave(self) -> bool:
        if not self._paths:
            return False
        self._paths = ()
        self._delay.stop()
        if self._check is not None:
            self._check.set()
        self.overlay.hide()
        return True

    @Slot()
    def _show_overlay(self) -> None:
        self.overlay.appear()

    def _watch_native(self) -> None:
        handle = self._window.windowHandle()
        if handle is not None:
            handle.removeEventFilter(self)
            handle.installEventFilter(self)

    @Slot()
    def _on_paste(self) -> None:
        paths = local_paths(QGuiApplication.clipboard().mimeData())
        if paths:
            self.open_paths(paths)
        else:
            self._services.toast(lambda: self.tr("The clipboard holds no file that exists."))

    # What is done with them

    def _take(self, dropped: Dropped, copy: bool) -> None:
        self._services.status("")
        if dropped.sources:
            self._services.navigate("make_draft", source=dropped.sources[0])
        entries = [*dropped.models, *dropped.companions]
        if entries or dropped.sources:
            self._opener.forget_failure()
        if len(dropped.models) == 1 and copy:
            self._services.navigate("models")
            self._opener.copy_in(dropped.models[0])
        elif entries:
            self._library.add(entries, lambda: self._show(dropped))
        if not entries and dropped.ignored:
            self._refuse(dropped)
        else:
            self._tell_left_out(dropped.ignored)

    def _tell_left_out(self, ignored: Sequence[tuple[Path, str]]) -> None:
        if not ignored:
            return
        path, why = ignored[0]
        more = len(ignored) - 1

        def words() -> str:
            text = self.tr("{name} was left out. {why}").format(name=path.name, why=told(why))
            also = self.tr("%n more file(s) were left out too.", None, more) if more else ""
            return f"{text} {also}".strip()

        self._services.toast(words)

    def _show(self, dropped: Dropped) -> None:
        first = (*dropped.models, *dropped.companions)[0]
        self._services.navigate("models", path=first.path)
        if len(dropped.models) == 1:
            self._opener.open(first.path)
        elif not dropped.models:
            loaded = self._services.controller.model
            if first.kind == "draft" and loaded is not None:
                text = self.tr("{name} is a draft. Its details offer to use it with {model}.")
                self._services.toast(text.format(name=first.path.name, model=loaded.name))
                return
            text = self.tr("{name} is listed. It goes with a chat model and cannot chat by itself.")
            self._services.toast(text.format(name=first.path.name))

    def _refuse(self, dropped: Dropped) -> None:
        ignored = dropped.ignored
        models = [(p, why) for p, why in ignored if p.suffix.lower() == ".gguf" or p.is_dir()]
        texts = texts_of(dropped)
        if texts and not models:
            self._services.navigate("chat", attach=texts)
            self._tell_left_out([(p, why) for p, why in ignored if p not in texts])
        elif not models:
            # A picture is no fault of the user: a note is enough.
            text = self.tr("{name} is not opened. {why}")
            self._services.toast(text.format(name=ignored[0][0].name, why=told(ignored[0][1])))
        else:
            self._show_broken(models)

    def _show_broken(self, models: Sequence[tuple[Path, str]]) -> None:
        title = self.tr("{name} cannot be used").format(name=models[0][0].name)
        if len(models) > 1:
            title = self.tr("%n file(s) cannot be used", None, len(models))
        lines = [f"{p.name}: {why}" if not why.startswith(p.name) else why for p, why in models]
        text = "\n".join(map(told, lines[:_MOST_REASONS]))
        if len(models) == 1:
            text = reason_text(*models[0])  # The title names it.
        self._services.navigate("models")
        self._opener.report(title, text, "\n".join(lines))


def local_paths(mime: QMimeData) -> tuple[Path, ...]:
    """The files on this PC that a drag or the clipboard holds, as addresses or as text."""
    urls = mime.urls() if mime.hasUrls() else []
    if not urls and mime.hasText():
        lines = [line.strip().strip("\"'") for line in mime.text().splitlines()[:1000]]
        urls = [
            QUrl(line) if line.startswith("file:") else QUrl.fromLocalFile(line)
            for line in lines
            if (line and Path(line).is_absolute()) or line.startswith("file:")
        ]
    return tuple(Path(u.toLocalFile()) for u in urls if u.isLocalFile())
