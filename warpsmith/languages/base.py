"""Interface of a language: a new one is a folder `warpsmith/languages/<name>/`, with no change elsewhere.

The folder's `language.py` holds `LANGUAGE`, an instance of `Language`. Its attributes are the facts that other
parts need: who writes the language, how users call it, how its source is recognised. Importing the module must be
cheap: compilers and libraries are imported where they are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from warpsmith.errors import SolutionFailed
from warpsmith.languages.hits import PYTHON_COUNTER, python_counter

if TYPE_CHECKING:  # hooks list the languages at every event, and pydantic is slow to import
    import torch

    from warpsmith.core.definition import Definition, Workload
    from warpsmith.core.evaluation import Resources
    from warpsmith.core.port.check import KernelLaunch

Run = Callable[..., Any]
"""`run(*inputs)` returning the outputs, or `run(*inputs, *outputs)` if the definition gives them. Arguments are
torch tensors and Python scalars in the definition's order."""


def agent_name(language: str) -> str:
    """Return the plugin's agent that writes a language: `cpp-specialist`."""
    return f"{language}-specialist"


class BuildFailed(SolutionFailed):
    """The version does not compile; the message holds the compiler's first errors."""


@dataclass(frozen=True)
class Build:
    """A version that is ready to load."""

    source: Path
    """The version's file."""
    artifact: Path
    """Argument of `load`: a shared library, or the source itself."""
    resources: tuple[Resources, ...]
    """The compiler's report, as far as it is known before the first call."""
    cache: Path | None = None
    """Folder in which a language that compiles at the first call caches compiled kernels. None: no cache; in a
    judgement every candidate compiles for itself."""


Isa = Literal["sass", "amdgcn", "x86"]
"""Instruction set of an assembly: NVIDIA's, AMD's, or that of a CPU."""


@dataclass(frozen=True)
class Listing:
    """One compiled kernel: its assembly on disk, and the facts it was compiled from."""

    kernel: str
    """Function name."""
    workloads: tuple[str, ...]
    """The workloads that launch it, of those asked for."""
    variant: str
    """Difference from other kernels of the same name: types of arguments, constants, launch options."""
    isa: Isa
    """Instruction set of the assembly."""
    assembly: Path
    """The disassembly, with the source lines of its instructions."""
    resources: Resources
    """The compiler's report."""
    ptx: Path | None = None
    """The PTX that it was assembled from, if there is one."""
    unaligned: tuple[str, ...] = ()
    """Pointer and integer arguments that the compiler could not assume to be multiples of 16."""
    matrix_product: bool = False
    """True if its source asks for matrix products."""
    block_warps: int | None = None
    """Warps of a block that it is launched with, if known."""
    blocks: Mapping[str, int] = field(default_factory=dict)
    """Blocks of its largest launch, by workload; empty if its launches were not recorded."""


TraceLanguage = Literal["python", "triton", "cpp"]
"""FlashInfer-Trace's name of a language; `python` is any file with a function `run`."""


@dataclass(frozen=True)
class ExportedVersion:
    """A version as files that build and run without Warpsmith, as a FlashInfer-Trace solution describes them."""

    files: Mapping[str, str]
    """File name to text; the first one holds `run`."""
    language: TraceLanguage
    """FlashInfer-Trace's name of the language."""
    takes_outputs: bool
    """True if `run` takes the outputs after the inputs; False if it returns them."""
    binding: Literal["tvm-ffi"] | None = None
    """Interface of compiled code to Python."""
    packages: tuple[str, ...] = ()
    """Packages that it needs."""
    notes: tuple[str, ...] = ()
    """Differences from the version in Warpsmith, one sentence each."""


class SourcePattern(NamedTuple):
    """A way to recognise a language's source files."""

    suffixes: tuple[str, ...]
    """Endings of file names: `.py`."""
    text: str = ""
    """Regular expression that the text contains; `^` matches at every line. Empty: the ending is enough."""


LanguageNotice = Literal[
    "unaligned",
    "tf32",
    "unpipelined",
    "float atomics",
    "block reductions",
    "slow exponentials",
    "serial additions",
]
"""Observation in assembly whose remedy depends on the language."""


class Language(ABC):
    """A language that versions are written in."""

    name: str
    """Its folder: `cpp`, `triton`."""
    title: str
    """Its name in prose: `C++`."""
    aliases: tuple[str, ...] = ()
    """Other spellings by users, in lower case without spaces and punctuation except `+`."""
    written_in: str | None = None
    """Language of its versions' source, if it is another one that it compiles in a second step: a route has that
    one written first."""
    suffix: str
    """Ending of a version's file: `.cpp`, `.py`."""
    targets: tuple[str, ...]
    """Kinds of target that it can be timed on: `cpu`, `gpu`."""
    architectures: tuple[str, ...]
    """Architectures that it runs on: `cpu`, `sm_80+` (and newer), `gfx942`."""
    control: str = ""
    """Details that it leaves to its writer and the nearest languages do not, as a noun phrase: `inline PTX`."""
    product: str
    """Result of its agent's work, with an article: `a Triton kernel`."""
    fallback: str = "ask for Triton, `--language triton`"
    """Advice for users who ask for it where it is not available."""
    preference: int | None = None
    """Rank among the languages that are proposed if none is asked for, lowest first; None: only if asked for."""
    source_patterns: tuple[SourcePattern, ...]
    """Recognise source files of the language, versions or not. A pattern with a text outranks one without."""
    packages: tuple[str, ...] = ()
    """Distributions that decide what is compiled: their releases belong to every measured figure."""
    trace_language: TraceLanguage = "python"
    """FlashInfer-Trace's name of the language of a version's file."""
    preloaded: tuple[str, ...] = ()
    """Modules to import in the process that GPU workers, or workers with an interpreter, are forked from."""
    notice_entries: Mapping[LanguageNotice, str] = MappingProxyType({})
    """Knowledge entries on the language's own remedies for observations in assembly."""

    @property
    def agent(self) -> str:
        """The plugin's agent that writes it: `cpp-specialist`."""
        return agent_name(self.name)

    @abstractmethod
    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks to run it on a target of that kind; None: nothing."""

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say in one sentence why an interpreter's result proves nothing at this workload; None: it does."""
        return None

    def remark(self) -> str | None:
        """Say in one sentence what a user who is sent to it must know on this machine; None: nothing."""
        return None

    @abstractmethod
    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: the signature, and a body to fill in."""

    @abstractmethod
    def normalise(self, source: str) -> str:
        """Return the source without comments and layout: equal for versions that differ in nothing else."""

    @abstractmethod
    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""

    @abstractmethod
    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Compile into `folder`; raises BuildFailed."""

    @abstractmethod
    def load(self, build: Build, definition: Definition) -> Run:
        """Make it callable; in the worker process only."""

    def export(self, source: Path, definition: Definition, hits: str = "") -> ExportedVersion:
        """Return the version as files that run without Warpsmith; raises BuildFailed if it cannot.

        With `hits`, each process counts the calls under that name in the file that `WARPSMITH_HITS` names.
        """
        files = {source.name: source.read_text()}
        if hits:
            outputs = definition.outputs if definition.outputs_are == "given" else ()
            counter = python_counter(source.stem, (*definition.inputs, *outputs), hits)
            files = {PYTHON_COUNTER: counter, **files}
        return ExportedVersion(
            files=files,
            language=self.trace_language,
            takes_outputs=definition.outputs_are == "given",
            packages=("torch", *self.packages),
        )

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Return the compiler's report after the first calls, if it compiles then; else nothing."""
        return ()

    @abstractmethod
    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile only, for an architecture that this machine need not have; raises BuildFailed."""

    def prepare_fork(self) -> None:  # noqa: B027 - most languages have nothing to prepare
        """Do once, in the process that workers are forked from, what each of them would otherwise repeat."""


@runtime_checkable
class SuppressesLaunches(Protocol):
    """A language whose kernel launches the worker can suppress.

    A result that is still correct was computed by something else.
    """

    def suppress_launches(self) -> AbstractContextManager[None]:
        """Make kernel launches do nothing within the context; in the worker process only."""


@runtime_checkable
class CountsLines(Protocol):
    """A language whose versions can tell which of their lines ran: the gate refuses lines that no check ran."""

    def missing_counters(self) -> str | None:
        """Say in one sentence what this machine lacks to count lines; None: nothing."""

    def build_counted(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Compile into `folder` with counters; raises BuildFailed."""

    def begin_counts(self, build: Build) -> None:
        """Prepare the worker before such a build is loaded; in the worker process only."""

    def take_counts(self, build: Build) -> str:
        """Return the counters of a loaded build as text; in the worker process only."""

    def unrun_lines(self, build: Build, counts: str) -> tuple[int, ...]:
        """Return the lines whose code no call ran, by that text; those that only report an error are left out.

        Raises:
            MachineLacks: a tool does not fit the compiler.
        """


@runtime_checkable
class CompilesAhead(Protocol):
    """A language whose kernels take long to compile, and can be compiled in parallel before they are launched."""

    def compile_ahead(self, calls: Iterable[Callable[[], object]], threads: int) -> int:
        """Compile what the calls would launch into the worker's cache; in a worker process only.

        Args:
            calls: calls of the version; none of them launches anything, and one may fail.
            threads: compilations at a time.

        Returns:
            The number of kernels that compiled.
        """


class LibraryEntry(NamedTuple):
    """A loaded version that is one function of a library: `run` on structs of warpsmith.hpp, outputs last."""

    address: int
    """Address of the function."""
    codes: Callable[[Sequence[Any]], list[int]]
    """Codes of the parameters' types at some inputs and outputs: of a tensor its number in warpsmith.hpp, of a
    float -1, of an integer -2, of a bool -3."""


@runtime_checkable
class EntersLibrary(Protocol):
    """A language whose versions can be called without Python."""

    def library_entry(self, build: Build, definition: Definition) -> LibraryEntry:
        """Return the entry of a loaded version."""


@runtime_checkable
class StoresStamps(Protocol):
    """A language whose kernels can store the clocks where a phase begins: `warpsmith try --phases`."""

    def with_stamps(self, source: str) -> str:
        """Return the file with its stamps turned into code that stores them."""

    def stamp_rows(self, build: Build) -> torch.Tensor:
        """Return the table of a loaded version's stamps, int64 of (rows, phases, 3); in a worker only."""


@runtime_checkable
class Assembles(Protocol):
    """A language whose compiler's output can be shown: `warpsmith assembly` asks for it."""

    def architecture(self, name: str | None) -> str:
        """Return the architecture as the compiler names it, a default for None; raises Misuse if it is unknown."""

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """Compile what these workloads launch, without running it, and leave the assembly in `folder`.

        Writes nothing if it raises BuildFailed, or MachineLacks if a tool is missing.
        """


@runtime_checkable
class Relaunches(Protocol):
    """A language whose versions compile for other vendors' devices too, and with other launch options than their
    own: `warpsmith port` asks for it."""

    replaces_instructions: bool
    """True if the compiler finds another way where a device lacks an instruction; False if it refuses."""

    def architecture(self, name: str | None) -> str:
        """Return the architecture as the compiler names it, a default for None; raises Misuse if it is unknown."""

    def port_architectures(self) -> tuple[str, ...]:
        """Return the architectures that it compiles for."""

    def assemble_relaunches(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[tuple[Listing, ...], ...]:
        """Compile what these workloads launch: first as the version says, then, if the language has such options,
        with half and twice the warps, and for matrix products with one pipeline stage less and more.

        Leaves the assembly in subfolders of `folder`. A change that does not compile, or not in time, gives no
        listings.

        Raises:
            BuildFailed: the version as it is does not compile.
            MachineLacks: a tool is missing.
        """


@runtime_checkable
class ReplaysLaunches(Relaunches, Protocol):
    """A language with an interpreter that tells what `run` launches, and a compiler that takes exactly that: port
    campaigns ask for it."""

    def record_launches(self, arch: str) -> None:
        """Record launches from now on, and show host code a device of `arch`; in the worker process only."""

    def hold_launches(self) -> AbstractContextManager[None]:
        """Record launches within the context and interpret none; in the worker process only."""

    def take_launches(self) -> list[KernelLaunch]:
        """Return the launches since the last call, each once; in the worker process only."""

    def assemble_launches(
        self,
        source: Path,
        definition: Definition,
        launches: Mapping[str, Sequence[KernelLaunch]],
        arch: str,
        folder: Path,
    ) -> tuple[Listing, ...]:
        """Compile recorded launches, by workload, and leave the assembly in `folder`; `run` is not called.

        Raises:
            BuildFailed: a kernel does not compile, or is another one than the interpreter ran.
            MachineLacks: a tool is missing.
        """
