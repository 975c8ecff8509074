"""How a GGUF file's vocabulary cuts text into ids: merges of bytes, of plain text, or SentencePiece's."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import tokenizers
from tokenizers import models, pre_tokenizers

from engine.errors import ModelFileError
from engine.gguf import meta_array, meta_bool, meta_int
from engine.markers import Markers
from engine.pretokenizers import Rule
from engine.remembered import Encode
from engine.sentencepiece import SPACE, GreedyMerges

KEY = "tokenizer.ggml."
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BETWEEN = re.compile("[a-z] [a-z]")


class TokenType(IntEnum):
    """The numbers of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def faulty(what: str) -> ModelFileError:
    """The error for a vocabulary that cannot be, and what to do."""
    return ModelFileError(
        f"{what}. The file is damaged or made by a faulty tool; get another version of the model."
    )


def special_id(meta: Mapping[str, Any], name: str, n_tokens: int) -> int | None:
    """The token that the file has under a name, None for none; `ModelFileError` outside the vocabulary."""
    token = meta_int(meta, KEY + name, -1)
    # Writers say "none" with the largest number of 32 bits.
    if token in (-1, 2**32 - 1):
        return None
    if not 0 <= token < n_tokens:
        raise faulty(f"{KEY}{name} is {token}, expected 0 to {n_tokens - 1}")
    return token


def byte_alphabet() -> list[str]:
    """The character that byte-level vocabularies write for each byte (GPT-2)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def byte_level(
    meta: Mapping[str, Any], tokens: list[str], types: list[int], rule: Rule, warnings: list[str]
) -> tuple[Encode, re.Pattern[str] | None]:
    """Merges of bytes (GPT-2), and where a text may be cut without changing its ids."""
    engine = _byte_pairs(meta, tokens, warnings, ignore_merges=rule.whole_words)
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(tokenizers.Regex(p), "isolated") for p in rule.patterns]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    visible = Markers(_visible(tokens, types))

    def merge(text: str) -> list[int]:
        [ids] = _encoded(engine, [text])
        return ids

    # Nearly all rules begin a word at a space between letters, whatever comes before and behind. (The sample
    # is joined here, since sentences in sources are collected for translation.)
    words = [place for _, place in engine.pre_tokenizer.pre_tokenize_str(" ".join(("ab", "cd")))]
    apart = words == [(0, 2), (2, 5)]
    apart = apart and not any(re.search("[a-z] ", text) for text in _visible(tokens, types))
    return lambda text, first: visible.encode(text, merge), _BETWEEN if apart else None


def spaced_merges(
    meta: Mapping[str, Any], tokens: list[str], types: list[int], warnings: list[str]
) -> Encode:
    """Merges on plain text whose spaces are written as `SPACE`, line by line, with byte fallback."""
    unknown = special_id(meta, "unknown_token_id", len(tokens))
    engine = _byte_pairs(
        meta, tokens, warnings, byte_fallback=True, fuse_unk=True,
        unk_token=None if unknown is None else tokens[unknown],
    )  # fmt: skip
    visible = Markers(_visible(tokens, types))
    # Merges need not make every run of line ends that is a token.
    runs = {text: token for token, text in enumerate(tokens) if not text.strip("\n")}

    def merge(text: str) -> list[int]:
        lines = re.findall(r"\n+|[^\n]+", text.replace(" ", SPACE))
        merged = iter(_encoded(engine, [line for line in lines if line not in runs]))
        ids: list[int] = []
        for line in lines:
            ids += [runs[line]] if line in runs else next(merged)
        return ids

    return lambda text, first: visible.encode(text, merge)


def sentencepiece(meta: Mapping[str, Any], tokens: list[str], types: list[int]) -> Encode:
    """Merges by score with byte fallback, as SentencePiece's BPE makes them."""
    scores = meta_array(meta, KEY + "scores", float, length=len(tokens))
    if not all(map(math.isfinite, scores)):
        raise faulty(f"{KEY}scores holds a number that is not finite")
    mergeable = (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)
    merges = GreedyMerges(
        {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind in mergeable},
        scores,
        frozenset(i for i, kind in enumerate(types) if kind == TokenType.UNUSED),
        _byte_ids(tokens, types),
        special_id(meta, "unknown_token_id", len(tokens)),
    )
    prefix = meta_bool(meta, KEY + "add_space_prefix", True)
    visible = Markers({t.replace(" ", SPACE): i for t, i in _visible(tokens, types).items()})

    def encode(text: str, first: bool) -> list[int]:
        text = text.replace(" ", SPACE)
        return visible.encode(SPACE + text if first and prefix else text, merges.encode)

    return encode


def _byte_pairs(
    meta: Mapping[str, Any], tokens: list[str], warnings: list[str], **options: Any
) -> tokenizers.Tokenizer:
    """The library's tokenizer with the file's vocabulary and merges.

    A merge of pieces that are no tokens, or that makes none, is left out with a warning: it can lead to no
    token, and the library panics at it.
    """
    vocab = {text: token for token, text in enumerate(tokens)}
    texts = meta_array(meta, KEY + "merges", str)
    merges = [*map(_cut, texts)]
    named = itertools.chain(itertools.chain.from_iterable(merges), map("".join, merges))
    if not all(map(vocab.__contains__, named)):
        if (
            half := next((t for t, m in zip(texts, merges, strict=True) if not m[1]), None)
        ) is not None:
            raise faulty(f"{KEY}merges holds {half[:80]!r}, expected two tokens")
        good = [m for m in merges if {*m, "".join(m)} <= vocab.keys()]
        bad = next(
            t for t, m in zip(texts, merges, strict=True) if not {*m, "".join(m)} <= vocab.keys()
        )
        warnings.append(
            f"{len(merges) - len(good):,} of {len(merges):,} merges name no tokens and are left out,"
            f" the first is {bad[:80]!r}; text may be cut in other places than the model expects."
        )
        merges = good
    return tokenizers.Tokenizer(models.BPE(vocab, merges, **options))


def _cut(merge: str) -> tuple[str, str]:
    # The first part may itself begin with a space. No token is empty, so "" is found out later.
    cut = merge.find(" ", 1)
    return (merge[:cut], merge[cut + 1 :]) if cut > 0 else (merge, "")


def _visible(tokens: list[str], types: list[int]) -> dict[str, int]:
    """User-defined tokens: found in any text as they stand, ahead of all merges."""
    return {
        text: token
        for token, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind == TokenType.USER_DEFINED
    }


def _encoded(engine: tokenizers.Tokenizer, texts: list[str]) -> list[list[int]]:
    """The ids of each text; unlike `encode` it lets other threads run meanwhile, and is faster."""
    return [found.ids for found in engine.encode_batch_fast(texts, add_special_tokens=False)]


def _byte_ids(tokens: Sequence[str], types: Sequence[int]) -> list[int] | None:
    """The ids of the 256 byte tokens in order of their bytes, None if there are none."""
    found: dict[int, int] = {}
    for token, (text, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind == TokenType.BYTE:
            match = BYTE_TOKEN.fullmatch(text)
            if not match:
                raise faulty(
                    f"{KEY}tokens has the byte token {text[:40]!r}, expected <0x00> to <0xFF>"
                )
            found[int(match[1], 16)] = token
    if found and len(found) != 256:
        raise faulty(f"{KEY}tokens has {len(found)} byte tokens, expected 256 or none")
    return [found[b] for b in range(256)] if found else None
