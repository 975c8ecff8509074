"""Every shipped kernel compiles for every architecture, without spills and within the registers on record.

NVRTC needs no GPU. `python -m kernels.lab.record` compiles all of them and renews the record, which a change
of the kernels makes necessary; each variant is compiled here again for some architectures, in turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernels.driver import kernels_of
from kernels.lab.record import fingerprint
from kernels.loader import SOURCES, CompileError, Loader, expand, options
from kernels.nvrtc import Nvrtc, Resources, resources
from kernels.variants import ARCHITECTURES, INT8, PACKED, Variant, all_variants, matmul

SHARE = 12
"""One variant in this many is compiled for each architecture: a minute and a half on two cores in all."""

SLACK = 8
"""Registers that another version of NVRTC may give more than the recorded one."""


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    return Nvrtc()


@pytest.fixture(scope="module")
def record() -> dict[str, dict[str, list[int]]]:
    text = (SOURCES / "resources.json").read_text(encoding="utf-8")
    table = json.loads(text)
    assert table["sources"] == fingerprint(), "kernels changed: run python -m kernels.lab.record"
    return {arch: table[str(arch)] for arch in map(str, ARCHITECTURES)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_variants_compile_without_spills(
    nvrtc: Nvrtc, record: dict[str, dict[str, list[int]]], arch: int
) -> None:
    def build(variant: Variant) -> dict[str, Resources]:
        source = expand(variant.file)
        code, told = nvrtc.compile(source, variant.file, arch, options(variant))
        assert kernels_of(code) == sorted(resources(told))
        return resources(told)

    everything = list(dict.fromkeys(all_variants(arch)))
    wanted = everything[ARCHITECTURES.index(arch) % SHARE :: SHARE]
    with ThreadPoolExecutor(2) as pool:
        found = {
            f"{variant} {name}": used
            for variant, kernels in zip(wanted, pool.map(build, wanted), strict=True)
            for name, used in kernels.items()
        }
    assert len(found) > len(wanted)  # some files hold two kernels, and every log was understood
    assert {name: used for name, used in found.items() if used.spills or used.stack} == {}
    expected = record[str(arch)]
    assert set(found) <= set(expected)
    assert {name.rpartition(" ")[0] for name in expected} == {str(v) for v in everything}
    grown = {
        name: (used.registers, used.shared)
        for name, used in found.items()
        if used.registers > expected[name][0] + SLACK or used.shared > expected[name][1]
    }
    assert grown == {}


@pytest.mark.parametrize("arch", (*ARCHITECTURES, 87, 103, 121))
def test_every_format_fits_every_card_with_one_plan_for_all_batches(arch: int) -> None:
    for type_id in PACKED:
        builds = [matmul(type_id, INT8, groups, arch) for groups in (1, 2, 3, 4)]
        assert len({(b.tiles, b.blocks) for b in builds}) == 1
        assert all(
            b.shared <= (64 if arch == 75 else 99 if arch not in (80, 90, 100) else 227) << 10
            for b in builds
        )


def test_a_log_is_understood() -> None:
    log = (
        "ptxas info    : Function properties for add\n"
        "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 96 bytes smem\n"
    )
    assert resources(log) == {"add": Resources(40, 96, 8, 16)}


def test_headers_are_put_in_once() -> None:
    text = expand("matmul.cu")
    assert "#include" not in text and text.count("typedef unsigned int u32;") == 1


def test_code_is_kept_and_damage_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = Variant("embed.cu", (("TYPE", 0),))
    told: list[tuple[int, int]] = []

    def load() -> bytes:
        return Loader(80, tmp_path).load([variant], lambda *counts: told.append(counts))[variant]

    code = load()
    (file,) = tmp_path.iterdir()
    assert told == [(1, 1)] and load() == code and told == [(1, 1)]
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert load() == code and len(told) == 2
    Loader(86, tmp_path).load([variant])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert Loader(80, blocked / "cache").load([Variant("embed.cu", (("TYPE", 0),))])


def test_newer_cards_get_code_that_they_can_run(nvrtc: Nvrtc) -> None:
    newest = nvrtc.architectures[-1]
    assert nvrtc.target(90) == ("sm_90", True)
    assert nvrtc.target(newest + 1) == (f"sm_{newest}", True)
    target, native = nvrtc.target(newest // 10 * 10 + 10)
    assert target == f"compute_{newest}" and not native
    ptx, _ = nvrtc.compile(expand("embed.cu"), "embed.cu", newest // 10 * 10 + 10, ("-DTYPE=0",))
    assert b".target" in ptx
    with pytest.raises(CompileError, match="compute capability"):
        nvrtc.target(10)


def test_errors_in_a_source_are_told(nvrtc: Nvrtc) -> None:
    with pytest.raises(CompileError, match="nonsense"):
        nvrtc.compile("nonsense", "x.cu", 90, ())


def test_a_missing_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Callable[[int], list[str]] = lambda newest: ["/nowhere/libnvrtc.so"]  # noqa: E731
    monkeypatch.setattr("kernels.nvrtc._candidates", nothing)
    with pytest.raises(CompileError, match="nvidia-cuda-nvrtc"):
        Nvrtc()
