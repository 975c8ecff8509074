"""The `lucebox` command: stdout is data, stderr is talk."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Sequence

EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_NO_DISPLAY = 0, 1, 2, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without arguments open the application."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        return open_app(arguments)
    parser = argparse.ArgumentParser(prog="lucebox", description=__doc__)
    parser.add_subparsers(required=True, dest="command").add_parser("version")
    parser.parse_args(arguments)
    print(version())
    return EXIT_OK


def version() -> str:
    """The installed version, or that of the checkout."""
    try:
        return importlib.metadata.version("lucebox")
    except importlib.metadata.PackageNotFoundError:
        return "checkout"


def open_app(arguments: list[str]) -> int:
    """Open the window where there is a display."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY", "") + os.environ.get(
        "WAYLAND_DISPLAY", ""
    ):
        print("There is no display, so the window cannot open.", file=sys.stderr)
        return EXIT_NO_DISPLAY
    from app.main import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
