"""Tokenizers against Hugging Face's, SentencePiece and llama.cpp; streams of text; damaged metadata."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import remembered
from engine.errors import BadRequest, ModelFileError, UnsupportedModel
from engine.gguf import open_model
from engine.pretokenizers import RULES
from engine.tokenizer import Tokenizer, TokenType
from tests.engine.text_fixtures import KEY, case, load, small_vocabulary, tokenizer, vocabulary

BPE, SPM = "bpe_vocab.gguf", "spm_vocab.gguf"


@pytest.mark.parametrize("identity", ["H-TOK-01", "H-TOK-06"])
def test_ids_equal_the_reference(identity: str) -> None:
    rows = case("tokenizer", identity)
    model = tokenizer(rows["vocab"])
    for row in rows["rows"]:
        special = row.get("parse_special", False)
        assert model.encode(row["text"], special, add_bos=False) == row["ids"], row["text"]
        assert model.decode(row["ids"], special=True) == row["text"]
    for row in rows.get("decode_rows", []):
        assert model.decode(row["ids"]) == row["text"]


def test_ids_and_text_equal_sentencepiece() -> None:
    fixture = load("sentencepiece")
    model = Tokenizer.from_gguf(fixture["meta"])
    for row in fixture["rows"]:
        assert model.encode(row["text"], add_bos=False) == row["ids"], row["text"]
        assert model.decode(row["ids"]) == row["decoded"]


def test_sentencepiece_merges_the_best_piece_first_and_the_leftmost_of_equals() -> None:
    pieces = {"a": 0.0, "b": 0.0, "ab": -2.0, "ba": -1.0, "aa": -3.0, "aab": -3.0}
    model = spm(pieces)
    assert texts(model, "aba") == ["a", "ba"]
    assert texts(model, "aaab") == ["aa", "ab"]
    assert texts(model, "aaa") == ["aa", "a"]
    # Two ways to one piece: the left one counts, whichever parts it has.
    assert texts(spm({"a": 0.0, "aa": -1.0, "aaa": -1.0}), "aaaaa") == ["aaa", "aa"]


def test_sentencepiece_takes_unused_pieces_apart_again() -> None:
    pieces = {"a": 0.0, "b": 0.0, "c": 0.0, "ab": -1.0, "abc": -2.0}
    assert texts(spm(pieces), "ab") == ["ab"]
    assert texts(spm(pieces, unused={"ab"}), "ab") == ["a", "b"]
    assert texts(spm(pieces, unused={"ab"}), "abc") == ["abc"]


def test_sentencepiece_without_byte_tokens_has_one_unknown_for_a_run() -> None:
    assert texts(spm({"a": 0.0}), "aéàa") == ["a", "<unk>", "a"]
    assert spm({"a": 0.0}).decode([1, 0]) == "a \u2047 "


def test_pieces_that_cross_words_are_still_found() -> None:
    model = spm({"a": 0.0, "b": 0.0, "\u2581": 0.0, "a\u2581": -1.0, "a\u2581b": -2.0})
    assert texts(model, "a b") == ["a\u2581b"]


@pytest.mark.parametrize("rule", load("pretokenizers")["rules"], ids=lambda rule: rule["pre"])
def test_each_pre_tokenizer_cuts_like_llama_cpp(rule: dict[str, Any], demo_meta: Any) -> None:
    model = Tokenizer.from_gguf(
        demo_meta | {KEY + "pre": rule["pre"], KEY + "add_bos_token": False}
    )
    assert not model.warnings
    for text, ids in zip(load("pretokenizers")["texts"], rule["ids"], strict=True):
        assert model.encode(text) == ids, text
        assert model.decode(ids) == text


def test_every_rule_is_compared() -> None:
    compared = {RULES[rule["pre"]] for rule in load("pretokenizers")["rules"]}
    assert compared == set(RULES.values())


@pytest.mark.parametrize("name", sorted({rule: name for name, rule in RULES.items()}.values()))
def test_where_a_text_may_be_cut_it_gives_the_same_ids_in_two(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "PIECE", 3)
    monkeypatch.setattr(remembered, "SHORT", 0)
    model = tokenizer(BPE, pre=name)
    cut = model._encode_text._cut
    assert (cut is None) == (name in ("exaone-moe", "superbpe"))
    rng, n_cuts = random.Random(name), 0
    parts = ["the", "don't", "I'll", " 's", "12", " 3456 ", "\n", " \n\n  ", "\r\n", "    ", "\t", "...", "!",
             "\u4e2d\u6587", "\u3042", "e\u0301", "\U0001f600", "\ud55c", "UPPER", "CamelCase",
             "a/b", "$x", "(s", "\u3000", "@", "x y", "so it", "\u00e9t\u00e9", "\u0967", "a.", "word",
             "|"]  # fmt: skip
    for _ in range(300):
        text = "".join(
            rng.choice(parts) + rng.choice(("", " ", " ", " ")) for _ in range(rng.randrange(2, 25))
        )
        n_cuts += len(list(model._encode_text._pieces(text))) - 1
        whole = model._encode_text._encode(text, True)
        assert model.encode(text, add_bos=False) == whole, text
    assert cut is None or n_cuts > 300


def test_a_token_with_a_space_behind_a_letter_leaves_texts_whole() -> None:
    meta = small_vocabulary([("a b", TokenType.USER_DEFINED)])
    assert Tokenizer.from_gguf(meta)._encode_text._cut is None
    assert Tokenizer.from_gguf(small_vocabulary([]))._encode_text._cut is not None


def test_unknown_pre_tokenizer_warns_and_uses_the_common_rule() -> None:
    model = tokenizer(BPE, pre="from-the-future")
    assert "from-the-future" in model.warnings[0]
    assert model.encode("12 don't") == tokenizer(BPE, pre="default").encode("12 don't")
    assert "no pre-tokenizer" in Tokenizer.from_gguf(without(vocabulary(BPE), "pre")).warnings[0]


def test_the_demo_model_s_prompts(demo_meta: Any) -> None:
    model = Tokenizer.from_gguf(demo_meta)
    assert not model.warnings
    assert (model.vocab_size, model.bos_id, model.eos_ids) == (49152, 1, {0, 2})
    for prompt in load("smollm2_prompts"):
        assert model.encode(prompt["text"]) == prompt["ids_no_special"]
        assert model.encode(prompt["text"]) == prompt["ids_add_special"] or "<|" in prompt["text"]
        assert model.encode(prompt["text"], special=True) == prompt["ids_parse_special"]
        assert model.decode(prompt["ids_parse_special"], special=True) == prompt["detok"]


def test_gemma_4_keeps_line_ends_whole_and_falls_back_to_bytes() -> None:
    model = Tokenizer.from_gguf(gemma())
    assert texts(model, "ab  b\n\n\na", add_bos=False) == ["ab", "▁▁", "b", "\n\n\n", "a"]
    assert texts(model, "\n\n\n\n", add_bos=False) == ["\n\n", "\n\n"]
    assert texts(model, "é", add_bos=False) == ["<0xC3>", "<0xA9>"]
    assert texts(model, "a<|tool>b", add_bos=False) == ["a", "<|tool>", "b"]
    assert model.encode("a")[0] == model.bos_id
    for text in ("ab  b\n\n\na", " é 😀\n", "a<|tool>b"):
        assert model.decode(model.encode(text)) == text


def test_one_bos_at_the_start() -> None:
    model = tokenizer(BPE)
    assert model.encode("A") == [620, 32]
    assert model.encode("A", add_bos=False) == [32]
    assert model.encode("<|begin_of_text|>A", special=True) == [620, 32]
    assert tokenizer(BPE, add_bos_token=False).encode("A") == [32]
    assert tokenizer(BPE, add_bos_token=False).encode("A", add_bos=True) == [620, 32]
    none = Tokenizer.from_gguf(without(vocabulary(BPE), "bos_token_id"))
    assert none.encode("A") == [32]
    with pytest.raises(BadRequest, match="no BOS"):
        none.encode("A", add_bos=True)


def test_what_ends_an_answer() -> None:
    def ends(extra: list[tuple[str, TokenType]], **keys: int) -> set[str]:
        model = Tokenizer.from_gguf(small_vocabulary(extra, **keys))
        return {model.token_text(i) for i in model.eos_ids}

    control, visible, normal = TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.NORMAL
    assert ends([("<e>", control), ("<t>", control)], eos_token_id=256, eot_token_id=257) == {
        "<e>", "<t>"
    }  # fmt: skip
    assert ends([("<|im_end|>", control), ("</s>", control), ("<turn|>", normal)]) == {
        "<|im_end|>", "</s>", "<turn|>"
    }  # fmt: skip
    assert ends([("</s>", normal), ("</assistant>", visible)]) == set()
    assert ends([("<|end|>", control), ("<|return|>", control), ("<|call|>", control)]) == {
        "<|return|>", "<|call|>"
    }  # fmt: skip
    assert ends([("</s>", control), ("<|tool_response>", visible)]) == {"<|tool_response>"}


def test_an_end_of_turn_called_text_is_corrected_and_told() -> None:
    model = Tokenizer.from_gguf(small_vocabulary([("<|im_end|>", TokenType.NORMAL)]))
    assert model.is_control(256)
    assert "<|im_end|>" in model.warnings[0]
    assert model.decode([65 - 33, 256]) == "A"


@pytest.mark.parametrize("identity", ["H-TOK-04", "H-TOK-05"])
def test_no_delta_holds_half_a_character(identity: str) -> None:
    wanted = case("tokenizer", identity)
    stream = tokenizer(BPE).detokenizer()
    pieces = [bytes.fromhex(piece) for piece in wanted["token_bytes_hex"]]
    deltas = [stream.push_bytes(piece) for piece in pieces]
    assert deltas == wanted["expected_deltas"]
    text = "".join(deltas) + stream.flush()
    assert text in wanted.get("expected_text_any_of", [wanted.get("expected_text")])


@pytest.mark.parametrize("name", [BPE, SPM])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_streams_equal_the_whole(name: str, data: st.DataObject) -> None:
    model = tokenizer(name)
    ids = data.draw(st.lists(st.integers(0, model.vocab_size - 1), max_size=30))
    stream = model.detokenizer()
    shown = ""
    for token in ids:
        shown += stream.push(token)
        assert model.decode(ids).startswith(shown)
    assert shown + stream.flush() == model.decode(ids)


@pytest.mark.parametrize("name", [BPE, SPM])
@given(text=st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_text_survives_the_round_trip(name: str, text: str) -> None:
    model = tokenizer(name)
    if name == SPM:
        text = text.replace("\u2581", "_")
    assert model.decode(model.encode(text)) == text
    assert not any(map(model.is_control, model.encode(text, add_bos=False)))


def test_bytes_that_cannot_become_a_character_come_out_at_once() -> None:
    stream = tokenizer(BPE).detokenizer()
    assert [stream.push_bytes(b) for b in (b"\xf0\x9f", b"A", b"\xff", b"\xc3")] == [
        "",
        "\ufffdA",
        "\ufffd",
        "",
    ]
    assert stream.flush() == "\ufffd"


def test_the_space_ahead_of_a_text_is_kept_where_text_goes_on() -> None:
    model = tokenizer(SPM)
    ids = model.encode("hello", add_bos=False)
    assert model.decode(ids) == "hello"
    assert model.decode(ids, at_start=False) == " hello"
    assert model.decode([model.bos_id, *ids]) == "hello"


def test_lone_surrogates_become_replacement_signs() -> None:
    model = tokenizer(BPE)
    assert model.encode("a\ud800b") == model.encode("a\ufffdb")
    assert model.encode("\ud83d\ude00") == model.encode("😀")


def test_ids_outside_the_vocabulary_are_refused() -> None:
    model = tokenizer(BPE)
    for token in (-1, model.vocab_size):
        for use in (
            model.token_bytes,
            model.token_text,
            model.is_control,
            model.detokenizer().push,
        ):
            with pytest.raises(BadRequest, match=f"{token}.*0 to 623"):
                use(token)


def test_threads_may_share_it(demo_meta: Any) -> None:
    models = [tokenizer(SPM), Tokenizer.from_gguf(demo_meta)]
    rng = random.Random(1)
    lines = ["".join(rng.choices("ab \nüé😀the", k=40)) for _ in range(200)]
    wanted = [[m.encode(line) for line in lines] for m in models]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: [[m.encode(line) for line in lines] for m in models], range(4))
    assert list(found) == [wanted] * 4


DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no tokens": ({"tokens": None}, "tokens"),
    "empty": ({"tokens": [], "token_type": [], "merges": []}, "tokens"),
    "tokens not text": ({"tokens": [1] * 624}, "text"),
    "types too few": ({"token_type": [1]}, "624"),
    "no merges": ({"merges": None}, "merges"),
    "merge of one part": ({"merges": ["!"]}, "'!'"),
    "empty merge": ({"merges": [""]}, "merges"),
    "same token twice": ({"tokens": ["!"] * 624}, "'!' 624 times"),
    "bos out of range": ({"bos_token_id": 624}, "624.*0 to 623"),
    "eos negative": ({"eos_token_id": -5}, "-5"),
    "eos not a number": ({"eos_token_id": "2"}, "eos_token_id"),
    "model unknown": ({"model": "wordpiece"}, "wordpiece"),
    "no model": ({"model": None}, "model"),
}


@pytest.mark.parametrize("merge", ["qqq zzz", "! !"])
def test_a_merge_that_makes_no_token_is_left_out_and_told(merge: str) -> None:
    meta = dict(vocabulary(BPE))
    wanted = Tokenizer.from_gguf(meta).encode("Hello, world! 123")
    meta[KEY + "merges"] = [merge, *meta[KEY + "merges"]]
    found = Tokenizer.from_gguf(meta)
    assert found.encode("Hello, world! 123") == wanted
    assert any(merge in warning for warning in found.warnings)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_metadata_is_told(damage: str) -> None:
    changes, words = DAMAGES[damage]
    meta = vocabulary(BPE) | {KEY + k: v for k, v in changes.items()}
    meta = {k: v for k, v in meta.items() if v is not None}
    with pytest.raises((ModelFileError, UnsupportedModel), match=words):
        Tokenizer.from_gguf(meta)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": None}, "scores"),
        ({"scores": [0.0]}, "560"),
        ({"scores": [float("nan")] * 560}, "finite"),
        ({"token_type": [6] * 560}, "byte token"),
        ({"token_type": [1] * 5 + [6] + [1] * 554}, "256"),
    ],
)
def test_damaged_sentencepiece_metadata_is_told(changes: dict[str, Any], words: str) -> None:
    meta = vocabulary(SPM) | {KEY + k: v for k, v in changes.items()}
    with pytest.raises(ModelFileError, match=words):
        Tokenizer.from_gguf({k: v for k, v in meta.items() if v is not None})


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_damage_is_an_error_or_works(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([BPE, SPM]))
    meta = dict(vocabulary(name))
    key = data.draw(st.sampled_from(sorted(k for k in meta if k.startswith(KEY))))
    odd = st.one_of(
        st.none(), st.integers(-(2**40), 2**40), st.text(max_size=5), st.floats(), st.booleans(),
        st.lists(st.text(max_size=3), max_size=5), st.lists(st.integers(-9, 9), max_size=5),
    )  # fmt: skip
    meta[key] = data.draw(odd)
    if isinstance(vocabulary(name)[key], list) and data.draw(st.booleans()):
        items = list(vocabulary(name)[key])
        items[data.draw(st.integers(0, len(items) - 1))] = data.draw(odd)
        meta[key] = items
    try:
        model = Tokenizer.from_gguf(meta)
    except (ModelFileError, UnsupportedModel):
        return
    model.decode(model.encode("Hello wörld\n"))


@pytest.fixture(scope="module")
def demo_meta(demo_model: Path) -> dict[str, Any]:
    """The demo model's metadata."""
    with open_model(demo_model) as file:
        return {k: v for k, v in file.meta.items() if k.startswith("tokenizer")}


def texts(model: Tokenizer, text: str, **options: Any) -> list[str]:
    return [model.token_text(i) for i in model.encode(text, **options)]


def without(meta: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in meta.items() if k != KEY + key}


def spm(pieces: dict[str, float], unused: set[str] = frozenset()) -> Tokenizer:  # type: ignore[assignment]
    """A SentencePiece vocabulary of an unknown token and `pieces` with their scores."""
    types = [TokenType.UNUSED if p in unused else TokenType.NORMAL for p in pieces]
    return Tokenizer.from_gguf(
        {
            KEY + "model": "llama",
            KEY + "tokens": ["<unk>", *pieces],
            KEY + "scores": [0.0, *pieces.values()],
            KEY + "token_type": [int(TokenType.UNKNOWN), *map(int, types)],
            KEY + "unknown_token_id": 0,
            KEY + "add_space_prefix": False,
        }
    )


def gemma() -> dict[str, Any]:
    """A vocabulary in the manner of Gemma 4."""
    tokens = ["<unk>", "<bos>", *(f"<0x{b:02X}>" for b in range(256))]
    types = [3, 3] + [6] * 256
    for text in ("a", "b", "▁", "\n", "ab", "▁▁", "\n\n", "\n\n\n"):
        tokens.append(text)
        types.append(1)
    return {
        KEY + "model": "gemma4",
        KEY + "tokens": [*tokens, "<|tool>"],
        KEY + "token_type": [*types, 4],
        KEY + "merges": ["a b", "▁ ▁", "\n \n"],
        KEY + "bos_token_id": 1,
        KEY + "unknown_token_id": 0,
        KEY + "add_bos_token": False,
    }
