"""Times a model file on the card: decode, passes of M rows, prompts, and each kernel's share.

    python -m tests.gpu.measure MODEL.gguf [--contexts 128,4096] [--prompts 512,2048]
        [--profile [--profiled 1,16]]

Medians of repeated steps; short ones give the likeliest tokens alone, as greedy answers need them. "of read"
is the bytes of the weights over the time, as a share of what a kernel that only reads gets from one large
buffer in the same process.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.gguf import open_model
from engine.models.base import model_of
from engine.ops.base import MOST_CHOSEN, Limits, StepInput
from engine.ops.choosing import Choice
from engine.ops.cuda import CudaOps
from engine.ops.cuda_probe import profile as kernel_times
from engine.weights import load_weights
from tests.bench.compare_llama_cpp import without_cublas

READ = r"""
extern "C" __global__ void read(const uint4* p, size_t n, unsigned* out) {
  unsigned sum = 0;
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x, s = (size_t)gridDim.x * blockDim.x;
  for (; i + 3 * s < n; i += 4 * s) {
    uint4 a = p[i], b = p[i + s], c = p[i + 2 * s], d = p[i + 3 * s];
    sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  if (sum == 0x12345) *out = sum;
}
"""


def read_bandwidth() -> float:
    """Bytes a second of reading 8 GB."""
    import cupy

    size = min(8 << 30, cupy.cuda.runtime.memGetInfo()[0] // 2)
    data, out = cupy.empty(size, cupy.uint8), cupy.zeros(1, cupy.uint32)
    kernel = cupy.RawModule(code=READ, backend="nvrtc").get_function("read")
    times = []
    for _ in range(7):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        kernel((132 * 8,), (512,), (data, np.uint64(size // 16), out))
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    del data
    cupy.get_default_memory_pool().free_all_blocks()
    return size / float(np.median(times))


class Timed:
    """A loaded model and its steps."""

    def __init__(
        self,
        path: Path,
        context: int,
        chunk: int,
        plain: bool = False,
        cache: Path | None = None,
        fused: bool = False,
    ) -> None:
        began = time.perf_counter()
        pages = -(-(context + 64) // 64)
        self.limits = Limits(
            rows=chunk,
            sequences=1,
            pages=pages,
            page_tokens=64,
            pages_per_sequence=pages,
            slots=1,
        )
        self.ops = CudaOps("cuda:0", cache=cache)
        if plain:
            self.ops._dependent = False
        with open_model(path) as file:
            model = model_of(file.architecture)
            cfg = model.read_config(file)
            weights = load_weights(file, model.tensors(cfg), self.ops)
            with without_cublas() if fused else nullcontext():
                self.ops.allocate(cfg.shape, self.limits)
            with self.ops.recording():
                model.forward(self.ops, weights, cfg)
        self.vocabulary = cfg.n_vocab
        self.loaded = time.perf_counter() - began
        self.rng = np.random.default_rng(1)

    def step(self, start: int, rows: int, logits: int | None = None) -> StepInput:
        tokens = self.rng.integers(0, self.vocabulary, rows).astype(np.int32)
        table = np.arange(self.limits.pages_per_sequence, dtype=np.int32)[None]
        index = np.arange(rows, dtype=np.int32)
        wanted = index[rows - (rows if logits is None else logits) :]
        zeros = np.zeros(rows, np.int32)
        return StepInput(tokens, start + index, zeros, table, wanted, zeros[:1])

    def run(self, step: StepInput) -> None:
        if (wanted := len(step.logit_rows)) <= MOST_CHOSEN:
            choices = [Choice(self.vocabulary)] * wanted
            self.ops.collect(self.ops.launch(replace(step, choices=choices)))
        else:
            self.ops.run(step)

    def time(self, start: int, rows: int, repeats: int, logits: int | None = None) -> float:
        step = self.step(start, rows, logits)
        for _ in range(3):
            self.run(step)
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.run(step)
            times.append(time.perf_counter() - began)
        return float(np.median(times))


def profile(timed: Timed, start: int, rows: int) -> None:
    """Print the kernels of a step by their time."""
    times = kernel_times(timed.ops, timed.step(start, rows, rows if rows <= 32 else 1))
    for t in times:
        us = t.seconds * 1e6
        print(f"    {t.name:22.22s} {us:9.1f} us in {t.launches:5d}, {us / t.launches:7.2f} each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--contexts", default="128,4096")
    parser.add_argument("--prompts", default="512,2048")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--profiled", default="1,16", help="rows of the short steps of --profile")
    parser.add_argument("--long", type=int, default=0, help="tokens of a prompt read in pieces")
    parser.add_argument("--cache", type=Path, help="folder for compiled kernels")
    parser.add_argument("--plain", action="store_true", help="no programmatic dependent launches")
    parser.add_argument("--fused", action="store_true", help="without cuBLAS, as on most PCs")
    args = parser.parse_args()
    contexts = [int(c) for c in args.contexts.split(",")]
    prompts = [int(c) for c in args.prompts.split(",")]
    bandwidth = read_bandwidth()
    timed = Timed(
        args.model,
        max(*contexts, *prompts, args.long),
        max(*prompts, 64),
        args.plain,
        args.cache,
        args.fused,
    )
    memory = timed.ops.memory()
    print(
        f"{args.model.name}: loaded in {timed.loaded:.1f} s, {memory}, read {bandwidth / 1e9:.0f} GB/s"
    )
    timed.time(0, max(contexts) % max(prompts) or max(prompts), 1, 1)
    for context in contexts:
        seconds = timed.time(context, 1, 30)
        share = memory["model"] / seconds / bandwidth
        print(
            f"decode at {context}: {1 / seconds:7.1f} tok/s, {seconds * 1e3:.3f} ms, {share:.1%} of read"
        )
        for rows in (2, 4, 8, 16, 32):
            pass_seconds = timed.time(context, rows, 15)
            print(
                f"    pass of {rows:2d}: {pass_seconds * 1e3:7.3f} ms, {pass_seconds / seconds:.2f} decodes"
            )
    for rows in prompts:
        seconds = timed.time(0, rows, 5, 1)
        print(f"prompt of {rows}: {rows / seconds:8.0f} tok/s, {seconds * 1e3:.1f} ms")
    if args.long:
        began = time.perf_counter()
        for start in range(0, args.long, max(prompts)):
            timed.ops.run(timed.step(start, max(prompts), 1))
        seconds = time.perf_counter() - began
        print(
            f"prompt of {args.long} in pieces: {args.long / seconds:8.0f} tok/s, {seconds * 1e3:.1f} ms"
        )
    if args.profile:
        for rows in (*map(int, args.profiled.split(",")), prompts[-1]):
            print(f"  kernels of {rows} rows at {contexts[0] if rows < 64 else 0}")
            profile(timed, contexts[0] if rows < 64 else 0, rows)
    timed.ops.close()


if __name__ == "__main__":
    main()
