"""Rules that hold for the whole tree."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("app", "engine", "kernels", "resources", "installers", "tests", "requirements")
LONGEST = {".py": 500, ".sh": 500, ".cu": 600, ".cuh": 600}


def sources(*rooms: str, suffix: str = "") -> list[Path]:
    """Files of the tree without what runs leave behind."""
    files = [path for room in rooms for path in (ROOT / room).rglob(f"*{suffix}")]
    return sorted(p for p in files if p.is_file() and "__pycache__" not in p.parts)


def imports(path: Path) -> Iterator[str]:
    """Names of the modules that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(
    ("room", "banned", "excepted"),
    [
        ("kernels", {"engine", "app", "PySide6", "pyqtgraph"}, set()),
        ("engine", {"PySide6", "pyqtgraph", "tests"}, set()),
        # Opening the window is one of the commands.
        ("engine", {"app"}, {"engine/cli.py"}),
        ("app", {"numba", "cupy", "kernels", "tests"}, set()),
    ],
)
def test_rooms_import_only_what_they_may(room: str, banned: set[str], excepted: set[str]) -> None:
    found = {
        f"{name} imports {module}"
        for path in sources(room, suffix=".py")
        if (name := path.relative_to(ROOT).as_posix()) not in excepted
        for module in imports(path)
        if module.split(".")[0] in banned
    }
    assert not found


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh Python has after running `code`."""
    show = f"{code}\nimport sys; print(*{{n.split('.')[0] for n in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-c", show], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_importing_the_engine_is_light() -> None:
    assert not loaded_by("import engine") & {"PySide6", "cupy", "numba", "app"}


def test_the_window_waits_for_nothing_heavy() -> None:
    assert not loaded_by("import app.main, app.window") & {
        "numpy", "numba", "pyqtgraph", "pygments", "markdown_it", "jinja2", "tokenizers", "sqlite3",
    }  # fmt: skip


def test_no_engine_module_brings_qt() -> None:
    names = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts)
        for p in sources("engine", suffix=".py")
        # Training needs PyTorch, which is an extra.
        if p.name != "__init__.py" and p.parent.name != "train"
    ]
    code = "\n".join(f"import {name}" for name in names)
    assert not loaded_by(code) & {"PySide6", "shiboken6", "cupy", "app"}


def test_files_stay_short() -> None:
    long = {
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in sources("app", "engine", "kernels", "installers", "tests")
        if path.suffix in LONGEST
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST[path.suffix]
    }
    assert not long


def test_no_file_names_a_registry_or_a_machine() -> None:
    # Put together here, so that this file does not name them either.
    hosts = [["pypi", "org"], ["pythonhosted", "org"], ["npmjs", "org"], ["deb.debian", "org"]]
    words = [".".join(host) for host in hosts] + [f"/{top}/" for top in ("work", "root")]
    pattern = re.compile("|".join(map(re.escape, words)))
    texts = [*sources(*ROOMS), *(p for p in ROOT.iterdir() if p.is_file()), ROOT / ".ci" / "run"]
    found = set()
    for path in texts:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if match := pattern.search(text):
            found.add(f"{path.relative_to(ROOT)}: {match[0]}")
    assert not found


def requirements(path: Path) -> dict[str, list[str]]:
    """Requirement lines of a locked file and their hashes."""
    joined = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return {line.split(" --hash")[0].strip(): re.findall(r"--hash=(\S+)", line) for line in lines}


LOCKED = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("path", [*LOCKED, ROOT / "resources/demo.txt"], ids=lambda p: p.stem)
def test_requirements_are_pinned_hashed_and_free_of_hosts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|--(extra-)?index|--find-links|@ ", text)
    found = requirements(path)
    assert found
    for line, hashes in found.items():
        assert "==" in line
        assert hashes
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes)


def test_every_extra_is_locked_on_the_same_base() -> None:
    assert {p.stem for p in LOCKED} == {"base", "cuda12", "cuda13", "rocm", "dev"}
    base = set(requirements(ROOT / "requirements/base.txt"))
    pins = {line.split(";")[0].strip() for line in base}
    for path in LOCKED:
        assert pins <= {line.split(";")[0].strip() for line in requirements(path)}


def test_the_base_install_has_neither_cupy_nor_torch() -> None:
    names = {line.split("==")[0] for line in requirements(ROOT / "requirements/base.txt")}
    assert not {name for name in names if name.startswith(("cupy", "torch", "nvidia-cuda"))}


def test_qt_is_pinned_below_its_fault_on_python_3_11() -> None:
    lines = [x for x in requirements(ROOT / "requirements/base.txt") if x.startswith("pyside6")]
    old = [x for x in lines if "python_full_version < '3.12'" in x]
    new = [x for x in lines if "python_full_version >= '3.12'" in x]
    assert len(lines) == 2
    assert old[0].startswith("pyside6-essentials==6.11.3")
    assert new[0].startswith("pyside6-essentials==6.12.")


def test_qt_gives_back_every_reference_of_none() -> None:
    # In a process of its own: what other tests left running counts references too.
    code = """
import sys
from PySide6.QtWidgets import QApplication, QWidget
app = QApplication([])
widget = QWidget()
before = sys.getrefcount(None)
for _ in range(500):
    widget.setEnabled(True)
sys.exit(sys.getrefcount(None) <= before - 250)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
@pytest.mark.parametrize("script", ["start", "test", "installers/linux/setup.sh", ".ci/run"])
def test_scripts_parse_and_can_be_run(script: str) -> None:
    path = ROOT / script
    shell = "bash" if "bash" in path.read_text(encoding="utf-8").splitlines()[0] else "sh"
    run = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert os.access(path, os.X_OK)


def test_the_windows_script_has_windows_line_ends() -> None:
    data = (ROOT / "start.bat").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 10


def test_fixtures_stay_small() -> None:
    assert sum(p.stat().st_size for p in sources("tests/fixtures")) < 36_000_000


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_no_tracked_file_is_large() -> None:
    run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if run.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in run.stdout.decode().split("\0") if name]
    assert not {p.name for p in files if p.exists() and p.stat().st_size > 12_000_000}
