"""Prefixes that leave a model and come back, to it or to another one."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from engine.cache import exchange
from engine.cache.exchange import lacking, offer, take_in, take_out
from engine.cache.snapshot import Snapshot, page_names
from engine.types import Sequence
from tests.engine.cache.shadow import N_WORDS, SIZE, Shadow


def written(shadow: Shadow, prompt: list[int], n: int) -> list[int]:
    """A prompt and an answer of `n` tokens that the cache then knows."""
    sequence = shadow.add(1, prompt)
    while len(sequence.tokens) < len(prompt) + n:
        shadow.step()
    shadow.scheduler.remove(sequence)
    shadow.check()
    return sequence.tokens


def given(shadow: Shadow, tokens: list[int]) -> int:
    """How many tokens of a prompt need no computing; the model looks whether they are right."""
    sequence = shadow.add(2, tokens)
    while sequence.n_given < 0 or len(sequence.tokens) == len(tokens):
        shadow.step()
    shadow.scheduler.remove(sequence)
    shadow.check()
    return sequence.n_given


@pytest.mark.parametrize("slots", [0, 6])
def test_a_snapshot_serves_another_model_like_it(slots: int) -> None:
    one, two = Shadow(slots=slots), Shadow(slots=slots, ram=64)
    text = written(one, list(range(9)), 20)
    assert (snapshot := take_out(one.cache, text)) is not None
    assert len(snapshot.tokens) == 28 and (snapshot.state is not None) == (slots > 0)
    assert take_in(two.cache, snapshot) == 28
    two.check()
    assert given(two, [*text, 5, 5]) == 28
    assert two.cache.metrics().read_back_total == 7


@pytest.mark.parametrize("slots", [0, 6])
def test_full_pages_and_what_comes_behind_them(slots: int) -> None:
    one, two = Shadow(slots=slots), Shadow(slots=slots, ram=64)
    text = written(one, list(range(9)), 21)
    known = take_out(one.cache, text, full_pages=True)
    assert known is not None and len(known.tokens) == 28
    rest = take_out(one.cache, text, full_pages=True, first=3)
    assert rest is not None and (rest.first, len(rest.pages)) == (3, 4)
    assert take_in(two.cache, rest) == 0  # the first ones are not here
    two.check()
    assert take_in(two.cache, known) == 28 == take_in(two.cache, rest)
    assert take_out(one.cache, text, full_pages=True, first=7) is None


def test_what_does_not_fit_is_not_taken() -> None:
    one = Shadow(slots=6)
    text = written(one, list(range(9)), 20)
    snapshot = take_out(one.cache, text)
    assert snapshot is not None and snapshot.state is not None
    wrong = (
        replace(snapshot, fingerprint=b"another"),
        replace(snapshot, page_tokens=SIZE + 1),
        replace(snapshot, pages=snapshot.pages[:-1]),
        replace(snapshot, pages=(*snapshot.pages[:-1], snapshot.pages[0][:-1])),
        replace(snapshot, state=None),
        replace(snapshot, state=snapshot.state[:-1]),
        replace(snapshot, first=1),
        replace(snapshot, tokens=()),
    )
    for bad in wrong:
        two = Shadow(slots=6, ram=64)
        assert take_in(two.cache, bad) == 0
        two.check()
        assert given(two, [*text, 5]) == 0
    assert take_in(Shadow(slots=6, ram=5).cache, snapshot) == 0  # a state is behind all or nothing


def test_of_what_ram_is_short_for_the_beginning_is_taken() -> None:
    one, two = Shadow(), Shadow(ram=5)
    text = written(one, list(range(9)), 20)
    snapshot = take_out(one.cache, text)
    assert snapshot is not None
    assert take_in(two.cache, snapshot) == 20
    two.check()
    assert given(two, [*text, 5]) == 20


def test_other_tokens_of_the_same_name_are_no_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are hashes; in memory the tokens themselves are the key."""
    one = Shadow(ram=64)
    text = written(one, list(range(9)), 20)
    other = [token + 1000 for token in text]
    assert given(one, [*other, 5]) == 0
    names = page_names(b"f", SIZE, text)
    assert len(names) == 7 == len(set(names))
    assert page_names(b"f", SIZE, text[:8]) == names[:2]
    assert page_names(b"g", SIZE, text)[0] != names[0]
    assert page_names(b"f", SIZE, [*text[:4], 7, *text[5:]])[1:] != names[1:]


class Drawer:
    """An archive in memory."""

    def __init__(self, recurrent: bool) -> None:
        self.recurrent = recurrent
        self.pages: dict[bytes, np.ndarray] = {}
        self.states: dict[bytes, np.ndarray] = {}

    def reaches(self, fingerprint: bytes, page_tokens: int, tokens: Seq[int]) -> int:
        n = 0
        for i, name in enumerate(page_names(fingerprint, page_tokens, tokens)):
            if name not in self.pages:
                break
            n = i + 1 if not self.recurrent or name in self.states else n
        return n

    def read(
        self, fingerprint: bytes, page_tokens: int, tokens: Seq[int], first: int
    ) -> Snapshot | None:
        n = self.reaches(fingerprint, page_tokens, tokens)
        names = page_names(fingerprint, page_tokens, tokens)[:n]
        return Snapshot(
            fingerprint, page_tokens, tuple(tokens[: n * page_tokens]),
            tuple(self.pages[name] for name in names[first:]),
            self.states[names[-1]] if self.recurrent else None, first,
        )  # fmt: skip

    def write(self, snapshot: Snapshot, then: Callable[[], None] = lambda: None) -> None:
        names = page_names(snapshot.fingerprint, snapshot.page_tokens, snapshot.tokens)
        for name, page in zip(names[snapshot.first :], snapshot.pages, strict=True):
            self.pages[name] = page
        if snapshot.state is not None:
            self.states[names[-1]] = snapshot.state
        then()


def at_once(work: Callable[[], None]) -> None:
    work()


@pytest.mark.parametrize("seed", range(10))
def test_an_archive_serves_those_that_come_after(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each conversation runs in a new process, whose memory is empty or has a part."""
    if seed % 4 > 1:
        monkeypatch.setattr(exchange, "PART", 1)  # one page after the other
    random, recurrent = Random(seed), seed % 2 == 1
    drawer = Drawer(recurrent)
    history: list[list[int]] = [[]]
    spared = 0
    for i in range(12):
        if i % 3 == 0:
            shadow = Shadow(pages=30, max_ctx=100, slots=6 if recurrent else 0, ram=40)
        prompt = list(random.choice(history))
        prompt = prompt[: random.randint(0, len(prompt))]
        prompt = [*prompt, *(random.randrange(N_WORDS) for _ in range(random.randint(1, 9)))][-80:]
        read = lacking(drawer, shadow.cache, prompt)
        if read is not None:
            assert (found := read()) is not None
            assert take_in(shadow.cache, found) >= len(found.tokens)
        sequence: Sequence = shadow.add(i, prompt)
        while len(sequence.tokens) < len(prompt) + 15:
            shadow.step()
        spared += sequence.n_given
        shadow.scheduler.remove(sequence)
        offer(drawer, shadow.cache, sequence.tokens, at_once)
        shadow.check()
        history.append(sequence.tokens)
    assert spared


def test_nothing_is_read_or_written_twice() -> None:
    shadow, drawer = Shadow(), Drawer(False)
    text = written(shadow, list(range(9)), 20)
    assert lacking(drawer, shadow.cache, text) is None
    offer(drawer, shadow.cache, text, at_once)
    assert len(drawer.pages) == 7
    assert lacking(drawer, shadow.cache, [*text, 5]) is None  # it is all in memory
    drawer.pages.clear()
    offer(drawer, shadow.cache, text, at_once)
    assert len(drawer.pages) == 7
