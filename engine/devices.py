"""What this PC can compute on: its processor and its graphics cards, with memory as it stands now."""

from __future__ import annotations

import functools
import importlib.util
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

_NEEDED_CUDA = (12, 0)  # what the CuPy packages of this application are built for
_NEEDED_DRIVER = "525"
_NEEDED_CAPABILITY = (7, 5)


@dataclass(frozen=True, slots=True)
class Device:
    """A place where a model can run.

    `id` is "cpu" or "cuda:0", `kind` "cpu" or "cuda"; memory in bytes, as the system (or this
    container's limit) gives it; `cores` physical cores this process may use, 0 for a card. `problem` is a
    sentence on why it cannot be used, "" if it can.
    """

    id: str
    kind: str
    name: str
    memory_total: int
    memory_free: int
    cores: int = 0
    problem: str = ""


def devices() -> tuple[Device, ...]:
    """The processor first, then the graphics cards that a driver reports."""
    return (cpu(), *gpus()[0])


def cpu() -> Device:
    """The processor with the memory that is free now; cheap enough to call ten times a second."""
    memory = psutil.virtual_memory()
    total, free = memory.total, memory.available
    for limit, used in _cgroup_memory():
        total, free = min(total, limit), min(free, max(0, limit - used))
    return Device("cpu", "cpu", _cpu_name(), total, free, physical_cores())


def own_memory() -> int:
    """Bytes of memory that this process really holds; pages that were never written count as free."""
    held = psutil.Process().memory_info()
    return int(held.rss - getattr(held, "shared", 0))


def gpus() -> tuple[tuple[Device, ...], str | None]:
    """NVIDIA cards, and a sentence on why there are none or why they cannot be used."""
    try:
        import pynvml
    except ImportError:
        return (), "The package nvidia-ml-py is not installed, so graphics cards are not listed."
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return (), _no_driver(error)
    try:
        problem = _driver_problem(
            _text(pynvml.nvmlSystemGetDriverVersion()), pynvml.nvmlSystemGetCudaDriverVersion()
        )
        problem = problem or _missing_part()
        found = []
        for i in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(i)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            name = _text(pynvml.nvmlDeviceGetName(handle))
            why = problem or _too_old(name, pynvml.nvmlDeviceGetCudaComputeCapability(handle))
            found.append(
                Device(f"cuda:{i}", "cuda", name, int(memory.total), int(memory.free), 0, why or "")
            )
        whys = {d.problem for d in found}
        return tuple(found), problem or (min(whys) or None if len(whys) == 1 else None)
    except pynvml.NVMLError as error:
        return (), f"The NVIDIA driver did not answer ({error}). The processor is used."
    finally:
        pynvml.nvmlShutdown()


def slot(index: int) -> str:
    """The PCI bus id of the card that `gpus` lists as "cuda:index", "" where the driver does not say."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package or no driver: CUDA's own order is all there is
        return ""
    try:
        return _text(pynvml.nvmlDeviceGetPciInfo(pynvml.nvmlDeviceGetHandleByIndex(index)).busId)
    except pynvml.NVMLError:
        return ""
    finally:
        pynvml.nvmlShutdown()


def physical_cores() -> int:
    """Physical cores that this process may use: affinity and container limits count; at least 1."""
    allowed = _allowed_cpus()
    cores = _cores_of(allowed)
    if not cores:
        cores = psutil.cpu_count(logical=False) or psutil.cpu_count(logical=True) or 1
        cores = min(cores, len(allowed)) if allowed else cores
    quota = _cgroup_cpus()
    return max(1, min(cores, int(quota)) if quota else cores)


def _driver_problem(driver: str, cuda: int) -> str | None:
    """Why a driver that speaks CUDA `cuda` (12020 is 12.2) cannot be used, or None."""
    version = (cuda // 1000, cuda % 1000 // 10)
    if version >= _NEEDED_CUDA:
        return None
    return (
        f"The NVIDIA driver {driver} is too old: it knows CUDA {version[0]}.{version[1]}, needed is "
        f"{_NEEDED_CUDA[0]}.{_NEEDED_CUDA[1]} (driver {_NEEDED_DRIVER} or newer). "
        "The processor is used until the driver is updated."
    )


def _missing_part() -> str | None:
    """Why kernels cannot be run although a card and its driver are there, or None."""
    if importlib.util.find_spec("cupy") is not None:
        return None
    return (
        "There is an NVIDIA card, and the part of this program that uses it is not installed: CuPy is"
        " missing. Run the setup again on this PC, or install the extra cuda12 or cuda13."
        " The processor is used until then."
    )


def _too_old(name: str, capability: tuple[int, int]) -> str | None:
    """Why a card cannot be used, or None."""
    if tuple(capability) >= _NEEDED_CAPABILITY:
        return None
    return (
        f"{name} has compute capability {capability[0]}.{capability[1]}; needed is 7.5 (GeForce RTX 20"
        " series) or newer. The processor is used."
    )


def _no_driver(error: Exception) -> str:
    return (
        f"No NVIDIA driver is loaded ({error}). If this PC has an NVIDIA card, install its driver "
        f"({_NEEDED_DRIVER} or newer); the processor is used until then."
    )


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _allowed_cpus() -> set[int]:
    """Logical processors this process may run on; empty where the system does not say."""
    try:
        return set(psutil.Process().cpu_affinity())
    except (AttributeError, OSError, psutil.Error):
        return set()


def _cores_of(allowed: set[int]) -> int:
    """Physical cores under a set of logical processors; 0 where the system does not say (not Linux)."""
    topology = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return len({_read(topology.format(number)) for number in allowed} - {""})


def _read(path: str | Path) -> str:
    """A small system file, or "" where there is none."""
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


@functools.cache
def _cgroups() -> tuple[Path, ...]:
    """The folders of this process's control group and those above it (Linux, version 2 and 1)."""
    found: list[Path] = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        wanted = {"": "", "memory": "memory", "cpu": "cpu", "cpu,cpuacct": "cpu,cpuacct"}
        if controllers not in wanted:
            continue
        root = Path("/sys/fs/cgroup") / wanted[controllers]
        inner = root / path.lstrip("/")
        found += [p for p in (inner, *inner.parents) if p.is_dir() and p.is_relative_to(root)]
    return tuple(dict.fromkeys(found))


def _cgroup_memory() -> list[tuple[int, int]]:
    """(limit, used) in bytes of each control group that limits memory; file cache is not used memory."""
    limits = []
    for group in _cgroups():
        limit = _read(group / "memory.max") or _read(group / "memory.limit_in_bytes")
        used = _read(group / "memory.current") or _read(group / "memory.usage_in_bytes")
        if not (limit.isdecimal() and used.isdecimal()) or int(limit) >= 1 << 60:
            continue
        cache = 0
        for line in _read(group / "memory.stat").splitlines():
            key, _, value = line.partition(" ")
            if key in ("inactive_file", "active_file") and value.isdecimal():
                cache += int(value)
        limits.append((int(limit), max(0, int(used) - cache)))
    return limits


def _cgroup_cpus() -> float | None:
    """Processors' worth of time that this container may use, None without a limit."""
    found = []
    for group in _cgroups():
        quota, _, period = _read(group / "cpu.max").partition(" ")
        quota = quota or _read(group / "cpu.cfs_quota_us")
        period = period or _read(group / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period) > 0:
            found.append(int(quota) / int(period))
    return min(found, default=None)


@functools.cache
def _cpu_name() -> str:
    """The maker's name of the processor."""
    if sys.platform == "win32":
        return platform.processor() or "Processor"
    if sys.platform == "darwin":
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        return asked.stdout.strip() or "Processor"
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Hardware") and value.strip():
            return value.strip()
    return platform.machine() or "Processor"
