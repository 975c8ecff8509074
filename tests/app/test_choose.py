"""Where the dialogs for files and folders begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from app.choose import choose_file, choose_files, choose_folder, choose_new_file


def test_a_dialog_begins_in_downloads_else_home_then_where_the_last_one_ended(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, downloads, models = QWidget(), tmp_path / "Downloads", tmp_path / "models"
    qtbot.addWidget(parent)
    models.mkdir()
    begun: list[str] = []
    chosen: Any = None

    def ask(_parent: QWidget, _title: str, where: str, _names: str = "") -> Any:
        begun.append(where)
        return chosen

    for name in ("getOpenFileNames", "getOpenFileName", "getSaveFileName", "getExistingDirectory"):
        monkeypatch.setattr(QFileDialog, name, ask)
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda _which: str(downloads))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)

    chosen = ([], "")
    assert choose_files(parent, "Open") == []
    downloads.mkdir()
    choose_files(parent, "Open")
    assert begun == [str(tmp_path), str(downloads)], "a closed dialog is not remembered"

    chosen = ([str(models / "a.gguf")], "")
    assert choose_files(parent, "Open") == [models / "a.gguf"]
    chosen = ("", "")
    assert choose_file(parent, "Open") is None
    assert choose_new_file(parent, "Save", "chat.md") is None
    assert begun[3:] == [str(models), str(models / "chat.md")]

    chosen = str(tmp_path)
    assert choose_folder(parent, "Change", now=downloads) == tmp_path
    chosen = ""
    assert choose_folder(parent, "Add") is None
    assert begun[5:] == [str(downloads), str(models)], "a setting's own folder is another matter"

    models.rmdir()
    choose_folder(parent, "Add")
    assert begun[-1] == str(downloads), "the folder is gone"
