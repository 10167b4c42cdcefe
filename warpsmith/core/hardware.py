"""Target and Figure: what is known of a device kind, each figure with where it comes from."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from warpsmith.core.base import Minute, Model, Positive, Slug

UNITS: dict[str, float] = {
    "TB/s": 1e12,
    "GB/s": 1e9,
    "TFLOP/s": 1e12,
    "GFLOP/s": 1e9,
    "TOP/s": 1e12,
    "GB": 1e9,
    "GiB": 2.0**30,
    "MiB": 2.0**20,
    "KiB": 2.0**10,
    "MHz": 1e6,
    "W": 1.0,
}
"""Factor from a unit to bytes, operations, hertz or watts (a second); counts have no entry."""


class Figure(Model):
    """One figure of a hardware page."""

    value: Positive | Literal["UNKNOWN"]
    """The number, or `UNKNOWN`: then nothing is computed from it."""
    unit: str
    """Its unit, e.g. `TB/s`; tensor peaks are dense."""
    source: str | None = None
    """Key of the page's `sources`."""
    note: str = ""
    """What a reader must know before using it."""

    @model_validator(mode="after")
    def _sourced(self) -> Self:
        if self.value != "UNKNOWN" and self.source is None:
            raise ValueError("a figure with a value needs a source")
        return self


class Source(Model):
    """A public document."""

    title: str
    """Its title."""
    url: str
    """Where it is published."""
    read: str | None = None
    """The date it was read, or null where only cited."""


class Target(Model):
    """A device kind: the front matter of `docs/knowledge/hardware/<id>.md`."""

    id: Slug
    """Short name: `h200`, `mi300x`, `cpu`."""
    name: str
    """The product's full name."""
    kind: Literal["gpu", "cpu"]
    """What it is."""
    vendor: str
    """Who makes it."""
    architecture: str
    """The architecture's name: Hopper, CDNA3, ..."""
    isa: str
    """What compilers call it: sm_90a, gfx942, or `any`."""
    aliases: tuple[str, ...] = ()
    """Names that drivers report for it."""
    figures: dict[str, Figure]
    """Figure id to figure."""
    sources: dict[str, Source] = {}
    """Source id to document."""
    measured: tuple[str, ...] = ()
    """Records of measurements on such a device, relative to the page."""

    @model_validator(mode="after")
    def _known_sources(self) -> Self:
        for name, figure in self.figures.items():
            if figure.source is not None and figure.source not in self.sources:
                raise ValueError(f"figure `{name}` names the source `{figure.source}`, which is not listed")
        return self


class Machine(Model):
    """The machine a measurement ran on."""

    id: Slug
    """Hash of what makes it this machine: device, driver, processor."""
    target: Slug
    """The device kind."""
    device: str
    """The device's own name."""
    uuid: str | None = None
    """The GPU's UUID."""
    driver: str | None = None
    """The driver's version."""
    clocks: dict[str, int] = {}
    """Clocks in MHz as they were read, never set: `sm`, `memory`."""
    processor: str
    """The CPU's model name and the number of cores that the process may use."""
    libraries: dict[str, str]
    """Versions of python, torch, triton, compiler, ..."""


class Ceiling(Model):
    """What this machine reaches at best in one kind of work."""

    value: Positive
    """Median over the repetitions, in `unit`."""
    unit: str
    """GB/s, GFLOP/s, ..."""
    best: Positive
    """The fastest repetition."""
    spread: float
    """Interquartile range over the median."""
    how: str
    """What was run."""


class Noise(Model):
    """The A/A floor: the gain that comparing a kernel with itself shows by chance."""

    gate_version: int = 1
    """The gate whose timing it was measured with; another gate measures it anew."""
    settings: dict[str, int | float] = {}
    """What the GPU was set to: `sm_limit`, `memory_limit` in MHz, `power_limit` in watts."""

    floor: Positive
    """95th percentile of |ratio - 1| of the geometric means of A/A comparisons."""
    trials: int
    """A/A comparisons made."""
    how: str
    """What was compared."""


class Measurement(Model):
    """What `warpsmith ceiling` found on one machine."""

    machine: Machine
    """Where."""
    measured: Minute
    """When, in UTC."""
    ceilings: dict[str, Ceiling]
    """`read`, `copy`, `triad` bandwidths, `fma` and matrix rates."""
    noise: Noise | None = None
    """The A/A floor, once it was measured."""
