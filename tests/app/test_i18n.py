"""Translations are whole, fit their originals, and switch while the window is open."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import PySide6
import pytest
from PySide6.QtCore import QCoreApplication, QLocale

from app.files import resource
from app.i18n import LANGUAGES, Language
from app.widgets import gigabytes

TRANSLATED = sorted(set(LANGUAGES) - {"en"})


@pytest.fixture(scope="module")
def update() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update", resource("i18n", "update.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def messages(file: Path) -> list[tuple[str, str, list[str]]]:
    """Context, source and translations (plural forms each) of a .ts file."""
    found = []
    for context in ET.parse(file).getroot().iter("context"):
        for message in context.iter("message"):
            translation = message.find("translation")
            assert translation is not None
            forms = [f.text or "" for f in translation.iter("numerusform")]
            texts = forms or [translation.text or ""]
            found.append((context.findtext("name", ""), message.findtext("source", ""), texts))
    return found


def placeholders(text: str) -> list[str]:
    return sorted(re.findall(r"\{\w*(?::[^}]*)?\}|%L?n|%L?\d", text))


@pytest.mark.parametrize("name", TRANSLATED)
def test_nothing_is_left_untranslated(update: ModuleType, name: str) -> None:
    file = resource("i18n", f"lucebox_{name}.ts")
    assert update.unfinished(file) == []
    assert [m for m in messages(file) if not all(m[2])] == []


def test_the_files_hold_every_string_of_the_sources(update: ModuleType, tmp_path: Path) -> None:
    """Fails when strings changed and `python resources/i18n/update.py` was not run."""
    if PySide6.__version_info__ < update.OLDEST:
        pytest.skip("lupdate is too old to find all strings")
    for name in LANGUAGES:
        kept = resource("i18n", f"lucebox_{name}.ts")
        fresh = tmp_path / kept.name
        fresh.write_bytes(kept.read_bytes())
        update.collect(fresh, name)
        known = {m[:2] for m in messages(kept)}
        assert {m[:2] for m in messages(fresh)} == known


@pytest.mark.parametrize("name", LANGUAGES)
def test_placeholders_are_kept(name: str) -> None:
    for context, source, texts in messages(resource("i18n", f"lucebox_{name}.ts")):
        for text in texts:
            # A plural form may say "one" in words.
            wanted = [p for p in placeholders(source) if p != "%n" or "%n" in text or name != "en"]
            assert placeholders(text) == wanted, (context, source, text)


@pytest.mark.parametrize("name", TRANSLATED)
def test_accelerators_and_ends_are_kept(name: str) -> None:
    for context, source, texts in messages(resource("i18n", f"lucebox_{name}.ts")):
        for text in texts:
            assert text.count("&") == source.count("&"), (context, source, text)
            assert text.endswith("…") == source.endswith("…"), (context, source, text)
            assert text == text.strip() or source != source.strip(), (context, source, text)


def test_korean_needs_no_particle_that_fits_a_value() -> None:
    """A name may end in a vowel or not: a noun of ours stands between it and the particle."""
    either = re.compile(r"[을은이과]\([를는가와]\)|와\(과\)|\(으\)로")
    texts = [t for _, _, forms in messages(resource("i18n", "lucebox_ko.ts")) for t in forms]
    assert [text for text in texts if either.search(text)] == []


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_compiled_file_is_as_new_as_its_source(language: Language, name: str) -> None:
    language.apply(name)
    for context, source, texts in messages(resource("i18n", f"lucebox_{name}.ts")):
        if len(texts) == 1:
            said = QCoreApplication.translate(context, source, None, 2)
            assert said == re.sub("%L?n", "2", texts[0]), (context, source)


def test_plural_forms_of_english(language: Language) -> None:
    language.apply("en")
    many = [m for m in messages(resource("i18n", "lucebox_en.ts")) if len(m[2]) == 2]
    assert many
    context, source, forms = many[0]
    for count, form in ((1, forms[0]), (5, forms[1])):
        said = QCoreApplication.translate(context, source, None, count)
        assert said == form.replace("%n", str(count)) and "(s)" not in said


def test_expert_has_its_word(language: Language) -> None:
    language.apply("ko")
    assert QCoreApplication.translate("Rail", "Expert") == "고급"


def test_numbers_are_written_as_the_language_does(language: Language) -> None:
    language.apply("ko")
    assert QLocale().language() == QLocale.Language.Korean
    assert QLocale().toString(131072) == "131,072"
    language.apply("en")
    assert gigabytes(15.6 * 2**30) == "15.6 GB"


@pytest.mark.parametrize(
    ("tags", "name"),
    [(["ko-KR", "en"], "ko"), (["de-DE", "ko"], "ko"), (["fr-FR"], "en"), ([], "en")],
)
def test_the_system_decides(
    language: Language, monkeypatch: pytest.MonkeyPatch, tags: list[str], name: str
) -> None:
    monkeypatch.setattr(QLocale, "uiLanguages", lambda self, *a: tags)
    language.apply("system")
    assert language.name == name
