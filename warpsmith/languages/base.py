"""The interface of a language: a new one is one module here, with no change elsewhere.

A module `warpsmith/languages/<name>.py` holds `LANGUAGE`, an object of this protocol. Importing the
module is cheap; compilers and libraries are asked for where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import SolutionFailed

Run = Callable[..., Any]
"""`run(*inputs)` returning the outputs, or `run(*inputs, *outputs)` where the definition gives them;
arguments are torch tensors and Python scalars in the definition's order."""


class BuildFailed(SolutionFailed):
    """The solution does not compile; the message holds the compiler's first errors."""


@dataclass(frozen=True)
class Build:
    """A solution made ready to load."""

    source: Path
    """The solution's file."""
    artifact: Path
    """What `load` takes: a shared library, or the source itself."""
    resources: tuple[Resources, ...]
    """The compiler's report, as far as it is known before the first call."""
    kept: Path | None = None
    """Where a language that compiles when it runs keeps what it compiled; None: nowhere. In a judgement each
    candidate compiles for itself."""


@dataclass(frozen=True)
class Listing:
    """One compiled kernel: its assembly on disk, and what the compiler made it from."""

    kernel: str
    """Function name."""
    workloads: tuple[str, ...]
    """The workloads that launch it, of those asked for."""
    variant: str
    """What tells it from others of the same name: types of arguments, constants, launch options."""
    isa: Literal["sass", "x86"]
    """What the assembly is written in."""
    assembly: Path
    """The disassembly, with the places in the source that instructions come from."""
    resources: Resources
    """The compiler's report."""
    ptx: Path | None = None
    """The PTX that it was assembled from, where there is one."""
    unaligned: tuple[str, ...] = ()
    """Arguments, pointers and integers, that the compiler could not take for multiples of 16."""
    matrix_product: bool = False
    """Whether its source asks for matrix products."""


class Language(Protocol):
    """What the lab asks of a language."""

    name: str
    """Its name and folder: `cpp`, `triton`."""
    suffix: str
    """The ending of a solution's file: `.cpp`, `.py`."""
    targets: tuple[str, ...]
    """The kinds of target it can be timed on: `cpu`, `gpu`."""

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks to run it on a target of that kind, in one sentence; None: ready."""

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Why an interpreter's result says nothing at this workload, in one sentence; None: it does."""

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: the signature, and a body to fill in."""

    def normalise(self, source: str) -> str:
        """The source without comments and layout: equal for versions that differ in nothing else."""

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Compile into `folder`; raises BuildFailed."""

    def load(self, build: Build, definition: Definition) -> Run:
        """Make it callable, in the worker process only."""

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """The report after the first calls, where compilation happens then; else nothing."""

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile only, for an architecture this machine need not have; raises BuildFailed."""


@runtime_checkable
class HoldsBack(Protocol):
    """What a language has besides, whose launches the worker can hold back: then a right result is not its own."""

    def held_back(self) -> AbstractContextManager[None]:
        """While it is entered, launches of kernels do nothing; in the worker process only."""


@runtime_checkable
class Assembles(Protocol):
    """What a language has besides, whose compiler shows what it made: `warpsmith assembly` asks for it."""

    def architecture(self, asked: str | None) -> str:
        """The architecture as the compiler names it; None: the one to take where nobody asks; raises Misuse."""

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """Compile what these workloads launch, without running it, and leave the assembly in `folder`.

        Nothing is written where it raises BuildFailed, or MachineLacks where a tool is missing.
        """
