"""A published draft becomes files of chosen sizes in one go, whole or not at all."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from engine.convert.make import draft_stem, is_published_draft, make_draft, size_in
from engine.draft.candidates import candidates
from engine.draft.files import open_draft
from engine.errors import BadRequest, LoadCancelled
from engine.library import sort_dropped
from tests.engine.draft.drafts import FIXTURES, draft_path, target_path

FAMILY = "dflash_qwen3"
SOURCE = FIXTURES / FAMILY / "full"


def test_every_scheme_is_written_once_and_fits_its_model(tmp_path: Path) -> None:
    said: list[str] = []
    told: list[str] = []
    made = make_draft(
        SOURCE, tmp_path, ("f16", "q8_0"), target_path(FAMILY),
        lambda scheme, done, total: said.append(scheme), lambda scheme, path: told.append(scheme),
    )  # fmt: skip
    assert list(made) == told == ["f16", "q8_0"] and list(dict.fromkeys(said)) == ["", *told]
    assert sorted(tmp_path.iterdir()) == sorted(made.values())
    sizes = {scheme: open_draft(path).n_bytes for scheme, path in made.items()}
    assert sizes == {scheme: size_in(open_draft(SOURCE), scheme) for scheme in made}
    assert sizes["q8_0"] < sizes["f16"]
    found = candidates(target_path(FAMILY), made.values())
    assert [c.problem for c in found if c.path is not None] == ["", ""]


def test_what_was_stopped_leaves_nothing_half_made(tmp_path: Path) -> None:
    cancel = threading.Event()
    with pytest.raises(LoadCancelled):
        make_draft(
            SOURCE, tmp_path, ("f16", "q8_0"), None, None, lambda *made: cancel.set(), cancel
        )
    assert [p.name for p in tmp_path.iterdir()] == ["full.F16.gguf"], "the first one was whole"
    with pytest.raises(BadRequest):
        make_draft(SOURCE, tmp_path, ("q9",))


def test_published_drafts_are_known_when_they_are_dropped(tmp_path: Path) -> None:
    assert is_published_draft(SOURCE) and is_published_draft(SOURCE / "model.safetensors")
    other = tmp_path / "llama"
    shutil.copytree(SOURCE, other)
    (other / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    assert not is_published_draft(other) and not is_published_draft(tmp_path)
    dropped = sort_dropped([SOURCE, other])
    assert dropped.sources == (SOURCE,) and [p for p, _ in dropped.ignored] == [other]
    assert sort_dropped([SOURCE / "model.safetensors"]).sources


def test_names_come_from_the_folder_where_the_file_says_nothing() -> None:
    assert draft_stem(Path("a/Swift-DFlash/model.safetensors")) == "Swift-DFlash"
    assert draft_stem(Path("a/Swift.gguf")) == draft_stem(Path("a/Swift.q8_0.gguf")) == "Swift"


def test_the_source_is_never_written_over(tmp_path: Path) -> None:
    made = make_draft(SOURCE, tmp_path, ("q8_0",))["q8_0"]
    before = made.read_bytes()
    with pytest.raises(BadRequest, match="source itself"):
        make_draft(made, tmp_path, ("q8_0",))
    assert made.read_bytes() == before


def test_candidates_say_why_a_draft_does_not_fit(tmp_path: Path) -> None:
    good = draft_path(FAMILY, "full", "lucebox-a", tmp_path)
    other = draft_path("dflash_qwen35", "full", "hf", tmp_path)
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no")
    found = candidates(target_path(FAMILY), [good, other, broken, target_path(FAMILY)])
    assert [c.value for c in found] == ["ngram", str(good), str(other), str(broken)]
    assert found[1].problem == "" and found[1].size > 0
    assert "layers" in found[2].problem and found[3].problem
