"""Conversations outlive the process: another engine reads only what is new, and writes the same tokens."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.cache import disk, exchange
from engine.cache.archive import DiskArchive
from engine.cache.disk import DiskStore
from engine.config import EngineConfig, Precision, SamplingParams, Spec
from engine.engine import Engine
from engine.types import Finished, Request
from tests.engine.listener import Listener
from tests.engine.oracle import model_path

CONFIG = EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64)
GREEDY = SamplingParams(temperature=0, max_tokens=40, ignore_eos=True)
PAGE = 64


@contextlib.contextmanager
def process(
    folder: Path | None,
    model: str = "llama",
    config: EngineConfig = CONFIG,
    key: bytes = bytes(32),
) -> Iterator[Engine]:
    """An engine with an archive of its own, as a program that starts and ends has them."""
    engine = Engine()
    archive = DiskArchive(DiskStore(folder, key, 1 << 26, 1e9)) if folder else None
    engine.keep_in(archive)
    engine.start()
    engine.load(model_path(model), config)
    try:
        yield engine
    finally:
        assert engine.close()
        if archive is not None:
            archive.close(None)


def text(seed: int, n: int) -> list[int]:
    return np.random.default_rng(seed).integers(3, 500, n).tolist()


def answer(engine: Engine, ids: list[int]) -> tuple[list[int], int]:
    """The tokens that follow `ids`, and how many of `ids` needed no computation."""
    listener = Listener()
    engine.submit(Request(ids=ids, sampling=GREEDY), listener)
    end = listener.end()
    assert isinstance(end, Finished), end
    return listener.tokens, end.usage.reused_tokens


@pytest.mark.parametrize("model", ["llama", "qwen35"])
def test_a_new_process_reads_only_the_rest(tmp_path: Path, model: str) -> None:
    first = text(1, 200)
    with process(tmp_path, model) as engine:
        said, reused = answer(engine, first)
        assert not reused
    follow = [*first, *said, *text(2, 30)]
    other = [*first[:150], *text(3, 60)]
    with process(None, model) as engine:
        cold = [answer(engine, ids)[0] for ids in (first, follow, other)]
    assert cold[0] == said
    for n, ids in enumerate((first, follow, other)):
        with process(tmp_path, model) as engine:
            tokens, reused = answer(engine, ids)
        assert tokens == cold[n]
        assert reused == (192, 192, 0 if model == "qwen35" else 128)[n]


@pytest.mark.parametrize("model", ["llama", "qwen35"])
def test_what_is_large_goes_to_disk_in_parts_between_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(exchange, "PART", 1)
    ids = text(1, 200)
    with process(tmp_path, model) as engine:
        said, _ = answer(engine, ids)
        while disk.usage(tmp_path).files < (4 if model == "qwen35" else 3):
            time.sleep(0.01)
    with process(tmp_path, model) as engine:
        assert answer(engine, ids) == (said, 192)


def test_several_conversations_share_their_beginning_on_disk(tmp_path: Path) -> None:
    system = text(1, 128)
    with process(tmp_path) as engine:
        for seed in (2, 3, 4):
            answer(engine, [*system, *text(seed, 50)])
    pages = 2 + 3 * 1  # two of the beginning, and one of prompt and answer of each
    assert disk.usage(tmp_path).files == pages


def test_what_was_written_by_something_else_is_no_hit(tmp_path: Path) -> None:
    ids = text(1, 200)
    with process(tmp_path) as engine:
        said, _ = answer(engine, ids)
    fast = replace(CONFIG, precision=Precision.FAST)
    with process(None, config=fast) as engine:
        cold, _ = answer(engine, ids)
    with process(tmp_path, config=fast) as engine:
        assert answer(engine, ids) == (cold, 0)
    with process(tmp_path, "qwen3") as engine:
        assert answer(engine, ids)[1] == 0
    with process(tmp_path) as engine:
        assert answer(engine, ids) == (said, 192)
    with process(tmp_path, key=bytes([1]) * 32) as engine:
        assert answer(engine, ids) == (said, 0)


def test_damaged_files_cost_time_and_nothing_else(tmp_path: Path) -> None:
    ids = text(1, 200)
    with process(tmp_path) as engine:
        said, _ = answer(engine, ids)
    chance = random.Random(3)
    lengths = set()
    for _ in range(4):
        files = sorted(tmp_path.glob("*.lbxcache"))
        file = chance.choice(files)
        data = bytearray(file.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data[: chance.choice([len(data), len(data) // 2])])
        with process(tmp_path) as engine:  # it writes again what it does not find
            tokens, reused = answer(engine, ids)
        assert tokens == said and reused < 256
        lengths.add(reused)
    assert min(lengths) < 192


def test_a_request_that_wants_no_cache_leaves_nothing(tmp_path: Path) -> None:
    with process(tmp_path) as engine:
        listener = Listener()
        engine.submit(Request(ids=text(1, 200), sampling=GREEDY, prefix_cache=False), listener)
        assert isinstance(listener.end(), Finished)
    assert disk.usage(tmp_path).files == 0


@pytest.mark.parametrize(
    ("model", "allowed", "there"),
    [("llama", 63, 0), ("llama", 150, 128), ("qwen35", 195, 192), ("qwen35", 150, 0)],
)  # of qwen35 there is a state behind the prompt's last full page only
def test_no_more_goes_to_disk_than_a_request_allows(
    tmp_path: Path, model: str, allowed: int, there: int
) -> None:
    ids, listener = text(1, 200), Listener()
    with process(tmp_path, model) as engine:
        engine.submit(Request(ids=ids, sampling=GREEDY, disk_tokens=allowed), listener)
        assert isinstance(listener.end(), Finished)
    with process(tmp_path, model) as engine:
        assert answer(engine, ids) == (listener.tokens, there)


def test_drafts_are_verified_alike_after_a_restart(tmp_path: Path) -> None:
    config = replace(CONFIG, spec=Spec.CHAIN, draft="ngram")
    ids = text(1, 20) * 10
    with process(None, config=replace(CONFIG, spec=Spec.OFF)) as engine:
        cold, _ = answer(engine, ids)
    for reused in (0, 192):
        with process(tmp_path, config=config) as engine:
            assert answer(engine, ids) == (cold, reused)
