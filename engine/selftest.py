"""Every kernel of a graphics card beside NumPy on the user's own card, and the card's measured ceilings.

What was found wrong is kept for the card, its driver and these kernels; each load goes another way
there.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import devices, paths
from engine.config import Precision
from engine.errors import BadRequest, DeviceFault
from engine.ops import cuda_checks, cuda_probe
from engine.ops.cuda import CudaOps
from engine.ops.cuda_checks import Check
from engine.ops.cuda_probe import Ceilings
from engine.ops.cuda_trust import Distrust, fingerprint, remember, version
from kernels import variants

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """Of one card: what was checked, what is not used any more, and the ceilings that were measured."""

    device: str
    name: str
    architecture: str
    driver: int
    checks: tuple[Check, ...]
    distrust: Distrust
    seconds: float
    limits: Ceilings

    @property
    def passed(self) -> bool:
        """Whether every kernel agreed."""
        return all(c.passed for c in self.checks)

    def facts(self) -> dict[str, Any]:
        """For JSON; an error that is no number is None."""
        checks = [
            {
                "name": c.name,
                "error": c.error if math.isfinite(c.error) else None,
                "tolerance": c.tolerance,
                "passed": c.passed,
                "problem": c.problem,
            }
            for c in self.checks
        ]
        return {
            "device": self.device,
            "name": self.name,
            "architecture": self.architecture,
            "driver": version(self.driver),
            "kernels": fingerprint(),
            "passed": self.passed,
            "checks": checks,
            "not_used": list(self.distrust.notes()),
            "read_gb_s": self.limits.read / 1e9,
            "int8_tera_s": self.limits.int8 / 1e12,
            "f16_tera_s": self.limits.f16 / 1e12,
            "seconds": self.seconds,
        }

    def text(self) -> str:
        """To read, and to be put into a bug report."""
        lines = [
            f"{self.device}  {self.name}, {self.architecture}, driver for {version(self.driver)},"
            f" kernels {fingerprint()}",
            f"reads {self.limits.read / 1e9:,.0f} GB/s; products: {self.limits.int8 / 1e12:,.0f} T/s int8,"
            f" {self.limits.f16 / 1e12:,.0f} T/s f16",
        ]
        for check in self.checks:
            mark = "ok " if check.passed else "BAD"
            said = check.problem or f"{check.error:.1e}, allowed {check.tolerance:.0e}"
            lines.append(f"{mark}  {check.name:<28}{said}")
        bad = sum(not c.passed for c in self.checks)
        lines.append(
            f"{bad} of {len(self.checks)} checks failed in {self.seconds:.0f} s."
            if bad
            else f"All {len(self.checks)} checks passed in {self.seconds:.0f} s."
        )
        return "\n".join([*lines, *self.distrust.notes()])


def run(
    device: str,
    on_progress: Callable[[str, int, int], None] | None = None,
    cache: Path | None = None,
) -> Report:
    """Test a card and remember the outcome; `on_progress(stage, done, total)`, "preparing" or "testing".

    Raises `BadRequest` for a device that is no card here, `KernelError` where a card cannot be used.
    """
    refuse_unless_card(device)
    told = on_progress or (lambda stage, done, total: None)
    began, cache = time.perf_counter(), cache or paths.cache_dir() / "kernels"

    def make(precision: Precision) -> CudaOps:
        return CudaOps(device, precision, cache, lambda n, of: told("preparing", n, of), Distrust())

    told("preparing", 0, 0)
    ops = make(Precision.FAST)
    try:
        card = ops.card
        card.build(variants.all_variants(card.arch))
        limits = cuda_probe.ceilings(card)
    finally:
        ops.close()
    checks: list[Check] = []
    trials = cuda_checks.trials(make)
    for number, trial in enumerate(trials):
        told("testing", number, len(trials))
        try:
            checks += trial.run()
        except DeviceFault as fault:
            checks.append(
                Check(trial.title, math.inf, 0.0, trial.kernel, trial.type_id, str(fault))
            )
            break
    told("testing", len(trials), len(trials))
    distrust = Distrust.after(checks)
    remember(distrust, card.name, card.driver, cache)
    for note in distrust.notes():
        log.warning("Self-test of %s: %s", card.name, note)
    return Report(
        device, card.name, f"sm_{card.arch}", card.driver, tuple(checks), distrust,
        time.perf_counter() - began, limits,
    )  # fmt: skip


def refuse_unless_card(device: str) -> None:
    """`BadRequest` that says why a device is not a usable card."""
    cards, problem = devices.gpus()
    if problem is not None:
        raise BadRequest(problem)
    if device not in [d.id for d in cards]:
        known = ", ".join(d.id for d in cards) or "no graphics card is there"
        raise BadRequest(f"Device: found {device!r}, expected a graphics card: {known}.")
