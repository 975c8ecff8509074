"""What the engine says is understood again and said in Korean; the engine itself knows of no language."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication

from app import i18n
from app.files import resource
from app.i18n import Language, told
from app.report import report_of
from engine import paths, settings_store
from engine.config import EngineConfig, SamplingParams
from engine.copies import copy_in, folder_problem
from engine.devices import Device
from engine.draft.check import judge
from engine.entry import inspect, kind_of
from engine.errors import EngineError
from engine.gguf import HeaderSummary, read_header
from engine.grammar import form_grammar
from engine.library import sort_dropped
from engine.ops.cuda_device import _error
from engine.ops.cuda_trust import Distrust
from engine.placement import _Sizing, estimate, resolve
from engine.stops import StopMatcher
from engine.types import Format
from tests.app.test_i18n import update as update
from tests.engine.gguf_writer import STRING, model, pair
from tests.engine.test_chat import make
from tests.engine.test_placement import eight_billion, entry

FIXTURES = Path(__file__).parents[1] / "fixtures"
DAMAGED = sorted((FIXTURES / "gguf").glob("h*"))
ODD = [
    "모델 (1)+[a-z]*.gguf", "C:\\가\\1.5$", "줄\n바꿈", "ㄱ" * 300, "{0}", "%1", "%n", "\\1", "^.*$", "9",
]  # fmt: skip
VALUES = (
    "m.gguf a.weight b.weight tok blk ffn_down general alignment cuda light dark norm rope selftest "
    "convert-draft adapter CUDA_ERROR_ILLEGAL_ADDRESS No LoRA h02_truncated_data.gguf"
)
# Names of formats and programs are the same in Korean.
NAMES = {
    "GGUF",
    "JSON",
    "HTML",
    "GB",
    "MB",
    "CPU",
    "SHA",
    "NVIDIA",
    "GeForce",
    "RTX",
    "Lucebox",
    "RoPE",
}


@pytest.fixture(autouse=True)
def korean(language: Language) -> Iterator[None]:
    language.apply("ko")
    yield
    language.apply("en")


def english(text: str, values: str) -> list[str]:
    """The English words of a text that are neither names nor in `values`."""
    shown = re.sub(r"`[^`]*`|--[a-z-]+", "", text)  # commands and options
    return [w for w in re.findall(r"[A-Za-z]{2,}", shown) if w not in NAMES and w not in values]


def test_the_templates_are_those_of_the_sources(update) -> None:  # type: ignore[no-untyped-def]
    kept = json.loads(resource("i18n", "engine.json").read_text(encoding="utf-8"))
    assert kept == update.sentences(), (
        "The engine says other things: python resources/i18n/update.py"
    )


def test_every_template_has_a_translation_and_finds_its_way_back(update) -> None:  # type: ignore[no-untyped-def]
    missing, wrong = [], []
    for source in update.sentences():
        said = QCoreApplication.translate("Engine", source)
        pieces = re.split(r"\{\d+\}", source)
        values = ODD[: len(pieces) - 1]
        if said == source and re.search("[a-z]{3} ", source):
            missing.append(source)
        # A value that holds what separates it from the next one cannot be told apart.
        values = [
            v.replace(" (", "(") if f"{{{n}}} (" in source else v for n, v in enumerate(values)
        ]
        text = "".join(p + v for p, v in zip(pieces, [*values, ""], strict=True))
        wanted = re.sub(r"\{(\d+)\}", lambda hole, v=values: v[int(hole[1])], said)
        if told(text) != wanted:
            wrong.append((source, told(text)))
    assert missing == [], (
        "Translate these in resources/i18n/lucebox_ko.ts, then run update.py there."
    )
    assert wrong == []


def test_a_new_sentence_is_collected_from_any_place(update) -> None:  # type: ignore[no-untyped-def]
    source = '''
def f(path, n, error):
    """This sentence is a docstring."""
    log.warning("This one goes to the log.")
    assert n, "this is our own invariant"
    notes.append(f"{path.name} holds {n:,} parts"
                 f" of {'a whole model' if n else 'none'}.")
    raise EngineError("Found " + ", ".join(path) + " twice. " + f"Remove {n}.") from error
'''
    assert set(update._said(ast.parse(source))) == {
        "{0} holds {1} parts of {2}.", "a whole model", "Found {0} twice. Remove {1}.",
    }  # fmt: skip


@pytest.mark.parametrize("path", DAMAGED, ids=lambda p: p.stem[:12])
def test_what_is_wrong_with_a_file(path: Path) -> None:
    problem = inspect(path).problem
    if problem:
        assert told(problem) != problem
        assert english(told(problem), f"{path.name} {VALUES}") == []


CARD = Device("cuda:0", "cuda", "RTX 4060", 8 << 30, 7 << 30)


def header(folder: Path, kind: str = "model") -> HeaderSummary:
    path = folder / "m.gguf"
    path.write_bytes(model("llama", "Alpha", [pair("general.type", STRING, kind)]))
    return read_header(path)


def settings_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said of two settings of three that are wrong."""
    file = folder / "settings.json"
    chosen = {"theme": "pink", "text_size": 5, "sampling": {"m.gguf": {"seed": -1}}}
    file.write_text(json.dumps(chosen), encoding="utf-8")
    monkeypatch.setattr(paths, "settings_file", lambda: file)
    problem = settings_store.load()[1]
    assert problem is not None
    return problem


RAISES: dict[str, Callable[[Path], object]] = {
    "a setting": lambda _: SamplingParams(temperature=9),
    "a device": lambda f: resolve(EngineConfig(device="cuda:7"), header(f), [CARD]),
    "memory": lambda _: _Sizing(
        eight_billion(), EngineConfig(max_ctx=1 << 20), CARD, 0
    ).refuse_impossible("m.gguf"),
    "a copy": lambda f: copy_in(inspect(FIXTURES / "gguf" / "h02_truncated_data.gguf"), f),
    "no folder": lambda f: _raise(folder_problem(header(f).path)),
    "no messages": lambda _: make("").render([]),
    "a refusal": lambda _: make("{{ raise_exception('No.') }}").render([{"role": "user", "content": ""}]),
    "an endless template": lambda _: make(
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"
    ).render([{"role": "user", "content": ""}]),
    "a schema": lambda _: form_grammar(Format("json_schema", "x")),
    "a stop string": lambda _: StopMatcher([""]),
    "a card": lambda _: _raise(_error("CUDA_ERROR_ILLEGAL_ADDRESS")),
    "a card's self-test": lambda _: _raise(Distrust(frozenset(), frozenset(), ("norm",)).notes()[0]),
    "a draft": lambda _: _raise(judge({"chat": 1.1}, 1.1, ("rope: 1,000", 2.5))[1]),
    "a draft's guess": lambda _: _raise(judge({"chat": 1.1}, 1.1, None)[1]),
    "an estimate": lambda _: _raise(estimate(entry(eight_billion()), EngineConfig(), [CARD]).explanation),
    "a download": lambda f: _raise(sort_dropped([_part_file(f)]).ignored[0][1]),
    "no chat model": lambda f: _raise(kind_of(header(f, "adapter"))[1]),
}  # fmt: skip


def _raise(said: object) -> None:
    raise said if isinstance(said, Exception) else EngineError(str(said))


def _part_file(folder: Path) -> Path:
    path = folder / "m.gguf.part"
    path.write_bytes(b"GGUF")
    return path


@pytest.mark.parametrize("name", RAISES)
def test_errors_that_happen_are_told_in_korean(name: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        RAISES[name](tmp_path)
    why = report_of(caught.value, "").why
    assert re.search("[가-힣]", why)
    assert english(why, f"{tmp_path} {VALUES}") == []


def test_sentences_that_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(settings_problem(tmp_path, monkeypatch))
    assert said.count("입니다.") == 3 and english(said, "pink m.gguf system light dark") == []


def test_titles_of_settings_are_those_of_the_window() -> None:
    assert told("Temperature: found 9, expected at most 2.").startswith("온도: ")


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n", "Nothing that the engine says", "모델", "{0}", "a" * 100_000, "\udcff: x"],
)
def test_what_is_unknown_stays(text: str) -> None:
    assert told(text) == text


def test_a_very_long_value_stays_whole() -> None:
    value = "is expected, found: ( ) . " * 400
    assert told(f"The server could not start: {value}.").endswith(f"{value}.")


@pytest.mark.parametrize(
    "text",
    [
        "a: b is c, expected d. " * 40,
        ": found , expected at most  is has the " * 20,
        "The chat template failed: a: b. " * 30,
        "x: " * 300,
        "The file has no tensor " * 5_000,
    ],
)
def test_no_text_takes_long(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    real = i18n._Template.values

    def values(self: i18n._Template, text: str) -> list[str] | None:
        held.append(len(text))
        return real(self, text)

    monkeypatch.setattr(i18n._Template, "values", values)
    told(text)
    # The work is linear in these lengths; a short sentence has some ten thousand.
    assert sum(held) < 8_000_000


def test_english_stays_and_loads_nothing(
    language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    language.apply("en")
    monkeypatch.setattr(i18n, "_templates", None)
    assert told("The load was stopped.") == "The load was stopped."


def test_no_widget_gets_the_words_of_an_error_as_they_are() -> None:
    showing = {"toast", "set_text", "setText", "setToolTip", "say", "label", "Note", "Banner"}
    bare = [
        f"{path.name}:{node.lineno}"
        for path in sorted(Path(i18n.__file__).parent.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in showing
        and "str(error)" in map(ast.unparse, node.args)
    ]
    assert bare == []
