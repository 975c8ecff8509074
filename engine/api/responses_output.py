"""The output of a response while it is written: its items, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine.api.logprobs import Row
from engine.api.responses_input import sealed
from engine.pieces import Content, Piece, Reasoning, ToolCallArguments, ToolCallStart

Event = dict[str, Any]


class Output:
    """Items of one answer, one open at a time; `take` and `finish` give the events that a piece makes."""

    def __init__(self, answer_id: str, keep_reasoning: bool) -> None:
        """`keep_reasoning` adds reasoning in the form that clients bring back unread."""
        self.items: list[dict[str, Any]] = []
        self._id = answer_id
        self._keep_reasoning = keep_reasoning
        self._open: dict[str, Any] | None = None

    def take(self, piece: Piece, rows: Sequence[Row] = ()) -> Iterator[Event]:
        """Add a piece, with what is known of its tokens."""
        match piece:
            case Content(text):
                if self._kind != "message":
                    if not text and not rows:
                        return
                    part: dict[str, Any] = {
                        "type": "output_text",
                        "text": "",
                        "annotations": [],
                        "logprobs": [],
                    }
                    yield from self._begin("msg", "message", part, role="assistant")
                self._part["text"] += text
                self._part["logprobs"] += rows
                told = {"delta": text, "logprobs": list(rows)}
                yield self._event("response.output_text.delta", content_index=0, **told)
            case Reasoning(text):
                if not text:
                    return
                if self._kind != "reasoning":
                    part = {"type": "reasoning_text", "text": ""}
                    yield from self._begin("rs", "reasoning", part, summary=[])
                self._part["text"] += text
                yield self._event("response.reasoning_text.delta", content_index=0, delta=text)
            case ToolCallStart(id=call_id, name=name):
                call = {"call_id": call_id, "name": name, "arguments": ""}
                yield from self._begin("fc", "function_call", None, **call)
            case ToolCallArguments(fragment=fragment) if self._open is not None and fragment:
                self._open["arguments"] += fragment
                yield self._event("response.function_call_arguments.delta", delta=fragment)

    def finish(self, status: str = "completed") -> Iterator[Event]:
        """Close the item that is open."""
        item = self._open
        if item is None:
            return
        if item["type"] == "function_call":
            told = {"name": item["name"], "arguments": item["arguments"]}
            yield self._event("response.function_call_arguments.done", **told)
        else:
            part = self._part
            text = {"content_index": 0, "text": part["text"]}
            if item["type"] == "message":
                yield self._event("response.output_text.done", **text, logprobs=part["logprobs"])
            else:
                yield self._event("response.reasoning_text.done", **text)
            yield self._event("response.content_part.done", content_index=0, part=dict(part))
        if item["type"] == "reasoning" and self._keep_reasoning:
            item["encrypted_content"] = sealed(self._part["text"])
        item["status"] = status
        yield self._item_event("response.output_item.done")
        self._open = None

    @property
    def _kind(self) -> str | None:
        return self._open["type"] if self._open else None

    @property
    def _part(self) -> dict[str, Any]:
        assert self._open is not None
        part: dict[str, Any] = self._open["content"][0]
        return part

    def _begin(
        self, prefix: str, kind: str, part: dict[str, Any] | None, **fields: Any
    ) -> Iterator[Event]:
        yield from self.finish()
        item_id = f"{prefix}_{self._id}{len(self.items):02x}"
        item = {"id": item_id, "type": kind, "status": "in_progress", **fields}
        if part is not None:
            item["content"] = []
        self._open = item
        self.items.append(item)
        yield self._item_event("response.output_item.added")
        if part is not None:
            item["content"].append(part)
            yield self._event("response.content_part.added", content_index=0, part=dict(part))

    def _item_event(self, kind: str) -> Event:
        assert self._open is not None
        return {"type": kind, "output_index": len(self.items) - 1, "item": _copied(self._open)}

    def _event(self, kind: str, **fields: Any) -> Event:
        assert self._open is not None
        place = {"item_id": self._open["id"], "output_index": len(self.items) - 1}
        return {"type": kind, **place, **fields}


def _copied(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it stands, for an event that is sent later."""
    if "content" not in item:
        return dict(item)
    return {**item, "content": [dict(part) for part in item["content"]]}
