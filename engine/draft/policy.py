"""How much to guess: from what was accepted so far and what passes cost here."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from engine.config import Spec
from engine.draft.costs import PassCosts
from engine.types import Switch

WINDOW = 64
"""Verified drafts over which acceptance and speed-up are told."""

_PROBE = 16  # drafts after a pause that decide whether it goes on
_FIRST_PAUSE, _LONGEST_PAUSE = 256, 8192  # tokens written without drafts
_LOOK_AGAIN = (
    32  # chances for a draft that are let go before one is taken that does not look worth it
)
_PLAIN_EVERY = 64  # drafts after which one token is written without, to know what that costs
_TREES = (8, 12, 16, 22, 31)
_HOPE = 0.75  # acceptance of a position that was not tried yet
_RATE = 0.08


@dataclass(frozen=True, slots=True)
class Size:
    """Of a draft: at most `depth` tokens in a row and `nodes` in all."""

    depth: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Judged:
    """One verified draft: its size, the tokens that it brought with the target's own, and the share of the
    step's time that went to it, in seconds, and what as many sequences take without drafts.
    """

    depth: int
    nodes: int
    tokens: int
    draft_s: float
    verify_s: float
    sample_s: float
    plain_s: float

    @property
    def seconds(self) -> float:
        """All its time."""
        return self.draft_s + self.verify_s + self.sample_s


class Policy:
    """Chooses the size of drafts, and pauses where they do not pay.

    `Spec.AUTO` weighs up and pauses; `CHAIN` and `TREE` do as the user says, with `budget` tokens if it is
    given, and never pause.
    """

    def __init__(
        self, depth: int, branches: bool, spec: Spec, budget: int | None, costs: PassCosts
    ) -> None:
        self.costs = costs
        self.judged: deque[Judged] = deque(maxlen=WINDOW)
        self._depth = depth
        self._branches = branches and spec is not Spec.CHAIN
        self._spec, self._budget = spec, budget
        self._accepted = [_HOPE] * depth  # of chains
        self._hits = [_HOPE] * depth  # of all drafts
        self._trees: dict[int, float] = {}
        self._draft_s: dict[int, float] = {}
        self._plain_s: float | None = None
        self._since_plain = 0
        self._let_go = 0
        self._since_turn = 0  # drafts since the last pause began or ended, and chances let go
        self._wait = 0
        self._pause = _FIRST_PAUSE
        self._probing = False

    @property
    def paused(self) -> bool:
        """Whether drafts are left out because they cost more than they brought."""
        return self._wait > 0

    @property
    def goes_on(self) -> bool:
        """Whether another draft will be wanted behind the one that is verified now, as far as can be told."""
        if self._spec is not Spec.AUTO:
            return True
        return not (self._wait or self._let_go or self._since_plain + 1 >= _PLAIN_EVERY)

    @property
    def by_position(self) -> tuple[float, ...]:
        """Chance of each position of a draft to be accepted, given that those before it were."""
        reached = max((j.depth for j in self.judged), default=0)
        return tuple(self._hits[:reached])

    @property
    def speedup(self) -> float | None:
        """Speed of the last drafts over that without them; None before the first."""
        spent = sum(j.seconds for j in self.judged)
        return sum(j.plain_s * j.tokens for j in self.judged) / spent if spent else None

    def size(self, most: int, deepest: int | None = None) -> Size | None:
        """What to guess for a sequence that has room for `most` tokens, at most `deepest` of them in a row;
        None for nothing."""
        depth = min(self._depth, most, most if deepest is None else deepest)
        if depth < 1:
            return None
        if self._spec is not Spec.AUTO:
            return self._asked(most, depth)
        if self._wait:
            self._wait -= 1
            if self._wait == 0:
                self._probing, self._since_turn = True, 0
                self.judged.clear()
            return None
        if self._since_plain >= _PLAIN_EVERY:
            return None
        best = self._best(most, depth)
        if not self._trial and self._worth(best) <= 1 / self.costs.of(1):
            self._let_go += 1
            if self._let_go < _LOOK_AGAIN:
                self._since_turn += 1
                return None
        self._let_go = 0
        return best

    @property
    def _trial(self) -> bool:
        """Whether drafts are made whatever they promise: what they bring is to be told, and is not known."""
        return self._probing or self._since_turn >= WINDOW

    def lets_pass(self, n: int) -> bool:
        """Whether a pause goes on after `n` more tokens, which are then written without asking again."""
        if self._wait <= n:
            return False
        self._wait -= n
        return True

    def plain(self, seconds: float) -> Switch | None:
        """A step without drafts, of one sequence, took so long; what that changes."""
        self._since_plain = 0
        self._plain_s = _mean(self._plain_s, seconds, 0.3)
        return self._switch() if self._let_go else None

    def without_drafts(self, sequences: int) -> float:
        """Seconds of a step of so many sequences without drafts."""
        one = self._plain_s if self._plain_s is not None else self.costs.of(1)
        return one * self.costs.of(sequences) / self.costs.of(1)

    def saw(self, judged: Judged) -> Switch | None:
        """A draft was verified; what that changes."""
        self.judged.append(judged)
        accepted = judged.tokens - 1
        tree = judged.nodes > judged.depth
        for rates in (self._hits,) if tree else (self._hits, self._accepted):
            for i in range(min(judged.depth, accepted + 1)):
                rates[i] += _RATE * ((i < accepted) - rates[i])
        if tree:
            self._trees[judged.nodes] = _mean(self._trees.get(judged.nodes), judged.tokens, _RATE)
        former = self._draft_s.get(judged.depth)
        self._draft_s[judged.depth] = _mean(former, judged.draft_s, 0.2)
        self._since_plain += 1
        self._since_turn += 1
        return self._switch() if self._spec is Spec.AUTO else None

    def _switch(self) -> Switch | None:
        """Pause where the last drafts did not pay, or go on after a pause.

        A chance that was let go counts as well: else a bad drafter is told of after thousands of tokens.
        """
        few = len(self.judged) < _PROBE
        if few or self._since_turn < (_PROBE if self._probing else WINDOW):
            return None
        speedup, probing = self.speedup or 1.0, self._probing
        self._probing, self._since_turn = False, 0
        if speedup < 1.0:
            self._wait = self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            return Switch("paused", speedup, len(self.judged))
        self._pause = _FIRST_PAUSE
        return Switch("on", speedup, len(self.judged)) if probing else None

    def _asked(self, most: int, depth: int) -> Size:
        """As the user has it."""
        if self._spec is Spec.CHAIN or not self._branches:
            n = min(depth, self._budget or depth)
            return Size(n, n)
        if self._budget is None:
            return self._best(most, depth)
        nodes = min(self._budget, most)
        return Size(min(depth, nodes), nodes)

    def _best(self, most: int, depth: int) -> Size:
        longest = min(depth, self._budget or depth)
        sizes = [Size(n, n) for n in range(1, longest + 1)]
        if self._branches:
            wide = (self._budget,) if self._budget else _TREES
            sizes += [Size(depth, n) for n in wide if depth < n <= most]
        return max(sizes, key=self._worth)

    def _worth(self, size: Size) -> float:
        """Expected tokens a second."""
        known = self._draft_s
        nearest = min(known, key=lambda n: abs(n - size.depth), default=0)
        return self._tokens(size) / (self.costs.of(1 + size.nodes) + known.get(nearest, 0.0))

    def _tokens(self, size: Size) -> float:
        """Expected tokens of a step, the target's own one included."""
        if size.nodes in self._trees and size.nodes > size.depth:
            return self._trees[size.nodes]
        total, chance = 1.0, 1.0
        for accepted in self._accepted[: size.depth]:
            chance *= accepted
            total += chance
        # A tree that was not tried yet promises a little for each node beyond the chain.
        return total * (1 + 0.02 * (size.nodes - size.depth))


def _mean(former: float | None, new: float, rate: float) -> float:
    return new if former is None else former + rate * (new - former)
