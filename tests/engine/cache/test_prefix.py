"""The prefix cache under a model that notices every wrong page and state."""

from __future__ import annotations

from random import Random

import pytest

from engine.types import Sequence
from tests.engine.cache.shadow import N_WORDS, Guesser, Shadow, next_token


def cold(prompt: list[int], n: int) -> list[int]:
    """What the model writes, computed without any cache."""
    text = list(prompt)
    for _ in range(n):
        text.append(next_token(text))
    return text


def finished(shadow: Shadow, sequence: Sequence, n: int) -> list[int]:
    """The text of a sequence when it has `n` new tokens, and it is taken out."""
    while len(sequence.tokens) < sequence.n_prompt + n:
        assert shadow.step() is not None
    del sequence.tokens[sequence.n_prompt + n :]
    text = list(sequence.tokens)
    shadow.scheduler.remove(sequence)
    shadow.check()
    return text


@pytest.mark.parametrize("seed", range(30))
def test_what_is_reused_is_what_a_cold_run_computes(seed: int) -> None:
    """Turns, branches, cancels, short memory everywhere, drafts and many at once."""
    random = Random(seed)
    concurrency = random.randint(1, 4)
    recurrent = seed % 2 == 1
    shadow = Shadow(
        pages=random.choice([15, 20, 60]),
        concurrency=concurrency,
        max_ctx=60,
        slots=concurrency + random.randint(0, 6) if recurrent else 0,
        ram=random.choice([0, 3, 10, 40, 1000]),
        chunk=random.choice([3, 16, 50]),
        spacing=random.choice([8, 1024]),
        alike=random.choice([None, 2, 32]),
        guesser=Guesser(Random(seed)) if seed % 3 == 0 else None,
    )
    shadow.memory.least_kept = random.choice([0, 1, 8])
    history: list[list[int]] = [[]]
    alive: dict[Sequence, int] = {}
    for i in range(250):
        if random.random() < 0.3 and len(alive) < 6:
            old = random.choice(history)
            prompt = old[: random.randint(0, len(old))] if random.random() < 0.5 else list(old)
            prompt += [random.randrange(N_WORDS) for _ in range(random.randint(1, 12))]
            options = {"cached": random.random() < 0.9, "keeps_answer": random.random() < 0.8}
            n = random.randint(1, 20)
            made = shadow.add(i, prompt[-45:], **options) if len(prompt) < 50 else None
            if made is not None:
                made.n_most = min(made.n_prompt + n, 60)
                alive[made] = made.n_most - made.n_prompt
        shadow.memory.short = random.random() < 0.1
        if alive and shadow.step() is None:
            pytest.fail("nothing goes on")
        for sequence, n in list(alive.items()):
            gone = random.random() < 0.02
            if len(sequence.tokens) >= sequence.n_prompt + n or gone:
                del sequence.tokens[sequence.n_prompt + n :]
                text = list(sequence.tokens)
                shadow.scheduler.remove(sequence, sound=random.random() < 0.95)
                shadow.check()
                assert text == cold(text[: sequence.n_prompt], len(text) - sequence.n_prompt)
                history.append(text)
                del alive[sequence]
    metrics = shadow.cache.metrics()
    assert metrics.hits + metrics.misses


def test_all_of_it_really_happens() -> None:
    """The runs above are worth nothing if their caches stay empty."""
    shadow = Shadow(pages=15, concurrency=3, max_ctx=60, slots=5, ram=30)
    for i in range(3):
        shadow.add(i, [i % N_WORDS] * 9 + [i])
    many = list(shadow.scheduler.waiting)
    for _ in range(40):
        shadow.step()
    for sequence in many:
        assert sequence.tokens == cold(sequence.tokens[:10], len(sequence.tokens) - 10)
        shadow.scheduler.remove(sequence)
    for i, old in enumerate(many):
        again = shadow.add(9 + i, [*old.tokens, 1, 2])
        while again.n_given < 0:
            shadow.step()
        assert again.n_given == len(old.tokens) - 1
        shadow.scheduler.remove(again)
    metrics = shadow.cache.metrics()
    assert metrics.preempted_total and metrics.moved_out_total and metrics.read_back_total
