"""The settings of training a draft, declared as those of `engine.config` are."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import check_bounds, setting


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a DFlash draft is trained on texts that its target writes."""

    texts: int = setting(
        65536, "Texts", "Conversations that the model writes to learn from.",
        low=1, high=10_000_000, flag="--texts",
    )  # fmt: skip
    text_tokens: int = setting(
        384, "Tokens a text", "Longest conversation.", unit="tokens", low=64, high=8192,
        flag="--text-tokens",
    )  # fmt: skip
    write_batch: int = setting(
        2048, "Texts at once", "Written side by side; more need more memory.",
        low=1, high=65536, flag="--write-batch",
    )  # fmt: skip
    write_minutes: float = setting(
        0.0, "Writing time", "Longest time to write texts; 0 for no limit.", unit="minutes",
        low=0, high=100_000, flag="--write-minutes",
    )  # fmt: skip
    steps: int = setting(
        20000, "Steps", "Training steps.", low=1, high=10_000_000, flag="--steps"
    )  # fmt: skip
    train_minutes: float = setting(
        0.0, "Training time", "Longest time to train; 0 for no limit.", unit="minutes",
        low=0, high=100_000, flag="--train-minutes",
    )  # fmt: skip
    batch: int = setting(
        128, "Batch", "Texts a training step.", low=1, high=4096, flag="--batch"
    )  # fmt: skip
    anchors: int = setting(
        48, "Blocks a text", "Places of each text at which a block is learnt in a step.",
        low=1, high=1024, flag="--anchors",
    )  # fmt: skip
    learning_rate: float = setting(
        1.5e-3, "Learning rate", "At its highest; it rises at first and falls to nothing at the end.",
        low=1e-7, high=1.0, flag="--learning-rate",
    )  # fmt: skip
    loss_decay: float = setting(
        4.0, "Decay", "How fast later tokens of a block count less.", unit="tokens",
        low=0.1, high=1000, flag="--loss-decay",
    )  # fmt: skip
    layers: int = setting(3, "Layers", "Of the draft.", low=1, high=32, flag="--layers")
    n_ff: int = setting(
        0, "Feed-forward width", "Of the draft's layers; 0 for twice the model's width.",
        low=0, high=262_144, flag="--ff",
    )  # fmt: skip
    captures: int = setting(
        5, "Layers read", "Layers of the model whose output the draft sees.",
        low=1, high=32, flag="--captures",
    )  # fmt: skip
    block: int = setting(
        8, "Block", "Tokens of a pass, the known one included.", unit="tokens",
        low=2, high=32, flag="--block",
    )  # fmt: skip
    window: int = setting(
        256, "Window", "How far back the draft looks; 0 for the whole context.", unit="tokens",
        low=0, high=1_048_576, flag="--window",
    )  # fmt: skip
    measured: int = setting(
        16, "Measured prompts", "Held-out prompts of each kind that the result is measured on.",
        low=1, high=16, flag="--measured",
    )  # fmt: skip
    scheme: str = setting(
        "q8_0", "Scheme", "How the draft is stored.", flag="--scheme",
        choices=("q8_0", "q5_k_m", "q4_k_m", "q4_0", "f16", "bf16"),
    )  # fmt: skip
    seed: int = setting(
        0, "Seed", "The same one gives the same texts on the same device.",
        low=0, high=2**31, flag="--seed",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Raise `BadRequest` for a value outside its bounds."""
        check_bounds(self)
