"""What each command of `lucebox` does; `engine.command_line` has their flags, `engine.cli` runs them."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine import bench as speed
from engine import connect as connecting
from engine import perplexity as prediction
from engine import settings_store
from engine.api import auth
from engine.arguments import chosen, read_ids, read_messages, read_text, refuse_bytes
from engine.cache import disk
from engine.cache.archive import empty, folder_of
from engine.chat import ChatTemplate
from engine.command_model import loaded, model_path, serving
from engine.config import Precision, SamplingParams, Spec, disk_cache_config
from engine.describe import describe, show
from engine.devices import devices as list_devices
from engine.devices import gpus
from engine.errors import BadRequest, EngineError, KernelError
from engine.generating import request_of, wishes, write_answer
from engine.gguf import read_header
from engine.passes import VERIFIED
from engine.placement import size_text
from engine.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.cli import Console

_PAGE = 64


def generate(args: argparse.Namespace, console: Console) -> None:
    """Write text after a prompt, ids or a chat message."""
    if args.system is not None and not args.chat:
        raise BadRequest("--system is a chat message; add --chat.")
    if args.chat and args.ids is not None:
        raise BadRequest("--chat needs --prompt; token ids are taken as they are.")
    refuse_bytes(args.prompt, args.system, args.regex, *(args.stop or ()))
    prompt = read_text("-") if args.prompt == "-" else args.prompt
    ids = read_ids(args.ids) if args.ids is not None else None
    wanted = chosen(args, SamplingParams)
    # Wrong values are told before the model is loaded.
    SamplingParams(**wanted)
    wishes(args)
    with serving(args, console, {"max_concurrency": 1}) as (engine, info):
        sampling = replace(
            info.sampling,
            **wanted,
            stop=tuple(args.stop or ()) or info.sampling.stop,
            ignore_eos=args.ignore_eos,
        )
        request = request_of(args, prompt, ids, sampling)
        write_answer(engine, request, info, args.json, console)


def logits(args: argparse.Namespace, console: Console) -> None:
    """Write float32 (n, vocab) of a list of ids to a .npy file, which appears when it is whole."""
    ids = read_ids(args.tokens_file)
    out = _output_file(args.out)
    part = out.with_name(out.name + ".part")
    config = {"precision": Precision.EXACT, "max_ctx": _whole_pages(len(ids)), "spec": Spec.OFF}
    with loaded(args, console, config) as model:
        try:
            # Not into a mapping: where the disk is full, that ends the process with a signal.
            with part.open("wb") as file:
                shape = (len(ids), model.info.vocab_size)
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                done, bad = 0, []
                for piece in model.logits(ids):
                    file.write(np.ascontiguousarray(piece, "<f4"))
                    bad += (done + np.flatnonzero(~np.isfinite(piece).all(axis=1))).tolist()
                    done += len(piece)
                    console.progress(f"{done:,} of {len(ids):,} positions")
            part.replace(out)
        except OSError as error:
            raise EngineError(f"{out} cannot be written: {error.strerror or error}.") from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    if bad:
        console.say(f"{len(bad)} positions hold NaN or infinity, the first is {bad[0]}.")
    console.say(f"{out}: {len(ids):,} positions of {model.info.vocab_size:,} tokens.")


def tokenize(args: argparse.Namespace, console: Console) -> None:
    """Write the ids of a text."""
    if args.demo and args.text is None:
        args.text, args.model = args.model, None
    if args.text is None:
        raise BadRequest('The text is missing: lucebox tokenize MODEL TEXT, or "-" for stdin.')
    refuse_bytes(args.text)
    text = read_text("-") if args.text == "-" else args.text
    tokenizer = _tokenizer(model_path(args, console), console)
    ids = tokenizer.encode(text, special=args.special)
    if not args.pieces:
        console.json(ids)
        return
    for token in ids:
        console.data(f"{token}\t{json.dumps(tokenizer.token_text(token), ensure_ascii=False)}")


def render(args: argparse.Namespace, console: Console) -> None:
    """Write the prompt that messages become."""
    messages, tools = read_messages(args.messages)
    file = args.chat_template_file
    override = read_text(file) if file is not None else None
    meta = read_header(model_path(args, console)).meta
    tokenizer = Tokenizer.from_gguf(meta)
    template = ChatTemplate.from_gguf(meta, tokenizer, override)
    if not template.exists:
        console.say("The file has no chat template; a common one is used.")
    prompt = not args.no_generation_prompt
    if args.ids:
        console.json(template.encode(messages, tools, prompt))
    else:
        console.data(template.render(messages, tools, prompt), end="")


def perplexity(args: argparse.Namespace, console: Console) -> None:
    """Write the perplexity of a text."""
    if args.window < 3:
        raise BadRequest(f"--window: found {args.window}, expected at least 3.")
    text = read_text(args.file)
    with loaded(args, console, {"max_ctx": _whole_pages(args.window), "spec": Spec.OFF}) as model:
        found = prediction.measure(
            model, text, args.window, lambda done, n: console.progress(f"{done:,} of {n:,} tokens")
        )
    precision = model.config.precision.value
    if args.json:
        facts = {
            "perplexity": found.value if math.isfinite(found.value) else None,
            "nll": found.nll,
            "n_scored": found.n_scored,
            "n_tokens": found.n_tokens,
            "window": found.window,
            "precision": precision,
            "model": model.info.name,
        }
        console.json(facts)
    else:
        console.data(f"{found.value:.4f}")
    console.say(
        f"[{found.n_scored:,} of {found.n_tokens:,} tokens scored in windows of {found.window},"
        f" precision {precision}]"
    )


def inspect(args: argparse.Namespace, console: Console) -> None:
    """List what a model file holds, without reading its weights."""
    facts = describe(model_path(args, console))
    if args.json:
        console.json(facts)
    else:
        console.data(show(facts, tensors=args.tensors, metadata=args.metadata))


def bench(args: argparse.Namespace, console: Console) -> None:
    """Measure prefill, decode, first token and memory, and on request passes, kernels or the API."""
    if args.api:
        return _bench_api(args, console)
    wanted = speed.Wanted(
        prompts=_numbers("-p", args.p, 0),
        n_decode=_at_least("-n", args.n, 0),
        contexts=tuple(max(1, n) for n in _numbers("-d", args.d, 0)),
        repetitions=_at_least("-r", args.r, 1),
        rows=VERIFIED if args.verify else (),
        profile=args.profile,
        drafts=args.spec is not None and args.accept is None,
        accept=None if args.accept is None else _at_least("--accept", args.accept, 1),
    )
    # To verify guesses a model must be loaded for it.
    spec = Spec.CHAIN if args.verify or args.accept else Spec.OFF
    config = {"max_concurrency": 1, "max_ctx": _whole_pages(wanted.longest), "spec": spec}
    with serving(args, console, config) as (engine, info):
        report = speed.measure(engine, wanted, console.progress)
        memory = {part.title: part.bytes for part in engine.metrics().memory}
        plan = engine.use(lambda model: model.plan)
    name = next((d.name for d in list_devices() if d.id == plan.device), plan.device)
    if args.json:
        facts = {
            "model": info.name,
            "architecture": info.architecture,
            "quant": info.quant,
            "device": plan.device,
            "device_name": name,
            "threads": plan.threads,
            "precision": plan.precision.value,
            "n_decode": args.n,
            **report.facts(),
            "memory": memory,
        }
        console.json(facts)
        return
    console.data(f"{info.name} ({info.architecture}, {info.quant}, {size_text(info.file_bytes)})")
    threads = f", {plan.threads} threads" if plan.device == "cpu" else ""
    console.data(f"{name}{threads}, {plan.precision.value}")
    console.data(report.text())


def selftest(args: argparse.Namespace, console: Console) -> None:
    """Check every kernel of a graphics card."""
    from engine import selftest as trial

    def progress(stage: str, done: int, total: int) -> None:
        console.progress(f"{stage}, {done} of {total}" if total else stage)

    report = trial.run(args.device, progress)
    if args.json:
        console.json(report.facts())
    else:
        console.data(report.text())
    if not report.passed:
        raise KernelError("The card failed its self-test; what it does not do right is not used.")


def _numbers(flag: str, text: str, low: int) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise BadRequest(f"{flag}: found {text!r}, expected numbers such as 512,2048.") from None
    for number in found:
        _at_least(flag, number, low)
    return found


def _at_least(flag: str, number: int, low: int) -> int:
    if number < low:
        raise BadRequest(f"{flag}: found {number}, expected at least {low}.")
    return number


def _bench_api(args: argparse.Namespace, console: Console) -> None:
    """Measure what the API adds to the engine's time, and how soon an agent's next turn begins."""
    from engine.api import cached_turn, overhead

    new, context = max(1, *_numbers("-p", args.p, 1)), max(_numbers("-d", args.d, 0))
    context, rounds = context or cached_turn.CONTEXT, _at_least("-r", args.r, 1)
    path = model_path(args, console)
    added = overhead.measure(path, on_round=lambda n: console.progress(f"request {n}"))
    # As many pages as a server has, so that those of former turns need not go for the next one.
    config = {"max_ctx": _whole_pages(context + new + cached_turn.ROOM)}
    with serving(args, console, config) as (engine, _):
        turn = cached_turn.measure(
            engine, context, new, rounds, lambda n: console.progress(f"turn {n}")
        )
    if args.json:
        facts = {"prompt_tokens": overhead.PROMPT_TOKENS, "request_ms": added.request_ms.facts()}
        facts |= {"token_ms": added.token_ms.facts(), "cached_turn": turn.facts()}
        return console.json(facts)
    console.data(
        f"a request of {overhead.PROMPT_TOKENS:,} tokens{added.request_ms.median:>10.2f} ms"
    )
    console.data(f"a streamed token{added.token_ms.median:>22.3f} ms")
    console.data(
        f"a turn of {turn.prompt_tokens:,} tokens{turn.turn_ms.median:>13.2f} ms, {turn.new_tokens:,} of them"
        f" new: {turn.ratio:.2f} times a chat of {turn.alone_tokens:,} ({turn.alone_ms.median:.2f} ms)"
    )


def devices(args: argparse.Namespace, console: Console) -> None:
    """List the processor and the graphics cards, and say why there are none."""
    found, problem = list_devices(), gpus()[1]
    if args.json:
        facts = [
            {
                "id": device.id,
                "kind": device.kind,
                "name": device.name,
                "memory_total_bytes": device.memory_total,
                "memory_free_bytes": device.memory_free,
                "cores": device.cores,
            }
            for device in found
        ]
        console.json({"devices": facts, "problem": problem})
    else:
        for device in found:
            memory = f"{size_text(device.memory_free)} of {size_text(device.memory_total)} free"
            cores = f", {device.cores} cores" if device.cores else ""
            console.data(f"{device.id:<8}{device.name}, {memory}{cores}")
    if problem:
        console.say(problem)


def serve(args: argparse.Namespace, console: Console) -> None:
    """Serve models over the API."""
    from engine.api import command  # FastAPI loads here, not with the other commands

    command.serve(args, console)


def connect(args: argparse.Namespace, console: Console) -> None:
    """Show or write the settings with which a client uses the server."""
    url = args.url.rstrip("/").removesuffix("/v1")
    target = connecting.find_target(url, args.key, args.model)
    found = connecting.recipe(args.client, target)
    if args.write:
        console.data(str(connecting.write(found)))
    else:
        console.data(found.text, end="")
        console.say(f"These settings belong into {found.file}; --write puts them there.")
    console.say(f"Start it with: {found.start}")
    if (advice := connecting.advice(args.client, target)) is not None:
        console.say(advice)


def daemon(args: argparse.Namespace, console: Console) -> None:
    """Be a model for another program, over lines of JSON."""
    from engine.daemon import serve_lines  # pydantic and FastAPI load here

    if sys.stdin is None:
        raise BadRequest("stdin is closed; expected commands on it.")
    with serving(args, console) as (engine, info):
        serve_lines(engine, info, sys.stdin.buffer, sys.stdout.buffer)


def key(args: argparse.Namespace, console: Console) -> None:
    """Show the API key, or make a new one."""
    console.data(auth.renew_key() if args.renew else auth.api_key())
    if args.renew:
        console.say("Servers that run now take the old key until they are started again.")


def cache(args: argparse.Namespace, console: Console) -> None:
    """Show or delete what is kept on disk of conversations."""
    config = disk_cache_config(settings_store.load()[0])
    config = replace(config, disk_cache_dir=args.kv_cache_dir or config.disk_cache_dir)
    if args.clear or args.forget:
        empty((), config, args.forget)
    folder = folder_of(config)
    held = disk.usage(folder)
    if args.json:
        facts = {"folder": str(folder), "on": config.disk_cache, "files": held.files}
        console.json({**facts, "bytes": held.bytes})
        return
    console.data(f"{size_text(held.bytes)} in {held.files:,} files")
    console.say(f"They are in {folder}.")


def _output_file(name: str) -> Path:
    """Where to write; a symbolic link's target, and never over a device or a folder."""
    path = Path(name).resolve()
    if not name or (os.path.exists(path) and not os.path.isfile(path)):
        raise BadRequest(f"--out: found {name!r}, which is no file; expected the name of a file.")
    if not os.access(path.parent, os.W_OK):
        raise BadRequest(f"--out: nothing can be written in {path.parent}; choose another folder.")
    return path


def _tokenizer(path: Path, console: Console) -> Tokenizer:
    tokenizer = Tokenizer.from_gguf(read_header(path).meta)
    for warning in tokenizer.warnings:
        console.say(f"Note: {warning}")
    return tokenizer


def _whole_pages(n: int) -> int:
    """`n` tokens rounded up to whole pages."""
    return max(_PAGE, -(-n // _PAGE) * _PAGE)
