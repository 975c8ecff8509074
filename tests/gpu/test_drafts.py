"""Drafts on a card: the target's own text with every drafter, and guesses as good as on the processor."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import Precision, Spec
from engine.engine import Engine
from tests.engine.draft.drafts import draft_path, expected
from tests.engine.draft.test_dflash import answer, load
from tests.engine.draft.test_exactness import files, written

__all__ = ["files"]  # a fixture


@pytest.mark.parametrize(
    ("family", "kind"),
    [("dflash_qwen3", "full"), ("dflash_qwen3", "swa"), ("dflash_qwen3", "dflash2"),
     ("dflash_qwen35", "full"), ("dflash_qwen35", "dflash2")],
)  # fmt: skip
def test_chains_equal_the_reference(engine: Engine, family: str, kind: str, tmp_path: Path) -> None:
    truth = expected(family, kind)
    load(engine, family, draft_path(family, kind, "hf", tmp_path), device="cuda:0")
    tokens, produced = answer(engine, truth["prompt"].tolist(), 64)
    assert tokens == truth["greedy_tokens"].tolist()
    assert produced == truth["step_produced"].tolist()


@pytest.mark.parametrize("family", ["dflash_qwen3", "dflash_qwen35"])
def test_trees_take_fewer_passes(engine: Engine, family: str, tmp_path: Path) -> None:
    truth = expected(family, "full")
    draft = draft_path(family, "full", "hf", tmp_path)
    load(engine, family, draft, Spec.TREE, 16, device="cuda:0")
    tokens, produced = answer(engine, truth["prompt"].tolist(), 64)
    assert tokens == truth["greedy_tokens"].tolist()
    assert 0 < len(produced) <= len(truth["step_produced"])


@pytest.mark.parametrize("precision", [Precision.FAST, Precision.EXACT])
@pytest.mark.parametrize("kind", ["dflash", "dflash2", "mtp", "model", "ngram"])
def test_nothing_changes_a_text(
    kind: str, precision: Precision, files: dict[str, tuple[Path, str]]
) -> None:
    target, draft = files[kind]
    plain, _ = written(target, kind, device="cuda:0", precision=precision)
    for spec in (Spec.CHAIN, Spec.TREE):
        texts, accepted = written(target, kind, draft, spec, "cuda:0", precision)
        assert texts == plain
        assert accepted > 5 and all(tokens for tokens, _ in texts)
