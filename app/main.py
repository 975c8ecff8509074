"""The application's start: hooks first, then the window, then everything heavy."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from PySide6.QtCore import QObject, QSocketNotifier, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.controller import EngineController
from app.crash import Watch
from app.garbage import Collector
from app.i18n import Language, told
from app.instance import Instance
from app.page import Services
from app.settings import load_settings
from app.theme import theme
from app.worker import make_engine
from engine import paths

if TYPE_CHECKING:
    from engine.types import ModelInfo

log = logging.getLogger(__name__)

# Together with the pages' saving this stays below the 5 s that closing may take.
SHUTDOWN_MS = 4000
HEAVY = (
    "pyqtgraph",
    "app.live.history",
    "app.live.plot",
    "app.inspector",
    "app.chat.page",
    "app.models.library",
    "app.models.page",
    "app.drop",
    "app.settings_page",
    "app.server.page",
    "app.devices.page",
    "app.tune.page",
    "app.models.making",
    "app.palette",
    "app.handover",
    "engine.demo",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a launch asks for: model files or folders, or the demo model."""

    files: tuple[str, ...] = ()
    demo: bool = False


def parse(argv: Sequence[str]) -> Wanted:
    """The wish of a command line; relative paths become absolute here, where they mean something."""
    if not argv:
        return Wanted()  # to make a parser takes 5 ms
    parser = argparse.ArgumentParser(prog="lucebox", description="Open the window.")
    parser.add_argument("files", nargs="*", help="model files or folders")
    parser.add_argument("--demo", action="store_true", help="load the demo model")
    found = parser.parse_args(list(argv))
    return Wanted(tuple(str(Path(f).absolute()) for f in found.files), found.demo)


class Application(QObject):
    """Puts the parts together and runs them.

    Attributes:
        begun: the first page is built and the first model, if any, is being loaded.
        again: whoever ran it is to start the same command once more.
    """

    _imported = Signal()

    def __init__(
        self,
        app: QApplication,
        watch: Watch,
        instance: Instance,
        wanted: Wanted,
        engine_factory: Callable[[], Any] = make_engine,
        garbage: Collector | None = None,
    ) -> None:
        super().__init__(app)
        self._app = app
        self._watch = watch
        self._wanted = wanted
        self._garbage = garbage
        self._ended = True
        self._device = ""
        self.begun = self.again = False
        self.instance = instance
        self.settings, self._problem = load_settings()
        self._language = Language(self)
        self._apply_settings()
        self.settings.changed.connect(self._apply_settings)
        self.settings.save_failed.connect(self._on_save_failed)
        self.controller = EngineController(engine_factory, self)
        self.controller.usual_config = self.settings.engine_config
        self.controller.config_of = self.settings.config_of
        self.controller.model_changed.connect(self._on_model)
        self.controller.card_failed.connect(self._on_card_failed)
        self.services = Services(
            self.controller, self.settings, chat_store=paths.data_dir() / "chats.sqlite"
        )
        self._imported.connect(self._on_imported)
        watch.failed.connect(self._on_error, Qt.ConnectionType.QueuedConnection)
        instance.called.connect(self._on_called)

    def open(self) -> None:
        """Show the window; the rest of the start follows once it is on the screen."""
        from app.window import MainWindow

        self.window = MainWindow(self.services, at_once=False)
        self.window.painted.connect(self._on_painted)
        self.window.closing.connect(self._on_closing)
        self.window.show()

    def run(self) -> int:
        """Open the window and serve it until it closes; returns the exit code."""
        self.open()
        signals = _Signals(self)
        signals.came.connect(self.window.close)
        code = self._app.exec()
        signals.end()
        if not self._ended:
            # The engine hangs in native code; everything is saved, and waiting would not end.
            if self.again:
                self._watch.disarm()
                start_again()
            logging.shutdown()
            os._exit(code)
        return code

    # The start, after the first picture

    @Slot()
    def _on_painted(self) -> None:
        # On a thread of its own, so that the window answers meanwhile.
        threading.Thread(target=self._import_pages, name="import", daemon=True).start()

    def _import_pages(self) -> None:
        try:
            for name in HEAVY:
                importlib.import_module(name)
            from engine.devices import devices

            self._device = devices()[0].name
        finally:
            self._imported.emit()

    @Slot()
    def _on_imported(self) -> None:
        self._steps = self._begin()
        self._stepper = QTimer(self)
        self._stepper.timeout.connect(self._step)
        self._stepper.start()

    @Slot()
    def _step(self) -> None:
        if next(self._steps, self) is self:
            self._stepper.stop()

    def _begin(self) -> Iterator[None]:
        """The rest of the start, in steps between which the window answers."""
        from app.drop import DropTarget
        from app.models.library import Library

        self.services.library = Library(
            self.settings, paths.data_dir() / "models.json", parent=self
        )
        yield
        yield from self.window.prepare("chat")
        yield
        if not self.window.shown:
            self.window.navigate("chat")
        if self._garbage is not None:
            self._garbage.keep()
        log.info("The first page is built.")
        yield
        self.window.status.set_device(self._device)
        self.controller.start()
        self._begin_services()
        yield
        DropTarget(self.window, self.window.content, self.services)
        yield
        self.instance.listen()
        yield
        self._open_first()
        yield
        self._report_start()
        self.begun = True
        self.window.ahead.begin()

    def _begin_services(self) -> None:
        """What works also while its page is not looked at."""
        from app.server.disk import DiskCache
        from app.server.run import LocalServer

        DiskCache.of(self.services)
        server = LocalServer.of(self.services)
        server.changed.connect(self._on_server)
        if self.settings.value.serve_at_start:
            server.set_on(True)

    def _open_first(self) -> None:
        from engine import demo

        value = self.settings.value
        last = Path(value.last_model) if value.last_model and value.load_last_model else None
        if self._wanted.files:
            self._open_files(self._wanted.files)
        elif not self._wanted.demo and last is not None and last.exists():
            self.controller.load(last)
        elif (path := demo.path(paths.models_dir(value.models_dir)) or demo.path()) is not None:
            self.controller.load(path)
        else:
            self.window.begin_first_run()

    def _open_files(self, files: Sequence[str]) -> None:
        first = Path(files[0])
        if len(files) == 1 and first.suffix.lower() == ".gguf" and first.is_file():
            self.controller.load(first)
        else:
            self.services.open_paths([Path(f) for f in files])

    def _report_start(self) -> None:
        say = self.window.say
        if self._watch.former:
            say(
                "warn",
                lambda: self.tr("Lucebox ended unexpectedly the last time. Your chats are saved."),
                details=self._watch.former,
            )
        if (why := _not_writable(paths.settings_file().parent)) is not None:
            self._on_save_failed(why)
        elif self._problem:
            say("warn", partial(told, self._problem))

    # Slots

    @Slot()
    def _apply_settings(self) -> None:
        value = self.settings.value
        theme().apply(value.theme, value.text_size)
        self._language.apply(value.language)

    @Slot(object)
    def _on_model(self, model: ModelInfo | None) -> None:
        warnings = (
            [] if model is None else [partial(_warning, model.name, w) for w in model.warnings]
        )
        self.window.notes.say_about("model", warnings)
        if model is None:
            return
        self.settings.update(last_model=str(model.path))
        if self._garbage is not None:
            self._garbage.keep()

    @Slot()
    def _on_server(self) -> None:
        from app.server.run import GUARDED, HERE, LocalServer

        server = LocalServer.of(self.services)
        place = urlsplit(server.url).netloc if server.state == "on" else ""
        self.window.status.set_server(place, server.reach not in (HERE, GUARDED))

    @Slot(str)
    def _on_save_failed(self, why: str) -> None:
        if not self.settings.told_once():
            self.window.say("warn", lambda: self._not_saved(why))

    @Slot(str)
    def _on_error(self, text: str) -> None:
        self.window.say("bad", lambda: self._failed(text), details=text)

    def _not_saved(self, why: str) -> str:
        text = self.tr(
            "Settings cannot be saved on this PC, so changes last until you close: {why}"
        )
        return text.format(why=told(why))

    def _failed(self, error: str) -> str:
        text = self.tr("An error in the application: {error}. The log has the details.")
        return text.format(error=error)

    @Slot()
    def _on_card_failed(self) -> None:
        def words() -> str:
            return self.tr(
                "The graphics card stopped with an error that lasts until Lucebox is started again."
                " Your chats are saved."
            )

        self.window.say("bad", words, action=(lambda: self.tr("Restart Lucebox"), self._restart))

    def _restart(self) -> None:
        """End, and have `main` start the same command once all is saved and the place is free."""
        self.again = True
        self.window.close()

    @Slot(dict)
    def _on_called(self, message: dict[str, Any]) -> None:
        window = self.window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()
        self._wanted = Wanted(tuple(message["files"]), message["demo"])
        if self.begun and (self._wanted.files or self._wanted.demo):
            self._open_first()

    @Slot()
    def _on_closing(self) -> None:
        # The next launch is the first from now on; it must not be handed to a window that goes.
        self.instance.release()
        self.window.hide()
        self._ended = self.controller.shutdown(SHUTDOWN_MS)
        self.settings.flush()
        self._app.quit()


class _Signals(QObject):
    """Tells Qt when the system or a terminal ends the process, so that all is saved first.

    Signals:
        came: SIGINT or SIGTERM came.
    """

    came = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._read, self._write = socket.socketpair()
        for end in (self._read, self._write):
            end.setblocking(False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_byte)

    def end(self) -> None:
        """Give the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._read.close()
        self._write.close()

    @Slot()
    def _on_byte(self) -> None:
        self._read.recv(64)
        self.came.emit()


def _warning(name: str, warning: str) -> str:
    return f"{name}: {told(warning)}"


def _not_writable(folder: Path) -> str | None:
    """Why nothing can be written into a folder; None when it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"{folder}: {error.strerror}"


def make_application(argv: Sequence[str]) -> QApplication:
    """The QApplication with its names and icon."""
    app = QApplication([sys.argv[0], *argv])
    app.setApplicationName("lucebox")
    app.setApplicationDisplayName("Lucebox")
    QGuiApplication.setDesktopFileName("lucebox")
    app.setWindowIcon(theme().icon("bolt", "accent.base", 64))
    return app


def _tell_no_answer() -> int:
    """A second launch that ends without a word would look as if nothing happened."""
    from PySide6.QtWidgets import QMessageBox

    language = Language()
    language.apply(load_settings()[0].value.language)
    text = QApplication.translate(
        "Application",
        "Lucebox is already running but does not answer. Wait a moment, or end it and start again.",
    )
    log.error("%s", text)
    QMessageBox.warning(None, "Lucebox", text)
    return 1


def main(argv: Sequence[str]) -> int:
    """Open the window, or hand `argv` (model files, `--demo`) to the one that is open."""
    wanted = parse(argv)
    watch = Watch()
    app = make_application(argv)
    garbage = Collector()
    instance = Instance()
    try:
        if not instance.claim(asdict(wanted)):
            return 0 if instance.answered else _tell_no_answer()
        watch.arm()
        application = Application(app, watch, instance, wanted, garbage=garbage)
        code = application.run()
    finally:
        instance.release()
        watch.disarm()
        garbage.end()
    if application.again:
        start_again()
    return code


def start_again() -> None:
    """Start the command that this process was started with."""
    subprocess.Popen([sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
