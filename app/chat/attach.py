"""Text files put into a message as quoted text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MAX_BYTES = 256 * 1024
_LANGUAGES = {
    "py": "python", "js": "javascript", "ts": "typescript", "md": "markdown", "sh": "bash", "yml": "yaml",
    "h": "c", "hpp": "cpp", "cc": "cpp", "rs": "rust", "kt": "kotlin", "cs": "csharp", "rb": "ruby",
}  # fmt: skip


class Refusal(StrEnum):
    """Why a file cannot be attached."""

    NOT_TEXT = "not text"
    NOT_UTF8 = "not utf-8"
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"
    EMPTY = "empty"


class Refused(Exception):
    """A file that cannot be attached; `detail` is a size in bytes or the system's reason."""

    def __init__(self, why: Refusal, detail: str = "") -> None:
        super().__init__(f"{why}: {detail}")
        self.why = why
        self.detail = detail


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file."""

    name: str
    text: str

    def quoted(self) -> str:
        """The name and the text in a fence that nothing in the text can close."""
        longest = max((len(m) for m in re.findall(r"^\s*(`+)", self.text, re.MULTILINE)), default=0)
        fence = "`" * max(3, longest + 1)
        ending = Path(self.name).suffix.lower().lstrip(".")
        language = _LANGUAGES.get(
            ending, ending if re.fullmatch(r"[a-z0-9+#-]{1,16}", ending) else ""
        )
        return f"{self.name}\n{fence}{language}\n{self.text.rstrip()}\n{fence}\n"


def read_text(path: Path) -> TextFile:
    """A file's text, UTF-8 or UTF-16 with its mark; raises `Refused` for anything else."""
    try:
        if not path.is_file():
            raise Refused(Refusal.NOT_TEXT)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        size = path.stat().st_size
    except OSError as error:
        raise Refused(Refusal.UNREADABLE, error.strerror or str(error)) from error
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    if not wide and b"\0" in data:
        raise Refused(Refusal.NOT_TEXT)
    if len(data) > MAX_BYTES:
        raise Refused(Refusal.TOO_LARGE, str(size))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(Refusal.NOT_TEXT if wide else Refusal.NOT_UTF8) from error
    if not text.strip():
        raise Refused(Refusal.EMPTY)
    return TextFile(path.name, text.replace("\r\n", "\n").replace("\r", "\n"))
