"""Our speed on a graphics card beside llama.cpp's, in one run on one machine and the same file.

    python -m tests.bench.compare_llama_cpp MODEL.gguf --peer PATH/llama-bench [-p 512,2048] [-d 0,4096]
        [--passes 1,8,16] [--fused] [--draft DRAFT.gguf --accept 5]

Ours comes from `engine.bench`, as in `lucebox bench`; a draft is loaded only for passes and for what it
brings. The peer runs with flash attention and all layers on the card; its pass of M tokens is a prompt of M
behind the same context, and its first token is its prompt, without the choice of a token. Without --peer only
ours is measured. One JSON object on stdout, a table on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from engine import bench
from engine.config import EngineConfig, Spec
from engine.engine import Engine
from engine.ops.cuda_library import Library
from engine.passes import VERIFIED
from tests.bench import limited

PEER_LIMIT_S = 100.0
"""That a call of the peer may take: it loads the model, and reads each prompt four times."""


@contextmanager
def without_cublas() -> Iterator[None]:
    """What is loaded meanwhile has the fused kernels alone, as on most PCs."""
    with mock.patch.object(Library, "of", return_value=None):
        yield


def measured(
    path: Path, device: str, wanted: bench.Wanted, chunk: int, spec: Spec, draft: str | None = None
) -> dict[str, Any]:
    """The report of `engine.bench` as facts."""
    engine = Engine()
    engine.start()
    try:
        pages = -(-wanted.longest // 64) * 64
        config = EngineConfig(
            device=device, max_ctx=max(64, pages), max_concurrency=1, prefill_chunk=chunk, spec=spec,
            draft=draft,
        )  # fmt: skip
        engine.load(path, config)
        return bench.measure(engine, wanted).facts()
    finally:
        engine.close()


def ours(
    path: Path,
    device: str,
    wanted: bench.Wanted,
    chunk: int,
    draft: str | None = None,
    fused: bool = False,
) -> dict[str, Any]:
    """What is measured of us; what drafts do not speed up without one, and with `fused` prompts once more
    without cuBLAS."""
    if draft is None:
        found = measured(path, device, wanted, chunk, Spec.CHAIN)
    else:
        plain = replace(wanted, rows=(), accept=None)
        found = measured(path, device, plain, chunk, Spec.OFF)
        n_decode = wanted.n_decode if wanted.accept else 0
        drafting = replace(wanted, prompts=(0,), n_decode=n_decode)
        with_it = measured(path, device, drafting, chunk, Spec.CHAIN, draft)
        found |= {name: with_it[name] for name in ("passes", "forced")}
    if fused:
        prompts = replace(wanted, n_decode=0, rows=(), accept=None)
        with without_cublas():
            found["fused"] = measured(path, device, prompts, chunk, Spec.OFF)["prefill"]
    return found


class Peer:
    """`llama-bench`: `seconds` of (prompt, written, depth), and a line of `failures` for a run that died or
    took longer than `limit_s`."""

    def __init__(self, program: Path, path: Path, rounds: int, limit_s: float) -> None:
        self._command = [
            str(program), "-m", str(path), "-ngl", "99", "-fa", "1", "-o", "jsonl", "-r", str(rounds)
        ]  # fmt: skip
        self._limit_s = limit_s
        self.seconds: dict[tuple[int, int, int], float] = {}
        self.failures: list[str] = []

    def run(self, what: str, *flags: str) -> bool:
        """Measure, and keep what was told before it ended; False where its time was over."""
        done = limited.run([*self._command, *flags], self._limit_s)
        for line in done.out.splitlines():
            if line.startswith("{") and line.endswith("}"):
                row = json.loads(line)
                key = row["n_prompt"], row["n_gen"], row.get("n_depth", 0)
                self.seconds[key] = row["avg_ns"] / 1e9
        if done.problem:
            self.failures.append(f"In its {what} the peer {done.problem}")
            print(self.failures[-1], file=sys.stderr)
        return done.code is not None

    def passes(self, sizes: Sequence[int], depth: int) -> None:
        """Time passes behind a context; the size that it dies of is left out."""
        left = [m for m in sizes if m]
        while left and self.run("passes", "-p", _commas(left), "-n", "0", "-d", str(depth)):
            left = [m for m in left if (m, 0, depth) not in self.seconds][1:]


def peer(
    program: Path, path: Path, prompts: Sequence[int], n: int, depths: Sequence[int],
    passes: Sequence[int], rounds: int, limit_s: float = PEER_LIMIT_S,
) -> Peer:  # fmt: skip
    """What `llama-bench` measures: prompts, writing and passes in runs of their own."""
    found = Peer(program, path, rounds, limit_s)
    if lengths := [p for p in prompts if p]:
        ubatch = str(max(512, min(2048, max(lengths))))
        found.run("prompts", "-p", _commas(lengths), "-n", "0", "-ub", ubatch)
    if n:
        found.run("writing", "-p", "0", "-n", str(n), "-d", _commas(depths))
    for depth in depths:
        found.passes(passes, depth)
    return found


def _commas(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def table(
    facts: dict[str, Any], other: dict[tuple[int, int, int], float], n: int
) -> list[dict[str, Any]]:
    """What, ours and theirs, and how many times as fast we are.

    Prompts and writing are tokens a second, first tokens and passes milliseconds, parts of a step with a
    draft steps of plain writing.
    """
    lines = []
    for kind, rows in (("", facts["prefill"]), ("fused ", facts.get("fused", ()))):
        for row in rows:
            size = row["n_prompt"]
            theirs = other.get((size, 0, 0))
            rate, first = row["tok_s"]["median"], row["first_token_s"]["median"] * 1e3
            lines.append(_line(f"{kind}prefill {size}", rate, size / theirs if theirs else None))
            if not kind:
                lines.append(_line(f"first token of {size}", first, _ms(theirs), less=True))
    for row in facts["decode"]:
        depth = row["context"] if row["context"] > 1 else 0
        theirs = other.get((0, n, depth))
        rate = row["tok_s"]["median"]
        lines.append(_line(f"decode at {depth}", rate, n / theirs if theirs else None))
        if row["of_read"]:
            lines.append(_line(f"of read bandwidth at {depth}", row["of_read"]))
    lines += _passes(facts, other, n)
    for row in facts["forced"]:
        depth = row["context"] if row["context"] > 1 else 0
        alone = other.get((0, n, depth))
        name = f"forced drafts at {depth}"
        lines.append(_line(name, row["rate"]["median"], n / alone if alone else None))
        lines.append(_line(f"{name}, tokens a step", row["accepted"]))
        lines.append(_line(f"{name}, rows a step", row["rows"]))
        lines.append(_line(f"{name}, times plain", row["speedup"]))
        parts = {part: row[f"{part}_ms"] for part in ("draft", "verify", "sample")}
        parts |= {"elsewhere": row["step_ms"] - sum(parts.values())}
        for part, ms in {"a step": row["step_ms"], **parts}.items():
            steps = ms / row["step_ms"] * row["steps_of_one"]
            lines.append(_line(f"{name}, {part} in decode steps", steps))
    return lines


def _passes(
    facts: dict[str, Any], other: dict[tuple[int, int, int], float], n: int
) -> list[dict[str, Any]]:
    """Each pass in milliseconds, in passes of one row, and in steps of plain writing."""
    rates = {row["context"]: row["tok_s"]["median"] for row in facts["decode"]}
    steps = {context if context > 1 else 0: 1 / rate for context, rate in rates.items()}
    ones = {row["context"]: row["seconds"] for row in facts["passes"] if row["rows"] == 1}
    lines = []
    for row in facts["passes"]:
        depth, seconds = row["context"], row["seconds"]
        theirs, its_one = other.get((row["rows"], 0, depth)), other.get((1, 0, depth))
        its_writing = other.get((0, n, depth))
        name = f"pass of {row['rows']} at {depth}"
        lines.append(_line(name, seconds * 1e3, _ms(theirs), less=True))
        for unit, one, its in (
            ("passes of one", ones.get(depth), its_one),
            ("decode steps", steps.get(depth), its_writing / n if its_writing else None),
        ):
            if one:
                cost = theirs / its if theirs and its else None
                lines.append(_line(f"{name} in {unit}", seconds / one, cost, less=True))
    return lines


def _ms(seconds: float | None) -> float | None:
    return seconds * 1e3 if seconds else None


def _line(
    name: str, mine: float, theirs: float | None = None, less: bool = False
) -> dict[str, Any]:
    """With how many times as good we are; `less` is better."""
    ratio = None
    if theirs and mine:
        ratio = theirs / mine if less else mine / theirs
    return {"what": name, "ours": mine, "peer": theirs, "ratio": ratio}


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    return tuple(int(part) for part in text.split(","))


def main() -> int:
    """Measure, and print a table and one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--peer", type=Path, help="llama.cpp's llama-bench")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("-p", type=numbers, default=(512, 2048))
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("-d", type=numbers, default=(0,))
    parser.add_argument("-r", type=int, default=3)
    parser.add_argument("--passes", type=numbers, default=VERIFIED, help="rows of passes")
    parser.add_argument("--fused", action="store_true", help="prompts without cuBLAS, too")
    parser.add_argument("--draft", help="a draft's file")
    parser.add_argument("--accept", type=int, help="tokens a pass that are taken of each draft")
    parser.add_argument("--prefill-chunk", type=int, default=2048)
    parser.add_argument(
        "--peer-limit",
        type=float,
        default=PEER_LIMIT_S,
        help="seconds that each call of it may take",
    )
    args = parser.parse_args()
    if args.peer and not args.peer.is_file():
        parser.error(f"--peer: {args.peer} is not a file.")
    contexts = tuple(max(1, d) for d in args.d)
    passes = tuple(sorted({1, *args.passes}))
    wanted = bench.Wanted(args.p, args.n, contexts, args.r, passes, accept=args.accept)
    facts = ours(args.model, args.device, wanted, args.prefill_chunk, args.draft, args.fused)
    other, failures = {}, []
    if args.peer:
        found = peer(args.peer, args.model, args.p, args.n, args.d, passes, args.r, args.peer_limit)
        other, failures = found.seconds, found.failures
    lines = table(facts, other, args.n)
    for line in lines:
        beside = f"{line['peer']:12,.2f}  {line['ratio']:6.2f} x" if line["ratio"] else ""
        print(f"{line['what']:<44}{line['ours']:12,.2f}{beside}", file=sys.stderr)
    told = {"model": args.model.name, "ours": facts, "lines": lines, "peer_failures": failures}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
