"""The daemon's lines on a tiny model."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from engine.config import EngineConfig, Precision
from engine.daemon import serve_lines
from engine.engine import Engine
from engine.types import ModelInfo
from tests.engine.engines import running
from tests.engine.oracle import model_path

CONFIG = EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64)
GREEDY = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}


class Talk:
    """A running daemon: lines go in and come out."""

    def __init__(self, engine: Engine, info: ModelInfo) -> None:
        read_end, self._in = os.pipe()
        self._out, write_end = os.pipe()
        self._source = os.fdopen(read_end, "rb")
        self._lines = os.fdopen(self._out, "rb")
        output = os.fdopen(write_end, "wb", 0)
        self._thread = threading.Thread(
            target=serve_lines, args=(engine, info, self._source, output), daemon=True
        )
        self._thread.start()
        assert self.next()["model"] == info.name

    def say(self, line: Any) -> None:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        os.write(self._in, data + b"\n")

    def next(self) -> Any:
        return json.loads(self._lines.readline())

    def ask(self, **command: Any) -> Any:
        """The one answer to a command."""
        self.say(command)
        return self.next()

    def generate(self, **command: Any) -> tuple[str, Any]:
        """The text of a generation and its last line."""
        self.say({"op": "generate", **GREEDY, **command})
        text = ""
        while (line := self.next())["event"] == "text":
            text += line["text"]
        return text, line

    def end(self) -> None:
        self.say({"op": "quit"})
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running(model_path("llama"), CONFIG) as engine:
        yield engine


@pytest.fixture
def talk(engine: Engine) -> Iterator[Talk]:
    info = engine.status().model
    assert info is not None
    talk = Talk(engine, info)
    yield talk
    talk.end()


def test_text_comes_in_pieces_and_ends_with_its_numbers(talk: Talk) -> None:
    text, end = talk.generate(id=1, prompt="the thing")
    assert text and (end["id"], end["event"], end["reason"]) == (1, "done", "length")
    assert end["completion_tokens"] == 8
    again, _ = talk.generate(id="b", messages=[{"role": "user", "content": "hello"}])
    assert again


def test_a_restored_snapshot_goes_on_as_one_long_prompt_would(talk: Talk) -> None:
    first, _ = talk.generate(id=1, prompt="the thing")
    kept = talk.ask(op="snapshot", name="a", of=1)
    assert kept["event"] == "ok"
    assert talk.ask(op="list")["snapshots"] == [
        {"name": "a", "tokens": kept["tokens"], "bytes": kept["bytes"]}
    ]
    restored, _ = talk.generate(op="restore", id=2, name="a", prompt="")
    whole, _ = talk.generate(id=3, prompt="the thing", max_tokens=16)
    assert first + restored == whole
    assert talk.ask(op="free", name="a")["event"] == "ok"
    assert "no snapshot" in talk.ask(op="restore", name="a")["message"]


def test_a_snapshot_brings_its_state_back_to_a_model_that_was_parked(talk: Talk) -> None:
    first, _ = talk.generate(id=1, prompt="the thing")
    kept = talk.ask(op="snapshot", name="a", of=1)
    assert kept["bytes"] > 0
    whole, _ = talk.generate(id=3, prompt="the thing", max_tokens=16)
    for op in ("park", "unpark"):
        assert talk.ask(op=op)["event"] == "ok"
    restored, done = talk.generate(op="restore", id=2, name="a", prompt="")
    assert first + restored == whole
    assert done["reused_tokens"] == kept["tokens"] - 1


def test_a_generation_can_be_cancelled(talk: Talk) -> None:
    talk.say({"op": "generate", "id": 7, "prompt": "a", "temperature": 0, "ignore_eos": True})
    assert talk.next()["event"] == "text"
    talk.say({"op": "cancel", "id": 7})
    seen = [talk.next()]
    while not {"ok", "done"} <= {line["event"] for line in seen}:
        seen.append(talk.next())
    assert [line["reason"] for line in seen if line["event"] == "done"] == ["cancelled"]


def test_parking_frees_the_model_and_unparking_brings_it_back(talk: Talk) -> None:
    before, _ = talk.generate(id=1, prompt="the thing")
    assert talk.ask(op="park")["event"] == "ok"
    assert talk.ask(op="list")["state"] == "empty"
    assert "unpark" in talk.ask(op="generate", prompt="a")["message"]
    assert talk.ask(op="unpark")["event"] == "ok"
    assert talk.generate(id=2, prompt="the thing")[0] == before


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b"7", b'{"op": "fly"}', b'{"op": "generate"}', b"\xff", b"[" * 100_000,
        b'{"op": "generate", "prompt": 7}', b'{"op": "generate", "prompt": "a", "foo": 1}',
        b'{"op": "generate", "prompt": "a", "temperature": "hot"}',
        b'{"op": "generate", "prompt": "a", "temperature": NaN}',
        b'{"op": "generate", "prompt": "a", "stop": 7}',
        b'{"op": "generate", "prompt": "a", "top_k": 1.5}',
        b'{"op": "generate", "id": [], "prompt": "a"}', b'{"op": "generate", "ids": ["a"]}',
        b'{"op": "generate", "messages": [7]}', b'{"op": "snapshot"}', b'{"op": "cancel", "id": 99}',
        b'{"op": "free", "name": {}}', b'{"op": "list", "name": "a"}', b'{"op": ["list"]}',
        b'{"op": "generate", "prompt": "a", "ids": [1]}', b'{"op": "generate", "prompt": "a", "tools": [{}]}',
        b'{"op": "generate", "prompt": "a", "seed": 1.5}',
        b'{"op": "generate", "prompt": "a", "ignore_eos": "no"}',
        b'{"op": "generate", "prompt": "a", "stop": [7]}',
        b'{"op": "generate", "prompt": "a", "logit_bias": {"5": "a"}}',
        b'{"op": "generate", "messages": [{"role": "user"}]}',
        b'{"op": "restore", "name": "a", "messages": []}',
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_and_the_rest_goes_on(talk: Talk, line: bytes) -> None:
    talk.say(line)
    told = talk.next()
    assert told["event"] == "error" and "not foreseen" not in told["message"]
    assert talk.generate(id=1, prompt="a")[1]["event"] == "done"


def test_one_stop_string_needs_no_list(talk: Talk) -> None:
    whole, _ = talk.generate(id=1, prompt="the thing")
    told, end = talk.generate(id=2, prompt="the thing", stop=whole[3:6])
    assert told == whole[: whole.index(whole[3:6])] and end["reason"] == "stop"


def test_the_end_of_input_ends_it(engine: Engine) -> None:
    info = engine.status().model
    assert info is not None
    output = io.BytesIO()
    serve_lines(engine, info, io.BytesIO(b'{"op": "list"}\n'), output)
    assert [json.loads(line)["event"] for line in output.getvalue().splitlines()] == ["ok", "ok"]


def test_a_reader_that_went_away_ends_it(engine: Engine) -> None:
    info = engine.status().model
    assert info is not None
    read_end, write_end = os.pipe()
    os.close(read_end)
    commands = io.BytesIO(b'{"op": "list"}\n' * 3)
    with pytest.raises(BrokenPipeError), os.fdopen(write_end, "wb", 0) as output:
        serve_lines(engine, info, commands, output)
