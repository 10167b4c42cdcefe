"""Contention: a device that other processes use gives no meaningful times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import psutil

from warpsmith.core import gate_rules, trust
from warpsmith.core.hardware import Measurement
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import rates
from warpsmith.lab.machine.telemetry import Gauge

LOAD = 0.5
"""Number of cores that other processes keep busy above which a CPU counts as loaded."""

_COPIES = 5
_WATCH_SECONDS = 0.05


def check_idle(device: str, measurement: Measurement, gauge: Gauge, own_pids: Sequence[int]) -> Check:
    """Check that nobody else uses the device, `cpu` or `cuda`, while all sides are stopped.

    Raises:
        MachineFailed: another process uses the GPU, or it is throttled.
    """
    if device == "cpu":
        load = describe_cpu_load()
        return Check(name=trust.MACHINE_IDLE, ran=load is None, how=load or "the other cores are idle")
    findings = require_idle_gpu(measurement, gauge, own_pids)
    return Check(name=trust.MACHINE_IDLE, ran=True, how=findings)


def require_idle_gpu(measurement: Measurement, gauge: Gauge, own_pids: Sequence[int]) -> str:
    """Copy memory on the GPU while all sides are stopped, and compare the rate with this machine's idle rate.

    Returns:
        A sentence for the record.

    Raises:
        MachineFailed: the copy is much slower, because of another process or a throttled GPU.
    """
    ceiling = measurement.ceilings.get("copy")
    if ceiling is None or ceiling.unit != "GB/s":
        return "this GPU has no measured copy rate to compare with"
    shares = []
    for _ in range(gate_rules.IDLE_COPY_TRIES):
        shares.append(_copy_rate() / ceiling.value)
        if shares[-1] >= gate_rules.IDLE_COPY_SHARE:
            return f"a copy reaches {shares[-1]:.0%} of the idle GPU's {ceiling.value:.0f} GB/s"
    strangers = gauge.strangers(own_pids)
    users = f"; processes {', '.join(map(str, strangers))} use it" if strangers else ""
    raise MachineFailed(
        f"The GPU is busy or throttled: a copy reaches {max(shares):.0%} of the {ceiling.value:.0f} GB/s "
        f"measured on the idle GPU{users}. Judge again when the GPU is idle."
    )


def describe_cpu_load() -> str | None:
    """Describe how many cores other processes keep busy while the lab waits; None if too few to matter."""
    busy = psutil.cpu_percent(interval=_WATCH_SECONDS) / 100 * (psutil.cpu_count() or 1)
    return f"other processes keep {busy:.1f} cores busy" if busy > LOAD else None


def _copy_rate() -> float:
    """Measure a device copy in GB/s, counting bytes read and written; the median of a few copies."""
    import torch

    source = torch.empty(gate_rules.IDLE_COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return statistics.median(
        rates.measure_rates(2 * gate_rules.IDLE_COPY_BYTES, lambda: target.copy_(source), _COPIES)
    )
