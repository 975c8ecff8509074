"""Models into our folder and out of it again: checked copies, and a bin that can be undone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.entry import BROKEN, LUCEBOX, Entry
from engine.errors import BadRequest, EngineError, LoadCancelled
from engine.files import rename_new, sync_folder, write_atomically
from engine.gguf import part_of
from engine.placement import size_text

BIN = ".lucebox-bin"
_ORIGIN = "origin.json"
_CHUNK = 8 << 20
_STALE_S = 86_400
_SPARE = 256 << 20  # left free on the disk, for the rest of the system

OnProgress = Callable[[int, int], None]


def copy_in(
    entry: Entry,
    models_dir: Path,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> Path:
    """Copy a model with its companions into the models folder; the path of the copy's first file.

    Bytes go to `.part` files, are read back and compared by hash, and get their names only when all are
    right; a model of several files gets a folder. No file is ever overwritten: an equal copy that is
    there already is used, another file of the same name gives the copy a number. `on_progress` gets bytes
    done and in all, reading back included. Raises `EngineError` for a full disk or a folder that cannot
    be written, `LoadCancelled` when `cancel` is set; either way nothing is left behind.
    """
    report = on_progress or (lambda done, total: None)
    stop = cancel or threading.Event()
    if entry.kind == BROKEN:
        raise BadRequest(f"A damaged file is not copied. {entry.problem}")
    if _is_inside(entry.path, models_dir):
        return entry.path
    names = _names(entry)
    try:
        total = sum(source.stat().st_size for source in names)
        models_dir.mkdir(parents=True, exist_ok=True)
        present = _equal_copy(names, _stem(entry), models_dir, stop)
        if present:
            report(1, 1)
            return present
        _check_space(total, models_dir)
        with _scratch(models_dir) as work:
            done = 0
            for source, name in names.items():
                done = _copy(source, work / name, done, 2 * total, report, stop)
            return _place(work, _stem(entry), list(names.values()), models_dir)
    except OSError as error:
        raise EngineError(
            f"{entry.name} could not be copied to {models_dir}: {error.strerror or error}. "
            "Choose another models folder, or use the file where it is."
        ) from error


def folder_problem(folder: Path) -> str | None:
    """Why nothing can be kept in `folder`, found by writing there; None if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror or error}), so nothing is kept there."
    return None


@dataclass(frozen=True, slots=True)
class Binned:
    """A model in the bin: `name` to be shown, its `slot` (a folder), first file's former `path`, bytes."""

    name: str
    slot: Path
    path: Path
    size: int


def move_to_bin(entry: Entry) -> Binned:
    """Take a model out of our folder, undoably: its files move to the bin inside that folder.

    `restore` brings it back; `discard` frees the space, which the window does when its offer to undo
    ends. What is left after a crash stays in the bin until the user empties it. `BadRequest` for
    models of other programs, `EngineError` for one that is in use; then nothing has moved.
    """
    if entry.source != LUCEBOX or not _is_inside(entry.path, entry.root):
        raise BadRequest(
            f"{entry.name} is not in Lucebox's models folder ({entry.path.parent}), so it is not "
            f"removed here. Delete it in {entry.source if entry.source != 'Elsewhere' else 'its folder'}."
        )
    root = entry.root.resolve()
    slot = root / BIN / f"{time.time_ns():x}"
    files = [
        (file.parent.resolve() / file.name).relative_to(root).as_posix() for file in entry.files
    ]
    try:
        slot.mkdir(parents=True)
        origin = {"name": entry.name, "root": str(root), "files": files}
        write_atomically(slot / _ORIGIN, json.dumps(origin).encode())
        _move_all([(root / f, slot / Path(f).name) for f in files])
    except OSError as error:
        shutil.rmtree(slot, ignore_errors=True)
        raise EngineError(
            f"{entry.name} could not be moved to the bin: {error.strerror or error}. "
            "If it is loaded, unload it first."
        ) from error
    _remove_empty((root / files[0]).parent, root)
    return Binned(entry.name, slot, entry.path, entry.size)


def restore(binned: Binned) -> Path:
    """Bring a model back from the bin; its first file's path, numbered if the name is taken now."""
    try:
        origin = json.loads((binned.slot / _ORIGIN).read_text(encoding="utf-8"))
        root = Path(origin["root"])
        moves = [(binned.slot / Path(f).name, root / f) for f in origin["files"]]
        if any(target.exists() for _, target in moves):
            folder = _free_name(root, binned.path.stem)
            moves = [(source, folder / target.name) for source, target in moves]
        for folder in {target.parent for _, target in moves}:
            folder.mkdir(parents=True, exist_ok=True)
        _move_all(moves)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"{binned.name} could not be brought back: {error}. Its files are in {binned.slot}."
        ) from error
    shutil.rmtree(binned.slot, ignore_errors=True)
    _remove_empty(binned.slot.parent, root)
    return moves[0][1]


def discard(binned: Binned) -> None:
    """Delete a binned model for good."""
    if binned.slot.parent.name != BIN:
        raise BadRequest(f"{binned.slot} is not in the bin.")
    shutil.rmtree(binned.slot, ignore_errors=True)
    _remove_empty(binned.slot.parent, binned.slot.parent.parent)


def in_bin(models_dir: Path) -> tuple[Binned, ...]:
    """The models in the bin of a folder, oldest first."""
    found = []
    for file in sorted((models_dir / BIN).glob(f"*/{_ORIGIN}")):
        try:
            origin = json.loads(file.read_text(encoding="utf-8"))
            first = Path(origin["root"]) / origin["files"][0]
            size = sum(p.stat().st_size for p in file.parent.iterdir() if p != file)
            found.append(Binned(str(origin["name"]), file.parent, first, size))
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            continue
    return tuple(found)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a file's own place (not that of what it links to) is below a folder."""
    return path.parent.resolve().is_relative_to(folder.resolve())


def _stem(entry: Entry) -> str:
    """The file name without ending and part number; an Ollama blob has none, so its model's name."""
    part = part_of(entry.path.name)
    if part:
        return part[0]
    if entry.path.name.lower().endswith(".gguf"):
        return entry.path.stem
    return re.sub(r"[^\w.-]+", "-", entry.name).strip(".-") or "model"


def _names(entry: Entry) -> dict[Path, str]:
    """What to copy, and the name that each file gets; no two names are equal."""
    names: dict[Path, str] = {}
    for file in (*entry.files, *(c for c in entry.companions if os.path.isfile(c))):
        name = file.name
        if not name.lower().endswith(".gguf"):
            name = f"{'' if file in entry.files else 'mmproj-'}{_stem(entry)}.gguf"
        while name.lower() in (taken.lower() for taken in names.values()):
            name = f"_{name}"
        names[file] = name
    return names


def _free_name(folder: Path, stem: str, ending: str = "") -> Path:
    """`stem`, or the first of "stem (2)", "stem (3)", ... that is not taken."""
    path, n = folder / f"{stem}{ending}", 1
    while path.exists():
        n += 1
        path = folder / f"{stem} ({n}){ending}"
    return path


def _check_space(need: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if need + _SPARE > free:
        raise EngineError(
            f"The copy needs {size_text(need)} and {folder} has {size_text(free)} free. Free "
            f"{size_text(need + _SPARE - free)}, choose another models folder, or use the file where it is."
        )


@contextlib.contextmanager
def _scratch(models_dir: Path) -> Iterator[Path]:
    """A folder for `.part` files on the same disk, gone afterwards; those of a crash go first."""
    for old in models_dir.glob(".copy-*.part"):
        if time.time() - old.stat().st_mtime > _STALE_S:
            shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=".copy-", suffix=".part", dir=models_dir))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copy(
    source: Path, target: Path, done: int, total: int, report: OnProgress, stop: threading.Event
) -> int:
    """Copy to `target`.part, read it back, compare; returns `done` with both passes added."""
    part = target.with_name(f"{target.name}.part")
    digests = []
    size = source.stat().st_size
    with open(source, "rb") as reader, open(part, "wb") as writer:
        digest = hashlib.sha256()
        for block in _blocks(reader, stop):
            writer.write(block)
            digest.update(block)
            done += len(block)
            report(min(done, total), total)
            if writer.tell() > size:
                break  # it may grow as fast as it is read
        digests.append(digest.hexdigest())
        writer.flush()
        os.fsync(writer.fileno())
        if writer.tell() != size:
            raise EngineError(
                f"{source.name} had {size:,} bytes and {writer.tell():,} were read: the file changed "
                "while it was copied. Try again when it is complete."
            )
    with open(part, "rb") as reader:
        digest = hashlib.sha256()
        for block in _blocks(reader, stop):
            digest.update(block)
            done += len(block)
            report(min(done, total), total)
        digests.append(digest.hexdigest())
    if digests[0] != digests[1]:
        raise EngineError(
            f"The copy of {source.name} differs from the original when read back; the disk may be "
            "failing. Use the file where it is, or copy it to another disk."
        )
    os.rename(part, target)
    return done


def _blocks(file: BinaryIO, stop: threading.Event) -> Iterator[bytes]:
    while block := file.read(_CHUNK):
        if stop.is_set():
            raise LoadCancelled("The copy was stopped.")
        yield block


def _place(work: Path, stem: str, names: list[str], models_dir: Path) -> Path:
    """Give the finished copies their names: a file, or a folder of files."""
    while True:
        try:
            if len(names) == 1:
                target = _free_name(models_dir, stem, Path(names[0]).suffix)
                rename_new(work / names[0], target)
            else:
                folder = _free_name(models_dir, stem)
                os.mkdir(folder)
                _move_all([(work / name, folder / name) for name in names])
                target = folder / names[0]
        except FileExistsError:
            continue  # taken in this very moment: the next number
        sync_folder(target.parent)
        sync_folder(models_dir)
        return target


def _equal_copy(
    names: dict[Path, str], stem: str, models_dir: Path, stop: threading.Event
) -> Path | None:
    """A copy of the same bytes that is there already under the name it would get."""
    folder = models_dir if len(names) == 1 else models_dir / stem
    pairs = [(source, folder / name) for source, name in names.items()]
    for source, there in pairs:
        if not there.is_file() or there.stat().st_size != source.stat().st_size:
            return None
    for source, there in pairs:
        with open(source, "rb") as a, open(there, "rb") as b:
            if any(block != b.read(len(block)) for block in _blocks(a, stop)):
                return None
    return pairs[0][1]


def _move_all(moves: list[tuple[Path, Path]]) -> None:
    """Rename all files, or none: those that were renamed go back when one fails."""
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            rename_new(source, target)
            done.append((source, target))
    except OSError:
        for source, target in reversed(done):
            with contextlib.suppress(OSError):
                rename_new(target, source)
        raise


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove folders that a move has emptied, up to `root`, which stays."""
    while folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
