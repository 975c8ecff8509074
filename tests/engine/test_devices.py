"""What this PC is said to have: bounded by containers, and plain about drivers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from engine import devices
from engine.devices import cpu, gpus, physical_cores


class NvmlError(Exception):
    """The only error that the driver library raises."""


def nvml(cards: list[tuple[str, int, int]], cuda: int = 12040) -> ModuleType:
    """A stand-in for the driver library: (name, total, free) of each card."""

    def memory(index: int) -> SimpleNamespace:
        return SimpleNamespace(total=cards[index][1], free=cards[index][2])

    module = ModuleType("pynvml")
    module.__dict__.update(
        NVMLError=NvmlError, nvmlInit=lambda: None, nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: b"470.256.02", nvmlSystemGetCudaDriverVersion=lambda: cuda,
        nvmlDeviceGetCount=lambda: len(cards), nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetMemoryInfo=memory, nvmlDeviceGetName=lambda i: cards[i][0],
        nvmlDeviceGetCudaComputeCapability=lambda i: (6, 1) if "GTX" in cards[i][0] else (8, 6),
        nvmlDeviceGetPciInfo=lambda i: SimpleNamespace(busId=f"0000:0{i}:00.0".encode()),
    )  # fmt: skip
    return module


def test_the_processor_of_this_machine() -> None:
    found = cpu()
    assert (found.id, found.kind) == ("cpu", "cpu") and found.name
    assert 0 < found.memory_free <= found.memory_total <= psutil.virtual_memory().total
    assert 1 <= found.cores <= (os.cpu_count() or 1)
    assert devices.devices()[0].id == "cpu"


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU part is installed."""
    monkeypatch.setattr(devices, "_missing_part", lambda: None)


def test_a_card_s_slot_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nvml([("RTX 3090", 24, 20), ("RTX 3060", 12, 8)])
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert devices.slot(1) == "0000:01:00.0"

    def lost(_: int) -> None:
        raise NvmlError("GPU is lost")

    module.nvmlDeviceGetPciInfo = lost  # type: ignore[attr-defined]
    assert devices.slot(1) == ""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert devices.slot(0) == ""


@pytest.mark.usefixtures("cupy")
def test_a_card_that_is_too_old_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml([("RTX 3090", 24, 20), ("GTX 1080", 8, 8)]))
    found, problem = gpus()
    assert problem is None and found[0].problem == "" and "7.5" in found[1].problem
    monkeypatch.setitem(sys.modules, "pynvml", nvml([("GTX 1080", 8, 8)]))
    found, problem = gpus()
    assert problem == found[0].problem and "GTX 1080" in found[0].problem


def test_a_missing_gpu_part_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml([("RTX 3090", 24, 20)]))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found, problem = gpus()
    assert found[0].problem == problem and "CuPy" in (problem or "") and "cuda13" in (problem or "")


@pytest.mark.usefixtures("cupy")
def test_cards_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml([("RTX 3090", 24, 20), ("RTX 3060", 12, 8)]))
    found, problem = gpus()
    assert problem is None and [d.id for d in found] == ["cuda:0", "cuda:1"]
    assert (found[1].name, found[1].memory_total, found[1].memory_free) == ("RTX 3060", 12, 8)


def test_an_old_driver_is_named_with_the_one_that_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml([("RTX 3090", 24, 20)], cuda=11040))
    problem = gpus()[1] or ""
    for word in ("470.256.02", "11.4", "12.0", "525", "processor is used"):
        assert word in problem


def test_no_driver_and_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nvml([])

    def missing() -> None:
        raise NvmlError("NVML Shared Library Not Found")

    module.nvmlInit = missing  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    found, problem = gpus()
    assert found == () and "No NVIDIA driver" in (problem or "")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus()[0] == () and "nvidia-ml-py" in (gpus()[1] or "")


def test_a_driver_that_stops_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    module = nvml([("RTX", 1, 1)])

    def lost(_: int) -> None:
        raise NvmlError("GPU is lost")

    module.nvmlDeviceGetMemoryInfo = lost  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert gpus() == ((), "The NVIDIA driver did not answer (GPU is lost). The processor is used.")


def group(folder: Path, **values: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n")
    return folder


def test_a_container_s_memory_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = "anon 1\ninactive_file 100000000\nactive_file 50000000\nfile 7"
    one = group(
        tmp_path / "a", memory__max="1000000000", memory__current="400000000", memory__stat=stat
    )
    free_of_limit = group(tmp_path / "b", memory__max="max", memory__current="5")
    old = group(
        tmp_path / "c", memory__limit_in_bytes="9223372036854771712", memory__usage_in_bytes="5"
    )
    monkeypatch.setattr(devices, "_cgroups", lambda: (one, free_of_limit, old))
    found = cpu()
    assert found.memory_total == 1_000_000_000
    assert found.memory_free == min(750_000_000, psutil.virtual_memory().total)


def test_a_container_s_share_of_processors_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_allowed_cpus", lambda: {0, 1, 2, 3})
    monkeypatch.setattr(devices, "_cores_of", lambda allowed: 4)
    for quota, cores in (("max 100000", 4), ("250000 100000", 2), ("50000 100000", 1), ("", 4)):
        folder = group(tmp_path / "g", cpu__max=quota)
        monkeypatch.setattr(devices, "_cgroups", lambda folder=folder: (folder,))
        assert physical_cores() == cores
    old = group(tmp_path / "old", cpu__cfs_quota_us="300000", cpu__cfs_period_us="100000")
    monkeypatch.setattr(devices, "_cgroups", lambda: (old,))
    assert physical_cores() == 3


def test_two_threads_of_a_core_are_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    siblings = {0: "0,4", 4: "0,4", 1: "1,5", 5: "1,5"}

    def read(path: object) -> str:
        number = str(path).partition("cpu/cpu")[2].partition("/")[0]
        return siblings.get(int(number), "") if number else ""

    monkeypatch.setattr(devices, "_read", read)
    monkeypatch.setattr(devices, "_cgroups", lambda: ())
    monkeypatch.setattr(devices, "_allowed_cpus", lambda: {0, 4, 1})
    assert physical_cores() == 2
    monkeypatch.setattr(devices, "_allowed_cpus", lambda: {7})  # the system does not say
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 8 if logical else 4)
    assert physical_cores() == 1
    monkeypatch.setattr(devices, "_allowed_cpus", set)
    assert physical_cores() == 4
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: None)
    assert physical_cores() == 1
