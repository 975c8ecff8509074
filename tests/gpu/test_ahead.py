"""Steps ahead on a card: the texts of an engine without them, for whatever comes and goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.ahead import Ahead
from engine.config import Spec
from engine.engine import Engine
from engine.ops.numpy_ops import NumpyOps
from engine.runner import Runner
from engine.sampling import Sampler
from engine.types import Request
from tests.engine.oracle import model_path, record, step
from tests.engine.test_ahead import CONFIG, check, generate_of, jobs, play
from tests.gpu.test_oracles import TIE


def is_near_tie(architecture: str, request: Request, text: list[int], other: int) -> bool:
    """Whether the last bits of a step decide between the last token of `text` and another one: what is read
    together takes other products, whose sums have another order."""
    ops = NumpyOps()
    record(ops, architecture)
    *before, token = [*request.ids, *text]
    logits = ops.run(step((before, 0, [0, 1, 2, 3]), all_logits=False))[0]
    found = []
    for raised, lowered in ((token, other), (other, token)):
        changed = logits.copy()
        changed[raised] += TIE / 2 * logits.std()
        changed[lowered] -= TIE / 2 * logits.std()
        found.append(Sampler(request.sampling, len(logits), 0).sample(changed, before))
    return found == [token, other]


@pytest.mark.parametrize("architecture", ("llama", "qwen35"))
@pytest.mark.parametrize("spec", (Spec.OFF, Spec.CHAIN))
def test_whatever_comes_and_goes_the_texts_are_the_same(
    architecture: str, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = [jobs(seed) for seed in range(2)]
    launched = [0]
    launch = Runner.launch

    def counted(self, step, *rest):  # type: ignore[no-untyped-def]
        launched[0] += step.spans[0].tokens[0] < 0
        return launch(self, step, *rest)

    monkeypatch.setattr(Runner, "launch", counted)
    config = replace(CONFIG, device="cuda:0", spec=spec)
    engine = Engine()
    engine.start()
    engine.load(model_path(architecture), config)
    with monkeypatch.context() as patch:
        patch.setattr(Ahead, "follow", lambda *_: None)
        texts = [[generate_of(engine, job.request) for job in work] for work in works]
        engine.clear_cache()
        assert not launched[0]
    for work, expected in zip(works, texts, strict=True):
        for job, got, want in zip(work, play(engine, work), expected, strict=True):
            cut = len(got) if job.cancel_after is not None else len(want)
            apart = [i for i, pair in enumerate(zip(got, want, strict=False)) if len(set(pair)) > 1]
            if apart and is_near_tie(
                architecture, job.request, got[: apart[0] + 1], want[apart[0]]
            ):
                continue
            assert got == want[:cut]
        check(engine)
    assert launched[0] > 20
    assert engine.close()
