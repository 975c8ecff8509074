"""`/v1/chat/completions` over HTTP on a tiny model."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

HELLO = [{"role": "user", "content": "hello"}]


def ask(client: httpx.Client, **more: Any) -> Any:
    body = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 12, **more}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def error_of(client: httpx.Client, **more: Any) -> Any:
    body = {"model": "tiny", "messages": HELLO, "max_tokens": 4, **more}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


def events(client: httpx.Client, **more: Any) -> list[Any]:
    body = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 12, **more}
    with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line[6:] for line in answer.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_an_answer_has_the_form_that_clients_read(client: httpx.Client) -> None:
    answer = ask(client)
    assert answer["object"] == "chat.completion" and answer["model"] == "tiny"
    assert answer["id"].startswith("chatcmpl-")
    [choice] = answer["choices"]
    assert choice["message"]["role"] == "assistant" and choice["message"]["content"]
    assert choice["finish_reason"] == "length"
    usage = answer["usage"]
    assert usage["completion_tokens"] == 12
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12
    timings = usage["timings"]
    assert timings["prefilled_tokens"] + timings["cached_prefix_tokens"] == usage["prompt_tokens"]
    assert timings["decode_tokens_per_sec"] > 0


def test_a_stream_holds_the_same_text(client: httpx.Client) -> None:
    whole = ask(client)["choices"][0]["message"]["content"]
    chunks = events(client)
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
    assert text == whole
    assert [
        c["choices"][0]["finish_reason"] for c in chunks if c["choices"][0]["finish_reason"]
    ] == ["length"]
    assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks)


def test_usage_comes_last_where_it_was_asked_for(client: httpx.Client) -> None:
    *others, last = events(client, stream_options={"include_usage": True})
    assert last["choices"] == [] and last["usage"]["completion_tokens"] == 12
    assert all(chunk["usage"] is None for chunk in others)


def test_choices_differ_and_are_the_same_for_the_same_seed(client: httpx.Client) -> None:
    def texts(**more: Any) -> list[str]:
        answer = ask(
            client, n=3, temperature=2.0, top_k=0, top_p=1, min_p=0, ignore_eos=True, **more
        )
        assert [c["index"] for c in answer["choices"]] == [0, 1, 2]
        assert answer["usage"]["completion_tokens"] == 36
        return [c["message"]["content"] for c in answer["choices"]]

    assert len(set(texts(seed=5))) == 3
    assert texts(seed=5) == texts(seed=5) != texts(seed=6)
    assert texts() != texts()


def test_streamed_choices_are_told_apart(client: httpx.Client) -> None:
    chunks = events(client, n=2, temperature=1.0, seed=3)
    whole = ask(client, n=2, temperature=1.0, seed=3)["choices"]
    for index in (0, 1):
        mine = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == index]
        text = "".join(c["delta"].get("content", "") for c in mine)
        assert text == whole[index]["message"]["content"]
        assert [c["finish_reason"] for c in mine].count(None) == len(mine) - 1


def test_a_stop_string_ends_the_text(client: httpx.Client) -> None:
    whole = ask(client)["choices"][0]["message"]["content"]
    stop = whole[4:7]
    for given in (stop, [stop, "never to be seen"]):
        choice = ask(client, stop=given)["choices"][0]
        assert choice["message"]["content"] == whole[: whole.index(stop)]
        assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"foo": 1}, "foo", "no such field"),
        ({"max_tokens": "many"}, "max_tokens", "integer"),
        ({"temperature": -1}, "temperature", "greater"),
        ({"messages": "hi"}, "messages", "list"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role", "'user'"),
        ({"store": True}, "store", "keeps no"),
        ({"functions": [{}]}, "functions", "tools"),
        ({"logit_bias": {"a": 1}}, "logit_bias", "token ids"),
        ({"stop": [""]}, "stop", "characters"),
        ({"modalities": ["audio"]}, "modalities", "text only"),
        ({"top_logprobs": 2}, "top_logprobs", "logprobs"),
        ({"tool_choice": "required"}, "tool_choice", "no tools"),
        ({"verbosity": "high"}, "verbosity", "prompt"),
        ({"thinking": {"type": "enabled", "display": "omitted"}}, "thinking.display", "always"),
        ({"stream_options": {}}, "stream_options", "stream"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages.0.content.0",
            "no images",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    client: httpx.Client, body: dict[str, Any], param: str, words: str
) -> None:
    error = error_of(client, **body)
    assert error["param"] == param and words in error["message"] and param in error["message"]
    assert error["type"] == "invalid_request_error"


def test_what_says_nothing_is_accepted(client: httpx.Client) -> None:
    ask(
        client, foo=None, user="me", metadata={"a": "b"}, store=False, service_tier="auto",
        prompt_cache_key="k", parallel_tool_calls=True, modalities=["text"], n=1, stop=None,
    )  # fmt: skip


def test_a_bias_outside_the_vocabulary_is_refused(client: httpx.Client) -> None:
    assert "99999999" in error_of(client, logit_bias={"99999999": 5})["message"]


def test_a_bias_decides_the_text(client: httpx.Client) -> None:
    token = client.post("/tokenize", json={"content": "a"}).json()["tokens"][-1]
    answer = ask(client, logit_bias={str(token): 100}, max_tokens=3)
    assert answer["choices"][0]["message"]["content"].strip() == "aaa"


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_beyond_the_context_is_an_error_with_both_numbers(
    client: httpx.Client, stream: bool
) -> None:
    messages = [{"role": "user", "content": "word " * 3000}]
    error = error_of(client, messages=messages, stream=stream)
    assert error["code"] == "context_length_exceeded"
    assert "maximum context length is 512 tokens" in error["message"]


def test_parts_are_the_same_as_text_and_leading_system_messages_are_one(
    client: httpx.Client,
) -> None:
    def prompt(*messages: dict[str, Any]) -> list[int]:
        ids: list[int] = client.post("/tokenize", json={"messages": messages}).json()["tokens"]
        return ids

    part = {"type": "text", "text": "hello"}
    assert prompt(*HELLO) == prompt({"role": "user", "content": [part]})
    two = [{"role": "developer", "content": "one"}, {"role": "system", "content": "two"}, *HELLO]
    assert prompt(*two) == prompt({"role": "system", "content": "one\n\ntwo"}, *HELLO)


def test_lists_that_would_take_seconds_to_check_are_refused(client: httpx.Client) -> None:
    most = 32_768
    for given, where in (
        (HELLO * (most + 1), "messages"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}] * (most + 1)}], "content"),
    ):
        error = error_of(client, messages=given)
        assert f"at most {most}" in error["message"] and where in error["param"]
