"""Which drafter a loaded model gets, and what passes cost where it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from engine.config import FILELESS_DRAFTERS, Plan, Precision, Spec
from engine.devices import devices
from engine.draft.base import Drafter, Target, open_drafter
from engine.draft.costs import PassCosts, pass_costs
from engine.draft.parking import ParkedDrafter
from engine.draft.safetensors_file import is_safetensors
from engine.draft.shipped import shipped_draft
from engine.draft.speculation import Speculation
from engine.errors import EngineError
from engine.gguf import read_header
from engine.ops.base import Ops, StepInput
from engine.paths import cache_dir


@dataclass(frozen=True, slots=True)
class Chosen:
    """A drafter or none, the file that it is read from if there is one, and what is to be told."""

    drafter: Drafter | None = None
    file: Path | None = None
    note: str = ""


def choose(target: Target) -> Chosen:
    """The drafter that the plan asks for, else the best that is at hand.

    To be asked for before the target is recorded. A draft that was asked for and does not fit raises.
    """
    plan = target.plan
    if plan.spec is Spec.OFF:
        return Chosen()
    if not hasattr(target.ops, "accept"):
        if plan.draft is not None or plan.spec is not Spec.AUTO:
            note = f"Speculation is left out: {plan.device} cannot verify drafts yet."
            return Chosen(note=note)
        return Chosen()
    if str(plan.draft) in FILELESS_DRAFTERS:
        return Chosen(open_drafter(str(plan.draft), target, None))
    if plan.draft is not None:
        drafter = _open_file(_kind_of(plan.draft), target, plan.draft)
        return Chosen(drafter, plan.draft, " ".join(getattr(drafter, "warnings", ())))
    return _at_hand(target)


def _at_hand(target: Target) -> Chosen:
    """What comes with Lucebox for the target, else its own draft layer, else prompt lookup."""
    notes = []
    if (path := shipped_draft(target.file)) is not None:
        try:
            drafter = _open_file("dflash", target, path)
            note = f"The draft {path.stem}, which comes with Lucebox, guesses."
            return Chosen(drafter, path, note)
        except EngineError as error:
            notes.append(f"The draft {path.stem}, which comes with Lucebox, is left out: {error}")
    if getattr(target.cfg, "n_nextn", 0):
        try:
            return Chosen(open_drafter("mtp", target, None), note=" ".join(notes))
        except EngineError as error:
            notes.append(f"The model's own draft layer is left out: {error}")
    return Chosen(open_drafter("ngram", target, None), note=" ".join(notes))


def _open_file(kind: str, target: Target, path: Path) -> Drafter:
    """The drafter of a file, which is read again for each request where memory is short."""
    opened = partial(open_drafter, kind, target, path)
    return ParkedDrafter(opened) if target.plan.draft_parked else opened()


def _kind_of(path: Path) -> str:
    """The module for a draft's file: any model may draft, and DFlash drafts are no models of their own."""
    is_dflash = is_safetensors(path) or "dflash" in read_header(path).architecture
    return "dflash" if is_dflash else "model"


def begin(drafter: Drafter, target: Target, vocab_size: int) -> Speculation:
    """Speculation with a chosen drafter, once the target is recorded and has run its first token."""
    costs = measure_passes(target.ops, target.plan, target.file.file_bytes)
    return Speculation(drafter, target.plan.spec, target.plan.budget, costs, vocab_size)


def measure_passes(ops: Ops, plan: Plan, file_bytes: int) -> PassCosts:
    """What a pass of some tried rows takes, after the token at position 0 of page 0 and slot 0."""

    def run(rows: int) -> None:
        number, zeros = np.arange(rows, dtype=np.int32), np.zeros(rows, np.int32)
        one = np.zeros(1, np.int32)
        tried = one + 1 if rows > 1 else one[:0]
        ops.run(StepInput(zeros, number + 1, zeros, one[None, :], number, one, tried=tried))

    device = next((d for d in devices() if d.id == plan.device), None)
    parts = (
        device.name if device else plan.device, _driver(plan.device), plan.threads,
        Precision(plan.precision).value, plan.path.name, file_bytes,
    )  # fmt: skip
    return pass_costs(cache_dir(), " | ".join(map(str, parts)), run)


def _driver(device: str) -> str:
    """The graphics driver: another one may be faster or slower."""
    if device == "cpu":
        return ""
    import pynvml

    try:
        return str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return ""
