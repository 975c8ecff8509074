"""The texts that a drafter learns from: conversations that the target writes by itself.

The user's turn begins with a committed starter and is sampled on; the answer is greedy, mostly.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine import paths
from engine.chat import ChatTemplate
from engine.convert.train.torch_llama import TorchTarget
from engine.errors import BadRequest, UnsupportedModel
from engine.tokenizer import Tokenizer

PROMPTS = paths.resources_dir() / "drafts" / "prompts.json"
QUESTION_TOKENS = 56
QUESTION_HEAT = 0.9
ANSWER_HEAT = 0.7
SAMPLED_ANSWERS = 0.2
"""Share of the answers that are sampled, so that the drafter knows both ways of writing."""


@dataclass(frozen=True, slots=True)
class Text:
    """One conversation as token ids; the answer begins at `start`."""

    ids: list[int]
    start: int


class Writer:
    """Writes conversations with a target."""

    def __init__(
        self,
        target: TorchTarget,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        stop: int,
        most: int,
    ) -> None:
        self.target, self.tokenizer = target, tokenizer
        self.stop, self.most = stop, most
        prompts = json.loads(PROMPTS.read_text(encoding="utf-8"))
        self.starters: dict[str, list[str]] = prompts["starters"]
        self.held_out: dict[str, list[str]] = prompts["held_out"]
        self._head, self._tail = _frame(template)

    def conversations(self, n: int, seed: int) -> list[Text]:
        """`n` conversations, the categories in turn; the same seed gives the same ones on one device."""
        draw = random.Random(seed)
        kinds = list(self.starters)
        starts = [draw.choice(self.starters[kinds[i % len(kinds)]]) for i in range(n)]
        heads = [self._encode(self._head + s) for s in starts]
        most = max(map(len, heads)) + QUESTION_TOKENS
        asked = self.target.write(heads, most, self.stop, [QUESTION_HEAT] * n, seed)
        skip = len(self._encode(self._head))
        questions = [self._question(ids[skip:]) for ids in asked]
        heat = [ANSWER_HEAT if draw.random() < SAMPLED_ANSWERS else 0.0 for _ in questions]
        return self.answers([q for q in questions if q], heat, seed + 1)

    def answers(self, questions: Sequence[str], heat: Sequence[float], seed: int) -> list[Text]:
        """The target's answers; questions that leave no room for one are left out."""
        prompts = [self._encode(self._head + q + self._tail) for q in questions]
        fitting = [p for p in prompts if len(p) < self.most - 8]
        written = self.target.write(fitting, self.most, self.stop, heat[: len(fitting)], seed)
        return [Text(ids, len(p)) for ids, p in zip(written, fitting, strict=True)]

    def _question(self, ids: Sequence[int]) -> str:
        text = self.tokenizer.decode([i for i in ids if i != self.stop])
        return text.strip().replace("\x00", "")

    def _encode(self, text: str) -> list[int]:
        """Ids of a framed text; rendering the template for each would take a hundred times as long."""
        ids = self.tokenizer.encode(text, special=True)
        bos = self.tokenizer.bos_id
        return (
            [bos, *ids] if self.tokenizer.add_bos and bos is not None and ids[:1] != [bos] else ids
        )


def _frame(template: ChatTemplate) -> tuple[str, str]:
    """What the chat template puts before and after the user's words."""
    mark = "HERE THE USER SPEAKS"
    text = template.render([{"role": "user", "content": mark}])
    head, found, tail = text.partition(mark)
    if not found:
        raise UnsupportedModel("The chat template does not show the user's words as they are.")
    return head, tail


def stop_token(meta: Mapping[str, Any], tokenizer: Tokenizer) -> int:
    """The token that ends an answer; `BadRequest` for a model that has none."""
    named = meta.get("tokenizer.ggml.eos_token_id")
    if isinstance(named, int) and named in tokenizer.eos_ids:
        return named
    if not tokenizer.eos_ids:
        raise BadRequest("The target has no end token, so its answers have no end to learn.")
    return min(tokenizer.eos_ids)
