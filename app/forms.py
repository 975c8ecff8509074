"""Form rows made from the settings' own descriptions (`engine.config.Info`)."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.i18n import LANGUAGES
from app.theme import theme
from app.widgets import Switch, label
from engine.config import Info, info_of

MOST_WHOLE = 2**31 - 1  # What a QSpinBox can hold.


def words(text: str) -> str:
    """A title, help, unit or choice of `engine.config` in the language of the window."""
    return QCoreApplication.translate("Settings", text) if text else ""


def choice_words(choice: str) -> str:
    """How a choice is called in a list."""
    translate = QCoreApplication.translate
    known = {
        "system": translate("Settings", "As the system"),
        "light": translate("Settings", "Light"),
        "dark": translate("Settings", "Dark"),
        "fast": translate("Settings", "Fast"),
        "exact": translate("Settings", "Exact"),
        "auto": translate("Settings", "Automatic"),
        "chain": translate("Settings", "Chain"),
        "tree": translate("Settings", "Tree"),
        "off": translate("Settings", "Off"),
        "on": translate("Settings", "On"),
        "model": translate("Settings", "As the model likes"),
        "persistent": translate("Settings", "Persistent"),
        "request-scoped": translate("Settings", "Request-scoped"),
        "primary": translate("Settings", "First model"),
        "refuse": translate("Settings", "Refuse"),
    }
    return known.get(choice) or LANGUAGES.get(choice, choice)


class _Quiet:
    """The wheel scrolls the page, never a value under the pointer."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Choice(_Quiet, QComboBox):
    """A list of values with words."""

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        # On Linux the name that is told is the value; what it is of comes from a label or from here.
        if not self.accessibleDescription():
            self.setAccessibleDescription(name)


class Whole(_Quiet, QSpinBox):
    """A whole number; its lowest step, where None is allowed, reads "Automatic"."""


class Decimal(_Quiet, QDoubleSpinBox):
    """A number with decimals."""


class Row(QWidget):
    """Title and help at the left, a control at the right; `texts` may be given more lines."""

    def __init__(self, title: str, help: str, control: QWidget, wide: bool = False) -> None:
        super().__init__()
        name = label(title, wrap=wide)
        name.setBuddy(control)
        self.texts = texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(name)
        if help:
            texts.addWidget(label(help, "small", wrap=True))
        says_itself = isinstance(control, QAbstractButton) and control.text()
        if not control.accessibleName() and not says_itself:
            control.setAccessibleName(title)
        control.setAccessibleDescription(help)
        row = QVBoxLayout(self) if wide else QHBoxLayout(self)
        row.setContentsMargins(0, 10, 0, 10)
        row.setSpacing(theme().space(2 if wide else 6))
        row.addLayout(texts, 0 if wide else 1)
        row.addWidget(control, 0, Qt.AlignmentFlag(0) if wide else Qt.AlignmentFlag.AlignVCenter)


class Field(Row):
    """The row of one declared setting of a dataclass.

    Signals:
        edited: the user chose a value; carries the field's name and the value.
    """

    edited = Signal(str, object)

    def __init__(self, cls: type, name: str, value: Any) -> None:
        self.name = name
        self._info = info_of(cls, name)
        self._optional, self._kind = _kind(cls, name)
        self._control = self._make(self._info)
        super().__init__(words(self._info.title), words(self._info.help), self._control)
        self.set_value(value)

    def focus(self) -> None:
        """Put the keyboard focus into the control."""
        self._control.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_value(self, value: Any) -> None:
        """Show a value without telling."""
        control = self._control
        with QSignalBlocker(control):
            if isinstance(control, QComboBox):
                control.setCurrentIndex(max(control.findData(str(value)), 0))
            elif isinstance(control, Switch):
                control.setChecked(bool(value))
                control.update()
            elif isinstance(control, QSpinBox):
                control.setValue(control.minimum() if value is None else int(value))
            elif isinstance(control, QDoubleSpinBox):
                control.setValue(control.minimum() if value is None else float(value))
            elif isinstance(control, QLineEdit):
                control.setText("" if value is None else str(value))

    def _make(self, info: Info) -> QWidget:
        control: QWidget
        if info.choices:
            control = Choice()
            for choice in info.choices:
                control.addItem(choice_words(choice), choice)
            control.currentIndexChanged.connect(self._on_edited)
        elif self._kind is bool:
            control = Switch(words(info.title))
            control.toggled.connect(self._on_edited)
            return control
        elif self._kind in (int, float):
            control = self._number(info)
        else:
            control = QLineEdit()
            control.editingFinished.connect(self._on_edited)
        control.setFixedWidth(theme().size("measure") // 3)
        return control

    def _number(self, info: Info) -> QSpinBox | QDoubleSpinBox:
        step = info.step or 1
        low = info.low if info.low is not None else 0
        control: QSpinBox | QDoubleSpinBox
        if self._kind is int:
            control = Whole()
            high = MOST_WHOLE if info.high is None else min(int(info.high), MOST_WHOLE)
            control.setRange(int(low - step if self._optional else low), high)
            control.setSingleStep(int(step))
            control.setGroupSeparatorShown(True)
        else:
            control = Decimal()
            control.setDecimals(0 if step >= 1 else 2)
            control.setRange(low - step if self._optional else low, info.high or 1e9)
            control.setSingleStep(step)
        if self._optional:
            control.setSpecialValueText(QCoreApplication.translate("Field", "Automatic"))
        elif info.at_low:
            control.setSpecialValueText(words(info.at_low))
        if info.unit:
            control.setSuffix(f" {words(info.unit)}")
        control.setLocale(QLocale())
        # Padding in the style sheet does not reach the editor inside.
        control.lineEdit().setTextMargins(0, 0, theme().space(2), 0)
        control.setKeyboardTracking(False)
        control.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        control.valueChanged.connect(self._on_edited)
        return control

    @Slot()
    def _on_edited(self) -> None:
        value = self._value()
        # Between "automatic" and the lowest value there is nothing to choose.
        if value is not None and self._info.low is not None and self._kind in (int, float):
            value = max(value, self._kind(self._info.low))
            self.set_value(value)
        self.edited.emit(self.name, value)

    def _value(self) -> Any:
        control = self._control
        if isinstance(control, QComboBox):
            return control.currentData()
        if isinstance(control, Switch):
            return control.isChecked()
        if isinstance(control, (QSpinBox, QDoubleSpinBox)):
            if self._optional and control.value() == control.minimum():
                return None
            return control.value()
        assert isinstance(control, QLineEdit)
        return control.text() or None if self._optional else control.text()


def _kind(cls: type, name: str) -> tuple[bool, type]:
    """Whether None is allowed, and the type of the value."""
    hint = typing.get_type_hints(cls)[name]
    assert dataclasses.is_dataclass(cls)
    if isinstance(hint, types.UnionType):
        kinds = [k for k in typing.get_args(hint) if k is not type(None)]
        return True, kinds[0]
    return False, hint
