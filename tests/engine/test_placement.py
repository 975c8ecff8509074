"""Estimates add up, plans are final, and a number of the user's is never changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from engine.config import EngineConfig, Plan, Precision, Spec
from engine.devices import Device
from engine.entry import Entry, inspect
from engine.errors import BadRequest, OutOfMemory
from engine.footprint import PAGE_TOKENS, Footprint
from engine.gguf import open_model, read_header
from engine.loading import load_model
from engine.metrics import MemoryPart
from engine.ops.cpu import CpuOps
from engine.placement import (
    DEFAULT_CTX,
    Estimate,
    Taken,
    estimate,
    resolve,
    size_text,
)
from engine.quants import TYPES, by_name
from tests.engine.gguf_writer import ARRAY, I32, STRING, U32, gguf, model, pair, tensor

GIB = 1 << 30
PlanOf = Callable[[Footprint, EngineConfig, Device], Plan]


def cpu(total: float = 16, free: float = 12) -> Device:
    return Device("cpu", "cpu", "Test CPU", int(total * GIB), int(free * GIB), 6)


def eight_billion(context: int = 131_072, weights: float = 4.7) -> Footprint:
    """A model of 32 layers with 8 heads of 128 dims for keys and values."""
    size = int(weights * GIB)
    return Footprint(size, 0, context, 32 * 8 * 256, 400_000, 128_256, card_weights=size)


def entry(footprint: Footprint | None) -> Entry:
    return Entry(Path("m.gguf"), (Path("m.gguf"),), "m", "chat", footprint=footprint)


def bytes_of(found: Estimate, kind: str) -> int:
    return sum(p.bytes for p in found.parts if p.kind == kind)


def test_the_footprint_of_a_real_file(fixtures: Path) -> None:
    with open_model(fixtures / "qwen3.gguf") as file:
        found = Footprint.of(file)
        meta, arch = file.meta, "qwen3"
        heads, layers = meta[f"{arch}.attention.head_count_kv"], meta[f"{arch}.block_count"]
        dims = meta[f"{arch}.attention.key_length"] + meta[f"{arch}.attention.value_length"]
        assert found.kv_values == layers * heads * dims
        assert found.weights == sum(t.n_bytes for t in file.tensors.values())  # F16 and F32
        assert found.context == meta[f"{arch}.context_length"] and found.row > 0
    assert inspect(fixtures / "qwen3.gguf").footprint == found


@pytest.mark.parametrize(
    ("more", "kv_values"),
    [
        ([pair("llama.attention.head_count_kv", U32, 2)], 4 * 2 * 32),
        ([], 4 * 4 * 32),
        ([pair("llama.attention.head_count_kv", ARRAY, (I32, [0, 2, 0, 1]))], 3 * 32),
        ([pair("llama.full_attention_interval", U32, 4)], 1 * 4 * 32),
        ([pair("llama.attention.key_length", U32, 64), pair("llama.attention.value_length", U32, 8)],
         4 * 4 * 72),
        ([pair("llama.attention.head_count_kv", STRING, "x")], 4 * 4 * 32),
    ],
)  # fmt: skip
def test_keys_and_values_of_a_token(tmp_path: Path, more: list[bytes], kv_values: int) -> None:
    base = [
        pair("llama.block_count", U32, 4), pair("llama.embedding_length", U32, 64),
        pair("llama.attention.head_count", U32, 4), *more,
    ]  # fmt: skip
    path = tmp_path / "m.gguf"
    path.write_bytes(model(more=base))
    assert Footprint.of(read_header(path)).kv_values == kv_values


def test_nonsense_in_a_header_gives_zeros_and_not_an_error(tmp_path: Path) -> None:
    more = [
        pair("llama.block_count", STRING, "x"), pair("llama.embedding_length", I32, -5),
        pair("llama.feed_forward_length", ARRAY, (STRING, ["a"])),
        pair("tokenizer.ggml.tokens", U32, 3),
    ]  # fmt: skip
    path = tmp_path / "m.gguf"
    path.write_bytes(model(more=more))
    assert Footprint.of(read_header(path)) == Footprint(16, 0, 0, 0, 0, 0, card_weights=16)
    found = estimate(read_header(path), EngineConfig(), [cpu()])
    assert found.verdict == "fits" and "does not say" in found.explanation


@pytest.mark.parametrize("free", [0.5, 3, 5, 5.5, 6, 8, 12, 16])
@pytest.mark.parametrize("ctx", [None, 64, 1000, 16_384, 131_072])
@pytest.mark.parametrize("leaving", [0, 2 * GIB, 99 * GIB])
def test_the_addends_add_up(free: float, ctx: int | None, leaving: int) -> None:
    device = cpu(free=free)
    found = estimate(entry(eight_billion()), EngineConfig(max_ctx=ctx), [device], leaving)
    parts = {p.kind: p.bytes for p in found.parts}
    assert len(parts) == len(found.parts) and min(parts.values()) >= 0
    assert parts["model"] + parts["kv"] + parts["work"] == found.total
    shortfall = max(0, found.total - found.available)
    assert sum(parts.values()) == device.memory_total + shortfall
    assert (found.verdict == "too large") == (found.total > found.available)
    assert ctx is None or found.context == ctx


def test_the_words_and_their_numbers() -> None:
    roomy = estimate(entry(eight_billion()), EngineConfig(), [cpu()])
    assert roomy.verdict == "fits" and roomy.context == DEFAULT_CTX
    assert "weights 4.7 GB" in roomy.explanation and "16,384 tokens" in roomy.explanation
    close = estimate(entry(eight_billion()), EngineConfig(), [cpu(free=6.5)])
    assert close.verdict == "tight" and "16,384 tokens would not fit" in close.explanation
    assert close.context < DEFAULT_CTX and close.context % PAGE_TOKENS == 0
    short = estimate(entry(eight_billion()), EngineConfig(), [cpu(free=4)])
    assert short.verdict == "too large" and "missing" in short.explanation


def test_the_model_that_leaves_makes_room() -> None:
    device = cpu(free=4)
    assert estimate(entry(eight_billion()), EngineConfig(), [device]).verdict == "too large"
    after = estimate(entry(eight_billion()), EngineConfig(), [device], leaving=8 * GIB)
    assert after.verdict == "fits" and bytes_of(after, "other") == 4 * GIB


def test_more_free_memory_never_makes_it_worse() -> None:
    order = ["too large", "tight", "fits"]
    last = (0, 0)
    for tenths in range(5, 160, 5):
        found = estimate(entry(eight_billion()), EngineConfig(), [cpu(free=tenths / 10)])
        now = (order.index(found.verdict), found.context)
        assert now >= last
        last = now
    assert last == (2, DEFAULT_CTX)


def test_files_that_cannot_be_read_and_devices_that_are_not_there() -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        estimate(entry(None), EngineConfig(), [cpu()])
    with pytest.raises(BadRequest, match=r"cuda:3.*expected one of cpu"):
        estimate(entry(eight_billion()), EngineConfig(device="cuda:3"), [cpu()])


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlanOf:
    """`resolve` for a footprint, a configuration and a device."""
    path = tmp_path / "m.gguf"
    path.write_bytes(model(name="Big"))

    def resolved(footprint: Footprint, config: EngineConfig, device: Device) -> Plan:
        monkeypatch.setattr(Footprint, "of", classmethod(lambda cls, header: footprint))
        return resolve(config, read_header(path), [device])

    return resolved


def test_a_plan_has_all_numbers(plan: PlanOf) -> None:
    found = plan(eight_billion(), EngineConfig(), cpu())
    assert (found.device, found.threads, found.page_tokens) == ("cpu", 6, PAGE_TOKENS)
    assert found.max_ctx == DEFAULT_CTX and found.prefill_chunk == 512
    one = DEFAULT_CTX // PAGE_TOKENS
    assert found.n_pages == one + 3 * (one // 4)
    assert any("16,384 of the 131,072" in note for note in found.notes)


def test_a_card_with_room_reads_prompts_in_larger_steps(plan: PlanOf) -> None:
    roomy, full = card(0, 24, 23), card(0, 8, 6.5)
    assert plan(eight_billion(), EngineConfig(device="cuda:0"), roomy).prefill_chunk == 2048
    found = plan(eight_billion(), EngineConfig(device="cuda:0"), full)
    assert found.prefill_chunk == 512 and found.max_ctx < DEFAULT_CTX
    chosen = EngineConfig(device="cuda:0", prefill_chunk=96)
    assert plan(eight_billion(), chosen, roomy).prefill_chunk == 96


def test_the_model_s_own_context_where_it_is_smaller(plan: PlanOf) -> None:
    found = plan(eight_billion(context=2048), EngineConfig(), cpu())
    assert found.max_ctx == 2048 and found.notes == ()
    assert plan(replace(eight_billion(), context=0), EngineConfig(), cpu()).max_ctx == 4096


@pytest.mark.parametrize("ctx", [64, 1000, 16_384, 40_000, 131_072])
@pytest.mark.parametrize("free", [2.0, 6.0, 30.0])
def test_the_user_s_context_is_kept(plan: PlanOf, ctx: int, free: float) -> None:
    device = cpu(total=32, free=free)
    config = EngineConfig(max_ctx=ctx, threads=3, prefill_chunk=100, max_concurrency=2)
    found = plan(eight_billion(), config, device)
    assert (found.max_ctx, found.threads, found.prefill_chunk) == (ctx, 3, 100)
    assert found.n_pages * PAGE_TOKENS >= ctx
    expected = estimate(entry(eight_billion()), config, [device])
    assert any("may be slow" in note for note in found.notes) == (expected.verdict == "too large")


def test_what_can_never_fit_is_refused_with_both_numbers(plan: PlanOf) -> None:
    with pytest.raises(OutOfMemory) as raised:
        plan(eight_billion(), EngineConfig(max_ctx=131_072), cpu())
    message = str(raised.value)
    for word in (
        "131,072 tokens",
        "needs 21.0 GB",
        "weights 4.7 GB",
        "16.0 GB",
        "12.0 GB are free",
        "at most",
    ):
        assert word in message
    most = int(message.split("at most ")[1].split(" tokens")[0].replace(",", ""))
    assert plan(eight_billion(), EngineConfig(max_ctx=most), cpu()).max_ctx == most


def test_weights_that_can_never_fit(plan: PlanOf) -> None:
    with pytest.raises(OutOfMemory, match="smaller model"):
        plan(eight_billion(weights=40), EngineConfig(), cpu())


def test_an_automatic_context_shrinks_and_says_so(plan: PlanOf) -> None:
    found = plan(eight_billion(), EngineConfig(), cpu(free=6.5))
    assert 2048 <= found.max_ctx < DEFAULT_CTX
    assert any(f"{found.max_ctx:,} tokens, not 16,384" in note for note in found.notes)


def test_more_than_the_model_was_made_for_is_noted(plan: PlanOf) -> None:
    found = plan(eight_billion(context=4096), EngineConfig(max_ctx=8192), cpu())
    assert found.max_ctx == 8192 and any("4,096" in note for note in found.notes)


def test_the_pool_takes_no_more_than_there_is(plan: PlanOf) -> None:
    for free in (6.5, 7.0, 7.5, 8.0, 9.0):
        found = plan(eight_billion(), EngineConfig(max_concurrency=64), cpu(free=free))
        assert (
            found.n_pages * eight_billion().page(EngineConfig()) + eight_billion().weights
            < free * GIB
        )


def test_ram_for_prefixes_is_the_users_choice_or_a_part_of_what_is_free(plan: PlanOf) -> None:
    model, pc = eight_billion(), cpu(total=64, free=48)

    def kept(device: Device = pc, **config: int) -> int:
        return plan(model, EngineConfig(device="cpu", max_ctx=4096, **config), device).cache_bytes

    context = 4096 * 32 * 8 * 256 * 2  # 512 MiB
    assert kept() == 3 * context
    assert 0 < kept(cpu(total=64, free=9)) < GIB  # a quarter of what the model leaves
    assert kept(cpu(total=64, free=5)) == 0
    assert kept(prefix_cache_mib=100) == 100 << 20
    assert kept(prefix_cache_mib=0) == 64 * GIB  # as in Lucebox, no limit but the PC's


def test_a_card_must_have_the_memory_free(plan: PlanOf) -> None:
    config = EngineConfig(device="cuda:0")
    card = Device("cuda:0", "cuda", "RTX", 24 * GIB, 20 * GIB)
    assert plan(eight_billion(), config, card).device == "cuda:0"
    busy = Device("cuda:0", "cuda", "RTX", 24 * GIB, 4 * GIB)
    with pytest.raises(OutOfMemory, match=r"RTX has 24.0 GB, of which 4.0 GB are free"):
        plan(eight_billion(), config, busy)


def test_a_card_keeps_whole_chunks_of_packed_matrices_and_f16_pages(fixtures: Path) -> None:
    header = read_header(fixtures / "llama.gguf")
    found, exact = Footprint.of(header), EngineConfig(precision=Precision.EXACT)
    plain = sum(4 * i.shape[0] if len(i.shape) == 1 else i.n_bytes for i in header.infos.values())
    assert plain <= found.model(exact, on_card=True) < 1.5 * plain  # chunks of 16 x 256
    assert 2 * found.page(exact, on_card=True) == found.page(exact)


def card(number: int, total: float, free: float, problem: str = "") -> Device:
    name = f"RTX {number}"
    return Device(f"cuda:{number}", "cuda", name, int(total * GIB), int(free * GIB), 0, problem)


@pytest.mark.parametrize(
    ("cards", "chosen", "word"),
    [
        ((), "cpu", ""),
        ((card(0, 24, 20),), "cuda:0", "graphics card RTX 0"),
        ((card(0, 12, 11), card(1, 24, 20)), "cuda:1", "graphics card RTX 1"),
        ((card(0, 24, 3),), "cpu", "of the 24.0 GB of RTX 0 2.0 GB can be used"),
        ((card(0, 8, 5.8),), "cpu", "processor"),  # it fits with too small a context only
        ((card(0, 24, 20, "The driver is too old."),), "cpu", "The driver is too old."),
        ((card(0, 24, 20, "old"), card(1, 12, 11)), "cuda:1", "RTX 1"),
    ],
)
def test_the_device_is_chosen_where_the_model_fits(
    fixtures: Path,
    monkeypatch: pytest.MonkeyPatch,
    cards: tuple[Device, ...],
    chosen: str,
    word: str,
) -> None:
    monkeypatch.setattr(Footprint, "of", lambda header: eight_billion())
    header, here = read_header(fixtures / "llama.gguf"), [cpu(), *cards]
    found = resolve(EngineConfig(), header, here)
    assert found.device == chosen
    assert word in " ".join(found.notes) and (
        word or not found.notes or "runs" not in found.notes[0]
    )
    assert estimate(header, EngineConfig(), here).device.id == chosen
    assert resolve(EngineConfig(device="cpu"), header, here).device == "cpu"


def test_a_card_that_cannot_be_used_is_refused_with_the_reason(fixtures: Path) -> None:
    header = read_header(fixtures / "llama.gguf")
    with pytest.raises(BadRequest, match="too old"):
        resolve(EngineConfig(device="cuda:0"), header, [cpu(), card(0, 24, 20, "It is too old.")])


def test_a_real_file_is_planned(fixtures: Path) -> None:
    with open_model(fixtures / "llama.gguf") as file:
        found = resolve(EngineConfig(), file, [cpu()])
    assert found.path == fixtures / "llama.gguf" and found.max_ctx == 2048
    assert found.n_pages * PAGE_TOKENS >= found.max_ctx


def test_sizes_for_people() -> None:
    assert size_text(94 << 20) == "94 MB" and size_text(int(4.66 * GIB)) == "4.7 GB"


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("name", ["llama.gguf", "qwen3.gguf", "qwen35.gguf", "qwen35moe.gguf"])
def test_the_estimate_is_what_the_processor_really_holds(
    fixtures: Path, name: str, precision: Precision
) -> None:
    config = EngineConfig(precision=precision)
    loaded = load_model(fixtures / name, config)
    try:
        held = loaded.ops.memory()
    finally:
        loaded.close()
    found = estimate(read_header(fixtures / name), config, [cpu()])
    assert bytes_of(found, "kv") == held["kv"]
    assert bytes_of(found, "model") == pytest.approx(held["model"], rel=0.01)
    assert held["work"] / 2 < bytes_of(found, "work") < held["work"] * 2


def test_a_real_load_corrects_the_sums() -> None:
    config, device = EngineConfig(device="cpu", max_ctx=8192), cpu()
    guess = estimate(entry(eight_billion()), config, [device])
    pages = bytes_of(guess, "kv") // eight_billion().page(config)
    parts = (
        MemoryPart("other", "", 1), MemoryPart("model", "", 5 * GIB),
        MemoryPart("kv", "", pages * 9_000_000), MemoryPart("work", "", 300 << 20),
    )  # fmt: skip
    taken = Taken.of(config, pages, parts)
    assert taken is not None and Taken.from_json(asdict(taken)) == taken
    found = estimate(entry(eight_billion()), config, [device], taken=taken)
    assert found.measured and not guess.measured
    assert bytes_of(found, "model") == 5 * GIB and bytes_of(found, "work") == 300 << 20
    assert bytes_of(found, "kv") == pages * 9_000_000
    assert sum(p.bytes for p in found.parts) == device.memory_total
    half = estimate(entry(eight_billion()), replace(config, max_ctx=4096), [device], taken=taken)
    assert bytes_of(half, "kv") == bytes_of(found, "kv") // 2
    one = replace(config, max_concurrency=1, prefill_chunk=64)
    assert (
        bytes_of(estimate(entry(eight_billion()), one, [device], taken=taken), "work") < 300 << 20
    )
    exact = replace(config, precision=Precision.EXACT)
    assert not estimate(entry(eight_billion()), exact, [device], taken=taken).measured


def test_a_draft_is_all_that_it_holds_and_a_real_load_corrects_it() -> None:
    config, device = EngineConfig(device="cpu", max_ctx=8192, max_concurrency=1), cpu()
    found = entry(replace(eight_billion(), shipped=Footprint(50 << 20, 0, 0, 1000, 0, 0)))
    guess, pages = estimate(found, config, [device]), 8192 // 64
    assert bytes_of(guess, "draft") == (50 << 20) + pages * 64 * 1000 * 2
    assert bytes_of(guess, "kv") == pages * eight_billion().page(config)
    assert sum(bytes_of(guess, k) for k in ("model", "draft", "kv", "work")) == guess.total
    parts = [MemoryPart(k, "", bytes_of(guess, k)) for k in ("model", "kv", "work")]
    taken = Taken.of(config, pages, [*parts, MemoryPart("draft", "", 90 << 20)])
    assert taken is not None and Taken.from_json(asdict(taken)) == taken
    assert bytes_of(estimate(found, config, [device], taken=taken), "draft") == 90 << 20
    half = estimate(found, replace(config, max_ctx=4096), [device], taken=taken)
    assert bytes_of(half, "draft") == (90 << 20) - pages // 2 * 64 * 1000 * 2
    other = replace(config, spec=Spec.OFF)
    assert bytes_of(estimate(found, other, [device], taken=taken), "draft") == 0


@pytest.mark.parametrize(
    "change",
    [{"model": 0}, {"work": "5"}, {"page": 1.5}, {"precision": "odd"}, {"precision": []}, {"device": 1},
     {"more": 1}, {"model": True}],
)  # fmt: skip
def test_an_unsound_record_of_a_load_counts_as_none(change: dict[str, object]) -> None:
    sound = asdict(Taken("cpu", "fast", 4, 512, 5, 6, 7))
    assert Taken.from_json(sound) is not None
    assert Taken.from_json(sound | change) is None
    assert Taken.from_json(None) is None and Taken.from_json({}) is None


def test_without_figures_nothing_was_taken() -> None:
    assert Taken.of(EngineConfig(), 0, ()) is None
    assert Taken.of(EngineConfig(), 5, (MemoryPart("model", "", 5),)) is None


@pytest.mark.parametrize("name", [t.name for t in TYPES.values() if t.can_dequantize])
def test_every_type_is_kept_as_the_kernels_keep_it(tmp_path: Path, name: str) -> None:
    kind = by_name(name)
    path = tmp_path / "m.gguf"
    rows = bytes(kind.row_bytes(2048) * 16)
    pairs = [pair("general.architecture", STRING, "llama")]
    path.write_bytes(gguf(pairs, [tensor("w", [2048, 16], kind.id)], rows))
    with open_model(path) as file:
        for precision in Precision:
            ops = CpuOps(1, precision)
            ops.upload(file.tensors["w"])
            kept = ops.memory()["model"]
            ops.close()
            found = Footprint.of(file).model(EngineConfig(precision=precision))
            assert found == pytest.approx(kept, rel=0.01)  # panels end at multiples of 64 bytes
