"""Text to token ids and back, built from a GGUF file's metadata alone."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from engine.encoders import (
    BYTE_TOKEN,
    KEY,
    TokenType,
    byte_alphabet,
    byte_level,
    faulty,
    sentencepiece,
    spaced_merges,
    special_id,
)
from engine.errors import BadRequest, ModelFileError, UnsupportedModel
from engine.gguf import meta_array, meta_bool, meta_str
from engine.markers import Markers
from engine.pretokenizers import DEFAULT, RULES, Rule
from engine.remembered import Encode, Remembered
from engine.sentencepiece import SPACE

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
        if kind == TokenType.BYTE and (match := BYTE_TOKEN.fullmatch(text)):
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
    model = meta_str(meta, KEY + "model")
    if model not in ("gpt2", "llama", "gemma4"):
        raise UnsupportedModel(
            f"The tokenizer is of kind {model!r}, expected gpt2, llama or gemma4. "
            "This version cannot read its text."
        )
    tokens = [t or f"[EMPTY_{i}]" for i, t in enumerate(meta_array(meta, KEY + "tokens", str))]
    if not tokens:
        raise faulty(f"{KEY}tokens is empty, expected the vocabulary")
    if len(set(tokens)) != len(tokens):
        text, count = Counter(tokens).most_common(1)[0]
        raise faulty(f"{KEY}tokens holds {text!r} {count} times, expected each token once")
    normal = [int(TokenType.NORMAL)] * len(tokens)
    types = list(meta_array(meta, KEY + "token_type", int, normal, len(tokens)))
    warnings: list[str] = []
    bos, ends = _ends(meta, tokens, types, warnings)
    add_bos = True
    byte_of: Mapping[str, int] | None = None
    cut: re.Pattern[str] | None = None
    if model == "llama":
        encoder: Encode = sentencepiece(meta, tokens, types)
    elif model == "gemma4":
        encoder = spaced_merges(meta, tokens, types, warnings)
    else:
        rule = _rule(meta, warnings)
        add_bos = rule.add_bos
        byte_of = {c: b for b, c in enumerate(byte_alphabet())}
        encoder, cut = byte_level(meta, tokens, types, rule, warnings)
    # Some of Gemma 4's files wrongly say false.
    add_bos = meta_bool(meta, KEY + "add_bos_token", add_bos) or model == "gemma4"
    return Tokenizer(
        tokens, types, encoder, byte_of, bos_id=bos, end_ids=ends,
        add_bos=add_bos,
        strip_first_space=model == "llama" and meta_bool(meta, KEY + "add_space_prefix", True),
        warnings=tuple(warnings), cut=cut,
    )  # fmt: skip


def _ends(
    meta: Mapping[str, Any], tokens: list[str], types: list[int], warnings: list[str]
) -> tuple[int | None, set[int]]:
    """The BOS token and all that end an answer; corrects `types` where these are plainly wrong."""
    n = len(tokens)
    ends = {token for key in _END_KEYS if (token := special_id(meta, key, n)) is not None}
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
    return special_id(meta, "bos_token_id", n), ends


def _rule(meta: Mapping[str, Any], warnings: list[str]) -> Rule:
    name = meta_str(meta, KEY + "pre", "")
    if name in RULES:
        return RULES[name]
    found = f"does not know the pre-tokenizer {name!r}" if name else "finds no pre-tokenizer named"
    warnings.append(
        f"This version {found}; answers may be worse, since text is cut by a common rule."
    )
    return DEFAULT
