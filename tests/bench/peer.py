"""Our speed beside llama.cpp's, in one run on one machine: `python -m tests.bench.peer MODEL|--demo`.

Same file, same threads, the peer's own defaults otherwise. Each round measures both engines in turn,
prefill and decode apart; the ratio is that of the medians. Needs `xllamacpp` (in the `dev` extra) and a
machine that is otherwise quiet: the peer's threads spin while they wait, so its figures collapse beside
other load.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from engine import demo
from engine.bench import Prompts, ordinary_ids, run
from engine.config import EngineConfig, Precision, Spec
from engine.devices import physical_cores
from engine.engine import Engine

# OpenMP threads of the peer spin for a while after their work; they must not count against us.
SETTLE_S = 0.3


class Peer:
    """llama.cpp's server inside this process."""

    def __init__(self, path: Path, threads: int, n_ctx: int) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.verbosity = -1
        params.n_ctx = n_ctx
        params.n_parallel = 1
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        self._server = xllamacpp.Server(params)

    def run(self, ids: list[int], n_tokens: int) -> dict[str, float]:
        """The timings of generating `n_tokens` greedily after `ids`, as the peer measures them."""
        answer: Any = self._server.handle_completions(
            {
                "prompt": ids,
                "n_predict": n_tokens,
                "temperature": 0,
                "ignore_eos": True,
                "cache_prompt": False,
            }
        )
        answer = json.loads(answer) if isinstance(answer, str) else answer
        timings: dict[str, float] = answer["timings"]
        if timings["prompt_n"] != len(ids) or timings["predicted_n"] != n_tokens:
            raise RuntimeError(f"The peer did not do what was asked: {timings}")
        return timings

    def prefill(self, ids: list[int]) -> float:
        """Prompt tokens a second."""
        return self.run(ids, 1)["prompt_per_second"]

    def decode(self, ids: list[int], n: int) -> float:
        """Written tokens a second; the first one is part of the prompt's time, as on our side."""
        return n / (self.run(ids, n + 1)["predicted_ms"] / 1e3)


def one_round(
    engine: Engine, peer: Peer, prompt: list[int], start: list[int], n: int
) -> tuple[float, ...]:
    """Tokens a second: our prefill, the peer's, our decode, the peer's."""
    ours = run(engine, prompt, 1).prefill_rate or 0.0
    theirs = peer.prefill(prompt)
    time.sleep(SETTLE_S)
    our_decode = run(engine, start, n + 1).decode_rate or 0.0
    their_decode = peer.decode(start, n)
    time.sleep(SETTLE_S)
    return ours, theirs, our_decode, their_decode


def main() -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("-p", type=int, default=512, help="prompt tokens")
    parser.add_argument("-n", type=int, default=128, help="written tokens")
    parser.add_argument("-r", type=int, default=5, help="rounds")
    parser.add_argument("--threads", type=int, default=physical_cores())
    parser.add_argument("--precision", type=Precision, default=Precision.FAST)
    args = parser.parse_args()
    path = args.model or (demo.install() if args.demo else None)
    if path is None:
        parser.error("give a model file, or --demo")
    n_ctx = -(-max(args.p, args.n + 1) // 64) * 64 + 64

    engine = Engine()
    engine.start()
    config = EngineConfig(
        threads=args.threads,
        precision=args.precision,
        max_ctx=n_ctx,
        max_concurrency=1,
        spec=Spec.OFF,
    )
    info = engine.load(path, config)
    peer = Peer(path, args.threads, n_ctx)
    prompts = Prompts(ordinary_ids(engine, info.vocab_size))
    ours: dict[str, list[float]] = {"prefill": [], "decode": []}
    theirs: dict[str, list[float]] = {"prefill": [], "decode": []}
    load_before = psutil.getloadavg()[0]
    for number in range(args.r + 1):
        figures = one_round(engine, peer, prompts.next(args.p), prompts.next(1), args.n)
        if number == 0:
            continue  # warms both up
        for kind, i in (("prefill", 0), ("decode", 2)):
            ours[kind].append(figures[i])
            theirs[kind].append(figures[i + 1])
        print(
            f"round {number}: prefill {figures[0]:.1f} beside {figures[1]:.1f}, "
            f"decode {figures[2]:.1f} beside {figures[3]:.1f} tok/s",
            file=sys.stderr,
        )
    engine.close()
    report: dict[str, Any] = {
        "model": info.name,
        "threads": args.threads,
        "precision": args.precision.value,
        "n_prompt": args.p,
        "n_decode": args.n,
        "load_before": load_before,
    }
    for kind in ("prefill", "decode"):
        a, b = statistics.median(ours[kind]), statistics.median(theirs[kind])
        report[kind] = {"ours": a, "peer": b, "ratio": a / b, "all": [ours[kind], theirs[kind]]}
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
