"""Every speed and memory that is wanted of a card, measured and judged: targets.json names them.

    python -m tests.bench.targets FOLDER --peer PATH/llama-bench [--synth PATH/synth_gguf.py]
        [--json OUT.json] [--only 3,qwen35-27b,speed] [--minutes 9]

FOLDER holds the files by the names of targets.json; those that are missing are made by --synth, a program
with `--preset NAME --out FILE`, and drafts by `tests.bench.synth_draft`. Each run is a process of its own
with an end, and one that fails stops no other. OUT.json has all that was found so far after each run, and
what is in it already is not measured again. A Markdown table on stdout, the course of things on stderr; the
exit code is 1 where something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine import demo
from engine.devices import devices
from engine.files import write_atomically
from tests.bench import limited

WANTED = Path(__file__).with_suffix(".json")
LIMIT_S = 480.0
"""That a run may take: loading, compiling kernels, our figures and the peer's."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One command on one file, and the figures wanted of it: each `least`, `most` or `ratio` to the peer."""

    issue: int
    file: str
    kind: str
    command: tuple[str, ...]
    wanted: dict[str, dict[str, float]]
    draft: str = ""

    @property
    def name(self) -> str:
        """What it is called in the record."""
        return f"{self.file} {self.kind}"

    @property
    def beside(self) -> bool:
        """Whether it is given the peer."""
        return self.command[0].endswith("compare_llama_cpp")


def read_runs(path: Path) -> list[Run]:
    """Those of a file like targets.json."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return [
        Run(
            run["issue"], run["file"], run["kind"],
            (*data["commands"][run["kind"]], *run.get("flags", ())), run["wanted"], run.get("draft", ""),
        )
        for run in data["runs"]
    ]  # fmt: skip


def _line(what: str, ours: float) -> Line:
    return {"what": what, "ours": ours, "peer": None, "ratio": None}


def _api(found: dict[str, Any]) -> list[Line]:
    return [
        _line(f"request of {found['prompt_tokens']:,} tokens, ms", found["request_ms"]["median"]),
        _line("streamed token, ms", found["token_ms"]["median"]),
        _line("cached turn in turns of what is new", found["cached_turn"]["ratio"]),
    ]


LINES: dict[str, Callable[[dict[str, Any]], list[Line]]] = {
    "api": _api,
    "app": lambda found: [_line("window of headless", found["ratio"])],
}
"""Of commands that do not tell lines themselves."""


class Files:
    """The models of a folder, made where they are missing. Raises `Missing`."""

    def __init__(self, folder: Path, synth: Path | None) -> None:
        self._folder, self._synth = folder, synth

    def model(self, name: str, limit_s: float) -> Path:
        """A model; the demo model also where it is installed."""
        path = self._folder / f"{name}.gguf"
        if not path.exists() and path.name == demo.NAME and (installed := demo.path()):
            return installed
        words = [str(self._synth), "--preset", name] if self._synth else []
        return self._made(path, words, limit_s)

    def draft(self, name: str, limit_s: float) -> Path:
        """A random draft of a model's shapes."""
        words = ["-m", "tests.bench.synth_draft", "--preset", name]
        return self._made(self._folder / f"{name}.draft.gguf", words, limit_s)

    def _made(self, path: Path, words: list[str], limit_s: float) -> Path:
        if path.exists():
            return path
        if not words:
            raise Missing(f"{path.name} is not in {self._folder}; --synth can make it.")
        print(f"making {path.name}", file=sys.stderr, flush=True)
        part = path.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            made = limited.run([sys.executable, *words, "--out", str(part)], limit_s, alone=True)
            if made.problem:
                raise Missing(f"{path.name} could not be made: it {made.problem}")
            os.replace(part, path)
        except OSError as error:
            raise Missing(f"{path.name} could not be made: {error}") from error
        finally:
            part.unlink(missing_ok=True)
        return path


class Missing(Exception):
    """A file is neither there nor can it be made."""


@dataclass
class Record:
    """What was found so far, by run: when, seconds, lines, facts, whether a peer was there, and problems."""

    path: Path | None
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path | None) -> Record:
        """Of a file, where there is one. `ValueError` for one that is no record."""
        if path is None or not path.exists():
            return cls(path)
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or not isinstance(data.get("runs"), dict):
            raise ValueError("it has no runs")
        return cls(path, data["runs"])

    def is_done(self, run: Run, with_peer: bool) -> bool:
        """Whether nothing would be gained by measuring it once more."""
        found = self.runs.get(run.name)
        if not found or found["problem"]:
            return False
        return found["peer"] or not (with_peer and run.beside)

    def add(self, run: Run, found: dict[str, Any]) -> None:
        """Keep it, on disk at once."""
        self.runs[run.name] = found
        if self.path:
            text = json.dumps({"runs": self.runs}, indent=1)
            write_atomically(self.path, text.encode())


def measured(
    run: Run, files: Files, device: str, peer: Path | None, limit_s: float
) -> dict[str, Any]:
    """A run's part of the record; what went wrong is its problem."""
    found: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "device": _device_name(device),
        "peer": bool(peer and run.beside), "seconds": 0.0, "lines": [], "problem": "",
    }  # fmt: skip
    began = time.perf_counter()

    def left() -> float:
        return max(1.0, limit_s - (time.perf_counter() - began))

    try:
        words = [*run.command, str(files.model(run.file, left()))]
        if run.draft:
            words += ["--draft", str(files.draft(run.draft, left()))]
    except Missing as missing:
        return found | {"problem": str(missing)}
    if run.kind != "memory":
        words += ["--device", device]
    if found["peer"]:
        words += ["--peer", str(peer)]
    done = limited.run([sys.executable, "-m", *words], left(), alone=True)
    found["seconds"] = round(time.perf_counter() - began, 1)
    if done.problem:
        return found | {"problem": f"It {done.problem}"}
    try:
        facts = json.loads(done.out.splitlines()[-1])
        lines = LINES.get(run.kind, lambda facts: facts["lines"])(facts)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        return found | {
            "problem": f"It did not tell what was expected: {error!r}, {done.out[-80:]!r}"
        }
    return found | {"lines": lines, "facts": facts}


def _device_name(device: str) -> str:
    return next((d.name for d in devices() if d.id == device), device)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A wanted figure beside what was measured, None where it was not."""

    run: Run
    what: str
    bound: dict[str, float]
    line: Line | None

    @property
    def holds(self) -> bool | None:
        """None where it is not known."""
        (kind, limit), line = next(iter(self.bound.items())), self.line or {}
        value = line.get("ratio" if kind == "ratio" else "ours")
        if value is None:
            return None
        return bool(value <= limit if kind == "most" else value >= limit)

    def row(self) -> str:
        """As a row of the table."""
        kind, limit = next(iter(self.bound.items()))
        words = {
            "ratio": f"{limit:g} x",
            "least": f"at least {limit:g}",
            "most": f"at most {limit:g}",
        }
        line = self.line or {}
        cells = [
            str(self.run.issue), self.run.file, self.what, _number(line.get("ours")),
            _number(line.get("peer")), _number(line.get("ratio")), words[kind],
            {True: "yes", False: "**no**", None: "?"}[self.holds],
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def verdicts(runs: Iterable[Run], record: Record) -> list[Verdict]:
    """Of all that is wanted, in the order of the issues."""
    found = []
    for run in sorted(runs, key=lambda run: run.issue):
        lines = {line["what"]: line for line in record.runs.get(run.name, {}).get("lines", ())}
        found += [Verdict(run, what, bound, lines.get(what)) for what, bound in run.wanted.items()]
    return found


def table(runs: list[Run], record: Record) -> str:
    """Markdown: what is wanted, and below it what could not be measured."""
    judged = verdicts(runs, record)
    lines = [
        "| issue | file | what | measured | peer | ratio | wanted | holds |",
        "|---|---|---|---|---|---|---|---|",
        *(verdict.row() for verdict in judged),
    ]
    hold = sum(verdict.holds is True for verdict in judged)
    fail = sum(verdict.holds is False for verdict in judged)
    lines += ["", f"{hold} hold, {fail} do not, {len(judged) - hold - fail} are not known."]
    for run in runs:
        if (found := record.runs.get(run.name)) is None:
            continue
        where = f"{run.name} ({found['device']}, {found['when']}, {found['seconds']:.0f} s)"
        failures = (found.get("facts") or {}).get("peer_failures", ())
        notes = [*([found["problem"]] if found["problem"] else ()), *failures]
        read = ((found.get("facts") or {}).get("ours") or {}).get("read_gb_s")
        notes = [*([f"read {read:,.0f} GB/s"] if read else ()), *notes]
        lines.append(f"* {'; '.join([where, *notes])}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the model files are")
    parser.add_argument("--peer", type=Path, help="llama.cpp's llama-bench")
    parser.add_argument("--synth", type=Path, help="the program that makes files of real shapes")
    parser.add_argument("--json", type=Path, help="what was found; measured are those not in it")
    parser.add_argument(
        "--only", default="", help="issues, files, kinds or names of runs, with commas"
    )
    parser.add_argument(
        "--again", action="store_true", help="measure also what was measured before"
    )
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a run may take")
    parser.add_argument("--minutes", type=float, help="end by then, and leave the rest")
    parser.add_argument("--wanted", type=Path, default=WANTED, help="other figures than ours")
    args = parser.parse_args(arguments)
    for flag in ("peer", "synth"):
        if (path := getattr(args, flag)) and not path.is_file():
            parser.error(f"--{flag}: {path} is not a file.")
    try:
        record = Record.at(args.json)
    except ValueError as error:
        parser.error(f"--json: {args.json} is no record of earlier runs ({error}). Move it away.")
    words = set(filter(None, args.only.split(",")))
    runs = read_runs(args.wanted)
    chosen = [r for r in runs if not words or words & {str(r.issue), r.file, r.kind, r.name}]
    if not chosen:
        parser.error(f"--only: nothing is called {args.only}.")
    files = Files(args.folder, args.synth)
    end = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    for run in chosen:
        if record.is_done(run, args.peer is not None) and not args.again:
            print(f"{run.name}: done before", file=sys.stderr)
            continue
        if (left := end - time.monotonic()) < 1:
            print(f"{run.name}: left for another time", file=sys.stderr)
            continue
        print(f"{run.name} ...", file=sys.stderr, flush=True)
        found = measured(run, files, args.device, args.peer, min(args.limit, left))
        record.add(run, found)
        for verdict in verdicts([run], record):
            print(verdict.row(), file=sys.stderr)
        told = found["problem"] or "measured"
        print(f"{run.name}: {told} ({found['seconds']:.0f} s)", file=sys.stderr, flush=True)
    print(table(chosen, record))
    return int(any(record.runs.get(run.name, {"problem": "?"})["problem"] for run in chosen))


if __name__ == "__main__":
    sys.exit(main())
