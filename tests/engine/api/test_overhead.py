"""`lucebox bench --api`: what the API adds, and a turn whose chat is known."""

from __future__ import annotations

import json

import pytest

from engine.api.cached_turn import Words
from engine.cli import main
from tests.engine.oracle import model_path


def test_bench_times_the_api_and_a_turn_whose_chat_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["bench", str(model_path("llama")), "--api", "-d", "200", "-p", "70", "-r", "2"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["request_ms"]["median"] > 0
    assert facts["token_ms"]["median"] > 0
    turn = facts["cached_turn"]
    assert len(turn["turn_ms"]["values"]) == len(turn["alone_ms"]["values"]) == 2
    assert turn["ratio"] > 0
    # The chat is known up to its last full page; what is new of the turn is about as much as the other.
    assert 0 <= turn["new_tokens"] - 70 < 64 + 30
    assert 0.6 * turn["new_tokens"] < turn["alone_tokens"] < 1.4 * turn["new_tokens"]
    assert turn["alone_tokens"] < turn["prompt_tokens"] - 100
    assert main(command) == 0
    assert "of them new" in capsys.readouterr().out


@pytest.mark.parametrize("each", (1, 4))
def test_words_are_as_many_tokens_as_wanted_however_many_a_word_is(each: int) -> None:
    def encode(text: str) -> list[str]:
        return [text[i : i + each] for i in range(0, len(text), each)]

    words = Words(encode)
    for n in (20, 400, 2000):
        assert 0.7 * n <= len(encode(words.about(n))) <= n
