"""Records of `benchmarks/techniques`: each technique beside its plain alternatives on one machine."""

from __future__ import annotations

from itertools import groupby, permutations

from warpsmith.core.base import Minute, Model


class BenchmarkTiming(Model):
    """Time of one variant in one case."""

    case: str
    """Case: sizes and the kind of input."""
    variant: str
    """Variant of the technique, or its plain alternative."""
    us: float
    """Median time of a call in microseconds."""
    quartiles: tuple[float, float]
    """Lower and upper quartile of the time in microseconds."""
    predicted_us: float
    """Prediction from before the first run, in microseconds."""
    error: float | None = None
    """Largest error against float64, relative to the largest value."""
    bytes: int | None = None
    """Bytes that a call must move."""


class BenchmarkMachine(Model):
    """Machine and toolchain of a technique's run."""

    device: str
    """Name of the device."""
    torch: str
    """Version of PyTorch."""
    driver: int
    """CUDA version of the driver."""
    nvrtc: tuple[int, int]
    """Version of NVRTC."""


class TechniqueTimings(Model):
    """Timings of one technique."""

    problem: str
    """Reason why it was not measured; empty if it was."""
    seconds: float
    """Seconds that it took."""
    machine: BenchmarkMachine | None = None
    """Machine that it ran on."""
    rows: tuple[BenchmarkTiming, ...] = ()
    """Timings in the order of the benchmark."""


class BenchmarkRecord(Model):
    """Result of one run of `benchmarks/techniques`."""

    measured: Minute
    """Time of the run, in UTC."""
    sources: dict[str, str]
    """SHA-256 of each source file of the benchmark."""
    techniques: dict[str, TechniqueTimings]
    """Timings by technique."""

    def comparisons(self) -> list[tuple[str, BenchmarkTiming, BenchmarkTiming]]:
        """Return configuration, time before and time after of all ordered pairs of variants of a case."""
        pairs = []
        for name, technique in self.techniques.items():
            device = technique.machine.device if technique.machine else "no known device"
            for case, rows in groupby(technique.rows, key=lambda row: row.case):
                pairs += [(f"{name}, {case}, {device}", *pair) for pair in permutations(rows, 2)]
        return pairs
