"""The chat database: its tables, and the steps from each older version to today's."""

from __future__ import annotations

import sqlite3

_V1 = (
    """CREATE TABLE chats (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, pinned INTEGER NOT NULL, system_prompt TEXT NOT NULL,
        model TEXT NOT NULL, model_name TEXT NOT NULL, sampling TEXT NOT NULL, leaf TEXT,
        draft TEXT NOT NULL, n_messages INTEGER NOT NULL, created REAL NOT NULL, updated REAL NOT NULL,
        deleted REAL)""",
    """CREATE TABLE messages (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, chat TEXT NOT NULL, parent TEXT,
        role TEXT NOT NULL, text TEXT NOT NULL, state TEXT NOT NULL, model TEXT NOT NULL,
        error TEXT NOT NULL, error_kind TEXT NOT NULL, usage TEXT NOT NULL, created REAL NOT NULL)""",
    "CREATE INDEX messages_of_chat ON messages (chat, seq)",
    "CREATE TABLE memo (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE VIRTUAL TABLE message_text USING fts5 (text, tokenize = 'trigram')",
    "CREATE VIRTUAL TABLE chat_title USING fts5 (title, chat UNINDEXED, tokenize = 'trigram')",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_V1,)
VERSION = len(MIGRATIONS)


class NewerVersion(Exception):
    """The database was written by a later version of this application."""


def migrate(db: sqlite3.Connection) -> None:
    """Bring a database to today's version, each step in one transaction of its own."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        raise NewerVersion(f"found version {found}, expected at most {VERSION}")
    for version in range(found, VERSION):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in MIGRATIONS[version]:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {version + 1}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise
