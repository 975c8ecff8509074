"""The start: what is loaded first, what is told, and how it ends."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from PySide6.QtWidgets import QApplication, QLabel, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

import app.main as main_module
import app.window as window_module
from app.crash import Watch, fault_file, log_file
from app.instance import Instance
from app.main import Application, Wanted, parse
from app.server.run import LocalServer
from app.widgets import Banner
from engine import demo, paths, settings_store
from engine.config import AppSettings
from engine.errors import DeviceFault
from engine.types import Request
from tests.app.conftest import STUBS
from tests.app.fake_engine import FakeEngine

ROOT = Path(__file__).parents[2]


class Started:
    """An application whose event loop is the test's."""

    def __init__(self, qtbot: QtBot, qapp: QApplication, fake: FakeEngine) -> None:
        self.qtbot, self.qapp, self.fake = qtbot, qapp, fake
        self.made: list[tuple[Application, Watch, Instance]] = []

    def __call__(self, wanted: Wanted | None = None) -> Application:
        watch, instance = Watch(), Instance()
        assert instance.claim({"files": [], "demo": False})
        watch.arm()
        made = Application(self.qapp, watch, instance, wanted or Wanted(), lambda: self.fake)
        self.made.append((made, watch, instance))
        made.open()
        self.qtbot.waitUntil(lambda: made.begun)
        return made

    def end(self) -> None:
        for made, watch, instance in self.made:
            made.window.close()
            made.window.deleteLater()
            made.deleteLater()
            instance.release()
            watch.disarm()


@pytest.fixture
def start(
    qtbot: QtBot, qapp: QApplication, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Started]:
    """Starts an application with stub pages, over the fake engine."""
    monkeypatch.setattr(window_module, "PAGES", STUBS)
    monkeypatch.setattr(main_module, "HEAVY", ())
    monkeypatch.setattr(qapp, "quit", lambda: None)
    started = Started(qtbot, qapp, fake)
    yield started
    started.end()


def put_demo(folder: Path) -> Path:
    """A file that passes for the demo model."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / demo.NAME
    with file.open("wb") as stream:
        stream.truncate(demo.BYTES)
    return file


def notes(made: Application) -> list[str]:
    return [b.text for b in made.window.findChildren(Banner)]


def test_arguments() -> None:
    assert parse([]) == Wanted()
    assert parse(["--demo"]) == Wanted((), True)
    assert parse(["a.gguf"]).files == (str(Path("a.gguf").absolute()),)


def test_without_any_model_the_first_run_is_shown(start: Started) -> None:
    made = start()
    assert made.window.shown == "first_run"
    assert made.controller.state == "idle"


def test_an_installed_demo_model_is_loaded(start: Started) -> None:
    file = put_demo(paths.models_dir())
    made = start()
    start.qtbot.waitUntil(lambda: made.controller.state == "ready")
    assert made.controller.model is not None and made.controller.model.path == file
    assert made.window.shown == "chat" and made.window.page.field.hasFocus()


def test_a_server_is_told_on_every_page_while_it_is_on(start: Started, qtbot: QtBot) -> None:
    made = start()
    made.settings.update(server={"port": 0})
    made.window.resize(1400, 700)
    server = LocalServer.of(made.services)

    def told() -> bool:
        place = urlsplit(server.url).netloc
        return any(w.text() == place for w in made.window.status.findChildren(QLabel))

    server.set_on(True)
    qtbot.waitUntil(lambda: server.state == "on", timeout=20_000)
    assert told()
    server.set_on(False)
    qtbot.waitUntil(lambda: server.state == "off", timeout=20_000)
    assert not told()


def test_the_last_model_comes_before_the_demo(start: Started, tmp_path: Path) -> None:
    put_demo(paths.models_dir())
    last = tmp_path / "last.gguf"
    last.write_bytes(b"")
    settings_store.save(AppSettings(last_model=str(last)))
    made = start()
    start.qtbot.waitUntil(lambda: made.controller.state == "ready")
    assert made.controller.model is not None and made.controller.model.path == last


@pytest.mark.parametrize("reason", ["gone", "unwanted", "demo asked for"])
def test_the_demo_comes_where_the_last_model_does_not(
    start: Started, tmp_path: Path, reason: str
) -> None:
    file = put_demo(paths.models_dir())
    last = tmp_path / "last.gguf"
    if reason != "gone":
        last.write_bytes(b"")
    settings_store.save(AppSettings(last_model=str(last), load_last_model=reason != "unwanted"))
    made = start(Wanted(demo=reason == "demo asked for"))
    start.qtbot.waitUntil(lambda: made.controller.state == "ready")
    assert made.controller.model is not None and made.controller.model.path == file


def test_a_file_of_the_command_line_is_loaded_and_remembered(
    start: Started, tmp_path: Path
) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"")
    made = start(Wanted((str(file),)))
    start.qtbot.waitUntil(lambda: made.controller.state == "ready")
    assert made.settings.value.last_model == str(file)


def test_what_may_spoil_a_models_answers_is_said(
    start: Started, fake: FakeEngine, tmp_path: Path
) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"")
    fake.load_warnings = ("The pre-tokenizer 'odd' is not known.",)
    made = start(Wanted((str(file),)))
    start.qtbot.waitUntil(lambda: notes(made) != [])
    assert notes(made) == ["mine: The pre-tokenizer 'odd' is not known."]
    made.window.say("warn", lambda: "Something else.")
    made.controller.unload()
    start.qtbot.waitUntil(lambda: notes(made) == ["Something else."])


def test_another_launch_brings_its_files(start: Started, tmp_path: Path) -> None:
    made = start()
    opened: list[list[Path]] = []
    made.services.open_paths = opened.append
    made.instance.called.emit({"files": ["/x/a.gguf", "/x/b"], "demo": False})
    assert opened == [[Path("/x/a.gguf"), Path("/x/b")]]


def test_another_launch_brings_a_text(start: Started, tmp_path: Path) -> None:
    made = start()
    opened: list[list[Path]] = []
    made.services.open_paths = opened.append
    text = tmp_path / "notes.txt"
    text.write_text("words")
    made.instance.called.emit({"files": [str(text)], "demo": False})
    assert opened == [[text]], "it is no model to load"


def test_another_launch_without_files_only_shows_the_window(start: Started) -> None:
    made = start()
    made.window.showMinimized()
    made.instance.called.emit({"files": [], "demo": False})
    assert not made.window.isMinimized()
    assert made.controller.state == "idle"


def test_a_crash_of_the_last_run_is_offered(start: Started) -> None:
    fault_file().parent.mkdir(parents=True)
    fault_file().write_text("Fatal Python error: Segmentation fault", encoding="utf-8")
    made = start()
    assert any("ended unexpectedly" in text for text in notes(made))


def test_damaged_settings_are_told(start: Started) -> None:
    paths.settings_file().parent.mkdir(parents=True, exist_ok=True)
    paths.settings_file().write_text("{broken", encoding="utf-8")
    made = start()
    assert len(notes(made)) == 1


def test_folders_that_cannot_be_written_are_told_once(
    start: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H-GUI-02, first step: it starts, and says once that settings cannot be saved."""

    def fail(*args: Any, **kw: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    monkeypatch.setattr(settings_store, "save", fail)
    made = start()
    made.settings.update(theme="dark")
    made.settings.flush()
    made.settings.update(theme="light")
    made.settings.flush()
    assert len([text for text in notes(made) if "cannot be saved" in text]) == 1


def test_an_error_that_nobody_caught_is_shown(qtbot: QtBot, start: Started) -> None:
    made = start()
    error = RuntimeError("loose end")
    sys.excepthook(RuntimeError, error, None)
    qtbot.waitUntil(lambda: any("loose end" in text for text in notes(made)))


def test_closing_while_an_answer_is_written_loses_nothing(qtbot: QtBot, start: Started) -> None:
    from engine.types import Event, Finished, Request, TextDelta

    put_demo(paths.models_dir())
    start.fake.answer, start.fake.token_s = "word " * 10_000, 0.005
    made = start()
    qtbot.waitUntil(lambda: made.controller.state == "ready")
    events: list[Event] = []
    made.controller.submit(Request(messages=[]), events.extend)
    qtbot.waitUntil(lambda: any(isinstance(e, TextDelta) for e in events))
    page = made.window.page
    made.settings.update(theme="dark")
    made.window.close()
    assert isinstance(events[-1], Finished)
    assert page.closed == 1, "pages save after the last event"
    assert settings_store.load()[0].theme == "dark"


def test_a_launch_during_the_closing_is_the_first(start: Started) -> None:
    made = start()
    seen: list[bool] = []
    shutdown = made.controller.shutdown

    def launch_meanwhile(timeout_ms: int) -> bool:
        seen.append(Instance().claim({}))
        return shutdown(timeout_ms)

    made.controller.shutdown = launch_meanwhile
    made.window.close()
    assert seen == [True]


def test_a_hung_first_is_told(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(QMessageBox, "warning", lambda *args: told.append(args[-1]))
    monkeypatch.setattr(main_module, "make_application", lambda argv: qapp)
    monkeypatch.setattr(Instance, "claim", lambda self, message: False)
    assert main_module.main([]) == 0 and not told
    gc.disable()

    def no_answer(self: Instance, message: object) -> bool:
        self.answered = False
        return False

    monkeypatch.setattr(Instance, "claim", no_answer)
    assert main_module.main([]) == 1 and "does not answer" in told[0]
    gc.disable()


def test_settings_reach_the_window_at_once(start: Started) -> None:
    from app.theme import theme

    made = start()
    made.settings.update(theme="dark", text_size=120)
    assert theme().dark and theme().font("ui").pixelSize() == round(13 * 1.2)
    made.settings.update(theme="light", text_size=100)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.timeout(120)
def test_the_real_process_lives_without_any_folder_to_write_to(tmp_path: Path) -> None:
    """H-GUI-02 for the super-user too, who may write everywhere: the folders are files."""
    block = tmp_path / "file"
    block.write_text("", encoding="utf-8")
    names = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
    process = subprocess.Popen(
        [sys.executable, "-m", "app.main"],
        cwd=ROOT,
        env=os.environ | dict.fromkeys(names, str(block)),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    talk = ""
    try:
        for line in process.stderr:
            talk += line
            if "The first page is built" in line:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, talk
    finally:
        process.kill()
        process.communicate()
    assert "The first page is built" in talk
    assert "Traceback" not in talk and "CRITICAL" not in talk, talk


def test_a_card_that_failed_for_good_offers_a_restart(start: Started) -> None:
    put_demo(paths.models_dir())
    made = start()
    start.qtbot.waitUntil(lambda: made.controller.state == "ready")
    start.fake.fail_after, start.fake.fail_error = 0, DeviceFault("an illegal address")
    made.controller.submit(Request(messages=[{"role": "user", "content": "hello"}]), lambda _: None)
    start.qtbot.waitUntil(lambda: len(notes(made)) == 1)
    (banner,) = made.window.findChildren(Banner)
    assert "Your chats are saved" in banner.text
    (restart,) = [b for b in banner.findChildren(QPushButton) if b.text() == "Restart Lucebox"]
    restart.click()
    assert made.again and not made.window.isVisible()


def test_the_same_command_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", started.append)
    monkeypatch.setattr(sys, "orig_argv", ["python3", "-m", "engine.cli", "some.gguf"])
    main_module.start_again()
    assert started == [[sys.executable, "-m", "engine.cli", "some.gguf"]]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.timeout(120)
def test_the_real_process_starts_and_ends_on_a_signal(qtbot: QtBot, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "app.main"], cwd=ROOT, env=os.environ.copy(), stderr=subprocess.PIPE
    )

    def log() -> str:
        file = log_file()
        return file.read_text(encoding="utf-8") if file.exists() else ""

    try:
        qtbot.waitUntil(lambda: "The first page is built" in log())
        second = subprocess.run(
            [sys.executable, "-m", "app.main"], cwd=ROOT, env=os.environ.copy(), timeout=60
        )
        assert second.returncode == 0, "a second launch hands over and ends"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        _, errors = process.communicate()
    # The screenless plugin cannot raise windows, and says so.
    own = [line for line in log().splitlines() if "This plugin does not support" not in line]
    assert not [x for x in own if re.search("ERROR|CRITICAL|WARNING .* qt:", x)], (log(), errors)
    assert not fault_file().exists()
