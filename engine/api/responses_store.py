"""Responses that are kept for clients who come back to them: in memory only, the oldest go first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from engine.api.errors import ApiError
from engine.api.wire import json_bytes

MOST = 1000
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A response, and all items up to its end: those of its conversation before it included."""

    response: dict[str, Any]
    own_input: list[dict[str, Any]]
    conversation: list[dict[str, Any]]
    size: int


class ResponseStore:
    """Used on the API's loop only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._bytes = 0

    def keep(
        self,
        response: dict[str, Any],
        own_input: list[dict[str, Any]],
        before: list[dict[str, Any]],
    ) -> None:
        """Keep a response that answers `own_input` behind the items `before`."""
        conversation = [*before, *own_input, *response["output"]]
        size = len(json_bytes(response)) + len(json_bytes(conversation))
        self._kept[response["id"]] = Kept(response, own_input, conversation, size)
        self._bytes += size
        while len(self._kept) > 1 and (len(self._kept) > MOST or self._bytes > MOST_BYTES):
            _, old = self._kept.popitem(last=False)
            self._bytes -= old.size

    def find(self, response_id: str, param: str = "response_id") -> Kept:
        """A kept response; a 404 where it is not known, or not any more."""
        found = self._kept.get(response_id)
        if found is None:
            raise ApiError(
                404,
                f"Response with id {response_id[:100]!r} not found. Responses are kept in memory only, and"
                " not where store was false.",
                "response_not_found",
                param,
            )
        self._kept.move_to_end(response_id)
        return found

    def item(self, reference: dict[str, Any], param: str) -> dict[str, Any]:
        """The item that a kept response wrote, by its id; a 404 where it is not known."""
        wanted = str(reference.get("id"))
        kept = self._kept.get(f"resp_{wanted.partition('_')[2][:-2]}")
        for item in kept.response["output"] if kept else ():
            if item["id"] == wanted:
                found: dict[str, Any] = item
                return found
        raise ApiError(
            404,
            f"Item with id {wanted[:100]!r} not found. Items are kept in memory only, with their response.",
            "item_not_found",
            param,
        )

    def delete(self, response_id: str) -> None:
        """Forget a response; a 404 as in `find`."""
        self._bytes -= self.find(response_id).size
        del self._kept[response_id]
