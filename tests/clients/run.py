"""Real coding agents from npm against our server; not part of the tests, since it installs them.

    python -m tests.clients.run [--demo] [--folder FOLDER] [CLIENT ...]

Each client is installed in a folder of its own, gets the settings of `lucebox connect`, and does one turn:
it must print what the model says. With a scripted model, which is the default, there is a second turn in
which the model calls a tool of the client; the result of the tool must come back. --demo lets the demo
model answer in place of the script, of which a finished turn is asked and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import demo
from engine.api.served import Served
from engine.api.server import Server
from engine.config import EngineConfig, ServerConfig
from engine.connect import CLIENTS, Target, find_target, recipe, write
from engine.engine import Engine
from engine.types import Request
from tests.engine.api.scripted import ScriptedEngine

MARKER = "pineapple"
SAID = f"word is {MARKER}"  # which is not in the question
RAN = "the-tool-ran-here"
CONTEXT = 200_000
DEMO_CONTEXT = 16_384
_SECONDS = 600  # the demo model reads their long prompts on a processor


@dataclass(frozen=True)
class Client:
    """How one client is installed and asked for a turn; `flags` come behind what `connect` says.

    `small` are more flags, without which its prompt is longer than the demo model's context.
    """

    package: str
    binary: str
    flags: str
    environment: dict[str, str]
    small: str = ""


KNOWN = {
    "claude-code": Client(
        "@anthropic-ai/claude-code",
        "claude",
        "--print --dangerously-skip-permissions",
        {"IS_SANDBOX": "1"},
        "--tools '' --system-prompt 'Answer in one short sentence.'",
    ),
    "codex": Client(
        "@openai/codex",
        "codex",
        "exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
        {},
    ),
    "opencode": Client("opencode-ai", "opencode", "run", {"OPENCODE_DISABLE_AUTOUPDATE": "1"}),
    "pi": Client(
        "@mariozechner/pi-coding-agent", "pi", "--print --no-session", {"PI_OFFLINE": "1"}
    ),
}
assert set(KNOWN) == set(CLIENTS)


class Script:
    """What the scripted model says: a call of the client's shell when `use_tool`, then the marker."""

    def __init__(self) -> None:
        self.use_tool = False
        self.result_came_back = False

    def __call__(self, request: Request) -> Iterator[str]:
        said = str(list(request.messages or ()))
        self.result_came_back |= any(
            RAN in str(message.get("content"))
            for message in request.messages or ()
            if message["role"] == "tool"
        )
        call = _call(request) if self.use_tool and "tool" not in _roles(request) else None
        if call is not None and "please run" in said.lower():
            yield from (call[i : i + 9] for i in range(0, len(call), 9))
            return
        for word in f"The {SAID}.".split(" "):
            time.sleep(0.01)
            yield word + " "


def _roles(request: Request) -> set[str]:
    return {message["role"] for message in request.messages or ()}


def _call(request: Request) -> str | None:
    """A call of the first tool that runs commands."""
    for tool in request.tools or ():
        function = tool["function"]
        properties = function["parameters"].get("properties", {})
        for name in ("command", "cmd"):
            if name in properties and _is_shell(function["name"]):
                kind = properties[name].get("type")
                words = f"echo {RAN}"
                value = ["bash", "-lc", words] if kind == "array" else words
                arguments: dict[str, Any] = {name: value}
                if "description" in properties:
                    arguments["description"] = "Says that it ran"
                call = json.dumps({"name": function["name"], "arguments": arguments})
                return f"<tool_call>\n{call}\n</tool_call>"
    return None


def _is_shell(name: str) -> bool:
    return any(word in name.lower() for word in ("bash", "shell", "exec"))


def main(argv: list[str] | None = None) -> int:
    """Try the clients and tell how each one did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(KNOWN))
    parser.add_argument("--demo", action="store_true", help="the demo model answers")
    parser.add_argument("--folder", type=Path, help="where clients are or will be installed")
    args = parser.parse_args(argv)
    script = Script()
    engine, config = _engine(args.demo, script)
    server = Server(config, [Served(engine)])
    server.start()
    failed = 0
    try:
        with tempfile.TemporaryDirectory(prefix="lucebox-clients-") as work:
            folder = args.folder or Path(work) / "npm"
            for name in args.clients or KNOWN:
                problem = _try(
                    name, folder, Path(work) / name, server, None if args.demo else script
                )
                failed += problem is not None
                print(f"{name}: {problem or 'passed'}", flush=True)
    finally:
        server.stop()
        engine.close()
    return failed


def _engine(use_demo: bool, script: Script) -> tuple[Engine, ServerConfig]:
    config = ServerConfig(port=0)
    if not use_demo:
        engine: Engine = ScriptedEngine(script, "scripted")
        engine._info = replace(engine._info, max_ctx=CONTEXT)  # type: ignore[attr-defined]
        return engine, config
    engine = Engine()
    engine.start()
    # Twice what it was made for: OpenCode sums up again and again where its own prompt fills half of it.
    engine.load(demo.install(), EngineConfig(max_ctx=DEMO_CONTEXT))
    return engine, replace(config, max_tokens=256)


def _try(name: str, folder: Path, work: Path, server: Server, script: Script | None) -> str | None:
    """What went wrong with a client, or None."""
    client = KNOWN[name]
    if problem := _install(client, folder):
        return problem
    target = find_target(server.url)
    home = work / "home"
    home.mkdir(parents=True)
    environment = {
        "PATH": os.environ[
            "PATH"
        ],  # and nothing else: no keys, proxies or settings of who runs this
        **client.environment,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
    }
    flags = client.flags if script else f"{client.flags} {client.small}"
    ask = _asker(name, folder / "bin" / client.binary, flags, work, environment, target)
    served = server.models.all[0]
    before = served.engine.metrics().completion_tokens_total
    # The demo model draws its words, and now and then it does not come to an end.
    for _ in range(1 if script else 3):
        status, output = ask(f"Say the word {MARKER}.")
        if status == 0:
            break
    if status != 0:
        return f"it ended with {status}: {output[-600:]}"
    if script is None:
        written = served.engine.metrics().completion_tokens_total - before
        return None if written and output.strip() else f"no turn was finished: {output[-600:]}"
    if SAID not in output:
        return f"the answer did not arrive: {output[-600:]}"
    script.use_tool, script.result_came_back = True, False
    try:
        _, output = ask("Please run a command for me.")
    finally:
        script.use_tool = False
    if not script.result_came_back:
        return f"the tool's result did not come back: {output[-600:]}"
    return None if served.in_flight == 0 else "an answer is still being written"


def _install(client: Client, folder: Path) -> str | None:
    if (folder / "bin" / client.binary).exists():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    # Newer npm runs a package's own script, which puts its binary in place, only where it is named.
    done = subprocess.run(
        ["npm", "install", "--global", "--no-audit", "--no-fund",
         f"--allow-scripts={client.package}", "--prefix", str(folder), client.package],
        capture_output=True, text=True,
    )  # fmt: skip
    return f"npm failed: {done.stderr[-500:]}" if done.returncode else None


def _asker(
    name: str, binary: Path, given: str, work: Path, environment: dict[str, str], target: Target
) -> Callable[[str], tuple[int | None, str]]:
    """Asks the client something and gives its exit status, None after too long, and what it printed."""
    found = recipe(name, target, Path(environment["HOME"]))
    write(found)
    words = shlex.split(found.start)
    place = work / "project"
    place.mkdir()
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    flags = shlex.split(given)
    # A subcommand comes first, and plain flags last.
    inner = [*flags, *words[1:]] if not flags[0].startswith("-") else [*words[1:], *flags]

    def ask(text: str) -> tuple[int | None, str]:
        try:
            done = subprocess.run(
                [binary, *inner, text], cwd=place, env=environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
            return None, said if isinstance(said, str) else said.decode("utf-8", "replace")
        return done.returncode, done.stdout + done.stderr

    return ask


if __name__ == "__main__":
    sys.exit(main())
