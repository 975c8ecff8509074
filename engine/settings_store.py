"""The settings file: read with every fault repaired and reported, written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
import typing
from pathlib import Path
from typing import Any

from engine import paths
from engine.config import AppSettings, SamplingParams
from engine.errors import BadRequest, EngineError
from engine.files import write_atomically

_MOST = 16 << 20


def load() -> tuple[AppSettings, str | None]:
    """The saved settings, and a sentence on what had to be replaced by defaults, or None.

    Never raises. A file that is not JSON is kept beside the new one as `settings.json.bad`.
    """
    path = paths.settings_file()
    try:
        content = _read(path)
    except FileNotFoundError:
        return AppSettings(), None
    except OSError as error:
        return AppSettings(), (
            f"The settings in {path} cannot be read ({error.strerror or error}); the defaults are used "
            "and changes may be lost."
        )
    except (ValueError, RecursionError) as error:
        kept = _keep_bad(path)
        return AppSettings(), (
            f"The settings in {path} are damaged ({error}); the defaults are used. "
            + (
                f"The old file is kept as {kept}."
                if kept
                else "The old file could not be set aside."
            )
        )
    values: dict[str, Any] = {}
    bad: list[str] = []
    for field in dataclasses.fields(AppSettings):
        if field.name not in content:
            continue
        try:
            values[field.name] = _checked(field, content[field.name])
        except BadRequest as error:
            bad.append(str(error))
    problem = f"Some settings were replaced by their defaults. {' '.join(bad)}" if bad else None
    return AppSettings(**values), problem


def save(settings: AppSettings) -> None:
    """Write the settings; keys of other versions stay. `EngineError` if they cannot be written.

    The file is replaced whole, so a crash leaves either the old or the new one.
    """
    path = paths.settings_file()
    try:
        try:
            content = _read(path)
        except FileNotFoundError:
            content = {}
        except (ValueError, RecursionError):
            _keep_bad(path)
            content = {}
        content |= dataclasses.asdict(settings)
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise EngineError(
            f"The settings cannot be saved in {path}: {error.strerror or error}. They hold until the "
            "application closes."
        ) from error


def _read(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST:
        raise ValueError(f"found more than {_MOST:,} bytes")
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict):
        raise ValueError(f"found {type(content).__name__}, expected an object")
    return content


def _keep_bad(path: Path) -> str | None:
    """Set a damaged file aside under the first free name, so that nothing of it is lost."""
    for n in range(1, 100):
        kept = path.with_name(f"{path.name}.bad" if n == 1 else f"{path.name}.bad{n}")
        if not kept.exists():
            try:
                os.rename(path, kept)
            except OSError:
                return None
            return kept.name
    return None


def _checked(field: dataclasses.Field[Any], value: Any) -> Any:
    """A value of the right type and within its bounds, or `BadRequest`."""
    hints = typing.get_type_hints(AppSettings)
    if not _fits(value, hints[field.name]):
        title = field.metadata["info"].title if "info" in field.metadata else field.name
        raise BadRequest(f"{title}: found {str(value)[:60]!r}, which is not of the expected kind.")
    if field.name == "sampling":
        return {model: _sampling(model, chosen) for model, chosen in value.items()}
    AppSettings(**{field.name: value})  # raises for a value outside its bounds
    return value


def _sampling(model: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """The sampling choices for one model, checked as `SamplingParams` checks them; other keys stay."""
    known = {f.name for f in dataclasses.fields(SamplingParams) if "info" in f.metadata}
    try:
        SamplingParams(**{key: value for key, value in chosen.items() if key in known})
    except (BadRequest, TypeError) as error:
        raise BadRequest(f"Sampling of {model}: {error}") from error
    return chosen


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value is of a type like `str | None`, `list[str]` or `dict[str, dict[str, Any]]`."""
    if hint is Any:
        return True
    kind = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if kind is list:
        return isinstance(value, list) and all(_fits(item, inner[0]) for item in value)
    if kind is dict:
        return isinstance(value, dict) and all(_fits(item, inner[1]) for item in value.values())
    if inner:  # a union
        return any(_fits(value, one) for one in inner)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint
