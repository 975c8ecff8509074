"""The models behind one address, and which of them answers a request."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine import cards
from engine.api.channel import Bell
from engine.api.errors import RETRY_AFTER_S, ApiError
from engine.api.journal import Journal
from engine.chat import ChatTemplate
from engine.config import EngineConfig, ServerConfig
from engine.engine import Engine
from engine.tokenizer import Tokenizer
from engine.types import ModelInfo

if TYPE_CHECKING:
    from engine.api.turn import Turn

AUTO = frozenset({"", "auto", "default"})
"""Model names that leave the choice to the server."""


@dataclass(eq=False)
class Served:
    """An engine under a name; `in_flight` answers are being written or wait in it.

    `last` is what was loaded last, for `unload` and `load` again; an `own` engine ends with the server.
    `on_change` hears, on the API's loop, that a client had a model loaded or unloaded. All but the engine
    belongs to that loop.
    """

    engine: Engine
    given_name: str | None = None
    own: bool = False
    in_flight: int = 0
    parked: bool = False
    last: tuple[ModelInfo, EngineConfig] | None = None
    on_change: Callable[[], None] = lambda: None
    turns: set[Turn] = field(default_factory=set)

    @property
    def loaded(self) -> ModelInfo | None:
        """The model that can answer now."""
        return self.engine.status().model

    @property
    def info(self) -> ModelInfo:
        """The model that answers; a 503 that tells why there is none."""
        status = self.engine.status()
        if status.model is not None:
            return status.model
        if status.state == "loading":
            raise ApiError(503, "The model is being loaded. Try again in a moment.", "loading",
                           retry_after=RETRY_AFTER_S)  # fmt: skip
        if self.parked:
            raise ApiError(
                503, f"{self.name} is parked; POST /admin/unpark brings it back.", "model_parked"
            )
        raise ApiError(503, "No model is loaded. Load one first.", "no_model")

    def texts(self) -> tuple[Tokenizer, ChatTemplate]:
        """The loaded model's tokenizer and template; errors as in `info`."""
        tokenizer, template = self.engine.tokenizer, self.engine.chat_template
        if tokenizer is None or template is None:
            raise ApiError(503, "No model is loaded. Load one first.", "no_model")
        return tokenizer, template

    @property
    def name(self) -> str:
        """What clients call the model."""
        if self.given_name:
            return self.given_name
        info = self.loaded or (self.last[0] if self.last else None)
        return cards.stem(info.name) if info else "none"

    @property
    def capacity(self) -> int:
        """How many answers the engine writes together."""
        return self.engine.config.max_concurrency

    async def unload(self, parked: bool) -> None:
        """Free the model's memory and keep what it takes to load it again."""
        if (info := self.loaded) is not None:
            self.last = (info, self.engine.config)
        self.parked = parked
        try:
            await asyncio.to_thread(self.engine.unload)
        finally:
            self.on_change()

    async def reload(self) -> None:
        """Load what was loaded last; a 404 where nothing was."""
        if self.last is None:
            raise ApiError(404, "No model was loaded here before.", "model_not_found")
        info, config = self.last
        await self.load(info.path, config)

    async def load(self, path: Path, config: EngineConfig) -> None:
        """Load a model in the place of what there is, if anything."""
        try:
            await asyncio.to_thread(self.engine.load, path, config)
            self.parked = False
            await asyncio.to_thread(self.engine.read_vocabulary)
        finally:
            self.on_change()


class Models:
    """All models of one server; used on the API's loop only."""

    def __init__(self, config: ServerConfig, served: list[Served]) -> None:
        self.config = config
        self.all = served
        self.journal = Journal()
        self.closing = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._bell: Bell | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait for any model to become free."""
        return len(self._waiting)

    def bell(self) -> Bell:
        """What wakes the readers of all answers."""
        if self._bell is None or self._bell.loop is not asyncio.get_running_loop():
            self._bell = Bell()
        return self._bell

    def find(self, name: str) -> Served | None:
        """The model of that name, whatever its case; also by the name in its file."""
        wanted = name.casefold()
        for one in self.all:
            info = one.loaded
            names = {one.name, info.name if info else "", info.path.stem if info else ""}
            if wanted in {n.casefold() for n in names}:
                return one
        return None

    def named(self, name: str) -> Served:
        """As `find`; a 404 that lists the names where there is none."""
        if (found := self.find(name)) is None:
            names = ", ".join(one.name for one in self.all) or "none"
            raise ApiError(
                404, f"The model {name[:100]!r} is not served here; there is: {names}.",
                "model_not_found", "model",
            )  # fmt: skip
        return found

    def look(self, name: str) -> Served:
        """The model that would answer to a name, to ask its tokenizer; errors as in `take`."""
        candidates = self._candidates(name)
        found = next((one for one in candidates if one.loaded), candidates[0])
        found.info  # noqa: B018  (raises when there is none)
        return found

    async def take(self, name: str, n: int) -> Served:
        """The model that shall write `n` answers, counted as busy until `give`; may wait for one.

        A 404 for an unknown name; a 503 when nothing is loaded or the queue is full.
        """
        while True:
            if self.closing:
                raise ApiError(503, "The server is stopping.", "stopping")
            candidates = self._candidates(name)
            ready = [one for one in candidates if one.loaded]
            chosen = next((one for one in ready if one.in_flight < one.capacity), None)
            if chosen is None and len(candidates) == 1:
                # Its own engine queues, and reads prompts in order.
                chosen = candidates[0]
                chosen.info  # noqa: B018  (raises when there is none)
                if chosen.in_flight >= chosen.capacity + self.config.routing_queue_limit:
                    raise self._full()
            if chosen is not None:
                chosen.in_flight += n
                return chosen
            if not ready:
                candidates[0].info  # noqa: B018
            if len(self._waiting) >= self.config.routing_queue_limit:
                raise self._full()
            await self._wait()

    def give(self, served: Served, n: int) -> None:
        """Count `n` answers as done."""
        served.in_flight -= n
        self.wake()

    def wake(self) -> None:
        """Let the first that waits look again."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    def close(self) -> None:
        """End everything that is going on."""
        self.closing = True
        while self._waiting:
            self.wake()
        for one in self.all:
            for turn in list(one.turns):
                turn.end(ApiError(503, "The server is stopping.", "stopping"))

    def _candidates(self, name: str) -> list[Served]:
        if not self.all:
            raise ApiError(503, "No model is loaded. Load one first.", "no_model")
        if self.config.load_balancing or name in AUTO:
            return self.all
        if (found := self.find(name)) is not None:
            return [found]
        policy = self.config.unknown_model
        if policy == "primary" or (policy == "auto" and len(self.all) == 1):
            return self.all[:1]
        return [self.named(name)]

    async def _wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.wake()  # the turn that came to this one is the next one's
            raise
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def _full(self) -> ApiError:
        return ApiError(
            503, "All models are busy and the queue is full. Try again in a moment.", "overloaded",
            retry_after=RETRY_AFTER_S,
        )  # fmt: skip
