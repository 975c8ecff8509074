"""From the engine's threads to the loop: every reader wakes, and many at once cost one call."""

from __future__ import annotations

import asyncio
import threading

import pytest

from engine.api import channel as channels
from engine.api.channel import Bell, Channel
from engine.pieces import Content
from engine.types import Accepted, Started, TextDelta, Verified


def test_all_who_ring_meanwhile_share_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        bell, heard, calls = Bell(), [], []
        call = bell.loop.call_soon_threadsafe
        monkeypatch.setattr(bell.loop, "call_soon_threadsafe", lambda f: (calls.append(f), call(f)))
        for n in range(5):
            bell.ring(lambda n=n: heard.append(n))  # type: ignore[misc]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert heard == [0, 1, 2, 3, 4] and len(calls) == 1
        bell.ring(lambda: heard.append(5))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert heard[-1] == 5 and len(calls) == 2

    asyncio.run(go())


def test_no_reader_sleeps_on_while_something_is_there() -> None:
    n_channels, n_events = 6, 2000

    async def go() -> list[int]:
        bell = Bell()
        channels = [Channel(bell, lambda: None) for _ in range(n_channels)]

        def write(channel: Channel) -> None:
            listen = channel.listener(0)
            listen(Accepted(1, 1, ""))
            for _ in range(n_events):
                listen(TextDelta(1, "x", (1,), (Content("x"),)))

        async def read(channel: Channel) -> int:
            n = 0
            while n < n_events + 1:
                n += len(await asyncio.wait_for(channel.take(), 20))
            return n

        threads = [threading.Thread(target=write, args=(c,)) for c in channels]
        for thread in threads:
            thread.start()
        found = await asyncio.gather(*map(read, channels))
        for thread in threads:
            thread.join()
        return found

    assert asyncio.run(go()) == [n_events + 1] * n_channels


def test_a_loop_that_has_ended_is_no_error() -> None:
    async def go() -> Channel:
        return Channel(Bell(), lambda: None)

    channel = asyncio.run(go())
    channel.listener(0)(Accepted(1, 1, ""))
    assert channel.closed


def test_what_nobody_shows_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MOST_BYTES", 100_000)

    async def go() -> None:
        bell, rung = Bell(), []
        ring = bell.ring
        monkeypatch.setattr(bell, "ring", lambda wake: (rung.append(wake), ring(wake)))
        channel = Channel(bell, lambda: None)
        listen = channel.listener(0)
        hidden = TextDelta(1, "", (1,))
        for event in (hidden, Verified(1, 3, 2), hidden):
            listen(event)
        assert not rung
        listen(Started(1, 1, 0))
        assert len(rung) == 1
        found = await asyncio.wait_for(channel.take(), 20)
        assert [event for _, event in found] == [hidden, hidden, Started(1, 1, 0)]
        for _ in range(1000):  # as long as somebody reads, it is never too much
            listen(hidden)
            if len(rung) > 1:
                rung.pop()
                await asyncio.wait_for(channel.take(), 20)
        assert not channel.full

    asyncio.run(go())
