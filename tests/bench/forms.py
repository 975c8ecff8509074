"""What holding an answer to a form costs per token: python -m tests.bench.forms MODEL.gguf

Times in microseconds, median and 95th percentile: waiting for the mask that was begun a token before, adding
it to the logits, and going on behind a token; beside them what choosing a token costs without a form.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from engine.config import SamplingParams
from engine.gguf import read_header
from engine.grammar import Grammars, whole_form
from engine.sampling import Sampler, logprob_of
from engine.tokenizer import Tokenizer
from engine.types import Format

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
TEXT = json.dumps({"name": "Bob the builder of very many things", "age": 42, "tags": ["a", "bb"]})
STEP_S = 0.005


def main(path: Path) -> None:
    """Print the table."""
    tokenizer = Tokenizer.from_gguf(read_header(path).meta)
    grammars = Grammars(tokenizer)
    logits = np.random.default_rng(0).normal(size=tokenizer.vocab_size).astype(np.float32)
    began = time.perf_counter()
    grammar = whole_form(grammars, Format("json_schema", SCHEMA), lead=False)
    print(f"{tokenizer.vocab_size:,} tokens; first form ready after {_seconds(began):.2f} s")
    wait, add, take = [], [], []
    for _ in range(5):
        follower = grammars.follow(grammar)
        for token in tokenizer.encode(TEXT, add_bos=False):
            time.sleep(STEP_S)  # in which the model computes
            began = time.perf_counter()
            mask = follower.mask()
            wait.append(_seconds(began))
            began = time.perf_counter()
            logits + mask
            add.append(_seconds(began))
            began = time.perf_counter()
            follower.take(token)
            take.append(_seconds(began))
    _row("wait for the mask", wait)
    _row("add it", add)
    _row("take a token", take)
    for temperature in (0.0, 0.8):
        sampler = Sampler(SamplingParams(temperature=temperature, seed=1), len(logits), 0)
        _row(f"choose at {temperature}", _timed(partial(sampler.sample, logits, [1, 2])))
    _row("20 log-probabilities", _timed(lambda: logprob_of(logits, 5, 20)))


def _timed(work: Callable[[], object]) -> list[float]:
    found = []
    for _ in range(50):
        began = time.perf_counter()
        work()
        found.append(_seconds(began))
    return found


def _seconds(began: float) -> float:
    return time.perf_counter() - began


def _row(title: str, seconds: list[float]) -> None:
    low, high = np.percentile(seconds, [50, 95]) * 1e6
    print(f"{title:<22}{low:>10.0f}{high:>10.0f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
