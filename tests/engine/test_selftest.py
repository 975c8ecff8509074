"""The self-test's judgement, with operations in NumPy in the place of a card's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import devices, selftest
from engine.config import Precision
from engine.errors import BadRequest, DeviceFault, KernelError
from engine.ops import cuda_checks
from engine.ops.base import StepInput
from engine.ops.choosing import chosen
from engine.ops.cuda_probe import Ceilings
from engine.ops.cuda_trust import Distrust, distrust_of, remember
from engine.ops.numpy_ops import Cell, NumpyOps
from engine.ops.two_level import two_level

INT8, Q4_K, Q6_K = 8, 12, 14


class Card(NumpyOps):
    """NumPy that rounds activations as the card does; `fault` gets the products and spoils them."""

    def __init__(self, precision: Precision, fault: Any) -> None:
        super().__init__()
        self.precision, self.fault = precision, fault
        self.types: dict[int, int] = {}

    def upload(self, tensor: Any) -> Any:
        weight = super().upload(tensor)
        self.types[id(weight)] = tensor.type.id
        return weight

    tokens_of = staticmethod(chosen)

    def linear(self, x: Cell, *weights: Any) -> Cell:
        out = Cell()
        types = [self.types[id(w)] for w in weights]
        wide = [w.astype(np.float64) for w in weights]
        packed = types[0] in cuda_checks.variants.PACKED

        def run(step: StepInput) -> None:
            short = len(step.tokens) <= 32 and self.precision is Precision.FAST
            rows = two_level(x.value) if packed and short else x.value.astype(np.float64)
            y = np.stack([np.concatenate([w @ row for w in wide]) for row in rows])
            out.value = self.fault(types[0], short, y.astype(np.float32))

        self._program.append(run)
        return out


def trials(fault: Any, *types: int) -> list[cuda_checks.Check]:
    """The checks of these formats, or all."""
    made = cuda_checks.trials(lambda precision: Card(precision, fault))  # type: ignore[arg-type,return-value]
    return [c for trial in made if not types or trial.type_id in types for c in trial.run()]


def sound(type_id: int, short: bool, y: Any) -> Any:
    return y


def test_sound_kernels_pass() -> None:
    found = trials(sound)
    assert {c.name: c.error for c in found if not c.passed} == {}
    assert not (d := Distrust.after(found)).int8 | d.unpacked and d.broken == ()
    kernels = cuda_checks.variants
    for type_id in kernels.PACKED:
        assert {c.kernel for c in found if c.type_id == type_id} == {"int8", "packed"}
    assert sum(c.name.startswith("attention") for c in found) == len(kernels.HEAD_DIMS)
    assert sum(c.kernel == "recurrent layers" for c in found) == 1


@pytest.mark.parametrize("wrong", (1.001, np.nan))
def test_a_wrong_product_is_found_and_replaced(wrong: float) -> None:
    def int8_only(type_id: int, short: bool, y: Any) -> Any:
        return y * np.float32(wrong) if type_id == Q4_K and short else y

    def always(type_id: int, short: bool, y: Any) -> Any:
        return y * np.float32(1.5 * wrong) if type_id == Q6_K else y

    assert Distrust.after(trials(int8_only, Q4_K, Q6_K)) == Distrust(frozenset({Q4_K}))
    found = Distrust.after(trials(always, Q4_K, Q6_K))
    assert found == Distrust(frozenset(), frozenset({Q6_K}))
    (note,) = found.notes()
    assert "Q6_K" in note and "16-bit" in note
    assert found.notes(frozenset({Q4_K})) == ()


def test_rows_that_depend_on_the_batch_are_found() -> None:
    def odd(type_id: int, short: bool, y: Any) -> Any:
        return y + np.float32(1e-6) * (len(y) == 9) if type_id == Q4_K and short else y

    bad = [c for c in trials(odd, Q4_K) if not c.passed]
    assert [c.name for c in bad] == ["Q4_K, int8, any batch"]


def test_a_kernel_that_fails_is_told_and_the_others_are_tested() -> None:
    def broken(type_id: int, short: bool, y: Any) -> Any:
        if type_id == Q4_K:
            raise KernelError("no such kernel")
        return y

    found = trials(broken, Q4_K, Q6_K)
    bad = [c for c in found if not c.passed]
    assert {c.type_id for c in bad} == {Q4_K} and "no such kernel" in bad[0].problem


def test_what_was_found_is_kept_for_card_driver_and_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Distrust(frozenset({Q4_K}), frozenset({Q6_K}), ("norm",))
    remember(found, "RTX 9", 12040, tmp_path)
    assert distrust_of("RTX 9", 12040, tmp_path) == found
    nothing = Distrust()
    assert distrust_of("RTX 8", 12040, tmp_path) == nothing
    assert distrust_of("RTX 9", 12050, tmp_path) == nothing
    assert distrust_of("RTX 9", 12040, None) == nothing
    (file,) = tmp_path.iterdir()
    kept = file.read_bytes()
    for bad in (b"{", b"[]", b'{"driver": 12040}', kept.replace(b"[12]", b'["x"]')):
        file.write_bytes(bad)
        assert distrust_of("RTX 9", 12040, tmp_path) == nothing
    file.write_bytes(kept)
    monkeypatch.setattr("engine.ops.cuda_trust.fingerprint", lambda: "other")
    assert distrust_of("RTX 9", 12040, tmp_path) == nothing
    blocked = tmp_path / "file"
    blocked.write_text("")
    remember(found, "RTX 9", 12040, blocked / "cache")


class Made:
    """`CudaOps` of a card that is not there."""

    def __init__(self, device: str, precision: Precision, *rest: Any) -> None:
        self.card = SimpleNamespace(
            name="RTX 9", arch=89, driver=12040, build=lambda variants: list(variants)
        )

    def close(self) -> None:
        pass


def test_a_report_and_a_fault_that_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault() -> list[cuda_checks.Check]:
        raise DeviceFault("The card stopped with a fault: illegal address.")

    good = cuda_checks.Check("norm", 1e-6, 1e-5, "norm")
    made = [
        cuda_checks.Trial("norm", "norm", lambda: [good]),
        cuda_checks.Trial("Q4_K", "packed", fault, Q4_K),
        cuda_checks.Trial("Q6_K", "packed", lambda: [good], Q6_K),
    ]
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(selftest, "CudaOps", Made)
    monkeypatch.setattr(devices, "gpus", lambda: ((SimpleNamespace(id="cuda:0"),), None))
    monkeypatch.setattr(
        selftest.cuda_probe, "ceilings", lambda card: Ceilings(9.4e11, 2.8e14, 1.4e14)
    )
    monkeypatch.setattr(cuda_checks, "trials", lambda make: made)
    report = selftest.run("cuda:0", lambda *progress: told.append(progress), tmp_path)
    assert not report.passed and len(report.checks) == 2
    assert report.distrust.unpacked == {Q4_K}
    assert distrust_of("RTX 9", 12040, tmp_path) == report.distrust
    text, facts = report.text(), report.facts()
    for word in ("RTX 9", "sm_89", "CUDA 12.4", "940 GB/s", "280 T/s", "BAD", "illegal address"):
        assert word in text
    assert "1 of 2 checks failed" in text and not facts["passed"]
    assert facts["checks"][1]["error"] is None and facts["read_gb_s"] == 940
    assert told[0] == ("preparing", 0, 0) and told[-1] == ("testing", 3, 3)
    made[1] = made[0]
    assert "All 3 checks passed" in selftest.run("cuda:0", cache=tmp_path).text()
    assert distrust_of("RTX 9", 12040, tmp_path) == Distrust()


def test_what_is_no_card_is_refused_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: ((), "The NVIDIA driver 470 is too old."))
    with pytest.raises(BadRequest, match="too old"):
        selftest.run("cuda:0")
    monkeypatch.setattr(devices, "gpus", lambda: ((SimpleNamespace(id="cuda:0"),), None))
    with pytest.raises(BadRequest, match="cuda:0"):
        selftest.run("cpu")
