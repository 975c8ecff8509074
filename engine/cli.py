"""The `lucebox` command: stdout is data, stderr is talk."""

from __future__ import annotations

import argparse
import errno
import gc
import logging
import logging.handlers
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from engine import paths
from engine.config import EngineConfig, SamplingParams, Spec
from engine.errors import (
    BadRequest,
    EngineError,
    LoadCancelled,
    ModelFileError,
    OutOfMemory,
    UnsupportedModel,
)
from engine.parser import EXIT_USAGE, Parser
from engine.version import version

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_NO_DISPLAY = 3
EXIT_MODEL = 4
EXIT_MEMORY = 5
EXIT_STOPPED = 130
EXIT_PIPE = 141

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

NO_DISPLAY = """There is no display, so the window cannot open. These commands need none:

    lucebox generate --demo --prompt "Hello"    (from the checkout: ./start generate ...)
    lucebox bench --demo
    lucebox --help"""

log = logging.getLogger(__name__)


class Console:
    """Where a command writes: data to stdout, talk to stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self._progress = False

    def data(self, text: str, end: str = "\n") -> None:
        """Write what the command is for."""
        self.clear()
        sys.stdout.write(text + end)
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """Tell the user something, unless that was not wanted."""
        self.clear()
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """Show how far a long task is, in place; only on a terminal."""
        if self.live:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._progress = True

    def clear(self) -> None:
        """Take the progress line away."""
        if self._progress:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._progress = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without a command open the application."""
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return EXIT_STOPPED


def _main(arguments: list[str]) -> int:
    if not arguments:
        return open_app(arguments)  # at once: the flags of all commands take longer than the window
    parser, commands = build_parser()
    if opens_the_window(arguments, commands):
        return open_app(arguments)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print("lucebox: stdout is closed, so there is nowhere to write.", file=sys.stderr)
        return EXIT_FAILED
    for stream in (sys.stdout, sys.stderr):
        _use_utf8(stream)
    console = Console(getattr(args, "quiet", False))
    handler = _start_log()
    try:
        return _run(args, console)
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _run(args: argparse.Namespace, console: Console) -> int:
    """Carry out a command; every failure becomes one sentence and an exit code."""
    try:
        if args.command == "version":
            console.data(version())
        else:
            # Loaded here, so that help and version need no NumPy.
            from engine import commands, draft_commands

            name = args.command.replace("-", "_")
            getattr(commands if hasattr(commands, name) else draft_commands, name)(args, console)
        return EXIT_OK
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE
    except (KeyboardInterrupt, LoadCancelled):
        console.clear()
        print("Stopped.", file=sys.stderr)
        return EXIT_STOPPED
    except EngineError as error:
        console.clear()
        print(f"lucebox: {_printable(str(error))}", file=sys.stderr)
        return exit_code(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _unforeseen(args, error, console)
        _drop_output()
        console.clear()
        print(
            "lucebox: The disk that the output or the log goes to is full. Make room and try again.",
            file=sys.stderr,
        )
        return EXIT_FAILED
    except Exception as error:
        return _unforeseen(args, error, console)


def _unforeseen(args: argparse.Namespace, error: Exception, console: Console) -> int:
    log.error("The command %s failed", args.command, exc_info=error)
    console.clear()
    print(
        f"lucebox: An error that was not foreseen: {type(error).__name__}: {error}. "
        f"{_log_file()} has the details; please report it.",
        file=sys.stderr,
    )
    return EXIT_FAILED


def _drop_output() -> None:
    """What is still buffered must not be written to a broken stdout when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _printable(text: str) -> str:
    """A file's name may hold line ends and escape codes; a message is one line of plain text."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def exit_code(error: EngineError) -> int:
    """The documented exit code of an error."""
    if isinstance(error, (ModelFileError, UnsupportedModel)):
        return EXIT_MODEL
    if isinstance(error, OutOfMemory):
        return EXIT_MEMORY
    return EXIT_USAGE if isinstance(error, BadRequest) else EXIT_FAILED


def opens_the_window(arguments: Sequence[str], commands: Sequence[str]) -> bool:
    """Whether a command line asks for the application: nothing, `--demo`, or model files first."""
    if not arguments:
        return True
    first = arguments[0]
    if first in commands or first in ("-h", "--help"):
        return False
    return first == "--demo" or first.lower().endswith(".gguf") or os.path.exists(first)


def open_app(arguments: Sequence[str]) -> int:
    """Open the window where there is a display."""
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    ):
        print(NO_DISPLAY, file=sys.stderr)
        return EXIT_NO_DISPLAY
    gc.disable()  # the application's collector takes over; to look for garbage in imports takes 20 ms
    from app.main import main as run

    code = run(arguments)
    # All is saved and ended. Python would now look for garbage in everything that numba made, for seconds.
    gc.freeze()
    return code


def build_parser() -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The parser, and the names of all commands."""
    # Loaded here, for the window needs none of them.
    from engine.api.flags import add_flags
    from engine.arguments import add_settings, add_wishes
    from engine.draft_cli import add_draft_commands

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
        name: str, usage: str, summary: str, data: str, model: bool = True
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
        if name != "version":
            command.add_argument("-q", "--quiet", action="store_true", help="no talk on stderr")
        return command

    def add_json(command: argparse.ArgumentParser) -> None:
        command.add_argument("--json", action="store_true", help="write one JSON object")

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
    )
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", metavar="TEXT", help='what to go on from; "-" reads stdin')
    source.add_argument("--ids", metavar="IDS.json", help="a JSON list of token ids to go on from")
    command.add_argument("--chat", action="store_true", help="the prompt is a chat message")
    command.add_argument("--system", metavar="TEXT", help="system message, with --chat")
    command.add_argument("--stop", action="append", metavar="TEXT", help="end at this text")
    command.add_argument("--ignore-eos", action="store_true", help="do not end at the end token")
    add_json(command)
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
    guessing = ("spec", "draft", "budget")
    hidden = ("max_concurrency", "chat_template_file", *guessing)
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
    )
    command.add_argument("--file", required=True, metavar="TEXT", help='UTF-8 text; "-" is stdin')
    command.add_argument(
        "--window", type=int, default=512, metavar="TOKENS", help="tokens a window; default 512"
    )
    add_json(command)
    add_settings(command, EngineConfig, but=(*hidden, "max_ctx"))

    command = add(
        "inspect",
        "MODEL|--demo [--tensors] [--metadata] [--json]",
        "List what a model file holds.",
        "With --json one object: path, files, name, kind, problem, architecture, quant, parameters,"
        " file_bytes, context, layers, types, tensors, metadata.",
    )
    command.add_argument("--tensors", action="store_true", help="list every tensor")
    command.add_argument("--metadata", action="store_true", help="list the metadata")
    add_json(command)

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
    add_json(command)
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
    )
    command.add_argument("--device", default="cuda:0", metavar="TEXT", help="default cuda:0")
    add_json(command)

    command = add(
        "devices",
        "[--json]",
        "List what a model can run on.",
        "With --json one object: devices (id, kind, name, memory_total_bytes, memory_free_bytes,"
        " cores), problem (why there is no graphics card to use, or null).",
    )
    add_json(command)

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
    )
    group = command.add_mutually_exclusive_group()
    group.add_argument("--clear", action="store_true", help="delete them")
    group.add_argument("--forget", action="store_true", help="delete them and their key")
    command.add_argument(
        "--kv-cache-dir", metavar="DIR", help="by default as the window's settings say"
    )
    add_json(command)
    add_draft_commands(add, add_json)
    add("version", "", "Print the version.", "")
    return parser, tuple(commands.choices)


def _use_utf8(stream: IO[Any]) -> None:
    """Write UTF-8 whatever the locale; what is not a character of it is written escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(encoding="utf-8", errors="backslashreplace")


def _log_file() -> Path:
    return paths.log_dir() / "lucebox-cli.log"


def _start_log() -> logging.Handler:
    """Send warnings and tracebacks to a rotating file, which appears with the first of them."""
    try:
        paths.log_dir().mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.handlers.RotatingFileHandler(
            _log_file(), maxBytes=1 << 20, backupCount=2, encoding="utf-8", delay=True
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    return handler


if __name__ == "__main__":
    sys.exit(main())
