"""Markdown: what it means, what it may never do, and the same pieces whole or word by word."""

from __future__ import annotations

import pytest

from app.chat.blocks import Blocks
from app.chat.markdown import Kind, Piece, clean, safe_link


def read(text: str, plain: bool = False) -> list[Piece]:
    blocks = Blocks(plain)
    blocks.update(text)
    return blocks.pieces


def links(text: str) -> list[str]:
    return [s.href for p in read(text) for s in p.spans if s.href]


SAMPLE = """# Title *x*

Hello **bold** `code` ~~old~~ [ok](https://example.com/a?b=1) http://bare.example/p, end
second line

1. one
2. two
   ```python
   print("hi")
   ```
   - nested
   - [x] task
3. three

> quote
> > deeper

| a | b |
|--:|:-:|
| 1 | **2** |

\\[
a_1 = b
- c
\\]

---
[ref]: https://example.org/somewhere
See [ref].

```js
let a = 1
"""


def test_pieces() -> None:
    pieces = read(SAMPLE)
    assert [p.kind for p in pieces] == [
        Kind.HEADING, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.CODE, Kind.TEXT, Kind.TEXT, Kind.TEXT,
        Kind.TEXT, Kind.TEXT, Kind.TABLE, Kind.TEXT, Kind.RULE, Kind.TEXT, Kind.CODE,
    ]  # fmt: skip
    assert [p.marker for p in pieces[2:8]] == ["1.", "2.", "", "◦", "☑", "3."]
    assert [p.depth for p in pieces[2:8]] == [1, 1, 1, 2, 2, 1]
    assert [p.quote for p in pieces[8:10]] == [1, 2]
    assert pieces[4].code == 'print("hi")'
    assert pieces[4].language == "python"
    assert pieces[10].text == "a\tb\n1\t2"
    assert pieces[10].align == ("right", "center")
    assert pieces[11].text == "\\[\na_1 = b\n- c\n\\]"
    assert pieces[13].spans[1].href == "https://example.org/somewhere"
    assert (pieces[14].language, pieces[14].code, pieces[14].closed) == ("js", "let a = 1", False)


def test_styles() -> None:
    spans = {s.text: s for s in read(SAMPLE)[1].spans}
    assert spans["bold"].bold
    assert spans["code"].code
    assert spans["old"].strike
    assert spans["ok"].href == "https://example.com/a?b=1"
    assert spans["http://bare.example/p"].href == "http://bare.example/p"
    assert "second line" in read(SAMPLE)[1].text.split("\n")


@pytest.mark.parametrize("step", [1, 3, 7, 50])
@pytest.mark.parametrize(
    "text",
    [
        SAMPLE,
        "- a\n- b\n\n  more of b\n- c\n" * 30,
        "<think> odd </think>\n\n* * *\n\ntext\n===\n\nmore",
        "```\nunclosed " * 40,
        "한국어 **굵게** 😀 `코드`\n\n" * 20,
        "word " * 4000,
    ],
)
def test_growing_text_gives_the_pieces_of_the_whole(text: str, step: int) -> None:
    if step < 50 and len(text) > 5000:
        step = 997
    blocks = Blocks()
    for end in range(0, len(text), step):
        before = list(blocks.pieces)
        first = blocks.update(text[:end])
        assert blocks.pieces[:first] == before[:first]
    blocks.update(text)
    assert blocks.pieces == read(text)


def test_another_text_starts_anew() -> None:
    blocks = Blocks()
    blocks.update("one\n\ntwo\n\nthree")
    blocks.update("# other")
    assert [p.text for p in blocks.pieces] == ["other"]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<div onclick='x'>\n\n**b**\n\n</div>",
        "<!-- comment -->",
        "<style>body{}</style>",
        "<iframe src='https://example.com'></iframe>",
        "&lt;b&gt; <b>",
    ],
)
def test_html_is_text(text: str) -> None:
    import html

    shown = "\n".join(p.text for p in read(text))
    for part in (
        "<script>",
        "<img src=x onerror=alert(1)>",
        "<div onclick='x'>",
        "<!-- comment -->",
        "<iframe",
    ):
        assert (part in shown) == (part in text)
    assert html.unescape(text).replace("**", "").replace("\n\n", "\n") == shown


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "data:text/html,x",
        "file:///etc/passwd", "vbscript:x", "steam://run/1", "//example.com", "/etc/passwd", "ms-word:x",
        "http:///nohost", "http://exa mple.com", "java\nscript:alert(1)", "qrc:/x", "", "#top",
    ],
)  # fmt: skip
def test_other_links_are_not_links(href: str) -> None:
    assert safe_link(href) == ""
    for text in (
        f"[x]({href})",
        f"[x](<{href}>)",
        f"<{href}>",
        f"![x]({href})",
        f"[x][r]\n\n[r]: {href}",
    ):
        assert [link for link in links(text) if not link.startswith("http://exa")] == []


@pytest.mark.parametrize(
    "href",
    [
        "https://example.com/a?b=c#d",
        "http://localhost:8080/",
        "mailto:someone@example.com",
        "HTTPS://E.com",
    ],
)
def test_safe_links(href: str) -> None:
    assert safe_link(href) == href


def test_images_become_words_and_a_link() -> None:
    (piece,) = read("![a chart](https://example.com/x.png)")
    assert piece.text == "a chart (https://example.com/x.png)"
    assert {s.href for s in piece.spans} == {"https://example.com/x.png"}
    (piece,) = read("![pixel](data:image/png;base64,AAAA)")
    assert "pixel" in piece.text
    assert links("![pixel](data:image/png;base64,AAAA)") == []


def test_nothing_that_is_written_is_dropped() -> None:
    for text in (">" * 60 + " deep", "- " * 60 + "deep", "[" * 500 + "x", "*a " * 3000, "\\[ open"):
        assert "".join(p.text for p in read(text)).strip()[-4:].strip() in text
        assert read(text)


def test_formulas_stay_as_written() -> None:
    spans = read(r"costs $5 and $6, but \(a_1 * b_2\) and $x_1$ and $$\sum_i *$$")[0].spans
    assert [s.text for s in spans if s.math] == [r"\(a_1 * b_2\)", "$x_1$", r"$$\sum_i *$$"]


def test_control_characters_cannot_turn_text_round() -> None:
    assert clean("a\u202eb\0c\r\nd") == "a\ufffdb\ufffdc\nd"
    assert "\u202e" not in read("`x\u202ey`")[0].text


def test_plain_text_is_shown_as_typed() -> None:
    pieces = read("# not a heading\n* a *\n  indented\n\n```py\n# code\n```\nafter <b>", plain=True)
    assert [(p.kind, p.text) for p in pieces] == [
        (Kind.TEXT, "# not a heading\n* a *\n  indented"),
        (Kind.CODE, "# code"),
        (Kind.TEXT, "after <b>"),
    ]
    assert read("```\nno end", plain=True)[0].closed is False


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, "*a " * 50_000, ">" * 50_000, "- item\n" * 20_000, "x" * 300_000,
        "```\n" + "line of code\n" * 20_000, "![" * 20_000, "_" * 50_000, "`" * 50_000, "$" * 50_000,
        "|a" * 20_000, "\\[" * 30_000, "&" * 50_000, "http://a" * 10_000, "(" * 50_000, "~" * 50_000,
        "<" * 50_000, "para\n\n" * 20_000,
    ],
)  # fmt: skip
def test_hostile_text_grows_without_hanging_and_without_loss(text: str) -> None:
    text = text[: len(text) // 4] + " end"
    blocks = Blocks()
    for end in range(1000, len(text) + 1000, 1000):
        blocks.update(text[:end])
        assert blocks.pieces
    last = blocks.pieces[-1]
    assert (last.text or last.language).endswith("end")
