"""The set-up script's decisions; pip and venv themselves are replaced."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "installers" / "setup.py"


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, set on an empty checkout; `commands` holds what it would run."""
    spec = importlib.util.spec_from_file_location("lucebox_setup", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    venv = tmp_path / ".venv"
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", venv)
    monkeypatch.setattr(module, "STATE", venv / "lucebox-setup.json")
    monkeypatch.setattr(module, "LOG", venv / "lucebox-setup.log")
    monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    module.commands = []  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "run_logged", lambda command, why: module.commands.append(command))
    monkeypatch.setattr(module, "put_checkout_on_path", lambda: None)
    monkeypatch.setattr(module, "install_demo", lambda state, must: None)
    monkeypatch.setattr(module, "nvidia_answers", lambda: False)
    (tmp_path / "requirements").mkdir()
    for name in ("base", "dev", "cuda12"):
        (tmp_path / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
    return module


def installed(setup: ModuleType) -> list[str]:
    """Stems of the requirement files that were handed to pip."""
    return [Path(c[-1]).stem for c in setup.commands if "install" in c]


def test_the_first_run_makes_the_environment_and_the_second_does_nothing(setup: ModuleType) -> None:
    setup.set_up(dev=False)
    assert installed(setup) == ["base"]
    assert any("venv" in command for command in setup.commands)
    assert all("--require-hashes" in c for c in setup.commands if "install" in c)
    setup.commands.clear()
    setup.set_up(dev=False)
    assert setup.commands == []


def test_the_tests_add_their_own_requirements(setup: ModuleType) -> None:
    setup.set_up(dev=False)
    setup.commands.clear()
    setup.set_up(dev=True)
    assert installed(setup) == ["dev"]


def test_a_changed_lock_is_installed_again(setup: ModuleType) -> None:
    setup.set_up(dev=True)
    setup.commands.clear()
    setup.locked("base").write_text("base==2\n")
    setup.set_up(dev=True)
    assert installed(setup) == ["base"]
    assert len(setup.commands) == 1


def test_an_interrupted_set_up_starts_afresh(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(command: list[str], why: str) -> None:
        if "install" in command:
            raise KeyboardInterrupt
        setup.commands.append(command)

    with monkeypatch.context() as patch:
        patch.setattr(setup, "run_logged", stop)
        with pytest.raises(KeyboardInterrupt):
            setup.set_up(dev=False)
    leftover = setup.VENV / "half-installed"
    leftover.touch()
    setup.set_up(dev=False)
    assert not leftover.exists()
    assert setup.read_state()["complete"]


def test_a_sound_environment_made_by_hand_is_used(setup: ModuleType) -> None:
    setup.VENV.mkdir()
    (setup.VENV / "mine").touch()
    setup.set_up(dev=False)
    assert (setup.VENV / "mine").exists()
    assert not any("venv" in command for command in setup.commands)
    assert installed(setup) == ["base"]


def test_a_broken_environment_made_by_hand_is_kept_aside(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.VENV.mkdir()
    (setup.VENV / "mine").touch()
    monkeypatch.setattr(setup, "sound", lambda python: False)
    setup.set_up(dev=False)
    assert (setup.ROOT / ".venv.old1" / "mine").exists()
    assert any("venv" in command for command in setup.commands)


def test_another_python_in_the_environment_makes_it_anew(setup: ModuleType) -> None:
    setup.set_up(dev=False)
    state = setup.read_state()
    setup.write_state({**state, "python": "3.1"})
    setup.commands.clear()
    setup.set_up(dev=False)
    assert any("venv" in command for command in setup.commands)


def test_a_card_that_answers_brings_cuda(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(setup, "nvidia_answers", lambda: True)
    setup.set_up(dev=False)
    assert installed(setup) == ["cuda12"]


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"'])
def test_a_damaged_note_counts_as_none(setup: ModuleType, text: str) -> None:
    setup.VENV.mkdir()
    setup.STATE.write_text(text)
    assert setup.read_state() == {}


def test_a_failed_install_says_why_and_what_to_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "installers").mkdir(parents=True)
    (checkout / "installers" / "setup.py").write_bytes(SCRIPT.read_bytes())
    (checkout / "requirements").mkdir()
    wrong = "numpy @ file:///nowhere/numpy-1-py3-none-any.whl --hash=sha256:" + "0" * 64
    (checkout / "requirements" / "base.txt").write_text(wrong + "\n")
    (checkout / "requirements" / "cuda12.txt").write_text(wrong + "\n")
    script = str(checkout / "installers" / "setup.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert run.returncode == 1
    assert run.stdout == ""
    assert "Could not install the dependencies" in run.stderr
    assert "lucebox-setup.log" in run.stderr
    assert "Traceback" not in run.stderr
    state = json.loads((checkout / ".venv" / "lucebox-setup.json").read_text())
    assert not state["complete"]
