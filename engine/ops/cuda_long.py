"""Long steps on a card: those that are not very long have few sizes, and most are replayed as graphs."""

from __future__ import annotations

from typing import Any

from engine.errors import OutOfMemory
from engine.ops.base import MOST_KEPT, StepInput
from engine.ops.cuda_attention import AttentionOps
from engine.ops.cuda_buffers import MOST_ROWS, Node, Pass, Tape
from engine.ops.cuda_device import told
from kernels.variants import F16

MOST_REPLAYED, FILLED, LONG_GRAPHS = 512, 64, 16
"""Long steps of up to so many rows become graphs and have a multiple of so many; so many sizes are kept.

Larger ones take a card longer than a host takes to launch them, and a graph would bring nothing.
"""


class LongSteps(AttentionOps):
    """Launches long steps, all but their heads."""

    def _pass_of(self, step: StepInput) -> Pass:
        """Send a step's variables. What may become a graph is filled up, unless some of it is tried."""
        rows, form = len(step.tokens), self._short_form
        sequences = self._limits.sequences + MOST_KEPT * (self.shape.delta is not None)
        if rows > MOST_ROWS:
            form = F16
            if rows <= MOST_REPLAYED and not step.tried.any():
                rows = -(-rows // FILLED) * FILLED
        tiles = self._step.send(step, rows)
        if rows > MOST_ROWS:
            least = -(-rows // self._tile_rows(rows))
            if tiles > least and rows <= MOST_REPLAYED:
                tiles = rows  # of which there are no more, so that few numbers of them come again
            tiles = max(tiles, least)
        return Pass(rows, form, tiles, 0, 0, sequences)

    def _is_replayed(self, p: Pass) -> bool:
        """Whether a long step may be a graph."""
        return MOST_ROWS < p.rows <= MOST_REPLAYED and self.card.timeline is None

    def _recorded(self, nodes: list[Node], p: Pass) -> Any:
        """A graph of what these launch; None where the card has no memory for one, about a megabyte."""
        try:
            with told(), self.card.capture() as captured:
                for node in nodes:
                    node.launch(p)
        except OutOfMemory:
            return None
        return captured.graph

    def _replay(self, p: Pass, tape: Tape) -> None:
        """Launch all but the head of a long step: of sizes that come again, as a graph, since a host takes
        longer to launch the kernels of a small model than a card to run them."""
        key = p.rows, p.tiles
        graph = tape.graphs.pop(key, None)
        body = [node for node in tape.nodes if node is not tape.head]
        if graph is None and key in tape.met:
            graph = self._recorded(body, p)
        if graph is None:
            tape.met.add(key)
            for node in body:
                node.launch(p)
            return
        tape.graphs[key] = graph  # the last one used is the last to go
        long = [key for key in tape.graphs if key[0] > MOST_ROWS]
        if len(long) > LONG_GRAPHS:
            del tape.graphs[long[0]]
        graph.launch(stream=self.card.stream)
