"""Opens the chat database, whatever state its file and folder are in."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.chat.schema import NewerVersion, migrate

KEEP_DELETED_S = 30 * 86400
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_FULL = {sqlite3.SQLITE_FULL}
_SUFFIXES = ("", "-wal", "-shm")


class ProblemKind(StrEnum):
    """What is wrong with the place where chats are kept."""

    DAMAGED = "damaged"
    UNWRITABLE = "unwritable"
    NEWER = "newer"
    FULL = "full"
    FAILED = "failed"
    SOLVED = "solved"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to tell the user: `path` is the database, `kept` where a damaged one was put."""

    kind: ProblemKind
    path: str
    detail: str = ""
    kept: str = ""


OnProblem = Callable[[Problem], None]


def kind_of(error: sqlite3.Error) -> ProblemKind:
    """The kind of a failure, from SQLite's own code."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return ProblemKind.DAMAGED
    return ProblemKind.FULL if code in _FULL else ProblemKind.FAILED


def open_database(path: Path | None, on_problem: OnProblem) -> sqlite3.Connection:
    """A usable connection in every case; what could not be had from the file is said once.

    A damaged file is renamed and a new one begun. A file that cannot be written, or is of a later
    version, stays as it is: what can be read of it is copied to memory, and new chats live there.
    """
    if path is None:
        return _prepared(_connect(":memory:"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _open_file(path)
    except NewerVersion as error:
        on_problem(Problem(ProblemKind.NEWER, str(path), str(error)))
        return _prepared(_connect(":memory:"))
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, sqlite3.Error) and kind_of(error) is ProblemKind.DAMAGED:
            return _replace(path, error, on_problem)
        on_problem(Problem(ProblemKind.UNWRITABLE, str(path), str(error)))
        return _copy_in_memory(path)


def set_aside(path: Path) -> Path:
    """Rename a database and its side files; raises OSError when the folder does not allow it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    n = 1
    while kept.exists():
        n += 1
        kept = path.with_name(f"{path.stem}.damaged-{stamp}-{n}{path.suffix}")
    for suffix in _SUFFIXES:
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(kept.with_name(kept.name + suffix))
    return kept


def _replace(path: Path, error: Exception, on_problem: OnProblem) -> sqlite3.Connection:
    try:
        kept = set_aside(path)
        db = _open_file(path)
    except (sqlite3.Error, OSError) as second:
        on_problem(Problem(ProblemKind.UNWRITABLE, str(path), f"{error}; {second}"))
        return _prepared(_connect(":memory:"))
    on_problem(Problem(ProblemKind.DAMAGED, str(path), str(error), str(kept)))
    return db


def _connect(target: str, uri: bool = False) -> sqlite3.Connection:
    # Autocommit: transactions are begun by name, so that a reader never holds one open.
    return sqlite3.connect(
        target, timeout=5, isolation_level=None, uri=uri, check_same_thread=False
    )


def _open_file(path: Path) -> sqlite3.Connection:
    # Chats are nobody else's; SQLite gives its side files the mode of the file.
    if not path.exists():
        path.touch(mode=0o600)
    with contextlib.suppress(OSError):
        path.chmod(path.stat().st_mode & 0o700)
    db = _connect(str(path))
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            error = sqlite3.DatabaseError(found)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        return _prepared(db)
    except BaseException:
        db.close()
        raise


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    """Migrate, mark answers that a crash cut off, index them, and drop chats deleted long ago."""
    migrate(db)
    db.execute("BEGIN IMMEDIATE")
    db.execute(
        "INSERT INTO message_text (rowid, text)"
        " SELECT seq, text FROM messages WHERE state = 'writing'"
        " AND seq NOT IN (SELECT rowid FROM message_text)"
    )
    db.execute("UPDATE messages SET state = 'interrupted' WHERE state = 'writing'")
    old = "(SELECT id FROM chats WHERE deleted < ?)"
    limit = (time.time() - KEEP_DELETED_S,)
    db.execute(
        "DELETE FROM message_text"
        f" WHERE rowid IN (SELECT seq FROM messages WHERE chat IN {old})", limit
    )  # fmt: skip
    db.execute(f"DELETE FROM messages WHERE chat IN {old}", limit)
    db.execute(f"DELETE FROM chat_title WHERE chat IN {old}", limit)
    db.execute("DELETE FROM chats WHERE deleted < ?", limit)
    db.execute("COMMIT")
    return db


def _copy_in_memory(path: Path) -> sqlite3.Connection:
    db = _connect(":memory:")
    try:
        log = path.with_name(path.name + "-wal")
        # immutable: no lock and no side file is made, which a folder without write rights refuses; but what
        # a crash or a full disk left in the log would not be read.
        how = "" if log.exists() and log.stat().st_size else "&immutable=1"
        source = _connect(f"{path.absolute().as_uri()}?mode=ro{how}", uri=True)
        try:
            source.backup(db)
            return _prepared(db)
        finally:
            source.close()
    except (sqlite3.Error, NewerVersion, OSError):
        db.close()
        return _prepared(_connect(":memory:"))
