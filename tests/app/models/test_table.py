"""The rows of the models table: sections, order, filter, names."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPersistentModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from app.models.library import Group, Library
from app.models.table import GROUP_ROLE, Column, ModelsTable
from tests.app.models.conftest import put, scanned
from tests.engine.gguf_writer import model


@pytest.fixture
def rows(qtbot: QtBot, library: Library, tree: Path) -> ModelsTable:
    table = ModelsTable(library, library)
    # It fails at once when a signal and the rows disagree.
    QAbstractItemModelTester(table, QAbstractItemModelTester.FailureReportingMode.Fatal, table)
    scanned(qtbot, library)
    table.arrange()
    return table


def shown(rows: ModelsTable) -> list[str]:
    return [str(rows.index(r, 0).data()) for r in range(rows.rowCount())]


SECTIONS = [
    "Chat models", "Alpha-7B", "Beta",
    "Drafts and helpers", "Swift", "mmproj-vision-f16",
    "Files with problems", "broken",
]  # fmt: skip


def by_section(titles: list[str]) -> list[list[str]]:
    heads = [i for i, t in enumerate(titles) if t in SECTIONS[::3] or t == SECTIONS[6]]
    return [titles[a:b] for a, b in zip(heads, [*heads[1:], None], strict=True)]


def test_sections_with_their_files(rows: ModelsTable) -> None:
    found = shown(rows)
    assert [found[0], found[3], found[6]] == [SECTIONS[0], SECTIONS[3], SECTIONS[6]]
    assert found[1:3] == ["Alpha-7B", "Beta"]
    assert found[7] == "broken"
    assert len(found[4:6]) == 2


@pytest.mark.parametrize("column", list(Column))
@pytest.mark.parametrize("order", list(Qt.SortOrder))
def test_sections_stay_in_order_however_the_rows_are_sorted(
    rows: ModelsTable, column: Column, order: Qt.SortOrder
) -> None:
    rows.sort(column, order)
    groups = [rows.index(r, 0).data(GROUP_ROLE) for r in range(rows.rowCount())]
    assert groups == sorted(groups)
    heads = [r for r in range(rows.rowCount()) if rows.item(rows.index(r, 0)) is None]
    assert [groups[r] for r in heads] == list(Group)
    assert all(r == 0 or groups[r - 1] != groups[r] for r in heads), "a head leads its section"


def test_figures_are_sorted_as_figures(
    qtbot: QtBot, rows: ModelsTable, library: Library, tree: Path
) -> None:
    alpha, beta = library.chat_models()
    library.measured(alpha.entry.path, alpha.entry.size, decode_rate=9.5)
    library.measured(beta.entry.path, beta.entry.size, decode_rate=110.0)
    rows.sort(Column.SPEED, Qt.SortOrder.DescendingOrder)
    assert shown(rows)[1:3] == ["Beta", "Alpha-7B"]
    assert [rows.index(r, Column.SPEED).data() for r in (1, 2)] == ["110", "9.5"]
    rows.sort(Column.SPEED, Qt.SortOrder.AscendingOrder)
    assert shown(rows)[1:3] == ["Alpha-7B", "Beta"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alpha", ["Chat models", "Alpha-7B"]),
        ("7b q4_k", ["Chat models", "Alpha-7B"]),
        ("QWEN3", ["Chat models", "Beta"]),
        ("broken", ["Files with problems", "broken"]),
        ("no such thing", []),
    ],
)
def test_filter_by_words_hides_empty_sections(
    rows: ModelsTable, text: str, expected: list[str]
) -> None:
    rows.set_text(text)
    assert shown(rows) == expected
    rows.set_text("")
    assert rows.rowCount() == 8


def test_filter_by_program(rows: ModelsTable) -> None:
    rows.set_source("LM Studio")
    assert shown(rows) == ["Chat models", "Beta"]
    rows.set_source("Ollama")
    assert shown(rows) == []


def test_a_filtered_section_comes_back_with_its_first_row(
    qtbot: QtBot, rows: ModelsTable, library: Library, tree: Path
) -> None:
    rows.set_text("omega")
    assert shown(rows) == []
    put(tree / "Omega.gguf", model("llama", "Omega"))
    scanned(qtbot, library)
    qtbot.waitUntil(lambda: shown(rows) == ["Chat models", "Omega"])
    (tree / "Omega.gguf").unlink()
    scanned(qtbot, library)
    qtbot.waitUntil(lambda: shown(rows) == [])


def test_the_chosen_row_stays_chosen_wherever_it_goes(rows: ModelsTable, library: Library) -> None:
    beta = QPersistentModelIndex(rows.index(2, 0))
    library.rename(library.chat_models()[1].entry.path, "Aaa")
    rows.arrange()
    assert beta.isValid() and beta.row() == 1 and beta.data() == "Aaa"
    rows.sort(Column.NAME, Qt.SortOrder.DescendingOrder)
    assert beta.row() == 2
    rows.set_text("alpha")
    assert not beta.isValid()


def test_renaming_in_place(rows: ModelsTable, library: Library) -> None:
    index = rows.index(1, Column.NAME)
    assert rows.flags(index) & Qt.ItemFlag.ItemIsEditable
    assert rows.setData(index, "Zulu")
    rows.arrange()
    assert shown(rows)[1:3] == ["Beta", "Zulu"], "the row moves to its new place"
    assert not rows.flags(rows.index(0, 0)) & Qt.ItemFlag.ItemIsSelectable


def test_what_was_not_measured_has_no_figure(rows: ModelsTable) -> None:
    assert rows.index(1, Column.SPEED).data() == "–"


def test_every_cell_is_named_for_a_screen_reader(rows: ModelsTable) -> None:
    role = Qt.ItemDataRole.AccessibleTextRole
    assert rows.index(1, Column.FITS).data(role) == "On this PC: Fits"
    assert rows.index(0, 0).data(role) == "Chat models"


def test_a_problem_says_what_is_wrong(rows: ModelsTable) -> None:
    text = rows.index(7, Column.ARCHITECTURE).data()
    assert text.startswith("The file is truncated"), "its name stands beside it"
    assert "broken.gguf: the file is truncated" in rows.index(7, 0).data(
        Qt.ItemDataRole.ToolTipRole
    )
