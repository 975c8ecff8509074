"""A stand-in for NVIDIA's management library: two cards with load, heat and power."""

from __future__ import annotations

import os
from types import ModuleType, SimpleNamespace
from typing import Any

GB = 1 << 30


class NvmlError(Exception):
    """The only error that the library raises."""


def cards() -> list[dict[str, Any]]:
    """A large card in work, and a small one with the display, which tells little."""
    return [
        {
            "name": "NVIDIA GeForce RTX 3090", "total": 24 * GB, "used": 18 * GB, "load": 94, "heat": 70,
            "power": 296_000, "limit": 350_000, "generation": 4, "width": 16, "ours": 17 * GB,
        },
        {"name": "NVIDIA GeForce RTX 3060", "total": 12 * GB, "used": 2 * GB, "load": 11, "display": 1},
    ]  # fmt: skip


def module(found: list[dict[str, Any]] | None = None) -> ModuleType:
    """The module `pynvml`; what a card does not have is not supported."""
    known = cards() if found is None else found

    def get(name: str) -> Any:
        def ask(index: int, *_: Any) -> Any:
            if name not in known[index]:
                raise NvmlError("Not Supported")
            return known[index][name]

        return ask

    def memory(index: int) -> Any:
        total, used = get("total")(index), get("used")(index)
        return SimpleNamespace(total=total, used=used, free=total - used)

    def processes(index: int) -> Any:
        return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=get("ours")(index))]

    made = ModuleType("pynvml")
    made.__dict__.update(
        NVMLError=NvmlError, nvmlInit=lambda: None, nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "580.95", nvmlSystemGetCudaDriverVersion=lambda: 13000,
        nvmlDeviceGetCount=lambda: len(known), nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetMemoryInfo=memory, nvmlDeviceGetName=get("name"),
        nvmlDeviceGetUtilizationRates=lambda i: SimpleNamespace(gpu=get("load")(i)),
        nvmlDeviceGetTemperature=get("heat"), nvmlDeviceGetPowerUsage=get("power"),
        nvmlDeviceGetEnforcedPowerLimit=get("limit"),
        nvmlDeviceGetMaxPcieLinkGeneration=get("generation"),
        nvmlDeviceGetMaxPcieLinkWidth=get("width"), nvmlDeviceGetDisplayActive=get("display"),
        nvmlDeviceGetComputeRunningProcesses=processes,
        nvmlDeviceGetCudaComputeCapability=lambda i: (8, 6),
        nvmlDeviceGetPciInfo=lambda i: SimpleNamespace(busId=f"0000:0{i}:00.0"),
    )  # fmt: skip
    return made
