"""Log-probabilities of tokens in the forms of OpenAI's dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.types import TokenLogprob

LEAST = -9999.0
"""Stands for minus infinity, which JSON cannot say."""

Row = Mapping[str, Any]
"""One token as chat completions tell it: token, logprob, bytes, top_logprobs."""


def row(found: TokenLogprob) -> Row:
    """A token with its alternatives; `bytes` are its own, also where they are half a character."""
    return {**_entry(found), "top_logprobs": [_entry(other) for other in found.top]}


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


def _entry(found: TokenLogprob) -> dict[str, Any]:
    return {
        "token": found.data.decode("utf-8", "replace"),
        "logprob": max(LEAST, found.logprob),
        "bytes": list(found.data),
    }
