"""How much is guessed: what passes cost, what was accepted, and when guessing pauses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.config import Spec
from engine.draft.costs import ROWS, PassCosts, measure, pass_costs
from engine.draft.policy import Judged, Policy, Size
from engine.types import Switch

CHEAP = {1: 1.0, 2: 1.02, 4: 1.05, 8: 1.1, 16: 1.2, 32: 1.5}
USUAL = {1: 1.0, 2: 1.3, 4: 1.4, 8: 1.5, 16: 1.7, 32: 2.2}
DEAR = {1: 1.0, 2: 1.9, 4: 3.7, 8: 7.0, 16: 14.0, 32: 28.0}


def policy(
    costs: dict[int, float],
    spec: Spec = Spec.AUTO,
    budget: int | None = None,
    branches: bool = False,
) -> Policy:
    return Policy(15, branches, spec, budget, PassCosts(costs))


def judged(size: Size, tokens: int, seconds: float = 1.0, plain_s: float = 1.0) -> Judged:
    return Judged(size.depth, size.nodes, tokens, 0.0, seconds, 0.0, plain_s)


def live(
    one: Policy,
    right: int,
    costs: dict[int, float],
    steps: int,
    switches: list[Switch] | None = None,
) -> list[Size | None]:
    """Steps of a text where the first `right` guesses of each draft are accepted."""
    table, sizes = PassCosts(costs), []
    for _ in range(steps):
        size = one.size(31)
        sizes.append(size)
        if size is None:
            switch = one.plain(table.of(1))
        else:
            tokens = 1 + min(size.depth, right)
            switch = one.saw(judged(size, tokens, table.of(1 + size.nodes), table.of(1)))
        if switch is not None and switches is not None:
            switches.append(switch)
    return sizes


def test_tokens_that_go_by_unasked_count_for_the_pause() -> None:
    one = policy(DEAR)
    while not one.paused:
        one.saw(judged(Size(4, 4), 1, seconds=5.0))
    for _ in range(50):  # of 256
        assert one.lets_pass(5)
    assert [one.lets_pass(n) for n in (6, 7, 5)] == [
        False,
        False,
        True,
    ]  # the last one is asked for
    assert one.paused and one.size(31) is None and not one.paused
    assert not one.lets_pass(1)


def test_costs_lie_between_what_was_measured() -> None:
    costs = PassCosts({1: 1.0, 4: 2.5, 8: 3.0})
    assert [costs.of(n) for n in (1, 2, 4, 6, 8, 16)] == pytest.approx([1, 1.5, 2.5, 2.75, 3, 4])
    assert PassCosts({1: 2.0}).of(11) == pytest.approx(4.0)
    assert PassCosts({8: 3.0, 1: 1.0, 16: 2.0}).of(32) >= 2.0


def test_costs_follow_what_passes_take_of_late() -> None:
    costs = PassCosts(CHEAP)
    for _ in range(100):
        costs.saw(8, 2.2)
    assert costs.of(8) == pytest.approx(2.2, rel=0.01)
    assert costs.of(1) == pytest.approx(2.0, rel=0.3)
    for _ in range(200):
        costs.saw(1, 1.0)
        costs.saw(8, 5.0)
    assert costs.of(1) == pytest.approx(1.0, rel=0.2)
    assert costs.of(8) == pytest.approx(5.0, rel=0.2)


def test_measuring_takes_the_best_and_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ran = [0.0], []

    def run(rows: int) -> None:
        ran.append(rows)
        now[0] += rows * (1.5 if ran.count(rows) == 1 else 1.0) / 100

    monkeypatch.setattr("engine.draft.costs.time.perf_counter", lambda: now[0])
    found = measure(run)
    # The longest may have had no time for a second round.
    assert list(found) == list(ROWS[: len(found)])
    assert list(found.values())[:-1] == pytest.approx([n / 100 for n in ROWS[: len(found) - 1]])
    assert now[0] < 2.5 and len(found) >= 5


def test_costs_are_measured_once_for_each_machine_and_driver(tmp_path: Path) -> None:
    ran: list[int] = []
    pass_costs(tmp_path, "driver 1", ran.append)
    n = len(ran)
    assert n
    pass_costs(tmp_path, "driver 1", ran.append)
    assert len(ran) == n
    pass_costs(tmp_path, "driver 2", ran.append)
    assert len(ran) > n
    kept = json.loads((tmp_path / "pass-costs.json").read_text())
    assert set(kept) == {"driver 1", "driver 2"}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 3}', '{"a": {"1": -1}}', '{"a": {"x": 1}}'])
def test_a_damaged_file_of_costs_is_measured_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "pass-costs.json").write_text(text)
    ran: list[int] = []
    assert pass_costs(tmp_path, "a", ran.append).of(1) >= 0
    assert ran


def test_what_is_accepted_decides_how_much_is_guessed() -> None:
    few, many = policy(CHEAP), policy(CHEAP)
    sizes = live(few, 2, CHEAP, 200)[-20:], live(many, 15, CHEAP, 200)[-20:]
    assert all(s.nodes <= 5 for s in sizes[0] if s)
    assert all(s.nodes == 15 for s in sizes[1] if s)
    assert few.speedup is not None and many.speedup is not None
    assert 2 < few.speedup < 3 and many.speedup > 10
    assert many.by_position[0] > 0.9 and few.by_position[0] > 0.9


def test_nothing_is_guessed_where_a_pass_costs_too_much() -> None:
    sizes = live(policy(DEAR), 15, DEAR, 60)
    assert sum(s is not None for s in sizes) <= 5


def test_guessing_pauses_when_it_did_not_pay_and_is_tried_again() -> None:
    # The table promises cheap passes, and they are dear.
    one = policy(CHEAP)
    told: list[Switch] = []
    sizes = live(one, 3, {n: 20 * s for n, s in DEAR.items()}, 130, told)
    assert one.paused
    assert [(s.state, s.steps, s.speedup < 1) for s in told] == [("paused", 64, True)]
    assert told[0].text == f"Speculation paused: measured {told[0].speedup:.2f}x over 64 steps."
    first = max(i for i, size in enumerate(sizes) if size is not None)
    assert 60 <= first < 80
    more = live(one, 15, CHEAP, 400, told)
    assert [(s.state, s.steps, s.speedup > 1) for s in told[1:]] == [("on", 16, True)]
    again = next(i for i, size in enumerate(more) if size is not None)
    assert 180 <= first - 130 + again + 130 <= 340
    assert not one.paused and one.speedup is not None and one.speedup > 2


def test_a_drafter_that_guesses_nothing_right_is_told_of_soon() -> None:
    # Most chances for a draft are let go then, so that many tokens go by for a few drafts.
    one = policy(USUAL)
    told: list[Switch] = []
    sizes = live(one, 0, USUAL, 130, told)
    assert [s.state for s in told] == ["paused"] and told[0].speedup < 1 and one.paused
    drafts = sum(size is not None for size in sizes)
    assert 16 <= told[0].steps == drafts < 40
    # Each trial is as short as the first, and the pauses between them grow.
    sizes = live(one, 0, USUAL, 2000, told)
    assert [s.state for s in told] == ["paused"] * 4
    assert sum(size is not None for size in sizes) <= 3 * 17
    live(one, 15, USUAL, 2300, told)
    assert told[-1].state == "on" and not one.paused


def test_who_asks_for_chains_or_trees_gets_them_always() -> None:
    chain = policy(DEAR, Spec.CHAIN, 6)
    assert set(live(chain, 0, DEAR, 200)) == {Size(6, 6)}
    assert not chain.paused and chain.speedup is not None and chain.speedup < 1
    tree = policy(DEAR, Spec.TREE, 22, branches=True)
    assert set(live(tree, 0, DEAR, 200)) == {Size(15, 22)}
    alone = policy(DEAR, Spec.TREE, 9)
    assert set(live(alone, 0, DEAR, 10)) == {Size(9, 9)}
    assert chain.size(2) == Size(2, 2) and tree.size(0) is None
    # Few tokens that are still wanted end no branches.
    assert tree.size(31, 4) == Size(4, 22) and chain.size(31, 4) == Size(4, 4)
    assert tree.size(9, 4) == Size(4, 9) and tree.size(31, 0) is None


def test_trees_are_tried_and_kept_where_they_bring_more() -> None:
    one, table = policy(CHEAP, branches=True), PassCosts(CHEAP)
    sizes = []
    for _ in range(600):
        size = one.size(31)
        if size is None:
            one.plain(1.0)
            continue
        sizes.append(size)
        tokens = 6 if size.nodes > size.depth else 3
        one.saw(judged(size, tokens, table.of(1 + size.nodes)))
    assert sum(s.nodes > s.depth for s in sizes[-100:]) > 90


def test_one_token_in_a_while_is_written_without_a_draft() -> None:
    sizes = live(policy(CHEAP), 15, CHEAP, 300)
    assert 3 <= sum(size is None for size in sizes) <= 6
