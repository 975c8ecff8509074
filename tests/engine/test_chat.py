"""Chat templates: rendered as transformers would, and encoded so that no text becomes a marker."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.chat import ChatTemplate
from engine.errors import BadRequest, TemplateError
from engine.gguf import open_model
from engine.tokenizer import Tokenizer, TokenType
from tests.engine.text_fixtures import KEY, case, load, small_vocabulary, tokenizer

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Takes the thoughts out of earlier answers, and puts tools and calls as JSON.
THINKING = (
    "{% if tools %}{% for t in tools %}{{ t | tojson }}\n{% endfor %}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] + '\n' }}"
    "{%- set text = m['content'] or '' %}"
    "{%- if m.role == 'assistant' and '</think>' in text %}"
    "{%- set text = text.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{- text + '<|im_end|>' }}"
    "{%- for c in m.tool_calls or [] %}<call>{{ c.function.arguments | tojson }}{% endfor %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{{ '<think>' if think }}{% endif %}"
)
MARKERS = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<s>", "</s>", "[INST]"]
HI = [{"role": "user", "content": "Hi"}]


@cache
def compiled(source: str) -> ChatTemplate:
    return make(source)


def make(source: str, model: Tokenizer | None = None, **options: Any) -> ChatTemplate:
    return ChatTemplate({"default": source}, model or marked(), **options)


@cache
def marked() -> Tokenizer:
    """A byte-level vocabulary with `MARKERS` as control tokens and one visible token."""
    extra = [(text, TokenType.CONTROL) for text in MARKERS]
    return Tokenizer.from_gguf(
        small_vocabulary([*extra, ("<call>", TokenType.USER_DEFINED)], eos_token_id=257)
    )


def markers_in(ids: list[int], model: Tokenizer) -> list[str]:
    return [model.token_text(i) for i in ids if model.is_control(i)]


@pytest.mark.parametrize(
    ("row", "variant"),
    [(row, variant) for row in load("templates") for variant in row["variants"]],
    ids=lambda part: part.get("id") or part["name"],
)
def test_cases_from_bug_reports(row: dict[str, Any], variant: dict[str, Any]) -> None:
    template = make(row["template"], now=lambda: datetime.fromisoformat(row["now"]))
    context = copy.deepcopy(row["default_context"] | variant["context"])
    messages, tools = context.pop("messages"), context.pop("tools")
    if "expected" in variant:
        assert template.render(messages, tools, **context) == variant["expected"]
        if "api_input" in variant:
            assert template.render(variant["api_input"], tools, **context) == variant["expected"]
    elif row["id"] == "H-TPL-05":
        # The text of arguments is parsed first, so the fault cannot happen.
        assert template.render(messages, tools, **context) == row["variants"][0]["expected"]
    else:
        with pytest.raises(TemplateError) as caught:
            template.render(messages, tools, **context)
        assert variant["expected_error"]["message"] in str(caught.value)


@pytest.mark.parametrize("identity", ["H-TOK-02", "H-TOK-03"])
def test_prompts_with_markers(identity: str) -> None:
    row = case("tokenizer", identity)
    model = tokenizer(row["vocab"], add_bos_token=row.get("add_bos", True))
    template = make(row["template"], model, special={"bos_token": "<|begin_of_text|>"})
    ids = template.encode(row["messages"], None, row["add_generation_prompt"])
    assert ids == row["expected_prompt_ids"]


def test_the_demo_model_s_chat(demo_model: Path) -> None:
    with open_model(demo_model) as file:
        model = Tokenizer.from_gguf(file.meta)
        template = ChatTemplate.from_gguf(file.meta, model)
    chat = load("smollm2_chat")
    assert template.exists and template.problem is None
    for name, messages, prompt in (
        ("with_system", chat["messages"], True),
        ("no_system", chat["messages"][1:], True),
        ("no_generation_prompt", chat["messages"], False),
    ):
        assert template.render(messages, add_generation_prompt=prompt) == chat["rendered"][name]
        assert template.encode(messages, add_generation_prompt=prompt) == chat["ids"][name]


FRAGMENTS = st.sampled_from(
    [
        *MARKERS,
        "<",
        "<|",
        "<|im_",
        "im_end|>",
        "|>",
        ">",
        "end|>",
        "</",
        "s>",
        "[",
        "INST]",
        "a",
        "\n",
        "é",
    ]
)
TEXTS = st.lists(FRAGMENTS, max_size=6).map("".join)


@given(system=TEXTS, user=TEXTS, tool=TEXTS, key=TEXTS, think=TEXTS)
@settings(max_examples=200, deadline=None)
def test_no_text_becomes_a_marker(system: str, user: str, tool: str, key: str, think: str) -> None:
    model = marked()
    template = compiled(THINKING)
    harmless = markers_in(template.encode([{"role": r, "content": "x"} for r in "abc"]), model)
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": user},
        {"role": "tool", "content": tool},
    ]
    tools = [{"name": tool, key: {"description": [system]}}]
    ids = template.encode(messages, tools, think=think)
    assert markers_in(ids, model) == harmless + ["<think>"] * bool(think)
    assert model.decode(ids, special=True) == template.render(messages, tools, think=think)


@given(parts=st.lists(TEXTS, min_size=1, max_size=4))
def test_texts_side_by_side_make_no_marker(parts: list[str]) -> None:
    model = marked()
    template = compiled("{% for m in messages %}{{ m.content }}{% endfor %}")
    messages = [{"role": "user", "content": part} for part in parts]
    ids = template.encode(messages)
    assert markers_in(ids, model) == []
    assert model.decode(ids) == "".join(parts)


def test_markers_that_the_template_puts_together_are_markers() -> None:
    model = marked()
    template = make(
        "{% for m in messages %}{{ '<|' + m.role + '|>' }}{{ m.content }}{% endfor %}", model
    )
    ids = template.encode([{"role": "im_start", "content": ">|im_end|>"}])
    assert markers_in(ids, model) == ["<|im_start|>"]


def test_thoughts_are_found_in_the_model_s_own_answers_only() -> None:
    model = marked()
    template = make(THINKING, model)
    messages = [
        {"role": "user", "content": "what does </think> do?"},
        {"role": "assistant", "content": "<think>hm</think>\n\nIt ends <|im_end|>"},
        {"role": "user", "content": "</think>"},
    ]
    ids = template.encode(messages, add_generation_prompt=False)
    assert markers_in(ids, model) == ["<|im_start|>", "<|im_end|>"] * 3
    assert model.decode(ids, special=True) == template.render(messages, None, False)
    assert "hm" not in model.decode(ids)


def test_private_characters_in_messages_survive() -> None:
    model = marked()
    text = "\ue000<|im_end|>\ue001 \U000f0000"
    ids = make(CHATML, model).encode([{"role": "user", "content": text}], None, False)
    assert model.decode(ids, special=True) == f"<|im_start|>user\n{text}<|im_end|>\n"
    assert markers_in(ids, model) == ["<|im_start|>", "<|im_end|>"]


def test_escaped_json_keeps_texts_apart_too() -> None:
    model = marked()
    template = make("{{ messages[0].content | tojson(ensure_ascii=true) }}", model)
    for text in ("<|im_end|>", "\\ue000<|im_end|>", "\ue000 é <s>"):
        messages = [{"role": "user", "content": text}]
        ids = template.encode(messages)
        assert markers_in(ids, model) == []
        assert model.decode(ids) == template.render(messages)


def test_visible_tokens_are_found_in_text() -> None:
    model = marked()
    ids = make(CHATML, model).encode([{"role": "user", "content": "a<call>b"}])
    assert model.marker_id("<call>") in ids


@pytest.mark.parametrize("add_bos", [True, False])
@pytest.mark.parametrize("source", ["{{ bos_token }}Hi", "{{ bos_token }}{{ bos_token }}Hi", "Hi"])
def test_one_bos(add_bos: bool, source: str) -> None:
    model = tokenizer("bpe_vocab.gguf", add_bos_token=add_bos)
    ids = make(source, model, special={"bos_token": "<|begin_of_text|>"}).encode(HI)
    assert ids.count(620) == (1 if add_bos or "bos" in source else 0)
    assert ids[-2:] == model.encode("Hi", add_bos=False)[-2:]


def test_message_lists_are_left_as_they_were() -> None:
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    messages = [{"role": "assistant", "content": ["<s>"], "tool_calls": [call]}]
    before = copy.deepcopy(messages)
    make("{{ messages[0].content | map(attribute='text') | list }}").encode(messages)
    assert messages == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"b": [1, "ü"], "a": null}', '{"b": [1, "ü"], "a": null}'), ("", "{}")],
)
def test_arguments_of_calls_are_mappings(arguments: str, text: str) -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    messages = [*HI, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert make(THINKING).render(messages, None, False).endswith(f"<call>{text}")


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    call = {"function": {"name": "look_up", "arguments": arguments}}
    with pytest.raises(BadRequest, match=r"(?s)Message 1 .*'look_up'.*JSON object"):
        make(THINKING).render([{"role": "assistant", "tool_calls": [call]}])


def test_templates_that_want_arguments_as_text_get_text() -> None:
    source = "{{ 'x' + messages[0].tool_calls[0].function.arguments }}"
    call = {"function": {"name": "f", "arguments": '{"a":"ü"}'}}
    messages = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    assert make(source).render(messages) == 'x{"a": "ü"}'


def test_parts_of_text_are_text_where_the_template_knows_no_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "user", "content": parts}]
    assert make("{{ messages[0].content }}").render(messages) == "a\nb"
    assert make("{{ messages[0].content[1].text }}").render(messages) == "b"
    assert make("{{ messages[0]['content'][1]['text'] }}").render(messages) == "b"
    one = [{"role": "user", "content": parts[:1]}]
    assert make(CHATML).encode(one) == make(CHATML).encode([{"role": "user", "content": "a"}])


def test_parts_that_are_no_text_are_refused_where_the_template_knows_none() -> None:
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]
    with pytest.raises(BadRequest, match=r"image_url.*text only"):
        make(CHATML).render(picture)


@pytest.mark.parametrize(
    "messages", [[], ["Hi"], [{"content": "Hi"}], [{"role": None, "content": ""}]]
)
def test_malformed_messages_are_refused(messages: list[Any]) -> None:
    with pytest.raises(BadRequest, match=r"[Mm]essage"):
        make(CHATML).render(messages)


def test_failures_of_templates_are_told() -> None:
    for source, words in {
        "{{ raise_exception('no system role') }}": "refused.*no system role",
        "{{ messages[9].content }}": "failed.*UndefinedError",
        "{{ 'a' * 10**9 }}": "stopped.*too much text",
        "{{ ''.__class__.__mro__ }}": "not allowed.*__class__",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "failed.*Recursion",
    }.items():
        with pytest.raises(TemplateError, match=words):
            make(source).render(HI)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a\n{% for %}", "line 2"),
        ("{{ x | no_such_filter }}", "no_such_filter"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "Recursion"),
        ("{% if a %}" * 200 + "{% endif %}" * 200, "nested|indent|Recursion"),
        ("x" * 1_000_001, "1,000,001"),
    ],
)
def test_a_template_that_is_no_template_can_be_loaded_but_not_used(source: str, words: str) -> None:
    template = make(source)
    assert template.problem is not None
    with pytest.raises(TemplateError, match=words):
        template.render(HI)


def test_without_a_template_a_common_one_is_used() -> None:
    template = ChatTemplate.from_gguf({}, marked())
    assert not template.exists
    assert template.render(HI) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    template = ChatTemplate.from_gguf({}, tokenizer("spm_vocab.gguf", tokens=renamed()))
    assert template.render([{"role": "system", "content": "Be brief."}, *HI]) == (
        "System: Be brief.\n\nUser: Hi\n\nAssistant:"
    )


def renamed() -> list[str]:
    """The SentencePiece vocabulary without ChatML's markers."""
    tokens = case("tokenizer", "H-TOK-06") and tokenizer("spm_vocab.gguf")
    return [tokens.token_text(i).replace("<|im_", "<|xx_") for i in range(tokens.vocab_size)]


def test_choice_of_templates() -> None:
    key = "tokenizer.chat_template"
    meta = {
        key: "plain", key + "s": ["tool_use", "rag"], key + ".tool_use": "with tools", key + ".rag": "rag",
        KEY + "bos_token_id": 65 - 33,
    }  # fmt: skip
    template = ChatTemplate.from_gguf(meta, marked())
    assert template.render(HI) == template.render(HI, []) == "plain"
    assert template.render(HI, [{"name": "f"}]) == "with tools"
    assert ChatTemplate.from_gguf(meta, marked(), "{{ bos_token }}!").render(HI, [{}]) == "A!"
    assert ChatTemplate.from_gguf({**meta, key: 5}, marked()).render(HI) == "with tools"


def test_settings_of_templates() -> None:
    source = "{{ think }}{{ bos_token }}{{ documents }}{{ tools }}{{ add_generation_prompt }}"
    template = make(source, special={"bos_token": "<s>"})
    assert template.render(HI) == "<s>NoneNoneTrue"
    assert template.render(HI, None, False, think=1, bos_token="B") == "1BNoneNoneFalse"


def test_the_date_is_today_s() -> None:
    before = f"{datetime.now():%Y-%m-%d}"
    shown = make("{{ strftime_now('%Y-%m-%d') }}").render(HI)
    assert before <= shown <= f"{datetime.now():%Y-%m-%d}"


def test_threads_may_share_it() -> None:
    template = make(THINKING)
    chats = [[{"role": "user", "content": f"{i}<|im_end|>"}] for i in range(100)]
    wanted = [template.encode(chat) for chat in chats]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: [template.encode(chat) for chat in chats], range(4))
    assert list(found) == [wanted] * 4


def test_long_chats_are_within_the_limits() -> None:
    source = (
        "{% set ns = namespace(text='') %}{% for m in messages %}"
        "{% set ns.text = ns.text + m.content %}{% endfor %}{{ ns.text }}"
    )
    messages = [{"role": "user", "content": "x" * 5000}] * 400
    assert len(make(source).render(messages)) == 2_000_000


def test_content_that_is_none_is_empty_text_where_the_template_needs_text() -> None:
    call = {"function": {"name": "f", "arguments": "{}"}}
    messages = [*HI, {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert make("{# tools #}{{ messages[1].content is none }}").render(messages) == "True"
    source = "{# tools #}{% for m in messages %}{{ m.role + ':' + m.content }};{% endfor %}"
    assert make(source).render(messages) == "user:Hi;assistant:;"


def test_the_first_failure_is_told() -> None:
    messages = [{"role": "assistant", "content": None, "tool_calls": [{"arguments": "{}"}]}]
    with pytest.raises(TemplateError, match="ZeroDivision"):
        make(
            "{# tools #}{{ 1 / 0 if messages[0].content is none else raise_exception('later') }}"
        ).render(messages)


@pytest.mark.parametrize("name", ["bpe_vocab.gguf", "spm_vocab.gguf"])
def test_harmless_messages_give_the_ids_of_the_rendered_text(name: str) -> None:
    model = tokenizer(name)
    template = make(CHATML, model)
    messages = [
        {"role": "system", "content": " Be brief. "},
        {"role": "user", "content": "naïve\n 😀"},
    ]
    assert template.encode(messages) == model.encode(template.render(messages), special=True)


def test_messages_nested_too_deeply_are_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadRequest, match="nested too deeply"):
        make("{{ messages[0].text }}").encode([{"role": "user", "content": deep}])
