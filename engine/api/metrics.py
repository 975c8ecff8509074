"""The engine's numbers as Prometheus reads them (text exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterator

from engine.api.served import Models
from engine.metrics import Metrics

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_KNOWN = (
    ("running", "gauge", "running_requests", "Answers that are being written"),
    ("queued", "gauge", "queued_requests", "Requests that wait for admission"),
    ("prefill_rate", "gauge", "prefill_tokens_per_second", "Prompt tokens read a second"),
    ("decode_rate", "gauge", "decode_tokens_per_second", "Tokens written a second"),
    ("first_token_s", "gauge", "first_token_seconds", "Time to the newest answer's first token"),
    ("context_max", "gauge", "context_tokens_max", "Most tokens of one conversation"),
    ("pages_used", "gauge", "kv_pages_used", "Pages of keys and values in use"),
    ("pages_total", "gauge", "kv_pages", "Pages of keys and values"),
    ("step_ms", "gauge", "step_milliseconds", "Time of the newest step"),
    ("steps", "counter", "steps_total", "Steps since the model was loaded"),
    ("prompt_tokens_total", "counter", "prompt_tokens_total", "Prompt tokens read"),
    ("completion_tokens_total", "counter", "completion_tokens_total", "Tokens written"),
)
_SPECULATION = (
    ("drafted_total", "counter", "drafted_tokens_total", "Tokens guessed ahead"),
    ("accepted_total", "counter", "accepted_tokens_total", "Guessed tokens that were right"),
    ("pauses_total", "counter", "speculation_pauses_total", "Times that drafts did not pay"),
    ("acceptance_length", "gauge", "acceptance_length", "Tokens of a verified draft"),
    ("speedup", "gauge", "speculation_speedup", "Speed over no drafts, as measured here"),
)
_CACHE = (
    ("hits", "counter", "cache_hits_total", "Prompts that began with something known"),
    ("misses", "counter", "cache_misses_total", "Prompts that began with nothing known"),
    ("reused_tokens_total", "counter", "cache_reused_tokens_total", "Prompt tokens not read again"),
    ("moved_out_total", "counter", "cache_moved_out_total", "Pages and states moved to RAM"),
    ("read_back_total", "counter", "cache_read_back_total", "Pages brought back from RAM"),
    ("preempted_total", "counter", "preempted_total", "Answers that gave their place to others"),
    ("ram_bytes", "gauge", "cache_ram_bytes", "Prefixes in RAM"),
    ("ram_limit", "gauge", "cache_ram_bytes_max", "Most bytes of prefixes in RAM"),
    ("device_states", "gauge", "cache_device_states", "Recurrent states kept on the device"),
    ("ram_states", "gauge", "cache_ram_states", "Recurrent states kept in RAM"),
)
_OWNERS = ("running", "shared", "kept", "free", "ram")


def text(models: Models) -> str:
    """All numbers of all models."""
    found = [(one.name, one.engine.metrics()) for one in models.all]
    lines: list[str] = []
    for field, kind, name, help in _KNOWN:
        lines += _head(f"lucebox_{name}", kind, help)
        for model, numbers in found:
            value = getattr(numbers, field)
            if value is not None:
                lines.append(f'lucebox_{name}{{model="{_escaped(model)}"}} {_number(value)}')
    for field, kind, name, help in _SPECULATION:
        lines += _head(f"lucebox_{name}", kind, help)
        for model, numbers in found:
            value = getattr(numbers.speculation, field, None)
            if value is not None:
                lines.append(f'lucebox_{name}{{model="{_escaped(model)}"}} {_number(value)}')
    for field, kind, name, help in _CACHE:
        lines += _head(f"lucebox_{name}", kind, help)
        for model, numbers in found:
            value = getattr(numbers.cache, field)
            lines.append(f'lucebox_{name}{{model="{_escaped(model)}"}} {_number(value)}')
    lines += _head(
        "lucebox_cache_pages", "gauge", "Pages by who holds them, on the device and in RAM"
    )
    for model, numbers in found:
        for owner in _OWNERS:
            labels = f'model="{_escaped(model)}",owner="{owner}"'
            pages = getattr(numbers.cache, f"{owner}_pages")
            lines.append(f"lucebox_cache_pages{{{labels}}} {pages}")
    lines += _head("lucebox_memory_bytes", "gauge", "Memory by its owner")
    for model, numbers in found:
        lines += _memory(model, numbers)
    lines += _head("lucebox_waiting_requests", "gauge", "Requests that wait for any free model")
    lines.append(f"lucebox_waiting_requests {models.waiting}")
    return "\n".join(lines) + "\n"


def _memory(model: str, numbers: Metrics) -> Iterator[str]:
    for part in numbers.memory:
        labels = f'model="{_escaped(model)}",owner="{part.kind}"'
        yield f"lucebox_memory_bytes{{{labels}}} {part.bytes}"


def _head(name: str, kind: str, help: str) -> list[str]:
    return [f"# HELP {name} {help}.", f"# TYPE {name} {kind}"]


def _number(value: float) -> str:
    """Whole numbers to their last digit: a counter of millions that is rounded stands still."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
