"""The head of the chat page: which model answers, and giving its memory back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.forms import words
from app.models.opener import opener_of
from app.page import Services
from app.theme import theme
from app.widgets import ElidedLabel, IconButton, Switch, gigabytes, label
from engine.config import AppSettings, info_of
from engine.types import ModelInfo

if TYPE_CHECKING:
    from app.chat.view import MessageView


class ModelButton(QPushButton):
    """Shows a model's name and quantisation; opens the list of models."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = ElidedLabel("", "section")
        self._quant = label("", "muted")
        self._arrow = QLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 8, 0)
        row.setSpacing(theme().space(2))
        for part in (self._name, self._quant, self._arrow):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            row.addWidget(part)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self._paint_arrow)
        self._paint_arrow()

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        return QSize(layout.sizeHint().width(), theme().size("control"))

    def minimumSizeHint(self) -> QSize:
        """A name that has no room ends in an ellipsis."""
        layout = self.layout()
        assert layout is not None
        return QSize(layout.minimumSize().width(), theme().size("control"))

    def show_model(self, name: str, quant: str) -> None:
        """Show a model, or with no `quant` a request to choose one."""
        self._name.setText(name)
        self._quant.setText(quant)
        self._quant.setVisible(bool(quant))
        self.setAccessibleName(self.tr("Model: {name}").format(name=f"{name} {quant}".strip()))
        self.setToolTip(self.tr("{name}. Choose another model (Ctrl+L)").format(name=name))
        self.updateGeometry()

    @Slot()
    def _paint_arrow(self) -> None:
        ratio = self.devicePixelRatioF()
        self._arrow.setPixmap(theme().pixmap("chevron-down", "text.muted", 16, ratio))


class ChatHeader(QFrame):
    """The page's header row; `tools` is where the page puts more buttons."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self.setProperty("kind", "header")
        self.chats = IconButton("chat", self.tr("Show or hide the list of chats"))
        self.chats.hide()
        self.picker = ModelButton()
        self.eject = IconButton("eject", self.tr("Eject: give the model's memory back"))
        info = info_of(AppSettings, "mark_drafted")
        self.marks = Switch(words(info.title))
        self.marks.setToolTip(words(info.help))
        self.marks.setAccessibleDescription(words(info.help))
        self._marked: MessageView | None = None
        self.marks_word = label(words(info.title), "muted")
        self.tools = QHBoxLayout()
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 0, 16, 0)
        row.setSpacing(theme().space(2))
        row.addWidget(self.chats)
        row.addWidget(self.picker)
        row.addStretch(1)
        row.addLayout(self.tools)
        row.addWidget(self.marks_word)
        row.addWidget(self.marks)
        row.addSpacing(theme().space(2))
        row.addWidget(self.eject)
        self.picker.clicked.connect(self.pick)
        self.eject.clicked.connect(services.controller.unload)
        self.marks.setChecked(services.settings.value.mark_drafted)
        self.marks.toggled.connect(self._on_marks)
        services.settings.changed.connect(self._on_settings)
        services.controller.model_changed.connect(self._on_model)
        services.controller.state_changed.connect(self._on_state)
        self._on_model(services.controller.model)

    @Slot(object)
    def _on_model(self, model: ModelInfo | None) -> None:
        if model is None:
            self.picker.show_model(self.tr("Choose a model"), "")
        else:
            self.picker.show_model(model.name, model.quant)
        self.eject.setVisible(model is not None)

    def mark_in(self, view: MessageView) -> None:
        """Mark drafted text in a view while that is wanted."""
        self._marked = view
        self._on_settings()

    @Slot(bool)
    def _on_marks(self, on: bool) -> None:
        self._services.settings.update(mark_drafted=on)

    @Slot()
    def _on_settings(self) -> None:
        on = self._services.settings.value.mark_drafted
        if self.marks.isChecked() != on:
            self.marks.setChecked(on)
            self.marks.update()
        if self._marked is not None and self._marked.marks.on != on:
            self._marked.marks.on = on
            for _, row in self._marked.rows():
                row.arrange()
                row.update()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        loading = self._services.controller.loading
        if loading is not None:
            self.picker.show_model(self.tr("Loading {name}").format(name=loading.stem), "")
        else:
            self._on_model(self._services.controller.model)

    @Slot()
    def pick(self) -> None:
        """Open the list of models under the button; models are looked for if they never were."""
        library = self._services.library
        if library is not None and not library.scanned and not library.scanning:
            library.refresh()
        menu = self.menu()
        menu.popup(self.picker.mapToGlobal(QPoint(0, self.picker.height() + 4)))
        if library is not None and library.scanning:
            # The menu keeps what is connected to it only as long as it lives.
            library.scan_finished.connect(menu.refill)

    def menu(self) -> ModelMenu:
        """The models on this PC, then other ways to one."""
        return ModelMenu(self)

    def fill(self, menu: QMenu) -> None:
        """Put the models that are known now into a menu."""
        loaded = self._services.controller.model
        library = self._services.library
        for item in library.chat_models() if library is not None else []:
            text = f"{item.title}  {item.entry.quant or ''}\t{gigabytes(item.entry.size)}"
            action = menu.addAction(text)
            action.setData(item.entry.path)
            action.setCheckable(True)
            action.setChecked(loaded is not None and loaded.path == item.entry.path)
            action.triggered.connect(self._on_chosen)
        if library is not None and library.scanning:
            menu.addAction(self.tr("Looking for models…")).setEnabled(False)
        menu.addSeparator()
        menu.addAction(self.tr("All models"), self._show_models)

    @Slot()
    def _on_chosen(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self.load(Path(action.data()))

    def load(self, path: Path) -> None:
        """Load a model the way that every page does."""
        if self._services.library is not None:
            opener_of(self._services).open(path)
        else:
            self._services.controller.load(path)

    def _show_models(self) -> None:
        self._services.navigate("models")


class ModelMenu(QMenu):
    """The list of models under the header's button."""

    def __init__(self, header: ChatHeader) -> None:
        super().__init__(header)
        self._header = header
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        header.fill(self)

    @Slot()
    def refill(self) -> None:
        """List the models anew."""
        self.clear()
        self._header.fill(self)
