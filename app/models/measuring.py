"""Keeps what real loads and runs on this PC came to; nothing here is estimated."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.controller import EngineController
from engine.metrics import Metrics
from engine.placement import Taken
from engine.types import ModelInfo

if TYPE_CHECKING:
    from app.models.library import Library

# Shorter runs say more about start-up than about speed.
_LEAST_DECODE = 8
_LEAST_PREFILL = 64


class Measuring(QObject):
    """Listens to the controller and notes speed, load time and memory of each model."""

    def __init__(self, controller: EngineController, library: Library) -> None:
        super().__init__(library)
        self._controller = controller
        self._library = library
        self._loading: Path | None = None
        self._load_began = 0.0
        self._fresh = False
        self._start: Metrics | None = None
        self._decode: list[float] = []
        self._prefill: list[float] = []
        controller.state_changed.connect(self._on_state)
        controller.load_progress.connect(self._on_progress)
        controller.model_changed.connect(self._on_model)
        controller.metrics_changed.connect(self._on_metrics)
        self._watch_load()

    @Slot(str)
    def _on_state(self, state: str) -> None:
        if state == "loading":
            self._watch_load()
        if state in ("generating", "stopping"):
            if self._start is None:
                self._start = self._controller.metrics
                self._decode, self._prefill = [], []
        elif self._start is not None:
            self._keep_run(self._start, self._controller.metrics)
            self._start = None

    @Slot(object)
    def _on_progress(self, _progress: object) -> None:
        self._watch_load()

    @Slot(object)
    def _on_model(self, model: ModelInfo | None) -> None:
        self._start = None
        if model is not None and self._loading == model.path:
            seconds = time.monotonic() - self._load_began
            self._library.measured(model.path, model.file_bytes, load_s=seconds)
        self._loading = None
        self._fresh = True

    @Slot(object)
    def _on_metrics(self, metrics: Metrics) -> None:
        if self._fresh:
            self._fresh = False
            self._keep_memory(metrics)
        if self._start is None:
            return
        if metrics.decode_rate > 0:
            self._decode.append(metrics.decode_rate)
        if metrics.prefill_rate > 0:
            self._prefill.append(metrics.prefill_rate)

    def _keep_memory(self, metrics: Metrics) -> None:
        """Note what a model that was just loaded holds; what there is room for is another matter now."""
        model = self._controller.model
        if model is not None:
            config = replace(
                self._controller.config,
                device=model.device,
                prefill_chunk=model.prefill_chunk or None,
            )
            taken = Taken.of(config, metrics.pages_total, metrics.memory)
            if taken is not None:
                self._library.measured(model.path, model.file_bytes, memory=taken)
        self._library.estimate_anew()

    def _watch_load(self) -> None:
        if self._controller.loading != self._loading:
            self._loading = self._controller.loading
            self._load_began = time.monotonic()

    def _keep_run(self, start: Metrics, end: Metrics) -> None:
        model = self._controller.model
        if model is None:
            return
        figures = {}
        written = end.completion_tokens_total - start.completion_tokens_total
        if self._decode and written >= _LEAST_DECODE:
            figures["decode_rate"] = median(self._decode)
        read = end.prompt_tokens_total - start.prompt_tokens_total
        if self._prefill and read >= _LEAST_PREFILL:
            figures["prefill_rate"] = median(self._prefill)
        if figures:
            self._library.measured(model.path, model.file_bytes, **figures)
