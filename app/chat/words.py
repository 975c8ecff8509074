"""Sentences about what went wrong, in the user's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLocale

from app.chat.attach import Refusal, Refused
from app.chat.database import Problem, ProblemKind
from app.i18n import told


def number(value: int) -> str:
    """A whole number as the language writes it."""
    return QLocale().toString(value)


def size(value: int) -> str:
    """A size in bytes as the language writes it."""
    return QLocale().formattedDataSize(value, 1, QLocale.DataSizeFormat.DataSizeTraditionalFormat)


def problem_text(problem: Problem) -> str:
    """What is wrong with the place where chats are kept, and what that means."""
    translate = QCoreApplication.translate
    texts = {
        ProblemKind.DAMAGED: translate(
            "chat",
            "The file with your chats was damaged. It is kept as {kept}, and a new one was begun.",
        ),
        ProblemKind.UNWRITABLE: translate(
            "chat",
            "Chats cannot be saved in {path}: {detail}. New messages stay in memory until the window closes; "
            "export what you want to keep.",
        ),
        ProblemKind.NEWER: translate(
            "chat",
            "The chats in {path} are of a later version of this application and were left as they are. "
            "New messages stay in memory until the window closes.",
        ),
        ProblemKind.FULL: translate(
            "chat",
            "The disk is full, so chats cannot be saved in {path}. Nothing is lost while the window is open; "
            "saving is tried again every few seconds.",
        ),
    }
    other = translate(
        "chat",
        "Chats cannot be saved in {path}: {detail}. Nothing is lost while the window is open; "
        "saving is tried again every few seconds.",
    )
    text = texts.get(problem.kind, other)
    return text.format(path=problem.path, detail=told(problem.detail), kept=problem.kept)


def refusal_text(name: str, refused: Refused, most: int) -> str:
    """Why a file was not attached."""
    translate = QCoreApplication.translate
    if refused.why is Refusal.TOO_LARGE:
        text = translate(
            "chat", "{name} is too large: found {size}, at most {most} can be attached."
        )
        return text.format(name=name, size=size(int(refused.detail)), most=size(most))
    texts = {
        Refusal.NOT_TEXT: translate(
            "chat", "{name} is not a text file. Only text can be attached."
        ),
        Refusal.NOT_UTF8: translate(
            "chat", "{name} is not written in UTF-8. Save it in this encoding and attach it again."
        ),
        Refusal.EMPTY: translate("chat", "{name} is empty."),
        Refusal.UNREADABLE: translate("chat", "{name} cannot be read: {detail}."),
    }
    return texts[refused.why].format(name=name, detail=told(refused.detail))
