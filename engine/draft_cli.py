"""The arguments of the commands about drafts; `engine.draft_commands` carries them out."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from engine.arguments import add_settings
from engine.config import EngineConfig
from engine.convert.config import TrainConfig

Add = Callable[..., argparse.ArgumentParser]


def add_draft_commands(add: Add) -> None:
    """Add them to the parser of `lucebox`, by its way of adding a command."""
    command = add(
        "convert-draft",
        "DRAFT OUT.gguf [--type f16|bf16|f32] [--dialect llama.cpp|lucebox] [--target MODEL.gguf]",
        "Write a DFlash draft as GGUF.",
        "DRAFT is a folder of safetensors with its config.json, a .safetensors file in one, or a GGUF of"
        " another dialect. For llama.cpp the file carries the tokenizer of --target.",
    )
    _in_and_out(command)
    command.add_argument(
        "--type", default="f16", choices=("f16", "bf16", "f32"), help="of matrices; default f16"
    )
    command.add_argument(
        "--dialect", default="llama.cpp", choices=("llama.cpp", "lucebox"), help="default llama.cpp"
    )
    command.add_argument("--target", metavar="MODEL.gguf", help="the model that the draft is for")

    command = add(
        "quantize-draft",
        "IN.gguf OUT.gguf [--scheme q8_0]",
        "Write a DFlash draft with fewer bits.",
        "All metadata and names stay; rows that do not divide into blocks become Q8_0 or F16.",
    )
    _in_and_out(command)
    command.add_argument(
        "--scheme",
        default="q8_0",
        choices=("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "f16", "bf16"),
        help="default q8_0",
    )

    command = add(
        "draft-check",
        "MODEL|--demo DRAFT [--ids IDS.json] [--tokens 48] [--json] [options]",
        "Find out why a draft is accepted or is not.",
        "Drafts while the model writes a few short texts. With --json one object: acceptance_length,"
        " by_position, texts, settings, cause, advice, tried.",
        json=True,
    )
    command.add_argument("draft", nargs="?", metavar="DRAFT", help="the draft's file or folder")
    command.add_argument(
        "--ids", metavar="IDS.json", help="a text that the draft must know, as ids"
    )
    command.add_argument(
        "--tokens", type=int, default=48, metavar="N", help="tokens to write a text; default 48"
    )
    hidden = ("max_concurrency", "max_ctx", "spec", "draft", "budget")
    add_settings(command, EngineConfig, but=hidden, precision="exact")

    command = add(
        "draft-bench",
        "MODEL|--demo [--draft DRAFT] [--tokens 64] [--json] [options]",
        "Measure what drafts bring on this PC.",
        "The model writes the same short texts with drafts and without. With --json one object: drafter,"
        " texts, off_tok_s, on_tok_s, acceptance_length, speedup, equal, paused, memory.",
        json=True,
    )
    command.add_argument(
        "--tokens", type=int, default=64, metavar="N", help="tokens to write a text; default 64"
    )
    add_settings(command, EngineConfig)

    command = add(
        "train-draft",
        "MODEL|--demo --out DRAFT.gguf [--work DIR] [--json] [options]",
        "Train a DFlash draft for a model that has none.",
        "The model writes the texts that the draft learns from. Needs PyTorch (the extra `train`) and in"
        " practice a graphics card; a run that was stopped goes on where it was. With --json one object:"
        " path, acceptance, by_position, steps, texts, answer_tokens, seconds.",
        json=True,
    )
    command.add_argument("--out", required=True, metavar="DRAFT.gguf", help="the file to write")
    command.add_argument(
        "--work", metavar="DIR", help="for texts and checkpoints; default DRAFT.gguf.train"
    )
    command.add_argument(
        "--start", metavar="DRAFT.gguf", help="a draft of the same shape to go on from"
    )
    add_settings(command, TrainConfig)


def _in_and_out(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", metavar="DRAFT", help="what to read")
    command.add_argument("out", metavar="OUT.gguf", help="the file to write")
