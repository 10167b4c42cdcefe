"""Regions of a compiled step: how often each runs, its share of the step, and why one cannot be replaced."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Minute, Model
from warpsmith.program.compiled.region_graph import RegionGraph


class RegionRow(Model):
    """Regions of a step that are alike up to their sizes."""

    digest: str
    """Digest that names the region; empty if it was refused."""
    kind: str
    """Kind in a word: `norm`, `activation`; empty if it was refused."""
    operators: tuple[str, ...]
    """Its operators, each once."""
    kernels: tuple[str, ...]
    """Inductor's kernels that compute it."""
    chained: bool = False
    """True if several kernels compute it one after the other."""
    backward: bool
    """True if a backward pass contains it."""
    calls: float = Field(ge=0)
    """Calls per step."""
    seconds: float = Field(ge=0)
    """Seconds per step in the trace of the compiled step."""
    share: float = Field(ge=0, le=1)
    """Share of the step."""
    ceiling: float | None = Field(ge=1)
    """Amdahl's bound: speedup of the step if the region took no time; null if it is the whole step."""
    inputs: tuple[str, ...] = ()
    """Tensors that enter it, at the sizes with the most time: `8x128x256 float32`."""
    outputs: tuple[str, ...] = ()
    """Tensors that leave it."""
    sizes: int = Field(default=1, ge=1)
    """Number of different sizes at which it runs."""
    refusal: str = ""
    """Reason why it cannot become a definition; completes `it ...`."""


class StepRegions(Model):
    """All regions of a program's step, the most time first: `devlog/programs/<name>/regions.json`."""

    program: str
    """Short name of the program."""
    device: str
    """`cpu` or the GPU's name."""
    torch: str
    """Version of PyTorch."""
    graphs: int = Field(ge=1)
    """Number of compiled graphs."""
    step_seconds: float = Field(gt=0)
    """Seconds per step while nothing is traced."""
    kernel_seconds: float = Field(ge=0)
    """Seconds per step of all kernels that Inductor generated."""
    rows: tuple[RegionRow, ...]
    """The regions. A chain of kernels is listed beside its parts, so shares do not add up."""
    measured: Minute
    """Time of the measurement, in UTC."""


class CutRegion(Model):
    """One place of a step that computes a region."""

    region: RegionGraph | None
    """The region; null if it was refused."""
    refusal: str
    """Reason why it cannot become a definition; empty if it can."""
    operators: tuple[str, ...]
    """Its operators, each once."""
    kernels: tuple[str, ...]
    """Kernels that compute it."""
    backward: bool
    """True if it is in a backward pass."""
    calls: float = Field(ge=0)
    """Calls in the traced steps."""
    seconds: float = Field(ge=0)
    """Seconds in the traced steps."""
