"""Writing with drafts and without is measured on the same texts, and can be stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from engine.cli import main
from engine.config import EngineConfig, SamplingParams, Spec
from engine.engine import Engine
from engine.errors import BadRequest, LoadCancelled
from engine.follow import follow
from engine.speedup import PROMPTS, compare
from engine.types import Request, Verified
from tests.engine.engines import running
from tests.engine.oracle import model_path

CONFIG = EngineConfig(threads=2, max_ctx=512, draft="ngram", spec=Spec.CHAIN)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running(model_path("qwen3"), CONFIG) as engine:
        yield engine


def test_every_kind_of_text_is_written_both_ways(engine: Engine) -> None:
    said: list[tuple[int, int, str]] = []
    found = compare(engine, 24, lambda *progress: said.append(progress))
    assert [pair.kind for pair in found.pairs] == list(PROMPTS)
    assert found.total.equal and all(pair.equal for pair in found.pairs)
    assert found.total.off and found.total.on and found.total.speedup
    assert found.drafter == "ngram" and {p.kind for p in found.memory} >= {"model", "kv"}
    assert [done for done, _, _ in said] == list(range(2 * len(PROMPTS) + 1))
    assert len(found.text().splitlines()) >= len(PROMPTS) + 2


def test_a_request_without_drafts_gets_none(engine: Engine) -> None:
    sampling = SamplingParams(temperature=0.0, max_tokens=64, ignore_eos=True)
    drafted = []
    for drafts in (True, False):
        request = Request(ids=[5, 6, 7, 8] * 8, sampling=sampling, drafts=drafts)
        drafted.append(any(isinstance(event, Verified) for event in follow(engine, request)))
    assert drafted == [True, False]


def test_it_is_refused_without_a_model_and_stops_when_told(engine: Engine) -> None:
    with pytest.raises(BadRequest):
        compare(Engine())
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(LoadCancelled):
        compare(engine, 24, None, cancel)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["draft-bench", str(model_path("qwen3")), "--draft", "ngram", "-q"]
    assert main([*arguments, "--tokens", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["texts"]) == len(PROMPTS) and found["drafter"] == "ngram"
    assert found["off_tok_s"] > 0 and found["equal"] is True
    assert main([*arguments, "--tokens", "2"]) == 2
