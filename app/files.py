"""Where the application's data files (tokens, icons, translations) are."""

from __future__ import annotations

from pathlib import Path


def resource(*parts: str) -> Path:
    """A file or folder under `resources/`, beside the packages."""
    return Path(__file__).resolve().parents[1].joinpath("resources", *parts)
