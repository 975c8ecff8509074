"""Speculative decoding: asks the drafter, keeps it informed, and counts what its guesses were worth."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from collections.abc import Sequence as Seq

from engine.config import Spec
from engine.draft.base import Anticipates, Begins, Drafter, Foresees
from engine.draft.costs import PassCosts
from engine.draft.policy import Judged, Policy
from engine.metrics import SpeculationMetrics
from engine.ops.base import Ops
from engine.types import Draft, Sequence, Step, StepResult, Switch

log = logging.getLogger(__name__)


class Speculation:
    """One drafter at work for one target; the serving thread alone calls it.

    A drafter that fails is left out from then on, and `problem` says why: it can only cost speed.
    """

    def __init__(
        self, drafter: Drafter, spec: Spec, budget: int | None, costs: PassCosts, vocab_size: int
    ) -> None:
        self.drafter = drafter
        self.places = drafter.reach
        self.problem = ""
        self._policy = Policy(drafter.depth, drafter.branches, spec, budget, costs)
        self._vocab_size = vocab_size
        self._asked: dict[int, float] = {}  # seconds of this step's drafts, by request
        self._since = self._next = 0.0  # when the step before this one ended, and this one
        self._shown: dict[int, float] = {}  # seconds for spans that the drafter has seen, by number
        self._drafted = self._accepted = self._pauses = 0
        self._switch: Switch | None = None

    def propose(self, sequence: Sequence, most: int) -> Draft | None:
        """A draft of at most `most` tokens, if that is worth its while."""
        wanted = sequence.n_most - len(sequence.tokens)
        if self.problem or (size := self._policy.size(most, wanted)) is None:
            return None
        began = time.perf_counter()
        try:
            draft = self.drafter.propose(sequence, size.depth, size.nodes)
        except Exception as error:
            self._give_up(error)
            return None
        self._asked[sequence.request_id] = time.perf_counter() - began
        return draft if draft.late else self._sound(draft, most)

    def lets_pass(self, sequences: Seq[Sequence]) -> bool:
        """Whether the step after the running one may go without drafts, so that it can be launched before
        the running one's tokens are known.

        Not where a drafter must see what the running step leaves, or may guess after the next token: one that
        has nothing to guess now seldom has after that.
        """
        if self.problem:
            return True
        if self.drafter.needs:
            return False
        if self._policy.paused:
            return self._policy.lets_pass(len(sequences))
        drafter = self.drafter
        return isinstance(drafter, Foresees) and not any(
            s.drafts and drafter.expects(s) for s in sequences
        )

    def _sound(self, draft: Draft, most: int) -> Draft | None:
        """Of a draft what can be verified: tokens that the target knows, and no more than were asked for."""
        n = next(
            (i for i, t in enumerate(draft.tokens) if not 0 <= t < self._vocab_size),
            len(draft.tokens),
        )
        n = min(n, most)
        if n == 0:
            return None
        if n < len(draft.tokens):
            return Draft(draft.tokens[:n], draft.parents[:n], draft.probabilities[:n])
        return draft

    def anticipate(self, step: Step, ops: Ops) -> None:
        """Let a drafter that can go on with a launched step before that is collected, and before anything
        else runs: of a chain the first rows will stand.
        """
        drafter, row = self.drafter, 0
        if self.problem or not isinstance(drafter, Anticipates):
            return
        try:
            for span in step.spans:
                n = len(span.tokens)
                if span.draft is not None and span.draft.is_chain:
                    drafter.anticipate(span.sequence, span.start, n, ops.hidden()[row : row + n])
                row += n
        except Exception as error:
            self._give_up(error)

    def begin(self, step: Step, result: StepResult, ops: Ops) -> None:
        """Let a drafter that can begin with what follows a step, before anything else is done with what that
        found, and before anything else runs.
        """
        drafter = self.drafter
        if self.problem or not isinstance(drafter, Begins):
            return
        self._next = time.perf_counter()
        try:
            for i, span in enumerate(step.spans):
                sequence, tokens = span.sequence, result.tokens[i]
                end = span.start + (len(span.tokens) if span.draft is None else len(tokens))
                if not (tokens and sequence.drafts) or sequence.request_id in result.errors:
                    continue
                if end + 1 >= sequence.n_most or tokens[-1] in sequence.ends:
                    continue  # its answer ends with this step
                self._show(i, step, result, ops)
                if self._policy.goes_on:
                    drafter.begin(sequence, end, tokens[-1])
        except Exception as error:
            self._give_up(error)

    def observe(
        self, step: Step, result: StepResult, ops: Ops, live: Seq[bool]
    ) -> tuple[Switch, ...]:
        """Show the drafter what of a step stands, and count it; `live` says which spans' sequences go on.

        To be called when the step's tokens are in their sequences, and before anything else runs. Gives
        what the step changed in whether drafts are made.
        """
        if not self.problem:
            try:
                for i in range(len(step.spans)):
                    if live[i] and i not in self._shown:
                        self._show(i, step, result, ops)
            except Exception as error:
                self._give_up(error)
        switches = tuple(self._count(step, result))
        self._asked.clear()
        self._shown.clear()
        self._since = self._next
        self._pauses += sum(switch.state == "paused" for switch in switches)
        self._switch = switches[-1] if switches else self._switch
        return switches

    def _show(self, i: int, step: Step, result: StepResult, ops: Ops) -> None:
        """Let the drafter observe span number i."""
        began, span, path = time.perf_counter(), step.spans[i], result.paths[i]
        n = len(span.tokens) if span.draft is None else len(path)
        if n:
            rows = None
            if self.drafter.needs:
                row = sum(len(before.tokens) for before in step.spans[:i])
                whole = span.draft is None or path == tuple(range(n))
                hidden = ops.hidden()
                rows = hidden[row : row + n] if whole else hidden[[row + p for p in path]]
            self.drafter.observe(span.sequence, span.start, n, rows)
        self._shown[i] = time.perf_counter() - began

    def release(self, sequence: Sequence) -> None:
        """A sequence has ended or lost its pages."""
        self.drafter.release(sequence)

    @property
    def metrics(self) -> SpeculationMetrics:
        """The numbers of this moment."""
        policy = self._policy
        judged = policy.judged
        n = max(1, len(judged))
        return SpeculationMetrics(
            drafter=self.drafter.name,
            state="failed" if self.problem else "paused" if policy.paused else "on",
            accepted_lengths=tuple(j.tokens for j in judged),
            by_position=policy.by_position,
            draft_ms=1e3 * sum(j.draft_s for j in judged) / n,
            verify_ms=1e3 * sum(j.verify_s for j in judged) / n,
            sample_ms=1e3 * sum(j.sample_s for j in judged) / n,
            speedup=policy.speedup,
            drafted_total=self._drafted,
            accepted_total=self._accepted,
            pauses_total=self._pauses,
            switch=self._switch,
            problem=self.problem,
        )

    def close(self) -> None:
        """Free the drafter."""
        self.drafter.close()

    def _count(self, step: Step, result: StepResult) -> Iterator[Switch]:
        policy, spans = self._policy, step.spans
        if any(span.start < span.sequence.n_prompt for span in spans):
            return  # what the reading of a prompt takes says nothing about drafts
        passed = result.seconds - result.sampling_s
        policy.costs.saw(step.n_tokens, passed)
        guessed = [i for i, span in enumerate(spans) if span.draft is not None]
        if not guessed:
            if len(spans) == 1 and (switch := policy.plain(result.seconds)) is not None:
                yield switch
            return
        share = 1 / len(spans)
        for i in guessed:
            span, tokens = spans[i], result.tokens[i]
            if span.draft is None or not tokens:
                continue
            drafting = self._asked.get(span.sequence.request_id, 0.0) + self._shown.get(i, 0.0)
            # Such a one was at work from the end of the former step on.
            if isinstance(self.drafter, Begins):
                drafting = (result.began - self._since) * share
            self._drafted += len(span.draft.tokens)
            self._accepted += len(tokens) - 1
            switch = policy.saw(
                Judged(
                    depth=max(span.draft.depths),
                    nodes=len(span.draft.tokens),
                    tokens=len(tokens),
                    draft_s=drafting,
                    verify_s=passed * share,
                    sample_s=result.sampling_s * share,
                    plain_s=policy.without_drafts(len(spans)) * share,
                )
            )
            if switch is not None:
                yield switch

    def _give_up(self, error: Exception) -> None:
        log.exception("The drafter %s failed and is left out", self.drafter.name)
        self.problem = f"The drafter {self.drafter.name} failed and is left out: {error}"
