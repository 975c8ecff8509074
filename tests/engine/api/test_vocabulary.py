"""What the server does before it serves, so that nobody waits for it later."""

from __future__ import annotations

import contextlib

import llguidance
import pytest

from engine.api import command
from engine.cli import Console
from engine.config import EngineConfig
from engine.grammar import form_grammar
from engine.types import Format
from tests.engine.oracle import model_path


def test_the_vocabulary_is_read_before_anybody_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = [form_grammar(Format("json_object"))]
    with contextlib.ExitStack() as stack:
        config = EngineConfig(threads=2, max_ctx=256)
        engine = command._engine(stack, model_path("llama"), config, Console(quiet=True))
        monkeypatch.setattr(llguidance, "LLTokenizer", None)
        assert engine.use(lambda model: model.grammars.check(grammar)) == ""
