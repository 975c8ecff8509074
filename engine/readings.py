"""What the driver tells of graphics cards from moment to moment: load, memory, heat, power, link."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class CardReading:
    """One card now; memory in bytes, `ours` what this process holds, `load` in percent, `power` and
    `power_limit` in watts, `link` such as "PCIe 4.0 x16". None and "" where the driver does not say."""

    id: str
    name: str
    memory_total: int
    memory_used: int
    ours: int | None
    load: int | None
    temperature: int | None
    power: float | None
    power_limit: float | None
    link: str
    driver: str
    display: bool


class Watcher:
    """Asks NVML; opened once, since that takes longer than asking. Not for two threads at once."""

    def __init__(self) -> None:
        self._nvml: ModuleType | None = None
        self._handles: list[Any] = []

    def read(self) -> tuple[CardReading, ...]:
        """All cards, in the driver's order; nothing where there is no driver, or it stopped answering."""
        if self._nvml is None and not self._open():
            return ()
        nvml = self._nvml
        assert nvml is not None
        try:
            driver = _text(nvml.nvmlSystemGetDriverVersion())
            return tuple(_reading(nvml, i, h, driver) for i, h in enumerate(self._handles))
        except nvml.NVMLError:
            self.close()
            return ()

    def close(self) -> None:
        """Let the driver go; the next `read` opens it again."""
        nvml, self._nvml = self._nvml, None
        self._handles = []
        if nvml is not None:
            _ask(nvml, "nvmlShutdown")

    def _open(self) -> bool:
        try:
            import pynvml
        except ImportError:
            return False
        try:
            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        except pynvml.NVMLError:
            return False
        self._nvml = pynvml
        return True


def tokens_per_joule(rate: float, power: float | None) -> float | None:
    """Tokens that a joule buys at `rate` tokens a second and `power` watts."""
    return rate / power if rate > 0 and power else None


def _reading(nvml: ModuleType, index: int, handle: Any, driver: str) -> CardReading:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    load = _ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    power = _ask(nvml, "nvmlDeviceGetPowerUsage", handle)
    limit = _ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
    return CardReading(
        id=f"cuda:{index}",
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_total=int(memory.total),
        memory_used=int(memory.used),
        ours=_ours(nvml, handle),
        load=None if load is None else int(load.gpu),
        temperature=_ask(nvml, "nvmlDeviceGetTemperature", handle, 0),
        power=None if power is None else power / 1e3,
        power_limit=None if limit is None else limit / 1e3,
        link=_link(nvml, handle),
        driver=driver,
        display=bool(_ask(nvml, "nvmlDeviceGetDisplayActive", handle)),
    )


def _link(nvml: ModuleType, handle: Any) -> str:
    generation = _ask(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", handle)
    width = _ask(nvml, "nvmlDeviceGetMaxPcieLinkWidth", handle)
    return f"PCIe {generation}.0 x{width}" if generation and width else ""


def _ours(nvml: ModuleType, handle: Any) -> int | None:
    """Bytes of this process; Windows does not tell."""
    processes = _ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    if processes is None:
        return None
    held = [p.usedGpuMemory for p in processes if p.pid == os.getpid()]
    return sum(held) if all(n is not None for n in held) else None


def _ask(nvml: ModuleType, name: str, *args: Any) -> Any:
    """One answer; None where this card or driver has none."""
    try:
        return getattr(nvml, name)(*args)
    except (nvml.NVMLError, AttributeError):
        return None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
