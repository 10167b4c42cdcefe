"""Telemetry of a GPU during timing, from NVIDIA's management library: clocks, limits, and other processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from statistics import median_low
from typing import Any, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Telemetry

_SLOWDOWN_REASONS = {
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SwThermalSlowdown": "thermal (driver)",
    "HwThermalSlowdown": "thermal (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
}


class GpuReading(NamedTuple):
    """State of the GPU at one moment."""

    sm: int
    """Clock of the multiprocessors in MHz."""
    memory: int
    """Clock of the memory in MHz."""
    temperature: int
    """Degrees Celsius."""
    power: float
    """Watts."""
    limited: tuple[str, ...]
    """Reasons that hold the clocks down."""


class Gauge:
    """Reader of one GPU. If the library or the device does not answer, `unavailable` says why and nothing is
    read."""

    def __init__(self, uuid: str | None) -> None:
        self._library: Any = None
        self._handle: Any = None
        self.unavailable = ""
        """Reason why nothing can be read; empty if it can."""
        if uuid is None:
            self.unavailable = "no GPU"
            return
        try:
            import pynvml

            pynvml.nvmlInit()
            self._library, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except ImportError:
            self.unavailable = "`pip install nvidia-ml-py` lets the lab read the GPU's clocks"
        except Exception as error:  # The class of the library's errors is unknown before it is imported.
            self.unavailable = f"the driver does not answer: {error}"
        if not self.unavailable and self.read() is None:
            self.unavailable = "the driver does not report the clocks"

    def read(self) -> GpuReading | None:
        """Return the current state; None if it cannot be read."""
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
        """Return the energy that the board has used since the driver was loaded; None if it is not counted.

        The counter advances in steps of some tens of milliseconds.
        """
        if self._handle is None:
            return None
        try:
            return float(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._library.NVMLError:
            return None

    def settings(self) -> dict[str, int | float]:
        """Return the clock limits in MHz and the power limit in watts; empty if nothing can be read."""
        if self._handle is None:
            return {}
        nvml, handle = self._library, self._handle

        def ask(function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - pynvml has no types
            try:
                return function(handle, *arguments)
            except nvml.NVMLError:
                return None

        limit = ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
        values = {
            "sm_limit": ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
            "sm_application": ask(nvml.nvmlDeviceGetApplicationsClock, nvml.NVML_CLOCK_SM),
            "memory_limit": ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_MEM),
            "power_limit": None if limit is None else limit / 1e3,
        }
        return {name: value for name, value in values.items() if value is not None}

    def strangers(self, own_pids: Sequence[int]) -> list[int]:
        """List the processes on the GPU that are not ours, as far as the driver reports them."""
        if self._handle is None:
            return []
        try:
            running = self._library.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._library.NVMLError:
            return []
        own = {os.getpid(), *own_pids}
        return [process.pid for process in running if process.pid not in own]


def summarize_readings(readings: Sequence[GpuReading], dropped: int = 0) -> Telemetry | None:
    """Summarize readings for the record; None if there are none."""
    if not readings:
        return None
    sm, memory = [reading.sm for reading in readings], [reading.memory for reading in readings]
    return Telemetry(
        reads=len(readings),
        sm_clock=(min(sm), median_low(sm), max(sm)),
        memory_clock=(min(memory), median_low(memory), max(memory)),
        temperature=max(reading.temperature for reading in readings),
        power=max(reading.power for reading in readings),
        limited=tuple(sorted({words for reading in readings for words in reading.limited})),
        dropped=dropped,
    )


def slow_rounds(clocks: Sequence[int]) -> list[int]:
    """Return the rounds whose lowest clock in MHz is well below the others'; never half of them or more."""
    if not clocks:
        return []
    low = [index for index, clock in enumerate(clocks) if clock < gate_rules.SLOW_CLOCK_SHARE * median_low(clocks)]
    return low if 2 * len(low) < len(clocks) else []
