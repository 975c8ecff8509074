"""Many clients at once: streams, whole answers, leavers, junk and slow readers.

As a script it starts `lucebox serve` on the tiny model, runs 200 clients for two minutes and reports; the
exit code tells whether all held: `python -m tests.engine.api.stress [CLIENTS [SECONDS]]`.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil

from tests.engine.oracle import model_path

PROMPTS = 12
TOKENS = 24


@dataclass
class Report:
    """How many exchanges of each kind were made, and what was wrong."""

    done: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def check(self, holds: bool, what: str) -> None:
        """Note a fault unless `holds`."""
        if not holds:
            self.faults.append(what)


def body(n: int, **more: Any) -> dict[str, Any]:
    """A request whose answer is always the same."""
    text = f"story {n} " * (n + 1)
    return {
        "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": TOKENS,
        "ignore_eos": True, **more,
    }  # fmt: skip


async def run(url: str, clients: int, seconds: float, seed: int = 0) -> Report:
    """Let `clients` use the server at `url` for some seconds, and compare every whole answer."""
    report, end = Report(), time.monotonic() + seconds
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    async with httpx.AsyncClient(
        base_url=url, timeout=120, limits=limits, trust_env=False
    ) as client:
        expected = [await _whole(client, n) for n in range(PROMPTS)]
        work = [_client(client, expected, report, end, seed + i) for i in range(clients)]
        await asyncio.gather(*work)
        for n in range(PROMPTS):
            report.check(await _whole(client, n) == expected[n], f"prompt {n} changed in the end")
    return report


async def _whole(client: httpx.AsyncClient, n: int) -> str:
    answer = await client.post("/v1/chat/completions", json=body(n))
    answer.raise_for_status()
    return str(answer.json()["choices"][0]["message"]["content"])


async def _client(
    client: httpx.AsyncClient, expected: list[str], report: Report, end: float, seed: int
) -> None:
    choose = random.Random(seed)
    kinds = {"whole": 3, "stream": 4, "leave": 2, "slow": 1, "junk": 2, "other": 1}
    kind = list(kinds)[seed % len(kinds)]  # so that each kind occurs on any machine
    while True:
        n = choose.randrange(PROMPTS)
        try:
            await _ACTS[kind](client, n, expected[n], report, choose)
            report.done[kind] += 1
        except (httpx.HTTPError, ValueError, KeyError) as error:
            report.faults.append(f"{kind}: {type(error).__name__} {error}")
            await asyncio.sleep(0.1)
        if time.monotonic() >= end:
            return
        kind = choose.choices(list(kinds), list(kinds.values()))[0]


async def _ask(client: httpx.AsyncClient, n: int, text: str, report: Report, _: Any) -> None:
    found = await _whole(client, n)
    report.check(found == text, f"prompt {n}: {found!r} is not {text!r}")


async def _stream(
    client: httpx.AsyncClient, n: int, text: str, report: Report, _: Any, pause: float = 0
) -> None:
    found, done = "", False
    async with client.stream("POST", "/v1/chat/completions", json=body(n, stream=True)) as answer:
        async for line in answer.aiter_lines():
            await asyncio.sleep(pause)
            done = done or line == "data: [DONE]"
            if line.startswith("data: {"):
                delta = json.loads(line[6:])["choices"][0]["delta"]
                found += delta.get("content", "")
    report.check(done, f"prompt {n}: the stream was cut")
    report.check(found == text, f"prompt {n} streamed: {found!r} is not {text!r}")


async def _slow(client: httpx.AsyncClient, n: int, text: str, report: Report, _: Any) -> None:
    await _stream(client, n, text, report, _, pause=0.05)


async def _leave(
    client: httpx.AsyncClient, n: int, text: str, report: Report, choose: random.Random
) -> None:
    stream = choose.random() < 0.6
    ask = client.stream("POST", "/v1/chat/completions", json=body(n, stream=stream, max_tokens=200))
    try:
        async with asyncio.timeout(choose.random() * 0.5), ask as answer:
            async for _ in answer.aiter_lines():
                if choose.random() < 0.2:
                    return
    except TimeoutError:
        return


async def _junk(
    client: httpx.AsyncClient, n: int, text: str, report: Report, choose: random.Random
) -> None:
    junk = choose.choice([b"", b"{", b"[1]", b"\xff" * 50, b'{"messages": 7}', b'{"x": 1}'])
    headers = {"content-type": "application/json"}
    answer = await client.post("/v1/chat/completions", content=junk, headers=headers)
    report.check(answer.status_code == 400, f"junk {junk[:20]!r}: {answer.status_code}")


async def _other(client: httpx.AsyncClient, n: int, text: str, report: Report, _: Any) -> None:
    for path in ("/metrics", "/v1/models", "/props", "/health"):
        answer = await client.get(path)
        report.check(answer.status_code == 200, f"{path}: {answer.status_code}")


_ACTS: dict[str, Any] = {
    "whole": _ask, "stream": _stream, "leave": _leave, "slow": _slow, "junk": _junk, "other": _other,
}  # fmt: skip


def main(clients: int = 200, seconds: float = 120) -> int:
    """Run against a server in a process of its own, whose memory must not grow by more than 5 %."""
    command = [
        sys.executable, "-m", "engine.cli", "serve", str(model_path("llama")), "--port", "0",
        "--max-ctx", "512", "--max-concurrency", "8", "--precision", "exact",
        "--routing-queue-limit", "1000",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            warm = asyncio.run(run(url, clients, seconds / 6, seed=1_000_000))
            before = psutil.Process(server.pid).memory_info().rss
            report = asyncio.run(run(url, clients, seconds))
            after = psutil.Process(server.pid).memory_info().rss
            health = httpx.get(f"{url}/props", trust_env=False).json()
        finally:
            server.terminate()
    growth = after / before - 1
    report.faults += warm.faults
    report.check(growth <= 0.05, f"memory grew by {growth:.1%}")
    report.check(
        all(one["in_flight"] == 0 for one in health["models"]), "answers are still counted"
    )
    report.check(server.returncode == 0, f"the server ended with {server.returncode}")
    print(f"{sum(report.done.values())} exchanges in {seconds:g} s: {dict(report.done)}")
    print(f"memory {before / 2**20:.0f} MiB before, {after / 2**20:.0f} MiB after ({growth:+.1%})")
    for fault in report.faults[:20]:
        print("fault:", fault)
    return bool(report.faults)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
