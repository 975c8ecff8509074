"""How each family cuts text into words before byte-pair merges: GGUF's `tokenizer.ggml.pre` -> rules.

Patterns are Oniguruma expressions, facts of the families' published tokenizers. Each is applied to the
pieces that the one before it left; its matches become pieces of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Rule:
    """One family's way: the patterns in order, and what its GGUF files leave unsaid.

    `whole_words`: a piece that is a token as it stands is not built by merges. `add_bos`: the default.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False


_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_NOT_HAN = r"&&[^\p{Han}]]"
_ASCII_MARK = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"
_KANA_HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

# Letters with case, as DeepSeek-LLM's tokenizer spells them out.
_CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-"
    "\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-"
    "\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15"
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb"
    "\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183"
    "\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-"
    "\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKS = r" ?[^\s\p{L}\p{N}]+"
_LLAMA3 = rf"{_ENDINGS}|{_WORD}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|{_SPACES}"
_QWEN2 = rf"{_ENDINGS}|{_WORD}|\p{{N}}|{_MARKS}[\r\n]*|{_SPACES}"
_QWEN35 = (
    rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)
_DEEPSEEK3_WORDS = (
    rf"{_ASCII_MARK}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
)
_BY_CASE = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+@|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*@"
_GPT4O_WORDS = _BY_CASE.replace("@", f"{_ENDINGS}?")
_GPT4O = rf"{_GPT4O_WORDS}|\p{{N}}{{1,3}}|{_MARKS}[\r\n/]*|{_SPACES}"
_KIMI_WORDS = _GPT4O_WORDS.replace(_UPPER, "[" + _UPPER + _NOT_HAN).replace(
    _LOWER, "[" + _LOWER + _NOT_HAN
)
_TEKKEN = rf"{_BY_CASE.replace('@', '')}|\p{{N}}|{_MARKS}[\r\n/]*|{_SPACES}"
_JAIS2_SPACES = "".join(rf"|\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))
_NOT_SENTENCE_MARKS = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_LINES = r"[^\n]+|[\n]+"

_DIGITS_GPT2 = Rule((r"\p{N}", _GPT2))
_ONLY_GPT2 = Rule((_GPT2,))
_LLAMA3_PLAIN = Rule((_LLAMA3,))
_LLAMA3_FULL = Rule((_LLAMA3,), whole_words=True, add_bos=True)
_QWEN2_RULE = Rule((_QWEN2,))
_DEEPSEEK3 = Rule((r"\p{N}{1,3}", _KANA_HAN, _DEEPSEEK3_WORDS))
_GPT4O_RULE = Rule((_GPT4O,))
_BAILING = Rule(
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    )
)

DEFAULT = Rule(
    (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
)
"""What files get that name no pre-tokenizer, or one that this version does not know."""

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "default": DEFAULT,
        **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1"), _LLAMA3_FULL),
        **dict.fromkeys(("pixtral", "midm-2.0", "lfm2", "jina-v5-nano"), _LLAMA3_FULL),
        **dict.fromkeys(("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"), _LLAMA3_PLAIN),
        "jais-2": Rule(
            (
                rf"{_ENDINGS}|{_WORD}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|\s*[\r\n]+"
                rf"{_JAIS2_SPACES}|\s{{1,2}}(?!\S)|\s{{1}}",
            )
        ),
        **dict.fromkeys(("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es"), _ONLY_GPT2),
        **dict.fromkeys(("jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe"), _ONLY_GPT2),
        **dict.fromkeys(("gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4"), _ONLY_GPT2),
        **dict.fromkeys(("mpt", "olmo", "jais", "trillion", "granite-docling"), _ONLY_GPT2),
        **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), _DIGITS_GPT2),
        **dict.fromkeys(("codeshell", "exaone", "minerva-7b", "mellum2"), _DIGITS_GPT2),
        "falcon": Rule((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")),
        **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"), _QWEN2_RULE),
        **dict.fromkeys(("stablelm2", "hunyuan", "solar-open", "grok-2"), _QWEN2_RULE),
        "qwen35": Rule((_QWEN35,)),
        "laguna": Rule((_LINES, _QWEN2)),
        "ufakzeka": Rule((rf"{_WORD}|\p{{N}}|{_MARKS}[\r\n]*|{_SPACES}",)),
        "minicpm5": Rule(
            (
                r"\p{N}{1,3}",
                rf"{_ENDINGS}|{_WORD}|\p{{N}}+|{_MARKS}[\r\n]*|{_SPACES}",
            ),
            whole_words=True,
        ),
        "seed-coder": Rule(
            (rf"{_ENDINGS}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",),
        ),
        "exaone-moe": Rule(
            (
                rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
                rf"|{_MARKS}[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
        "deepseek-llm": Rule(
            (
                r"[\r\n]",
                rf"\s?[{_CASED}]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                r"\s+$",
                _CJK,
                r"\p{N}+",
            )
        ),
        "deepseek-coder": Rule((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")),
        **dict.fromkeys(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), _DEEPSEEK3),
        "youtu": Rule(
            (
                "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b"
                "\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|" + _KANA_HAN,
                rf"{_GPT4O_WORDS}|\p{{N}}|{_MARKS}[\r\n/]*|{_SPACES}",
            ),
            whole_words=True,
        ),
        **dict.fromkeys(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), _GPT4O_RULE),
        **dict.fromkeys(("tiny_aya", "cohere2moe"), Rule((r"\d{1,3}(?=(?:\d{3})*\b)", _GPT4O))),
        "kimi-k2": Rule((rf"\p{{Han}}+|{_KIMI_WORDS}|\p{{N}}{{1,3}}|{_MARKS}[\r\n]*|{_SPACES}",)),
        "tekken": Rule((_TEKKEN,), whole_words=True, add_bos=True),
        **dict.fromkeys(("bailingmoe", "bailingmoe2", "llada-moe"), _BAILING),
        **dict.fromkeys(("bloom", "gpt3-finnish", "poro-chat"), Rule((_NOT_SENTENCE_MARKS,))),
        "viking": Rule((_NOT_SENTENCE_MARKS, r"\p{N}")),
        "superbpe": Rule((r"\p{N}+", r"(?=(\d{3})+(?!\d))")),
    }
)
"""By the name that GGUF files carry."""
