"""Languages: translations, sentences of the engine, and numbers as the language writes them."""

from __future__ import annotations

import functools
import itertools
import logging
import re
from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

from app.files import resource

log = logging.getLogger(__name__)

LANGUAGES = {"en": "English", "ko": "한국어"}

_HOLE = re.compile(r"\{(\d+)\}")
_BETWEEN = re.compile(r"(?<=[.!?]) (?=\S)")
_KEY = 4
# What is longer is no sentence of ours, or a value that can stay as it is.
_LONGEST, _LONGEST_PART = 20_000, 1000
_MOST_PARTS, _MOST_READ = 6, 120


class Language(QObject):
    """Installs the translators of one language into the application.

    Qt sends LanguageChange to every widget; the window then builds its pages anew.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.name = "en"
        self._choice = ""
        self._translators: list[QTranslator] = []

    def apply(self, choice: str) -> None:
        """Use "en", "ko" or, with "system", the first of the system's languages that there is."""
        if choice == self._choice:
            return
        self._choice = choice
        name = _system_language() if choice == "system" else choice
        locale = _locale(name)
        QLocale.setDefault(locale)
        app = QCoreApplication.instance()
        assert app is not None
        for translator in self._translators:
            app.removeTranslator(translator)
        self._translators = []
        self.name = name
        folders = (
            str(resource("i18n")),
            QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath),
        )
        for stem, folder in (("lucebox", folders[0]), ("qtbase", folders[1])):
            translator = QTranslator(self)
            if translator.load(f"{stem}_{name}", folder):
                self._translators.append(translator)
                app.installTranslator(translator)
            elif name != "en":
                log.warning("No translation %s_%s in %s", stem, name, folder)


def _system_language() -> str:
    for tag in QLocale.system().uiLanguages():
        short = tag.partition("-")[0]
        if short in LANGUAGES:
            return short
    return "en"


def _locale(name: str) -> QLocale:
    system = QLocale.system()
    if system.name().partition("_")[0] == name:
        return system
    return QLocale(QLocale.Language.Korean if name == "ko" else QLocale.Language.English)


def told(text: str) -> str:
    """A sentence of the engine, in the language of the window.

    The engine knows English only: its sentences are templates that `resources/i18n/update.py` collects, with
    values in them. Here the template is found again and its translation filled, also where a value is a
    sentence or a word of the engine itself, and where sentences follow each other. What fits no template
    stays as it is, and so does all in English.
    """
    language = QLocale().language()
    if language == QLocale.Language.English or len(text) > _LONGEST:
        return text
    return _told(text, language.name)


class _Template:
    """Literal pieces with values between them; `pieces` has one more than there are `{0}`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.pieces = _HOLE.split(source)[::2]

    def values(self, text: str) -> list[str] | None:
        """What stands in the holes of a text that fits; each value is as short as can be.

        Looks for one piece after the other, so that it takes a time that is linear in the text.
        """
        first, *between, last = self.pieces
        at, end = len(first), len(text) - len(last)
        if end < at or not text.startswith(first) or not text.endswith(last):
            return None
        found = []
        for piece in between:
            stop = text.find(piece, at, end)
            if stop < 0:
                return None
            found.append(text[at:stop])
            at = stop + len(piece)
        return [*found, text[at:end]]

    def filled(self, values: list[str]) -> str:
        """The translation with these values."""
        return _HOLE.sub(lambda hole: values[int(hole[1])], _translated(self.source))


class _Templates:
    """All templates by how they begin or end, so that a text is held against few of them."""

    def __init__(self) -> None:
        import json  # only a window in another language pays for all this

        self._by_begin: dict[str, list[_Template]] = {}
        self._by_end: dict[str, list[_Template]] = {}
        self._others: list[_Template] = []
        sources = json.loads(resource("i18n", "engine.json").read_bytes())
        for template in map(_Template, sorted(sources, key=len, reverse=True)):
            first, last = template.pieces[0], template.pieces[-1]
            if len(template.pieces) == 1:
                continue  # Without a value its translation is found at once.
            if len(first) >= _KEY:
                self._by_begin.setdefault(first[:_KEY], []).append(template)
            elif len(last) >= _KEY:
                self._by_end.setdefault(last[-_KEY:], []).append(template)
            else:
                self._others.append(template)

    def fitting(self, text: str) -> Iterator[tuple[_Template, list[str]]]:
        """Every template that a text fits, with its values."""
        for kept in (
            self._by_begin.get(text[:_KEY], ()),
            self._by_end.get(text[-_KEY:], ()),
            self._others,
        ):
            for template in kept:
                if (values := template.values(text)) is not None:
                    yield template, values


_templates = functools.cache(_Templates)


def _translated(text: str) -> str:
    """By itself, or as the title of a setting, which errors name."""
    if (
        not text.isprintable()
    ):  # Qt takes neither zeros nor the halves of characters of a file's name.
        return text
    said = QCoreApplication.translate("Engine", text)
    return QCoreApplication.translate("Settings", text) if said == text else said


@functools.lru_cache(256)
def _told(text: str, language: str) -> str:
    return _read(text, {})[1]


def _read(text: str, known: dict[str, tuple[int, str]]) -> tuple[int, str]:
    """A text's letters that are no words of the engine, and the translation that leaves fewest of them.

    `known` are the parts that were read already. There are few in what the engine says; a text that is made
    to have many stays as it is, because the window waits for this.
    """
    if text in known:
        return known[text]
    core = text.strip()
    best = sum(map(str.isalpha, core)), core
    long = len(core) > _LONGEST_PART
    if not best[0] or (long and known) or len(known) >= _MOST_READ:
        return best[0], text
    known[text] = best[0], text
    said = _translated(core)
    if said != core:
        best = 0, said
    else:
        for template, values in _templates().fitting(core):
            read = [_read(value, known) for value in values]
            left = sum(n for n, _ in read)
            if left < best[0]:
                best = left, template.filled([value for _, value in read])
        for space in itertools.islice(_BETWEEN.finditer(core), 0 if long else _MOST_PARTS):
            before = _read(core[: space.start()], known)
            after = _read(core[space.end() :], known)
            if before[0] + after[0] < best[0]:
                best = before[0] + after[0], f"{before[1]} {after[1]}"
    known[text] = best[0], text.replace(core, best[1])
    return known[text]
