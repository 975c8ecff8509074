"""Writing files so that neither a crash nor a full disk leaves half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data` whole, or leave it as it was; makes the folder. `OSError` on failure.

    A link is kept: the file that it points to is replaced.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data, lasting=True)
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes, lasting: bool) -> None:
    """As `write_atomically` in a folder that is there, but a link itself is replaced.

    Without `lasting` a power cut may leave a damaged file, and the disk is not waited for.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut, where the system can."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def rename_new(source: Path, target: Path) -> None:
    """Rename a file, never over another one: `FileExistsError` if `target` is there."""
    if os.name != "nt":  # Windows' rename refuses by itself
        try:
            if source.is_symlink():
                raise OSError  # a hard link would be to what it points to
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:  # no hard links on this file system
            if os.path.lexists(target):
                raise FileExistsError(str(target)) from None
        else:
            os.unlink(source)
            return
    os.rename(source, target)
