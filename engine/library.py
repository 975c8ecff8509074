"""The models on this PC: found in our folder and in those of other programs, all read in place."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import paths
from engine.config import AppSettings
from engine.copies import BIN, copy_in, discard, folder_problem, in_bin, move_to_bin, restore
from engine.entry import (
    CHAT,
    DRAFT,
    ELSEWHERE,
    LUCEBOX,
    PROJECTOR,
    Entry,
    from_facts,
    inspect,
    refuse_unless_chat_model,
)
from engine.errors import EngineError
from engine.files import write_atomically
from engine.gguf import part_of
from engine.stores import HUGGING_FACE, LM_STUDIO, OLLAMA, folders, ollama_models

__all__ = [
    "ELSEWHERE", "HUGGING_FACE", "LM_STUDIO", "LUCEBOX", "OLLAMA", "Dropped", "Entry", "copy_in",
    "discard", "folder_problem", "folders", "in_bin", "inspect", "move_to_bin", "pair",
    "refuse_unless_chat_model", "restore", "scan", "sort_dropped",
]  # fmt: skip

OnEntry = Callable[[Entry], None]

_CACHE_VERSION = 1
_CACHED_KINDS = (CHAT, PROJECTOR, DRAFT)
_MOST_DROPPED = 10_000
_HALF = (".part", ".partial", ".incomplete", ".crdownload", ".download", ".tmp", ".aria2", ".!qb")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".heic")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".onnx")
# Parts of a file name that say how a model is stored, not which one it is.
_STORAGE = re.compile(
    r"^(i?q\d\w*|tq\d\w*|b?f(p?16|32)|[mn][xv]fp4|ud|gguf|ggml|mmproj|proj|vision|model|draft|dflash|"
    r"eagle3?|mtp|assistant|[sml]|xs|xxs|nl|k|imat|i1)$"
)


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was dropped on the window: chat models, their helpers, and what is left out with the reason.

    `sources` are drafts as their makers publish them, which can be converted.
    """

    models: tuple[Entry, ...]
    companions: tuple[Entry, ...]
    ignored: tuple[tuple[Path, str], ...]
    sources: tuple[Path, ...] = ()


def scan(settings: AppSettings, on_entry: OnEntry, cancel: threading.Event | None = None) -> None:
    """Report every model in `folders(settings)`, each file once, as soon as it is found.

    Only headers are read, and those only of files that are new or changed. A model whose helpers turn up
    later in its folder is reported again with them. `cancel` stops it within one file.
    """
    stop = cancel or threading.Event()
    cache = _Cache(paths.cache_dir() / "library.json")
    seen: set[tuple[int, int]] = set()
    for source, root in folders(settings):
        if source == OLLAMA:
            _scan_ollama(root, cache, seen, on_entry, stop)
            continue
        for groups in _walk(root, seen, stop):
            _report(groups, source, root, cache, seen, on_entry, stop)
    for file in map(Path, settings.extra_model_dirs):
        if os.path.isfile(file) and not stop.is_set():
            _report([_siblings(file)], ELSEWHERE, file.parent, cache, seen, on_entry, stop)
    cache.save(prune=not stop.is_set())


def sort_dropped(dropped: Iterable[Path], cancel: threading.Event | None = None) -> Dropped:
    """Tell models from helpers from the rest among dropped files and folders; never raises.

    Folders are searched whole. A model gets the projectors and drafts that were dropped with it as
    `companions`.
    """
    stop = cancel or threading.Event()
    seen: set[tuple[int, int]] = set()
    entries: list[Entry] = []
    ignored: list[tuple[Path, str]] = []
    sources: list[Path] = []
    for path in map(Path, dropped):
        found: list[Entry] = []
        if os.path.isdir(path):
            for groups in _walk(path, seen, stop):
                found += [
                    inspect(group[0]) for group in groups[:_MOST_DROPPED] if _new(group[0], seen)
                ]
            if not found and _is_source(path):
                sources.append(path)
            elif not found:
                ignored.append((path, "There is no .gguf file in this folder."))
        elif _is_source(path):
            sources.append(path)
        elif reason := _why_ignored(path):
            ignored.append((path, reason))
        else:
            group = _siblings(path)
            found = [inspect(path)] if _new(group[0], seen) else []
        for entry in found:
            if entry.kind in _CACHED_KINDS:
                entries.append(entry)
            else:
                ignored.append((entry.path, entry.problem))
    paired = pair(entries, together=True)
    return Dropped(
        tuple(e for e in paired if e.kind == CHAT),
        tuple(e for e in paired if e.kind != CHAT),
        tuple(ignored),
        tuple(sources),
    )


def _is_source(path: Path) -> bool:
    if path.suffix.lower() == ".gguf":
        return False
    from engine.convert.make import is_published_draft  # loads much, and is asked for seldom

    return is_published_draft(path)


def pair(entries: Sequence[Entry], together: bool = False) -> list[Entry]:
    """The entries of one folder, chat models with the projectors and drafts that go with them.

    The names decide: a helper goes with a model whose name has all its words, and with the only model if
    they share a word or the helper's name says nothing; `together` means that the user put them so.
    """
    helpers = [(e, _words(e)) for e in entries if e.kind in (PROJECTOR, DRAFT)]
    families = {_words(e) for e in entries if e.kind == CHAT}
    out = []
    for entry in entries:
        if entry.kind == CHAT and not entry.companions:
            words, only = _words(entry), len(families) == 1
            own = tuple(
                helper.path
                for helper, its in helpers
                if (its and its <= words) or (only and (together or not its or its & words))
            )
            entry = replace(entry, companions=own)
        out.append(entry)
    return out


def _words(entry: Entry) -> frozenset[str]:
    """The words of a file name that tell which model it is."""
    part = part_of(entry.path.name)
    stem = (part[0] if part else entry.path.stem).lower()
    return frozenset(w for w in re.split(r"[^a-z0-9.]+", stem) if w and not _STORAGE.match(w))


def _report(
    groups: list[list[Path]],
    source: str,
    root: Path,
    cache: _Cache,
    seen: set[tuple[int, int]],
    on_entry: OnEntry,
    stop: threading.Event,
) -> None:
    """Report the models of one folder, then again those that have helpers in it."""
    entries = []
    for group in groups:
        if stop.is_set():
            return
        if _new(group[0], seen):
            entries.append(replace(cache.inspect(group), source=source, root=root))
            on_entry(entries[-1])
    for before, after in zip(entries, pair(entries), strict=True):
        if after is not before and after.companions:
            on_entry(after)


def _scan_ollama(
    root: Path, cache: _Cache, seen: set[tuple[int, int]], on_entry: OnEntry, stop: threading.Event
) -> None:
    for model in ollama_models(root):
        if stop.is_set():
            return
        for file in (model.weights, *model.projectors):
            if not _new(file, seen):
                continue
            entry = replace(cache.inspect([file]), name=model.name, source=OLLAMA, root=root)
            if file == model.weights:
                entry = replace(entry, companions=model.projectors)
            on_entry(entry)


def _walk(
    root: Path, seen: set[tuple[int, int]], stop: threading.Event
) -> Iterator[list[list[Path]]]:
    """Per folder below `root`, the models in it as groups of files (the parts of a set).

    Links are followed, but not upwards (a link to / would bring the whole disk), and no folder is
    entered twice.
    """
    home = Path(os.path.realpath(root))
    waiting = [root]
    while waiting and not stop.is_set():
        folder = waiting.pop()
        files: list[Path] = []
        inner: list[Path] = []
        try:
            if not _new(folder, seen):
                continue
            with os.scandir(folder) as items:
                # Real files before links, so that a link is the one that is left out.
                for item in sorted(
                    items, key=lambda i: (i.is_symlink(), i.name.casefold(), i.name)
                ):
                    if _is_folder(item):
                        upwards = item.is_symlink() and home.is_relative_to(os.path.realpath(item))
                        inner += [] if upwards else [Path(item.path)]
                    elif item.name.lower().endswith(".gguf") and not item.name.startswith("._"):
                        files.append(Path(item.path))
        except OSError:
            continue  # not ours to read
        waiting += reversed([p for p in inner if p.name != BIN and p.suffix != ".part"])
        if files:
            yield _groups(files)


def _is_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:
        return False


def _groups(files: list[Path]) -> list[list[Path]]:
    """Files of one folder, the parts of each split set together and in order."""
    groups: dict[tuple[str, int], list[Path]] = {}
    for file in files:
        part = part_of(file.name)
        key = (part[0].lower(), part[2]) if part else (file.name, 0)
        groups.setdefault(key, []).append(file)
    return [sorted(g, key=lambda p: p.name.lower()) if len(g) > 1 else g for g in groups.values()]


def _siblings(file: Path) -> list[Path]:
    """The parts that lie beside one part of a split set, or the file alone."""
    part = part_of(file.name)
    if part is None:
        return [file]
    try:
        beside = [p for p in file.parent.iterdir() if p.name.lower().endswith(".gguf")]
    except OSError:
        return [file]
    return next((group for group in _groups(beside) if file in group), [file])


def _new(path: Path, seen: set[tuple[int, int]]) -> bool:
    """Whether a file or folder was not seen before, by any of its names; notes it. False if gone."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    key = (status.st_dev, status.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _why_ignored(path: Path) -> str:
    """Why a dropped file is not looked into; "" if it may be a model."""
    name = path.name.lower()
    if not os.path.isfile(path):
        return "There is no such file."
    if name.endswith(".gguf"):
        return ""
    if name.endswith(_HALF):
        return "This download is not finished; only whole files can be used."
    if name.endswith(_PICTURES):
        return "This is a picture, not a model."
    if name.endswith(_WEIGHTS):
        return "These are weights in another format; get the model in GGUF format."
    try:
        with path.open("rb") as file:
            if file.read(4) == b"GGUF":
                return ""  # an Ollama blob, say
    except OSError as error:
        return f"The file cannot be read: {error.strerror or error}."
    return "This is not a model; models end in .gguf."


class _Cache:
    """What the headers of known files say, so that only new and changed files are read again.

    Damaged and unknown files are never kept: they are quick to read, and a newer version may know them.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._old: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["version"] == _CACHE_VERSION:
                self._old = dict(content["files"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass  # it can be made again

    def inspect(self, group: list[Path]) -> Entry:
        """As `inspect` of the group's first file."""
        key, stamp = str(group[0]), self._stamp(group)
        known = self._old.get(key)
        try:
            if isinstance(known, dict) and stamp and known["stamp"] == stamp:
                entry = from_facts(group[0], tuple(group), known["facts"])
                self._used[key] = known
                return entry
        except (KeyError, TypeError, ValueError, AttributeError):
            pass  # written by hand or by another version
        entry = inspect(group[0])
        if entry.kind in _CACHED_KINDS and entry.files == tuple(group):
            self._used[key] = {"stamp": stamp, "facts": entry.facts()}
        return entry

    def save(self, prune: bool) -> None:
        """Keep what this scan saw and, unless `prune`, what it did not get to."""
        files = self._used if prune else self._old | self._used
        if files == self._old:
            return
        try:
            text = json.dumps({"version": _CACHE_VERSION, "files": files}, ensure_ascii=True)
            write_atomically(self._file, text.encode())
        except (OSError, EngineError):
            pass  # the next scan is slower, nothing is lost

    @staticmethod
    def _stamp(group: list[Path]) -> list[list[Any]]:
        try:
            return [[p.name, (s := p.stat()).st_size, s.st_mtime_ns] for p in group]
        except OSError:
            return []
