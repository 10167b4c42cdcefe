"""Read-only state of a GPU from NVIDIA's management library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpsmith.core.base import Model

_REASONS = {
    "GpuIdle": "idle",
    "ApplicationsClocksSetting": "clock setting",
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SyncBoost": "sync boost",
    "SwThermalSlowdown": "temperature (driver)",
    "HwThermalSlowdown": "temperature (hardware)",
    "HwPowerBrakeSlowdown": "power brake",
}
_SLOWDOWNS = {"hardware slowdown", "temperature (driver)", "temperature (hardware)", "power brake"}


class GpuState(Model):
    """State of a GPU at one moment; a field is None if the device or the driver does not report it."""

    cuda: int | None = None
    """Newest CUDA version that the driver supports: 13000 is 13.0."""
    sm_clock_max: int | None = None
    """Highest SM clock in MHz."""
    reasons: tuple[str, ...] | None = None
    """Reasons why the clocks are not higher."""
    applications_clock: int | None = None
    """SM clock in MHz that applications get."""
    applications_default: int | None = None
    """Default SM clock in MHz for applications."""
    persistence: bool | None = None
    """True if the driver stays loaded between processes."""
    mig: bool | None = None
    """True if the GPU is partitioned into instances."""

    @property
    def slowed(self) -> tuple[str, ...]:
        """Throttling reasons that spoil timings."""
        return tuple(reason for reason in self.reasons or () if reason in _SLOWDOWNS)

    @property
    def clocks_set(self) -> bool:
        """Return whether somebody set the clocks, as far as that can be read."""
        clocks = (self.applications_clock, self.applications_default)
        return "clock setting" in (self.reasons or ()) or (None not in clocks and clocks[0] != clocks[1])


def read_gpu_state(uuid: str) -> GpuState | None:
    """Read the state of the GPU; None if the extra `gpu` is not installed, or the library fails."""
    try:
        import pynvml as nvml
    except ImportError:
        return None

    def ask(function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - pynvml has no types
        try:
            return function(*arguments)
        except nvml.NVMLError:
            return None

    ask(nvml.nvmlInit)
    handle = ask(nvml.nvmlDeviceGetHandleByUUID, uuid)
    if handle is None:
        return None
    bits = ask(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    persistence = ask(nvml.nvmlDeviceGetPersistenceMode, handle)
    mig = ask(nvml.nvmlDeviceGetMigMode, handle)
    reasons = {text: getattr(nvml, f"nvmlClocksEventReason{name}") for name, text in _REASONS.items()}
    return GpuState(
        cuda=ask(nvml.nvmlSystemGetCudaDriverVersion),
        sm_clock_max=ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        reasons=None if bits is None else tuple(text for text, bit in reasons.items() if bits & bit),
        applications_clock=ask(nvml.nvmlDeviceGetApplicationsClock, handle, nvml.NVML_CLOCK_SM),
        applications_default=ask(nvml.nvmlDeviceGetDefaultApplicationsClock, handle, nvml.NVML_CLOCK_SM),
        persistence=None if persistence is None else persistence == nvml.NVML_FEATURE_ENABLED,
        mig=None if mig is None else mig[0] == nvml.NVML_DEVICE_MIG_ENABLE,
    )
