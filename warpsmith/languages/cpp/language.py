"""C++ for the CPU: one file with `extern "C" void run(...)`, compiled to a shared library."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from warpsmith import files
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages.base import (
    Build,
    BuildFailed,
    ExportedVersion,
    Language,
    LibraryEntry,
    Listing,
    Run,
    SourcePattern,
)
from warpsmith.languages.cpp import call as cpp_call
from warpsmith.languages.cpp import line_counts
from warpsmith.languages.cpp import source as cpp_source
from warpsmith.languages.cpp.export import BINDING, binding_source
from warpsmith.languages.shared import cxx_compiler, stamps, tool
from warpsmith.languages.shared.cpp_source import blank_tokens, lint_cpp, normalise_cpp
from warpsmith.languages.shared.host_cpu import cpu_features
from warpsmith.temporary import TemporaryFolder

if TYPE_CHECKING:
    import torch

_API = Path(__file__).with_name("api")
_HEADER = _API / "warpsmith.hpp"
_SECONDS = 60.0
_OBJDUMP = ("--disassemble", "--reloc", "--line-numbers", "--inlines", "--no-show-raw-insn", "--demangle")

_VECTORIZED = re.compile(r"^(.+?):(\d+):(\d+): (?:optimized: +loop vectorized|remark: vectorized loop)")
_MISSED = re.compile(
    r"^(.+?):(\d+):(\d+): (?:missed: +couldn't vectorize loop|remark: loop not vectorized:? ?(.*))"
)
_REASON = re.compile(r": missed: +not vectorized: (.+?)(?:: [*_].*)?$")
_CALL = re.compile(r": missed: +statement clobbers memory: (?:\S+ = )?(?:__builtin_)?(\w+) \(")
_LOOP = re.compile(r"\b(?:for|while|do)\b")
_ERROR = re.compile(r"(?:^|: )(?:fatal |internal compiler )?error: |undefined reference|required symbol")
_OPENMP_CALL = re.compile(r"\bomp_\w+\s*\(")
_LOADERS = frozenset({"dlopen", "dlmopen", "dlsym", "dlvsym", "dl_iterate_phdr", "dladdr"})
"""Functions of the C library that find functions of others."""

_EXPORT_FLAGS = ("-std=c++17", "-O2")
"""Flags of TVM-FFI's build, which compiles exported versions."""
_NEST = re.compile(r"loop nest|nested loops|outer.loop")


class _Compiler(NamedTuple):
    """A C++ compiler: its command, its version, and the language standard that it takes."""

    command: tuple[str, ...]
    version: str
    standard: str

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    def report_flags(self, path: Path) -> list[str]:
        """Return the flags for the vectorisation report: gcc writes it to `path`, clang among its messages."""
        if self.is_clang:
            return ["-Rpass=loop-vectorize", "-Rpass-missed=loop-vectorize", "-Rpass-analysis=loop-vectorize"]
        return [f"-fopt-info-vec-optimized-missed={path}"]


class Cpp(Language):
    """The language `cpp`."""

    name = "cpp"
    title = "C++"
    aliases = ("cplusplus", "openmp")
    suffix = ".cpp"
    targets = ("cpu",)
    architectures = ("cpu",)
    control = "intrinsics and threads by hand"
    product = "a C++ kernel with OpenMP and intrinsics"
    fallback = "stay with PyTorch"
    preference = 1
    notice_entries = MappingProxyType({"serial additions": "cpp-serial-float-reduction-chain"})
    source_patterns = (SourcePattern((".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")),)

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks to run it on a target of that kind; None: nothing."""
        if target_kind != "cpu":
            return "The language `cpp` runs on a CPU only; choose another language for this target."
        return cxx_compiler.missing_cxx_compiler()

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: the signature, and a body to fill in."""
        return cpp_source.cpp_template(definition)

    def export(self, source: Path, definition: Definition, hits: str = "") -> ExportedVersion:
        """Return the version with its header and a binding; raises BuildFailed if that build fails."""
        text = source.read_text()
        if _OPENMP_CALL.search(blank_tokens(text, "comment")):
            raise BuildFailed("it calls OpenMP's library, which the consumer's build does not link")
        if compiler := cxx_compiler.find_cxx_compiler():
            check = tool.run_tool([*compiler, *_EXPORT_FLAGS, "-fsyntax-only", "-I", _API, source], _SECONDS)
            if check.code:
                error = next((line for line in check.output.splitlines() if _ERROR.search(line)), "")
                raise BuildFailed(f"it does not compile with {' '.join(_EXPORT_FLAGS)}: {error}")
        files = {source.name: text, _HEADER.name: _HEADER.read_text(), BINDING: binding_source(definition, hits)}
        return ExportedVersion(
            files=files,
            language="cpp",
            takes_outputs=True,
            binding="tvm-ffi",
            notes=(
                f"the consumer's build has {' '.join(_EXPORT_FLAGS)} without OpenMP and -march=native, so it "
                "runs in one thread, slower than here; flashinfer-bench times CUDA devices only: call it yourself",
            ),
        )

    def normalise(self, source: str) -> str:
        """Return the source without comments and layout: equal for versions that differ in nothing else."""
        return normalise_cpp(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return lint_cpp(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Compile into `folder`, or return the library that the same source and compiler left there.

        Raises:
            BuildFailed: the source does not compile, or took more than a minute.
            MachineLacks: there is no compiler.
        """
        compiler, prototype = _compiler(), cpp_source.run_prototype(definition)
        flags = _flags(compiler, "native")
        parts = (source.read_bytes(), prototype, flags, compiler.version, cpu_features(), _HEADER.read_bytes())
        artifact = folder / f"{source.stem}-{hashlib.sha256(repr(parts).encode()).hexdigest()}.so"
        report = artifact.with_suffix(".json")
        if artifact.is_file() and report.is_file():
            return Build(source, artifact, (Resources.model_validate_json(report.read_text()),))
        folder.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(artifact)
        try:
            resources = _compile(compiler, source, prototype, [*flags, "-shared", *_LINK], temporary)
            _refuse_loaders(source, temporary)
            files.write_file(report, resources.model_dump_json())
            os.replace(temporary, artifact)  # noqa: PTH105 - the compiler made it; a cache needs no fsync
        finally:
            temporary.unlink(missing_ok=True)
        return Build(source, artifact, (resources,))

    def missing_counters(self) -> str | None:
        """Say in one sentence what this machine lacks to count lines; None: nothing."""
        if _compiler().is_clang:
            return "Lines are counted by gcc, and the compiler here is clang."
        return None if shutil.which("gcov") else "No `gcov` is on PATH; it comes with gcc."

    def build_counted(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Compile into `folder` with counters of lines; the compiler's notes lie beside the library.

        Raises:
            BuildFailed: the source does not compile so.
        """
        compiler, prototype = _compiler(), cpp_source.run_prototype(definition)
        folder.mkdir(parents=True, exist_ok=True)
        artifact = folder / f"{source.stem}.so"
        flags = [*_flags(compiler, "native"), "-shared", *_LINK, *line_counts.FLAGS]
        _compile(compiler, source, prototype, flags, artifact, line_counts.PRELUDE)
        return Build(source, artifact, ())

    def begin_counts(self, build: Build) -> None:
        """Have counters written to the working folder; in the worker process only, before it loads the version."""
        os.environ.update({"GCOV_PREFIX": str(Path.cwd()), "GCOV_PREFIX_STRIP": "99"})

    def take_counts(self, build: Build) -> str:
        """Return the counters of a loaded version in base 64; in the worker process only."""
        import ctypes

        getattr(ctypes.CDLL(str(build.artifact)), line_counts.DUMP)()
        return base64.b64encode(next(Path.cwd().glob("*.gcda")).read_bytes()).decode()

    def unrun_lines(self, build: Build, counts: str) -> tuple[int, ...]:
        """Return the lines that no call ran, by what `take_counts` returned.

        Raises:
            MachineLacks: `gcov` does not fit the compiler.
        """
        notes = next(build.artifact.parent.glob("*.gcno")).read_bytes()
        return line_counts.read_unrun_lines(build.source, notes, base64.b64decode(counts))

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the library's `run` for CPU tensors; in the worker process only.

        Raises:
            BadDefinition: the shape of a returned output does not follow from the inputs.
        """
        import ctypes

        function = ctypes.CDLL(str(build.artifact)).run
        function.restype = None
        return cpp_call.wrap_library_function(function, definition)

    def library_entry(self, build: Build, definition: Definition) -> LibraryEntry:
        """Return the address of the library's `run`, and the codes of its parameters' types."""
        import ctypes

        address = ctypes.cast(ctypes.CDLL(str(build.artifact)).run, ctypes.c_void_p).value
        assert address is not None
        return cpp_call.describe_library_entry(address, definition)

    def with_stamps(self, source: str) -> str:
        """Return the file with its stamps turned into code that stores them."""
        return stamps.cpp_with_stamps(source)

    def stamp_rows(self, build: Build) -> torch.Tensor:
        """Return the table of a loaded version's stamps, int64 of (rows, phases, 3); in a worker only."""
        import ctypes

        import torch

        address = ctypes.CDLL(str(build.artifact)).warpsmith_stamp_rows
        shape = (stamps.ROWS, stamps.MOST_PHASES, stamps.COLUMNS)
        address.restype = ctypes.POINTER(ctypes.c_int64 * math.prod(shape))
        return torch.frombuffer(address().contents, dtype=torch.int64).view(shape)

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile only; `arch` is `native` or a value of the compiler's -march.

        Raises:
            BuildFailed: the source does not compile for it.
            Misuse: `arch` is not the name of an architecture.
        """

        arch, compiler = self.architecture(arch), _compiler()
        with TemporaryFolder() as folder:
            target = Path(folder) / "solution.o"
            prototype = cpp_source.run_prototype(definition)
            return (_compile(compiler, source, prototype, [*_flags(compiler, arch), "-c"], target),)

    def architecture(self, name: str | None) -> str:
        """Return `native`, the default, or a value of the compiler's -march.

        Raises:
            Misuse: it is not the name of an architecture.
        """
        arch = "native" if name is None else name
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", arch):
            raise Misuse(
                f"`{arch}` is not an architecture; give `native` or a value of -march such as `x86-64-v3`."
            )
        return arch

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """Disassemble the object file with its source lines into `run.<arch>.asm`; all workloads share it.

        Raises:
            BuildFailed: the source does not compile for it.
            MachineLacks: there is no compiler or no `objdump`, or the code is not for x86-64.
            Misuse: `arch` is not the name of an architecture, or the compiler does not know it.
        """

        arch, compiler, dumper = self.architecture(arch), _compiler(), shutil.which("objdump")
        if dumper is None:
            raise MachineLacks("No `objdump` is on PATH: install `binutils`.")
        empty = [*compiler.command, f"-march={arch}", "-fsyntax-only", "-x", "c++", os.devnull]
        if tool.run_tool(empty, _SECONDS).code != 0:
            raise Misuse(f"{compiler.command[0]} does not accept -march={arch}; give `native` or another value.")
        with TemporaryFolder() as temporary:
            target = Path(temporary) / "solution.o"
            prototype = cpp_source.run_prototype(definition)
            report = _compile(compiler, source, prototype, [*_flags(compiler, arch), "-g1", "-c"], target)
            dump = tool.run_tool([dumper, *_OBJDUMP, target.name], _SECONDS, cwd=target.parent)
        if dump.code != 0:
            output = tool.fence_lines(dump.output.splitlines())
            raise MachineLacks(f"objdump failed; `binutils` may be too old.\n{output}")
        if "elf64-x86-64" not in dump.output:
            raise MachineLacks(f"{source.name} is not compiled for x86-64, and other assembly is not supported.")
        path = folder / f"run.{arch}.asm"
        files.write_file(path, "\n".join(_without_repeated_callers(dump.output.splitlines())) + "\n")
        names = tuple(workload.name for workload in workloads)
        return (Listing("run", names, f"-march={arch}", "x86", path, report),)


LANGUAGE = Cpp()

_LINK = ("-Wl,--require-defined=run", "-Wl,-z,defs")
"""The library must define `run`, and leave nothing for another library in the process to define."""


def _compiler() -> _Compiler:
    command = cxx_compiler.find_cxx_compiler()
    if command is None:
        raise MachineLacks(cxx_compiler.missing_cxx_compiler())
    return _probe(tuple(command), shutil.which(command[0]) or "")


@functools.lru_cache
def _probe(command: tuple[str, ...], path: str) -> _Compiler:
    version = tool.run_tool([*command, "--version"], _SECONDS).output
    modern = tool.run_tool([*command, "-std=c++20", "-fsyntax-only", "-x", "c++", os.devnull], _SECONDS).code == 0
    return _Compiler(command, f"{path} {version}", "c++20" if modern else "c++17")


def _compiler_folders(compiler: _Compiler) -> list[Path]:
    """List the folders of a compiler that is installed outside of the system's."""
    program = shutil.which(compiler.command[0])
    return [Path(program).resolve().parents[1]] if program else []


def _flags(compiler: _Compiler, arch: str) -> list[str]:
    return ["-O3", f"-march={arch}", f"-std={compiler.standard}", "-fopenmp", "-fPIC", f"-I{_API}"]


def _without_repeated_callers(listing: Iterable[str]) -> Iterator[str]:
    """Yield a listing without the callers of inlined code that objdump repeats at every instruction."""
    previous: list[str] = []
    callers: list[str] = []
    for line in listing:
        if line.startswith("inlined by "):
            callers.append(line)
            continue
        if callers:
            if callers != previous:
                yield from callers
            previous, callers = callers, []
        elif line and not line[0].isspace():
            previous = []  # a new source line, which may have no callers
        if line:
            yield line


def _temporary(path: Path) -> Path:
    return path.with_name(f"{files.TEMPORARY_PREFIX}{secrets.token_hex(4)}-{path.name}")


def _compile(
    compiler: _Compiler, source: Path, prototype: str, flags: list[str], target: Path, prelude: str = ""
) -> Resources:
    """Compile to `target`, with the prototype in front of the source so that another signature is an error."""
    from warpsmith import landlock  # with ctypes, which reading commands do without

    expected, report = target.with_suffix(".expected.hpp"), target.with_suffix(".report")
    try:
        intrinsics = line_counts.INTRINSICS if "intrin.h" in source.read_text(errors="replace") else ""
        text = f"{intrinsics}#include <warpsmith.hpp>\n{prototype};\n{prelude}{line_counts.POISON}"
        files.write_file(expected, f"#pragma once\n{text}")
        command = [*compiler.command, *flags, *compiler.report_flags(report), "-fno-diagnostics-color"]
        try:
            # `#include` and `.incbin` reach the version's own file, no other version and none of the user's files.
            whole = landlock.confined_command(
                [*command, "-include", expected, source, "-o", target],
                readable=[source, _API, *_compiler_folders(compiler)],
                writable=[target.parent],
            )
            environment = {"TMPDIR": str(target.parent), "HOME": str(target.parent)}
            result = tool.run_tool(whole, _SECONDS, environment=environment)
        except TimeoutError as error:
            raise BuildFailed(f"{source.name} was not compiled: {error}.") from error
        if result.code != 0:
            raise BuildFailed(_failure(source, prototype, result.output, expected))
        lines = report.read_text(errors="replace") if report.is_file() else result.output
        return _vectorization(source, lines)
    finally:
        expected.unlink(missing_ok=True)
        report.unlink(missing_ok=True)


def _refuse_loaders(source: Path, library: Path) -> None:
    """Refuse a library that looks for functions of others at run time, by whatever name its source has for that.

    Raises:
        BuildFailed: it does so.
    """
    listing = tool.run_tool(["nm", "-D", "--undefined-only", str(library)], _SECONDS)
    for line in listing.output.splitlines() if listing.code == 0 else ():
        name = line.split()[-1].partition("@")[0]
        if name in _LOADERS or name.startswith(line_counts.COUNTERS):
            raise BuildFailed(f"{source.name} calls `{name}`, which reaches code that is not its own.")


def _failure(source: Path, prototype: str, output: str, expected: Path) -> str:
    output = output.replace(str(source), source.name).replace(str(expected), "the expected signature")
    lines = [line for line in output.splitlines() if _ERROR.search(line)]
    signature = f" It must define `{prototype}`." if re.search(r"\brun\b", "\n".join(lines[:8])) else ""
    return f"{source.name} does not compile.{signature}\n{tool.fence_lines(lines or output.splitlines())}"


def _vectorization(source: Path, report: str) -> Resources:
    """Count the vectorised loops of the version's own file, of a nest only the inner ones."""
    text, lines = source.read_text(errors="replace").splitlines(), report.splitlines()
    vectorized: set[int] = set()
    missed: dict[int, str] = {}
    for line, following in itertools.pairwise([*lines, ""]):
        hit, miss = _VECTORIZED.match(line), _MISSED.match(line)
        match = hit or miss
        if match is None or Path(match[1]).name != source.name:
            continue
        number = _loop_line(text, int(match[2]))
        if hit:
            vectorized.add(number)
        elif miss:
            reason = (miss[4] or "").strip(" .") or _reason(following)
            # A template is reported once for each of its types; a call says most.
            if number not in missed or not missed[number] or reason.startswith("it calls"):
                missed[number] = reason
    loops = vectorized | set(missed)
    left = {
        line: reason
        for line, reason in missed.items()
        # Some types of a template may be missed; the tail of a vectorised loop has no reason.
        if (reason or line not in vectorized) and not _NEST.search(reason) and not _contains(text, line, loops)
    }
    some = {line: " for every type" if line in vectorized else "" for line in left}
    notes = tuple(
        f"line {line}: not vectorized{some[line]}: {reason or 'no reason given'}"
        for line, reason in sorted(left.items())
    )
    return Resources(kernel="run", vectorized_loops=len(vectorized), missed_loops=len(left), notes=notes[:8])


def _reason(line: str) -> str:
    """Return gcc's reason, which follows its message on a loop; empty if the line has none."""
    if call := _CALL.search(line):
        return f"it calls {call[1]}"
    reason = _REASON.search(line)
    return reason[1].strip(" .") if reason else ""


def _loop_line(text: list[str], number: int) -> int:
    """Return the loop's line if the report names a pragma before it or a statement inside it."""
    start, continued = number, False
    while number < len(text) and (continued or text[number - 1].lstrip().startswith("#pragma")):
        continued = text[number - 1].endswith("\\")
        number += 1
    if number > start:
        return number
    return next((line for line in range(number, 0, -1) if _LOOP.search(text[line - 1])), number)


def _contains(text: list[str], number: int, loops: Iterable[int]) -> bool:
    """Return whether the braces after a loop's line hold another loop of the report."""
    depth = 0
    for line, code in enumerate(text[number - 1 :], number):
        depth += code.count("{") - code.count("}")
        if line > number and line in loops:
            return True
        if depth <= 0 and (line > number or "{" in code or ";" in code.rpartition(")")[2]):
            return False
    return False
