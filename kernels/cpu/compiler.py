"""Compiles kernels for this processor and keeps the machine code in a folder of files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from llvmlite import binding as llvm

from kernels.cpu.emit import Target

_DIGEST = 32
_UNUSED_S = 7 * 24 * 3600


def detect() -> Target:
    """The best target of this processor."""
    has = llvm.get_host_cpu_features()
    if not (has.get("avx2") and has.get("fma") and has.get("f16c")):
        arm = llvm.get_process_triple().startswith(("aarch64", "arm64"))
        return Target("plain", 8, f16=arm, fma=arm)
    if has.get("avx512vnni") and has.get("avx512vl") and has.get("avx512bw"):
        return Target("avx512vnni", 16, f16=True, fma=True)
    return Target("avxvnni" if has.get("avxvnni") else "avx2", 8, f16=True, fma=True)


def fingerprint() -> str:
    """A name for all that compiled code depends on: these sources, LLVM, numba and the processor."""
    import numba

    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    parts = (numba.__version__, llvm.llvm_version_info, llvm.get_process_triple(),
             llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())  # fmt: skip
    digest.update(repr(parts).encode())
    return digest.hexdigest()[:16]


def prune(parent: Path) -> None:
    """Remove the folders of other versions and processors that no start has used for a week.

    Each start writes a file into its own, so a folder's time is that of its last use.
    """
    own = parent / f"cpu-{fingerprint()}"
    for folder in parent.glob("cpu-*"):
        with contextlib.suppress(OSError):
            unused = time.time() - folder.stat().st_mtime
            if folder != own and unused > _UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)


class Compiler:
    """Turns kernels into addresses; `folder` (None: no cache) holds one object file each.

    The folder must be `fingerprint`'s own: its files are trusted to be of this processor and source.
    """

    def __init__(self, folder: Path | None) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._folder = folder
        self._machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=3,
            jit=True,
        )
        self._engine = llvm.create_mcjit_compiler(
            llvm.parse_assembly(""), self._machine_for_engine()
        )
        self._addresses: dict[str, int] = {}
        self._objects: list[llvm.ObjectFileRef] = []
        self.compiled = 0

    def address(self, name: str, write: Callable[[str], str]) -> int:
        """The address of kernel `name`; `write(name)` gives its LLVM IR if it is not cached."""
        if name not in self._addresses:
            code = self._read(name)
            if code is None:
                code = self._compile(write(name))
                self._save(name, code)
            obj = llvm.ObjectFileRef.from_data(code)
            self._objects.append(obj)
            self._engine.add_object_file(obj)
            self._engine.finalize_object()
            self._addresses[name] = self._engine.get_function_address(name)
        return self._addresses[name]

    def close(self) -> None:
        """Free the machine code; no address may be called after it."""
        self._addresses.clear()
        self._engine.close()

    def _machine_for_engine(self) -> llvm.TargetMachine:
        return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)

    def _optimised(self, text: str) -> llvm.ModuleRef:
        module = llvm.parse_assembly(text)
        module.verify()
        module.triple = self._machine.triple
        module.data_layout = str(self._machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        passes = llvm.create_pass_builder(self._machine, options)
        passes.getModulePassManager().run(module, passes)
        return module

    def _compile(self, text: str) -> bytes:
        self.compiled += 1
        return bytes(self._machine.emit_object(self._optimised(text)))

    def _read(self, name: str) -> bytes | None:
        """The cached code, if it is whole."""
        if self._folder is None:
            return None
        try:
            data = (self._folder / f"{name}.o").read_bytes()
        except OSError:
            return None
        code = data[_DIGEST:]
        return code if hashlib.sha256(code).digest() == data[:_DIGEST] else None

    def _save(self, name: str, code: bytes) -> None:
        """Write so that a reader sees nothing or all; a full or read-only disk only costs the cache."""
        if self._folder is None:
            return
        part = None
        try:
            with tempfile.NamedTemporaryFile(
                dir=self._folder, suffix=".part", delete=False
            ) as file:
                part = file.name
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(part, self._folder / f"{name}.o")
        except OSError:
            if part is not None:
                Path(part).unlink(missing_ok=True)
