"""The words and figures of a model, the same in the table, the pane, the drop card and first run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PySide6.QtCore import QCoreApplication

from app.i18n import told
from app.widgets import gigabytes
from engine.metrics import MemoryPart

if TYPE_CHECKING:
    from app.models.library import Item
    from engine.library import Entry
    from engine.placement import Estimate

Kind = Literal["good", "warn", "bad"]

NONE_YET = "–"
_VERDICTS = ("fits", "tight", "too large")
_VERDICT_STYLE: dict[str, tuple[str, Kind]] = {
    "fits": ("fits", "good"),
    "tight": ("warn", "warn"),
    "too large": ("error", "bad"),
}


translate = QCoreApplication.translate  # The name that the translators' tool looks for.


def rate_text(rate: float | None) -> str:
    """Tokens a second without the unit; three significant digits are all that a run repeats."""
    if rate is None:
        return NONE_YET
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def verdict_text(estimate: Estimate) -> str:
    """Whether it fits, in a word or two."""
    words = {"fits": translate("models", "Fits"), "tight": translate("models", "Tight")}
    return words.get(estimate.verdict, translate("models", "Too large"))


def verdict_style(estimate: Estimate) -> tuple[str, Kind]:
    """Icon name and kind of label that go with the verdict's word; colour `state.KIND`."""
    return _VERDICT_STYLE.get(estimate.verdict, _VERDICT_STYLE["too large"])


def memory_parts(parts: Iterable[MemoryPart], short: bool = False) -> list[MemoryPart]:
    """Owners of memory with titles in the user's language; `short` for keys in two columns."""
    titles = {
        "other": translate("models", "Other programs"),
        "model": translate("models", "Model weights"),
        "draft": translate("models", "Draft"),
        "kv": translate("models", "KV cache"),
        "work": translate("models", "Work space"),
        "free": translate("models", "Free"),
        "reserve": translate("models", "Reserve"),
    }
    if short:
        titles |= {
            "other": translate("models", "Other"),
            "model": translate("models", "Model"),
            "work": translate("models", "Work"),
        }
    shown = (p for p in parts if p.bytes or p.kind != "draft")  # Most models run without one.
    return [replace(p, title=titles.get(p.kind, p.title)) for p in shown]


def reason_text(path: Path, problem: str) -> str:
    """What is wrong with a file, for a place that names the file already; "" for nothing."""
    text = told(problem).removeprefix(f"{path.name}: ")
    return text[:1].upper() + text[1:]


def kind_text(entry: Entry) -> str:
    """What a file is, as a noun."""
    return {
        "chat": translate("models", "Chat model"),
        "draft": translate("models", "Draft"),
        "projector": translate("models", "Vision projector"),
        "broken": translate("models", "Damaged file"),
    }.get(entry.kind, translate("models", "Unknown file"))


def build_text(entry: Entry) -> str:
    """Architecture and how it is built: "llama, dense"."""
    if entry.kind == "projector":
        return translate("models", "vision projector")
    if entry.kind == "draft":
        return (
            translate("models", "draft, %n layer(s)", None, entry.n_layers)
            if entry.n_layers
            else translate("models", "draft")
        )
    if not entry.architecture:
        return ""
    how = (
        translate("models", "%n expert(s)", None, entry.n_experts)
        if entry.n_experts
        else translate("models", "dense")
    )
    return f"{entry.architecture}, {how}"


def summary(entry: Entry) -> str:
    """One line on a file: kind, architecture, layers, context."""
    parts = [kind_text(entry)]
    if entry.architecture and entry.kind != "broken":
        parts.append(entry.architecture)
        if entry.n_layers and entry.n_experts:
            layers = translate("models", "%n layer(s)", None, entry.n_layers)
            parts.append(
                translate("models", "{layers} with {n} experts").format(
                    layers=layers, n=entry.n_experts
                )
            )
        elif entry.n_layers:
            parts.append(translate("models", "%n layer(s)", None, entry.n_layers))
        if entry.context:
            parts.append(translate("models", "up to {n} tokens").format(n=f"{entry.context:,}"))
    return ", ".join(parts)


def column_text(item: Item, column: str) -> str:
    """One cell of the table."""
    entry = item.entry
    match column:
        case "NAME":
            return item.title
        case "QUANT":
            return entry.quant or ""
        case "SIZE":
            return gigabytes(entry.size)
        case "ARCHITECTURE":
            return reason_text(entry.path, entry.problem) or build_text(entry)
        case "CONTEXT":
            return f"{entry.context:,}" if entry.context and entry.kind == "chat" else ""
        case "FITS":
            return verdict_text(item.estimate) if item.estimate else ""
        case "SPEED":
            return rate_text(item.record.decode_rate) if entry.kind == "chat" else ""
    return source_text(entry.source)


def source_text(source: str) -> str:
    """The program whose folder a file is in; program names are not translated."""
    return translate("models", "Elsewhere") if source == "Elsewhere" else source


def sort_key(item: Item, column: str) -> Any:
    """What one column is ordered by; the type is the same for all rows of a column."""
    match column:
        case "SIZE":
            return item.entry.size
        case "CONTEXT":
            return item.entry.context or 0
        case "FITS":
            verdict = item.estimate.verdict if item.estimate else ""
            return _VERDICTS.index(verdict) if verdict in _VERDICTS else len(_VERDICTS)
        case "SPEED":
            return item.record.decode_rate or 0.0
    return column_text(item, column).casefold()
