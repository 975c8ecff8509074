"""Bring the translations up to date: `python resources/i18n/update.py` after strings changed.

Collects every string of `app/`, every title and help of `engine.config` and every sentence of `engine/`
into the .ts files, reports what is not translated, and compiles the files that the application loads.

The engine knows of no translation: it says English sentences with values in them. What it can say is read
from its sources, as templates such as "The file {0} is empty.", and `app.i18n.told` finds the template of
a finished sentence. So a new sentence needs no more than a translation of its template in the .ts files.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import PySide6

OLDEST = (6, 12)
"""Of PySide6: lupdate before it passes by plural forms whose number is no plain name."""

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# English has only its plural forms in a file.
LANGUAGES = ("en", "ko")

SENTENCES = HERE / "engine.json"
# These speak to a terminal, to HTTP clients or to the model, not to the user of the window.
ELSEWHERE = {
    "api", "convert/train", "toolcalls", "arguments.py", "bench.py", "cli.py", "command_line.py",
    "command_model.py", "commands.py", "connect.py", "daemon.py", "daemon_lines.py", "describe.py",
    "draft_cli.py", "draft_commands.py", "generating.py", "parser.py", "passes.py", "perplexity.py",
}  # fmt: skip
BUT_HERE = ("api/auth.py", "api/server.py")
PROSE = re.compile(r"[\w)}][,:;]? [a-z]|[a-z]{2} \{")  # two words, or a word beside a value
# What sentences hold that no prose tells: joints, words of one kind, and reasons of the system.
WORDS = (
    "{0}: {1}", "none", "gates", "nameless", "text", "No such file or directory", "Permission denied",
    "Operation not permitted", "No space left on device", "Read-only file system", "Is a directory",
    "Not a directory", "File exists", "File name too long", "Input/output error", "Device or resource busy",
    "Address already in use", "Cannot assign requested address", "Disk quota exceeded",
    "Too many open files", "Cannot allocate memory", "Stale file handle", "Invalid argument",
)  # fmt: skip

sys.path.insert(0, str(ROOT))


def declared() -> list[str]:
    """Titles, helps, units and words of the settings, which forms translate in the context "Settings"."""
    from engine.config import (
        AppSettings,
        DiskCacheConfig,
        EngineConfig,
        SamplingParams,
        settings_of,
    )

    classes = (AppSettings, DiskCacheConfig, EngineConfig, SamplingParams)
    infos = [i for c in classes for i in settings_of(c).values()]
    words = [w for i in infos for w in (i.title, i.help, i.unit, i.at_low) if w and w != "%"]
    return list(dict.fromkeys(words))


def sentences() -> list[str]:
    """What the engine can say in the window, its values as {0}, {1} and so on, sorted."""
    found = set(WORDS)
    for file in (ROOT / "engine").rglob("*.py"):
        name = file.relative_to(ROOT / "engine").as_posix()
        above = {parent.as_posix() for parent in Path(name).parents}
        if not ELSEWHERE & {name, *above} or name in BUT_HERE:
            found |= set(_said(ast.parse(file.read_text(encoding="utf-8"))))
    return sorted(found)


def _said(node: ast.AST) -> Iterator[str]:
    """The prose in a piece of source, also inside of the values of other prose."""
    match node:
        case ast.Assert() | ast.Expr(value=ast.Constant()):
            return  # our own invariants; docstrings
        case ast.Call(func=ast.Attribute(attr="info" | "warning" | "error" | "exception")):
            return  # the log stays English
        case ast.Call(func=ast.Name(id="setting")):
            return  # declared
        case ast.FunctionDef(name="text"):
            return  # a report to copy
        case ast.Assign(targets=[ast.Name(id="PROMPTS" | "QUESTIONS")]):
            return  # said to a model
    parts = _parts(node)
    template = "".join("{}" if isinstance(p, ast.AST) else p for p in parts).strip()
    if PROSE.search(template) and "{%" not in template:
        numbers = itertools.count()
        pieces = (f"{{{next(numbers)}}}" if isinstance(p, ast.AST) else p for p in parts)
        yield "".join(pieces).strip()
    for inner in [p for p in parts if isinstance(p, ast.AST)] or ast.iter_child_nodes(node):
        yield from _said(inner)


def _parts(node: ast.AST) -> list[str | ast.AST]:
    """A text's literal pieces and the values between them; empty for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return [p for v in values for p in (_parts(v) or [v])]
        case ast.FormattedValue(value=value):
            return [value]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            before, after = _parts(left), _parts(right)
            if before or after:
                return [*(before or [left]), *(after or [right])]
    return []


def collect(file: Path, language: str) -> None:
    """Update one .ts file from the sources; strings that are gone are dropped."""
    with tempfile.TemporaryDirectory() as folder:
        extra = Path(folder) / "declared.py"
        lines = [f"QCoreApplication.translate('Settings', {word!r})" for word in declared()]
        lines += [f"QCoreApplication.translate('Engine', {text!r})" for text in sentences()]
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
    if PySide6.__version_info__ < OLDEST:
        sys.exit(
            f"PySide6 {PySide6.__version__} would lose strings; expected 6.12, which needs Python 3.12."
        )
    missing = 0
    SENTENCES.write_text(json.dumps(sentences(), indent=0) + "\n", encoding="utf-8")
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
