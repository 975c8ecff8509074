"""Text to token ids and back, built from a GGUF file's metadata alone."""

from __future__ import annotations

import codecs
import contextlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import IntEnum
from typing import Any

import tokenizers
from tokenizers import models, pre_tokenizers

from engine.errors import BadRequest, ModelFileError, UnsupportedModel
from engine.gguf import meta_array, meta_bool, meta_int, meta_str
from engine.markers import Markers
from engine.pretokenizers import DEFAULT, RULES, Rule
from engine.remembered import Encode, Remembered
from engine.sentencepiece import SPACE, GreedyMerges

_KEY = "tokenizer.ggml."
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BETWEEN = re.compile("[a-z] [a-z]")
_UNKNOWN_TEXT = " \u2047 "

# Texts that end a turn or an answer. The first kind cannot be anything else; the second counts only where
# the file calls it a control token.
_END_OF_TURN = frozenset(
    (
        *(
            "<|im_end|>",
            "<|eot_id|>",
            "<|eom_id|>",
            "<|end|>",
            "<|return|>",
            "<|call|>",
            "<|calls|>",
        ),
        *("<|flush|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<end_of_utterance>"),
        *("<turn|>", "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
    )
)
_END_OF_TURN_IF_CONTROL = frozenset(
    (
        *("</s>", "<eos>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "[e~[", "</assistant>"),
        *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),
    )
)
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


class TokenType(IntEnum):
    """The numbers of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Tokenizer:
    """One model's vocabulary; may be shared by threads."""

    def __init__(
        self,
        tokens: list[str],
        types: list[int],
        encoder: Encode,
        byte_of: Mapping[str, int] | None,
        *,
        bos_id: int | None,
        end_ids: Iterable[int],
        add_bos: bool,
        strip_first_space: bool,
        warnings: tuple[str, ...] = (),
        cut: re.Pattern[str] | None = None,
    ) -> None:
        """Use `from_gguf`. `encoder` takes a text between control tokens, and whether it is at the start or
        behind one, and `cut` says where it may be cut; `byte_of` maps the characters of byte-level tokens to
        bytes."""
        self._tokens = tokens
        self._types = types
        self._encode_text = Remembered(encoder, cut=cut)
        self._byte_of = byte_of
        # Characters that stand for no byte become one that Latin-1 has not.
        known = {ord(c): chr(b) for c, b in (byte_of or {}).items()}
        self._latin = dict.fromkeys(range(0x80, 0x100), "\uffff") | known
        self.bos_id = bos_id
        self.eos_ids = frozenset(end_ids)
        self.longest = max(map(len, tokens))  # characters that one token stands for, at most
        self.add_bos = add_bos and bos_id is not None
        self._strip_first_space = strip_first_space
        self.warnings = warnings
        self._markers = {
            text: token
            for token, (text, kind) in enumerate(zip(tokens, types, strict=True))
            if kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
        }
        # Text cannot be kept apart from a marker of one character, so such a one is never found in it.
        self.control_markers = Markers(
            {
                t: token
                for t, token in self._markers.items()
                if self.is_control(token) and len(t) > 1
            }
        )

    @classmethod
    def from_gguf(cls, meta: Mapping[str, Any]) -> Tokenizer:
        """Build it from the keys `tokenizer.ggml.*`; `ModelFileError` or `UnsupportedModel` if that fails."""
        with _no_panic():
            return _build(meta)

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self._tokens)

    def is_control(self, token: int) -> bool:
        """Whether a token is a marker that is not part of the text."""
        return self._types[self._known(token)] == TokenType.CONTROL

    def token_text(self, token: int) -> str:
        """A token as the vocabulary spells it."""
        return self._tokens[self._known(token)]

    def marker_id(self, text: str) -> int | None:
        """The id of the control token or user-defined token `text`."""
        return self._markers.get(text)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for; may be a part of a character."""
        text, kind = self.token_text(token), self._types[token]
        if kind in (TokenType.CONTROL, TokenType.USER_DEFINED):
            return text.encode()
        if kind == TokenType.BYTE and (match := _BYTE_TOKEN.fullmatch(text)):
            return bytes([int(match[1], 16)])
        if self._byte_of is None:
            if kind == TokenType.UNKNOWN:
                return _UNKNOWN_TEXT.encode()
            return text.replace(SPACE, " ").encode()
        try:
            return text.translate(self._latin).encode("latin-1")
        except UnicodeEncodeError:  # it holds a character that stands for itself
            return b"".join(
                bytes([self._byte_of[c]]) if c in self._byte_of else c.encode() for c in text
            )

    def encode(
        self, text: str, special: bool = False, add_bos: bool | None = None, shield: str = ""
    ) -> list[int]:
        """The ids of `text`.

        `special`: markers in the text become control tokens. `add_bos`: begin with the BOS token unless
        the text does; by default as the model wants it. `shield`: a character that is taken out after
        the markers are found.
        """
        text = _without_lone_surrogates(text)
        ids: list[int] = []
        first = True
        for piece in self.control_markers.split(text) if special else [text]:
            if isinstance(piece, int):
                ids.append(piece)
            elif piece := piece.replace(shield, "") if shield else piece:
                ids += self._encode_text(piece, first)
            first = isinstance(piece, int)
        if add_bos if add_bos is not None else self.add_bos:
            if self.bos_id is None:
                raise BadRequest("The model has no BOS token to begin with; leave add_bos out.")
            if ids[:1] != [self.bos_id]:
                ids.insert(0, self.bos_id)
        return ids

    def forget(self) -> None:
        """Hold nothing of what was encoded any more."""
        self._encode_text.forget()

    def decode(self, ids: Iterable[int], special: bool = False, at_start: bool = True) -> str:
        """The text of `ids`; control tokens appear only if `special`. See `detokenizer`."""
        stream = Detokenizer(self, special, at_start)
        return "".join([*map(stream.push, ids), stream.flush()])

    def detokenizer(
        self, special: bool = False, at_start: bool = True, shown: Set[int] = frozenset()
    ) -> Detokenizer:
        """A stream of text from tokens; of control tokens those in `shown` appear, or all if `special`.

        `at_start`: the text begins here, so the space that SentencePiece puts ahead of a text is taken
        away; False where the tokens go on with a text.
        """
        return Detokenizer(self, special, at_start, shown)

    def _known(self, token: int) -> int:
        if not 0 <= token < len(self._tokens):
            raise BadRequest(
                f"Token id {token} is not in the vocabulary, expected 0 to {len(self._tokens) - 1}."
            )
        return token


class Detokenizer:
    """Turns tokens into text as they come, never emitting half a character."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        special: bool = False,
        at_start: bool = True,
        shown: Set[int] = frozenset(),
    ) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._shown = shown
        self._strip = at_start and tokenizer._strip_first_space
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that `token` completes, possibly none."""
        return self.push_bytes(self._token_bytes(token))

    def data(self, token: int) -> bytes:
        """The bytes that `token` adds to the text if it comes next."""
        data = self._token_bytes(token)
        return data.removeprefix(b" ") if self._strip else data

    def push_bytes(self, data: bytes) -> str:
        """The text that `data` completes; bytes that cannot become a character come out as U+FFFD."""
        if self._strip and data:
            self._strip = False
            data = data.removeprefix(b" ")
        return self._bytes.decode(data)

    def _token_bytes(self, token: int) -> bytes:
        hidden = self._tokenizer.is_control(token) and token not in self._shown
        return b"" if hidden and not self._special else self._tokenizer.token_bytes(token)

    def flush(self) -> str:
        """What is left: U+FFFD for an unfinished character, else nothing."""
        return self._bytes.decode(b"", final=True)


@contextlib.contextmanager
def _no_panic() -> Iterator[None]:
    """Turn failures of the `tokenizers` library, which may panic, into `ModelFileError`."""
    try:
        yield
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"
        if panic or type(error) is Exception or isinstance(error, ValueError | OverflowError):
            raise ModelFileError(
                f"The vocabulary cannot be used: {error}. The file is damaged or made by a faulty tool; "
                "get another version of the model."
            ) from error
        raise


def _without_lone_surrogates(text: str) -> str:
    if not text.isascii() and re.search("[\ud800-\udfff]", text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _build(meta: Mapping[str, Any]) -> Tokenizer:
    model = meta_str(meta, _KEY + "model")
    if model not in ("gpt2", "llama", "gemma4"):
        raise UnsupportedModel(
            f"The tokenizer is of kind {model!r}, expected gpt2, llama or gemma4. "
            "This version cannot read its text."
        )
    tokens = [t or f"[EMPTY_{i}]" for i, t in enumerate(meta_array(meta, _KEY + "tokens", str))]
    if not tokens:
        raise _faulty(f"{_KEY}tokens is empty, expected the vocabulary")
    if len(set(tokens)) != len(tokens):
        text, count = Counter(tokens).most_common(1)[0]
        raise _faulty(f"{_KEY}tokens holds {text!r} {count} times, expected each token once")
    normal = [int(TokenType.NORMAL)] * len(tokens)
    types = list(meta_array(meta, _KEY + "token_type", int, normal, len(tokens)))
    warnings: list[str] = []
    bos, ends = _ends(meta, tokens, types, warnings)
    add_bos = True
    byte_of: Mapping[str, int] | None = None
    cut: re.Pattern[str] | None = None
    if model == "llama":
        encoder: Encode = _sentencepiece(meta, tokens, types)
    elif model == "gemma4":
        encoder = _spaced_merges(meta, tokens, types, warnings)
    else:
        rule = _rule(meta, warnings)
        add_bos = rule.add_bos
        byte_of = {c: b for b, c in enumerate(_byte_alphabet())}
        encoder, cut = _byte_level(meta, tokens, types, rule, warnings)
    # Some of Gemma 4's files wrongly say false.
    add_bos = meta_bool(meta, _KEY + "add_bos_token", add_bos) or model == "gemma4"
    return Tokenizer(
        tokens, types, encoder, byte_of, bos_id=bos, end_ids=ends,
        add_bos=add_bos,
        strip_first_space=model == "llama" and meta_bool(meta, _KEY + "add_space_prefix", True),
        warnings=tuple(warnings), cut=cut,
    )  # fmt: skip


def _faulty(what: str) -> ModelFileError:
    return ModelFileError(
        f"{what}. The file is damaged or made by a faulty tool; get another version of the model."
    )


def _special_id(meta: Mapping[str, Any], name: str, n_tokens: int) -> int | None:
    token = meta_int(meta, _KEY + name, -1)
    # Writers say "none" with the largest number of 32 bits.
    if token in (-1, 2**32 - 1):
        return None
    if not 0 <= token < n_tokens:
        raise _faulty(f"{_KEY}{name} is {token}, expected 0 to {n_tokens - 1}")
    return token


def _ends(
    meta: Mapping[str, Any], tokens: list[str], types: list[int], warnings: list[str]
) -> tuple[int | None, set[int]]:
    """The BOS token and all that end an answer; corrects `types` where these are plainly wrong."""
    n = len(tokens)
    ends = {token for key in _END_KEYS if (token := _special_id(meta, key, n)) is not None}
    declared = frozenset(ends)
    for token, text in enumerate(tokens):
        if text in _END_OF_TURN:
            ends.add(token)
            if types[token] != TokenType.CONTROL:
                types[token] = TokenType.CONTROL
                warnings.append(
                    f"The file calls {text!r} plain text; it is used as the end of a turn."
                )
        elif text in _END_OF_TURN_IF_CONTROL and types[token] == TokenType.CONTROL:
            ends.add(token)
    texts = {tokens[token]: token for token in ends}
    # In OpenAI's and Solar's formats this one only ends a part of an answer.
    if "<|end|>" in texts and texts.keys() & {"<|call|>", "<|calls|>"}:
        ends -= {texts["<|end|>"]} - declared
    # Gemma 4 knows it as a tag of HTML.
    if "</s>" in texts and "<|tool_response>" in texts:
        ends -= {texts["</s>"]} - declared
    return _special_id(meta, "bos_token_id", n), ends


def _rule(meta: Mapping[str, Any], warnings: list[str]) -> Rule:
    name = meta_str(meta, _KEY + "pre", "")
    if name in RULES:
        return RULES[name]
    found = f"does not know the pre-tokenizer {name!r}" if name else "finds no pre-tokenizer named"
    warnings.append(
        f"This version {found}; answers may be worse, since text is cut by a common rule."
    )
    return DEFAULT


def _byte_alphabet() -> list[str]:
    """The character that byte-level vocabularies write for each byte (GPT-2)."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b if b in printable else next(others)) for b in range(256)]


def _byte_pairs(
    meta: Mapping[str, Any], tokens: list[str], warnings: list[str], **options: Any
) -> tokenizers.Tokenizer:
    """The library's tokenizer with the file's vocabulary and merges.

    A merge of pieces that are no tokens, or that makes none, is left out with a warning: it can lead to no
    token, and the library panics at it.
    """
    vocab = {text: token for token, text in enumerate(tokens)}
    texts = meta_array(meta, _KEY + "merges", str)
    merges = [*map(_cut, texts)]
    named = itertools.chain(itertools.chain.from_iterable(merges), map("".join, merges))
    if not all(map(vocab.__contains__, named)):
        if (
            half := next((t for t, m in zip(texts, merges, strict=True) if not m[1]), None)
        ) is not None:
            raise _faulty(f"{_KEY}merges holds {half[:80]!r}, expected two tokens")
        good = [m for m in merges if {*m, "".join(m)} <= vocab.keys()]
        bad = next(
            t for t, m in zip(texts, merges, strict=True) if not {*m, "".join(m)} <= vocab.keys()
        )
        warnings.append(
            f"{len(merges) - len(good):,} of {len(merges):,} merges name no tokens and are left out,"
            f" the first is {bad[:80]!r}; text may be cut in other places than the model expects."
        )
        merges = good
    return tokenizers.Tokenizer(models.BPE(vocab, merges, **options))


def _cut(merge: str) -> tuple[str, str]:
    # The first part may itself begin with a space. No token is empty, so "" is found out later.
    cut = merge.find(" ", 1)
    return (merge[:cut], merge[cut + 1 :]) if cut > 0 else (merge, "")


def _visible(tokens: list[str], types: list[int]) -> dict[str, int]:
    """User-defined tokens: found in any text as they stand, ahead of all merges."""
    return {
        text: token
        for token, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind == TokenType.USER_DEFINED
    }


def _byte_level(
    meta: Mapping[str, Any], tokens: list[str], types: list[int], rule: Rule, warnings: list[str]
) -> tuple[Encode, re.Pattern[str] | None]:
    engine = _byte_pairs(meta, tokens, warnings, ignore_merges=rule.whole_words)
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(tokenizers.Regex(p), "isolated") for p in rule.patterns]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    visible = Markers(_visible(tokens, types))

    def merge(text: str) -> list[int]:
        [ids] = _encoded(engine, [text])
        return ids

    # Nearly all rules begin a word at a space between letters, whatever comes before and behind. (The sample
    # is joined here, since sentences in sources are collected for translation.)
    words = [place for _, place in engine.pre_tokenizer.pre_tokenize_str(" ".join(("ab", "cd")))]
    apart = words == [(0, 2), (2, 5)]
    apart = apart and not any(re.search("[a-z] ", text) for text in _visible(tokens, types))
    return lambda text, first: visible.encode(text, merge), _BETWEEN if apart else None


def _spaced_merges(
    meta: Mapping[str, Any], tokens: list[str], types: list[int], warnings: list[str]
) -> Encode:
    """Merges on plain text whose spaces are written as `SPACE`, line by line, with byte fallback."""
    unknown = _special_id(meta, "unknown_token_id", len(tokens))
    engine = _byte_pairs(
        meta, tokens, warnings, byte_fallback=True, fuse_unk=True,
        unk_token=None if unknown is None else tokens[unknown],
    )  # fmt: skip
    visible = Markers(_visible(tokens, types))
    # Merges need not make every run of line ends that is a token.
    runs = {text: token for token, text in enumerate(tokens) if not text.strip("\n")}

    def merge(text: str) -> list[int]:
        lines = re.findall(r"\n+|[^\n]+", text.replace(" ", SPACE))
        merged = iter(_encoded(engine, [line for line in lines if line not in runs]))
        ids: list[int] = []
        for line in lines:
            ids += [runs[line]] if line in runs else next(merged)
        return ids

    return lambda text, first: visible.encode(text, merge)


def _encoded(engine: tokenizers.Tokenizer, texts: list[str]) -> list[list[int]]:
    """The ids of each text; unlike `encode` it lets other threads run meanwhile, and is faster."""
    return [found.ids for found in engine.encode_batch_fast(texts, add_special_tokens=False)]


def _sentencepiece(meta: Mapping[str, Any], tokens: list[str], types: list[int]) -> Encode:
    scores = meta_array(meta, _KEY + "scores", float, length=len(tokens))
    if not all(map(math.isfinite, scores)):
        raise _faulty(f"{_KEY}scores holds a number that is not finite")
    mergeable = (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)
    merges = GreedyMerges(
        {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind in mergeable},
        scores,
        frozenset(i for i, kind in enumerate(types) if kind == TokenType.UNUSED),
        _byte_ids(tokens, types),
        _special_id(meta, "unknown_token_id", len(tokens)),
    )
    prefix = meta_bool(meta, _KEY + "add_space_prefix", True)
    visible = Markers({t.replace(" ", SPACE): i for t, i in _visible(tokens, types).items()})

    def encode(text: str, first: bool) -> list[int]:
        text = text.replace(" ", SPACE)
        return visible.encode(SPACE + text if first and prefix else text, merges.encode)

    return encode


def _byte_ids(tokens: Sequence[str], types: Sequence[int]) -> list[int] | None:
    """The ids of the 256 byte tokens in order of their bytes, None if there are none."""
    found: dict[int, int] = {}
    for token, (text, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind == TokenType.BYTE:
            match = _BYTE_TOKEN.fullmatch(text)
            if not match:
                raise _faulty(
                    f"{_KEY}tokens has the byte token {text[:40]!r}, expected <0x00> to <0xFF>"
                )
            found[int(match[1], 16)] = token
    if found and len(found) != 256:
        raise _faulty(f"{_KEY}tokens has {len(found)} byte tokens, expected 256 or none")
    return [found[b] for b in range(256)] if found else None
