"""What covers the page while files hover over the window: what they are, and what can be done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeDatabase, QPoint, QRect, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import told
from app.models.hardware import free_at
from app.models.library import Library
from app.models.words import memory_parts, summary, translate, verdict_style, verdict_text
from app.page import Services
from app.theme import restyle, theme
from app.widgets import MemoryBar, gigabytes, label

if TYPE_CHECKING:
    from engine.library import Dropped, Entry
    from engine.placement import Estimate

_WIDTH = 960
_INSET = 12
_NAMED = 4
_PAD, _GAP = 12, 8  # px in a zone: around all, and below its icon


class DropOverlay(QWidget):
    """Covers `area` of the window; the target of a drag asks it which zone is under the pointer."""

    def __init__(self, window: QWidget, area: QWidget, services: Services) -> None:
        super().__init__(window)
        self._window = window
        self._area = area
        self._library: Library = services.library
        self._paths: Sequence[Path] = ()
        self._title = label("", "title")
        self._what = label("", "muted", wrap=True)
        self._size = label("", "lead")
        self._fits = label("", "")
        self._fits_icon = QLabel()
        self._bar = MemoryBar()
        self._else, self._key, self._leaves = (
            label("", "muted"),
            label("", "tag"),
            label("", "muted"),
        )
        self._use = DropZone("drop", large=True)
        self._copy = DropZone("copy")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, False)
        self._build()
        self.hide()
        theme().changed.connect(self.update)

    def begin(self, paths: Sequence[Path]) -> None:
        """A drag came in; until the headers are read, only names and sizes are known."""
        self._paths = paths
        one = paths[0].name if len(paths) == 1 else self.tr("%n file(s)", None, len(paths))
        self._title.setText(one)
        self._what.setText(self.tr("Looking at it…"))
        self._else.setText(self.tr("Let go anywhere else for the first choice"))
        self._key.setText(self.tr("Esc"))
        self._leaves.setText(self.tr("leaves all as it was"))
        self._size.setText("")
        self._show_estimate(None)
        self._use.say(self.tr("Use it where it is"), self.tr("Checked, listed and loaded."))
        self._copy.say(self.tr("Copy to the models folder"), "")
        self._use.set_hot(True)
        self._copy.set_hot(False)

    def appear(self) -> None:
        """Cover the page."""
        corner = self._area.mapTo(self._window, QPoint(0, 0))
        self.setGeometry(QRect(corner, self._area.size()))
        self.show()
        self.raise_()

    @Slot(object)
    def show_dropped(self, dropped: Dropped) -> None:
        """Say what the files are."""
        entries = [*dropped.models, *dropped.companions]
        if not entries:
            self._show_nothing(dropped)
        elif len(entries) == 1:
            self._show_entry(entries[0])
        else:
            self._show_many(dropped)
        if len(self._paths) > 1 or len(entries) > 1:
            self._title.setText(summary_of_many(dropped))
        if len(dropped.models) == 1:
            self._library.estimate(self, dropped.models[0], self._show_estimate)

    def point_at(self, where: QPoint) -> None:
        """Make the zone under the pointer hot; outside of all zones the first choice is."""
        copy = self.copy_wanted(where)
        self._copy.set_hot(copy)
        self._use.set_hot(not copy)

    def copy_wanted(self, where: QPoint) -> bool:
        """Whether files that are let go here (window coordinates) are to be copied."""
        if not self.isVisible() or not self._copy.possible:
            return False
        corner = self._copy.mapTo(self._window, QPoint(0, 0))
        return QRect(corner, self._copy.size()).contains(where)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme().color("surface.bg"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(theme().color("accent.base"), 1, Qt.PenStyle.DashLine)
        painter.setPen(pen)
        frame = QRectF(self.rect()).adjusted(_INSET, _INSET, -_INSET, -_INSET)
        painter.drawRoundedRect(frame, theme().radius("panel"), theme().radius("panel"))

    # Parts

    def _build(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(theme().space(1))
        words.addWidget(self._title)
        words.addWidget(self._what)
        fit = QHBoxLayout()
        fit.setSpacing(6)
        fit.addStretch(1)
        fit.addWidget(self._fits_icon)
        fit.addWidget(self._fits)
        numbers = QVBoxLayout()
        numbers.addWidget(self._size, 0, Qt.AlignmentFlag.AlignRight)
        numbers.addLayout(fit)
        head = QHBoxLayout()
        head.addLayout(words, 1)
        head.addLayout(numbers)
        zones = QHBoxLayout()
        zones.setSpacing(theme().space(4))
        zones.addWidget(self._copy, 1)
        hints = QHBoxLayout()
        hints.setSpacing(theme().space(2))
        hints.addStretch(1)
        hints.addWidget(self._else)
        hints.addSpacing(theme().space(6))
        hints.addWidget(self._key)
        hints.addWidget(self._leaves)
        hints.addStretch(1)
        inner = QWidget()
        inner.setMaximumWidth(_WIDTH)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(3))
        column.addStretch(1)
        column.addLayout(head)
        column.addWidget(self._bar)
        column.addSpacing(theme().space(3))
        column.addWidget(self._use, 3)
        column.addLayout(zones, 2)
        column.addLayout(hints)
        column.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(48, 24, 48, 24)
        row.addStretch(1)
        row.addWidget(inner, 100)
        row.addStretch(1)

    def _show_entry(self, entry: Entry) -> None:
        self._title.setText(entry.path.name)
        self._what.setText(summary(entry))
        self._size.setText(gigabytes(entry.size))
        self._say_zones([entry])

    def _show_many(self, dropped: Dropped) -> None:
        entries = [*dropped.models, *dropped.companions]
        names = [e.path.name for e in entries[:_NAMED]]
        if len(entries) > _NAMED:
            names.append(self.tr("and %n more", None, len(entries) - _NAMED))
        self._what.setText(", ".join(names))
        self._size.setText(gigabytes(sum(e.size for e in entries)))
        self._say_zones(entries)

    def _show_nothing(self, dropped: Dropped) -> None:
        if dropped.sources:
            self._what.setText(self.tr("A draft as its makers publish it"))
            text = self.tr("It is written as GGUF, with fewer bits, and checked.")
            self._use.say(self.tr("Make a draft of it"), text)
            reason = self.tr("Not possible: it is converted first")
            self._copy.say(self.tr("Copy to the models folder"), reason, possible=False)
            return
        texts = texts_of(dropped)
        if texts:
            self._what.setText(self.tr("%n text file(s) for the chat", None, len(texts)))
            self._use.say(self.tr("Attach to the message"), self.tr("The text is read into it."))
            reason = self.tr("Not possible: this is not a model")
            self._copy.say(self.tr("Copy to the models folder"), reason, possible=False)
            return
        why = dropped.ignored[0][1] if dropped.ignored else self.tr("There is nothing in it.")
        self._what.setText(told(why))
        reason = self.tr("Not possible: there is no model in it that can be used")
        self._use.say(self.tr("Use it where it is"), reason, possible=False)
        self._copy.say(self.tr("Copy to the models folder"), reason, possible=False)

    def _say_zones(self, entries: Sequence[Entry]) -> None:
        folder = entries[0].path.parent.name
        if len(entries) == 1 and entries[0].problem:
            self._use.say(self.tr("Show what is wrong with it"), told(entries[0].problem))
            reason = self.tr("Not possible: it cannot be used")
            self._copy.say(self.tr("Copy to the models folder"), reason, possible=False)
            return
        chat = [e for e in entries if e.kind == "chat"]
        if len(chat) == 1:
            text = self.tr("Checked, listed and loaded. It stays in {folder}, nothing is copied.")
        elif chat:
            text = self.tr("Checked and listed, to choose from. All stay in {folder}.")
        else:
            text = self.tr(
                "Checked and listed. It goes with a chat model and cannot chat by itself."
            )
        self._use.say(self.tr("Use it where it is"), text.format(folder=folder))
        if len(chat) == 1:
            self._say_copy(sum(e.size for e in entries))
        else:
            reason = self.tr("Not possible: one chat model at a time is copied")
            self._copy.say(self.tr("Copy to the models folder"), reason, possible=False)

    def _say_copy(self, size: int) -> None:
        free = free_at(self._library.models_dir())
        title = self.tr("Copy to the models folder")
        numbers = self.tr("{size}, {free} free there").format(
            size=gigabytes(size), free=gigabytes(free)
        )
        if size > free:
            self._copy.say(title, self.tr("Not possible: {numbers}").format(numbers=numbers), False)
        else:
            self._copy.say(title, numbers)

    def _show_estimate(self, estimate: Estimate | None) -> None:
        self._bar.setVisible(estimate is not None)
        self._fits.setText("")
        self._fits_icon.clear()
        if estimate is None:
            return
        self._bar.set_parts(memory_parts(estimate.parts), estimate.device.memory_total)
        icon, kind = verdict_style(estimate)
        self._fits.setProperty("kind", kind)
        restyle(self._fits)
        self._fits.setText(verdict_text(estimate))
        self._fits_icon.setPixmap(
            theme().pixmap(icon, f"state.{kind}", 16, self.devicePixelRatioF())
        )


class DropZone(QWidget):
    """A place to let go: icon, title, and what will happen or why it cannot."""

    def __init__(self, icon: str, large: bool = False) -> None:
        super().__init__()
        self._icon = icon
        self._large = large
        self._edge = 28 if large else 20
        self._title = ""
        self._text = ""
        self._hot = False
        self.possible = True
        theme().changed.connect(self._fit)
        self._fit()

    @property
    def text(self) -> str:
        """What the zone says below its title."""
        return self._text

    def say(self, title: str, text: str, possible: bool = True) -> None:
        """Set the words."""
        self._title, self._text, self.possible = title, text, possible
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)
        self.update()

    def set_hot(self, hot: bool) -> None:
        """Whether files would be let go here."""
        self._hot = hot
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, 220 if self._large else 150)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        hot = self._hot and self.possible
        style = Qt.PenStyle.SolidLine if hot else Qt.PenStyle.DashLine
        color = "accent.base" if hot else "line.strong"
        painter.setPen(QPen(look.color(color), 2 if hot else 1, style))
        painter.setBrush(look.color("surface.selected" if hot else "surface.panel"))
        frame = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(frame, look.radius("panel"), look.radius("panel"))
        inside = self.rect().adjusted(16, _PAD, -16, -_PAD)
        center = int(Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap)
        title, text = self._fonts()
        title_height = QFontMetrics(title).height() + _GAP // 2
        text_height = QFontMetrics(text).boundingRect(inside, center, self._text).height()
        height = self._edge + _GAP + title_height + text_height
        inside.setTop(inside.y() + max(0, inside.height() - height) // 2)
        icon = look.pixmap(
            self._icon, "accent.text" if hot else "text.muted", self._edge, self.devicePixelRatioF()
        )
        painter.drawPixmap((self.width() - self._edge) // 2, inside.y(), icon)
        inside.setTop(inside.y() + self._edge + _GAP)
        painter.setFont(title)
        painter.setPen(look.color("text.primary" if self.possible else "text.muted"))
        painter.drawText(inside, center, self._title)
        inside.setTop(inside.y() + title_height)
        painter.setFont(text)
        painter.setPen(look.color("text.muted"))
        painter.drawText(inside, center, self._text)

    def _fonts(self) -> tuple[QFont, QFont]:
        """Those of the title and of the text below it."""
        look = theme()
        if self._large:
            return look.font("lead", "semibold"), look.font("ui")
        return look.font("ui", "semibold"), look.font("small")

    @Slot()
    def _fit(self) -> None:
        """Hold the icon, the title and two lines of text."""
        title, text = map(QFontMetrics, self._fonts())
        words = title.height() + _GAP // 2 + 2 * text.lineSpacing()
        self.setMinimumHeight(self._edge + _GAP + words + 2 * _PAD)


def texts_of(dropped: Dropped) -> list[Path]:
    """The files among those left out that are text, and so belong to the chat."""
    known = QMimeDatabase()
    files = [path for path, _ in dropped.ignored if path.is_file()]
    return [p for p in files if known.mimeTypeForFile(str(p)).inherits("text/plain")]


def summary_of_many(dropped: Dropped) -> str:
    """What several files are: "4 files, 1 model, 1 projector, 1 text, 1 unknown"."""
    kinds = [e.kind for e in dropped.companions]
    drafts, projectors = kinds.count("draft"), kinds.count("projector")
    models, texts = len(dropped.models), len(texts_of(dropped))
    unknown = len(dropped.ignored) - texts
    counts = [translate("models", "%n file(s)", None, models + len(kinds) + texts + unknown)]
    for n, text in (
        (models, translate("models", "%n model(s)", None, models)),
        (projectors, translate("models", "%n projector(s)", None, projectors)),
        (drafts, translate("models", "%n draft(s)", None, drafts)),
        (texts, translate("models", "%n text(s)", None, texts)),
        (unknown, translate("models", "%n unknown", None, unknown)),
    ):
        if n:
            counts.append(text)
    return ", ".join(counts)
