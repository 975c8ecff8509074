"""Drafts that give their memory back between requests guess as well as those that stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.api.flags import blocks
from engine.command_line import build_parser
from engine.config import EngineConfig, Precision, Residency, SamplingParams, Spec
from engine.devices import Device
from engine.draft.parking import ParkedDrafter
from engine.follow import follow
from engine.gguf import read_header
from engine.placement import resolve
from engine.types import Finished, Request, TextDelta, Verified
from tests.engine.draft.drafts import draft_path, expected, target_path
from tests.engine.engines import started

FAMILY = "dflash_qwen3"
GB = 1 << 30


def answers(draft: Path, residency: Residency, prompts: list[list[int]]) -> list[Any]:
    """Tokens, reused tokens and accepted lengths of one prompt after the other; the drafter rests between."""
    config = EngineConfig(
        draft=str(draft), spec=Spec.CHAIN, draft_residency=residency, precision=Precision.EXACT,
        max_ctx=512, device="cpu", threads=2,
    )  # fmt: skip
    engine = started(target_path(FAMILY), config)
    found: list[Any] = []
    try:
        for prompt in prompts:
            sampling = SamplingParams(temperature=0, max_tokens=64, ignore_eos=True)
            events = list(follow(engine, Request(ids=prompt, sampling=sampling)))
            end = events[-1]
            assert isinstance(end, Finished)
            tokens = [t for e in events if isinstance(e, TextDelta) for t in e.tokens]
            accepted = [e.accepted for e in events if isinstance(e, Verified)]
            found.append((tokens, end.usage.reused_tokens, accepted))
            engine.use(lambda model: check(model, residency))
    finally:
        engine.close()
    return found


def check(model: Any, residency: Residency) -> None:
    drafter = model.speculation.drafter
    held = drafter.memory()
    if residency is Residency.REQUEST_SCOPED:
        assert isinstance(drafter, ParkedDrafter) and drafter.parked and held == 0
    else:
        assert not isinstance(drafter, ParkedDrafter) and held > 0


def test_what_was_read_before_is_known_after_a_rest(tmp_path: Path) -> None:
    truth = expected(FAMILY, "full")
    draft = draft_path(FAMILY, "full", "lucebox-a", tmp_path)
    prompt, text = truth["prompt"].tolist(), truth["greedy_tokens"].tolist()
    prompts = [prompt, [*prompt, *text], prompt]
    stays, rests = (
        answers(draft, residency, prompts)
        for residency in (Residency.PERSISTENT, Residency.REQUEST_SCOPED)
    )
    assert rests == stays
    assert rests[0][0] == text and [n + 1 for n in rests[0][2]] == truth["step_produced"].tolist()
    assert rests[1][1] >= 64  # so the draft's rows of these came out of RAM


def test_memory_decides_where_nobody_said(tmp_path: Path) -> None:
    header = read_header(target_path(FAMILY))
    draft = draft_path(FAMILY, "full", "lucebox-a", tmp_path)
    config = EngineConfig(draft=str(draft), max_ctx=512, device="cpu")

    def parked(free: int, **changes: Any) -> bool:
        cpu = Device("cpu", "cpu", "Processor", 32 * GB, free, 4)
        return resolve(replace(config, **changes), header, [cpu]).draft_parked

    need = next(n for n in range(8 << 20, 4 * GB, 8 << 20) if not parked(n))
    assert not parked(8 * GB) and parked(need // 2)
    assert not parked(need // 2, draft_residency=Residency.PERSISTENT)
    assert parked(8 * GB, draft_residency=Residency.REQUEST_SCOPED)
    assert not parked(8 * GB, draft_residency=Residency.REQUEST_SCOPED, draft="ngram")
    assert not parked(8 * GB, draft_residency=Residency.REQUEST_SCOPED, spec=Spec.OFF)


@pytest.mark.parametrize("flags", [["--lazy-draft"], ["--draft-residency", "request-scoped"]])
def test_lucebox_s_own_flags(flags: list[str]) -> None:
    args = build_parser()[0].parse_args(["serve", "m.gguf", *flags])
    ((_, _, config),) = blocks(args)
    assert config == {"draft_residency": Residency.REQUEST_SCOPED}
