"""Text files as quoted text; all others are refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.chat.attach import MAX_BYTES, Refusal, Refused, TextFile, read_text
from app.chat.blocks import Blocks
from app.chat.markdown import Kind


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "заметка 메모.py"
    path.write_bytes("x = '메모'\r\ny = 1\r\n".encode(encoding))
    file = read_text(path)
    assert file == TextFile("заметка 메모.py", "x = '메모'\ny = 1\n")
    assert file.quoted() == "заметка 메모.py\n```python\nx = '메모'\ny = 1\n```\n"


def test_a_fence_inside_cannot_end_the_quote() -> None:
    quoted = TextFile("a.md", "before\n````\ninside\n````\nafter").quoted()
    blocks = Blocks(plain=True)
    blocks.update(quoted)
    assert [p.kind for p in blocks.pieces] == [Kind.TEXT, Kind.CODE]
    assert blocks.pieces[1].code == "before\n````\ninside\n````\nafter"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x89PNG\r\n\0\0", Refusal.NOT_TEXT),
        (b"\xff\xfe\x00", Refusal.NOT_TEXT),
        (b"caf\xe9", Refusal.NOT_UTF8),
        (b"x" * (MAX_BYTES + 1), Refusal.TOO_LARGE),
        (b"", Refusal.EMPTY),
        (b" \n", Refusal.EMPTY),
    ],
)
def test_others_are_refused(tmp_path: Path, data: bytes, why: Refusal) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(data)
    with pytest.raises(Refused) as caught:
        read_text(path)
    assert caught.value.why is why


def test_missing_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.txt"):
        with pytest.raises(Refused):
            read_text(path)
