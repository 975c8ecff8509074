"""What a file is, by its header alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.entry import inspect, refuse_unless_chat_model
from engine.errors import UnsupportedModel
from engine.gguf import read_header
from tests.engine.gguf_writer import STRING, U32, gguf, model
from tests.engine.gguf_writer import pair as key
from tests.engine.model_folders import CASES, PROJECTOR, SOUND, put


def test_a_chat_model(fixtures: Path) -> None:
    entry = inspect(fixtures / "llama.gguf")
    assert (entry.kind, entry.problem, entry.name) == ("chat", "", "Llama")
    assert (entry.architecture, entry.quant, entry.context) == ("llama", "F16", 2048)
    assert entry.n_layers == 4 and entry.n_experts == 0 and entry.n_params > 1_000_000
    assert entry.size == (fixtures / "llama.gguf").stat().st_size
    assert entry.files == (entry.path,) and entry.footprint is not None


@pytest.mark.parametrize(
    "arch",
    [
        "dflash", "dflash-draft", "qwen35-dflash-draft", "gemma4-dflash-draft",
        "deepseek4-dflash-draft", "eagle3", "gemma4-assistant",
    ],
)  # fmt: skip
def test_drafts_are_recognised_and_not_run(tmp_path: Path, arch: str) -> None:
    path = put(tmp_path / "m.gguf", model(arch))
    assert inspect(path).kind == "draft" and not inspect(path).problem
    with pytest.raises(UnsupportedModel, match="draft"):
        refuse_unless_chat_model(read_header(path))


@pytest.mark.parametrize(
    ("arch", "word"),
    [("bert", "embedding"), ("flux", "image"), ("whisper", "audio"), ("", "architecture")],
)
def test_other_kinds_say_what_they_are(tmp_path: Path, arch: str, word: str) -> None:
    path = put(tmp_path / "m.gguf", model(arch))
    entry = inspect(path)
    assert entry.kind == "unknown" and word in entry.problem
    with pytest.raises(UnsupportedModel, match=word):
        refuse_unless_chat_model(read_header(path))


@pytest.mark.parametrize("type_", ["adapter", "imatrix", "mmproj"])
def test_the_type_of_a_file_counts(tmp_path: Path, type_: str) -> None:
    path = put(tmp_path / "m.gguf", model("llama", more=[key("general.type", STRING, type_)]))
    assert inspect(path).kind == ("projector" if type_ == "mmproj" else "unknown")


def test_a_projector_by_its_content_and_not_by_its_name() -> None:
    assert inspect(PROJECTOR).kind == "projector"
    with pytest.raises(UnsupportedModel, match="vision projector"):
        refuse_unless_chat_model(read_header(PROJECTOR))


def test_a_vocabulary_alone_is_no_model(tmp_path: Path) -> None:
    path = put(tmp_path / "v.gguf", gguf([key("general.architecture", STRING, "llama")]))
    assert inspect(path).kind == "unknown" and "no weights" in inspect(path).problem


def test_an_architecture_without_a_model_file(tmp_path: Path) -> None:
    entry = inspect(put(tmp_path / "m.gguf", model("mamba9")))
    assert (entry.kind, entry.problem) == ("chat", "This version cannot run mamba9 yet.")


@pytest.mark.parametrize("case", sorted(CASES.glob("h*.gguf")), ids=lambda p: p.name)
def test_damaged_files_never_raise(case: Path) -> None:
    entry = inspect(case)
    sound = case in (SOUND, PROJECTOR)
    assert (entry.kind in ("chat", "projector")) == sound
    assert bool(entry.problem) != sound and entry.size == case.stat().st_size


def test_a_type_of_the_future_is_not_called_damage() -> None:
    entry = inspect(CASES / "h07_unknown_type_105.gguf")
    assert entry.kind == "unknown" and "105" in entry.problem


def test_what_is_not_there() -> None:
    assert inspect(Path("none.gguf")).kind == "broken"
    assert inspect(Path("/")).kind == "broken"


def test_experts_are_counted(tmp_path: Path) -> None:
    more = [key("llama.expert_count", U32, 8), key("llama.block_count", U32, 2)]
    path = put(tmp_path / "m.gguf", model(more=more))
    assert (inspect(path).n_experts, inspect(path).n_layers) == (8, 2)


def test_numbers_of_the_wrong_type_are_left_out(tmp_path: Path) -> None:
    more = [key("llama.context_length", STRING, "many"), key("general.name", U32, 3)]
    entry = inspect(put(tmp_path / "m.gguf", model(more=more)))
    assert (entry.context, entry.name, entry.kind) == (0, "m", "chat")
