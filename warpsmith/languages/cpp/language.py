"""C++ for the CPU: one file with `extern "C" void run(...)`, compiled to a shared library."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from warpsmith import files
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import Build, BuildFailed, Language, Listing, Run
from warpsmith.languages.cpp import call as cpp_call
from warpsmith.languages.cpp import source as cpp_source
from warpsmith.languages.shared import tool

_API = Path(__file__).with_name("api")
_HEADER = _API / "warpsmith.hpp"
_SECONDS = 60.0
_OBJDUMP = ("--disassemble", "--reloc", "--line-numbers", "--inlines", "--no-show-raw-insn", "--demangle")
_NO_COMPILER = (
    "No C++ compiler is on PATH: install `g++` (Debian, Ubuntu), `gcc-c++` (Fedora) or `clang`, or set CXX."
)

_VECTORIZED = re.compile(r"^(.+?):(\d+):(\d+): (?:optimized: +loop vectorized|remark: vectorized loop)")
_MISSED = re.compile(
    r"^(.+?):(\d+):(\d+): "
    r"(?:missed: +couldn't vectorize loop|missed: +not vectorized: (.+)|remark: loop not vectorized:? ?(.*))"
)
_ERROR = re.compile(r"(?:^|: )(?:fatal |internal compiler )?error: |undefined reference|required symbol")
_NEST = re.compile(r"loop nest|nested loops|outer.loop")


class _Compiler(NamedTuple):
    command: tuple[str, ...]
    version: str
    standard: str

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    def report(self, path: Path) -> list[str]:
        """Flags that write the vectorisation report: to `path` with gcc, among the messages with clang."""
        if self.is_clang:
            return ["-Rpass=loop-vectorize", "-Rpass-missed=loop-vectorize", "-Rpass-analysis=loop-vectorize"]
        return [f"-fopt-info-vec-optimized-missed={path}"]


class Cpp:
    """The language `cpp`."""

    name = "cpp"
    suffix = ".cpp"
    targets: tuple[str, ...] = ("cpu",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks to run it on a target of that kind, in one sentence; None: ready."""
        if target_kind != "cpu":
            return "The language `cpp` runs on a CPU only; take another language for this target."
        return None if _command() else _NO_COMPILER

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Nothing: what runs is what was compiled."""
        return None

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: the signature, and a body to fill in."""
        return cpp_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without comments and layout: equal for versions that differ in nothing else."""
        return cpp_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return cpp_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Compile into `folder`, or take the library that the same source and compiler left there.

        Raises:
            BuildFailed: the source does not compile, or took more than a minute.
            MachineLacks: there is no compiler.
        """
        compiler, prototype = _compiler(), cpp_source.declaration(definition)
        flags = _flags(compiler, "native")
        parts = (source.read_bytes(), prototype, flags, compiler.version, cpu(), _HEADER.read_bytes())
        artifact = folder / f"{source.stem}-{hashlib.sha256(repr(parts).encode()).hexdigest()}.so"
        report = artifact.with_suffix(".json")
        if artifact.is_file() and report.is_file():
            return Build(source, artifact, (Resources.model_validate_json(report.read_text()),))
        folder.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(artifact)
        try:
            resources = _compile(compiler, source, prototype, [*flags, "-shared", *_LINK], temporary)
            files.write(report, resources.model_dump_json())
            os.replace(temporary, artifact)  # noqa: PTH105 - the compiler made it; a cache needs no fsync
        finally:
            temporary.unlink(missing_ok=True)
        return Build(source, artifact, (resources,))

    def load(self, build: Build, definition: Definition) -> Run:
        """The library's `run` for CPU tensors; in the worker process only.

        Raises:
            BadDefinition: the shape of a returned output cannot be told from the inputs.
        """
        import ctypes

        function = ctypes.CDLL(str(build.artifact)).run
        function.restype = None
        return cpp_call.caller(function, definition)

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Nothing: all is known at the build."""
        return ()

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile only; `arch` is `native` or a value of the compiler's -march.

        Raises:
            BuildFailed: the source does not compile for it.
            Misuse: `arch` is no name of an architecture.
        """
        import tempfile

        arch, compiler = self.architecture(arch), _compiler()
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            target = Path(folder) / "solution.o"
            prototype = cpp_source.declaration(definition)
            return (_compile(compiler, source, prototype, [*_flags(compiler, arch), "-c"], target),)

    def architecture(self, asked: str | None) -> str:
        """`native`, or a value of the compiler's -march.

        Raises:
            Misuse: it is no name of an architecture.
        """
        arch = "native" if asked is None else asked
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", arch):
            raise Misuse(f"`{arch}` is no architecture; give `native` or a value of -march such as `x86-64-v3`.")
        return arch

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """The object file disassembled with its source lines, as `run.<arch>.asm`; all workloads share it.

        Raises:
            BuildFailed: the source does not compile for it.
            MachineLacks: there is no compiler or no `objdump`, or the code is not for x86-64.
            Misuse: `arch` is no name of an architecture, or the compiler does not know it.
        """
        import tempfile

        arch, compiler, dumper = self.architecture(arch), _compiler(), shutil.which("objdump")
        if dumper is None:
            raise MachineLacks("No `objdump` is on PATH: install `binutils`.")
        empty = [*compiler.command, f"-march={arch}", "-fsyntax-only", "-x", "c++", os.devnull]
        if tool.run(empty, _SECONDS).code != 0:
            raise Misuse(f"{compiler.command[0]} takes no -march={arch}; give `native` or another value of it.")
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
            target = Path(temporary) / "solution.o"
            prototype = cpp_source.declaration(definition)
            report = _compile(compiler, source, prototype, [*_flags(compiler, arch), "-g1", "-c"], target)
            dumped = tool.run([dumper, *_OBJDUMP, target.name], _SECONDS, cwd=target.parent)
        if dumped.code != 0:
            said = tool.fenced(dumped.output.splitlines())
            raise MachineLacks(f"objdump failed; `binutils` may be too old.\n{said}")
        if "elf64-x86-64" not in dumped.output:
            raise MachineLacks(f"{source.name} is compiled for another CPU than x86-64: its assembly is not read.")
        path = folder / f"run.{arch}.asm"
        files.write(path, "\n".join(_quiet(dumped.output.splitlines())) + "\n")
        names = tuple(workload.name for workload in workloads)
        return (Listing("run", names, f"-march={arch}", "x86", path, report),)


LANGUAGE: Language = Cpp()

_LINK = ("-Wl,--require-defined=run", "-Wl,-z,defs")
"""It defines `run`, and nothing is left for another library in the process to define."""


@functools.cache
def cpu() -> str:
    """What code for this very processor depends on: what was compiled on another machine is not taken."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return ""
    with info.open() as lines:
        return next((line.rstrip("\n") for line in lines if line.startswith(("flags", "Features"))), "")


def _command() -> tuple[str, ...] | None:
    """The compiler: $CXX with its arguments, else the first one on PATH."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    candidates = [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]
    return next((tuple(parts) for parts in candidates if shutil.which(parts[0])), None)


def _compiler() -> _Compiler:
    command = _command()
    if command is None:
        raise MachineLacks(_NO_COMPILER)
    return _probe(command, shutil.which(command[0]) or "")


@functools.lru_cache
def _probe(command: tuple[str, ...], path: str) -> _Compiler:
    version = tool.run([*command, "--version"], _SECONDS).output
    modern = tool.run([*command, "-std=c++20", "-fsyntax-only", "-x", "c++", os.devnull], _SECONDS).code == 0
    return _Compiler(command, f"{path} {version}", "c++20" if modern else "c++17")


def _flags(compiler: _Compiler, arch: str) -> list[str]:
    return ["-O3", f"-march={arch}", f"-std={compiler.standard}", "-fopenmp", "-fPIC", f"-I{_API}"]


def _quiet(listing: Iterable[str]) -> Iterator[str]:
    """A listing without the callers of inlined code where they are named again, which is at every instruction."""
    known: list[str] = []
    named: list[str] = []
    for line in listing:
        if line.startswith("inlined by "):
            named.append(line)
            continue
        if named:
            if named != known:
                yield from named
            known, named = named, []
        elif line and not line[0].isspace():
            known = []  # a new place, which may have no callers
        if line:
            yield line


def _temporary(path: Path) -> Path:
    return path.with_name(f"{files.TEMPORARY}{secrets.token_hex(4)}-{path.name}")


def _compile(compiler: _Compiler, source: Path, prototype: str, flags: list[str], target: Path) -> Resources:
    """Compile to `target`. The prototype goes before the source: another signature is an error there."""
    expected, report = target.with_suffix(".expected.hpp"), target.with_suffix(".report")
    try:
        files.write(expected, f"#pragma once\n#include <warpsmith.hpp>\n{prototype};\n")
        command = [*compiler.command, *flags, *compiler.report(report), "-fno-diagnostics-color"]
        try:
            ended = tool.run([*command, "-include", expected, source, "-o", target], _SECONDS)
        except TimeoutError as error:
            raise BuildFailed(f"{source.name} was not compiled: {error}.") from error
        if ended.code != 0:
            raise BuildFailed(_failure(source, prototype, ended.output, expected))
        lines = report.read_text(errors="replace") if report.is_file() else ended.output
        return _vectorization(source, lines)
    finally:
        expected.unlink(missing_ok=True)
        report.unlink(missing_ok=True)


def _failure(source: Path, prototype: str, output: str, expected: Path) -> str:
    output = output.replace(str(source), source.name).replace(str(expected), "the expected signature")
    lines = [line for line in output.splitlines() if _ERROR.search(line)]
    signature = f" It must define `{prototype}`." if re.search(r"\brun\b", "\n".join(lines[:8])) else ""
    return f"{source.name} does not compile.{signature}\n{tool.fenced(lines or output.splitlines())}"


def _vectorization(source: Path, report: str) -> Resources:
    """Loops of the solution's own file; an outer loop of a nest is not counted, its inner loops are."""
    text = source.read_text(errors="replace").splitlines()
    vectorized: set[int] = set()
    missed: dict[int, str] = {}
    for line in report.splitlines():
        found, lost = _VECTORIZED.match(line), _MISSED.match(line)
        match = found or lost
        if match is None or Path(match[1]).name != source.name:
            continue
        place = _loop_line(text, int(match[2]))
        if found:
            vectorized.add(place)
        elif lost:
            missed[place] = missed.get(place) or (lost[4] or lost[5] or "").strip(" .")
    left = {line: why for line, why in missed.items() if line not in vectorized and not _NEST.search(why)}
    notes = tuple(f"line {line}: not vectorized: {why or 'no reason given'}" for line, why in sorted(left.items()))
    return Resources(kernel="run", vectorized_loops=len(vectorized), missed_loops=len(left), notes=notes[:8])


def _loop_line(text: list[str], number: int) -> int:
    """The line of the loop where the report names the line of a pragma before it."""
    continued = False
    while number < len(text) and (continued or text[number - 1].lstrip().startswith("#pragma")):
        continued = text[number - 1].endswith("\\")
        number += 1
    return number
