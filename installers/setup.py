"""Set up the checkout: `.venv`, the locked dependencies, the demo model. `./start` and `./test` run it.

Runs on the standard library alone, with the Python that the environment is to have, and with the
environment's own once that is complete. What is done is noted in `.venv/lucebox-setup.json`, so a second run
only compares hashes, and a run that was interrupted is made good by the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import getpass
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STATE = VENV / "lucebox-setup.json"
LOG = VENV / "lucebox-setup.log"
WINDOWS = os.name == "nt"
PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
OLDEST, NEWEST = (3, 11), (3, 14)
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


class SetupError(Exception):
    """Something the user has to know; the message says what to do."""


def say(text: str) -> None:
    """Tell the user; stdout belongs to the command that follows."""
    print(text, file=sys.stderr, flush=True)


def read_state() -> dict[str, Any]:
    """What earlier runs noted; empty when there is nothing sound."""
    try:
        state = json.loads(STATE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(state: dict[str, Any]) -> None:
    """Note `state` in one go, so that an interruption leaves the former note."""
    part = STATE.with_suffix(".part")
    part.write_text(json.dumps(state, indent=1), encoding="utf-8")
    part.replace(STATE)


def locked(name: str) -> Path:
    """A locked requirement file."""
    return ROOT / "requirements" / f"{name}.txt"


def fingerprint(name: str) -> str:
    """Changes when the locked file changes."""
    return hashlib.sha256(locked(name).read_bytes()).hexdigest()


def nvidia_answers() -> bool:
    """Whether the NVIDIA driver's own tool lists a card."""
    try:
        run = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0 and "GPU" in run.stdout


def wanted(dev: bool, state: dict[str, Any]) -> list[str]:
    """The requirement files that this run needs; `nvidia-smi` is asked only when it comes or goes."""
    driver = bool(shutil.which("nvidia-smi"))
    if driver != state.get("driver"):
        state["driver"] = driver
        state["cuda"] = driver and nvidia_answers()
    return ["cuda12" if state["cuda"] else "base"] + (["dev"] if dev else [])


def version() -> str:
    """Of the running Python, as far as installed packages depend on it."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def inside_environment(code: str) -> str:
    """What a line of Python prints in the environment."""
    return subprocess.check_output([str(PYTHON), "-c", code], text=True).strip()


def usable(state: dict[str, Any]) -> bool:
    """Whether the environment was completed, and its Python still runs and is the one noted."""
    if not state.get("complete"):
        return False
    if Path(sys.prefix).resolve() == VENV.resolve():
        return state.get("python") == version()
    try:
        return state.get("python") == inside_environment(VERSION)
    except (OSError, subprocess.CalledProcessError):
        return False


def up_to_date(names: list[str], state: dict[str, Any]) -> bool:
    """Whether nothing is left to install."""
    done = state.get("installed", {})
    return usable(state) and all(done.get(name) == fingerprint(name) for name in names)


def wait_for_lock_on_windows(file: int) -> None:
    """Lock a file; the system itself gives up after ten seconds, and an installation takes minutes."""
    import msvcrt

    while True:
        try:
            msvcrt.locking(file, msvcrt.LK_LOCK, 1)
            return
        except OSError as error:
            if error.errno != errno.EDEADLK:
                raise


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let a second set-up of the same checkout wait for the first."""
    place = hashlib.sha256(f"{getpass.getuser()} {ROOT}".encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"lucebox-setup-{place}.lock").open("a+b") as lock:
        if WINDOWS:
            wait_for_lock_on_windows(lock.fileno())
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sound(python: Path) -> bool:
    """Whether an environment that someone else made can be used: the right Python, and pip."""
    code = f"import sys, pip; sys.exit(not {OLDEST} <= sys.version_info[:2] <= {NEWEST})"
    try:
        return subprocess.run([str(python), "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def make_environment(state: dict[str, Any]) -> dict[str, Any]:
    """Have a sound `.venv`: keep a complete one, else make it with the running Python."""
    if usable(state):
        return state
    if os.path.lexists(VENV):
        if state.get("made_here"):
            say("The set-up was interrupted or broken; making it again.")
            shutil.rmtree(VENV)
        elif sound(PYTHON):
            say("Using the .venv that is here.")
            return {"made_here": False}
        else:
            old = next(p for n in range(1, 1000) if not (p := ROOT / f".venv.old{n}").exists())
            VENV.rename(old)
            (old / ".gitignore").write_text("*\n", encoding="utf-8")
            say(f"The .venv that was here does not work; it is now {old.name}.")
    say(f"Setting up in .venv with Python {version()}, once; this takes a minute or two.")
    VENV.mkdir()
    write_state({"made_here": True})
    base = getattr(sys, "_base_executable", None) or sys.executable
    run_logged([base, "-m", "venv", "--prompt", "lucebox", str(VENV)], "make the environment")
    return {"made_here": True}


def run_logged(command: list[str], purpose: str) -> None:
    """Run a step, keeping what it says in the log; raises `SetupError` with its last words."""
    environment = {**os.environ, "PIP_USER": "0", "PYTHONNOUSERSITE": "1"}
    counting = sys.stderr.isatty()
    said: list[str] = []
    with LOG.open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace", env=environment,
        )  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            log.write(line)
            said.append(line.strip())
            if counting and (line.startswith(("Collecting", "Installing collected"))):
                packages = sum(text.startswith("Collecting") for text in said)
                step = "downloading package" if line.startswith("Collecting") else "installing all"
                print(f"\r  {step} {packages} ", end="", file=sys.stderr, flush=True)
        process.wait()
    if counting:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
    if process.returncode:
        reason = next((text for text in said if text.startswith("ERROR: ")), (said or [""])[-1])
        if any(text.startswith("WARNING: Retrying") for text in said):
            reason = "the package registry could not be reached"
        raise SetupError(
            f"Could not {purpose}: {reason.removeprefix('ERROR: ') or 'no reason was given'}.\n"
            f"The whole report is in {LOG}. Check the connection and the free disk space, "
            "then run this again."
        )


def install(name: str) -> None:
    """Install one locked file; pip checks every hash."""
    count = sum("==" in line for line in locked(name).read_text(encoding="utf-8").splitlines())
    what = {"base": "", "dev": " for testing", "cuda12": " with NVIDIA support"}[name]
    say(f"Installing the dependencies{what} (up to {count} packages).")
    command = [
        str(PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check",
        "--progress-bar", "off", "--require-hashes", "--only-binary", ":all:",
        "--requirement", str(locked(name)),
    ]  # fmt: skip
    run_logged(command, "install the dependencies")


def packages() -> Path:
    """Where the environment keeps its packages."""
    return Path(inside_environment("import sysconfig; print(sysconfig.get_path('purelib'))"))


def unpack_qt_support() -> None:
    """Put the Python part of PySide6 into files, which start quicker than the archive in its library.

    That is what the switch is for; pip does not know these files, so a change of version makes them anew.
    """
    files = packages() / "shiboken6" / "files.dir"
    shutil.rmtree(files, ignore_errors=True)
    for embed in ("0", ""):  # the second run leaves them compiled
        subprocess.run(
            [str(PYTHON), "-c", "import PySide6.QtCore"],
            env={**os.environ, "SBK_EMBED": embed, "PYTHONDONTWRITEBYTECODE": ""},
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip


def put_checkout_on_path() -> None:
    """Let the environment import the checkout in place, wherever both are moved to together."""
    site = packages()
    way = os.path.relpath(ROOT, site)
    (site / "lucebox-checkout.pth").write_text(way + "\n", encoding="utf-8")


def install_demo(state: dict[str, Any], must: bool) -> None:
    """Install the demo model once; without `must` a failure is told and the start goes on."""
    if state.get("demo") and not must:
        return
    run = subprocess.run([str(PYTHON), "-P", "-m", "engine.demo"], stdin=subprocess.DEVNULL)
    if run.returncode and must:
        raise SetupError("The tests need the demo model.")
    if not state.get("demo"):
        state["demo"] = True
        write_state(state)


def set_up(dev: bool) -> None:
    """Do what is missing; quick when nothing is."""
    state = read_state()
    if not up_to_date(wanted(dev, state), state):
        with one_at_a_time():
            state = make_environment(read_state())
            for name in wanted(dev, state):
                done = state.setdefault("installed", {})
                if done.get(name) != fingerprint(name):
                    state["complete"] = False
                    write_state(state)
                    install(name)
                    unpack_qt_support()
                    done[name] = fingerprint(name)
            put_checkout_on_path()
            state["python"] = inside_environment(VERSION)
            state["complete"] = True
            write_state(state)
    install_demo(state, must=dev)


def main() -> int:
    """Parse the arguments and set up; 0, or 1 with a sentence on stderr."""
    parser = argparse.ArgumentParser(description="Set up the checkout.")
    parser.add_argument("--dev", action="store_true", help="also what the tests need")
    arguments = parser.parse_args()
    try:
        set_up(arguments.dev)
    except SetupError as error:
        say(str(error))
        return 1
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"The set-up failed: {error}. Correct this and run it again.")
        return 1
    except KeyboardInterrupt:
        say("\nStopped; the next run goes on from here.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
