"""Keeps chats in SQLite on a thread of its own, so that nothing on the caller's thread waits for a disk."""

from __future__ import annotations

import atexit
import dataclasses
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from app.chat.database import OnProblem, Problem, ProblemKind, kind_of, open_database, set_aside
from app.chat.search import Hit, condition, normal, snippet, terms_of
from app.chat.tree import Chat, ChatInfo, Message, Role, State

RETRY_S = 5.0
MAX_HITS = 200
# Problems that go away by themselves.
_PASSING = {ProblemKind.FULL, ProblemKind.FAILED}
_CHAT = tuple(f.name for f in dataclasses.fields(ChatInfo))
_MESSAGE = tuple(f.name for f in dataclasses.fields(Message))

Work = Callable[[sqlite3.Connection], Any]


class _Job(NamedTuple):
    work: Work
    future: Future[Any] | None  # None for a write


class ChatStore:
    """Chats and messages. Reads return futures; writes are queued, retried, and never raise.

    A write of the same thing replaces the one still waiting, so a slow disk cannot pile up work.
    Problems are reported on the store's thread, each kind once until it is solved.
    """

    def __init__(self, path: Path | None, on_problem: OnProblem = lambda problem: None) -> None:
        self.path = path
        self._on_problem = on_problem
        self._jobs: dict[Any, _Job] = {}
        self._wake = threading.Condition()
        self._closing = False
        self._retry_at = 0.0
        self._told: set[ProblemKind] = set()
        self._searches = 0
        self._thread = threading.Thread(target=self._run, name="chat store", daemon=True)
        self._thread.start()
        # The thread would be gone with the process, and with it what is still queued.
        atexit.register(self.close)

    # What callers ask for; each copies what it is given, so the caller may go on changing it.

    def chats(self) -> Future[list[ChatInfo]]:
        """All chats that are not deleted, last changed first."""
        return self._read(_chats)

    def load(self, chat_id: str) -> Future[Chat | None]:
        """One chat with its messages; None if there is none of this id."""
        return self._read(lambda db: _load(db, chat_id))

    def search(self, query: str) -> Future[list[Hit]]:
        """Where all words of `query` occur, newest first; a later search empties one still waiting."""
        self._searches += 1
        mine = self._searches
        return self._read(lambda db: _search(db, query) if mine == self._searches else [])

    def memo(self, key: str) -> Future[str]:
        """A small text kept under a name, "" if none."""
        return self._read(lambda db: _memo(db, key))

    def save_chat(self, info: ChatInfo) -> None:
        """Insert or update a chat; its messages are saved by `save_message`."""
        row = dataclasses.replace(info, sampling=dict(info.sampling))
        self._write(("chat", info.id), lambda db: _save_chat(db, row))

    def save_message(self, message: Message) -> None:
        """Insert or update a message."""
        row = dataclasses.replace(message, usage=dict(message.usage))
        self._write(("message", message.id), lambda db: _save_message(db, row))

    def save_memo(self, key: str, value: str) -> None:
        """Keep a small text under a name."""
        statement = "INSERT OR REPLACE INTO memo VALUES (?, ?)"
        self._write(("memo", key), lambda db: db.execute(statement, (key, value)))

    def delete_chat(self, chat_id: str) -> None:
        """Hide a chat; it is dropped for good at a start 30 days later."""
        self._mark(chat_id, time.time())

    def restore_chat(self, chat_id: str) -> None:
        """Undo `delete_chat`."""
        self._mark(chat_id, None)

    def flush(self) -> Future[int]:
        """Done when all that was queued before was tried; the number of writes still to be saved."""
        return self._read(lambda db: self.unsaved)

    @property
    def unsaved(self) -> int:
        """How many writes are still to be made."""
        return sum(job.future is None for job in list(self._jobs.values()))

    def close(self, timeout: float = 5.0) -> int:
        """Save what is queued and stop; the number of writes that could not be saved."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout)
        atexit.unregister(self.close)
        return self.unsaved

    # The thread.

    def _mark(self, chat_id: str, deleted: float | None) -> None:
        statement = "UPDATE chats SET deleted = ? WHERE id = ?"
        self._write(("deleted", chat_id), lambda db: db.execute(statement, (deleted, chat_id)))

    def _read(self, work: Work) -> Future[Any]:
        future: Future[Any] = Future()
        self._put(future, _Job(work, future))
        return future

    def _write(self, key: Any, work: Work) -> None:
        self._put(key, _Job(work, None))

    def _put(self, key: Any, job: _Job) -> None:
        with self._wake:
            if self._closing and job.future is not None:
                job.future.set_exception(RuntimeError("The chat store is closed."))
                return
            self._jobs[key] = job
            self._wake.notify()

    def _run(self) -> None:
        self._db = open_database(self.path, self._tell)
        while (taken := self._take()) is not None:
            key, job = taken
            if job.future is None:
                if not self._try_write(key, job) and self._closing:
                    break
            elif job.future.set_running_or_notify_cancel():
                try:
                    job.future.set_result(self._attempt(job.work))
                except Exception as error:
                    job.future.set_exception(error)
        self._db.close()
        for job in list(self._jobs.values()):
            if job.future is not None:
                job.future.cancel()

    def _take(self) -> tuple[Any, _Job] | None:
        """The next job; while writes wait for a full disk, only reads are taken. None at the end."""
        with self._wake:
            while True:
                wait = 0.0 if self._closing else self._retry_at - time.monotonic()
                for key, job in self._jobs.items():
                    if job.future is not None or wait <= 0:
                        del self._jobs[key]
                        return key, job
                if self._closing:
                    return None
                self._wake.wait(wait if self._jobs else None)

    def _try_write(self, key: Any, job: _Job) -> bool:
        try:
            self._attempt(job.work, write=True)
        except Exception as error:
            kind = kind_of(error) if isinstance(error, sqlite3.Error) else ProblemKind.FAILED
            with self._wake:
                # Back to the front, unless newer content of the same thing is already waiting.
                self._jobs = {key: self._jobs.pop(key, job), **self._jobs}
                self._retry_at = time.monotonic() + RETRY_S
            self._tell(Problem(kind, str(self.path), str(error)))
            return False
        self._retry_at = 0.0
        if self._told & _PASSING:
            self._told -= _PASSING
            self._on_problem(Problem(ProblemKind.SOLVED, str(self.path)))
        return True

    def _attempt(self, work: Work, write: bool = False) -> Any:
        """Run `work`; a database found damaged on the way is set aside and a new one used."""
        try:
            return _transact(self._db, work) if write else work(self._db)
        except sqlite3.Error as error:
            if kind_of(error) is not ProblemKind.DAMAGED or self.path is None:
                raise
            self._db.close()
            try:
                kept = str(set_aside(self.path))
            except OSError as second:
                kept = ""
                self._db = open_database(None, self._tell)
                self._tell(Problem(ProblemKind.UNWRITABLE, str(self.path), f"{error}; {second}"))
            else:
                self._db = open_database(self.path, self._tell)
                self._tell(Problem(ProblemKind.DAMAGED, str(self.path), str(error), kept))
            return _transact(self._db, work) if write else work(self._db)

    def _tell(self, problem: Problem) -> None:
        if problem.kind not in self._told:
            self._told.add(problem.kind)
            self._on_problem(problem)


def _transact(db: sqlite3.Connection, work: Work) -> Any:
    db.execute("BEGIN IMMEDIATE")
    try:
        result = work(db)
        db.execute("COMMIT")
        return result
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _upsert(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(columns)
    marks = ", ".join(f":{c}" for c in columns)
    changes = ", ".join(f"{c} = excluded.{c}" for c in columns if c != "id")
    return (
        f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {changes}"
    )


def _save_chat(db: sqlite3.Connection, info: ChatInfo) -> None:
    values = dataclasses.asdict(info)
    values["sampling"] = json.dumps(info.sampling)
    db.execute(_upsert("chats", _CHAT), values)
    db.execute("DELETE FROM chat_title WHERE chat = ?", (info.id,))
    db.execute("INSERT INTO chat_title (title, chat) VALUES (?, ?)", (normal(info.title), info.id))


def _save_message(db: sqlite3.Connection, message: Message) -> None:
    values = dataclasses.asdict(message)
    values["usage"] = json.dumps(message.usage)
    values["text"] = message.text.encode("utf-8", "replace").decode()
    db.execute(_upsert("messages", _MESSAGE), values)
    if message.state is State.WRITING:
        return
    (seq,) = db.execute("SELECT seq FROM messages WHERE id = ?", (message.id,)).fetchone()
    db.execute("DELETE FROM message_text WHERE rowid = ?", (seq,))
    db.execute(
        "INSERT INTO message_text (rowid, text) VALUES (?, ?)", (seq, normal(values["text"]))
    )


def _chats(db: sqlite3.Connection) -> list[ChatInfo]:
    rows = db.execute(
        f"SELECT {', '.join(_CHAT)} FROM chats WHERE deleted IS NULL ORDER BY updated DESC"
    )
    return [_chat(row) for row in rows]


def _chat(row: tuple[Any, ...]) -> ChatInfo:
    values = dict(zip(_CHAT, row, strict=True))
    values["pinned"] = bool(values["pinned"])
    values["sampling"] = json.loads(values["sampling"])
    return ChatInfo(**values)


def _load(db: sqlite3.Connection, chat_id: str) -> Chat | None:
    row = db.execute(f"SELECT {', '.join(_CHAT)} FROM chats WHERE id = ?", (chat_id,)).fetchone()
    if row is None:
        return None
    rows = db.execute(
        f"SELECT {', '.join(_MESSAGE)} FROM messages WHERE chat = ? ORDER BY seq", (chat_id,)
    )
    return Chat(_chat(row), [_message(r) for r in rows])


def _message(row: tuple[Any, ...]) -> Message:
    values = dict(zip(_MESSAGE, row, strict=True))
    values["role"] = Role(values["role"])
    values["state"] = State(values["state"])
    values["usage"] = json.loads(values["usage"])
    return Message(**values)


def _memo(db: sqlite3.Connection, key: str) -> str:
    row = db.execute("SELECT value FROM memo WHERE key = ?", (key,)).fetchone()
    return row[0] if row else ""


def _search(db: sqlite3.Connection, query: str) -> list[Hit]:
    terms = terms_of(query)
    where, values = condition(terms, "t.title", "chat_title")
    titles = db.execute(
        "SELECT c.id, NULL, t.title FROM chat_title t JOIN chats c ON c.id = t.chat"
        f" WHERE {where} AND c.deleted IS NULL ORDER BY c.updated DESC LIMIT {MAX_HITS}", values
    ).fetchall()  # fmt: skip
    where, values = condition(terms, "t.text", "message_text")
    texts = db.execute(
        "SELECT m.chat, m.id, t.text FROM message_text t JOIN messages m ON m.seq = t.rowid"
        " JOIN chats c ON c.id = m.chat"
        f" WHERE {where} AND c.deleted IS NULL ORDER BY m.created DESC LIMIT {MAX_HITS}", values
    ).fetchall()  # fmt: skip
    return [Hit(chat, message, *snippet(text, terms)) for chat, message, text in titles + texts]
