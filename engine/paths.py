"""Where files of this application live on this PC; `platformdirs` decides per system."""

from __future__ import annotations

from pathlib import Path

import platformdirs

_APP = "lucebox"


def data_dir() -> Path:
    """Chats and models."""
    return Path(platformdirs.user_data_dir(_APP, appauthor=False))


def models_dir(chosen: str | None = None) -> Path:
    """The models folder: the user's choice, else inside the data folder."""
    return Path(chosen) if chosen else data_dir() / "models"


def cache_dir() -> Path:
    """Compiled kernels and other things that can be made again."""
    return Path(platformdirs.user_cache_dir(_APP, appauthor=False))


def conversations_dir() -> Path:
    """What models computed for conversations, encrypted, where the user wants it kept."""
    return cache_dir() / "conversations"


def log_dir() -> Path:
    """Rotating logs and crash reports."""
    return Path(platformdirs.user_log_dir(_APP, appauthor=False))


def settings_file() -> Path:
    """The one file of `AppSettings`."""
    return Path(platformdirs.user_config_dir(_APP, appauthor=False)) / "settings.json"


def resources_dir() -> Path:
    """Data that comes with the application: cards, icons, translations."""
    return Path(__file__).resolve().parent.parent / "resources"
