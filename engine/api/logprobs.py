"""Log-probabilities of tokens in the forms of OpenAI's dialects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.tokenizer import Tokenizer

LEAST = -9999.0
"""Stands for minus infinity, which JSON cannot say."""

Row = Mapping[str, Any]
"""One token as chat completions tell it: token, logprob, bytes, top_logprobs."""


def row(tokenizer: Tokenizer, token: int, logprob: float, top: Iterable[tuple[int, float]]) -> Row:
    """A token with its alternatives; `bytes` are its own, also where they are half a character."""
    return {
        **_entry(tokenizer, token, logprob),
        "top_logprobs": [_entry(tokenizer, other, value) for other, value in top],
    }


def of_chat(rows: Sequence[Row]) -> dict[str, Any]:
    """`choices[].logprobs` of chat completions."""
    return {"content": list(rows), "refusal": None}


def of_text(rows: Sequence[Row], offset: int) -> dict[str, Any]:
    """`choices[].logprobs` of text completions; `offset` characters of text come before."""
    offsets = []
    for one in rows:
        offsets.append(offset)
        offset += len(one["token"])
    return {
        "tokens": [one["token"] for one in rows],
        "token_logprobs": [one["logprob"] for one in rows],
        "top_logprobs": [
            {other["token"]: other["logprob"] for other in one["top_logprobs"]} for one in rows
        ],
        "text_offset": offsets,
    }


def _entry(tokenizer: Tokenizer, token: int, logprob: float) -> dict[str, Any]:
    data = tokenizer.token_bytes(token)
    return {
        "token": data.decode("utf-8", "replace"),
        "logprob": max(LEAST, logprob),
        "bytes": list(data),
    }
