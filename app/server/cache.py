"""The right pane of the Server page: what the cache saves, what it holds and where, and how to empty it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QLocale, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import told
from app.server.disk import DiskCache
from app.server.load import Load
from app.server.owners import Owners
from app.theme import theme
from app.widgets import (
    Hairline,
    Note,
    ProgressLine,
    ScrollBody,
    Switch,
    button,
    gigabytes,
    label,
    scrolling,
)
from engine.metrics import Metrics

_MARGIN = 16


class Question(QWidget):
    """Something that cannot be undone, said in words with a button to do it and one to leave it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._note = Note("warn", "")
        self._do = button("", self._on_do)
        self._leave = button(self.tr("Cancel"), self.close_it, kind="quiet")
        self._act: Callable[[], None] = lambda: None
        self._before: QWidget | None = None
        row = QHBoxLayout()
        row.addWidget(self._do)
        row.addWidget(self._leave)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(_MARGIN, theme().space(3), _MARGIN, theme().space(3))
        column.setSpacing(theme().space(2))
        column.addWidget(self._note)
        column.addLayout(row)
        self.hide()

    def ask(self, text: str, do: str, act: Callable[[], None], before: QWidget) -> None:
        """Show the question; the focus is on leaving it, and goes back to `before` in the end."""
        self._note.set_text(text)
        self._do.setText(do)
        self._act, self._before = act, before
        self.show()
        self._leave.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_it()
        else:
            super().keyPressEvent(event)

    def close_it(self) -> None:
        """Leave everything as it is."""
        self.hide()
        if self._before is not None:
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_do(self) -> None:
        self.close_it()
        self._act()


class CachePane(QWidget):
    """Number first; all of it is from the engine's metrics and from the disk cache."""

    def __init__(self, disk: DiskCache, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Cache"))
        self._disk = disk
        self._reading = 0.0
        self.header_tools = self._clear = button(
            self.tr("Clear…"), self._ask_clear, "quiet", "trash"
        )
        self.question = Question()
        self._share = label("", "hero")
        self._of = label(self.tr("of prompt tokens reused"), "muted", wrap=True)
        self._words = label("", "small", wrap=True)
        self._pages_of = label("", "strong")
        self._owners = Owners(self.tr("Pages by owner"))
        self._held = label("", "small", wrap=True)
        self._ram = ProgressLine(self.tr("In memory"))
        self._copies = label("", "small", wrap=True)
        self._switch = Switch(self.tr("Keep conversations on disk"))
        self._on_disk = label("", "small", wrap=True)
        self._problem = Note("bad", "")
        self._forget = button(self.tr("Forget everything…"), self._ask_forget)
        self.load = Load()
        self._build()
        self._switch.toggled.connect(disk.set_on)
        disk.changed.connect(self._show_disk)
        self.show_numbers(Metrics())
        self._show_disk()

    def text(self) -> str:
        """All that it says, for tests and screen readers."""
        shown = (x for x in self.findChildren(QLabel) if x.isVisibleTo(self))
        return "\n".join([*(x.text() for x in shown), self._ram.toolTip(), self._owners.text()])

    def show_numbers(self, metrics: Metrics) -> None:
        """Show a moment."""
        self._show_share(metrics)
        self._show_pages(metrics)
        self._show_ram(metrics)
        self.load.update_metrics(metrics)

    # Building

    def _build(self) -> None:
        body = ScrollBody()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.question)
        head = QHBoxLayout()
        head.setSpacing(theme().space(1))
        head.addWidget(self._share)
        head.addWidget(self._of, 1, Qt.AlignmentFlag.AlignBottom)
        self._of.setContentsMargins(0, 0, 0, 5)
        _section(column, head, self._words, line=False)
        pages = _titled(self.tr("Pages by owner"), self._pages_of)
        _section(column, pages, self._owners, self._held)
        self._ram_section = _section(column, self._ram, self._copies)
        disk = _titled(self.tr("On disk"), self._switch)
        row = QHBoxLayout()
        row.addWidget(self._forget)
        row.addStretch(1)
        _section(column, disk, self._on_disk, self._problem, row)
        _section(column, self.load)
        column.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scrolling(body))

    # Showing

    def _show_share(self, metrics: Metrics) -> None:
        reused = metrics.cache.reused_tokens_total
        prompts = reused + metrics.prompt_tokens_total
        number = QLocale().toString
        self._reading = metrics.prefill_rate or self._reading
        if prompts:
            self._share.setText(f"{reused * 100 // prompts} %")
            text = self.tr("{reused} of {all} since the model was loaded.")
            words = text.format(reused=number(reused), all=number(prompts))
            if reused and self._reading:
                saved = self.tr("Saved about {time} of reading.")
                words += " " + saved.format(time=self._duration(reused / self._reading))
            self._words.setText(words)
        else:
            self._words.setText(self.tr("No prompt has been read yet."))
        self._share.setVisible(bool(prompts))
        self._of.setVisible(bool(prompts))

    def _duration(self, seconds: float) -> str:
        if seconds < 100:
            return self.tr("{n} s").format(n=QLocale().toString(round(seconds)))
        return self.tr("{n} min").format(n=QLocale().toString(round(seconds / 60)))

    def _show_pages(self, metrics: Metrics) -> None:
        cache, number = metrics.cache, QLocale().toString
        in_use = cache.running_pages + cache.shared_pages
        used = in_use + cache.kept_pages
        total = used + cache.free_pages
        shares = self.tr("{used} of {total}").format(used=number(used), total=number(total))
        self._pages_of.setText(shares if total else "")
        self._owners.setVisible(bool(total))
        self._owners.show_pages(cache.owners, cache.free_pages)
        held = sum(part.bytes for part in metrics.memory if part.kind == "kv")
        text = self.tr("All of them hold {size}; {n} are in use now.")
        text = text.format(size=gigabytes(held), n=number(in_use))
        self._held.setText(text if total else self.tr("No model is loaded."))
        self._held.setVisible(bool(held) or not total)

    def _show_ram(self, metrics: Metrics) -> None:
        cache, number = metrics.cache, QLocale().toString
        of = self.tr("{used} of {total}")
        most = cache.ram_limit
        sizes = of.format(used=gigabytes(cache.ram_bytes), total=gigabytes(most)) if most else ""
        self._ram.set_progress(cache.ram_bytes, most, right=sizes)
        text = self.tr(
            "Copies of {pages} pages and {states} states, for when they are needed again."
        )
        self._copies.setText(
            text.format(pages=number(cache.ram_pages), states=number(cache.ram_states))
        )
        self._copies.setVisible(bool(cache.ram_bytes))
        self._ram_section.setVisible(bool(most))

    @Slot()
    def _show_disk(self) -> None:
        disk, config = self._disk, self._disk.config
        with QSignalBlocker(self._switch):
            self._switch.setChecked(
                disk.state == "on" or (disk.state == "changing" and config.disk_cache)
            )
        self._switch.update()
        held = disk.held.bytes if disk.held is not None else 0
        most = gigabytes(config.disk_cache_limit << 20)
        if disk.state == "on":
            text = self.tr(
                "{size} of at most {most}, encrypted. Kept {days} days after the last use."
            )
        elif held:
            text = self.tr("Off, and {size} are still there.")
        else:
            text = self.tr("Off. Keeps conversations warm over a restart, encrypted, up to {most}.")
        days = QLocale().toString(config.disk_cache_days)
        self._on_disk.setText(text.format(size=gigabytes(held), most=most, days=days))
        self._switch.setAccessibleDescription(self._on_disk.text())
        self._problem.set_text(told(disk.problem))
        self._problem.setVisible(bool(disk.problem))
        self._forget.setVisible(disk.state == "on" or bool(held))

    # Doing

    def _ask_clear(self) -> None:
        text = self.tr(
            "All that is cached is dropped, in memory and on disk. Your chats stay; what they begin with is "
            "read anew when it is needed."
        )
        self.question.ask(text, self.tr("Clear the cache"), self._on_clear, self._clear)

    def _ask_forget(self) -> None:
        text = self.tr(
            "All that is cached is deleted with its key, so that copies of the files cannot be read any more "
            "either. Your chats stay; what they begin with is read anew when it is needed."
        )
        self.question.ask(text, self.tr("Delete it all"), self._on_forget, self._forget)

    def _on_clear(self) -> None:
        self._disk.empty(forget=False)

    def _on_forget(self) -> None:
        self._disk.empty(forget=True)


def _titled(title: str, value: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.addWidget(label(title, "muted", wrap=True), 1)
    row.addWidget(value)
    return row


def _section(column: QVBoxLayout, *parts: QWidget | QHBoxLayout, line: bool = True) -> QWidget:
    """Parts below each other with a margin around them, and a line above."""
    section = QWidget()
    whole = QVBoxLayout(section)
    whole.setContentsMargins(0, 0, 0, 0)
    whole.setSpacing(0)
    if line:
        whole.addWidget(Hairline())
    inside = QVBoxLayout()
    whole.addLayout(inside)
    inside.setContentsMargins(_MARGIN, theme().space(3), _MARGIN, theme().space(3))
    inside.setSpacing(theme().space(2))
    for part in parts:
        if isinstance(part, QWidget):
            inside.addWidget(part)
        else:
            inside.addLayout(part)
    column.addWidget(section)
    return section
