"""One message as the list shows it: what belongs to it, and where each part of it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF

from app.chat.colors import Lexers
from app.chat.drafted import drafted_of
from app.chat.laid import Laid
from app.chat.style import Style
from app.chat.tree import Message, Role, State
from app.i18n import told
from engine.reasoning import split_thinking

CARD_X, CARD_Y = 16, 11
THOUGHT_INDENT = 20
AFTER_ANSWER = 12


@dataclass(frozen=True, slots=True)
class Styles:
    """The looks of answers and of thinking."""

    answer: Style
    thought: Style


@dataclass(frozen=True, slots=True)
class Shown:
    """What the list shows beside the message's own text.

    `version` of `versions` counts from 1; `progress` says what is being waited for; `rate` is tokens a
    second.
    """

    version: int = 1
    versions: int = 1
    progress: str = ""
    rate: float | None = None


class Entry:
    """A message with its layout. Heights are estimates until `done`."""

    def __init__(self, message: Message, styles: Styles, lexers: Lexers) -> None:
        self.message = message
        self.shown = Shown()
        self.unfolded = False
        self._styles = styles
        self._lexers = lexers
        self._width = 0.0
        self.main = Laid(styles.answer, lexers, plain=message.role is Role.USER)
        self.thought: Laid | None = None
        self.error: Laid | None = None
        self.thinking = ""
        self.thinking_open = False
        self.shift = 0  # of the answer in the message's text
        self.drafted: Sequence[int] = ()  # stretches of that: start, end and so on
        self._places: object = None
        self._seen: tuple[str, str, State, bool] | None = None
        self.refresh()

    @property
    def is_user(self) -> bool:
        """Whether a person wrote it."""
        return self.message.role is Role.USER

    @property
    def writing(self) -> bool:
        """Whether it still grows."""
        return self.message.state is State.WRITING

    def refresh(self) -> None:
        """Take over what changed in the message."""
        text = self.message.text
        seen = (text, self.message.error, self.message.state, self.unfolded)
        if seen == self._seen:
            return
        self._seen = seen
        if (places := self.message.usage.get("drafted")) is not self._places:
            # The list of an answer under way grows: it is looked through once.
            self._places, self.drafted = places, drafted_of(self.message.usage)
        if not self.is_user:
            parts = split_thinking(text)
            self.thinking, self.thinking_open = parts.thinking.strip(), parts.open
            text = parts.answer.lstrip("\n")
            self.shift = parts.at + len(parts.answer) - len(text)
            text = text if self.writing else text.rstrip("\n")
        self.main.set_text(text)
        if self.thinking and self.unfolded:
            if self.thought is None:
                self.thought = self._laid(self._styles.thought, self._width - THOUGHT_INDENT)
            self.thought.set_text(self.thinking)
        else:
            self.thought = None
        if self.message.error:
            if self.error is None:
                self.error = self._laid(self._styles.answer, self._width - 2 * CARD_X - 24, True)
            self.error.set_text(told(self.message.error))
        else:
            self.error = None

    def _laid(self, style: Style, width: float, plain: bool = False) -> Laid:
        laid = Laid(style, self._lexers, plain)
        laid.set_width(max(width, 80.0))
        return laid

    def parts(self) -> list[Laid]:
        """The texts in the order in which they are read."""
        return [laid for laid in (self.thought, self.main, self.error) if laid is not None]

    def set_width(self, width: float) -> bool:
        """Fit a column of this width; whether that changes anything."""
        if width == self._width:
            return False
        self._width = width
        self.main.set_width(max(width - (2 * CARD_X if self.is_user else 0), 80.0))
        if self.thought is not None:
            self.thought.set_width(max(width - THOUGHT_INDENT, 80.0))
        if self.error is not None:
            self.error.set_width(max(width - 2 * CARD_X - 24, 80.0))
        return True

    def set_styles(self, styles: Styles) -> None:
        """Use other fonts and colours."""
        self._styles = styles
        self.main.set_style(styles.answer)
        if self.thought is not None:
            self.thought.set_style(styles.thought)
        if self.error is not None:
            self.error.set_style(styles.answer)

    def unload(self) -> None:
        """Let go of the layout; the height is remembered by the list."""
        self.main = Laid(self._styles.answer, self._lexers, plain=self.is_user)
        self.thought = self.error = None
        width, self._width = self._width, 0.0
        self._seen = None
        self.set_width(width)
        self.refresh()

    @property
    def done(self) -> bool:
        """Whether all parts are laid out."""
        return all(laid.done for laid in self.parts())

    def advance(self, deadline: float) -> bool:
        """Lay out until done or `deadline`; whether done."""
        return all(laid.done or laid.advance(deadline) for laid in self.parts())

    # Where things stand, from the entry's top left

    def layout(self) -> Layout:
        """The places of all parts at the heights known now."""
        style = self._styles.answer
        y = 0.0
        header = thought = None
        if self.thinking or self.thinking_open:
            header = QRectF(0, y, self._width, style.header)
            y += style.header + 4
            if self.thought is not None:
                thought = QRectF(
                    THOUGHT_INDENT, y, self._width - THOUGHT_INDENT, self.thought.height
                )
                y += self.thought.height + style.gap
        card = None
        x, width = 0.0, self._width
        if self.is_user:
            card = QRectF(0, y, self._width, self.main.height + 2 * CARD_Y)
            x, width, y = float(CARD_X), self._width - 2 * CARD_X, y + CARD_Y
        least = style.body.height if self.writing and not self.thinking_open else 0.0
        main = QRectF(x, y, width, max(self.main.height, least))
        y = main.bottom() + (CARD_Y if self.is_user else 0)
        error = None
        if self.error is not None:
            y += style.gap if self.message.text else 0
            error = QRectF(0, y, self._width, self.error.height + 20)
            y = error.bottom()
        low, high = (0, style.header - 6) if self.is_user else (6, style.header - 4)
        footer = QRectF(0, y + low, self._width, high)
        room = 0 if self.is_user else AFTER_ANSWER
        return Layout(header, thought, card, main, error, footer, footer.bottom() + room)

    def estimate(self) -> float:
        """A guess at the height, from the number of letters."""
        style = self._styles.answer
        per_line = max(self._width / (style.letter * 0.8), 10.0)
        text = self.message.text
        lines = len(text) / per_line + text.count("\n") + 1
        return lines * style.body.height + 2 * CARD_Y + style.header


@dataclass(frozen=True, slots=True)
class Layout:
    """Rectangles of an entry's parts, None where there is no such part."""

    header: QRectF | None
    thought: QRectF | None
    card: QRectF | None
    main: QRectF
    error: QRectF | None
    footer: QRectF
    height: float
