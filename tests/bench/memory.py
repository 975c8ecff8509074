"""What a model takes of a card beside what was predicted, how fast it is loaded, and what that takes of RAM.

    python -m tests.bench.memory MODEL.gguf [--draft DRAFT.gguf]

Nobody else may use the card, which is the first one. One JSON object on stdout, the addends on stderr.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.config import EngineConfig, SamplingParams, Spec
from engine.devices import devices
from engine.engine import Engine
from engine.follow import follow
from engine.gguf import read_header
from engine.placement import estimate
from engine.readings import Watcher
from engine.types import Finished, Request
from tests.engine.oracle import model_path

DEVICE = "cuda:0"
OWNERS = ("model", "draft", "kv", "work")
PROMPT_TOKENS, TOKENS = 3000, 48
_EACH_S = 0.02
_MIB, _GIB = 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that a model took of the card, and those predicted, in all and by owner.

    `driver` are those of an empty context and of what a first model leaves, which are neither's. `ram` is the
    most that loading took of the host beside mapped files; it took `load_s` for `file_bytes`.
    """

    took: int
    predicted: int
    owned: dict[str, int]
    foreseen: dict[str, int]
    driver: tuple[int, int]
    ram: int
    load_s: float
    file_bytes: int

    @property
    def off(self) -> float:
        """The difference as a share of what was predicted."""
        return abs(self.took - self.predicted) / self.predicted

    def lines(self) -> list[dict[str, Any]]:
        """As `compare_llama_cpp` has them; what was predicted in the peer's place."""
        figures: list[tuple[str, float, float | None]] = [
            ("memory off by", self.off, None),
            ("memory of the card, MiB", self.took / _MIB, self.predicted / _MIB),
            ("host memory of loading, GiB", self.ram / _GIB, None),
            ("loading, GB/s", self.file_bytes / self.load_s / 1e9, None),
        ]
        return [{"what": w, "ours": a, "peer": b, "ratio": None} for w, a, b in figures]

    def text(self) -> str:
        """The addends."""
        lines = [f"{self.took / _MIB:,.0f} MiB, predicted {self.predicted / _MIB:,.0f}"]
        for kind in OWNERS:
            found, foreseen = self.owned.get(kind, 0) / _MIB, self.foreseen.get(kind, 0) / _MIB
            lines.append(f"  {kind:<8}{found:>10,.1f} MiB, predicted {foreseen:>10,.1f}")
        beyond = self.took - sum(self.owned.get(kind, 0) for kind in OWNERS)
        context, first = self.driver
        lines.append(f"  code, graphs and what allocations are rounded by {beyond / _MIB:,.1f} MiB")
        lines.append(
            f"  context {context / _MIB:,.0f}, what a first model leaves {first / _MIB:,.0f}"
        )
        return "\n".join(lines)


@dataclass(slots=True)
class _Most:
    found: int = 0
    stop: threading.Event = field(default_factory=threading.Event)


@contextmanager
def most_ram() -> Iterator[_Most]:
    """The most that this process holds meanwhile, in bytes, beside mapped files."""
    most = _Most()

    def look() -> None:
        while not most.stop.wait(_EACH_S):
            most.found = max(most.found, ram())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        most.stop.set()
        thread.join()


def ram() -> int:
    """Bytes of memory of this process that no file holds."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * sum(int(n) for n in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", text, re.M))


def of_card(runtime: Any) -> int:
    """Bytes of the card that this process holds; where the driver does not tell, that all do."""
    card = next(iter(Watcher().read()), None)
    if card is not None and card.ours:
        return card.ours
    free, total = runtime.memGetInfo()
    return int(total - free)


def measure(engine: Engine, path: Path, draft: Path | None, runtime: Any) -> Held:
    """Load a model, let it answer a prompt, and see what is held; `runtime` are CUDA's calls."""
    runtime.setDevice(0)
    runtime.free(0)
    context = of_card(runtime)
    engine.load(model_path("llama"), EngineConfig(device=DEVICE, max_ctx=256))
    engine.unload()
    begun = of_card(runtime)  # what the driver keeps from here on is not the model's
    config = EngineConfig(
        device=DEVICE, max_ctx=8192, max_concurrency=1,
        spec=Spec.CHAIN if draft else Spec.OFF, draft=str(draft) if draft else None,
    )  # fmt: skip
    predicted = estimate(read_header(path), config, devices())
    before = ram()
    with most_ram() as most:
        started = time.perf_counter()
        engine.load(path, config)
        load_s = time.perf_counter() - started
    ids = np.random.default_rng(1).integers(10, 200, PROMPT_TOKENS).tolist()
    sampling = SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True)
    *_, end = follow(engine, Request(ids=ids, sampling=sampling))
    assert isinstance(end, Finished)
    return Held(
        took=of_card(runtime) - begun,
        predicted=predicted.total,
        owned={part.kind: part.bytes for part in engine.metrics().memory},
        foreseen={part.kind: part.bytes for part in predicted.parts if part.kind in OWNERS},
        driver=(context, begun - context),
        ram=max(0, most.found - before),
        load_s=load_s,
        file_bytes=sum(file.stat().st_size for file in (path, draft) if file),
    )


def main() -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--draft", type=Path)
    args = parser.parse_args()
    try:
        import cupy
    except ImportError:
        parser.error("A card's memory is measured through CuPy, which is not installed.")
    engine = Engine()
    engine.start()
    try:
        held = measure(engine, args.model, args.draft, cupy.cuda.runtime)
    finally:
        engine.close()
    print(held.text(), file=sys.stderr)
    print(json.dumps({"model": args.model.name, "lines": held.lines()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
