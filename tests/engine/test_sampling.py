"""Sampling: the distributions, the penalties, the seeds, and what broken logits do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import SamplingParams
from engine.errors import BadRequest, NumericError
from engine.ops.choosing import UNDECIDED, Choice, chosen
from engine.sampling import (
    Logits,
    Sampler,
    TokenCounts,
    apply_penalties,
    has_bad,
    probabilities,
    uniform,
)
from tests.engine.text_fixtures import load

PLAIN = SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0)
INF = float("inf")
NAN = float("nan")


def logits(*values: Any) -> Logits:
    return np.array([float(v) for v in values], np.float32)


def params(row: dict[str, Any]) -> SamplingParams:
    """The settings that a row names, all others neutral."""
    return replace(PLAIN, **{k: v for k, v in row.items() if hasattr(PLAIN, k)})


def draws(given_logits: Logits, settings: SamplingParams, n: int) -> np.ndarray:
    """How often each token comes in `n` draws at positions 0..n-1."""
    sampler = Sampler(settings, len(given_logits), 7)
    previous: list[int] = []
    counts = np.zeros(len(given_logits), int)
    for _ in range(n):
        token = sampler.sample(given_logits, previous)
        counts[token] += 1
        previous.append(token)
    return counts


@pytest.mark.parametrize("row", [r for c in load("sampling") for r in c["rows"]])
def test_cases_from_bug_reports(row: dict[str, Any]) -> None:
    values, previous = logits(*row["logits"]), row.get("previous_tokens", [])
    if "expected_probs" in row:
        np.testing.assert_allclose(
            probabilities(values, params(row)), row["expected_probs"], atol=1e-6
        )
    if "expected_token" in row:
        assert (
            Sampler(params(row), len(values), 1).sample(values, previous) == row["expected_token"]
        )
    if "expected_logits" in row:
        changed = apply_penalties(values, previous, params(row))
        np.testing.assert_allclose(changed, row["expected_logits"], atol=1e-6)
    if "expected" in row:
        with pytest.raises(NumericError, match="every logit"):
            Sampler(params(row), len(values), 1).sample(values, previous)


@pytest.mark.parametrize("row", load("probabilities"))
def test_probabilities_equal_the_oracle(row: dict[str, Any]) -> None:
    values = logits(*row["logits"])
    np.testing.assert_allclose(probabilities(values, params(row)), row["probs"], atol=1e-7)


@pytest.mark.parametrize("row", load("distributions"), ids=lambda row: row["name"])
def test_draws_follow_the_distribution(row: dict[str, Any]) -> None:
    p = np.array(row["p"])
    n = 5_000
    with np.errstate(divide="ignore"):
        counts = draws(np.log(p).astype(np.float32), PLAIN, n)
    assert counts[p == 0].sum() == 0
    expected = n * p[p > 0]
    chi_square = float((((counts[p > 0] - expected) ** 2) / expected).sum())
    # The 1 - 1e-6 quantiles of chi-square for 0..5 degrees of freedom.
    assert chi_square <= [1e-9, 23.93, 27.63, 30.66, 33.38, 35.89][np.count_nonzero(p) - 1]


def test_order_of_the_filters() -> None:
    p = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    values = np.log(p).astype(np.float32)
    # top-k leaves 0.4 0.3 0.15, of 0.85; top-p sees 0.47 0.35 0.18; min-p compares with the likeliest.
    kept = probabilities(values, replace(PLAIN, top_k=3, top_p=0.8))
    np.testing.assert_allclose(kept, [4 / 7, 3 / 7, 0, 0, 0], atol=1e-6)
    kept = probabilities(values, replace(PLAIN, top_p=0.8, min_p=0.5))
    np.testing.assert_allclose(kept, [4 / 7, 3 / 7, 0, 0, 0], atol=1e-6)
    # Temperature comes first: at 2 the square roots.
    kept = probabilities(values, replace(PLAIN, temperature=2, min_p=0.6))
    roots = np.sqrt(p) * (np.sqrt(p) >= 0.6 * np.sqrt(p[0]))
    np.testing.assert_allclose(kept, roots / roots.sum(), atol=1e-6)


def test_typical_keeps_tokens_of_the_expected_surprise() -> None:
    p = np.array([0.6, 0.12, 0.1, 0.1, 0.08])
    values = np.log(p).astype(np.float32)
    surprise = -np.log(p)
    order = np.argsort(np.abs(surprise - (p * surprise).sum()))
    for n, mass in ((1, 0.1), (2, p[order[:2]].sum() - 0.01), (4, p[order[:4]].sum() - 0.01)):
        kept = probabilities(values, replace(PLAIN, typical_p=mass))
        assert set(np.flatnonzero(kept)) == set(order[:n])
        np.testing.assert_allclose(kept.sum(), 1)


def test_filters_never_drop_the_likeliest() -> None:
    values = logits(1, 3, 2)
    for strict in ({"top_p": 0.0}, {"min_p": 1.0}, {"top_k": 1}):
        assert probabilities(values, replace(PLAIN, **strict)).tolist() == [0, 1, 0]
    assert np.count_nonzero(probabilities(values, replace(PLAIN, typical_p=0.0))) == 1


def test_equals_are_taken_by_the_lowest_id() -> None:
    values = logits(1, 2, 2, 2, 0)
    assert Sampler(replace(PLAIN, temperature=0), 5, 1).sample(values, []) == 1
    assert np.flatnonzero(probabilities(values, replace(PLAIN, top_k=2))).tolist() == [1, 2]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_large_vocabularies_give_what_sorting_gives(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([1, 7, 64, 65, 300, 5000, 20_011]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = np.round(rng.standard_normal(size) * 4, data.draw(st.sampled_from([0, 1, 6])))
    chosen = replace(
        PLAIN,
        temperature=data.draw(st.sampled_from([0.3, 1.0, 3.0])),
        top_k=data.draw(st.sampled_from([0, 1, 5, 40, 700])),
        top_p=data.draw(st.sampled_from([0.0, 0.5, 0.95, 1.0])),
        min_p=data.draw(st.sampled_from([0.0, 0.05, 1.0])),
    )
    values = values.astype(np.float32)
    np.testing.assert_allclose(
        probabilities(values, chosen), by_sorting(values, chosen), atol=1e-12
    )


def by_sorting(values: Logits, chosen: SamplingParams) -> np.ndarray:
    """The documented order of filters, step by step on a sorted vocabulary."""
    order = np.argsort(-values.astype(np.float64), kind="stable")
    p = np.exp((values[order].astype(np.float64) - values.max()) / chosen.temperature)
    if chosen.top_k:
        p[chosen.top_k :] = 0
    p /= p.sum()
    before = np.concatenate([[0.0], np.cumsum(p)[:-1]])
    if chosen.top_p < 1:
        p[1:] *= before[1:] < chosen.top_p
    p *= p >= chosen.min_p * p[0]
    out = np.zeros(len(values))
    out[order] = p / p.sum()
    return out


def test_same_seed_same_tokens_whatever_else_runs() -> None:
    rng = np.random.default_rng(3)
    steps = [rng.standard_normal(500).astype(np.float32) for _ in range(30)]
    chosen = replace(SamplingParams(), seed=5)

    def run(sampler: Sampler) -> list[int]:
        previous: list[int] = []
        for step in steps:
            previous.append(sampler.sample(step, previous))
        return previous

    alone = run(Sampler(chosen, 500, 1))
    one, other = Sampler(chosen, 500, 2), Sampler(replace(chosen, seed=6), 500, 2)
    ones: list[int] = []
    others: list[int] = []
    for step in steps:
        others.append(other.sample(step, others))
        ones.append(one.sample(step, ones))
    assert ones == alone
    assert others != alone
    assert run(Sampler(replace(chosen, seed=None), 500, 5)) == alone


def test_uniform_numbers_are_uniform_and_depend_on_both() -> None:
    u = np.array([uniform(11, i) for i in range(4000)])
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 4000)
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.1
    assert len({uniform(s, 0) for s in range(100)}) == 100
    assert uniform(2**63 - 1, 0) != uniform(2**63 - 2, 0)


def test_penalties_look_back_over_the_window() -> None:
    values = logits(2, 2, 2, 2)
    chosen = replace(PLAIN, presence_penalty=1, frequency_penalty=0.5)
    assert apply_penalties(values, [0, 0, 1, 2], chosen).tolist() == [0, 0.5, 0.5, 2]
    assert apply_penalties(values, [0, 0, 1, 2], replace(chosen, penalty_last_n=2)).tolist() == [
        2, 0.5, 0.5, 2,
    ]  # fmt: skip
    assert apply_penalties(values, [0, 0, 1, 2], replace(chosen, penalty_last_n=0)) is values
    assert values.tolist() == [2, 2, 2, 2]


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_counts_follow_a_sequence_that_grows_and_is_taken_back(data: st.DataObject) -> None:
    last_n = data.draw(st.sampled_from([-1, 1, 3, 10]))
    counts = TokenCounts(5, last_n)
    tokens: list[int] = []
    for _ in range(data.draw(st.integers(1, 8))):
        del tokens[data.draw(st.integers(0, len(tokens))) :]
        # Each token stands at its own position for good, so that what was taken back comes back as it was.
        tokens += [(len(tokens) + i) % 6 for i in range(data.draw(st.integers(0, 6)))]
        window = tokens if last_n < 0 else tokens[-last_n:]
        wanted = {i: window.count(i) for i in range(5) if i in window}
        assert counts.update([*tokens, 3], len(tokens)) == wanted


def test_logit_bias_bans_and_forces() -> None:
    values = logits(5, 1, 0)
    assert np.argmax(probabilities(values, replace(PLAIN, logit_bias={2: 50.0}))) == 2
    assert probabilities(values, replace(PLAIN, logit_bias={0: -100.0}))[0] < 1e-40
    greedy = replace(PLAIN, temperature=0, logit_bias={0: -100.0})
    assert Sampler(greedy, 3, 1).sample(values, []) == 1


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        ({3: 1.0}, "token 3.*0 to 2"),
        ({-1: 1.0}, "token -1.*0 to 2"),
        ({0: 101.0}, "101.*-100 to 100"),
        ({0: NAN}, "nan"),
        ({0: -INF}, "-inf"),
    ],
)
def test_logit_bias_out_of_range_is_refused(bias: dict[int, float], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        Sampler(replace(PLAIN, logit_bias=bias), 3, 1)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_broken_logits_are_errors_and_impossible_tokens_are_not_chosen(temperature: float) -> None:
    chosen = replace(PLAIN, temperature=temperature)
    for broken in (logits(NAN, NAN), logits(-INF, -INF), logits(NAN, -INF), logits(1, INF)):
        with pytest.raises(NumericError):
            Sampler(chosen, 2, 1).sample(broken, [])
    for values in (logits(NAN, 1, -INF), logits(-INF, 1, NAN)):
        assert draws(values, chosen, 50).tolist() == [0, 50, 0]


def test_has_bad() -> None:
    assert has_bad(logits(1, NAN)) and has_bad(logits(NAN, NAN)) and has_bad(logits(INF, 0))
    assert not has_bad(logits(1, -INF)) and not has_bad(logits(0))


@pytest.mark.parametrize("temperature", [1e-300, 1e-6, 5.0])
def test_extreme_temperatures(temperature: float) -> None:
    p = probabilities(logits(-1e30, 3, 2.9999, 1e30), replace(PLAIN, temperature=temperature))
    assert p.tolist() == [0, 0, 0, 1]


def test_logits_are_left_as_they_were() -> None:
    values = logits(1, NAN, 3, 2)
    before = values.copy()
    chosen = replace(SamplingParams(), repetition_penalty=1.3, logit_bias={0: 3.0}, typical_p=0.9)
    Sampler(chosen, 4, 1).sample(values, [0, 2])
    np.testing.assert_array_equal(values, before)


def test_rows_beyond_the_vocabulary_are_not_chosen() -> None:
    values = logits(1, 2, 9)
    assert Sampler(replace(PLAIN, temperature=0), 2, 1).sample(values, []) == 1
    tokens = [Sampler(PLAIN, 2, 1).sample(values, [0] * i) for i in range(50)]
    assert set(tokens) == {0, 1}


@pytest.mark.parametrize("seed", range(40))
def test_a_backend_draws_the_same_tokens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = int(rng.choice((3, 40, 700)))
    logits = (rng.standard_normal((16, v + 5)) * rng.choice((0.1, 1, 5))).astype(np.float32)
    logits[8:] = logits[8:].round(1)  # equal ones
    logits[3, : v - 2] = -np.inf
    params = SamplingParams(
        temperature=float(rng.choice((1e-6, 0.3, 1.0, 3.0))),
        top_k=int(rng.integers(1, min(v, 257))),
        top_p=float(rng.choice((0.0, 0.4, 0.95, 1.0))),
        min_p=float(rng.choice((0.0, 0.05, 1.0))),
    )
    if seed % 2:
        bias = {i: float(rng.choice((-100.0, -1.0, 0.3))) for i in range(0, v, 3)}
        params = replace(
            params,
            repetition_penalty=float(rng.choice((0.7, 1.0, 1.3))),
            presence_penalty=float(rng.choice((0.0, 1.5))),
            frequency_penalty=float(rng.choice((0.0, 0.123))),
            penalty_last_n=int(rng.choice((-1, 0, 1, 2, 9))),
            logit_bias=bias if seed % 4 == 1 else {},
        )
    sampler = Sampler(params, v, seed)
    assert sampler.is_told
    text = rng.integers(0, v + 5, 17).tolist()
    rows = np.arange(16, dtype=np.int32)
    for unknown in (False, True):
        choices = []
        for n in range(16):
            choice = sampler.choice(text, n, -1 - n if unknown else text[n])
            assert choice is not None
            choices.append(choice)
        got = chosen(logits, choices, np.array(text, np.int32)[rows])
        want = [sampler.sample(row, text[: n + 1]) for n, row in enumerate(logits)]
        assert got.tolist() == want


@pytest.mark.parametrize("seed", range(30))
def test_a_backend_says_where_its_candidates_do_not_decide(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = int(rng.choice((200, 256, 257, 3000)))
    scales = rng.choice((0.1, 1, 2, 5), (24, 1))
    logits = (rng.standard_normal((24, v)) * scales).astype(np.float32)
    params = SamplingParams(
        temperature=float(rng.choice((0.5, 1.0))),
        top_k=int(rng.choice((0, v))),
        top_p=(top_p := float(rng.choice((0.3, 0.9, 1.0)))),
        min_p=float(rng.choice((0.0, 0.05) if top_p < 1 else (0.05, 0.2))),
    )
    sampler = Sampler(params, v, seed)
    assert sampler.is_told and not sampler.is_sure
    choices = [sampler.choice([0] * 24, n, 0) for n in range(24)]
    got = chosen(logits, [c for c in choices if c is not None])
    for n, (row, token) in enumerate(zip(logits, got.tolist(), strict=True)):
        if token == UNDECIDED:
            passing = np.count_nonzero(probabilities(row, params))
            assert v > 256 and passing >= 256
        else:
            assert token == sampler.sample(row, [0] * (n + 1))
    assert v > 256 or UNDECIDED not in got


def test_a_backend_tells_of_bad_rows() -> None:
    logits = np.zeros((3, 8), np.float32)
    logits[0, 2], logits[1, 7], logits[2] = np.inf, np.nan, -np.inf
    assert chosen(logits, [Choice(7, 3), Choice(7), Choice(7, 3)]).tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (SamplingParams(temperature=0), True),
        (SamplingParams(top_k=1, typical_p=0.5), True),
        (SamplingParams(top_k=256), True),
        (SamplingParams(top_k=0), True),
        (SamplingParams(top_k=0, top_p=1.0, min_p=0.0), False),
        (SamplingParams(top_k=257), False),
        (SamplingParams(top_k=40, typical_p=0.9), False),
        (SamplingParams(top_k=40, frequency_penalty=0.1), True),
        (SamplingParams(temperature=0, logit_bias={3: 1.0}), True),
    ],
)
def test_what_a_backend_can_choose(params: SamplingParams, told: bool) -> None:
    assert Sampler(params, 300, 0).is_told is told
    assert not Sampler(params, 300, 0, logprobs=0).is_told
    # All of 40 in another order than few: the candidates have to reach far enough.
    assert Sampler(SamplingParams(top_k=39), 40, 0).is_sure
    assert not Sampler(SamplingParams(top_k=40), 40, 0).is_sure
