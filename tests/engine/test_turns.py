"""An agent's turns: what a model wrote goes back into its prompt token for token, where templates permit.

The templates are our own, written in the ways of the families: thinking kept or closed, calls as JSON, as
tags, as keys and values, in DeepSeek's and in Gemma's marks.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.chat import ChatTemplate
from engine.output import OutputParser
from engine.pieces import Content, Reasoning, ToolCallArguments, ToolCallStart
from engine.reasoning import opened_by
from engine.tokenizer import Tokenizer, TokenType
from engine.toolcalls.plain import in_plain_text, knows_tools
from tests.engine.test_output import D, tool
from tests.engine.text_fixtures import small_vocabulary

LOOP = "{% for m in messages %}"
CALL = "{% for c in m.tool_calls or [] %}{% set f = c.function %}"
USER = "{% if m.role == 'user' %}<|im_start|>user\n{{ m.content }}<|im_end|>\n"
TOOL = (
    "{% elif m.role == 'tool' %}<|im_start|>tool {{ m.name }}\n{{ m.content }}<|im_end|>\n"
    "{% elif m.role == 'assistant' %}<|im_start|>assistant\n"
)
THINK = "<think>\n{{ m.reasoning_content | trim }}\n</think>\n\n"
PROMPT = "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
END = "<|im_end|>\n{% endif %}{% endfor %}" + PROMPT

FAMILIES = {
    "json": (
        LOOP + USER + TOOL + THINK + "{{ m.content }}" + CALL + "{% if m.content or not loop.first %}\n"
        "{% endif %}<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}"
        "\n</tool_call>{% endfor %}" + END
    ),
    "xml": (
        LOOP + USER + TOOL + THINK + "{{ m.content | trim }}" + CALL + "{% if m.content | trim or not "
        "loop.first %}\n\n{% endif %}<tool_call>\n<function={{ f.name }}>\n{% for k, v in "
        "f.arguments | items %}<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n"
        "{% endfor %}</function>\n</tool_call>{% endfor %}" + END
    ),
    "keyed": (
        LOOP + USER + TOOL + "<think>\n{{ m.reasoning.strip() }}\n</think>\n{% if m.content.strip() %}"
        "{{ m.content.strip() }}\n{% endif %}" + CALL + "<tool_call>{{ f.name }}\n{% for k, v in "
        "f.arguments.items() %}<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v if v is string else v | "
        "tojson }}</arg_value>\n{% endfor %}</tool_call>\n{% endfor %}" + END
    ),
    "dsml": (
        LOOP + USER + TOOL + "<think>\n{{ m.reasoning_content }}</think>{{ m.content }}{% if "
        f"m.tool_calls %}}\n\n<{D}tool_calls>\n" + CALL + f'<{D}invoke name="{{{{ f.name }}}}">\n'
        f'{{% for k, v in f.arguments.items() %}}<{D}parameter name="{{{{ k }}}}" string="'
        "{{ 'true' if v is string else 'false' }}\">{{ v if v is string else v | tojson }}"
        f"</{D}parameter>\n{{% endfor %}}</{D}invoke>\n{{% endfor %}}</{D}tool_calls>{{% endif %}}" + END
    ),
}  # fmt: skip

TOOLS = [
    tool("get_weather", city={"type": "string"}, days={"type": "integer"}),
    tool("write_file", path={"type": "string"}, text={"type": "string"}, deep={"type": "object"}),
]
TURNS: list[list[tuple[str, dict[str, Any]]]] = [
    [("get_weather", {"city": "Łódź", "days": 2})],
    [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome", "days": 1})],
    [("write_file", {"path": "a.py", "text": "\n  if a < 1:\n\n    b('\\n') # \"</x>\" 🦊\n"})],
    [("write_file", {"path": "", "deep": {"a": [1, None, {"b": "</tool_call>"}]}})],
    [],
]


def vocabulary() -> Tokenizer:
    marks = ["<|im_start|>", "<|im_end|>"]
    seen = ["<think>", "</think>", "<tool_call>", "</tool_call>", D]
    extra = [(m, TokenType.CONTROL) for m in marks]
    extra += [(m, TokenType.USER_DEFINED) for m in seen]
    return Tokenizer.from_gguf(small_vocabulary(extra, eos_token_id=257))


def message(text: str, opened_by_prompt: str) -> dict[str, Any]:
    """What an API gives a client for an answer, which comes back with the next request."""
    parser = OutputParser(opened_by(opened_by_prompt), TOOLS)
    pieces = parser.push(text) + parser.finish()
    calls: dict[int, Any] = {}
    for piece in pieces:
        if isinstance(piece, ToolCallStart):
            function = {"name": piece.name, "arguments": ""}
            calls[piece.index] = {"id": piece.id, "type": "function", "function": function}
        elif isinstance(piece, ToolCallArguments):
            calls[piece.index]["function"]["arguments"] += piece.fragment
    out: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(p.text for p in pieces if isinstance(p, Content)),
        "reasoning_content": "".join(p.text for p in pieces if isinstance(p, Reasoning)),
    }
    return out | ({"tool_calls": list(calls.values())} if calls else {})


@pytest.mark.parametrize("content", ["", "Let me look.", "One\n\ntwo  "])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_turn_begins_with_all_tokens_of_the_former(family: str, content: str) -> None:
    tokenizer = vocabulary()
    template = ChatTemplate({"default": FAMILIES[family]}, tokenizer)
    assert template.problem is None
    history: list[dict[str, Any]] = [{"role": "user", "content": "Weather? </think> <tool_call>"}]
    for number, calls in enumerate(TURNS):
        prompt = template.render(history, TOOLS)
        ids = template.encode(history, TOOLS)
        said = {
            "role": "assistant",
            "content": content if calls else "Done.",
            "reasoning_content": f"Thought {number}.",
            "tool_calls": [
                {"id": f"x{i}", "type": "function", "function": {"name": n, "arguments": a}}
                for i, (n, a) in enumerate(calls)
            ],
        }
        # What the family's model would write is what its template shows it.
        whole = template.render([*history, said], TOOLS, add_generation_prompt=False)
        assert whole.startswith(prompt)
        written = whole[len(prompt) :].removesuffix("<|im_end|>\n")
        answer = message(written, prompt)
        found = answer.get("tool_calls", [])
        assert [
            (c["function"]["name"], json.loads(c["function"]["arguments"])) for c in found
        ] == calls
        history.append(answer)
        history += [
            {"role": "tool", "tool_call_id": c["id"], "content": f"result {i}"}
            for i, c in enumerate(found)
        ]
        history.append({"role": "user", "content": "Go on."})
        again = template.encode(history, TOOLS)
        # Only a model's own tokens could cut the text otherwise; here the template's cuts are taken.
        former = ids + tokenizer.encode(written + "<|im_end|>", special=True, add_bos=False)
        assert again[: len(former)] == former
        assert answer["reasoning_content"] == f"Thought {number}."


def test_results_know_the_name_of_their_tool() -> None:
    template = ChatTemplate(
        {"default": "{# tools #}{% for m in messages %}{{ m.name }};{% endfor %}"}, vocabulary()
    )
    call: dict[str, Any] = {"id": "c1", "function": {"name": "get_weather", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "21"},
        {"role": "tool", "tool_call_id": "other", "content": "22"},
        {"role": "tool", "tool_call_id": "c1", "name": "own", "content": "23"},
    ]
    assert template.render(messages) == ";get_weather;;own;"


def test_thoughts_are_there_under_both_names() -> None:
    source = "{% for m in messages %}{{ m.reasoning }}|{{ m.reasoning_content }};{% endfor %}"
    template = ChatTemplate({"default": source}, vocabulary())
    messages = [
        {"role": "assistant", "content": "", "reasoning": "a"},
        {"role": "assistant", "content": "", "reasoning_content": "b"},
        {"role": "assistant", "content": "", "reasoning": "c", "reasoning_content": "d"},
    ]
    assert template.render(messages) == "a|a;b|b;c|d;"


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_models_without_tools_in_their_template_get_them_in_plain_text() -> None:
    assert knows_tools("{% if tools %}") and not knows_tools(CHATML)
    call = {"id": "c1", "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city": "Łódź"}'}}  # fmt: skip
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "21"}]},
        {"role": "tool", "tool_call_id": "?", "content": "22"},
        {"role": "user", "content": "And?"},
    ]
    found = in_plain_text(messages, TOOLS)
    assert [m["role"] for m in found] == ["system", "user", "assistant", "user", "user"]
    assert '"get_weather"' in found[0]["content"] and '"write_file"' in found[0]["content"]
    written = found[2]["content"]
    assert written == '{"name": "get_weather", "arguments": {"city": "Łódź"}}'
    assert found[3]["content"] == "Result of get_weather: 21\nResult of the tool: 22"
    # What the model is shown as its own call is read as one.
    (said,) = message(written, "")["tool_calls"]
    assert said["function"] == {"name": "get_weather", "arguments": '{"city": "Łódź"}'}
    brief: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}, *messages[:1]]
    assert in_plain_text(brief, TOOLS)[0]["content"].startswith("Be brief.\n\nYou can use")
    assert in_plain_text(messages[:1], None) == messages[:1]
    template = ChatTemplate({"default": CHATML}, vocabulary())
    assert template.render(messages, TOOLS) == template.render(found)
    assert template.encode(messages, TOOLS) == template.encode(found)
