"""Bring the translations up to date: `python resources/i18n/update.py` after strings changed.

Collects every string of `app/` and every title and help of `engine.config` into the .ts files, reports
what is not translated, and compiles the .qm files that the application loads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# English has only its plural forms in a file.
LANGUAGES = ("en", "ko")

sys.path.insert(0, str(ROOT))


def declared() -> list[str]:
    """Titles, helps, units and words of the settings, which forms translate in the context "Settings"."""
    from engine.config import AppSettings, EngineConfig, SamplingParams, settings_of

    infos = [
        i for c in (AppSettings, EngineConfig, SamplingParams) for i in settings_of(c).values()
    ]
    words = [w for i in infos for w in (i.title, i.help, i.unit, i.at_low) if w and w != "%"]
    return list(dict.fromkeys(words))


def collect(file: Path, language: str) -> None:
    """Update one .ts file from the sources; strings that are gone are dropped."""
    with tempfile.TemporaryDirectory() as folder:
        extra = Path(folder) / "declared.py"
        lines = [f"QCoreApplication.translate('Settings', {word!r})" for word in declared()]
        extra.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sources = sorted(str(p) for p in (ROOT / "app").rglob("*.py"))
        command = [_tool("lupdate"), "-no-obsolete", "-locations", "none", "-silent"]
        if language == "en":
            command.append("-pluralonly")
        subprocess.run(
            [*command, *sources, str(extra), "-target-language", language, "-ts", str(file)],
            check=True,
        )


def unfinished(file: Path) -> list[str]:
    """The strings of a .ts file that have no finished translation."""
    found = []
    for message in ET.parse(file).getroot().iter("message"):
        translation = message.find("translation")
        if translation is None or translation.get("type") == "unfinished":
            found.append(message.findtext("source", ""))
    return found


def _tool(name: str) -> str:
    beside = Path(sys.executable).with_name(f"pyside6-{name}")
    return str(beside) if beside.exists() else f"pyside6-{name}"


def main() -> int:
    """Update and compile every language; the exit code is 1 when something is not translated."""
    missing = 0
    for language in LANGUAGES:
        file = HERE / f"lucebox_{language}.ts"
        collect(file, language)
        for source in unfinished(file):
            missing += 1
            print(f"{language}: not translated: {source!r}", file=sys.stderr)
        out = str(file.with_suffix(".qm"))
        subprocess.run([_tool("lrelease"), "-silent", str(file), "-qm", out], check=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
