"""From the engine's threads to the loop: every reader wakes, and many at once cost one call."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

import pytest

from engine.api import channel as channels
from engine.api.channel import Bell, Channel
from engine.pieces import Content
from engine.types import Accepted, Event, Started, TextDelta, TokenLogprob, Verified


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


def test_a_reader_goes_on_at_once() -> None:
    async def go() -> None:
        channel, seen = Channel(Bell(), lambda: None), []

        async def read() -> None:
            while True:
                seen.extend(event for _, event in await channel.take())

        reader = asyncio.create_task(read())
        loop, listen = asyncio.get_running_loop(), channel.listener(0)
        for n in range(3):
            await asyncio.sleep(0)
            listen(Accepted(1, n, ""))
            found = loop.create_future()
            loop.call_soon(lambda found=found: found.set_result(len(seen)))
            assert await found == n + 1  # in the loop's next round, and not in the one after
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        listen(Accepted(1, 3, ""))
        assert [event for _, event in await channel.take()] == [Accepted(1, 3, "")]

    asyncio.run(asyncio.wait_for(go(), 20))


def test_a_flood_does_not_keep_the_loop() -> None:
    async def go() -> None:
        channel, n_seen = Channel(Bell(), lambda: None), 0
        listen = channel.listener(0)

        async def read() -> None:
            nonlocal n_seen
            while n_seen < 1000:
                n_seen += len(await channel.take())
                listen(Accepted(1, 1, ""))

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        listen(Accepted(1, 1, ""))
        while n_seen < 100:
            before = n_seen
            await asyncio.sleep(0)
            assert n_seen <= before + 1
        reader.cancel()

    asyncio.run(asyncio.wait_for(go(), 20))


def test_what_comes_while_it_is_taken_is_taken_once() -> None:
    class Items(deque[object]):
        """More comes while the first is taken out."""

        def popleft(self) -> object:
            if len(self) == 1 and not said:
                said.append(True)
                listen(Accepted(1, 2, ""))
            return super().popleft()

    said: list[bool] = []

    async def go() -> None:
        nonlocal listen
        channel = Channel(Bell(), lambda: None)
        channel._items = Items()  # type: ignore[assignment]
        listen = channel.listener(0)
        listen(Accepted(1, 1, ""))
        assert len(await channel.take()) == 2
        asyncio.get_running_loop().call_later(0.05, listen, Accepted(1, 3, ""))
        assert [event for _, event in await channel.take()] == [Accepted(1, 3, "")]

    listen: Callable[[Event], None]
    asyncio.run(asyncio.wait_for(go(), 20))


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


def test_what_waits_is_bounded_by_what_it_takes_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MOST_BYTES", 10_000)
    row = TokenLogprob(1, b"x", 0.0, (TokenLogprob(2, b"y", 0.0),) * 20)

    async def fill(event: TextDelta) -> int:
        full: list[bool] = []
        channel = Channel(Bell(), lambda: full.append(True))
        listen = channel.listener(0)
        n = 0
        while not full:
            listen(event)
            n += 1
        assert await channel.take() == []
        return n

    for event, most in (
        (TextDelta(1, "x", (1,), (Content("x"),)), 40),
        (TextDelta(1, "x", (1,), (Content("x"),), (row,)), 4),
        (TextDelta(1, "x" * 10_000, (1,), (Content("x" * 10_000),)), 1),
    ):
        assert 1 <= asyncio.run(fill(event)) <= most
