"""The requests of the last while: who asked for what and how it went, never what they said."""

from __future__ import annotations

import re
import secrets
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from engine.api.turn import Turn

UNSEEN = frozenset({"/", "/health", "/metrics"})
"""Paths that programs ask again and again to watch the server; they are not kept."""

_KEPT = 500  # of those that have ended
_LONGEST_PATH = 100
_CLIENTS = {
    "claude-cli": "Claude Code",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "OpenCode",
    "pi-coding-agent": "pi",
    "open-webui": "Open WebUI",
    "litellm": "LiteLLM",
    "ai-sdk": "AI SDK",
    "openai/": "OpenAI SDK",
    "anthropic/": "Anthropic SDK",
    "mozilla/": "Browser",
}
_PRODUCT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,23}(?![A-Za-z0-9._-])")


@dataclass(frozen=True, slots=True)
class Live:
    """A request as it is now: who sent it where, since when (Unix time, s), and how it went.

    `status` is HTTP's, 0 until it is known; `seconds` is what it took, None while it goes on. Its fault is
    "left" where the client went before the end, and "failed" where a stream broke off. `reused_tokens` of
    its prompt needed no computation, 0 before it is admitted; `rate` is in tokens written a second. `text`
    is the beginning of what the user wrote last, only where it was asked for and while it goes on.
    """

    id: str
    path: str
    client: str
    since: float
    status: int = 0
    seconds: float | None = None
    fault: Literal["", "left", "failed"] = ""
    model: str = ""
    admitted: bool = False
    prompt_tokens: int = 0
    reused_tokens: int = 0
    written_tokens: int = 0
    rate: float = 0.0
    text: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.seconds is not None


class Visit:
    """A request while it goes on; `turn` is what writes its answer, if anything does."""

    def __init__(self, path: str, client: str) -> None:
        self.turn: Turn | None = None
        self.status = 0
        self.fault: Literal["", "left", "failed"] = ""
        self._id = secrets.token_hex(8)
        self._path = path[:_LONGEST_PATH]
        self.client = client
        self._since = time.time()
        self._begun = time.monotonic()

    def live(self, texts: bool = False, ended: bool = False) -> Live:
        """What can be told of it now, from any thread; with `texts` also what it is about."""
        seconds = time.monotonic() - self._begun if ended else None
        live = Live(
            self._id, self._path, self.client, self._since, self.status, seconds, self.fault
        )
        turn = self.turn
        return live if turn is None else turn.told(live, texts)


class Journal:
    """What goes on, and the newest of what has ended; written on the API's loop, read by any thread."""

    def __init__(self) -> None:
        self._going: dict[Visit, None] = {}
        self._past: deque[Live] = deque(maxlen=_KEPT)

    def lives(self, texts: bool = False) -> list[Live]:
        """All of them, the oldest first; what they are about only with `texts`."""
        # In this order: one that ends meanwhile is seen twice, and not never.
        going = [visit.live(texts) for visit in list(self._going)]
        found = {live.id: live for live in [*going, *list(self._past)]}
        return sorted(found.values(), key=lambda live: live.since)

    def keeping(self, app: ASGIApp) -> ASGIApp:
        """An ASGI application around another one that keeps its requests; they find it as `state.visit`."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            seen = scope["type"] == "http" and scope["method"] != "OPTIONS"
            if not seen or scope["path"] in UNSEEN:
                return await app(scope, receive, send)
            visit = Visit(scope["path"], client_name(Headers(scope=scope).get("user-agent", "")))
            scope.setdefault("state", {})["visit"] = visit
            done = False

            async def hear() -> Message:
                message = await receive()
                if message["type"] == "http.disconnect" and not done:
                    visit.fault = visit.fault or "left"
                return message

            async def tell(message: Message) -> None:
                nonlocal done
                if message["type"] == "http.response.start":
                    visit.status = message["status"]
                elif not message.get("more_body", False):
                    done = True
                await send(message)

            self._going[visit] = None
            try:
                await app(scope, hear, tell)
            finally:
                self._past.append(visit.live(ended=True))
                del self._going[visit]

        return serve


def client_name(agent: str) -> str:
    """The program that a User-Agent header tells of, in a word or two; empty where it tells none."""
    lower = agent.lower()
    for mark, name in _CLIENTS.items():
        if mark in lower:
            return name
    product = _PRODUCT.match(agent)
    return product[0] if product else ""
