"""Performer on another machine with a made-up measurement and scripted times: a `volatile` loop takes ten times as
long as others. All else is real."""

from __future__ import annotations

from session_clock import use_scripted_clock

from warpsmith.campaign.jobs import perform
from warpsmith.core.hardware import Ceiling, Measurement, Noise, Target
from warpsmith.core.text import Tell
from warpsmith.lab.calibration import measurement
from warpsmith.lab.machine import identity, measurement_store
from warpsmith.project import Project


def measure(project: Project, target: Target, tell: Tell) -> Measurement:
    """The measurement that travelled here, or a made-up one whose ceilings nothing exceeds."""
    stored = measurement.stored_measurement(project, target)
    if stored.ceilings:
        return stored
    ceiling = Ceiling(value=1e4, unit="GB/s", best=1.1e4, spread=0.01, how="made up")
    compute = ceiling.model_copy(update={"unit": "GFLOP/s"})
    made = Measurement(
        machine=identity.identify_machine(target),
        measured="2026-01-01 00:00",
        ceilings=dict.fromkeys(("read", "copy", "triad"), ceiling)
        | dict.fromkeys(("fma_float32", "fma_float64"), compute),
        noise=Noise(floor=0.05, trials=2, how="made up"),
    )
    measurement_store.save_measurement(project, made)
    return made


if __name__ == "__main__":
    measurement.ensure_measurement = measure
    use_scripted_clock(setattr, lambda source: 1e-3 if "volatile" in source else 1e-4)
    perform.main()
