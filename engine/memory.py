"""Who holds the memory of a model's device."""

from __future__ import annotations

from engine import devices
from engine.loading import LoadedModel
from engine.metrics import MemoryPart

_TITLES = {"model": "Model", "draft": "Draft", "kv": "Conversation", "work": "Work space"}


def memory_parts(model: LoadedModel | None) -> tuple[MemoryPart, ...]:
    """Owners of the memory of the model's device; they sum to all of it."""
    device = devices.cpu()
    if model is not None and model.plan.device != device.id:
        device = next((d for d in devices.gpus()[0] if d.id == model.plan.device), device)
    owned = model.ops.memory() if model else {}
    if model is not None and model.speculation is not None:
        owned["draft"] = model.speculation.drafter.memory()
    if model is not None and device.kind == "cpu":
        owned["kv"] = owned.get("kv", 0) + model.scheduler.cache.host.n_bytes
    parts = [MemoryPart(k, title, owned.get(k, 0)) for k, title in _TITLES.items()]
    owned_all = sum(p.bytes for p in parts)
    # Pages for a conversation that is still short are owned, and free in the system's eyes.
    held = min(owned_all, devices.own_memory()) if device.kind == "cpu" else owned_all
    other = max(0, device.memory_total - device.memory_free - held)
    return (
        MemoryPart("other", "Other programs", other),
        *parts,
        MemoryPart("free", "Free", max(0, device.memory_total - other - owned_all)),
    )


def on_card(model: LoadedModel | None) -> int:
    """Bytes that a model gives back to its graphics card when it goes."""
    return sum(model.ops.memory().values()) if model and model.plan.device != "cpu" else 0
