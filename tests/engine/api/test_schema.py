"""Requests made from our own OpenAPI schema, right ones and wrong ones, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from engine.api.app import bare_app
from engine.api.served import Models, Served
from engine.api.server import Server
from engine.config import ServerConfig
from tests.engine.api.scripted import ScriptedEngine, says

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    (path, method.upper())
    for path, methods in bare_app(Models(ServerConfig(), [])).openapi()["paths"].items()
    for method in methods
    if not path.startswith("/admin")
]


@pytest.fixture(scope="module")
def schema() -> Iterator[Any]:
    """The schema of a running server whose answers are always the same."""
    server = Server(ServerConfig(port=0), [Served(ScriptedEngine(says("yes")), "scripted")])
    server.start()
    yield schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    assert server.stop()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_answer_is_as_the_schema_says(schema: Any, path: str, method: str) -> None:
    operation = schema[path][method]

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    )
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    check()


def test_what_can_be_streamed_says_so() -> None:
    schema = bare_app(Models(ServerConfig(), [])).openapi()
    streamed = set()
    for path, methods in schema["paths"].items():
        told = methods.get("post", {}).get("responses", {}).get("200", {}).get("content", {})
        if "text/event-stream" in told:
            assert "application/json" in told
            streamed.add(path)
    assert streamed == {
        "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
    }  # fmt: skip
