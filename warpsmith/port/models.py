"""Record of a port: a version compiled for devices that are not here. Nothing in it is a time or a verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Name, Sha256, Slug
from warpsmith.core.port.check import LaunchFigures
from warpsmith.profiling.assembly.models import Count

PORT_VERSION = 1
"""Version of the record's format."""

Outcome = Literal["transfers", "spills", "needs other constants", "does not compile"]
"""Evidence of the compiler alone on a version and a target: it fits; it fits and spills registers; one of its
launches asks for more than a block may have; it is refused."""


class PortedKernel(Model):
    """One compiled kernel of a version."""

    name: str
    """Function name."""
    workloads: tuple[str, ...]
    """Workloads that launch it."""
    variant: str
    """Types, constants and launch options that it was compiled for."""
    own: LaunchFigures
    """Figures with the version's own launch options."""
    changed: tuple[LaunchFigures, ...] = ()
    """Figures with other launch options."""
    instructions: int = Field(ge=1)
    """Number of instructions."""
    counts: tuple[Count, ...]
    """Instructions by kind."""
    advice: tuple[str, ...] = ()
    """Constants to try on the target, by the rule of the day that it was made; pages apply the present one."""


class PortTarget(Model):
    """One target of a port."""

    target: Slug | None = None
    """Device kind whose figures were used; null if no page has the architecture."""
    arch: str
    """Architecture that it was compiled for."""
    warp_size: int
    """Threads of a warp."""
    most_warps: int | None = None
    """Most resident warps of a multiprocessor; null if no page has the architecture."""
    outcome: Outcome
    """Evidence of the compiler alone."""
    error: str = ""
    """First lines of the compiler's error; empty if it compiles."""
    kernels: tuple[PortedKernel, ...] = ()
    """Kernels that the representative workloads launch; empty if it does not compile."""
    lacks: tuple[str, ...] = ()
    """Features of the origin's architecture that this one lacks."""
    losses: tuple[str, ...] = ()
    """Those of them that the version uses, each with what takes its place."""
    notes: tuple[str, ...] = ()
    """Suspicious patterns in the counts, and what else readers should know."""


class Numerics(Model):
    """Correctness by the interpreter, which converts to fp8 as NVIDIA's GPUs do; a target's own may differ."""

    state: Literal["correct", "failed", "unchecked"]
    """`unchecked`: nobody asked, or no workload can be trusted to the interpreter."""
    workloads: tuple[str, ...] = ()
    """Workloads at which it was found correct."""
    reason: str = ""
    """Reason of a failure, or why nothing was checked."""
    skipped: int = Field(default=0, ge=0)
    """Workloads that the interpreter cannot be trusted at."""


class PortRecord(Model):
    """Record of a port, `devlog/<op>/ports/<NNN>/record.json`, written once."""

    port_version: int = PORT_VERSION
    """Version of this format."""
    definition: Name
    """Name of the operator."""
    definition_sha256: Sha256
    """Hash of the definition's file."""
    solution: str
    """Version, such as `triton/v7`."""
    solution_sha256: Sha256
    """Hash of its file."""
    accepted_on: Slug | None = None
    """Device kind on which the version stands accepted; null if it was named and stands nowhere."""
    timed: Literal[False] = False
    """Always false: nothing ran on a device, and no figure here is a time."""
    lab_sha256: Sha256
    """Hash of the lab's own code."""
    libraries: dict[str, str]
    """Versions of the compiler and the other libraries."""
    made: Minute
    """Time in UTC."""
    numerics: Numerics
    """Correctness by the interpreter."""
    origin: PortTarget
    """The version on the device that it comes from, compiled by the same compiler."""
    targets: tuple[PortTarget, ...] = Field(min_length=1)
    """Targets in the order in which they were asked for."""
