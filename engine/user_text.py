"""Text and JSON that a user gives: read, or refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import BadRequest


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without the mark that some editors begin it with; raises `BadRequest`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror or error}.") from error
    return decoded(data, str(path))


def decoded(data: bytes, name: str) -> str:
    """UTF-8 as text; `name` is what it is called in the error, a `BadRequest`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"{name} is not UTF-8 text (byte {error.start:,}). Convert it to UTF-8."
        ) from error


def parsed(text: str, name: str) -> Any:
    """The JSON value of a text; `name` is what it is called in the error, a `BadRequest`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequest(f"{name} is not JSON: {error}.") from error
    except RecursionError as error:
        raise BadRequest(f"{name} is nested too deeply; expected fewer levels.") from error
    except ValueError as error:
        raise BadRequest(f"{name} holds a number of too many digits.") from error
