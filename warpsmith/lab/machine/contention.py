"""Whether somebody else uses the device: then no time of it says anything."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import psutil

from warpsmith.core.hardware import Measurement
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import rates
from warpsmith.lab.machine.telemetry import Gauge

SHARE = 0.8
"""A copy slower than this share of the measured one, three times over, was not alone on the GPU."""

LOAD = 0.5
"""Busy cores of others above which a CPU is called loaded."""

_BYTES = 1 << 30
_COPIES = 5
_TRIES = 3
_WATCH_SECONDS = 0.05


def require_idle_gpu(measurement: Measurement, gauge: Gauge, ours: Sequence[int]) -> str:
    """Copy memory on the GPU, all sides being stopped, and compare with what this machine reaches when it is idle.

    Returns:
        What was found, for the record.

    Raises:
        MachineFailed: the copy is much slower: another process, or a throttled GPU.
    """
    ceiling = measurement.ceilings.get("copy")
    if ceiling is None or ceiling.unit != "GB/s":
        return "no copy was measured on this GPU to compare with"
    shares = []
    for _ in range(_TRIES):
        shares.append(_copy_rate() / ceiling.value)
        if shares[-1] >= SHARE:
            return f"a copy reaches {shares[-1]:.0%} of the idle GPU's {ceiling.value:.0f} GB/s"
    strangers = gauge.strangers(ours)
    who = f"; processes {', '.join(map(str, strangers))} use it" if strangers else ""
    raise MachineFailed(
        f"The GPU is busy or throttled: a copy reaches {max(shares):.0%} of the {ceiling.value:.0f} GB/s that it "
        f"reached when it was measured{who}. Judge again when it is idle."
    )


def describe_cpu_load() -> str | None:
    """How many cores others keep busy while the lab waits; None: too few to matter."""
    busy = psutil.cpu_percent(interval=_WATCH_SECONDS) / 100 * (psutil.cpu_count() or 1)
    return f"others keep {busy:.1f} cores busy" if busy > LOAD else None


def _copy_rate() -> float:
    """GB/s of a device copy, read and written bytes counted: the median of a few."""
    import torch

    source = torch.empty(_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return statistics.median(rates.measure_rates(2 * _BYTES, lambda: target.copy_(source), _COPIES))
