"""Colours, fonts, sizes and icons from `resources/tokens.json`, bound to the QApplication."""

from __future__ import annotations

import json
from string import Template
from typing import Any, Literal, cast

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication, QPushButton, QWidget

from app.files import resource

FontName = Literal["micro", "small", "ui", "body", "lead", "title", "hero", "mono"]
Weight = Literal["regular", "medium", "semibold"]

_ICON_GAP = 4
_PROPERTY = "lucebox.theme"
# Panes keep their width when the text grows, so that they leave room for each other.
_FIXED = frozenset(
    {"chatList", "inspector", "sidePane", "tunePane", "focusRing", "pageCell", "pagePitch"}
)


class _Sheet(Template):
    """A style sheet whose placeholders are dotted token names: `${text.muted}`."""

    braceidpattern = r"[a-zA-Z][\w.]*"


class Theme(QObject):
    """The look of the application.

    Signals:
        changed: colours or text size changed; painted widgets repaint, cached pixmaps are stale.
    """

    changed = Signal()

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._tokens: dict[str, Any] = json.loads(
            resource("tokens.json").read_text(encoding="utf-8")
        )
        self._sheet = _Sheet(resource("app.qss").read_text(encoding="utf-8"))
        self._system_palette = app.palette()
        self._choice = "system"
        self._scale = 1.0
        self._colors: dict[str, QColor] = {}
        self._icons: dict[tuple[str, str, int, int], QIcon] = {}
        self._svg: dict[str, str] = {}
        self.dark = False
        app.setStyle("Fusion")
        app.styleHints().colorSchemeChanged.connect(self._on_scheme)
        app.screenAdded.connect(self._refresh)
        self._refresh()

    def apply(self, choice: str | None = None, text_size: float | None = None) -> None:
        """Use a colour choice ("system", "light", "dark") and a text size in percent."""
        scale = self._scale if text_size is None else text_size / 100
        if (choice is None or choice == self._choice) and scale == self._scale:
            return
        self._scale = scale
        if choice is not None and choice != self._choice:
            self._choice = choice
            hints = QGuiApplication.styleHints()
            # Also tells the window manager, which colours the title bar.
            if choice == "system":
                hints.unsetColorScheme()
            else:
                hints.setColorScheme(_SCHEMES[choice])
        self._refresh()

    @property
    def scale(self) -> float:
        """The text size beside the usual one: 1.5 for 150 percent."""
        return self._scale

    def color(self, token: str) -> QColor:
        """A colour by dotted name, as "text.muted"."""
        return QColor(self._colors[token])

    def size(self, name: str) -> int:
        """A length in px by name, as "row"; heights that hold text grow with the text size."""
        px = self._tokens["size"][name]
        return px if name in _FIXED else round(px * self._scale)

    def space(self, step: int) -> int:
        """A gap in px: steps 1, 2, 3, 4, 6, 8, 12 of a 4-px grid."""
        return int(self._tokens["space"][str(step)])

    def radius(self, name: str) -> int:
        """A corner radius in px by name, as "control"."""
        return int(self._tokens["radius"][name])

    def motion(self, name: str) -> int:
        """A duration in ms by name; 0 where the system asks for less motion."""
        effects = (Qt.UIEffect.UI_General, Qt.UIEffect.UI_AnimateMenu)
        still = not any(QApplication.isEffectEnabled(e) for e in effects)
        return 0 if still and name in ("hover", "fold") else int(self._tokens["motion"][name])

    def font(self, name: FontName = "ui", weight: Weight = "regular") -> QFont:
        """A font by role, with tabular digits; "mono" has the size of "ui"."""
        size = "ui" if name == "mono" else name
        font = QFont()
        font.setFamilies(self._families("mono" if name == "mono" else "ui"))
        font.setPixelSize(round(self._tokens["font"]["size"][size] * self._scale))
        font.setWeight(QFont.Weight(self._tokens["font"]["weight"][weight]))
        font.setFeature(QFont.Tag("tnum"), 1)
        if name == "mono":
            font.setStyleHint(QFont.StyleHint.Monospace)
        return font

    def icon(self, name: str, color: str = "text.muted", size: int = 20, gap: int = 0) -> QIcon:
        """An icon of `resources/icons`, painted in a token's colour; greyed where disabled."""
        key = (name, color, size, gap)
        if key not in self._icons:
            icon, mode = QIcon(), QIcon.Mode
            # A picture takes 0.3 ms: only those that a screen of this PC shows are painted.
            for ratio in {s.devicePixelRatio() for s in QGuiApplication.screens()}:
                usual = self.pixmap(name, color, size, ratio, gap)
                for alike in (mode.Normal, mode.Active, mode.Selected):
                    icon.addPixmap(usual, alike)
                icon.addPixmap(self.pixmap(name, "text.disabled", size, ratio, gap), mode.Disabled)
            self._icons[key] = icon
        return self._icons[key]

    def pixmap(
        self,
        name: str,
        color: str = "text.muted",
        size: int = 20,
        ratio: float = 1.0,
        gap: int = 0,
    ) -> QPixmap:
        """One picture of an icon, `size` px wide, `gap` px of room at its right; `ratio` is the screen's."""
        if name not in self._svg:
            self._svg[name] = resource("icons", f"{name}.svg").read_text(encoding="utf-8")
        # Qt paints currentColor black, and a smaller icon keeps the stroke of 1.5 px.
        svg = self._svg[name].replace("currentColor", self.color(color).name())
        svg = svg.replace('stroke-width="1.5"', f'stroke-width="{1.5 * 20 / max(size, 1):.4g}"')
        edge = round(size * ratio)
        pixmap = QPixmap(edge + round(gap * ratio), edge)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(0, 0, edge, edge))
        painter.end()
        pixmap.setDevicePixelRatio(ratio)
        return pixmap

    def tint(
        self, button: QAbstractButton, name: str, color: str = "text.muted", size: int = 20
    ) -> None:
        """Give a button an icon that follows the theme."""
        button.setProperty("tint", [name, color, size / self._scale])
        # Beside a word the icon brings its own gap: Qt's is too narrow and cannot be set.
        gap = _ICON_GAP if isinstance(button, QPushButton) and button.text() else 0
        button.setIcon(self.icon(name, color, size, gap))
        button.setIconSize(QSize(size + gap, size))

    def _families(self, kind: str) -> list[str]:
        role = (
            QFontDatabase.SystemFont.FixedFont
            if kind == "mono"
            else QFontDatabase.SystemFont.GeneralFont
        )
        system = QFontDatabase.systemFont(role).family()
        names = cast(list[str], self._tokens["font"][kind])
        return [system if n in ("system-ui", "monospace") else n for n in names]

    def _wants_dark(self) -> bool:
        if self._choice != "system":
            return self._choice == "dark"
        scheme = QGuiApplication.styleHints().colorScheme()
        if scheme != Qt.ColorScheme.Unknown:
            return scheme == Qt.ColorScheme.Dark
        window = self._system_palette.color(QPalette.ColorRole.Window)
        text = self._system_palette.color(QPalette.ColorRole.WindowText)
        return window.lightness() < text.lightness()

    def _on_scheme(self) -> None:
        if self._wants_dark() != self.dark:
            self._refresh()

    def _refresh(self) -> None:
        app = cast(QApplication, self.parent())
        self.dark = self._wants_dark()
        mode = self._tokens["dark" if self.dark else "light"]
        self._colors = {f"{g}.{n}": QColor(c) for g, m in mode.items() for n, c in m.items()}
        self._icons.clear()
        app.setFont(self.font("ui"))
        app.setPalette(self._palette())
        app.setStyleSheet(self._sheet.substitute(self._values()))
        for widget in app.allWidgets():
            tint = widget.property("tint")
            if tint and isinstance(widget, QAbstractButton):
                name, color, usual = tint
                self.tint(widget, name, color, round(usual * self._scale))
        self.changed.emit()

    def _values(self) -> dict[str, str]:
        values = {name: color.name() for name, color in self._colors.items()}
        values |= {f"radius.{k}": f"{v}px" for k, v in self._tokens["radius"].items()}
        values |= {f"size.{k}": f"{self.size(k)}px" for k in self._tokens["size"]}
        values |= {
            f"font.{k}": f"{round(v * self._scale)}px"
            for k, v in self._tokens["font"]["size"].items()
        }
        tint = "dark" if self.dark else "light"
        values["icons"] = resource("icons", "controls", tint).as_posix()
        return values

    def _palette(self) -> QPalette:
        palette = QPalette()
        role = QPalette.ColorRole
        for which, token in (
            (role.Window, "surface.bg"),
            (role.WindowText, "text.primary"),
            (role.Base, "surface.field"),
            (role.AlternateBase, "surface.panel"),
            (role.Text, "text.primary"),
            (role.PlaceholderText, "text.faint"),
            (role.Button, "surface.raised"),
            (role.ButtonText, "text.primary"),
            (role.BrightText, "state.bad"),
            (role.ToolTipBase, "surface.raised"),
            (role.ToolTipText, "text.primary"),
            (role.Highlight, "accent.base"),
            (role.HighlightedText, "accent.on"),
            (role.Accent, "accent.base"),
            (role.Link, "accent.text"),
            (role.LinkVisited, "accent.text"),
            (role.Light, "surface.raised"),
            (role.Midlight, "surface.hover"),
            (role.Mid, "line.strong"),
            (role.Dark, "line.control"),
            (role.Shadow, "line.hair"),
        ):
            palette.setColor(which, self.color(token))
        for which in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText):
            palette.setColor(QPalette.ColorGroup.Disabled, which, self.color("text.disabled"))
        return palette


_SCHEMES = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}


def theme() -> Theme:
    """The theme of the running QApplication, made on first use."""
    app = cast(QApplication, QApplication.instance())
    found = app.property(_PROPERTY)
    if found is None:
        found = Theme(app)
        app.setProperty(_PROPERTY, found)
    return cast(Theme, found)


def restyle(widget: QWidget) -> None:
    """Let the style sheet look again at a widget whose properties changed."""
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)
    widget.update()
