"""Conversion and quantisation of drafts."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli import main
from engine.convert import drafts
from engine.convert.drafts import SCHEMES, convert_draft, quantize_draft
from engine.draft.config import DraftConfig
from engine.draft.files import open_draft
from engine.errors import BadRequest, EngineError, LoadCancelled, ModelFileError, UnsupportedModel
from engine.gguf import open_model
from tests.engine.disk import largest_file
from tests.engine.draft.drafts import cases, draft_path, expected, target_path


def same_config(a: DraftConfig, b: DraftConfig, but: tuple[str, ...] = ()) -> bool:
    loose = ("dialect", "eps", "n_vocab", "target_layers", "qwen35", "warnings", *but)
    return all(getattr(a, n) == getattr(b, n) for n in DraftConfig.__slots__ if n not in loose)


@pytest.mark.parametrize(("family", "kind", "dialect"), cases())
def test_a_converted_draft_is_the_same_draft(
    family: str, kind: str, dialect: str, tmp_path: Path
) -> None:
    source = open_draft(draft_path(family, kind, dialect, tmp_path))
    out = tmp_path / "out.gguf"
    made = convert_draft(source.path, out, target=target_path(family))
    lucebox_rule = ("window_per_row",) if dialect.startswith("lucebox") else ()
    assert same_config(source.config, made.config, lucebox_rule)
    assert abs(made.config.eps - source.config.eps) < 1e-12
    for name, tensor in source.tensors.items():
        assert np.array_equal(made.tensors[name].dequantize(), tensor.dequantize()), name
    assert made.meta["tokenizer.ggml.mask_token_id"] == 505
    assert [p.name for p in tmp_path.iterdir() if ".part" in p.name] == []


@pytest.mark.parametrize("kind", ["full", "swa"])
def test_lucebox_files_are_those_of_its_own_tools(kind: str, tmp_path: Path) -> None:
    hf = draft_path("dflash_qwen3", kind, "hf", tmp_path)
    theirs = open_model(draft_path("dflash_qwen3", kind, "lucebox-b", tmp_path))
    out = tmp_path / "out.gguf"
    convert_draft(hf, out, dialect="lucebox")
    ours = open_model(out)
    assert ours.architecture == theirs.architecture
    assert {n: (t.shape, t.type) for n, t in ours.tensors.items()} == {
        n: (t.shape, t.type) for n, t in theirs.tensors.items()
    }
    for name, tensor in theirs.tensors.items():
        assert np.array_equal(ours.tensors[name].data, tensor.data)
    skip = ("general.", "dflash-draft.rope.dimension_count", "dflash-draft.attention.causal")
    for key, value in theirs.meta.items():
        if not key.startswith(skip):
            assert ours.meta[key] == value, key


@pytest.mark.parametrize("dialect", drafts.DIALECTS)
def test_a_guess_is_not_written_as_if_the_source_had_said_it(dialect: str, tmp_path: Path) -> None:
    home = shutil.copytree(draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "draft")
    config = json.loads((home / "config.json").read_text())
    for key in ("block_size", "rms_norm_eps", "rope_theta", "dflash_config"):
        del config[key]
    (home / "config.json").write_text(json.dumps(config))
    source = open_draft(home).config
    made = convert_draft(home, tmp_path / "out.gguf", dialect=dialect).config
    assert source.unsaid == made.unsaid == {"block size", "mask token", "norm epsilon"}
    assert made.warnings == source.warnings and len(made.warnings) == 3


def test_a_guessed_pattern_stays_a_guess(tmp_path: Path) -> None:
    whole = draft_path("dflash_qwen3", "swa", "lucebox-b", tmp_path)
    key, other = b"attention.sliding_window_pattern", b"attention.sliding_window_pattexx"
    (tmp_path / "a.gguf").write_bytes(whole.read_bytes().replace(key, other))
    made = convert_draft(tmp_path / "a.gguf", tmp_path / "out.gguf", dialect="lucebox").config
    assert made.unsaid == {"windows"} and made.windows == (16, 0)
    assert any("layers slide" in warning for warning in made.warnings)


def test_the_source_s_own_words_are_kept(tmp_path: Path) -> None:
    hf = draft_path("dflash_qwen3", "swa", "hf", tmp_path)
    made = convert_draft(hf, tmp_path / "out.gguf", "bf16")
    kept = json.loads(made.meta["lucebox.draft.config_json"])
    assert kept == json.loads((hf / "config.json").read_text())
    assert made.tensors["fc.weight"].type.name == "BF16"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dialect", ["llamacpp", "lucebox-a"])
def test_quantised_drafts_keep_all_but_the_numbers(
    scheme: str, dialect: str, tmp_path: Path
) -> None:
    source = draft_path("dflash_qwen3", "full", dialect, tmp_path)
    made = quantize_draft(source, tmp_path / "out.gguf", scheme)
    before = open_draft(source)
    assert same_config(before.config, made.config)
    changed = {k for k in made.meta if made.meta[k] != before.meta.get(k)}
    assert changed == ({"general.file_type"} if scheme != "f16" else changed)
    assert set(before.meta) <= set(made.meta)
    for name, tensor in made.tensors.items():
        want, got = before.tensors[name].dequantize(), tensor.dequantize()
        loss = np.sqrt(((want - got) ** 2).mean() / (want**2).mean())
        assert loss < {"q4_0": 0.13, "q4_k_m": 0.11, "q5_k_m": 0.06}.get(scheme, 0.03), name
        if want.ndim == 1:
            assert tensor.type.name == "F32"
    assert made.n_bytes <= before.n_bytes


def test_dflash_2_is_kept_through_quantisation(tmp_path: Path) -> None:
    source = draft_path("dflash_qwen35", "dflash2", "llamacpp", tmp_path)
    made = quantize_draft(source, tmp_path / "out.gguf", "q4_k_m")
    assert made.config.conv is not None and made.config.selector is not None
    assert made.tensors["blk.0.attn_conv_base"].type.name == "F32"
    assert made.tensors["selector_successor.weight"].type.name == "F16"  # rows of 16


def test_what_a_dialect_cannot_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="DFlash 2"):
        hf = draft_path("dflash_qwen3", "dflash2", "hf", tmp_path)
        convert_draft(hf, tmp_path / "out.gguf", dialect="lucebox")
    with pytest.raises(BadRequest, match="convert-draft"):
        quantize_draft(draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "out.gguf")
    assert not (tmp_path / "out.gguf").exists()


def test_a_target_that_the_draft_does_not_fit_gives_it_no_tokenizer(tmp_path: Path) -> None:
    source, out = draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "out.gguf"
    with pytest.raises(UnsupportedModel, match="6 layers, and the target has 5"):
        convert_draft(source, out, target=target_path("dflash_qwen35"))
    assert not out.exists()


def test_numbers_beyond_f16_ask_for_bf16(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    home = shutil.copytree(draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "draft")
    values = {
        name: t.dequantize().reshape(t.shape)
        for name, t in drafts.open_draft(home).tensors.items()
        if name == "fc.weight"
    }
    values["fc.weight"][0, 0] = 1e6
    whole = home / "model.safetensors"
    names = {"fc.weight": values["fc.weight"]}
    rest = {n: t for n, t in _all_as_floats(home).items() if n != "fc.weight"}
    save_file({**rest, **names}, whole)
    assert load_file(whole)["fc.weight"][0, 0] == 1e6
    with pytest.raises(UnsupportedModel, match="bf16"):
        convert_draft(home, tmp_path / "out.gguf")
    assert not (tmp_path / "out.gguf").exists()
    made = convert_draft(home, tmp_path / "out.gguf", "bf16")
    assert abs(made.tensors["fc.weight"].dequantize()[0, 0] - 1e6) < 4e3


def _all_as_floats(home: Path) -> dict[str, Any]:
    from engine.draft.safetensors_file import read_tensors

    return {n: t.dequantize() for n, t in read_tensors(home / "model.safetensors").items()}


def test_a_stop_leaves_the_former_file(tmp_path: Path) -> None:
    source, out = draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "out.gguf"
    out.write_bytes(b"former")
    cancel = threading.Event()
    seen: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 3:
            cancel.set()

    with pytest.raises(LoadCancelled):
        convert_draft(source, out, on_progress=stop, cancel=cancel)
    assert out.read_bytes() == b"former"
    assert list(tmp_path.iterdir()) == [out]
    assert len(seen) == 3 and seen[-1][0] < seen[-1][1]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size there")
def test_a_full_disk_is_named_and_leaves_the_former_file(tmp_path: Path) -> None:
    source, out = draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "out.gguf"
    out.write_bytes(b"former")
    with largest_file(300_000), pytest.raises(EngineError, match="No space left on device"):
        convert_draft(source, out, "f32")
    assert out.read_bytes() == b"former"
    assert list(tmp_path.iterdir()) == [out]


def test_a_file_that_does_not_read_back_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.convert import writer

    source, out = draft_path("dflash_qwen3", "full", "hf", tmp_path), tmp_path / "out.gguf"
    monkeypatch.setattr(writer, "_equal", lambda found, meant: False)
    with pytest.raises(ModelFileError, match="read back"):
        convert_draft(source, out)
    assert list(tmp_path.iterdir()) == []


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hf = draft_path("dflash_qwen3", "swa", "hf", tmp_path)
    wide, narrow = tmp_path / "wide.gguf", tmp_path / "narrow.gguf"
    assert main(["convert-draft", str(hf), str(wide), "--dialect", "lucebox"]) == 0
    assert main(["quantize-draft", str(wide), str(narrow), "--scheme", "q4_0"]) == 0
    assert narrow.stat().st_size < wide.stat().st_size / 2
    assert main(["quantize-draft", str(narrow), str(narrow)]) == 2
    assert main(["convert-draft", str(tmp_path / "nothing"), str(wide)]) == 4
    assert main(["quantize-draft", str(target_path("dflash_qwen3")), str(narrow)]) == 4
    out, err = capsys.readouterr()
    assert out == "" and "reads layers 1, 2, 4" in err and "DFlash draft" in err


@pytest.mark.skipif(sys.platform != "linux", reason="the peer is a wheel for Linux")
@pytest.mark.parametrize("kind", ["full", "dflash2"])
@pytest.mark.parametrize("scheme", [None, "q8_0"])
def test_llama_cpp_drafts_with_our_files(kind: str, scheme: str | None, tmp_path: Path) -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    out = tmp_path / "draft.gguf"
    hf, target = draft_path("dflash_qwen3", kind, "hf", tmp_path), target_path("dflash_qwen3")
    convert_draft(hf, out, target=target)
    if scheme:
        quantize_draft(out, out := tmp_path / "small.gguf", scheme)
    p = xllamacpp.CommonParams()
    p.model.path, p.verbosity, p.n_ctx, p.n_parallel = str(target), -1, 512, 1
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    p.speculative.draft.mparams.path, p.speculative.draft.n_max = str(out), 7
    kinds = xllamacpp.common_speculative_type
    p.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH]
    server = xllamacpp.Server(p)
    truth = expected("dflash_qwen3", kind)
    answer = server.handle_completions(
        {"prompt": truth["prompt"].tolist(), "n_predict": 64, "temperature": 0, "ignore_eos": True}
    )
    timings = (json.loads(answer) if isinstance(answer, str) else answer)["timings"]
    accepted = int((truth["step_produced"] - 1).sum())
    # Its arithmetic is coarser than the reference's, and quantised drafts guess a little worse.
    assert abs(timings["draft_n_accepted"] - accepted) <= (8 if scheme else 3)
