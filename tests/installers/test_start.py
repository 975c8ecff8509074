"""What starts the checkout on Windows does the same as what starts it on Linux."""

from __future__ import annotations

import errno
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.installers.test_setup import setup

__all__ = ["setup"]

ROOT = Path(__file__).parents[2]
BAT = (ROOT / "start.bat").read_text(encoding="ascii")
SHELL = (ROOT / "start").read_text() + (ROOT / "installers/linux/setup.sh").read_text()


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, pattern
    return match[1]


def test_both_prefer_the_same_pythons() -> None:
    assert found(r"in \((.*)\) do", BAT) == found(r"for version in (.*);", SHELL)
    limits = r"(\(3, 11\) <= .* <= \(3, 14\))"
    assert found(limits, BAT) == found(limits, SHELL)


def test_both_ask_a_python_for_the_same_modules() -> None:
    wanted = set(found(r"import (ctypes, .*)'", SHELL).split(", "))
    for line in re.findall(r'-c "import ([^";]*)', BAT):
        assert set(line.split(", ")) - {"sys"} == wanted


def test_both_say_what_is_missing_in_the_same_words() -> None:
    *others, last = sorted(found(r"for version in (.*);", SHELL).split())
    words = f"Python {', '.join(others)} or {last}"
    assert words in BAT and words in SHELL
    assert r"installers\setup.py" in BAT and "installers/setup.py" in SHELL
    note = '"complete": true'
    assert note in SHELL and note.replace('"', r"\"") in BAT


def test_both_end_in_the_command_with_all_arguments_and_its_exit_code() -> None:
    assert '-P -m engine.cli "$@"' in SHELL
    assert "-P -m engine.cli %*\nexit /b %errorlevel%" in BAT


def test_paths_with_spaces_are_in_quotes() -> None:
    for line in BAT.splitlines():
        outside = "".join(re.split(r'"[^"]*"', line))
        assert "%HERE%" not in outside and "%VENV_PYTHON%" not in outside, line


def test_every_place_to_go_to_is_there() -> None:
    wanted = set(re.findall(r"(?:goto|call) :?(\w+)", BAT))
    assert wanted == set(re.findall(r"^:(\w+)$", BAT, re.MULTILINE))


def test_a_second_set_up_on_windows_waits_as_long_as_it_takes(
    setup: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def locking(file: int, mode: int, count: int) -> None:
        asked.append(file)
        if len(asked) < 3:
            raise OSError(errno.EDEADLK, "Resource deadlock avoided")
        if len(asked) > 3:
            raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_LOCK=1))
    setup.wait_for_lock_on_windows(7)
    assert asked == [7, 7, 7]
    with pytest.raises(OSError, match="Permission"):
        setup.wait_for_lock_on_windows(7)
