"""Draft files of every dialect, and drafts that do not fit."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from engine.convert.writer import Key, Output, write_gguf
from engine.draft.config import DraftConfig, usual_layers
from engine.draft.files import DraftFile, open_draft
from engine.draft.safetensors_file import read_tensors
from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import open_model
from engine.models.base import model_of
from engine.ops.base import Shape
from engine.quants import by_name
from tests.engine.draft.drafts import cases, draft_path, expected, target_path
from tests.reference.numpy_dflash import NumpyDflash


def target_shape(family: str) -> tuple[Shape, Any, Any]:
    """Shape, token embedding and head of a family's target."""
    with open_model(target_path(family)) as file:
        shape = model_of(file.architecture).read_config(file).shape
        embd, output = (file.tensors[f"{n}.weight"].dequantize() for n in ("token_embd", "output"))
    return shape, embd, output


@pytest.mark.parametrize(("family", "kind", "dialect"), cases())
def test_block_logits_equal_the_reference(
    family: str, kind: str, dialect: str, tmp_path: Path
) -> None:
    file = open_draft(draft_path(family, kind, dialect, tmp_path))
    truth = expected(family, kind)
    shape, embd, output = target_shape(family)
    cfg = file.config.fitted(shape, 5e5)
    assert cfg.warnings == ()
    draft = NumpyDflash(file, cfg, embd, output)
    first = int(truth["first_token"])
    got = draft.block(truth["target_features"], first, cfg.block)
    lucebox = kind == "swa" and dialect.startswith("lucebox")
    want = truth["draft_logits_lucebox_window" if lucebox else "draft_logits"]
    assert np.abs(got.fused - truth["fused_context"]).max() < 1e-3
    for layer, values in zip(got.layers, truth["draft_layer_out"], strict=True):
        if not lucebox:
            assert np.abs(layer - values).max() < 1e-3
    assert np.abs(got.logits - want).max() < 1e-3
    path = truth.get("selector_path", truth["step_drafts"][0])
    assert draft.tokens(got, first) == path.tolist()


@pytest.mark.parametrize("causal", [False, True])
def test_a_file_decides_causality_for_all_layers(causal: bool, tmp_path: Path) -> None:
    home = shutil.copytree(draft_path("dflash_qwen3", "swa", "hf", tmp_path), tmp_path / "draft")
    _edit(home, lambda c: c.update(is_causal=causal))
    file = open_draft(home)
    shape, embd, output = target_shape("dflash_qwen3")
    draft = NumpyDflash(file, file.config.fitted(shape, 5e5), embd, output)
    truth = expected("dflash_qwen3", "swa")
    got = draft.block(truth["target_features"], int(truth["first_token"]), 8)
    want = truth[f"draft_logits_is_{'causal' if causal else 'noncausal'}"]
    assert np.abs(got.logits - want).max() < 1e-3


def test_all_dialects_say_the_same(tmp_path: Path) -> None:
    configs = [
        open_draft(draft_path("dflash_qwen3", "full", d, tmp_path)).config
        for d in ("hf", "llamacpp", "lucebox-a", "lucebox-b")
    ]
    for cfg in configs:
        assert (cfg.block, cfg.mask, cfg.capture, cfg.rope_base) == (8, 505, (1, 2, 4), 10000.0)
        assert (cfg.n_layers, cfg.windows, cfg.causal) == (2, (0, 0), (False, False))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return shutil.copytree(draft_path("dflash_qwen3", "swa", "hf", tmp_path), tmp_path / "draft")


def _edit(home: Path, change: Any) -> None:
    path = home / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def _fitted(file: DraftFile) -> DraftConfig:
    return file.config.fitted(target_shape("dflash_qwen3")[0], 123456.0)


def test_what_is_guessed_is_named(home: Path) -> None:
    def forget(config: dict[str, Any]) -> None:
        config["dflash_config"] = {"mask_token_id": 505}
        for key in ("block_size", "rope_theta", "rms_norm_eps"):
            del config[key]

    _edit(home, forget)
    cfg = _fitted(open_draft(home))
    assert cfg.block == 16 and cfg.rope_base == 123456.0 and cfg.eps == 1e-6
    assert cfg.capture == (1, 2, 3)
    told = " ".join(cfg.warnings)
    for word in ("block size", "16", "rope base", "123456", "epsilon", "layers", "1, 2, 3"):
        assert word in told


def test_a_missing_mask_is_guessed_and_must_be_a_token(home: Path) -> None:
    _edit(home, lambda c: c["dflash_config"].pop("mask_token_id"))
    file = open_draft(home)
    assert any("248070" in w for w in file.config.warnings)
    with pytest.raises(UnsupportedModel, match=r"does not say its mask token.*248,070.*512"):
        _fitted(file)


@pytest.mark.parametrize(
    ("change", "numbers"),
    [
        ({"n_embd": 256}, ("128", "256")),
        ({"n_vocab": 1024}, ("512", "1,024")),
        ({"n_layers": 4}, ("4", "0 to 3")),
        ({"n_layers": 7}, ("6", "7")),
    ],
)
def test_another_target_is_refused_with_both_numbers(
    home: Path, change: dict[str, int], numbers: tuple[str, str]
) -> None:
    shape = replace(target_shape("dflash_qwen3")[0], **change)
    with pytest.raises(UnsupportedModel) as error:
        open_draft(home).config.fitted(shape, 1e4)
    assert all(n in str(error.value) for n in numbers)


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("hidden_size", 0, "hidden_size"),
        ("hidden_size", "128", "hidden_size"),
        ("num_attention_heads", 3, "heads"),
        ("layer_types", ["sliding_attention"], "pattern"),
        ("sliding_window", None, "window"),
        ("num_hidden_layers", 3, "pattern of 2"),
        ("intermediate_size", 255, "ffn_gate"),
        ("num_key_value_heads", 1, "attn_k"),
    ],
)
def test_a_config_that_contradicts_itself(home: Path, key: str, value: Any, word: str) -> None:
    _edit(home, lambda c: c.update({key: value}))
    with pytest.raises((ModelFileError, UnsupportedModel), match=word):
        open_draft(home)


@pytest.mark.parametrize("ids", [[1, 2], [1, 1, 2], [-1, 2, 3]])
def test_capture_layers_must_fit_the_weights(home: Path, ids: list[int]) -> None:
    _edit(home, lambda c: c["dflash_config"].update(target_layer_ids=ids))
    with pytest.raises(ModelFileError, match="3 different"):
        open_draft(home)


def test_damaged_safetensors_are_refused(home: Path) -> None:
    path = home / "model.safetensors"
    whole = path.read_bytes()
    for bad in (b"", whole[:7], whole[:100], whole[:-1], struct.pack("<Q", 1 << 62) + whole[8:]):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError, match="safetensors"):
            open_draft(home)


def test_missing_parts_are_named(home: Path, tmp_path: Path) -> None:
    (home / "config.json").unlink()
    with pytest.raises(ModelFileError, match=r"config\.json"):
        open_draft(home)
    with pytest.raises(ModelFileError, match=r"\.safetensors"):
        open_draft(tmp_path)
    with pytest.raises(UnsupportedModel, match="qwen3 file"):
        open_draft(target_path("dflash_qwen3"))


def _weights(home: Path) -> dict[str, Any]:
    return {n: t.dequantize() for n, t in read_tensors(home / "model.safetensors").items()}


def test_a_folder_of_another_model_is_no_draft(home: Path) -> None:
    weights = _weights(home)
    save_file({n: w for n, w in weights.items() if n != "fc.weight"}, home / "model.safetensors")
    with pytest.raises(ModelFileError, match=r"fc\.weight.*another model"):
        open_draft(home)


def test_a_missing_part_of_several_is_named(home: Path) -> None:
    weights = _weights(home)
    (home / "model.safetensors").unlink()
    names = sorted(weights)
    parts = [home / f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for part, some in zip(parts, (names[::2], names[1::2]), strict=True):
        save_file({n: weights[n] for n in some}, part)
    for source in (home, *parts):  # one part stands for all
        assert len(open_draft(source).tensors) == len(names)
    parts[1].unlink()
    for source in (home, parts[0]):
        with pytest.raises(ModelFileError, match=r"model-00002-of-00002\.safetensors is missing"):
            open_draft(source)


def test_a_cut_gguf_is_refused(tmp_path: Path) -> None:
    path = draft_path("dflash_qwen3", "full", "lucebox-a", tmp_path)
    whole = path.read_bytes()
    for n in range(0, len(whole), 100_003):
        path.write_bytes(whole[:n])
        with pytest.raises(ModelFileError):
            open_draft(path)


def test_usual_layers() -> None:
    assert usual_layers(64, 5) == (1, 16, 31, 46, 61)
    assert usual_layers(60, 6) == (1, 12, 23, 35, 46, 57)
    assert usual_layers(40, 5, qwen35=True) == (1, 10, 19, 28, 37)
    assert usual_layers(32, 5, qwen35=True) == (1, 8, 15, 22, 29)
    assert usual_layers(30, 1) == (15,)


@pytest.mark.parametrize("dialect", ["lucebox-b", "llamacpp"])
def test_damaged_headers_are_refused_in_words(dialect: str, tmp_path: Path) -> None:
    path = draft_path("dflash_qwen3", "swa", dialect, tmp_path)
    whole, rng = path.read_bytes(), np.random.default_rng(7)
    refused = 0
    for _ in range(60):
        bad = bytearray(whole)
        bad[int(rng.integers(0, 1400))] = int(rng.integers(0, 256))
        path.write_bytes(bad)
        try:
            open_draft(path)
        except (ModelFileError, UnsupportedModel):
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("value", [None, 0, -1, 1e308, "x", [], {}, [1], True, 2**40, 3.5])
def test_no_value_of_a_config_is_unforeseen(home: Path, value: Any) -> None:
    config = json.loads((home / "config.json").read_text())
    for key in config:
        (home / "config.json").write_text(json.dumps({**config, key: value}))
        with contextlib.suppress(ModelFileError, UnsupportedModel):
            assert isinstance(open_draft(home), DraftFile)


def rewritten(
    tmp_path: Path, arch: str, more: list[Key], extra: list[Output] | None = None
) -> Path:
    """The lucebox-a draft under another architecture, with more keys and tensors."""
    source = draft_path("dflash_qwen3", "full", "lucebox-a", tmp_path)
    with open_model(source) as file:
        keys = [
            Key(k.replace("qwen35-dflash-draft", arch), kind_of(v), v)
            for k, v in file.meta.items()
            if k != "general.architecture"
        ]
        outputs = [
            Output(t.name, t.shape, t.type, lambda data=t.data: data) for t in file.tensors.values()
        ]
        write_gguf(tmp_path / "out.gguf", arch, keys + more, outputs + (extra or []))
    return tmp_path / "out.gguf"


def kind_of(value: Any) -> str:
    item = value[0] if isinstance(value, list) else value
    return {int: "int32", float: "float32", str: "string", bool: "bool"}[type(item)]


def zeros(name: str, *shape: int) -> Output:
    return Output(
        name, shape, by_name("F32"), lambda: np.zeros((*shape[:-1], 4 * shape[-1]), np.uint8)
    )


def test_gemma_drafts_take_the_target_s_scaled_embedding(tmp_path: Path) -> None:
    arch = "gemma4-dflash-draft"
    own = [zeros("token_embd.weight", 512, 128), zeros("output.weight", 512, 128)]
    more = [Key(f"{arch}.final_logit_softcapping", "float32", 30.0)]
    file = open_draft(rewritten(tmp_path, arch, more, own))
    assert file.config.softcap == 30 and abs(file.config.embedding_scale - 128**0.5) < 1e-9
    told = " ".join(file.config.warnings)
    assert "embedding scale" in told and "token_embd.weight" in told and "output.weight" in told
    assert "token_embd.weight" not in file.tensors


def test_what_lucebox_files_may_hold_besides(tmp_path: Path) -> None:
    arch = "dflash-draft"
    more = [
        Key(f"{arch}.dflash.context_kv_layer_norm", "uint32", 1),
        Key(f"{arch}.attention.sliding_window", "uint32", 2048),
    ]
    extra = [zeros("dflash.dspark.markov.w1", 512, 4), zeros("blk.0.attn_gate.weight", 4, 128)]
    file = open_draft(
        rewritten(tmp_path, arch, more, [*extra, zeros("blk.1.attn_gate.weight", 4, 128)])
    )
    cfg = file.config
    assert cfg.normed_context and cfg.gate == 4 and cfg.windows == (2048, 0)
    assert "dspark" in " ".join(cfg.warnings) and "layers slide" in " ".join(cfg.warnings)
    with pytest.raises(UnsupportedModel, match=r"1 tensors.*novel"):
        open_draft(rewritten(tmp_path, arch, more, [zeros("novel.weight", 4, 4)]))
    with pytest.raises(ModelFileError, match=r"blk\.1\.attn_gate"):
        open_draft(rewritten(tmp_path, arch, more, [zeros("blk.0.attn_gate.weight", 4, 128)]))
