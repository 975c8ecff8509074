"""The version of this application."""

from __future__ import annotations

import functools
from pathlib import Path


@functools.cache
def version() -> str:
    """The installed version; a checkout that is used in place says so."""
    import importlib.metadata

    try:
        return importlib.metadata.version("lucebox")
    except importlib.metadata.PackageNotFoundError:
        return f"{_checkout_version()} (checkout)"


def _checkout_version() -> str:
    import tomllib

    file = Path(__file__).resolve().parent.parent / "pyproject.toml"
    try:
        return str(tomllib.loads(file.read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, ValueError, KeyError):
        return "unknown"
