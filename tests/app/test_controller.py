"""The controller over a fake engine, and over the real one on a tiny model."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QElapsedTimer, QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.report import ErrorReport
from engine.config import EngineConfig, SamplingParams
from engine.errors import EngineError, OutOfMemory
from engine.metrics import Metrics
from engine.types import (
    Event,
    Failed,
    Finished,
    FinishReason,
    LoadProgress,
    ModelInfo,
    Request,
    Started,
    TextDelta,
)
from tests.app.fake_engine import FakeEngine

HELLO = Request(messages=[{"role": "user", "content": "Hello"}])


def load(qtbot: QtBot, controller: EngineController, name: str = "a.gguf") -> None:
    with qtbot.waitSignal(controller.model_changed):
        controller.load(Path(name))


def test_it_loads_and_says_so(qtbot: QtBot, controller: EngineController) -> None:
    states: list[str] = []
    controller.state_changed.connect(states.append)
    load(qtbot, controller)
    assert states == ["loading", "ready"]
    assert isinstance(controller.model, ModelInfo) and controller.model.path == Path("a.gguf")


def test_progress_is_told(qtbot: QtBot, controller: EngineController, fake: FakeEngine) -> None:
    fake.load_s = 0.3
    told: list[LoadProgress] = []
    controller.load_progress.connect(told.append)
    load(qtbot, controller)
    done = [p.done for p in told]
    assert done == sorted(done) and done[-1] > 0


def test_events_come_in_order_and_batched(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.answer = "word " * 500
    load(qtbot, controller)
    batches: list[list[Event]] = []
    request_id = controller.submit(HELLO, batches.append)
    qtbot.waitUntil(lambda: controller.state == "ready")
    events = [event for batch in batches for event in batch]
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == fake.answer
    assert {e.request_id for e in events} == {request_id}
    assert len(batches) < 100, "events must come in batches, not one by one"


def test_listeners_are_called_on_the_gui_thread(qtbot: QtBot, controller: EngineController) -> None:
    load(qtbot, controller)
    threads: set[threading.Thread] = set()
    controller.submit(HELLO, lambda batch: threads.add(threading.current_thread()))
    qtbot.waitUntil(lambda: controller.state == "ready")
    assert threads == {threading.main_thread()}


def test_a_failing_listener_hurts_nobody(
    qtbot: QtBot, controller: EngineController, caplog: pytest.LogCaptureFixture
) -> None:
    load(qtbot, controller)

    def bad(batch: list[Event]) -> None:
        raise RuntimeError("listener")

    good: list[Event] = []
    controller.submit(HELLO, bad)
    controller.submit(HELLO, good.extend)
    qtbot.waitUntil(lambda: controller.state == "ready")
    assert isinstance(good[-1], Finished)
    assert "A listener failed" in caplog.text


def test_cancel_ends_a_request(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.answer, fake.token_s = "word " * 10_000, 0.005
    load(qtbot, controller)
    events: list[Event] = []
    request_id = controller.submit(HELLO, events.extend)
    assert controller.state == "generating"
    qtbot.waitUntil(lambda: any(isinstance(e, TextDelta) for e in events))
    controller.cancel(request_id)
    assert controller.state == "stopping"
    qtbot.waitUntil(lambda: controller.state == "ready")
    last = events[-1]
    assert isinstance(last, Finished) and last.reason is FinishReason.CANCELLED


def test_without_a_model_a_request_fails_with_an_event(
    qtbot: QtBot, controller: EngineController
) -> None:
    events: list[Event] = []
    controller.submit(HELLO, events.extend)
    qtbot.waitUntil(lambda: bool(events))
    assert isinstance(events[-1], Failed) and "No model" in str(events[-1].error)
    assert controller.state == "idle"


def test_a_request_that_fails_midway(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.fail_after = 2
    load(qtbot, controller)
    events: list[Event] = []
    controller.submit(HELLO, events.extend)
    qtbot.waitUntil(lambda: controller.state == "ready")
    assert isinstance(events[-1], Failed)


def test_a_failed_load_keeps_the_former_model(qtbot: QtBot, controller: EngineController) -> None:
    load(qtbot, controller)
    with qtbot.waitSignal(controller.load_failed) as failed:
        controller.load(Path("bad.gguf"))
    report = failed.args[0]
    assert isinstance(report, ErrorReport) and "bad.gguf" in report.title
    assert "found 10 bytes" in report.why
    assert controller.state == "ready"
    assert controller.model is not None and controller.model.path == Path("a.gguf")


def test_a_former_model_that_had_to_go_is_not_promised(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    load(qtbot, controller)
    fake.load_error = OutOfMemory("Too large, and the former one did not come back.")
    fake.load_error_drops_model = True
    with qtbot.waitSignal(controller.load_failed):
        controller.load(Path("large.gguf"))
    assert controller.model is None and controller.state == "failed"


def test_after_an_unload_nothing_is_written_any_more(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    load(qtbot, controller)
    fake.unload_s = 0.2
    controller.unload()
    events: list[Event] = []
    controller.submit(HELLO, events.extend)
    qtbot.waitUntil(lambda: bool(events))
    assert isinstance(events[-1], Failed) and not fake.requests


def test_a_load_after_an_unload_is_kept(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    load(qtbot, controller)
    fake.unload_s = 0.2
    controller.unload()
    load(qtbot, controller, "b.gguf")
    assert fake.status().model is not None and fake.status().model == controller.model


def test_a_failed_first_load_is_a_state(qtbot: QtBot, controller: EngineController) -> None:
    with qtbot.waitSignal(controller.load_failed):
        controller.load(Path("bad.gguf"))
    assert controller.state == "failed"
    load(qtbot, controller)
    assert controller.state == "ready"


def test_an_error_of_ours_is_named_with_its_stack(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.load_error = ZeroDivisionError("oh")
    with qtbot.waitSignal(controller.load_failed) as failed:
        controller.load(Path("a.gguf"))
    report = failed.args[0]
    assert "ZeroDivisionError" in report.why and "Traceback" in report.details


def test_a_load_can_be_stopped_and_the_gui_keeps_ticking(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    """H-GUI-04: the stop is quick, no error is shown, and another model loads afterwards."""
    fake.load_s = 60
    failures: list[object] = []
    controller.load_failed.connect(failures.append)
    clock, gaps = QElapsedTimer(), []
    ticker = QTimer(interval=50)
    ticker.timeout.connect(lambda: gaps.append(clock.restart()))
    clock.start()
    ticker.start()
    controller.load(Path("slow.gguf"))
    qtbot.waitUntil(lambda: len(gaps) > 5)
    controller.cancel_load()
    qtbot.waitUntil(lambda: controller.state == "idle")
    ticker.stop()
    assert not failures
    assert len(gaps) > 5
    fake.load_s = 0
    load(qtbot, controller, "other.gguf")


def test_a_second_load_takes_the_place_of_the_first(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.load_s = 60
    controller.load(Path("first.gguf"))
    qtbot.waitUntil(lambda: controller.progress is not None)  # it has read how long it takes
    fake.load_s = 0
    load(qtbot, controller, "second.gguf")
    assert controller.model is not None and controller.model.path == Path("second.gguf")


def test_unload(qtbot: QtBot, controller: EngineController) -> None:
    load(qtbot, controller)
    with qtbot.waitSignal(controller.model_changed) as changed:
        controller.unload()
    assert changed.args == [None]
    assert controller.state == "idle"


def test_metrics_are_polled_only_while_something_runs_and_is_looked_at(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.answer, fake.token_s = "word " * 10_000, 0.005
    viewer = QWidget()
    qtbot.addWidget(viewer)
    controller.watch_metrics(viewer)
    load(qtbot, controller)
    told: list[Metrics] = []
    controller.metrics_changed.connect(told.append)
    request_id = controller.submit(HELLO, lambda batch: None)
    assert not controller.polling, "nobody looks"
    viewer.show()
    qtbot.waitUntil(lambda: controller.polling and len(told) > 2)
    viewer.hide()
    qtbot.waitUntil(lambda: not controller.polling)
    controller.cancel(request_id)
    viewer.show()
    qtbot.waitUntil(lambda: controller.state == "ready")
    assert not controller.polling


def test_a_viewer_that_qt_has_deleted_is_no_viewer(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    viewer = QWidget()
    controller.watch_metrics(viewer)
    shiboken6.delete(viewer)
    load(qtbot, controller)
    events: list[Event] = []
    controller.submit(HELLO, events.extend)
    qtbot.waitUntil(lambda: bool(events) and isinstance(events[-1], Finished))
    assert not controller.polling


def test_shutdown_while_generating_delivers_the_last_event(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.answer, fake.token_s = "word " * 10_000, 0.005
    load(qtbot, controller)
    events: list[Event] = []
    controller.submit(HELLO, events.extend)
    qtbot.waitUntil(lambda: any(isinstance(e, TextDelta) for e in events))
    assert controller.shutdown(5000)
    assert isinstance(events[-1], Finished)
    assert controller.shutdown(5000), "a second time does nothing"


def test_shutdown_while_loading(
    qtbot: QtBot, controller: EngineController, fake: FakeEngine
) -> None:
    fake.load_s = 60
    controller.load(Path("slow.gguf"))
    assert controller.shutdown(5000)


def test_shutdown_without_ever_starting(controller: EngineController) -> None:
    assert controller.shutdown(5000)


def test_a_hung_engine_is_given_up(
    qtbot: QtBot,
    controller: EngineController,
    fake: FakeEngine,
    caplog: pytest.LogCaptureFixture,
) -> None:
    load(qtbot, controller)
    fake.deaf = True
    assert not controller.shutdown(300)
    assert "did not end" in caplog.text and "serve" in caplog.text, "the log says where it stands"
    fake.deaf = False
    fake.close()
    assert controller.wait(5000)


def test_an_engine_that_cannot_be_made(qtbot: QtBot) -> None:
    def broken() -> FakeEngine:
        raise EngineError("No engine here.")

    controller = EngineController(broken)
    with qtbot.waitSignal(controller.load_failed) as failed:
        controller.load(Path("a.gguf"))
    assert "No engine here." in failed.args[0].why
    assert controller.shutdown()


@pytest.mark.timeout(300)
def test_the_real_engine_on_a_tiny_model(qtbot: QtBot, fixtures: Path) -> None:
    """Load, write, stop in the middle by closing: the real parts together."""
    controller = EngineController()
    with qtbot.waitSignal(controller.model_changed, timeout=240_000):
        controller.load(fixtures / "llama.gguf", EngineConfig(threads=1))
    assert controller.model is not None and controller.model.architecture == "llama"
    events: list[Event] = []
    few = SamplingParams(temperature=0, max_tokens=4, ignore_eos=True)
    controller.submit(Request(ids=[1, 2, 3], sampling=few), events.extend)
    qtbot.waitUntil(lambda: controller.state == "ready")
    last = events[-1]
    assert isinstance(last, Finished) and last.usage.completion_tokens == 4
    events.clear()
    many = SamplingParams(temperature=0, max_tokens=100_000, ignore_eos=True)
    controller.submit(Request(ids=[1, 2, 3], sampling=many), events.extend)
    qtbot.waitUntil(lambda: any(isinstance(e, TextDelta) for e in events))
    assert controller.shutdown(5000)
    assert isinstance(events[-1], Finished)
