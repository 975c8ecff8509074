"""What may guess for the loaded model: where each is from, whether it fits, and what it brought."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QGridLayout, QLabel, QRadioButton, QWidget

from app.focus import tab_through
from app.i18n import told
from app.models.records import Drafted
from app.page import Services
from app.theme import theme
from app.tune.staging import OFF, Staging, drafter_title
from app.widgets import gigabytes, label

if TYPE_CHECKING:
    from engine.draft.candidates import Candidate

_NAME, _FITS, _ACCEPTED, _SPEEDUP = range(4)
_INDICATOR = 28  # px of a radio button before its text


class Drafters(QWidget):
    """Radio buttons in rows; one that does not fit stays listed with the reason.

    Signals:
        listed: other drafters are in the list.
    """

    listed = Signal()

    def __init__(self, services: Services, staging: Staging) -> None:
        super().__init__()
        self._services, self._staging = services, staging
        self._group = QButtonGroup(self)
        self._group.idClicked.connect(self._on_clicked)
        self._values: list[str] = []
        self._found: tuple[Candidate, ...] = ()
        self._asked = 0
        self._figures: dict[str, tuple[QLabel, QLabel]] = {}
        self._waiting: deque[tuple[str, str, str, str]] = deque()
        self._rows = QTimer(self, interval=0)
        self._rows.timeout.connect(self._add_row)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme().space(4))
        self._grid.setVerticalSpacing(theme().space(2))
        self._grid.setColumnStretch(_NAME, 3)
        self._grid.setColumnStretch(_FITS, 2)
        self._heads = (
            label(self.tr("Drafter"), "small"),
            label(self.tr("Fits this model"), "small"),
            label(self.tr("Accepted per step"), "small"),
            label(self.tr("Speed-up"), "small"),
        )
        for column, head in enumerate(self._heads):
            self._grid.addWidget(head, 0, column, _side(column))
        staging.changed.connect(self.show_choice)
        services.library.changed.connect(self._on_item)
        services.library.removed.connect(self.look)
        services.controller.model_changed.connect(self.look)

    @property
    def values(self) -> list[str]:
        """The drafters in the list, as `Staging.drafter` names them."""
        return list(self._values)

    def focus_first(self) -> None:
        """The chosen drafter."""
        if (chosen := self._group.checkedButton()) is not None:
            chosen.setFocus(Qt.FocusReason.OtherFocusReason)

    def file_of(self, value: str) -> Path | None:
        """The file that guesses where `value` is chosen; None where there is no file."""
        if value:
            return Path(value) if Path(value).is_absolute() else None
        usual = _usual(self._found)
        return usual.path if usual is not None else None

    @Slot()
    def look(self) -> None:
        """Find what may guess for the loaded model, beside this thread."""
        path = self._staging.path
        if path is None:
            return
        self._asked += 1
        asked = self._asked
        files = [i.entry.path for i in self._services.library.items if i.entry.kind == "draft"]
        kept = self._staging.drafter
        if Path(kept).is_absolute() and Path(kept) not in files:
            files.append(Path(kept))

        def work(cancel: object) -> tuple[Candidate, ...]:
            from engine.draft.candidates import candidates

            return candidates(path, files)

        def show(found: tuple[Candidate, ...]) -> None:
            if asked == self._asked:
                self._show(found)

        self._services.library.jobs.run(self, work, show, lambda error: show(()))

    @Slot(object)
    def _on_item(self, item: Any) -> None:
        if item.entry.kind == "draft":
            self.look()

    def _show(self, found: tuple[Candidate, ...]) -> None:
        if found == self._found and (self._values or self._waiting):
            return
        self._found = found
        for button in self._group.buttons():
            self._group.removeButton(button)
        for row in range(1, self._grid.rowCount()):
            for column in range(4):
                item = self._grid.itemAtPosition(row, column)
                if item is not None and (widget := item.widget()) is not None:
                    self._grid.removeWidget(widget)
                    widget.hide()
                    widget.deleteLater()
        self._values, self._figures = [], {}
        rows = [("", self._automatic(found), "", "")]
        for one in found:
            note = gigabytes(one.size) if one.size else self.tr("no file")
            if one.shipped:
                note = self.tr("comes with Lucebox, {size}").format(size=note)
            rows.append((one.value, drafter_title(one.value), note, told(one.problem)))
        self._waiting = deque([*rows, (OFF, drafter_title(OFF), "", "")])
        self._rows.start()

    @Slot()
    def _add_row(self) -> None:
        """One row in each turn of the event loop: all at once would hold up a frame."""
        self._row(*self._waiting.popleft())
        if self._waiting:
            return
        self._rows.stop()
        self.show_choice()
        self.show_figures(self._measured())
        self._grid.activate()
        self._fit_names()
        tab_through(self, self)
        self.listed.emit()

    def _automatic(self, found: Sequence[Candidate]) -> str:
        if (usual := _usual(found)) is None:
            return drafter_title("")
        return self.tr("Automatic, now: {name}").format(name=drafter_title(usual.value))

    def _row(self, value: str, title: str, note: str, problem: str) -> None:
        row = self._grid.rowCount()
        chosen = QRadioButton(title)
        chosen.setMinimumWidth(1)
        chosen.setAccessibleName(title)
        chosen.setEnabled(not problem)
        chosen.setToolTip(problem or (value if Path(value).is_absolute() else ""))
        chosen.setAccessibleDescription(". ".join(x for x in (note, problem) if x))
        self._group.addButton(chosen, len(self._values))
        self._values.append(value)
        self._grid.addWidget(chosen, row, _NAME)
        if problem:
            self._grid.addWidget(label(problem, "bad", wrap=True), row, _FITS, 1, 3)
            return
        fits = self.tr("fits") if value not in ("", OFF) else ""
        text = " · ".join(x for x in (fits, note) if x)
        self._grid.addWidget(label(text, "small", wrap=True), row, _FITS)
        figures = label("", "small"), label("", "strong")
        for column, shown in zip((_ACCEPTED, _SPEEDUP), figures, strict=True):
            self._grid.addWidget(shown, row, column, _side(column))
        self._figures[value] = figures

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_names()

    def _fit_names(self) -> None:
        """Cut long names in the middle: how a draft is stored stands at the end of its name."""
        for chosen in self._group.buttons():
            room = self._grid.cellRect(1, _NAME).width() - _INDICATOR
            name = chosen.accessibleName()
            cut = chosen.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, max(room, 60))
            chosen.setText(cut)

    def _measured(self) -> Mapping[str, Drafted]:
        model = self._services.controller.model
        if model is None:
            return {}
        record = self._services.library.records.get(model.path, model.file_bytes)
        found: Mapping[str, Drafted] = record.drafters
        return found

    @Slot()
    def show_figures(self, measured: Mapping[str, Drafted] | None = None) -> None:
        """Show what each drafter brought when it was measured."""
        measured = self._measured() if measured is None else measured
        for value, (accepted, speedup) in self._figures.items():
            found = measured.get(value)
            accepted.setText(f"{found.accepted:.2f}" if found and found.accepted else "")
            speedup.setText(f"{found.speedup:.2f}×" if found else "1.00×" if value == OFF else "")
            day = found.day if found else ""
            accepted.setToolTip(day)
            speedup.setToolTip(day)

    @Slot()
    def show_choice(self) -> None:
        """Mark the drafter that is wished for."""
        wished = self._staging.drafter
        if wished in self._values:
            self._group.button(self._values.index(wished)).setChecked(True)

    @Slot(int)
    def _on_clicked(self, number: int) -> None:
        self._staging.set_drafter(self._values[number])


def _usual(found: Sequence[Candidate]) -> Candidate | None:
    """What the engine takes where nobody chose: the first that fits."""
    return next((one for one in found if not one.problem), None)


def _side(column: int) -> Qt.AlignmentFlag:
    right = column in (_ACCEPTED, _SPEEDUP)
    return (Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft) | (
        Qt.AlignmentFlag.AlignVCenter
    )
