"""Find the system libraries that Qt needs and does not bring, and install them where that is allowed."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

DEBIAN = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}

COMMON = ("QtWidgets.abi3.so", "QtNetwork.abi3.so", "QtSvg.abi3.so")
WINDOW = (
    "Qt/plugins/platforms/libqxcb.so",
    "Qt/plugins/xcbglintegrations/libqxcb-glx-integration.so",
)
OFFSCREEN = ("Qt/plugins/platforms/libqoffscreen.so",)


def missing(files: tuple[str, ...]) -> list[str]:
    """Names of shared libraries that the dynamic linker does not find for these parts of Qt."""
    qt = Path(sysconfig.get_path("platlib")) / "PySide6"
    found = [str(qt / name) for name in files if (qt / name).exists()]
    run = subprocess.run(["ldd", *found], capture_output=True, text=True)
    lines = [line.split() for line in run.stdout.splitlines() if line.endswith("not found")]
    return sorted({line[0] for line in lines})


def install_line(names: list[str]) -> str:
    """The one command that installs these libraries on this system, or a sentence."""
    if shutil.which("apt-get"):
        known = sorted({DEBIAN[name] for name in names if name in DEBIAN})
        return "apt-get install -y --no-install-recommends " + " ".join(known)
    if shutil.which("dnf"):
        return "dnf install -y " + " ".join(f"'{name}()(64bit)'" for name in names)
    return "install, with the system's package manager: " + " ".join(names)


def apt_install(line: str) -> None:
    """Run the Debian line; a failure shows up in the check that follows."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("apt-get update -qq", line):
        subprocess.run(
            command.split(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )


def main() -> int:
    """0 when Qt can start; 1 after telling what is missing and the line that installs it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", action="store_true", help="for a window, not only offscreen")
    files = COMMON + (WINDOW if parser.parse_args().window else OFFSCREEN)
    if not shutil.which("ldd"):
        return 0
    names = missing(files)
    if not names:
        return 0
    line = install_line(names)
    if line.startswith("apt-get") and os.geteuid() == 0:
        print("Installing system libraries that Qt needs.", file=sys.stderr, flush=True)
        apt_install(line)
        names = missing(files)
        if not names:
            return 0
        line = install_line(names)
    if line.startswith("apt-get"):
        # The package lists of a fresh system are empty.
        line = f'sudo sh -c "apt-get update && {line}"'
    elif not line.startswith("install"):
        line = f"sudo {line}"
    print(
        f"Qt needs system libraries that are not here: {', '.join(names)}.\n"
        f"This installs them; then run this again:\n\n    {line}\n",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
