"""Targets and machines: figures of a device kind with their sources, and measurements of a machine."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

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
"""Factor from a unit to bytes, operations, hertz or watts (per second); counts have no entry."""


class Figure(Model):
    """One figure of a hardware page."""

    value: Positive | Literal["UNKNOWN"]
    """Number, or `UNKNOWN` if nothing can be computed from it."""
    unit: str
    """Unit such as `TB/s`; tensor peaks are dense."""
    source: str | None = None
    """Id of a source in the page's `sources`."""
    note: str = ""
    """Note for readers."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if self.value != "UNKNOWN" and self.source is None:
            raise ValueError("a figure with a value needs a source")
        return self


class Source(Model):
    """A public document that figures come from."""

    title: str
    """Title of the document."""
    url: str
    """URL of the document."""
    read: str | None = None
    """Date on which it was read; null if it is only cited."""


class Target(Model):
    """A device kind: the front matter of `docs/knowledge/hardware/<id>.md`."""

    id: Slug
    """Short name: `h200`, `mi300x`, `cpu`."""
    name: str
    """Full product name."""
    kind: Literal["gpu", "cpu"]
    """Kind of device."""
    vendor: str
    """Vendor of the device."""
    architecture: str
    """Architecture: Hopper, CDNA3, ..."""
    isa: str
    """Name by compilers: sm_90a, gfx942, or `any`."""
    aliases: tuple[str, ...] = ()
    """Names that drivers report for the device."""
    figures: dict[str, Figure]
    """Figures by id."""
    sources: dict[str, Source] = {}
    """Source documents by id."""
    measured: tuple[str, ...] = ()
    """Records of measurements on such a device, relative to the page."""

    @model_validator(mode="after")
    def _check_figure_sources(self) -> Self:
        for name, figure in self.figures.items():
            if figure.source is not None and figure.source not in self.sources:
                raise ValueError(f"figure `{name}` names the source `{figure.source}`, which is not listed")
        return self


class Machine(Model):
    """Machine of a measurement."""

    id: Slug
    """Hash of device, driver and processor."""
    target: Slug
    """Kind of device."""
    device: str
    """Name of the device."""
    uuid: str | None = None
    """UUID of the GPU."""
    driver: str | None = None
    """Version of the driver."""
    clocks: dict[str, int] = {}
    """Clocks in MHz, read and never set: `sm`, `memory`."""
    processor: str
    """Model name of the CPU and number of cores available to the process."""
    libraries: dict[str, str]
    """Versions of python, torch, triton, compiler, ..."""


class Ceiling(Model):
    """Highest rate that this machine reached in one kind of work."""

    value: Positive
    """Median over the repetitions, in `unit`."""
    unit: str
    """Unit: GB/s, GFLOP/s, ..."""
    best: Positive
    """Rate of the fastest repetition."""
    spread: float
    """Interquartile range over the median."""
    how: str
    """Description of the benchmark."""


Clock = Literal["parent", "events", "graph"]
"""Clock of a time: the grader's own around each call (`parent`); or the device's events around a block of calls,
launched one by one (`events`) or replayed from a CUDA graph (`graph`)."""


class LaunchFloor(Model):
    """Launch floor of this machine: the time of an operator on one element, timed as versions are."""

    seconds: Positive
    """Lower quartile of the time of a call, in seconds."""
    spread: float = Field(ge=0)
    """Interquartile range over the median."""
    samples: int = Field(ge=1)
    """Number of timed blocks; a block is one call on a CPU."""


class Noise(Model):
    """A/A noise floor: the gain that a kernel shows over itself by chance."""

    gate_version: int = 1
    """Gate whose timing it was measured with; each gate measures its own."""
    boot: str = ""
    """Start of the machine after which it was measured, by the kernel's id; empty before gate 3."""
    settings: dict[str, int | float] = {}
    """Settings of the GPU: `sm_limit`, `memory_limit` in MHz, `power_limit` in watts."""

    floor: Positive
    """Size that one of twenty A/A comparisons exceeds; the 95th percentile of those made before gate 3."""
    trials: int
    """Number of A/A comparisons."""
    how: str
    """Description of the comparison."""


class Measurement(Model):
    """Result of `warpsmith ceiling` on one machine."""

    machine: Machine
    """Machine that was measured."""
    measured: Minute
    """Time of the measurement, in UTC."""
    ceilings: dict[str, Ceiling]
    """Ceilings by name: `read`, `copy`, `triad` bandwidths, `fma` and matrix rates."""
    noise: Noise | None = None
    """A/A noise floor, once it was measured."""
    launch: dict[Clock, LaunchFloor] = Field(default={}, exclude_if=lambda value: not value)
    """Launch floor by the clock that it was taken with; absent if it was never measured."""
