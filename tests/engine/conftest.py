"""The `lucebox` command, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.cli import main


@dataclass(frozen=True)
class Result:
    """One run: exit code, data and talk."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; a traceback on stderr is never right."""

    def go(*arguments: str | Path) -> Result:
        code = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Result(code, out, err)

    return go


@pytest.fixture
def ids_file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a text into an ids file."""

    def write(text: str) -> Path:
        path = tmp_path / "ids.json"
        path.write_text(text, encoding="utf-8")
        return path

    return write
