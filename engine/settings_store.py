"""The settings file: read with every fault repaired and reported, written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import shutil
import typing
from pathlib import Path
from typing import Any

from engine import paths
from engine.config import AppSettings, SamplingParams, settings_of
from engine.errors import BadRequest, EngineError
from engine.files import write_atomically

_MOST = 16 << 20


def load() -> tuple[AppSettings, str | None]:
    """The saved settings, and a sentence on what had to be replaced by defaults, or None.

    Never raises and never writes; `save` keeps a damaged file as `settings.json.bad`.
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
        return AppSettings(), (
            f"The settings in {path} are damaged ({error}); the defaults are used. The old file is kept "
            "beside the new one when settings are saved."
        )
    values, bad = _checked_all(content)
    problem = f"Some settings were replaced by their defaults. {' '.join(bad)}" if bad else None
    return AppSettings(**values), problem


def save(settings: AppSettings, path: Path | None = None) -> None:
    """Write the settings to `path`, else to the user's file; `EngineError` if they cannot be written.

    Keys of other versions stay. The file is replaced whole, so a crash leaves either the old or the new
    one. A file with values that `load` had to replace is kept beside it.
    """
    path = path or paths.settings_file()
    try:
        try:
            content = _read(path)
            if _checked_all(content)[1]:
                _keep_bad(path)
        except FileNotFoundError:
            content = {}
        except (ValueError, RecursionError):
            _keep_bad(path)
            content = {}
        content |= dataclasses.asdict(settings)
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EngineError(
            f"The settings cannot be saved in {path}: {reason}. They hold until the application closes."
        ) from error


def _read(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST:
        raise ValueError(f"found more than {_MOST:,} bytes")
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict):
        raise ValueError(f"found {type(content).__name__}, expected an object")
    return content


def _keep_bad(path: Path) -> str | None:
    """Copy a damaged file under the first free name, so that nothing of it is lost."""
    for n in range(1, 100):
        kept = path.with_name(f"{path.name}.bad" if n == 1 else f"{path.name}.bad{n}")
        if not kept.exists():
            try:
                shutil.copy2(path, kept)
            except OSError:
                return None
            return kept.name
    return None


def _checked_all(content: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The values that are sound, by field, and a sentence on each that is not."""
    hints = typing.get_type_hints(AppSettings)
    values: dict[str, Any] = {}
    bad: list[str] = []
    for name, info in settings_of(AppSettings).items():
        if name not in content:
            continue
        value = content[name]
        try:
            if not _fits(value, hints[name]):
                raise BadRequest(f"{info.title}: found {str(value)[:60]!r} of the wrong kind.")
            if name == "sampling":
                value = {
                    model: chosen for model, chosen in value.items() if _sound(model, chosen, bad)
                }
            AppSettings(**{name: value})  # raises for a value outside its bounds
        except BadRequest as error:
            bad.append(str(error))
        else:
            values[name] = value
    return values, bad


def _sound(model: str, chosen: dict[str, Any], bad: list[str]) -> bool:
    """Whether the sampling choices for one model pass the checks of `SamplingParams`."""
    known = settings_of(SamplingParams)
    hints = typing.get_type_hints(SamplingParams)
    try:
        SamplingParams(**{key: value for key, value in chosen.items() if key in known})
        wrong = [key for key in chosen if key in known and not _fits(chosen[key], hints[key])]
    except (BadRequest, TypeError) as error:
        bad.append(f"Sampling of {model}: {error}")
        return False
    if wrong:
        bad.append(f"Sampling of {model}: {', '.join(wrong)} of the wrong kind.")
    return not wrong


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
