"""Files on the window: what they are while they hover, and what becomes of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, QSize, Qt, QUrl
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QGuiApplication,
)
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMainWindow, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.drop import DropTarget, local_paths
from app.i18n import Language
from app.models.library import Library
from app.models.loading import LoadPanel
from app.models.opener import opener_of
from app.models.overlay import DropZone
from app.page import Services
from app.report import ErrorReport
from app.theme import theme
from app.window import LEAST
from engine import library as engine_library
from tests.app.models.conftest import BROKEN, PROJECTOR, Seen, put
from tests.engine.gguf_writer import model

COPY = Qt.DropAction.CopyAction
LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def window(qtbot: QtBot) -> QMainWindow:
    made = QMainWindow()
    content = QWidget()
    # A text field takes drops of its own; files must not end up in it as text.
    QVBoxLayout(content).addWidget(QLineEdit())
    made.setCentralWidget(content)
    made.resize(1000, 700)
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def target(window: QMainWindow, services: Services) -> DropTarget:
    content = window.centralWidget()
    assert content is not None
    return DropTarget(window, content, services)


@pytest.fixture
def failures(services: Services) -> list[ErrorReport]:
    reports: list[ErrorReport] = []
    opener_of(services).failed.connect(reports.append)
    return reports


class Drag:
    """A drag from outside, event by event, as the window system sends it."""

    def __init__(self, window: QMainWindow, paths: Sequence[Path], text: str = "") -> None:
        self._handle = window.windowHandle()
        self._mime = QMimeData()
        if paths:
            self._mime.setUrls([QUrl.fromLocalFile(str(p)) for p in paths])
        if text:
            self._mime.setText(text)

    def _send(self, event: QDropEvent | QEvent) -> bool:
        QApplication.sendEvent(self._handle, event)
        return event.isAccepted()

    def enter(self, x: float = 500, y: float = 20) -> bool:
        point = QPointF(x, y).toPoint()
        event = QDragEnterEvent(point, COPY, self._mime, LEFT, NONE)
        event.ignore()
        return self._send(event)

    def move(self, x: float, y: float) -> bool:
        return self._send(QDragMoveEvent(QPointF(x, y).toPoint(), COPY, self._mime, LEFT, NONE))

    def drop(self, x: float = 500, y: float = 20) -> bool:
        event = QDropEvent(QPointF(x, y), COPY, self._mime, LEFT, NONE)
        event.ignore()
        return self._send(event)

    def leave(self) -> None:
        self._send(QDragLeaveEvent())


pytestmark = pytest.mark.filterwarnings("ignore:Function. 'QDrag:DeprecationWarning")


def texts(target: DropTarget) -> str:
    labels = [label.text() for label in target.overlay.findChildren(QLabel)]
    zones = [f"{z.accessibleName()}: {z.text}" for z in target.overlay.findChildren(DropZone)]
    return "\n".join(labels + zones)


def zones(target: DropTarget) -> tuple[DropZone, DropZone]:
    use, copy = target.overlay.findChildren(DropZone)
    return use, copy


@pytest.fixture
def alpha(tmp_path: Path) -> Path:
    return put(tmp_path / "Downloads" / "Alpha-Q4_K_M.gguf", model("llama", "Alpha"))


# While they hover


def test_a_model_is_described_before_it_is_let_go(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, alpha: Path
) -> None:
    assert Drag(window, [alpha]).enter()
    assert not target.overlay.isVisible(), "a drag that only passes by changes nothing"
    qtbot.waitUntil(target.overlay.isVisible)
    qtbot.waitUntil(lambda: "Chat model, llama" in texts(target))
    qtbot.waitUntil(lambda: "Fits" in texts(target))
    assert "It stays in Downloads" in texts(target)
    assert all(zone.possible for zone in zones(target))


@pytest.mark.parametrize("size", [100, 150])
def test_the_places_to_let_go_stand_apart_in_the_least_window(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, alpha: Path, size: int
) -> None:
    theme().apply(text_size=size)
    # Less what the window has around its pages.
    window.resize((LEAST - QSize(72, 28)) * (size / 100))
    assert Drag(window, [alpha]).enter()
    qtbot.waitUntil(target.overlay.isVisible)
    qtbot.waitUntil(lambda: "Fits" in texts(target))
    QApplication.processEvents()
    use, copy = zones(target)
    assert use.geometry().bottom() < copy.geometry().top()
    assert copy.geometry().bottom() < copy.parentWidget().height()  # type: ignore[union-attr]


def test_esc_leaves_all_as_it_was(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, alpha: Path, seen: Seen, library: Library
) -> None:
    drag = Drag(window, [alpha])
    drag.enter()
    qtbot.waitUntil(target.overlay.isVisible)
    drag.leave()
    qtbot.wait(50)
    assert not target.overlay.isVisible()
    assert library.items == () and seen.pages == [] and seen.toasts == []


def test_a_drag_that_leaves_at_once_shows_nothing(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, alpha: Path
) -> None:
    drag = Drag(window, [alpha])
    drag.enter()
    drag.leave()
    qtbot.wait(120)
    assert not target.overlay.isVisible()


def test_text_that_is_dragged_is_for_the_text_fields(
    window: QMainWindow, target: DropTarget
) -> None:
    Drag(window, [], text="some words").enter()
    assert not target.overlay.isVisible()


def test_model_projector_and_two_others(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, tmp_path: Path
) -> None:
    drag = Drag(window, several(tmp_path))
    drag.enter()
    qtbot.waitUntil(lambda: "4 files, 1 model, 1 projector, 1 text, 1 unknown" in texts(target))


def test_what_is_no_model_cannot_be_used(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, tmp_path: Path
) -> None:
    Drag(window, [put(tmp_path / "photo.png", b"\x89PNG\r\n")]).enter()
    qtbot.waitUntil(lambda: "This is a picture" in texts(target))
    assert not any(zone.possible for zone in zones(target))
    assert "Not possible" in texts(target)


def test_a_projector_alone_cannot_chat_and_is_not_copied(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, tmp_path: Path
) -> None:
    Drag(window, [put(tmp_path / "mmproj.gguf", PROJECTOR)]).enter()
    qtbot.waitUntil(lambda: "cannot chat by itself" in texts(target))
    use, copy = zones(target)
    assert use.possible and not copy.possible


def test_a_copy_that_does_not_fit_says_so(
    qtbot: QtBot,
    window: QMainWindow,
    target: DropTarget,
    alpha: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app.models import overlay

    monkeypatch.setattr(overlay, "free_at", lambda _: 1)
    Drag(window, [alpha]).enter()
    qtbot.waitUntil(lambda: not zones(target)[1].possible)
    assert "free there" in zones(target)[1].text and zones(target)[0].possible


# Let go


def test_a_model_is_listed_and_loaded_where_it_is(
    qtbot: QtBot,
    window: QMainWindow,
    target: DropTarget,
    alpha: Path,
    seen: Seen,
    library: Library,
    controller: EngineController,
) -> None:
    drag = Drag(window, [alpha])
    drag.enter()
    assert drag.drop()
    qtbot.waitUntil(lambda: ("chat", {}) in seen.pages)
    assert seen.pages[0] == ("models", {"path": alpha})
    assert controller.model is not None and controller.model.path == alpha
    assert library.item(alpha) is not None
    assert not target.overlay.isVisible()
    assert window.findChild(QLineEdit).text() == ""  # type: ignore[union-attr]


def test_dropped_on_the_copy_zone_it_is_copied(
    qtbot: QtBot,
    window: QMainWindow,
    target: DropTarget,
    alpha: Path,
    models_dir: Path,
    controller: EngineController,
    services: Services,
) -> None:
    drag = Drag(window, [alpha])
    drag.enter()
    qtbot.waitUntil(target.overlay.isVisible)
    qtbot.waitUntil(lambda: zones(target)[1].possible and "free there" in zones(target)[1].text)
    zone = zones(target)[1]
    middle = zone.mapTo(window, zone.rect().center())
    drag.move(middle.x(), middle.y())
    drag.drop(middle.x(), middle.y())
    copied = models_dir / alpha.name
    qtbot.waitUntil(lambda: controller.model is not None and controller.model.path == copied)
    assert copied.read_bytes() == alpha.read_bytes() and alpha.exists()
    assert services.settings.value.extra_model_dirs == []


def test_several_files_are_one_model_with_its_projector(
    qtbot: QtBot,
    target: DropTarget,
    tmp_path: Path,
    library: Library,
    controller: EngineController,
    seen: Seen,
) -> None:
    files = several(tmp_path)
    target.open_paths(files)
    qtbot.waitUntil(lambda: controller.model is not None)
    assert controller.model.path == files[0]  # type: ignore[union-attr]
    item = library.item(files[0])
    assert item is not None and item.entry.companions == (files[1],)
    assert {i.entry.path for i in library.items} == set(files[:2])
    assert "README.md was left out" in seen.toasts[0] and "1 more" in seen.toasts[0]


def test_a_folder_of_models_is_listed_and_none_is_loaded_unasked(
    qtbot: QtBot,
    target: DropTarget,
    tree: Path,
    seen: Seen,
    library: Library,
    controller: EngineController,
) -> None:
    put(tree / "Omega.gguf", model("llama", "Omega"))
    target.open_paths([tree])
    qtbot.waitUntil(lambda: bool(seen.pages))
    assert seen.pages[0][0] == "models" and seen.pages[0][1]["path"].name == "Alpha-7B-Q4_K_M.gguf"
    assert controller.loading is None and controller.model is None
    assert {"Alpha-7B", "Omega"} <= {i.title for i in library.chat_models()}


def test_it_speaks_another_language_at_once(
    window: QMainWindow, target: DropTarget, services: Services, tmp_path: Path, language: Language
) -> None:
    language.apply("ko")
    QApplication.processEvents()
    drag = Drag(window, [put(tmp_path / "a.gguf", model("llama", "Alpha"))])
    assert drag.enter()
    said = texts(target) + "".join(a.text() for a in services.actions.all())
    drag.leave()
    assert "붙여넣은 파일 열기" in said and not re.search("Let go|leaves|Open", said)


def test_a_damaged_file_gets_a_card_until_another_file_is_good(
    qtbot: QtBot,
    target: DropTarget,
    services: Services,
    tmp_path: Path,
    seen: Seen,
    failures: list[ErrorReport],
    controller: EngineController,
) -> None:
    panels = [LoadPanel(services, opener_of(services)) for _ in range(2)]
    for panel in panels:
        qtbot.addWidget(panel)
    target.open_paths([put(tmp_path / "cut.gguf", BROKEN)])
    qtbot.waitUntil(lambda: bool(failures))
    assert "cut.gguf" in failures[0].title and "again" in failures[0].why
    assert "cut.gguf" not in failures[0].why, "once is enough"
    assert seen.pages == [("models", {})] and controller.loading is None
    assert all(panel.card for panel in panels)
    target.open_paths([put(tmp_path / "mmproj.gguf", PROJECTOR)])
    qtbot.waitUntil(lambda: len(seen.pages) == 2)
    assert not any(panel.card for panel in panels)
    target.open_paths([tmp_path / "cut.gguf"])
    qtbot.waitUntil(lambda: all(panel.card for panel in panels))
    panels[0].card.dismissed.emit()  # type: ignore[union-attr]
    assert not any(panel.card for panel in panels), (
        "what was read on one page is no news on another"
    )


def test_a_model_of_an_unknown_kind_is_listed_and_not_loaded(
    qtbot: QtBot,
    window: QMainWindow,
    target: DropTarget,
    tmp_path: Path,
    failures: list[ErrorReport],
    controller: EngineController,
    library: Library,
) -> None:
    file = put(tmp_path / "Future.gguf", model("mamba9", "Future"))
    drag = Drag(window, [file])
    drag.enter()
    qtbot.waitUntil(lambda: "Show what is wrong with it" in texts(target))
    assert not zones(target)[1].possible
    drag.drop()
    qtbot.waitUntil(lambda: bool(failures))
    assert "mamba9" in failures[0].why and controller.loading is None
    assert library.item(file) is not None


def test_text_is_for_the_chat(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, tmp_path: Path, seen: Seen
) -> None:
    note = put(tmp_path / "notes.md", b"# words")
    photo = put(tmp_path / "photo.png", b"\x89PNG\r\n")
    for files, left_out in (([note], []), ([note, photo], ["photo.png was left out."])):
        seen.pages.clear()
        drag = Drag(window, files)
        drag.enter()
        qtbot.waitUntil(lambda: "Attach to the message" in texts(target))
        drag.drop()
        qtbot.waitUntil(lambda: seen.pages == [("chat", {"attach": [note]})])
        assert [t[: len("photo.png was left out.")] for t in seen.toasts] == left_out


@pytest.mark.parametrize("name", ["photo.png", "model.safetensors"])
def test_other_files_are_left_alone_with_a_note(
    qtbot: QtBot,
    target: DropTarget,
    tmp_path: Path,
    name: str,
    seen: Seen,
    failures: list[ErrorReport],
) -> None:
    target.open_paths([put(tmp_path / name, b"\x89PNG\r\n\x00\x01")])
    qtbot.waitUntil(lambda: bool(seen.toasts))
    assert name in seen.toasts[0] and seen.pages == [] and failures == []


def test_a_projector_alone_is_listed_and_explained(
    qtbot: QtBot, target: DropTarget, tmp_path: Path, seen: Seen, controller: EngineController
) -> None:
    target.open_paths([put(tmp_path / "mmproj.gguf", PROJECTOR)])
    qtbot.waitUntil(lambda: bool(seen.toasts))
    assert "cannot chat by itself" in seen.toasts[0] and controller.loading is None


def test_a_draft_is_offered_for_the_loaded_model(
    qtbot: QtBot, target: DropTarget, tmp_path: Path, seen: Seen, controller: EngineController
) -> None:
    with qtbot.waitSignal(controller.model_changed):
        controller.load(tmp_path / "loaded.gguf")
    target.open_paths([put(tmp_path / "swift.gguf", model("dflash", "Swift"))])
    qtbot.waitUntil(lambda: bool(seen.toasts))
    assert controller.model is not None
    assert "swift.gguf is a draft" in seen.toasts[0] and controller.model.name in seen.toasts[0]
    assert seen.pages[-1] == ("models", {"path": tmp_path / "swift.gguf"})


def test_a_file_that_is_gone_is_told(
    qtbot: QtBot, target: DropTarget, tmp_path: Path, failures: list[ErrorReport]
) -> None:
    target.open_paths([tmp_path / "gone.gguf"])
    qtbot.waitUntil(lambda: bool(failures))
    assert "gone.gguf" in failures[0].title


# Without a mouse


def test_paste_of_a_path(
    qtbot: QtBot, window: QMainWindow, target: DropTarget, alpha: Path, controller: EngineController
) -> None:
    QGuiApplication.clipboard().setText(f'"{alpha}"\n')
    window.setFocus()
    paste = next(a for a in window.actions() if a.text() == "Open the pasted file")
    paste.trigger()
    qtbot.waitUntil(lambda: controller.model is not None)
    assert controller.model.path == alpha  # type: ignore[union-attr]


def test_paste_of_anything_else(target: DropTarget, window: QMainWindow, seen: Seen) -> None:
    QGuiApplication.clipboard().setText("just words")
    next(a for a in window.actions() if a.text() == "Open the pasted file").trigger()
    assert "no file" in seen.toasts[0]


def test_paths_in_mime_data(tmp_path: Path) -> None:
    mime = QMimeData()
    mime.setText(f"file:///a%20b.gguf\n'{tmp_path}/c.gguf'\nrelative.gguf\nhttps://host/d.gguf\n\n")
    assert local_paths(mime) == (Path("/a b.gguf"), tmp_path / "c.gguf")
    mime.setUrls([QUrl("https://host/d.gguf"), QUrl.fromLocalFile("/e.gguf")])
    assert local_paths(mime) == (Path("/e.gguf"),)


def several(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "set"
    return [
        put(folder / "vision-7b-Q4_K_M.gguf", model("llama", "Vision 7B")),
        put(folder / "mmproj-vision-7b-f16.gguf", PROJECTOR),
        put(folder / "README.md", b"# read me"),
        put(folder / "photo.png", b"\x89PNG\r\n\x1a\n"),
    ]


def test_the_copy_can_be_stopped(
    qtbot: QtBot,
    target: DropTarget,
    alpha: Path,
    models_dir: Path,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(entry, folder, progress, cancel):  # type: ignore[no-untyped-def]
        progress(1, 10)
        assert cancel.wait(10)
        shutil.rmtree(folder / "nothing", ignore_errors=True)
        raise engine_library.EngineError("stopped")

    monkeypatch.setattr(engine_library, "copy_in", slow)
    opener = opener_of(services)
    failed: list[object] = []
    opener.failed.connect(failed.append)
    target.open_paths([alpha], copy=True)
    qtbot.waitUntil(lambda: opener.task is not None)
    with qtbot.waitSignals([opener.task.progressed, opener.task.stopped]):  # type: ignore[union-attr]
        qtbot.waitUntil(lambda: opener.task._at == (1, 10))  # type: ignore[union-attr]
        qtbot.wait(120)
        opener.cancel()
    qtbot.wait(50)
    assert failed == [] and list(models_dir.iterdir()) == []
