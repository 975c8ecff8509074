"""Languages: translations, and numbers as the language writes them."""

from __future__ import annotations

import logging

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

from app.files import resource

log = logging.getLogger(__name__)

LANGUAGES = {"en": "English", "ko": "한국어"}


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
