"""What all tests share: Qt without a screen, and user folders of their own."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from engine import demo, keyring_store
from tests.ring import Ring

FIXTURES = Path(__file__).parent / "fixtures"

_FOLDERS = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_DEMO = pytest.StashKey[Path | None]()
_HOME = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Put the user's folders out of reach, where tests run: several processes inherit what the first has."""
    config.stash[_DEMO] = demo.path()
    if config.getoption("numprocesses", None):
        return
    home = config.stash[_HOME] = Path(tempfile.mkdtemp(prefix="lucebox-tests-"))
    for name in _FOLDERS:
        os.environ[name] = str(home / name.lower())
    # Compiled kernels stay from run to run. A test that scans for models sets a folder of its own.
    os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parent.parent / ".pytest_cache" / "user")
    os.environ["HOME"] = os.environ["USERPROFILE"] = str(home)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folders that this run made."""
    if _HOME in config.stash:
        shutil.rmtree(config.stash[_HOME], ignore_errors=True)


@pytest.fixture(autouse=True)
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fresh data, settings and log folders for each test; returns their parent."""
    home = tmp_path / "user"
    for name in _FOLDERS:
        monkeypatch.setenv(name, str(home / name.lower()))
    return home


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of small test files."""
    return FIXTURES


@pytest.fixture(scope="session")
def installed_demo(pytestconfig: pytest.Config) -> Path | None:
    """The demo model's file where the user has it."""
    return pytestconfig.stash[_DEMO]


@pytest.fixture(scope="session")
def demo_model(installed_demo: Path | None) -> Path:
    """The demo model's file, which `./test` installs."""
    assert installed_demo, "The demo model is missing; ./test installs it."
    return installed_demo


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    """An empty keyring in the place of the system's."""
    made = Ring()
    monkeypatch.setattr(keyring_store, "_keyring", lambda: made)
    return made
