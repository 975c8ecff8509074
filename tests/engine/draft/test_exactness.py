"""No drafter changes a text: 200 random prompts, with all that decides over tokens, for chains and trees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.config import EngineConfig, Precision, SamplingParams, Spec
from engine.types import Event, Finished, Format, Request
from tests.engine.draft.drafts import draft_path, mtp_path, target_path
from tests.engine.engines import started
from tests.engine.listener import Listener
from tests.engine.model_copies import copy_model
from tests.engine.oracle import model_path

PROMPTS, TOKENS = 20, 18  # for each of ten ways to draft
HELD = Format("regex", r"([a-f0-9 ]{2,9}[-;,]){2,40}")
GREEDY: tuple[dict[str, object], ...] = (
    {},
    {"repetition_penalty": 1.3, "frequency_penalty": 0.2, "presence_penalty": 0.4},
    {"penalty_last_n": 8, "repetition_penalty": 0.6},
    {"logit_bias": {17: 4.0, 400: -100.0, 33: 2.0}},
    {"stop": ("e", "zq", "1")},
    {"format": HELD},
    {"format": HELD, "repetition_penalty": 1.2, "logit_bias": {40: 3.0}, "stop": (";",)},
    {"ignore_eos": False},
)
DRAWN: tuple[dict[str, object], ...] = (
    {"temperature": 0.9, "top_k": 20, "seed": 5},
    {"temperature": 1.2, "top_p": 0.8, "seed": 6, "repetition_penalty": 1.2},
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """A target, and what drafts for it, by the kind of drafter."""
    folder = tmp_path_factory.mktemp("drafts")
    mtp = mtp_path(folder)
    small = copy_model(model_path("llama"), folder / "small.gguf", numbers={"llama.block_count": 4})
    return {
        "dflash": (target_path("dflash_qwen3"), str(draft_path("dflash_qwen3", "full", "hf", folder))),
        "dflash2": (
            target_path("dflash_qwen35"), str(draft_path("dflash_qwen35", "dflash2", "hf", folder)),
        ),
        "mtp": (mtp, "mtp"),
        "model": (model_path("llama"), str(small)),
        "ngram": (target_path("dflash_qwen3"), "ngram"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def plain(files: dict[str, tuple[Path, str]]) -> Iterator[dict[str, list[tuple[list[int], str]]]]:
    """What each target writes without drafts, computed when it is first asked for."""

    class Truth(dict[str, list[tuple[list[int], str]]]):
        def __missing__(self, kind: str) -> list[tuple[list[int], str]]:
            self[kind], _ = written(files[kind][0], kind)
            return self[kind]

    yield Truth()


def conditions(kind: str) -> tuple[dict[str, object], ...]:
    """How texts are chosen. Where a drafter tells how likely its guesses were, drawn texts are as probable as
    without it and not the same; `test_verify` has these."""
    return GREEDY if kind in ("mtp", "model") else GREEDY + DRAWN


def prompt(number: int) -> list[int]:
    """Every other one repeats itself, as code and lists do."""
    rng = np.random.default_rng(number)
    if number % 2:
        return rng.integers(3, 500, 10 + 3 * number).tolist()
    return (rng.integers(3, 500, 9).tolist() * 12)[: 20 + 2 * number]


def written(
    target: Path,
    kind: str,
    draft: str | None = None,
    spec: Spec = Spec.OFF,
    device: str = "cpu",
    precision: Precision = Precision.EXACT,
) -> tuple[list[tuple[list[int], str]], int]:
    """Tokens and text of every prompt, and how many guesses were right.

    Many at once on the processor. A card's products of long steps add up otherwise for other numbers of
    rows, so there prompts that are read together could differ in the last bits.
    """
    config = EngineConfig(
        draft=draft, spec=spec, precision=precision, max_ctx=256, prefill_chunk=48, threads=2,
        device=device, budget=12 if spec is Spec.TREE else None,
    )  # fmt: skip
    engine = started(target, config)
    listeners: list[Listener] = []
    ends: list[Event] = []
    ways = conditions(kind)
    for number in range(PROMPTS):
        how = {
            "temperature": 0,
            "max_tokens": TOKENS,
            "ignore_eos": True,
            **ways[number % len(ways)],
        }
        if (form := how.pop("format", None)) is not None:
            how["ignore_eos"] = False  # an answer in a form has an end
        sampling = SamplingParams(**how)  # type: ignore[arg-type]
        listeners.append(Listener())
        request = Request(ids=prompt(number), sampling=sampling, format=form)  # type: ignore[arg-type]
        engine.submit(request, listeners[-1])
        if device != "cpu":
            ends.append(listeners[-1].end())
    ends = ends or [listener.end() for listener in listeners]
    assert all(isinstance(end, Finished) for end in ends), ends
    accepted = sum(end.usage.accepted_tokens for end in ends if isinstance(end, Finished))
    engine.close()
    return [(listener.tokens, listener.text) for listener in listeners], accepted


@pytest.mark.parametrize("spec", [Spec.CHAIN, Spec.TREE])
@pytest.mark.parametrize("kind", ["dflash", "dflash2", "mtp", "model", "ngram"])
def test_nothing_changes_a_text(
    kind: str,
    spec: Spec,
    files: dict[str, tuple[Path, str]],
    plain: dict[str, list[tuple[list[int], str]]],
) -> None:
    target, draft = files[kind]
    texts, accepted = written(target, kind, draft, spec)
    assert texts == plain[kind]
    assert accepted > 5 and all(tokens for tokens, _ in texts)
