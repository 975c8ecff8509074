"""The application's start."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.controller import EngineController
from app.page import Services
from app.settings import load_settings
from app.theme import theme
from engine import paths


def main(argv: list[str]) -> int:
    """Open the window; `argv` may hold model files and `--demo`. Returns the exit code."""
    app = QApplication.instance() or QApplication([sys.argv[0], *argv])
    settings, _problem = load_settings()
    theme().apply(settings.value.theme, settings.value.text_size)
    controller = EngineController()
    services = Services(controller, settings, paths.data_dir() / "chats.sqlite")
    from app.window import MainWindow

    window = MainWindow(services)
    window.show_page("settings")
    window.show()
    code = app.exec()
    controller.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main([a for a in sys.argv[1:] if Path(a)]))
