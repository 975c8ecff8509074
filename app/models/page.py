"""The page of the models on this PC."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPoint, Qt, QTimer, Slot
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.choose import choose_files, choose_folder
from app.i18n import told
from app.models.bin import BinButton
from app.models.chips import Chips
from app.models.details import Details
from app.models.library import Group, Item, Library
from app.models.loading import LoadPanel
from app.models.opener import opener_of
from app.models.view import ModelsView
from app.models.words import source_text
from app.page import Page, Services
from app.theme import theme
from app.widgets import EmptyState, SearchField, button, gigabytes, label

if TYPE_CHECKING:
    from engine.copies import Binned

_SOURCES = ("Lucebox", "LM Studio", "Hugging Face", "Ollama", "Elsewhere")
_ALWAYS = _SOURCES[:-1]
# px at the usual text size.
_LEAST_FILTER, _ROOM_FOR_TOTAL, _ROOM_FOR_CHIPS = 128, 800, 640


class ModelsPage(Page):
    """Finds, shows, opens, renames and removes the models on this PC."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title = self.tr("Models")
        library: Library = services.library
        self._library = library
        self._count = label("", "tag")
        self._filter = SearchField(self.tr("Filter by name"), self.tr("Clear the filter"))
        self._chips = Chips(
            [("", self.tr("All")), *[(source, source_text(source)) for source in _SOURCES]]
        )
        self._total = label("", "small")
        self.panel = LoadPanel(services, opener_of(services))
        self.panel.closed.connect(self.focus_first)
        self.view = ModelsView(library)
        self.details = Details(services)
        self._bin = BinButton(services)
        self._middle = QStackedWidget()
        self._nothing = label("", "muted")
        self._build()
        self._connect()
        self._update_counts()

    def focus_first(self) -> None:
        """The table, or the one action where there is no model."""
        if self._middle.currentWidget() is self.view:
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
            self.view.select_first()
        else:
            self._use_file.setFocus(Qt.FocusReason.OtherFocusReason)

    def inspector(self) -> QWidget:
        """The chosen file in full."""
        return self.details

    def open(self, **kw: Any) -> None:
        """`path=`: choose that file, whatever the filter was."""
        path = kw.get("path")
        if isinstance(path, Path):
            self._filter.clear()
            self._chips.choose("")
            self.view.select(path)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._bin.look()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_tools()

    def memory(self) -> dict[str, Any]:
        item = self.view.current_item()
        return {"path": item.entry.path} if item is not None else {}

    # Parts

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header())
        column.addWidget(self.panel)
        column.addLayout(self._tools())
        self._middle.addWidget(self.view)
        self._middle.addWidget(self._empty())
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._middle.addWidget(self._nothing)
        inset = QVBoxLayout()
        inset.setContentsMargins(12, 4, 12, 0)
        inset.addWidget(self._middle)
        column.addLayout(inset, 1)

    def _header(self) -> QFrame:
        header, row = self._make_header()
        row.setContentsMargins(24, 0, 24, 0)
        row.addWidget(self._count, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        row.addWidget(self._bin)
        row.addWidget(button(self.tr("Add folder…"), self._on_add_folder, icon="folder"))
        return header

    def _tools(self) -> QHBoxLayout:
        self._chips.setAccessibleName(self.tr("Folder of"))
        row = QHBoxLayout()
        row.setContentsMargins(24, 12, 24, 4)
        row.setSpacing(theme().space(3))
        row.addWidget(self._filter, 1)
        row.addWidget(self._chips)
        row.addStretch(1)
        row.addWidget(self._total)
        return row

    def _empty(self) -> QWidget:
        card = EmptyState(
            self.tr("No model on this PC yet"),
            self.tr(
                "The known folders of Lucebox, LM Studio, Hugging Face and Ollama hold none."
                " Drop a model file anywhere on this window, or open one."
            ),
            [(self.tr("Use a file…"), self._on_use_file, "file")],
        )
        self._use_file = card.findChildren(QPushButton)[0]
        return card.in_the_middle()

    def _connect(self) -> None:
        library = self._library
        # A scan brings many files at once: they are counted once for all.
        self._count_soon = QTimer(self, singleShot=True, interval=0)
        self._count_soon.timeout.connect(self._update_counts)
        for change in (library.changed, library.removed, library.scanning_changed):
            change.connect(self._on_change)
        self._filter.textChanged.connect(self.view.table.set_text)
        self._chips.chosen.connect(self.view.table.set_source)
        self._filter.textChanged.connect(self._update_middle)
        self._chips.chosen.connect(self._update_middle)
        self.view.chosen.connect(self.details.show_item)
        self.view.chat_wanted.connect(self._on_chat)
        self.view.bin_wanted.connect(self._on_bin)
        self.details.chat_wanted.connect(self._on_chat)
        self.details.bin_wanted.connect(self._on_bin)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._on_menu)
        theme().changed.connect(self._on_theme)
        find = QAction(self.tr("Filter the models"), self)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.triggered.connect(self._filter.setFocus)
        again = QAction(self.tr("Look for models again"), self)
        again.setShortcut(QKeySequence(Qt.Key.Key_F5))
        again.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        again.triggered.connect(library.refresh)
        for action in (find, again):
            self.addAction(action)
            self.services.actions.add(action)

    # Slots

    @Slot()
    def _on_change(self) -> None:
        self._count_soon.start()

    @Slot()
    def _update_counts(self) -> None:
        items = self._library.items
        self._count.setText(f"{len(items):,}")
        self._count.setAccessibleName(self.tr("%n file(s)", None, len(items)))
        self._show_chips()
        size = gigabytes(sum(item.entry.size for item in items))
        if self._library.scanning:
            found = self.tr("looking in known folders, %n found", None, len(items))
            self._total.setText(found)
            text = self.tr("Looking in known folders: %n model(s) found", None, len(items))
            self.services.status(text, "search")
        else:
            folders = len({item.entry.path.parent for item in items})
            where = self.tr("{size} in %n folder(s)", None, folders).format(size=size)
            self._total.setText(where if items else "")
            self.services.status("")
        self._update_middle()

    def _fit_tools(self) -> None:
        scale = theme().scale
        self._filter.setMinimumWidth(round(_LEAST_FILTER * scale))
        self._filter.setMaximumWidth(round(240 * scale))
        self._total.setVisible(self.width() >= _ROOM_FOR_TOTAL * scale)
        self._show_chips()

    def _show_chips(self) -> None:
        """The usual sources; where there is little room, only those that have something."""
        used = {item.entry.source for item in self._library.items}
        roomy = self.width() >= _ROOM_FOR_CHIPS * theme().scale
        for source in _SOURCES:
            self._chips.set_shown(source, source in used or (roomy and source in _ALWAYS))

    @Slot()
    def _update_middle(self) -> None:
        if not self._library.items and not self._library.scanning:
            self._middle.setCurrentIndex(1)
        elif self.view.table.rowCount() or not self._library.items:
            self._middle.setCurrentIndex(0)
        else:
            self._nothing.setText(self.tr("No model matches. Clear the filter to see all."))
            self._middle.setCurrentIndex(2)

    @Slot(object)
    def _on_chat(self, item: Item) -> None:
        if item.group is Group.CHAT or item.entry.problem:
            opener_of(self.services).open(item.entry.path)
        else:
            self.services.toast(
                lambda: self.tr("{name} is not a chat model.").format(name=item.title)
            )

    @Slot(object)
    def _on_bin(self, item: Item) -> None:
        library, services, name = self._library, self.services, item.title

        def failed(error: Exception) -> None:
            services.toast(told(str(error)))

        def done(binned: Binned) -> None:
            services.toast_undo(
                lambda: self.tr("{name} is in the bin").format(name=name),
                lambda: library.restore(binned, failed),
            )

        if library.forget(item):
            services.toast_undo(
                lambda: self.tr("{name} is off the list; the file stays where it is").format(
                    name=name
                ),
                lambda: library.add([item.entry], lambda: None),
            )
        else:
            library.bin(item, done, failed)

    @Slot(QPoint)
    def _on_menu(self, where: QPoint) -> None:
        item = self.view.table.item(self.view.indexAt(where))
        if item is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if item.group is Group.CHAT:
            menu.addAction(self.tr("Chat with it"), lambda: self._on_chat(item))
        menu.addAction(self.tr("Rename"), self.view.rename)
        menu.addAction(self.tr("Show file"), self.details.show_file)
        menu.addAction(self.tr("Move to the bin"), lambda: self._on_bin(item))
        menu.popup(self.view.viewport().mapToGlobal(where))

    @Slot()
    def _on_add_folder(self) -> None:
        folder = choose_folder(self, self.tr("Add a folder of models"))
        if folder is not None:
            known = self.services.settings.value.extra_model_dirs
            if str(folder) not in known:
                self.services.settings.update(extra_model_dirs=[*known, str(folder)])
            self._library.refresh()

    @Slot()
    def _on_use_file(self) -> None:
        names = self.tr("Models (*.gguf);;All files (*)")
        if files := choose_files(self, self.tr("Open a model file"), names):
            self.services.open_paths(files)

    @Slot()
    def _on_theme(self) -> None:
        self._fit_tools()
        self.details.show_item(self.view.current_item(), again=True)
