"""Loading, unloading and parking over HTTP."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine import keyring_store, settings_store
from engine.api.served import Served
from engine.api.server import Server
from engine.cache.archive import open_archive
from engine.cache.disk import DiskStore
from engine.config import AppSettings, DiskCacheConfig, ServerConfig, Spec
from tests.engine.api.conftest import CONFIG
from tests.engine.engines import started
from tests.engine.oracle import model_path
from tests.ring import Ring

HELLO = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Server, httpx.Client]]:
    """A server whose models the test may change, and a client."""
    engine = started(model_path("llama"), CONFIG)
    server = Server(ServerConfig(port=0), [Served(engine, "tiny")])
    server.start()
    with httpx.Client(base_url=server.url, timeout=100, trust_env=False) as client:
        yield server, client
    assert server.stop()
    engine.close()


def post(client: httpx.Client, path: str, **body: Any) -> tuple[int, Any]:
    answer = client.post(path, json=body)
    return answer.status_code, answer.json()


def test_a_parked_model_refuses_and_comes_back(own: tuple[Server, httpx.Client]) -> None:
    _, client = own
    assert post(client, "/admin/park", model="tiny") == (200, {"model": "tiny", "state": "parked"})
    status, answer = post(client, "/v1/chat/completions", **HELLO)
    assert (status, answer["error"]["code"]) == (503, "model_parked")
    assert client.get("/health").json()["models"] == [{"id": "tiny", "state": "parked"}]
    assert client.get("/props").status_code == client.get("/metrics").status_code == 200
    told = client.post("/admin/unpark")  # as one types it: with no body at all
    assert (told.status_code, told.json()) == (200, {"model": "tiny", "state": "ready"})
    props = client.get("/props").json()
    assert props["speculative"]["enabled"], "drafting is told before the first request"
    assert (
        client.get("/admin/cache").json()["models"][0]["free_pages"]
        == props["prefix_cache"]["capacity"]
    )
    assert post(client, "/v1/chat/completions", **HELLO)[0] == 200


def test_an_unloaded_model_can_be_loaded_again(own: tuple[Server, httpx.Client]) -> None:
    _, client = own
    assert post(client, "/admin/unload") == (200, {"model": "tiny", "state": "empty"})
    assert post(client, "/v1/chat/completions", **HELLO)[0] == 503
    assert post(client, "/tokenize", content="a")[0] == 503
    assert post(client, "/admin/load", model="tiny") == (200, {"model": "tiny", "state": "ready"})
    assert post(client, "/v1/chat/completions", **HELLO)[0] == 200


@pytest.fixture
def unhurried(own: tuple[Server, httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that leave time to do something before a long answer ends, also on a busy machine."""
    engine = own[0].models.all[0].engine
    step = engine.step

    def slow() -> None:
        time.sleep(0.02)
        step()

    monkeypatch.setattr(engine, "step", slow)


@pytest.mark.usefixtures("unhurried")
def test_unloading_ends_what_is_written(own: tuple[Server, httpx.Client]) -> None:
    server, client = own
    seen: list[httpx.Response] = []

    def ask() -> None:
        body = {**HELLO, "max_tokens": 480, "ignore_eos": True}
        seen.append(httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60))

    thread = threading.Thread(target=ask)
    thread.start()
    while not server.models.all[0].engine.status().running:
        time.sleep(0.01)
    assert post(client, "/admin/unload")[0] == 200
    thread.join(30)
    assert seen[0].status_code == 503 and seen[0].json()["error"]["code"] == "gone"


@pytest.mark.usefixtures("unhurried")
def test_unloading_ends_a_response_that_is_streamed(own: tuple[Server, httpx.Client]) -> None:
    server, client = own
    body = {"input": "hello", "max_output_tokens": 480, "ignore_eos": True, "stream": True}
    with client.stream("POST", "/v1/responses", json=body) as answer:
        lines = answer.iter_lines()
        while "response.output_text.delta" not in next(lines):
            pass
        with httpx.Client(base_url=server.url, timeout=100, trust_env=False) as other:
            assert post(other, "/admin/unload")[0] == 200
        last = json.loads([line for line in lines if line.startswith("data: ")][-1][6:])
    assert (last["type"], last["response"]["error"]["code"]) == ("response.failed", "gone")
    end = time.monotonic() + 10
    while not (ended := [one for one in server.requests() if one.path == "/v1/responses"])[0].ended:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert ended[0].fault == "failed"


def test_a_model_of_the_library_is_loaded_by_its_name_only(
    own: tuple[Server, httpx.Client], tmp_path: Path
) -> None:
    server, client = own
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(model_path("qwen3"), folder / "other-model.gguf")
    settings = AppSettings(models_dir=str(folder), engine={"max_ctx": 512, "threads": 2})
    settings.drafts[str(folder / "other-model.gguf")] = "off"
    settings_store.save(settings)
    for path in (str(folder / "other-model.gguf"), "../other-model", "other-model.gguf/"):
        assert post(client, "/admin/load", model=path)[0] == 404
    with ThreadPoolExecutor(3) as others:  # who ask for it at once share it
        told = list(
            others.map(lambda _: post(client, "/admin/load", model="other-model"), range(3))
        )
    status, answer = told[0]
    assert (status, answer["state"]) == (200, "ready") and told == [told[0]] * 3
    assert len(server.models.all) == 2
    status, said = post(client, "/v1/chat/completions", model=answer["model"], **HELLO)
    assert (status, said["model"]) == (200, answer["model"])
    assert server.models.all[1].engine.config.spec is Spec.OFF, "what was chosen for the model"
    assert server.guests() == [answer["model"]]
    server.unload_guests()
    end = time.monotonic() + 30
    while server.guests() and time.monotonic() < end:
        time.sleep(0.01)
    assert server.guests() == []
    assert post(client, "/v1/chat/completions", **HELLO)[0] == 200


def test_an_unknown_name_is_told(own: tuple[Server, httpx.Client]) -> None:
    _, client = own
    for path in ("/admin/park", "/admin/unload", "/admin/unpark"):
        assert post(client, path, model="nobody")[0] == 404


def test_a_model_takes_the_place_of_one_that_was_unloaded(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("llama", "qwen3"):
        shutil.copy(model_path(name), folder / f"{name}.gguf")
    settings_store.save(AppSettings(models_dir=str(folder), engine={"max_ctx": 512, "threads": 2}))
    engine, changes = started(folder / "llama.gguf", CONFIG), []
    server = Server(ServerConfig(port=0), [Served(engine, on_change=lambda: changes.append(1))])
    server.start()
    with httpx.Client(base_url=server.url, timeout=100, trust_env=False) as client:
        assert post(client, "/admin/unload")[0] == 200
        assert post(client, "/admin/load", model="qwen3") == (
            200,
            {"model": "qwen3", "state": "ready"},
        )
    model = engine.status().model
    assert len(server.models.all) == 1 and model is not None and model.architecture == "qwen3"
    assert len(changes) == 2
    assert server.stop() and engine.close()


@pytest.mark.parametrize("way", ["clear", "forget"])
def test_the_cache_is_shown_and_emptied(
    own: tuple[Server, httpx.Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    ring = Ring()
    monkeypatch.setattr(keyring_store, "_keyring", lambda: ring)
    server, client = own
    archive = open_archive(DiskCacheConfig(disk_cache_dir=str(tmp_path / "kept")))
    server.models.all[0].engine.keep_in(archive)
    key = dict(ring.held)
    said = post(client, "/v1/completions", prompt="a word or two " * 20, max_tokens=2)
    assert said[0] == 200

    def shown() -> Any:
        return client.get("/admin/cache").json()

    while not shown()["disk"]["files"]:
        time.sleep(0.01)
    (model,) = shown()["models"]
    assert model["model"] == "tiny" and model["kept_pages"] > 0 and shown()["disk"]["on"]
    assert post(client, f"/admin/cache/{way}") == (200, {"disk": {"files": 0, "bytes": 0}})
    assert shown()["models"][0]["kept_pages"] == 0 and (ring.held != key) == (way == "forget")
    archive.close()


def test_without_an_archive_the_folder_of_the_settings_is_emptied(
    own: tuple[Server, httpx.Client], tmp_path: Path
) -> None:
    _, client = own
    settings_store.save(AppSettings(cache={"disk_cache_dir": str(tmp_path / "kept")}))
    assert DiskStore(tmp_path / "kept", bytes(32), 1 << 20, 1e9).put(b"name", bytes(100))
    disk = client.get("/admin/cache").json()["disk"]
    assert (disk["on"], disk["files"]) == (False, 1)
    assert post(client, "/admin/cache/clear") == (200, {"disk": {"files": 0, "bytes": 0}})
