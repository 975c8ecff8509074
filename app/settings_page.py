"""Settings: how the window looks, where models live, how they run, where files are."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.choose import choose_folder
from app.crash import diagnostics, log_file
from app.focus import tab_through
from app.forms import Field, Row, words
from app.i18n import told
from app.page import Page, Services
from app.theme import theme
from app.widgets import Hairline, IconButton, Note, ScrollBody, button, label
from engine import paths
from engine.config import (
    AppSettings,
    DiskCacheConfig,
    EngineConfig,
    changed_settings,
    disk_cache_config,
    info_of,
)
from engine.errors import EngineError

LOOK = ("theme", "language", "text_size")
RUN = (
    "threads", "precision", "max_ctx", "max_concurrency", "prefill_chunk", "spec", "budget",
    "prefix_cache_mib",
)  # fmt: skip
DISK = ("disk_cache_limit", "disk_cache_days")
KEPT_AT_RESET = ("last_model", "sampling")
PROMPT_DELAY_MS = 400


def why_not_writable(folder: Path) -> str | None:
    """The reason why nothing can be put into a folder; None when it can."""
    try:
        if not folder.is_dir():
            raise NotADirectoryError(20, os.strerror(20), str(folder))
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return told(error.strerror or str(error))


class SettingsPage(Page):
    """Rows under five headings; every change works at once, and Reset can be undone."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title = self.tr("Settings")
        self._settings = services.settings
        self._fields: dict[str, Field] = {}
        self._column = QVBoxLayout()
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._prompt_timer = QTimer(self, singleShot=True, interval=PROMPT_DELAY_MS)
        self._prompt_timer.timeout.connect(self._save_prompt)

    def build(self) -> Iterator[None]:
        self._build()
        yield
        for add in (self._add_look, self._add_models, self._add_chat, self._add_run):
            add()
            yield
        self._add_disk()
        yield
        self._add_files()
        self._column.addStretch(1)
        self._settings.changed.connect(self._show_values)

    def focus_first(self) -> None:
        self._fields["theme"].focus()

    def can_close(self) -> bool:
        self._save_prompt()
        return True

    # Building

    def _build(self) -> None:
        header, row = self._make_header()
        row.addStretch(1)
        row.addWidget(button(self.tr("Reset all"), self._reset, kind="quiet", icon="retry"))
        body = ScrollBody()
        inside = QWidget()
        inside.setMaximumWidth(theme().size("measure"))
        inside.setLayout(self._column)
        around = QHBoxLayout(body)
        around.setContentsMargins(24, 8, 24, 24)
        around.addWidget(inside, 1)
        around.addStretch(0)
        # Else as high as it would be at its least width, with all texts broken into many lines.
        body.setMinimumHeight(1)
        self._scroll_below(header, body).setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def _section(self, title: str) -> None:
        if self._column.count():
            self._column.addSpacing(theme().space(4))
        head = label(title, "section")
        head.setContentsMargins(0, 16, 0, 8)
        self._column.addWidget(head)

    def _add(self, row: QWidget) -> None:
        self._column.addWidget(Hairline())
        self._column.addWidget(row)

    def _add_field(self, cls: type, name: str, value: Any) -> Field:
        field = Field(cls, name, value)
        self._fields[name] = field
        self._add(field)
        return field

    def _add_look(self) -> None:
        self._section(self.tr("Look"))
        for name in LOOK:
            field = self._add_field(AppSettings, name, getattr(self._settings.value, name))
            field.edited.connect(self._on_edited)

    def _add_models(self) -> None:
        self._section(self.tr("Models"))
        info = info_of(AppSettings, "models_dir")
        self._folder = QLineEdit()
        self._folder.setReadOnly(True)
        line = _line(self._folder, button(self.tr("Change…"), self._change_folder, icon="folder"))
        self._folder.setAccessibleName(words(info.title))
        self._add(Row(words(info.title), words(info.help), line, wide=True))
        self._refused = Note("bad", "")
        self._refused.hide()
        self._column.addWidget(self._refused)
        info = info_of(AppSettings, "extra_model_dirs")
        self._others = QVBoxLayout()
        self._others.setContentsMargins(0, 0, 0, 0)
        self._others.setSpacing(theme().space(1))
        self._others_place = QWidget()
        self._others_place.setLayout(self._others)
        self._add(Row(words(info.title), words(info.help), self._others_place, wide=True))
        self._shown_others: list[str] | None = None
        name = "load_last_model"
        field = self._add_field(AppSettings, name, self._settings.value.load_last_model)
        field.edited.connect(self._on_edited)
        self._show_folders()

    def _add_chat(self) -> None:
        self._section(self.tr("Chat"))
        info = info_of(AppSettings, "system_prompt")
        self._prompt = QPlainTextEdit(self._settings.value.system_prompt)
        self._prompt.setTabChangesFocus(True)
        self._prompt.setFixedHeight(96)
        self._prompt.textChanged.connect(self._prompt_timer.start)
        self._add(Row(words(info.title), words(info.help), self._prompt, wide=True))
        field = self._add_field(AppSettings, "mark_drafted", self._settings.value.mark_drafted)
        field.edited.connect(self._on_edited)

    def _add_run(self) -> None:
        self._section(self.tr("How models run"))
        config = self._settings.engine_config()
        for name in RUN:
            field = self._add_field(EngineConfig, name, getattr(config, name))
            field.edited.connect(self._on_run_edited)
        note = self.tr("These hold from the next time that a model is loaded.")
        self._column.addWidget(label(note, "small", wrap=True))

    def _add_disk(self) -> None:
        self._section(self.tr("Conversations on disk"))
        config = disk_cache_config(self._settings.value)
        self._disk_folder = QLineEdit()
        self._disk_folder.setReadOnly(True)
        info = info_of(DiskCacheConfig, "disk_cache_dir")
        self._disk_folder.setAccessibleName(words(info.title))
        change = button(self.tr("Change…"), self._change_disk_folder, icon="folder")
        line = _line(self._disk_folder, change)
        self._add(Row(words(info.title), words(info.help), line, wide=True))
        for name in DISK:
            field = self._add_field(DiskCacheConfig, name, getattr(config, name))
            field.edited.connect(self._on_disk_edited)
        note = self.tr("They are kept while that is switched on in the Server page.")
        self._column.addWidget(label(note, "small", wrap=True))
        self._show_disk()

    def _add_files(self) -> None:
        self._section(self.tr("Files and help"))
        for title, path in (
            (self.tr("Chats and models"), paths.data_dir()),
            (self.tr("Settings file"), paths.settings_file()),
            (self.tr("Logs"), paths.log_dir()),
            (self.tr("Cache"), paths.cache_dir()),
        ):
            opener = IconButton("folder", self.tr("Open the folder of: {what}").format(what=title))
            opener.setProperty("path", str(path))
            opener.clicked.connect(self._open_folder)
            self._add(Row(title, str(path), opener))
        export = button(self.tr("Export all chats…"), self._export, icon="download")
        text = self.tr("One ZIP file: Markdown to read and JSON with every version of a message.")
        self._add(Row(self.tr("A copy of your chats"), text, export))
        copy = button(self.tr("Copy diagnostics"), self._copy, icon="copy")
        text = self.tr("Versions, settings and the end of the log; no text of your chats.")
        self._add(Row(self.tr("For a bug report"), text, copy))

    # Showing

    @Slot()
    def _show_values(self) -> None:
        value = self._settings.value
        for name in (*LOOK, "load_last_model", "mark_drafted"):
            self._fields[name].set_value(getattr(value, name))
        if not self._prompt_timer.isActive() and self._prompt.toPlainText() != value.system_prompt:
            self._prompt.setPlainText(value.system_prompt)
            self._prompt_timer.stop()
        self._show_folders()
        self._show_disk()

    def _show_disk(self) -> None:
        config = disk_cache_config(self._settings.value)
        self._disk_folder.setText(config.disk_cache_dir or str(paths.conversations_dir()))
        for name in DISK:
            self._fields[name].set_value(getattr(config, name))

    def _show_folders(self) -> None:
        value = self._settings.value
        self._folder.setText(str(paths.models_dir(value.models_dir)))
        if value.extra_model_dirs == self._shown_others:
            return
        self._shown_others = list(value.extra_model_dirs)
        while (item := self._others.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for folder in value.extra_model_dirs:
            text = label(folder, "muted")
            remove = IconButton(
                "close",
                self.tr("Stop looking in {folder}").format(folder=folder),
                size="controlCompact",
            )
            remove.setProperty("path", folder)
            remove.clicked.connect(self._remove_folder)
            self._others.addWidget(_line(text, remove))
        add = button(self.tr("Add a folder…"), self._add_folder, icon="plus")
        self._others.addWidget(_line(add, None))
        tab_through(self._others_place, self._others_place)

    # Doing

    @Slot(str, object)
    def _on_edited(self, name: str, value: Any) -> None:
        self._settings.update(**{name: value})

    @Slot(str, object)
    def _on_run_edited(self, name: str, value: Any) -> None:
        try:
            config = dataclasses.replace(self._settings.engine_config(), **{name: value})
            self._settings.keep_engine_config(config)
        except EngineError as error:
            self.services.toast(told(str(error)))

    @Slot(str, object)
    def _on_disk_edited(self, name: str, value: Any) -> None:
        config = dataclasses.replace(disk_cache_config(self._settings.value), **{name: value})
        self._settings.update(cache=changed_settings(config))

    def _change_disk_folder(self) -> None:
        title = words(info_of(DiskCacheConfig, "disk_cache_dir").title)
        if chosen := choose_folder(self, title, Path(self._disk_folder.text())):
            self._on_disk_edited("disk_cache_dir", str(chosen))

    @Slot()
    def _save_prompt(self) -> None:
        self._prompt_timer.stop()
        self._settings.update(system_prompt=self._prompt.toPlainText())

    def _change_folder(self) -> None:
        now = paths.models_dir(self._settings.value.models_dir)
        title = words(info_of(AppSettings, "models_dir").title)
        if chosen := choose_folder(self, title, now):
            self.use_models_folder(chosen)

    def use_models_folder(self, folder: Path) -> None:
        """Take another models folder unless it cannot be written; the former one is still looked in."""
        why = why_not_writable(folder)
        self._refused.setVisible(why is not None)
        if why is not None:
            text = self.tr(
                "{folder} cannot be used: {why}. Nothing was changed. Choose a folder that you may write to."
            )
            self._refused.set_text(text.format(folder=folder, why=why))
            return
        value = self._settings.value
        former = paths.models_dir(value.models_dir)
        others = [d for d in value.extra_model_dirs if Path(d) != folder]
        if former.is_dir() and former != folder:
            others.append(str(former))
        self._settings.update(models_dir=str(folder), extra_model_dirs=others)

    def _add_folder(self) -> None:
        chosen = choose_folder(self, self.tr("Add a folder"))
        value = self._settings.value
        if chosen is not None and str(chosen) not in value.extra_model_dirs:
            self._settings.update(extra_model_dirs=[*value.extra_model_dirs, str(chosen)])

    @Slot()
    def _remove_folder(self) -> None:
        gone = self.sender().property("path")
        kept = [d for d in self._settings.value.extra_model_dirs if d != gone]
        self._settings.update(extra_model_dirs=kept)

    @Slot()
    def _open_folder(self) -> None:
        path = Path(self.sender().property("path"))
        folder = path if path.is_dir() or not path.suffix else path.parent
        if not folder.exists() or not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self.services.toast(lambda: self.tr("{folder} cannot be shown.").format(folder=folder))

    def _export(self) -> None:
        from app.chat.exporter import export_all
        from app.chat.session import ChatSession

        export_all(self, self.services, ChatSession.of(self.services))

    def _copy(self) -> None:
        value = dataclasses.asdict(self._settings.value) | {"system_prompt": "(left out)"}
        controller = self.services.controller
        text = (
            f"Settings: {value}\nRun: {self._settings.engine_config()}\nState: {controller.state}"
        )
        text += f"\nModel: {controller.model}\nMetrics: {controller.metrics}"
        QGuiApplication.clipboard().setText(diagnostics(text))
        self.services.toast(
            lambda: self.tr("Copied. The log itself is {file}").format(file=log_file())
        )

    def _reset(self) -> None:
        before, run = self._settings.value, self._settings.engine_config()
        fresh = dataclasses.asdict(AppSettings())
        for name in KEPT_AT_RESET:
            del fresh[name]
        self._settings.update(**fresh)
        self._show_run(EngineConfig())

        def undo() -> None:
            self._settings.update(**dataclasses.asdict(before))
            self._show_run(run)

        self.services.toast_undo(lambda: self.tr("All settings are as at the first start."), undo)

    def _show_run(self, config: EngineConfig) -> None:
        self._settings.keep_engine_config(config)
        for name in RUN:
            if name in self._fields:
                self._fields[name].set_value(getattr(config, name))


def _line(first: QWidget, second: QWidget | None) -> QWidget:
    made = QWidget()
    row = QHBoxLayout(made)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(theme().space(2))
    row.addWidget(first, 0 if second is None else 1)
    if second is None:
        row.addStretch(1)
    else:
        row.addWidget(second)
    return made
