"""The GUI's one way to the engine: commands in, batched events and states out."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.report import ErrorReport, report_of
from app.worker import EngineWorker, make_engine
from engine.config import EngineConfig
from engine.errors import EngineError, LoadCancelled

if TYPE_CHECKING:
    # The window is on the screen before these are imported.
    from engine.metrics import Metrics
    from engine.types import Event, LoadProgress, ModelInfo, Request

__all__ = ["EngineController", "ErrorReport", "Listener"]

log = logging.getLogger(__name__)

Listener = Callable[[list["Event"]], None]

DRAIN_MS = 33
METRICS_MS = 100


@dataclass(eq=False)
class _Stream:
    """One running request: the serving thread appends, the GUI timer takes."""

    listener: Listener
    events: deque[Event] = field(default_factory=deque)
    stopping: bool = False


@dataclass(eq=False)
class _Load:
    """One running load: `progress` and `result` are written by its thread, read by the timer."""

    path: Path
    config: EngineConfig
    cancel: threading.Event = field(default_factory=threading.Event)
    progress: LoadProgress | None = None
    told: LoadProgress | None = None
    result: ModelInfo | None = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)


class EngineController(QObject):
    """Loads, generates and reports; lives in the GUI thread, where every signal and listener is called.

    Signals:
        state_changed: "idle", "loading", "ready", "generating", "stopping" or "failed".
        model_changed: the `ModelInfo` of the loaded model, or None.
        load_progress, load_failed, metrics_changed: see their types.
        card_failed: a card stopped with an error that lasts until the program ends.
        closing: the engine is about to end; what hangs on it ends first.
    """

    state_changed = Signal(str)
    model_changed = Signal(object)
    load_progress = Signal(object)
    load_failed = Signal(object)
    metrics_changed = Signal(object)
    card_failed = Signal()
    closing = Signal()

    def __init__(
        self, factory: Callable[[], Any] = make_engine, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._state = "idle"
        self._model: ModelInfo | None = None
        self._config = EngineConfig()
        self._metrics: Metrics | None = None
        self._streams: dict[int, _Stream] = {}
        self._load: _Load | None = None
        self._next_load: _Load | None = None
        self._unloading: threading.Thread | None = None
        self._next_failed_id = -1
        self._viewers: weakref.WeakSet[QWidget] = weakref.WeakSet()
        self._closing = False
        self.usual_config: Callable[[], EngineConfig] = EngineConfig
        self.config_of: Callable[[Path], EngineConfig] = lambda path: self.usual_config()

        self._worker = EngineWorker(factory)
        self._thread = QThread()
        self._worker.moveToThread(self._thread)
        self._thread.started.connect(self._worker.run)
        # Direct: at shutdown the GUI thread waits and takes no queued calls.
        self._worker.finished.connect(self._thread.quit, Qt.ConnectionType.DirectConnection)

        self._drain_timer = QTimer(self, interval=DRAIN_MS)
        self._drain_timer.timeout.connect(self._drain)
        self._metrics_timer = QTimer(self, interval=METRICS_MS)
        self._metrics_timer.timeout.connect(self._poll_metrics)

    # What is there

    @property
    def state(self) -> str:
        """One of the states that `state_changed` names."""
        return self._state

    @property
    def model(self) -> ModelInfo | None:
        """The loaded model."""
        return self._model

    @property
    def config(self) -> EngineConfig:
        """How the loaded model was loaded."""
        return self._config

    @property
    def metrics(self) -> Metrics:
        """The numbers read last."""
        from engine.metrics import Metrics

        return self._metrics or Metrics()

    @property
    def engine(self) -> Any:
        """The engine (for its tokenizer and template), or None before it is there."""
        return self._worker.engine

    @property
    def loading(self) -> Path | None:
        """The file that is being loaded."""
        return self._load.path if self._load else None

    @property
    def progress(self) -> LoadProgress | None:
        """How far the load is, as it was told last; None before the first word."""
        return self._load.told if self._load else None

    @property
    def polling(self) -> bool:
        """Whether metrics are read again and again."""
        return self._metrics_timer.isActive()

    # Commands

    def start(self) -> None:
        """Start the engine's thread; loads and requests start it too, so calling this is optional."""
        if not self._thread.isRunning() and not self._closing:
            self._thread.start()

    def load(self, path: Path | str, config: EngineConfig | None = None) -> None:
        """Load a model file in the background; a load that is under way is cancelled first."""
        if self._closing:
            return
        self.start()
        load = _Load(Path(path), config or self.config_of(Path(path)))
        if self._load is not None:
            self._load.cancel.set()
            self._next_load = load
            return
        self._load = load
        threading.Thread(target=self._run_load, args=(load,), name="load", daemon=True).start()
        self._drain_timer.start()
        self._update_state()

    def cancel_load(self) -> None:
        """Stop the load that is under way; the former model stays."""
        self._next_load = None
        if self._load is not None:
            self._load.cancel.set()

    def unload(self) -> None:
        """Free the model's memory; running requests end first."""
        if self.engine is None or self._closing:
            return
        for request_id in list(self._streams):
            self.cancel(request_id)
        self._unloading = threading.Thread(target=self._run_unload, name="unload", daemon=True)
        self._unloading.start()
        self._set_model(None)

    def submit(self, request: Request, listener: Listener) -> int:
        """Generate; `listener` gets batches of events in order, the last one Finished or Failed.

        A request that the engine refuses ends with a Failed event too, so callers have one path.
        """
        from engine.types import Failed, Usage

        stream = _Stream(listener)
        try:
            if self._model is None or self._closing:
                raise EngineError("No model is loaded. Load one first.")
            request_id = int(self.engine.submit(request, stream.events.append))
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("The engine refused a request.")
            request_id, self._next_failed_id = self._next_failed_id, self._next_failed_id - 1
            stream.events.append(Failed(request_id, error, Usage()))
        self._streams[request_id] = stream
        self._drain_timer.start()
        self._update_state()
        return request_id

    def cancel(self, request_id: int) -> None:
        """End a request at its next step; its last event still comes."""
        stream = self._streams.get(request_id)
        if stream is None:
            return
        stream.stopping = True
        if request_id > 0:
            self._guarded(self.engine.cancel, request_id)
        self._update_state()

    @Slot()
    def look_again(self) -> None:
        """Take the model that the engine has now: clients of its API load and unload too."""
        if self._load is None:
            self._take_what_is_left()

    def watch_metrics(self, widget: QWidget) -> None:
        """Poll metrics while something runs and this (or another watching) widget is visible."""
        self._viewers.add(widget)

    def shutdown(self, timeout_ms: int = 5000) -> bool:
        """End everything, deliver the last events, stop the thread; false when it would not end in time."""
        if self._closing:
            return not self._thread.isRunning()
        deadline = time.monotonic() + timeout_ms / 1000
        self.closing.emit()
        self.cancel_load()
        for request_id in list(self._streams):
            self.cancel(request_id)
        self._closing = True
        closer: threading.Thread | None = None
        while time.monotonic() < deadline:
            self._drain()
            idle = not self._streams and self._load is None
            # The last events of cancelled requests come before the loop is told to end.
            late = deadline - time.monotonic() < timeout_ms / 2000
            if closer is None and (idle or late) and self._worker.ready.is_set():
                closer = threading.Thread(target=self._run_close, name="close", daemon=True)
                closer.start()
            if not self._thread.isRunning() or self._thread.wait(20):
                break
        self._drain_timer.stop()
        self._metrics_timer.stop()
        self._drain()
        if self._thread.isRunning():
            log.error("The engine did not end within %d ms.", timeout_ms)
            log.error("%s", _stacks())
            return False
        return True

    def wait(self, timeout_ms: int) -> bool:
        """Wait for the engine's thread after a shutdown that was given up."""
        return self._thread.wait(timeout_ms)

    # Other threads

    def _run_load(self, load: _Load) -> None:
        def on_progress(progress: LoadProgress) -> None:
            load.progress = progress

        try:
            self._worker.ready.wait()
            if (unloading := self._unloading) is not None:
                # Else it could throw out what this load brings.
                unloading.join()
            if self._worker.engine is None:
                raise self._worker.error or EngineError("The engine is closed.")
            load.result = self._worker.engine.load(
                load.path, load.config, on_progress=on_progress, cancel=load.cancel
            )
        except BaseException as error:
            load.error = error
        finally:
            load.done.set()

    def _run_unload(self) -> None:
        self._guarded(self.engine.unload)

    def _run_close(self) -> None:
        if self.engine is not None:
            self._guarded(self.engine.close)

    def _guarded(self, call: Callable[..., Any], *args: Any) -> None:
        try:
            call(*args)
        except Exception:
            log.exception("The engine failed at %s.", getattr(call, "__name__", call))

    # The timers

    @Slot()
    def _drain(self) -> None:
        try:
            self._drain_load()
            for request_id, stream in list(self._streams.items()):
                self._drain_stream(request_id, stream)
            if not self._streams and self._load is None:
                self._drain_timer.stop()
            self._update_state()
        except Exception:
            log.exception("Delivering events failed.")

    def _drain_stream(self, request_id: int, stream: _Stream) -> None:
        from engine.types import Failed, Finished

        batch: list[Event] = []
        while stream.events:
            batch.append(stream.events.popleft())
        if not batch:
            return
        if isinstance(batch[-1], (Finished, Failed)):
            del self._streams[request_id]
            self._poll_metrics()
            if isinstance(batch[-1], Failed) and self._load is None:
                self._take_what_is_left()  # a fault of the card takes the model with it
            if isinstance(batch[-1], Failed):
                self._tell_fault(batch[-1].error)
        try:
            stream.listener(batch)
        except Exception:
            log.exception("A listener failed.")

    def _drain_load(self) -> None:
        load = self._load
        if load is None:
            return
        if load.progress is not None and not load.cancel.is_set():
            load.told, load.progress = load.progress, None
            self.load_progress.emit(load.told)
        if not load.done.is_set():
            return
        self._load = None
        if load.result is not None:
            self._config = load.config
            self._set_model(load.result)
        else:
            self._take_what_is_left()
            if not isinstance(load.error, LoadCancelled) and not self._closing:
                self._fail(load)
        following, self._next_load = self._next_load, None
        if following is not None:
            self.load(following.path, following.config)

    def _take_what_is_left(self) -> None:
        """What the engine has, where that was not decided here: after a load that brought nothing, too."""
        if self.engine is None or self._closing:
            return
        model = self.engine.status().model
        if model != self._model:
            self._config = self.engine.config
            self._set_model(model)

    def _tell_fault(self, error: BaseException) -> None:
        from engine.errors import DeviceFault

        if isinstance(error, DeviceFault):
            self.card_failed.emit()

    def _fail(self, load: _Load) -> None:
        assert load.error is not None
        self._tell_fault(load.error)
        log.error("Loading %s failed.", load.path, exc_info=load.error)
        title = self.tr("{name} was not loaded").format(name=load.path.name)
        self._update_state(failed=self._model is None)
        self.load_failed.emit(report_of(load.error, title))

    @Slot()
    def _poll_metrics(self) -> None:
        if self.engine is None or self._closing:
            return
        try:
            self._metrics = self.engine.metrics()
        except Exception:
            log.exception("Reading metrics failed.")
            return
        self.metrics_changed.emit(self._metrics)

    # States

    def _set_model(self, model: ModelInfo | None) -> None:
        self._model = model
        self._update_state()
        self.model_changed.emit(model)
        self._poll_metrics()

    def _update_state(self, failed: bool = False) -> None:
        if self._load is not None:
            state = "loading"
        elif self._streams:
            stopping = all(s.stopping for s in self._streams.values())
            state = "stopping" if stopping else "generating"
        elif failed or (self._state == "failed" and self._model is None):
            state = "failed"
        else:
            state = "ready" if self._model is not None else "idle"
        # A page that was built anew for another language leaves a viewer behind that Qt has deleted.
        busy = bool(self._streams) and any(isValid(w) and w.isVisible() for w in self._viewers)
        if busy and not self._metrics_timer.isActive():
            self._metrics_timer.start()
        elif not busy and self._metrics_timer.isActive():
            self._metrics_timer.stop()
        if state != self._state:
            self._state = state
            self.state_changed.emit(state)


def _stacks() -> str:
    """Where every thread stands."""
    names = {t.ident: t.name for t in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"Thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)
