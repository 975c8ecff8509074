"""Make a draft: choose what to convert and for which model, write it with fewer bits, examine and use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from app.choose import choose_file, choose_folder
from app.forms import Choice
from app.i18n import told
from app.models.drafter import Offer
from app.models.library import Library
from app.models.loading import LoadPanel
from app.models.maker import SCHEMES, Maker
from app.models.opener import opener_of
from app.page import Page, Services
from app.theme import restyle, theme
from app.tune.doctor import Doctor
from app.widgets import (
    IconButton,
    Note,
    ProgressLine,
    ScrollBody,
    button,
    done_of,
    gigabytes,
    label,
)


class MakeDraftPage(Page):
    """Shows the one `Maker`; leaving the page stops nothing."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title = self.tr("Make a draft")
        self._library: Library = services.library
        self.maker = Maker.of(services)
        self._ticks: dict[str, QCheckBox] = {}
        self._sizes: dict[str, QLabel] = {}
        self._states: dict[str, QLabel] = {}
        header, row = self._make_header()
        row.setContentsMargins(16, 0, 16, 0)
        self._back = IconButton("chevron-left", self.tr("Back to the models"))
        self._back.clicked.connect(self._on_back)
        row.insertWidget(0, self._back)
        row.addStretch(1)
        body = ScrollBody()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(24, 16, 24, 24)
        self._column.setSpacing(theme().space(3))
        scroll = self._scroll_below(header, body)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def build(self) -> Iterator[None]:
        self._column.addWidget(LoadPanel(self.services, opener_of(self.services), inset=0))
        yield
        self._column.addWidget(self._make_source())
        yield
        self._column.addWidget(label(self.tr("Convert and quantise"), "section"))
        self._column.addWidget(self._make_schemes())
        yield
        self._column.addLayout(self._make_buttons())
        yield
        self.doctor = Doctor(self._library.jobs)
        self.doctor.hide()
        self._column.addWidget(self.doctor)
        self._column.addStretch(1)
        yield
        self.maker.changed.connect(self._show)
        self._library.changed.connect(self._show_targets)
        self._library.removed.connect(self._show_targets)
        self.services.controller.model_changed.connect(self._show_targets)
        self._show_targets()
        self._show()

    def focus_first(self) -> None:
        first = self._start if self._start.isEnabled() else self._folder
        first.setFocus(Qt.FocusReason.OtherFocusReason)

    def open(self, **kw: Any) -> None:
        """`source=`: what to convert; `target=`: the model that it is for."""
        if "target" in kw:
            self.maker.choose_target(kw["target"])
            self._show_targets()
        if "source" in kw:
            self.maker.choose_source(kw["source"])

    # Building

    def _make_source(self) -> QFrame:
        card = QFrame()
        card.setProperty("kind", "card")
        grid = QGridLayout(card)
        grid.setContentsMargins(16, 12, 16, 12)
        grid.setHorizontalSpacing(theme().space(3))
        grid.setVerticalSpacing(theme().space(2))
        grid.setColumnStretch(0, 1)
        self._name = label("", "section", wrap=True)
        self._note = label("", "small", wrap=True)
        self._folder = button(self.tr("Choose a folder…"), self._on_folder, icon="folder")
        self._file = button(self.tr("Choose a file…"), self._on_file, icon="file")
        pick = QHBoxLayout()
        pick.setSpacing(theme().space(2))
        pick.addWidget(self._folder)
        pick.addWidget(self._file)
        names = QVBoxLayout()
        names.setSpacing(2)
        names.addWidget(self._name)
        names.addWidget(self._note)
        grid.addLayout(names, 0, 0)
        grid.addLayout(pick, 0, 1)
        self._target = Choice()
        self._target.setAccessibleName(self.tr("Draft for"))
        self._target.setSizeAdjustPolicy(
            Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._target.currentIndexChanged.connect(self._on_target)
        self._fits = label("", "small", wrap=True)
        whom = QVBoxLayout()
        whom.setSpacing(2)
        whom.addWidget(label(self.tr("Draft for"), "section"))
        whom.addWidget(self._fits)
        grid.addLayout(whom, 1, 0)
        grid.addWidget(self._target, 1, 1)
        self._problem = Note("bad", "")
        self._warning = Note("warn", "")
        grid.addWidget(self._problem, 2, 0, 1, 2)
        grid.addWidget(self._warning, 3, 0, 1, 2)
        return card

    def _make_schemes(self) -> QWidget:
        part = QWidget()
        grid = QGridLayout(part)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme().space(4))
        grid.setVerticalSpacing(theme().space(2))
        grid.setColumnStretch(2, 1)
        heads = (self.tr("Keep"), self.tr("Size"), self.tr("Progress"))
        for column, head in enumerate(heads):
            grid.addWidget(label(head, "small"), 0, column)
        for row, scheme in enumerate(SCHEMES, 1):
            tick = QCheckBox(scheme.upper())
            tick.setAccessibleName(
                self.tr("Write a file in {scheme}").format(scheme=scheme.upper())
            )
            tick.toggled.connect(lambda on, name=scheme: self.maker.want(name, on))
            size, state = label("", "small"), label("", "small", wrap=True)
            for column, widget in enumerate((tick, size, state)):
                grid.addWidget(widget, row, column)
            self._ticks[scheme], self._sizes[scheme], self._states[scheme] = tick, size, state
        return part

    def _make_buttons(self) -> QVBoxLayout:
        self._line = ProgressLine(self.tr("Converting"))
        self._start = button(self.tr("Make the draft"), self._on_start, "main", "draft")
        self._stop = button(self.tr("Cancel"), self._on_stop, icon="stop")
        self._use = button("", self._on_use, "main", "check")
        self._examine = button(self.tr("Draft doctor"), self._on_doctor, icon="measure")
        row = QHBoxLayout()
        row.setSpacing(theme().space(2))
        for widget in (self._start, self._stop, self._use, self._examine):
            row.addWidget(widget)
        row.addStretch(1)
        note = self.tr(
            "A file is moved to its name only after it was read back. You can leave this page; the"
            " source stays as it is."
        )
        column = QVBoxLayout()
        column.setSpacing(theme().space(2))
        column.addWidget(self._line)
        column.addLayout(row)
        column.addWidget(label(note, "small", wrap=True))
        return column

    # Showing

    @Slot()
    def _show(self) -> None:
        maker, source = self.maker, self.maker.source
        self._name.setText(source.path.name if source else self.tr("Nothing is chosen yet"))
        self._note.setText(
            gigabytes(source.size)
            if source
            else self.tr(
                "A folder of safetensors with its config.json, or a draft's GGUF. Drop it anywhere on"
                " this window, or choose it."
            )
        )
        self._problem.set_text(maker.problem)
        self._problem.setVisible(bool(maker.problem))
        guessed = " ".join(told(w) for w in source.warnings) if source else ""
        self._warning.set_text(guessed)
        self._warning.setVisible(bool(guessed))
        self._show_fit()
        for widget in (self._folder, self._file, self._target, *self._ticks.values()):
            widget.setEnabled(not maker.running)
        for scheme in SCHEMES:
            self._show_scheme(scheme)
        if maker.at is not None:
            self._show_progress(*maker.at)
        self._line.setVisible(maker.running)
        best = self._best()
        self._start.setVisible(not maker.running and (best is None or bool(maker.todo)))
        kind = "main" if best is None else "plain"
        if self._start.property("kind") != kind:
            self._start.setProperty("kind", kind)
            theme().tint(
                self._start,
                "draft",
                "accent.on" if best is None else "text.primary",
                theme().size("iconSmall"),
            )
            restyle(self._start)
        self._start.setEnabled(maker.ready)
        self._stop.setVisible(maker.running)
        for widget in (self._use, self._examine):
            widget.setVisible(best is not None and not maker.running)
            widget.setEnabled(maker.target is not None)
        if best is not None:
            target = self._target.currentText()
            words = self.tr("Use {scheme} with {model}")
            self._use.setText(words.format(scheme=best.upper(), model=target))

    def _show_fit(self) -> None:
        misfit = self.maker.misfit
        kind, text = "small", self.tr("The model whose text it guesses.")
        if misfit == "":
            kind, text = "good", self.tr("They fit together.")
        elif misfit:
            kind, text = "bad", told(misfit)
        if self._fits.property("kind") != kind:
            self._fits.setProperty("kind", kind)
            restyle(self._fits)
        self._fits.setText(text)

    def _show_scheme(self, scheme: str) -> None:
        maker, tick = self.maker, self._ticks[scheme]
        with QSignalBlocker(tick):
            tick.setChecked(scheme in maker.wanted)
        size = maker.source.sizes[scheme] if maker.source else 0
        self._sizes[scheme].setText(gigabytes(size) if size else "")
        state, kind = "", "small"
        if scheme in maker.made:
            state, kind = self.tr("Written, read back, checked"), "good"
        elif maker.at is not None and maker.at[0] == scheme:
            state = self.tr("being written")
        elif maker.running and scheme in maker.wanted:
            state = self.tr("waits")
        shown = self._states[scheme]
        shown.setText(state)
        if shown.property("kind") != kind:
            shown.setProperty("kind", kind)
            restyle(shown)

    def _show_progress(self, scheme: str, done: int, total: int) -> None:
        words = self.tr("Converting")
        if scheme:
            words = self.tr("Quantising to {scheme}").format(scheme=scheme.upper())
        numbers = "{} / {}".format(*done_of(done, total)) if total > 1 else ""
        self._line.set_progress(done, total, words, numbers)

    @Slot()
    def _show_targets(self) -> None:
        items = self._library.chat_models()
        loaded = self.services.controller.model
        wanted = self.maker.target or (loaded.path if loaded else None)
        with QSignalBlocker(self._target):
            self._target.clear()
            for item in items:
                self._target.addItem(item.title, item.entry.path)
            places = [n for n, item in enumerate(items) if item.entry.path == wanted]
            self._target.setCurrentIndex(places[0] if places else 0 if items else -1)
        self._on_target()

    def _best(self) -> str | None:
        """Of what was made the file to use: Q8_0 guesses as well as more bits do, else the largest."""
        made = self.maker.made
        return "q8_0" if "q8_0" in made else next((s for s in SCHEMES if s in made), None)

    # Doing

    @Slot()
    def _on_target(self) -> None:
        path = self._target.currentData()
        self.maker.choose_target(path if isinstance(path, Path) else None)

    def _on_folder(self) -> None:
        if chosen := choose_folder(self, self.tr("Choose a folder")):
            self.maker.choose_source(chosen)

    def _on_file(self) -> None:
        names = self.tr("Drafts") + " (*.safetensors *.gguf)"
        if chosen := choose_file(self, self.tr("Choose a file"), names):
            self.maker.choose_source(chosen)

    def _on_start(self) -> None:
        self.doctor.hide()
        self.maker.start()
        self._stop.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_stop(self) -> None:
        self.maker.stop()
        self.focus_first()

    def _on_doctor(self) -> None:
        best, target = self._best(), self.maker.target
        if best is not None and target is not None:
            self.doctor.show()
            self.doctor.begin(target, self.maker.made[best])

    def _on_use(self) -> None:
        best, target = self._best(), self.maker.target
        if best is None or target is None:
            return
        draft, loaded = self.maker.made[best], self.services.controller.model
        if loaded is not None and loaded.path == target:
            Offer(self.services, draft, self)
        else:
            self.services.settings.choose_draft(target, str(draft))
            opener_of(self.services).open(target)

    @Slot()
    def _on_back(self) -> None:
        self.services.navigate("models")
