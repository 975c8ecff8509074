"""Our speed and llama.cpp's on one model, in turns, so that both see the same state of the machine.

    python tests/bench/against_peer.py MODEL.gguf [--threads 2] [--rounds 5] [-p 512] [-n 128]

Each round is a fresh process of `lucebox bench` and one of `peer.py`. Prints JSON: medians of the rounds'
medians in tokens a second, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def run(*command: str) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def main() -> None:
    """Alternate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-p", dest="prompt", default="512")
    parser.add_argument("-n", dest="decode", default="128")
    options = parser.parse_args()
    model = str(options.model.absolute())
    rates: dict[str, list[float]] = {}
    for number in range(options.rounds):
        ours = run(
            "-m", "engine.cli", "bench", model, "--json", "--threads", options.threads,
            "-p", options.prompt, "-n", options.decode, "-r", "2",
        )  # fmt: skip
        peer = run(
            "tests/bench/peer.py", model, "--threads", options.threads, "--prefill", options.prompt,
            "--decode", options.decode, "--repeat", "2",
        )  # fmt: skip
        for name in ("prefill", "decode"):
            rates.setdefault(f"{name}_ours", []).append(ours[f"{name}_tok_s"]["median"])
            rates.setdefault(f"{name}_peer", []).append(peer[f"{name}_median"])
        print(f"round {number + 1} of {options.rounds}", rates, file=sys.stderr)
    result = {name: round(statistics.median(values), 2) for name, values in rates.items()}
    for name in ("prefill", "decode"):
        result[f"{name}_ratio"] = round(result[f"{name}_ours"] / result[f"{name}_peer"], 3)
    print(json.dumps({"model": options.model.name, "threads": int(options.threads), **result}))


if __name__ == "__main__":
    main()
