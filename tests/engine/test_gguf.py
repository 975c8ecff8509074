"""Reading GGUF files: sound ones exactly, damaged ones with a clean error."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import gguf_header
from engine.entry import refuse_unless_chat_model
from engine.errors import EngineError, ModelFileError, UnsupportedModel
from engine.gguf import (
    meta_array,
    meta_bool,
    meta_float,
    meta_int,
    meta_str,
    open_model,
    part_of,
    read_header,
)
from tests.engine.gguf_writer import (
    ARRAY,
    BOOL,
    F32,
    I32,
    STRING,
    U8,
    U16,
    U32,
    U64,
    gguf,
    model,
    pair,
    scalar,
    tensor,
    text,
)

CASES = Path(__file__).parents[1] / "fixtures" / "gguf"
MANIFEST = json.loads((CASES / "manifest.json").read_text(encoding="utf-8"))["files"]


def write(folder: Path, data: bytes, name: str = "model.gguf") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("case", MANIFEST, ids=lambda c: c["case"] + " " + c["file"])
def test_public_bug_reports(case: dict[str, Any]) -> None:
    path = CASES / case["file"]
    if case["outcome"] == "load":
        expect = case["expect"]
        with open_model(path) as file:
            assert len(file.tensors) == expect.get("total_tensors", len(expect["tensors"]))
            for key, value in expect["kv"].items():
                assert file.meta[key] == value
            for name, want in expect["tensors"].items():
                found = file.tensors[name]
                assert found.type.name == want["type"]
                assert list(found.shape) == want["gguf_dims"][::-1]
                assert found.dequantize().ravel().tolist() == want["values"]
        return
    with pytest.raises(EngineError) as raised:
        refuse_unless_chat_model(read_header(path))
    message = str(raised.value).lower()
    assert any(word in message for word in case["error_any_of"])
    assert any(name.lower() in message for name in case.get("must_name_any_of", [""]))
    assert not any(word in message for word in case.get("error_none_of", []))


def test_numpy_shape_and_rows_of_blocks(tmp_path: Path) -> None:
    data = np.arange(34 * 2 * 3 * 2, dtype=np.uint8).tobytes()
    path = write(tmp_path, gguf([], [tensor("w", [64, 3, 2], 8)], data))
    with open_model(path) as file:
        w = file.tensors["w"]
        assert w.shape == (2, 3, 64) and w.data.shape == (2, 3, 68) and w.n_bytes == len(data)
        assert w.data.tobytes() == data and w.dequantize().shape == (2, 3, 64)
        assert not w.data.flags.writeable


def test_what_a_model_says_of_itself(fixtures: Path) -> None:
    header = read_header(fixtures / "llama.gguf")
    assert (header.architecture, header.name, header.quant) == ("llama", "Llama", "F16")
    with open_model(fixtures / "llama.gguf") as file:
        assert file.n_params == sum(int(np.prod(t.shape)) for t in file.tensors.values())
        assert file.file_bytes == (fixtures / "llama.gguf").stat().st_size
        assert file.path == fixtures / "llama.gguf" and file.files == (file.path,)
    assert file.tensors == {}


@pytest.mark.parametrize(
    ("file_type", "kind", "label"),
    [
        (15, 12, "Q4_K_M"), (14, 12, "Q4_K_S"), (3, 3, "Q4_1"), (1024 + 18, 14, "Q6_K"),
        (27, 21, "IQ3_M"), (38, 39, "MXFP4"), (0, 12, "Q4_K"), (38, 1, "F16"), (999, 8, "Q8_0"),
    ],
)  # fmt: skip
def test_quant_label(tmp_path: Path, file_type: int, kind: int, label: str) -> None:
    sizes = {12: 144, 3: 160, 14: 210, 21: 110, 39: 136, 1: 512, 8: 272}
    pairs = [pair("general.file_type", U32, file_type)]
    path = write(tmp_path, gguf(pairs, [tensor("w", [256], kind)], b"\1" * sizes[kind]))
    assert read_header(path).quant == label


def test_name_falls_back_to_the_file(tmp_path: Path) -> None:
    assert read_header(write(tmp_path, model(name="  "), "My Model.Q4.gguf")).name == "My Model.Q4"
    assert read_header(write(tmp_path, gguf([pair("general.name", U32, 1)]), "x.gguf")).name == "x"


@pytest.mark.parametrize(
    ("file", "name", "shown"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Qwen3 8B", "Qwen3-8B"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Smollm2 135M 8k Lc100K Mix1", "SmolLM2-135M-Instruct"),
        ("gemma-4-31b-it-UD-IQ2_XXS-00001-of-00001.gguf", "Gemma 4", "gemma-4-31b-it"),
        ("sha256-0123", "Qwen3 8B", "Qwen3 8B"),
        ("model.gguf", "Qwen3 8B", "Qwen3 8B"),
    ],
)
def test_a_model_is_called_what_people_call_it(
    tmp_path: Path, file: str, name: str, shown: str
) -> None:
    assert read_header(write(tmp_path, model(name=name), file)).name == shown
    assert read_header(write(tmp_path, gguf(), "y.gguf")).architecture == ""


def test_strings_that_are_not_utf8_stay_apart(tmp_path: Path) -> None:
    items = [b"\xff", b"\xfe", "é".encode(), b"\xed\xa0\x80", b"a\0b"]
    path = write(tmp_path, gguf([pair("t", ARRAY, (STRING, items)), pair("s", STRING, b"\xff!")]))
    meta = read_header(path).meta
    assert meta["t"] == ["\\xff", "\\xfe", "é", "\\xed\\xa0\\x80", "a\0b"]
    assert meta["s"] == "\\xff!"
    for item in (*meta["t"], meta["s"]):
        item.encode("utf-8")


def test_strings_across_the_borders_of_reads(tmp_path: Path) -> None:
    items = [f"{i}" * (i % 97) for i in range(60_000)]
    path = write(
        tmp_path, gguf([pair("long", STRING, "x" * 999_991), pair("t", ARRAY, (STRING, items))])
    )
    meta = read_header(path).meta
    assert meta["t"] == items and len(meta["long"]) == 999_991


def test_nested_arrays_and_their_limit(tmp_path: Path) -> None:
    two = (ARRAY, [(U8, [1, 2]), (STRING, ["a"])])
    assert read_header(write(tmp_path, gguf([pair("k", ARRAY, two)]))).meta["k"] == [[1, 2], ["a"]]
    three = (ARRAY, [two])
    with pytest.raises(ModelFileError, match=r"arrays inside"):
        read_header(write(tmp_path, gguf([pair("k", ARRAY, three)])))


def count(n: int) -> bytes:
    return struct.pack("<Q", n)


BAD_META = {
    "empty key": (pair("", U32, 1), "empty"),
    "key twice": (pair("a", U32, 1) + pair("a", U32, 1), "twice"),
    "unknown value type": (text("a") + struct.pack("<II", 99, 1), "99"),
    "unknown item type": (text("a") + struct.pack("<IIQ", ARRAY, 99, 1), "99"),
    "truth value 2": (pair("a", BOOL, 2), "0 or 1"),
    "array of 2^62": (text("a") + struct.pack("<IIQ", ARRAY, U8, 2**62), "item count"),
    "array of 2^40 strings": (text("a") + struct.pack("<IIQ", ARRAY, STRING, 2**40), "item count"),
    "array of 2^40 arrays": (text("a") + struct.pack("<IIQ", ARRAY, ARRAY, 2**40), "item count"),
    "string of 2^40": (text("a") + struct.pack("<IQ", STRING, 2**40), "length"),
    "string past the end": (text("a") + struct.pack("<IQ", STRING, 10_000), "past the end"),
    "array item past the end": (
        text("a") + struct.pack("<IIQ", ARRAY, STRING, 1) + count(5000), "past the end",
    ),
    "string of 17 MB": (pair("a", STRING, b"x" * (17 << 20)), "length"),
    "five million items": (
        text("a") + struct.pack("<II", ARRAY, U8) + count(5_000_000) + bytes(5_000_000), "count",
    ),
    "alignment as text": (pair("general.alignment", STRING, "32"), "alignment"),
    "alignment 3": (pair("general.alignment", U32, 3), "alignment"),
    "alignment 4": (pair("general.alignment", U32, 4), "alignment"),
    "alignment 2^30": (pair("general.alignment", U32, 1 << 30), "alignment"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_META)
def test_bad_metadata(tmp_path: Path, case: str) -> None:
    body, word = BAD_META[case]
    pairs = 2 if case == "key twice" else 1
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, pairs) + body + bytes(64)
    with pytest.raises(ModelFileError, match=word):
        read_header(write(tmp_path, data))


BAD_TENSORS = {
    "no name": ([tensor("", [4])], 16, "no name"),
    "no dimensions": ([tensor("w", [])], 16, "0 dimensions"),
    "five dimensions": ([tensor("w", [1] * 5)], 16, "5 dimensions"),
    "rows of half blocks": ([tensor("w", [33], 8)], 64, "multiple of 32"),
    "2^63 weights": ([tensor("w", [2**63])], 16, "past the end"),
    "product beyond 2^64": ([tensor("w", [2**40, 2**40, 2**40, 2**40])], 16, "past the end"),
    "offset 2^63": ([tensor("w", [4], 0, 2**63)], 16, "past the end"),
    "offset off the grid": ([tensor("w", [4], 0, 8)], 64, "multiple of the alignment"),
    "overlap": ([tensor("a", [16]), tensor("b", [4], 0, 32)], 96, "overlap"),
    "one byte short": ([tensor("w", [4])], 15, "past the end"),
}


@pytest.mark.parametrize("case", BAD_TENSORS)
def test_bad_tensors(tmp_path: Path, case: str) -> None:
    tensors, n_bytes, word = BAD_TENSORS[case]
    with pytest.raises(ModelFileError, match=word):
        open_model(write(tmp_path, gguf([], tensors, bytes(n_bytes))))


@pytest.mark.parametrize("kind", [4, 5, 31, 36, 38, 200])
def test_removed_and_unknown_types_are_named(tmp_path: Path, kind: int) -> None:
    with pytest.raises(UnsupportedModel, match=rf"w has quantisation type {kind}\b"):
        read_header(write(tmp_path, gguf([], [tensor("w", [256], kind)], bytes(512))))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"GG", "first bytes are 47 47, expected 47 47 55 46"),
        (b"GGUF\3\0", "past the end"),
        (b"\n <html><body>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "Git LFS"),
        (b"PK\x03\x04" + bytes(60), "ZIP"),
        (struct.pack("<Q", 99) + b'{"a":', "safetensors"),
        (b'{"error": "not found"}', "JSON"),
        (b"lmgg" + bytes(40), "old GGML"),
        (b"tjgg" + bytes(40), "old GGML"),
        (b"FUGG" + bytes(40), "byte order"),
        (bytes(4096), "zeros"),
        (b"\x7fELF" + bytes(60), "first bytes are 7F 45 4C 46, expected"),
        (
            "Notes\n\nZwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich".encode(),
            'a text, which begins with "Notes Zwölf Boxkämpfer j"',
        ),
    ],
)
def test_other_files_are_told_apart(tmp_path: Path, data: bytes, word: str) -> None:
    with pytest.raises(ModelFileError, match=word):
        open_model(write(tmp_path, data))


@pytest.mark.parametrize(
    ("version", "word"), [(1, "newer conversion"), (4, "Update"), (0, "Download")]
)
def test_other_versions(tmp_path: Path, version: int, word: str) -> None:
    with pytest.raises(UnsupportedModel, match=f"version {version}.*{word}"):
        read_header(write(tmp_path, gguf(version=version)))


def test_version_2_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, gguf([pair("a", U64, 2**64 - 1)], version=2))
    assert read_header(path).meta["a"] == 2**64 - 1


def test_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file"):
        open_model(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError, match="folder"):
        open_model(tmp_path)
    with pytest.raises(ModelFileError, match="cannot be read"):
        open_model("a\0b.gguf")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelFileError, match="device"):
        open_model(tmp_path / "pipe.gguf")


def test_a_drive_that_fails_while_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    path = write(tmp_path, model())
    monkeypatch.setattr(gguf_header, "open_regular", Failing)
    with pytest.raises(ModelFileError, match="Input/output error"):
        read_header(path)


def test_names_in_any_script(tmp_path: Path) -> None:
    for name in ("模型　テスト", "Ünïcödé Љубав", "space at end ", "emoji 🦙"):
        folder = tmp_path / name
        folder.mkdir()
        with open_model(write(folder, model(name="x"), f"{name}.gguf")) as file:
            assert file.tensors["token_embd.weight"].dequantize().tolist() == [1, 1, 1, 1]


@pytest.fixture
def split(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CASES / "h12_split", tmp_path / "split"))


def test_a_missing_part_is_named_from_any_other(split: Path) -> None:
    (split / "tiny-q8-00002-of-00003.gguf").unlink()
    for no in (1, 3):
        with pytest.raises(ModelFileError, match=r"1 of 3 parts.*tiny-q8-00002-of-00003\.gguf"):
            open_model(split / f"tiny-q8-0000{no}-of-00003.gguf")


def test_a_renamed_part_says_which_name_it_needs(split: Path) -> None:
    renamed = (split / "tiny-q8-00001-of-00003.gguf").rename(split / "tiny.gguf")
    with pytest.raises(ModelFileError, match=r"one of 3 parts.*original names"):
        open_model(renamed)


def test_parts_of_another_model_are_noticed(split: Path) -> None:
    shutil.copy(split / "tiny-q8-00001-of-00003.gguf", split / "tiny-q8-00002-of-00003.gguf")
    with pytest.raises(ModelFileError, match=r"split\.no is 0, expected 1"):
        open_model(split / "tiny-q8-00003-of-00003.gguf")


def part(no: int, of: int, total: int, name: str) -> bytes:
    pairs = [
        pair("split.no", U16, no), pair("split.count", U16, of),
        pair("split.tensors.count", I32, total),
    ]  # fmt: skip
    return gguf(pairs, [tensor(name, [4])], bytes(16))


def test_tensors_of_a_set_are_counted_and_unique(tmp_path: Path) -> None:
    for no, name in enumerate("ab"):
        write(tmp_path, part(no, 2, 3, name), f"m-0000{no + 1}-of-00002.gguf")
    with pytest.raises(ModelFileError, match="2 tensors, expected 3"):
        open_model(tmp_path / "m-00002-of-00002.gguf")
    write(tmp_path, part(1, 2, 2, "a"), "m-00002-of-00002.gguf")
    with pytest.raises(ModelFileError, match="tensor a is already"):
        open_model(tmp_path / "m-00001-of-00002.gguf")


def test_a_part_that_claims_65535_parts(tmp_path: Path) -> None:
    path = write(tmp_path, part(0, 65_535, 1, "a"), "m-00001-of-65535.gguf")
    with pytest.raises(UnsupportedModel, match=r"split\.count"):
        open_model(path)


def test_part_names() -> None:
    assert part_of("a-b-00002-of-00003.GGUF") == ("a-b", 2, 3)
    assert part_of("a-2-of-3.gguf") is None and part_of("a.gguf") is None


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, model())
    with open_model(path) as file:
        assert file.changed() is None
        data = path.read_bytes()
        path.write_bytes(data + b"more")
        assert "bytes when opened" in (file.changed() or "")
        path.unlink()
        assert file.changed() is None
        path.write_bytes(data)


def test_a_view_outlives_the_file_object(tmp_path: Path) -> None:
    with open_model(write(tmp_path, model())) as file:
        view = file.tensors["token_embd.weight"].data
    file.close()
    assert view.view(np.float32).tolist() == [1, 1, 1, 1]


META = {"i": 5, "f": 0.5, "s": "x", "b": True, "a": [1, 2], "m": [1, "x"], "inf": float("inf")}


def test_typed_reads() -> None:
    assert meta_int(META, "i", low=1, high=5) == 5 and meta_int(META, "none", default=7) == 7
    assert meta_float(META, "f") == 0.5 and meta_float(META, "i") == 5.0
    assert isinstance(meta_float(META, "i"), float)
    assert meta_str(META, "s", choices=("x", "y")) == "x" and meta_bool(META, "b") is True
    assert meta_array(META, "a", int, length=2) == [1, 2] and meta_array(META, "z", int, []) == []


@pytest.mark.parametrize(
    ("read", "error", "words"),
    [
        (lambda: meta_int(META, "none"), ModelFileError, "no none"),
        (lambda: meta_int(META, "b"), ModelFileError, "b is True.*whole number"),
        (lambda: meta_int(META, "f"), ModelFileError, "f is 0.5"),
        (lambda: meta_int(META, "i", low=6), UnsupportedModel, "i is 5, expected from 6"),
        (lambda: meta_int(META, "i", high=4), UnsupportedModel, "up to 4"),
        (lambda: meta_float(META, "s"), ModelFileError, "a number"),
        (lambda: meta_float(META, "inf"), UnsupportedModel, "finite"),
        (lambda: meta_str(META, "i", where="x.gguf"), ModelFileError, r"x\.gguf: i is 5.*text"),
        (lambda: meta_str(META, "s", choices=("a", "b")), UnsupportedModel, "one of a, b"),
        (lambda: meta_bool(META, "i"), ModelFileError, "true or false"),
        (lambda: meta_array(META, "i", int), ModelFileError, "expected a list"),
        (lambda: meta_array(META, "a", int, length=3), ModelFileError, "2 items, expected 3"),
        (lambda: meta_array(META, "m", int), ModelFileError, "'x', expected a whole number"),
    ],
)  # fmt: skip
def test_typed_reads_name_key_found_and_expected(read: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        read()


def test_a_large_vocabulary_keeps_its_order(tmp_path: Path) -> None:
    words = [f"tok{i}Ġ" for i in range(248_320)]
    pairs = [
        text("tokens") + struct.pack("<I", ARRAY) + scalar(ARRAY, (STRING, words)),
        text("scores") + struct.pack("<I", ARRAY) + scalar(ARRAY, (F32, [0.5] * len(words))),
    ]
    meta = read_header(write(tmp_path, gguf(pairs))).meta
    assert meta["tokens"] == words and meta["scores"] == [0.5] * len(words)
