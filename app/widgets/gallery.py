"""Every part in every state, for looking at: `python -m app.widgets.gallery [dark|light] [picture.png]`."""

from __future__ import annotations

import sys

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QRadioButton,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.files import resource
from app.report import ErrorReport
from app.theme import theme
from app.widgets import (
    Banner,
    EmptyState,
    ErrorCard,
    MemoryBar,
    MemoryKeys,
    Note,
    ProgressLine,
    Switch,
    button,
    label,
)
from engine.metrics import MemoryPart

GB = 2**30
PARTS = tuple(
    MemoryPart(kind, title, int(size * GB))
    for kind, title, size in (
        ("other", "Other programs", 0.3),
        ("model", "Model", 15.6),
        ("draft", "Draft", 1.7),
        ("kv", "Conversation", 2.3),
        ("work", "Work space", 0.8),
        ("free", "Free", 2.3),
        ("reserve", "Reserve", 1.0),
    )
)


def controls() -> QWidget:
    """Buttons, fields and choices, at rest and disabled."""
    page = QWidget()
    grid = QGridLayout(page)
    grid.setHorizontalSpacing(24)
    grid.setVerticalSpacing(12)
    rows: list[tuple[str, list[QWidget]]] = []
    for state in (True, False):
        field, number, combo = QLineEdit("131,072"), QSpinBox(), QComboBox()
        number.setRange(0, 1_000_000)
        number.setValue(16384)
        number.setAlignment(Qt.AlignmentFlag.AlignRight)
        number.lineEdit().setTextMargins(0, 0, theme().space(2), 0)
        combo.addItems(["q8_0", "f16"])
        on, tick, choice = Switch("On"), QCheckBox("Tick"), QRadioButton("Choice")
        on.setChecked(True)
        tick.setChecked(True)
        choice.setChecked(True)
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setValue(50)
        made: list[tuple[str, QWidget]] = [
            ("Main button", button("Apply", kind="main", icon="check")),
            ("Large main button", button("Download and chat", kind="main", large=True)),
            ("Button", button("Apply", icon="folder")),
            ("Quiet button", button("Apply", kind="quiet")),
            ("Field", field),
            ("Number", number),
            ("List field", combo),
            ("Switch", on),
            ("Switch off", Switch("Off")),
            ("Tick", tick),
            ("Choice", choice),
            ("Slider", slider),
        ]
        for i, (name, widget) in enumerate(made):
            widget.setEnabled(state)
            if state:
                rows.append((name, [widget]))
            else:
                rows[i][1].append(widget)
    for i, (name, widgets) in enumerate(rows):
        grid.addWidget(label(name, "muted"), i, 0)
        for j, widget in enumerate(widgets):
            grid.addWidget(widget, i, j + 1)
    return page


def cards() -> QWidget:
    """Bars, notes and cards."""
    page = QWidget()
    column = QVBoxLayout(page)
    column.setSpacing(12)
    progress = ProgressLine("Reading")
    progress.set_progress(40, 100, "Reading", "1.9 of 4.7 GB, 1.2 GB/s, 3 s left")
    report = ErrorReport(
        "Qwen3.6-27B does not fit with 262,144 tokens of context",
        "It needs 26.9 GB and 23.1 GB are free. Nothing was loaded; Qwen3-8B is still ready.",
        (("Context 131,072", lambda: None), ("Load anyway", lambda: None)),
    )
    for widget in (
        MemoryBar(PARTS),
        MemoryBar(PARTS, thin=True),
        MemoryKeys(PARTS, columns=2),
        MemoryBar(PARTS, capacity=20 * GB),
        progress,
        Note("good", "Good pair. 2.23 times faster, same text."),
        Note("warn", "Window guessed: 2,048. Missing in config.json."),
        Note("bad", "SHA-256 differs. The file was set aside."),
        Banner("warn", "Lucebox ended unexpectedly the last time.", "stack"),
        EmptyState(
            "No draft for Qwen3-8B",
            "Looked in 4 folders. n-gram works without a file.",
            (
                ("Find one", lambda: None, "search"),
                ("Make one…", lambda: None, "draft"),
                ("Use n-gram", lambda: None),
            ),
        ),
        ErrorCard(report),
    ):
        column.addWidget(widget)
    column.addStretch(1)
    return page


def icons() -> QWidget:
    """All icons with their names."""
    page = QWidget()
    grid = QGridLayout(page)
    for i, file in enumerate(sorted(resource("icons").glob("*.svg"))):
        picture = QLabel()
        picture.setPixmap(theme().pixmap(file.stem, "text.primary", 20, page.devicePixelRatioF()))
        grid.addWidget(picture, i // 11 * 2, i % 11, Qt.AlignmentFlag.AlignHCenter)
        name = label(file.stem, "micro")
        grid.addWidget(name, i // 11 * 2 + 1, i % 11, Qt.AlignmentFlag.AlignHCenter)
    return page


def gallery() -> QWidget:
    """The whole page."""
    page = QWidget()
    page.setWindowTitle("Parts")
    left = QVBoxLayout()
    left.addWidget(controls())
    left.addWidget(icons())
    left.addStretch(1)
    row = QHBoxLayout(page)
    row.addLayout(left, 3)
    row.addWidget(cards(), 2)
    page.resize(1440, 900)
    return page


def main(argv: list[str]) -> int:
    """Show the gallery, or save it as a picture."""
    app = QApplication(sys.argv[:1])
    theme().apply(argv[0] if argv else "dark")
    page = gallery()
    page.show()
    if len(argv) > 1:
        QTimer.singleShot(300, lambda: (page.grab().save(argv[1]), app.quit()))
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
