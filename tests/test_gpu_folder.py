"""How the tests in tests/gpu are run, which no machine without a card collects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = """
from tests.gpu import conftest
from tests.gpu.conftest import limited, pytest_collection_modifyitems, pytest_configure, whole_card

conftest.LIMIT_S = 1
"""
TESTS = """
import time

import pytest

def test_shares(): pass

def test_takes_all(whole_card): pass

@pytest.mark.alone
def test_is_timed(): pass

def test_hangs(): time.sleep(60)
"""


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "xdist", "-q"]
    root, command = Path(__file__).parent.parent, [*command, str(folder), *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)


def test_who_needs_a_card_for_himself_runs_alone(tmp_path: Path) -> None:
    alone = pytest_in(tmp_path, "--collect-only", "-m", "alone").stdout
    assert "test_takes_all" in alone and "test_is_timed" in alone and "2/4" in alone


def test_a_hang_names_its_test(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, "-m", "not alone")
    assert done.returncode and "in test_hangs" in done.stderr, done.stdout + done.stderr
    done = pytest_in(tmp_path, "-m", "not alone", "-n", "1")
    assert "test_it.py::test_hangs" in done.stdout and "1 passed" in done.stdout, done.stdout
