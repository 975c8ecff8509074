"""Our speed on a graphics card beside llama.cpp's, in one run on one machine and the same file.

    python -m tests.bench.compare_llama_cpp MODEL.gguf --peer PATH/llama-bench [-p 512,2048] [-d 0,4096]
        [--draft DRAFT.gguf --accept 5]

Ours comes from `engine.bench`, as in `lucebox bench`. The peer runs with flash attention and all layers on
the card; its pass of M tokens is a prompt of M behind the same context. Without --peer only ours is measured.
One JSON object on stdout, a table on stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import bench
from engine.config import EngineConfig, Spec
from engine.engine import Engine
from engine.passes import VERIFIED


def ours(
    path: Path, device: str, wanted: bench.Wanted, chunk: int, draft: str | None = None
) -> dict[str, Any]:
    """The report of `engine.bench` as facts."""
    engine = Engine()
    engine.start()
    try:
        pages = -(-wanted.longest // 64) * 64
        config = EngineConfig(
            device=device, max_ctx=max(64, pages), max_concurrency=1, prefill_chunk=chunk,
            spec=Spec.CHAIN, draft=draft,
        )  # fmt: skip
        engine.load(path, config)
        return bench.measure(engine, wanted).facts()
    finally:
        engine.close()


def peer(
    program: Path, path: Path, prompts: Sequence[int], n: int, depths: Sequence[int], rounds: int
) -> dict[tuple[int, int, int], float]:
    """Seconds of (prompt, written, depth), as `llama-bench` measures them."""
    found: dict[tuple[int, int, int], float] = {}

    def run(*flags: str) -> None:
        command = [str(program), "-m", str(path), "-ngl", "99", "-fa", "1", "-o", "jsonl"]
        done = subprocess.run(
            [*command, "-r", str(rounds), *flags], capture_output=True, text=True, check=True
        )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                row = json.loads(line)
                key = row["n_prompt"], row["n_gen"], row.get("n_depth", 0)
                found[key] = row["avg_ns"] / 1e9

    ubatch = str(max(512, min(2048, max(prompts, default=0))))
    if prompts:
        run("-p", ",".join(map(str, prompts)), "-n", "0", "-ub", ubatch)
    passes = ",".join(map(str, VERIFIED))
    run("-p", passes, "-n", str(n), "-d", ",".join(map(str, depths)))
    return found


def table(
    facts: dict[str, Any], other: dict[tuple[int, int, int], float], n: int
) -> list[dict[str, Any]]:
    """What, ours and theirs in tokens a second (passes: milliseconds), and how many times as fast we are."""
    lines = []
    for row in facts["prefill"]:
        theirs = other.get((row["n_prompt"], 0, 0))
        rate = row["n_prompt"] / theirs if theirs else None
        lines.append(_line(f"prefill {row['n_prompt']}", row["tok_s"]["median"], rate, True))
    for row in facts["decode"]:
        depth = row["context"] if row["context"] > 1 else 0
        theirs = other.get((0, n, depth))
        rate = n / theirs if theirs else None
        lines.append(_line(f"decode at {depth}", row["tok_s"]["median"], rate, True))
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
        lines.append(_line("  a step, in passes of one", row["step_ms"] / 1e3 / one, None, False))
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
    parser.add_argument("--draft", help="a draft's file")
    parser.add_argument("--accept", type=int, help="tokens a pass that are taken of each draft")
    parser.add_argument("--prefill-chunk", type=int, default=2048)
    args = parser.parse_args()
    contexts = tuple(max(1, d) for d in args.d)
    wanted = bench.Wanted(args.p, args.n, contexts, args.r, VERIFIED, accept=args.accept)
    facts = ours(args.model, args.device, wanted, args.prefill_chunk, args.draft)
    other = peer(args.peer, args.model, args.p, args.n, args.d, args.r) if args.peer else {}
    lines = table(facts, other, args.n)
    for line in lines:
        beside = f"{line['peer']:12,.2f}  {line['ratio']:6.2f} x" if line["peer"] else ""
        print(f"{line['what']:<22}{line['ours']:12,.2f}{beside}", file=sys.stderr)
    print(json.dumps({"model": args.model.name, "ours": facts, "lines": lines}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
