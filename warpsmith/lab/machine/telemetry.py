"""What NVIDIA's management library says of a GPU while it is timed: clocks, limits, and who else uses it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from statistics import median_low
from typing import Any, NamedTuple

from warpsmith.core.evaluation import Telemetry

SLOW = 0.9
"""A round whose clock is below this share of the median is left out."""

_SLOWDOWN_REASONS = {
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SwThermalSlowdown": "thermal (driver)",
    "HwThermalSlowdown": "thermal (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
}


class GpuReading(NamedTuple):
    """One look."""

    sm: int
    """Clock of the multiprocessors in MHz."""
    memory: int
    """Clock of the memory in MHz."""
    temperature: int
    """Degrees Celsius."""
    power: float
    """Watts."""
    limited: tuple[str, ...]
    """What holds the clocks down."""


class Gauge:
    """Reads one GPU. Where the library or the device does not answer, `why` says so and nothing is read."""

    def __init__(self, uuid: str | None) -> None:
        self._library: Any = None
        self._handle: Any = None
        self.why = ""
        """Why nothing can be read; empty where it can."""
        if uuid is None:
            self.why = "no GPU"
            return
        try:
            import pynvml

            pynvml.nvmlInit()
            self._library, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except ImportError:
            self.why = "`pip install nvidia-ml-py` lets the lab read the GPU's clocks"
        except Exception as error:  # the library's own errors have no common class before it is imported
            self.why = f"the driver does not answer: {error}"
        if not self.why and self.read() is None:
            self.why = "the driver does not tell the clocks"

    def read(self) -> GpuReading | None:
        """The state now; None where it cannot be read."""
        if self._handle is None:
            return None
        nvml, handle = self._library, self._handle
        try:
            bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            return GpuReading(
                sm=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                memory=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                temperature=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                power=nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
                limited=tuple(
                    words
                    for name, words in _SLOWDOWN_REASONS.items()
                    if bits & getattr(nvml, f"nvmlClocksEventReason{name}")
                ),
            )
        except nvml.NVMLError:
            return None

    def joules(self) -> float | None:
        """Energy that the board has used since the driver was loaded; None where it is not counted.

        The counter moves in steps of some tens of milliseconds.
        """
        if self._handle is None:
            return None
        try:
            return float(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._library.NVMLError:
            return None

    def settings(self) -> dict[str, int | float]:
        """What the GPU was set to: clocks in MHz and a power limit in watts. Empty where nothing is told."""
        if self._handle is None:
            return {}
        nvml, handle = self._library, self._handle

        def ask(function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - pynvml has no types
            try:
                return function(handle, *arguments)
            except nvml.NVMLError:
                return None

        limit = ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
        found = {
            "sm_limit": ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
            "sm_application": ask(nvml.nvmlDeviceGetApplicationsClock, nvml.NVML_CLOCK_SM),
            "memory_limit": ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_MEM),
            "power_limit": None if limit is None else limit / 1e3,
        }
        return {name: value for name, value in found.items() if value is not None}

    def strangers(self, ours: Sequence[int]) -> list[int]:
        """Processes on the GPU that are not ours, as far as the driver tells."""
        if self._handle is None:
            return []
        try:
            running = self._library.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._library.NVMLError:
            return []
        known = {os.getpid(), *ours}
        return [process.pid for process in running if process.pid not in known]


def summarize_readings(readings: Sequence[GpuReading], dropped: int = 0) -> Telemetry | None:
    """A record of what was read; None where nothing was."""
    if not readings:
        return None
    sm, memory = [one.sm for one in readings], [one.memory for one in readings]
    return Telemetry(
        reads=len(readings),
        sm_clock=(min(sm), median_low(sm), max(sm)),
        memory_clock=(min(memory), median_low(memory), max(memory)),
        temperature=max(one.temperature for one in readings),
        power=max(one.power for one in readings),
        limited=tuple(sorted({words for one in readings for words in one.limited})),
        dropped=dropped,
    )


def slow_rounds(clocks: Sequence[int]) -> list[int]:
    """Which rounds ran well below the others' clock, by their lowest in MHz; never half of them or more."""
    if not clocks:
        return []
    low = [index for index, clock in enumerate(clocks) if clock < SLOW * median_low(clocks)]
    return low if 2 * len(low) < len(clocks) else []
