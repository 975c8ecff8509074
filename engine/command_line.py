"""The command line of `lucebox`: its commands and their flags."""

from __future__ import annotations

import argparse

from engine.api.flags import add_flags
from engine.arguments import add_settings, add_wishes
from engine.config import EngineConfig, SamplingParams, Spec
from engine.draft_cli import Add, add_draft_commands
from engine.parser import Parser
from engine.version import version

EXIT_CODES = """exit codes:
  0    done
  1    failed; one sentence on stderr says why
  2    wrong arguments, or a value or text that cannot be used
  3    there is no display to open the window on
  4    the model file is damaged, or of a kind that cannot be run
  5    memory is short
  130  stopped by Ctrl-C before it was done; a server is done then: 0
  141  the reader of stdout went away

Without a command, `lucebox [FILE ...] [--demo]` opens the window with these models.
JSON output only ever gains keys. `lucebox COMMAND --help` lists the flags of a command.
"""

_GUESSING = ("spec", "draft", "budget")


def build_parser() -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The parser, and the names of all commands."""
    parser = Parser(
        prog="lucebox",
        usage="lucebox [FILE ...] [--demo] | lucebox COMMAND ...",
        description="Large language models on this PC. Data goes to stdout, talk to stderr.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=version())
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="lucebox"
    )

    def add(
        name: str, usage: str, summary: str, data: str, model: bool = True, json: bool = False
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            usage=f"lucebox {name} {usage}",
            help=summary,
            description=f"{summary} {data}",
            allow_abbrev=False,
        )
        if model and usage.startswith("MODEL"):
            command.add_argument("model", nargs="?", metavar="MODEL", help="a .gguf file")
            command.add_argument("--demo", action="store_true", help="use the demo model")
        if json:
            command.add_argument("--json", action="store_true", help="write one JSON object")
        if name != "version":
            command.add_argument("-q", "--quiet", action="store_true", help="no talk on stderr")
        return command

    _add_text_commands(add)
    _add_measures(add)
    _add_servers(add)
    add_draft_commands(add)
    add("version", "", "Print the version.", "")
    return parser, tuple(commands.choices)


def _add_text_commands(add: Add) -> None:
    """Add what reads and writes text."""
    command = add(
        "generate",
        "MODEL|--demo (--prompt TEXT | --ids IDS.json) [--chat] [--json] [options]",
        "Write text.",
        "stdout is the text as it comes; with --json one object: text, ids, finish_reason (stop or"
        " length), stop, context_full, loop, form_cut, prompt_tokens, reused_tokens, completion_tokens,"
        " first_token_s, prefill_tok_s, decode_tok_s, tokens (as ids), drafter, acceptance_length,"
        " steps (drafted and accepted of each verified draft), speedup over no drafts, speculation"
        " (when it paused or went on: state, speedup, steps, text), model; of a chat also content,"
        " reasoning_content, tool_calls, reasoning_tokens; with --logprobs also logprobs.",
        json=True,
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", metavar="TEXT", help='what to go on from; "-" reads stdin')
    source.add_argument("--ids", metavar="IDS.json", help="a JSON list of token ids to go on from")
    command.add_argument("--chat", action="store_true", help="the prompt is a chat message")
    command.add_argument("--system", metavar="TEXT", help="system message, with --chat")
    command.add_argument("--stop", action="append", metavar="TEXT", help="end at this text")
    command.add_argument("--ignore-eos", action="store_true", help="do not end at the end token")
    add_wishes(command)
    add_settings(command, SamplingParams)
    add_settings(command, EngineConfig, but=("max_concurrency",))

    command = add(
        "logits",
        "MODEL|--demo --tokens-file IDS.json --out OUT.npy [options]",
        "Write the scores of every token at every position.",
        "Writes float32 (n, vocab) to OUT.npy; stdout stays empty.",
    )
    command.add_argument("--tokens-file", required=True, metavar="IDS.json", help="token ids")
    command.add_argument("--out", required=True, metavar="OUT.npy", help="the file to write")
    hidden = ("max_concurrency", "chat_template_file", *_GUESSING)
    add_settings(command, EngineConfig, but=hidden, precision="exact")

    command = add(
        "tokenize",
        "MODEL|--demo TEXT [--special] [--pieces]",
        "Show the token ids of a text.",
        "stdout is a JSON list of ids.",
    )
    command.add_argument("text", nargs="?", metavar="TEXT", help='the text; "-" reads stdin')
    command.add_argument("--special", action="store_true", help="markers become control tokens")
    command.add_argument("--pieces", action="store_true", help="a line for each token: id, piece")

    command = add(
        "render",
        "MODEL|--demo --messages M.json [options]",
        "Show what a chat becomes for the model.",
        "M.json is a list of messages, or an object with the lists messages and tools;"
        " stdout is the prompt.",
    )
    command.add_argument(
        "--messages", required=True, metavar="M.json", help='messages as JSON; "-" reads stdin'
    )
    command.add_argument("--ids", action="store_true", help="write token ids, not text")
    command.add_argument(
        "--no-generation-prompt", action="store_true", help="leave out the start of the answer"
    )
    command.add_argument("--chat-template-file", metavar="TEXT", help="another jinja template")

    command = add(
        "perplexity",
        "MODEL|--demo --file TEXT [--window TOKENS] [--json] [options]",
        "Measure how well a model predicts a text.",
        "stdout is the number; with --json one object: perplexity, nll, n_scored, n_tokens, window,"
        " precision, model.",
        json=True,
    )
    command.add_argument("--file", required=True, metavar="TEXT", help='UTF-8 text; "-" is stdin')
    command.add_argument(
        "--window", type=int, default=512, metavar="TOKENS", help="tokens a window; default 512"
    )
    add_settings(command, EngineConfig, but=(*hidden, "max_ctx"))


def _add_measures(add: Add) -> None:
    """Add what tells of files and of this PC."""
    command = add(
        "inspect",
        "MODEL|--demo [--tensors] [--metadata] [--json]",
        "List what a model file holds.",
        "With --json one object: path, files, name, kind, problem, architecture, quant, parameters,"
        " file_bytes, context, layers, types, tensors, metadata.",
        json=True,
    )
    command.add_argument("--tensors", action="store_true", help="list every tensor")
    command.add_argument("--metadata", action="store_true", help="list the metadata")

    command = add(
        "bench",
        "MODEL|--demo [-p 512] [-n 128] [-d 0] [-r 3] [--verify] [--accept N] [--profile] [--api] [--json]"
        " [options]",
        "Measure speed and memory.",
        "Prefill and decode are measured apart, each round in turn. With --json one object: model,"
        " device, device_name, threads, precision, n_prompt, n_decode, prefill_tok_s, decode_tok_s,"
        " first_token_s (each with median and values), prefill, decode (a list, one for each length),"
        " passes, forced, profiles, read_gb_s, weight_bytes, peak_memory_bytes, memory; with --api"
        " prompt_tokens, request_ms, token_ms, cached_turn.",
        json=True,
    )
    command.add_argument("-p", default="512", metavar="N,..", help="prompt tokens, 512")
    command.add_argument("-n", type=int, default=128, metavar="N", help="tokens to write, 128")
    command.add_argument("-d", default="0", metavar="N,..", help="context to write behind, 0")
    command.add_argument("-r", type=int, default=3, metavar="N", help="rounds, 3")
    command.add_argument("--verify", action="store_true", help="time passes of 1 to 32 tokens")
    command.add_argument(
        "--accept", type=int, metavar="N", help="measure drafts of which N tokens a pass are taken"
    )
    command.add_argument("--profile", action="store_true", help="time each kernel of a card")
    command.add_argument(
        "--api",
        action="store_true",
        help="time what the API adds, and a turn of -p new tokens behind a known chat of -d, 8000",
    )
    add_settings(
        command, EngineConfig, but=("max_concurrency", "chat_template_file"), spec=Spec.OFF
    )

    command = add(
        "selftest",
        "[--device cuda:0] [--json]",
        "Check every kernel of a graphics card against NumPy, and measure its ceilings.",
        "What is wrong is not used from then on. Exit code 1 if a check failed. With --json one object:"
        " device, name, architecture, driver, kernels, passed, checks (name, error, tolerance, passed,"
        " problem), not_used, read_gb_s, int8_tera_s, f16_tera_s, seconds.",
        json=True,
    )
    command.add_argument("--device", default="cuda:0", metavar="TEXT", help="default cuda:0")

    command = add(
        "devices",
        "[--json]",
        "List what a model can run on.",
        "With --json one object: devices (id, kind, name, memory_total_bytes, memory_free_bytes,"
        " cores), problem (why there is no graphics card to use, or null).",
        json=True,
    )


def _add_servers(add: Add) -> None:
    """Add what other programs are served with."""
    command = add(
        "serve",
        "MODEL [MODEL ...] | --demo | --model MODEL [its options] ... [options]",
        "Serve models over the APIs of OpenAI and Anthropic.",
        "stdout is the address; Ctrl-C ends it.",
        model=False,
    )
    add_flags(command)

    command = add(
        "daemon",
        "MODEL|--demo [options]",
        "Be a model for another program: JSON lines on stdin and stdout.",
        "Operations: generate, cancel, snapshot, restore, list, free, park, unpark, quit.",
    )
    add_settings(command, EngineConfig)

    command = add(
        "connect",
        "CLIENT [--url URL] [--key KEY] [--model NAME] [--write]",
        "Let another program use the server that runs.",
        "stdout is the client's settings; with --write they go into its file, whose name is then stdout.",
    )
    command.add_argument("client", choices=("claude-code", "codex", "opencode", "pi"))
    command.add_argument("--url", default="http://127.0.0.1:8080", help="where the server is")
    command.add_argument("--key", help="the API key of a server on another PC")
    command.add_argument("--model", metavar="NAME", help="by default the server's first")
    command.add_argument("--write", action="store_true", help="change the client's own file")

    command = add("key", "[--renew]", "Show the API key.", "stdout is the key.")
    command.add_argument(
        "--renew", action="store_true", help="make a new one, which servers take as they start"
    )

    command = add(
        "cache",
        "[--clear|--forget] [--kv-cache-dir DIR] [--json]",
        "Show or delete the conversations that are kept on disk.",
        "What a running server holds in memory stays. With --json one object: folder, on (whether the"
        " window keeps conversations), files, bytes.",
        model=False,
        json=True,
    )
    group = command.add_mutually_exclusive_group()
    group.add_argument("--clear", action="store_true", help="delete them")
    group.add_argument("--forget", action="store_true", help="delete them and their key")
    command.add_argument(
        "--kv-cache-dir", metavar="DIR", help="by default as the window's settings say"
    )
