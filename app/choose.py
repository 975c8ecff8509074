"""The system's dialogs for files and folders; each begins where the last one ended."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from app.settings import window_state

_KEY = "folder"


def first_folder() -> Path:
    """Where a dialog begins: where the last one ended, else the user's downloads, else home."""
    last = window_state().value(_KEY)
    downloads = QStandardPaths.StandardLocation.DownloadLocation
    for folder in (last, QStandardPaths.writableLocation(downloads)):
        if isinstance(folder, str) and folder and Path(folder).is_dir():
            return Path(folder)
    return Path.home()


def choose_files(parent: QWidget, title: str, names: str = "") -> list[Path]:
    """Files that are there, none where the user closes the dialog; `names` are filters as Qt writes them."""
    chosen, _ = QFileDialog.getOpenFileNames(parent, title, str(first_folder()), names)
    return _ended([Path(name) for name in chosen])


def choose_file(parent: QWidget, title: str, names: str = "") -> Path | None:
    """One file that is there."""
    chosen, _ = QFileDialog.getOpenFileName(parent, title, str(first_folder()), names)
    return _ended([Path(chosen)])[0] if chosen else None


def choose_new_file(parent: QWidget, title: str, name: str, names: str = "") -> Path | None:
    """Where to save; `name` is suggested."""
    chosen, _ = QFileDialog.getSaveFileName(parent, title, str(first_folder() / name), names)
    return _ended([Path(chosen)])[0] if chosen else None


def choose_folder(parent: QWidget, title: str, now: Path | None = None) -> Path | None:
    """A folder; `now` is the one that is in use and may be changed, where the dialog begins then."""
    chosen = QFileDialog.getExistingDirectory(parent, title, str(now or first_folder()))
    if not chosen:
        return None
    if now is None:
        window_state().setValue(_KEY, chosen)
    return Path(chosen)


def _ended(files: list[Path]) -> list[Path]:
    if files:
        window_state().setValue(_KEY, str(files[0].parent))
    return files
