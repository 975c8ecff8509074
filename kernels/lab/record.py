"""Writes kernels/resources.json: registers and static shared memory of every kernel on every architecture.

python -m kernels.lab.record

Fails where a kernel spills registers. The table names the sources that it was made from, so that a test can
tell a table that is out of date without compiling all of it again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from kernels.loader import SOURCES, expand, options
from kernels.nvrtc import Nvrtc, resources
from kernels.variants import ARCHITECTURES, Variant, all_variants


def fingerprint() -> str:
    """Of all that is compiled: every source with its headers, and every variant's options."""
    found = hashlib.sha256()
    for arch in ARCHITECTURES:
        for variant in dict.fromkeys(all_variants(arch)):
            found.update(f"{arch} {variant} {options(variant)}\n".encode())
    for file in sorted({v.file for arch in ARCHITECTURES for v in all_variants(arch)}):
        found.update(expand(file).encode())
    return found.hexdigest()[:32]


def main() -> int:
    """Compile everything and write the table; 1 where a kernel spills."""
    nvrtc = Nvrtc()
    table: dict[str, object] = {
        "nvrtc": ".".join(map(str, nvrtc.version)),
        "sources": fingerprint(),
    }
    spilled: list[str] = []
    for arch in ARCHITECTURES:

        def build(variant: Variant, arch: int = arch) -> dict[str, list[int]]:
            source = expand(variant.file)
            found = resources(nvrtc.compile(source, variant.file, arch, options(variant))[1])
            spilled.extend(f"{arch} {variant} {n}" for n, r in found.items() if r.spills or r.stack)
            return {f"{variant} {name}": [r.registers, r.shared] for name, r in found.items()}

        with ThreadPoolExecutor(2) as pool:
            rows = pool.map(build, dict.fromkeys(all_variants(arch)))
        table[str(arch)] = {name: used for row in rows for name, used in row.items()}
        print(arch, len(table))
    text = json.dumps(table, indent=0).replace("[\n", "[").replace("\n]", "]").replace(",\n", ", ")
    text = text.replace('], "', '],\n"').replace('}, "', '},\n"')
    (SOURCES / "resources.json").write_text(text + "\n", encoding="utf-8")
    print("\n".join(spilled), file=sys.stderr)
    return 1 if spilled else 0


if __name__ == "__main__":
    sys.exit(main())
