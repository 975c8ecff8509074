"""The sampling settings of the loaded model, made from their declarations."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from PySide6.QtCore import QLocale, Qt, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from app.chat.params import NAMES, changed, effective
from app.forms import words
from app.page import Services
from app.theme import theme
from app.widgets import ScrollBody, Shrinkable, button, label
from engine.config import Info, SamplingParams, info_of
from engine.errors import BadRequest

FINE_STEPS = 1000
WIDTH = 420


class _Slider(QSlider):
    """The wheel scrolls the panel, never a value under the pointer."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class NumberField(QWidget):
    """A slider and a typed number that are one value; empty means automatic where that is allowed.

    Signals: `changed(value)` after the user changed it; None is automatic.
    """

    changed = Signal(object)

    def __init__(self, name: str, info: Info, default: Any, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._info = info
        self._whole = isinstance(default, int) or default is None
        self._optional = default is None
        self._low, self._high = info.low or 0.0, info.high or 0.0
        title = words(info.title)
        self.slider = _Slider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, self._positions())
        self.slider.setAccessibleName(title)
        self.edit = QLineEdit()
        self.edit.setAccessibleName(title)
        self.edit.setAccessibleDescription(words(info.help))
        self.edit.setFixedWidth(round(104 * theme().scale))
        self.edit.setAlignment(Qt.AlignmentFlag.AlignRight)
        if self._optional:
            self.edit.setPlaceholderText(self.text_of(None))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme().space(3))
        row.addWidget(self.slider, 1)
        row.addWidget(self.edit)
        self.slider.setVisible(name != "seed")
        if name == "seed":
            row.insertStretch(0, 1)
        self.value = default
        self.slider.valueChanged.connect(self._on_slider)
        self.edit.editingFinished.connect(self._on_edit)
        self.setFocusProxy(self.edit)

    @property
    def _log(self) -> bool:
        return self._whole and self._high - self._low > FINE_STEPS

    def _positions(self) -> int:
        if self._log:
            return 2 * math.ceil(math.log2(self._high + 1)) + (1 if self._low < 0 else 0)
        return round((self._high - self._low) / (self._info.step or 0.01))

    def set_value(self, value: Any) -> None:
        """Show a value without telling."""
        self.value = value
        self.slider.blockSignals(True)
        self.slider.setValue(self._position(value))
        self.slider.blockSignals(False)
        self.edit.setText("" if value is None else self.text_of(value))

    def text_of(self, value: Any) -> str:
        """A value in words or digits."""
        if value is None:
            return self.tr("automatic")
        if self._info.at_low and value == self._low:
            return words(self._info.at_low)
        if self._whole:
            return QLocale().toString(int(value)) if self._info.title != "Seed" else str(value)
        return f"{value:g}"

    def _position(self, value: Any) -> int:
        if value is None:
            return 0
        if not self._log:
            return round((value - self._low) / (self._info.step or 0.01))
        shift = 1 if self._low < 0 else 0
        return 0 if value < 0 else shift + (round(2 * math.log2(value)) + 1 if value > 0 else 0)

    def _value_at(self, position: int) -> Any:
        if not self._log:
            value = self._low + position * (self._info.step or 0.01)
            return round(value) if self._whole else round(value, 4)
        if self._low < 0:
            position -= 1
        if position < 0:
            return int(self._low)
        if position == 0:
            return None if self._optional else 0
        return min(round(2 ** ((position - 1) / 2)), int(self._high))

    @Slot(int)
    def _on_slider(self, position: int) -> None:
        self._take(self._value_at(position))

    @Slot()
    def _on_edit(self) -> None:
        text = self.edit.text().strip()
        if not text and self._optional:
            self._take(None)
            return
        number = self._parse(text)
        self._take(self.value if number is None else number)

    def _parse(self, text: str) -> Any:
        if self._info.at_low and text.casefold() == words(self._info.at_low).casefold():
            return int(self._low) if self._whole else self._low
        plain = text.replace(QLocale().groupSeparator(), "").replace(" ", "").replace(",", ".")
        try:
            value = float(plain)
            exact = int(plain) if self._whole and plain.lstrip("+-").isdigit() else value
        except ValueError:
            return None
        if not math.isfinite(value):
            return None
        if self._whole and exact != int(exact):
            return None
        return min(
            max(int(exact) if self._whole else value, type(exact)(self._low)),
            type(exact)(self._high),
        )

    def _take(self, value: Any) -> None:
        if value != self.value:
            self.set_value(value)
            self.changed.emit(value)
        else:
            self.set_value(value)


class SamplingPanel(QWidget):
    """All settings of one model; a change is kept at once, for this model."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self.fields: dict[str, NumberField] = {}
        self._titles: dict[str, Any] = {}
        self._model = label("", "small")
        self.reset = button(self.tr("Back to the model's own"), self._on_reset, kind="quiet")
        self._build()
        services.controller.model_changed.connect(self.refresh)
        services.settings.changed.connect(self.refresh)
        self.refresh()

    def _build(self) -> None:
        grid = QGridLayout()
        grid.setVerticalSpacing(theme().space(2))
        grid.setHorizontalSpacing(theme().space(3))
        defaults = SamplingParams()
        for i, name in enumerate(NAMES):
            info = info_of(SamplingParams, name)
            field = NumberField(name, info, getattr(defaults, name))
            field.changed.connect(lambda value, n=name: self._on_changed(n, value))
            title = label(words(info.title))
            title.setBuddy(field)
            title.setToolTip(words(info.help))
            field.setToolTip(words(info.help))
            grid.addWidget(title, i, 0)
            grid.addWidget(field, i, 1)
            self.fields[name], self._titles[name] = field, title
        grid.setColumnStretch(1, 1)
        inside = ScrollBody()
        inside.setLayout(grid)
        grid.setContentsMargins(16, 0, 16, 0)
        head = QVBoxLayout()
        head.setContentsMargins(16, 12, 16, 4)
        head.setSpacing(0)
        head.addWidget(label(self.tr("Sampling"), "section"))
        head.addWidget(self._model)
        foot = QHBoxLayout()
        foot.setContentsMargins(8, 0, 16, 8)
        foot.addWidget(self.reset)
        foot.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(head)
        column.addWidget(Shrinkable(inside), 1)
        column.addLayout(foot)
        self.setFixedWidth(round(WIDTH * theme().scale))
        self.setFocusProxy(self.fields[NAMES[0]])

    @Slot()
    def refresh(self) -> None:
        """Show what holds for the model that is loaded now."""
        model = self._services.controller.model
        own = model.sampling if model is not None else SamplingParams()
        now = effective(self._services.settings.value, model) if model is not None else own
        for name, field in self.fields.items():
            value, default = getattr(now, name), getattr(own, name)
            field.set_value(value)
            field.setEnabled(model is not None)
            weight = "section" if value != default else ""
            if self._titles[name].property("kind") != weight:
                self._titles[name].setProperty("kind", weight)
                self._titles[name].style().polish(self._titles[name])
            said = self.tr("The model's own value: {value}").format(value=field.text_of(default))
            field.edit.setToolTip(f"{words(info_of(SamplingParams, name).help)}\n{said}")
        count = sum(getattr(now, n) != getattr(own, n) for n in NAMES)
        self.reset.setEnabled(count > 0)
        if model is None:
            self._model.setText(self.tr("Load a model to change its settings."))
        elif count:
            self._model.setText(
                self.tr("{name}: %n setting(s) changed", None, count).format(name=model.name)
            )
        else:
            self._model.setText(self.tr("{name}: the model's own settings").format(name=model.name))

    def _on_changed(self, name: str, value: Any) -> None:
        model = self._services.controller.model
        if model is None:
            return
        settings = self._services.settings
        now = effective(settings.value, model)
        try:
            now = dataclasses.replace(now, **{name: value})
        except BadRequest:
            self.refresh()
            return
        values = {n: getattr(now, n) for n in NAMES}
        settings.update(sampling=changed(settings.value, model, values))

    @Slot()
    def _on_reset(self) -> None:
        model = self._services.controller.model
        if model is not None:
            settings = self._services.settings
            settings.update(sampling=changed(settings.value, model, {}))
