"""One step more on the device than is read: step n + 1 is launched before the tokens of step n are known.

It takes them from the device, and all else of it is known. What is launched is never thrown away: it is the
next step of those that it is for, and whoever ends meanwhile has one more token computed than was asked for.
His pages may serve others at once all the same, since the device does everything in the order asked.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from engine.loading import LoadedModel
from engine.runner import Flight
from engine.sampling import Sampler
from engine.types import Sequence, Span, Step


class Ahead:
    """Launches the steps of one engine; the serving thread alone calls it."""

    def __init__(self) -> None:
        self._next: Flight | None = None

    def take(self, running: Container[int]) -> Flight | None:
        """The step that was launched ahead, of those that are still running; None where there is none."""
        flight, self._next = self._next, None
        if flight is None:
            return None
        kept = [
            (_known(span), row)
            for span, row in zip(flight.step.spans, flight.rows, strict=True)
            if span.sequence.request_id in running
        ]
        if not kept:
            return None
        spans, rows = zip(*kept, strict=True)
        flight.step, flight.rows = Step(spans), rows
        return flight

    def follow(self, model: LoadedModel, flight: Flight, samplers: Mapping[int, Sampler]) -> None:
        """Launch the step after a running one that is not collected yet, if nothing speaks against it."""
        spans = flight.step.spans
        mine = [samplers[span.sequence.request_id] for span in spans]
        if flight.launched is None or flight.found is not None:
            return  # its tokens are not on the device, or not the last ones there
        if not all(sampler.is_told and sampler.is_sure and sampler.is_free for sampler in mine):
            return
        step = model.scheduler.ahead(spans, flight.rows)
        if step is None:
            return
        choices, speculation = model.runner.choices(step, samplers), model.speculation
        if choices is None:
            return
        if speculation is None or speculation.lets_pass([span.sequence for span in step.spans]):
            self._next = model.runner.launch(step, samplers, choices)

    def land(self, model: LoadedModel) -> None:
        """Wait for what is on its way, so that anything else may be run on the device."""
        if self._next is not None:
            model.runner.land(self._next)

    def leave(self, sequence: Sequence) -> None:
        """A sequence has ended: what is on its way for it counts as computed."""
        if self._next is not None:
            spans = self._next.step.spans
            sequence.n_computed += any(span.sequence is sequence for span in spans)

    def drop(self) -> None:
        """Nobody wants what is on its way."""
        self._next = None


def _known(span: Span) -> Span:
    """A span that was launched before its token was known."""
    return Span(span.sequence, span.start, (span.sequence.tokens[span.start],), span.want_logits)
