"""Writes kernels/resources.json: registers and static shared memory of every kernel on every architecture.

python -m kernels.lab.record
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from kernels.loader import SOURCES, expand, options
from kernels.nvrtc import Nvrtc, resources
from kernels.variants import ARCHITECTURES, Variant, all_variants


def main() -> None:
    """Compile everything and write the table."""
    nvrtc = Nvrtc()
    table: dict[str, object] = {"nvrtc": ".".join(map(str, nvrtc.version))}
    for arch in ARCHITECTURES:

        def build(variant: Variant, arch: int = arch) -> dict[str, list[int]]:
            source = expand(variant.file)
            log = nvrtc.compile(source, variant.file, arch, options(variant))[1]
            return {
                f"{variant} {name}": [r.registers, r.shared] for name, r in resources(log).items()
            }

        with ThreadPoolExecutor(2) as pool:
            rows = pool.map(build, dict.fromkeys(all_variants(arch)))
        table[str(arch)] = {name: used for row in rows for name, used in row.items()}
        print(arch, len(table))
    text = json.dumps(table, indent=0).replace("[\n", "[").replace("\n]", "]").replace(",\n", ", ")
    text = text.replace('], "', '],\n"').replace('}, "', '},\n"')
    (SOURCES / "resources.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
