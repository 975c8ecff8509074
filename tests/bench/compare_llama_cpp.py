"""Our speed on a graphics card beside llama.cpp's, in one run on one machine and the same file.

    python -m tests.bench.compare_llama_cpp MODEL.gguf --peer PATH/llama-bench [-p 512,2048] [-d 0,4096]
        [--passes 1,8,16] [--draft DRAFT.gguf --accept 5]

Ours comes from `engine.bench`, as in `lucebox bench`; a draft is loaded only for passes and for what it
brings. The peer runs with flash attention and all layers on the card; its pass of M tokens is a prompt of M
behind the same context. Without --peer only ours is measured. One JSON object on stdout, a table on stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import bench
from engine.config import EngineConfig, Spec
from engine.engine import Engine
from engine.passes import VERIFIED


def ours(
    path: Path, device: str, wanted: bench.Wanted, chunk: int, draft: str | None = None
) -> dict[str, Any]:
    """The report of `engine.bench` as facts; what drafts do not speed up is measured without one."""

    def measured(wanted: bench.Wanted, spec: Spec, draft: str | None) -> dict[str, Any]:
        engine = Engine()
        engine.start()
        try:
            pages = -(-wanted.longest // 64) * 64
            config = EngineConfig(
                device=device, max_ctx=max(64, pages), max_concurrency=1, prefill_chunk=chunk,
                spec=spec, draft=draft,
            )  # fmt: skip
            engine.load(path, config)
            return bench.measure(engine, wanted).facts()
        finally:
            engine.close()

    if draft is None:
        return measured(wanted, Spec.CHAIN, None)
    plain = measured(replace(wanted, rows=(), accept=None), Spec.OFF, None)
    n_decode = wanted.n_decode if wanted.accept else 0
    drafting = measured(replace(wanted, prompts=(0,), n_decode=n_decode), Spec.CHAIN, draft)
    return plain | {name: drafting[name] for name in ("passes", "forced")}


class Peer:
    """`llama-bench`: `seconds` of (prompt, written, depth), and a line of `failures` for a run that died."""

    def __init__(self, program: Path, path: Path, rounds: int) -> None:
        self._command = [
            str(program), "-m", str(path), "-ngl", "99", "-fa", "1", "-o", "jsonl", "-r", str(rounds)
        ]  # fmt: skip
        self.seconds: dict[tuple[int, int, int], float] = {}
        self.failures: list[str] = []

    def run(self, what: str, *flags: str) -> None:
        """Measure, and keep what was told before it ended."""
        done = subprocess.run([*self._command, *flags], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                key = row["n_prompt"], row["n_gen"], row.get("n_depth", 0)
                self.seconds[key] = row["avg_ns"] / 1e9
        if done.returncode:
            said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [
                "nothing"
            ]
            telling = [s for s in said if any(w in s.lower() for w in ("assert", "error", "abort"))]
            words = (telling or said)[-1][:160]
            self.failures.append(f"The peer ended with {done.returncode} in its {what}: {words}")
            print(self.failures[-1], file=sys.stderr)

    def passes(self, sizes: Sequence[int], depth: int) -> None:
        """Time passes behind a context; the size that it dies of is left out."""
        left = [m for m in sizes if m]
        while left:
            self.run("passes", "-p", _commas(left), "-n", "0", "-d", str(depth))
            left = [m for m in left if (m, 0, depth) not in self.seconds][1:]


def peer(
    program: Path, path: Path, prompts: Sequence[int], n: int, depths: Sequence[int],
    passes: Sequence[int], rounds: int,
) -> Peer:  # fmt: skip
    """What `llama-bench` measures: prompts, writing and passes in runs of their own."""
    found = Peer(program, path, rounds)
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
    """What, ours and theirs in tokens a second (passes and first tokens: milliseconds), and how many times as
    fast we are; parts of a step with a draft in passes of one row.
    """
    lines = []
    for row in facts["prefill"]:
        theirs = other.get((row["n_prompt"], 0, 0))
        rate = row["n_prompt"] / theirs if theirs else None
        lines.append(_line(f"prefill {row['n_prompt']}", row["tok_s"]["median"], rate, True))
        first = row["first_token_s"]["median"] * 1e3
        lines.append(_line(f"first token of {row['n_prompt']}", first, None, False))
    for row in facts["decode"]:
        depth = row["context"] if row["context"] > 1 else 0
        theirs = other.get((0, n, depth))
        rate = n / theirs if theirs else None
        lines.append(_line(f"decode at {depth}", row["tok_s"]["median"], rate, True))
        if row["of_read"]:
            lines.append(_line("  of read bandwidth", row["of_read"], None, True))
    for row in facts["passes"]:
        theirs = other.get((row["rows"], 0, row["context"]))
        name = f"pass of {row['rows']} at {row['context']}"
        lines.append(_line(name, row["seconds"] * 1e3, theirs * 1e3 if theirs else None, False))
    for row in facts["forced"]:
        depth = row["context"] if row["context"] > 1 else 0
        one = next(r["seconds"] for r in facts["passes"] if (r["rows"], r["context"]) == (1, depth))
        alone = other.get((0, n, depth))
        name = f"accept {row['accepted']:.2f} at {depth}"
        lines.append(_line(name, row["rate"]["median"], n / alone if alone else None, True))
        parts = {part: row[f"{part}_ms"] for part in ("draft", "verify", "sample")}
        parts |= {"elsewhere": row["step_ms"] - sum(parts.values())}
        for part, ms in {"a step": row["step_ms"], **parts}.items():
            lines.append(_line(f"  {part}, in passes of one", ms / 1e3 / one, None, False))
    return lines


def _line(name: str, mine: float, theirs: float | None, more_is_better: bool) -> dict[str, Any]:
    ratio = None
    if theirs:
        ratio = mine / theirs if more_is_better else theirs / mine
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
    parser.add_argument("--draft", help="a draft's file")
    parser.add_argument("--accept", type=int, help="tokens a pass that are taken of each draft")
    parser.add_argument("--prefill-chunk", type=int, default=2048)
    args = parser.parse_args()
    contexts = tuple(max(1, d) for d in args.d)
    passes = tuple(sorted({1, *args.passes}))
    wanted = bench.Wanted(args.p, args.n, contexts, args.r, passes, accept=args.accept)
    facts = ours(args.model, args.device, wanted, args.prefill_chunk, args.draft)
    other, failures = {}, []
    if args.peer:
        found = peer(args.peer, args.model, args.p, args.n, args.d, passes, args.r)
        other, failures = found.seconds, found.failures
    lines = table(facts, other, args.n)
    for line in lines:
        beside = f"{line['peer']:12,.2f}  {line['ratio']:6.2f} x" if line["peer"] else ""
        print(f"{line['what']:<28}{line['ours']:12,.2f}{beside}", file=sys.stderr)
    told = {"model": args.model.name, "ours": facts, "lines": lines, "peer_failures": failures}
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
