"""Small runs of every kernel under compute-sanitizer: memory that is not theirs, races in shared memory.

    python -m tests.gpu.sanitize [memcheck] [racecheck] [--only WORD ..] [--jobs 8] [--limit 300]
        [--minutes 9] [--log FILE]

Each case of `tests.gpu.small` is a process of its own with an end, several at a time. A line for each on
stdout as it ends and the sum at last; the exit code is 1 unless all are clean. Races between cuBLAS's
own accesses are not ours to mend: they are told, and the case is clean.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.bench import limited
from tests.gpu.small import cases
from tests.kernels.cuda.test_cuda_ops_without_card import parameters

TOOLS = ("memcheck", "racecheck")
USUAL = Path("/usr/local/cuda/bin/compute-sanitizer")
LIMIT_S = 300.0
OURS = frozenset(parameters())
MOST_REPORTS = 100
"""That a tool prints: of more, nobody knows whose the others are."""
_SUM = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+) (.*)$", re.MULTILINE)
_REPORT = re.compile(r"^=+ +(.*\w.*)$", re.MULTILINE)
_BOILERPLATE = ("COMPUTE-SANITIZER", "Host Frame", "Saved host", "Device Frame", "SUMMARY")
_ACCESS = re.compile(r"access at (?:void )?(\w*)")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a tool says of a case; `problem` is empty where it is clean but for reports inside cuBLAS."""

    tool: str
    case: str
    problem: str
    seconds: float
    output: str = ""

    def text(self) -> str:
        """One line."""
        n = inside_cublas(self.output)
        clean = f"clean, {n} report{'s' * (n > 1)} inside cuBLAS" if n else "clean"
        return f"{self.tool:<10}{self.case:<36}{self.seconds:6.0f} s  {self.problem or clean}"


def judged(done: limited.Ended) -> str:
    """What is wrong with a case by the words of the sanitizer and how it ended; empty for nothing."""
    found = _SUM.findall(done.out)
    inside = inside_cublas(done.out)
    errors = [f"{n} {what}" for n, what in found if int(n) > inside]
    problem = errors[-1] if errors else done.problem
    if not problem and found:
        return ""
    said = [line for line in _REPORT.findall(done.out) if not _is_frame(line)]
    return "; ".join([problem or "the sanitizer gave no summary", *said[:_SHOWN]])


def inside_cublas(out: str) -> int:
    """Races of no kernel of ours; 0 where there are others, or any whose kernels are not told."""
    # Of each race the names in the report's first line and in those below it.
    races = [_ACCESS.findall(report) for report in out.split("Race reported between")[1:]]
    told = all(kernels and all(k.isidentifier() for k in kernels) for kernels in races)
    theirs = told and all(OURS.isdisjoint(kernels) for kernels in races)
    return len(races) if theirs and len(races) < MOST_REPORTS else 0


def _is_frame(line: str) -> bool:
    return any(word in line for word in _BOILERPLATE)


def run(sanitizer: Path, tool: str, case: str, limit_s: float, end: float) -> Verdict:
    """One case under one tool, within `limit_s` seconds and by `end` of the monotonic clock."""
    began = time.monotonic()
    if (left := min(limit_s, end - began)) < 1:
        return Verdict(tool, case, "there was no time left for it", 0.0)
    command = [
        str(sanitizer), "--tool", tool, "--print-limit", str(MOST_REPORTS), "--report-api-errors", "no",
        sys.executable, "-m", "tests.gpu.small", case,
    ]  # fmt: skip
    done = limited.run(command, left, alone=True)
    seconds = time.monotonic() - began
    return Verdict(tool, case, judged(done), seconds, f"{done.out}\n{done.err}")


def verdicts(
    sanitizer: Path, tools: Iterable[str], chosen: list[str], jobs: int, limit_s: float, end: float
) -> Iterable[Verdict]:
    """Those of all cases, as they end."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [
            pool.submit(run, sanitizer, tool, case, limit_s, end)
            for tool in tools
            for case in chosen
        ]
        for one in as_completed(waiting):
            yield one.result()


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tools", nargs="*", metavar="TOOL", help="memcheck, racecheck; both if left out"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="cases with such a word"
    )
    parser.add_argument("--jobs", type=int, default=8, help="cases at a time")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a case may take")
    parser.add_argument("--minutes", type=float, help="end by then, and leave the rest")
    parser.add_argument("--log", type=Path, help="a file for the whole output of what is not clean")
    parser.add_argument(
        "--sanitizer", type=Path, help="compute-sanitizer, if it is not on the path"
    )
    args = parser.parse_args(arguments)
    if unknown := set(args.tools) - set(TOOLS):
        parser.error(f"found {', '.join(unknown)}, expected {' or '.join(TOOLS)}.")
    found = args.sanitizer or shutil.which("compute-sanitizer") or USUAL
    if not Path(found).is_file():
        parser.error(
            "compute-sanitizer was not found; it comes with the CUDA toolkit. Name it with --sanitizer."
        )
    names = list(cases())
    chosen = [name for name in names if not args.only or any(word in name for word in args.only)]
    if not chosen:
        parser.error(
            f"--only: no case has {' or '.join(args.only)} in its name: {', '.join(names)}."
        )
    end = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    tools = args.tools or TOOLS
    wrong, n = [], 0
    for verdict in verdicts(Path(found), tools, chosen, args.jobs, args.limit, end):
        print(verdict.text(), flush=True)
        n += 1
        if verdict.problem:
            wrong.append(verdict)
            if args.log:
                with args.log.open("a", encoding="utf-8") as file:
                    file.write(f"{verdict.text()}\n{verdict.output}\n")
    print(f"{n - len(wrong)} of {n} are clean: {', '.join(tools)}.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
