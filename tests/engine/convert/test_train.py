"""Training a draft; only where PyTorch is installed."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.convert.config import TrainConfig  # noqa: E402
from engine.convert.train import texts  # noqa: E402
from engine.convert.train.loop import Trainer, draft_config, train_draft  # noqa: E402
from engine.convert.train.torch_dflash import TorchDflash  # noqa: E402
from engine.convert.train.torch_llama import TorchTarget  # noqa: E402
from engine.draft.files import open_draft  # noqa: E402
from engine.errors import BadRequest, LoadCancelled  # noqa: E402
from engine.gguf import open_model  # noqa: E402
from tests.engine.draft.drafts import expected, target_path  # noqa: E402
from tests.reference.numpy_dflash import NumpyDflash  # noqa: E402

TARGET = target_path("dflash_qwen3")
TINY = TrainConfig(
    layers=2, captures=3, window=16, texts=4, text_tokens=72, write_batch=4, steps=4, batch=4, anchors=4,
    measured=1, learning_rate=1e-2,
)  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(texts, "QUESTION_TOKENS", 8)


def test_the_target_sees_and_writes_what_transformers_does() -> None:
    truth = expected("dflash_qwen3", "full")
    with open_model(TARGET) as file:
        target = TorchTarget(file, torch.device("cpu"), torch.float32)
    prompt = torch.tensor(truth["prompt"][None].astype(np.int64))
    got = target.features(prompt, (1, 2, 4))[0].numpy()
    assert np.abs(got - truth["target_features"]).max() < 1e-4
    prompts = [truth["prompt"].tolist(), truth["prompt"][:9].tolist()]
    whole, short = target.write(prompts, 40 + 24, 511, [0.0, 0.0], 0)
    assert whole[40:] == truth["greedy_tokens"][:24].tolist()
    assert short == target.write(prompts[1:], 40 + 24, 511, [0.0], 0)[0]


def test_blocks_equal_the_reference(tmp_path: Path) -> None:
    truth = expected("dflash_qwen3", "full")
    with open_model(TARGET) as file:
        target = TorchTarget(file, torch.device("cpu"), torch.float32)
        cfg = draft_config(target.cfg, TINY, 505)
        trainer = Trainer.__new__(Trainer)
        trainer.file, trainer.cfg, trainer.model = file, cfg, TorchDflash(cfg)
        for p in trainer.model.parameters():
            if p.dim() == 1:
                p.data.uniform_(0.5, 1.5)
        trainer.export(tmp_path / "draft.gguf", "f16")
    draft = open_draft(tmp_path / "draft.gguf")
    assert draft.config.windows == (16, 16) and draft.config.causal == (False, False)
    embd, output = target.token_embd.numpy(), target.output.numpy()
    reference = NumpyDflash(draft, draft.config, embd, output)
    ids = torch.tensor(truth["prompt"][None].astype(np.int64))
    features = target.features(ids, cfg.capture)
    anchors = torch.tensor([[5, 12, 30]])
    last = ids.gather(1, anchors)
    for size in (8, 5):
        hidden = trainer.model(features, anchors, target.token_embd, last, size)[0]
        for got, place in zip(hidden.detach().numpy(), (5, 12, 30), strict=True):
            want = reference.block(features[0, :place].numpy(), int(ids[0, place]), size).hidden
            assert np.abs(got - want).max() < 3e-3  # the file is f16


def test_a_stopped_training_goes_on_where_it_was(tmp_path: Path) -> None:
    out, cancel, seen = tmp_path / "draft.gguf", threading.Event(), []

    def stop(stage: str, share: float, word: str) -> None:
        seen.append(stage)
        if stage == "measuring":
            cancel.set()

    with pytest.raises(LoadCancelled, match="go on"):
        train_draft(TARGET, out, TINY, on_progress=stop, cancel=cancel)
    kept = sorted(p.name for p in (tmp_path / "draft.gguf.train").iterdir())
    assert kept == ["checkpoint.safetensors", "progress.json", "texts.npz"]
    made = train_draft(TARGET, out, TINY)
    assert made.steps == 4 and made.texts == 4 and set(made.acceptance) == {"chat", "code", "lists"}
    assert open_draft(out).config.block == 8
    with pytest.raises(BadRequest, match="another shape"):
        train_draft(TARGET, out, TrainConfig(layers=1, captures=3, texts=4, steps=4))
    again = train_draft(TARGET, tmp_path / "next.gguf", TINY, start=out)
    assert again.steps == 4
