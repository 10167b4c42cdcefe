"""What is measured of a machine before anything is judged on it: its ceilings and its A/A floor."""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.core.base import this_minute
from warpsmith.core.hardware import Measurement, Target
from warpsmith.lab.calibration import ceiling, noise
from warpsmith.lab.machine import machine
from warpsmith.project import Project

Tell = Callable[[str], None]


def record(project: Project, target: Target, tell: Tell = lambda _: None) -> Measurement:
    """Measure the machine at hand and keep the result in the project.

    Raises:
        MachineLacks: no device of that kind, no compiler or libraries to measure with.
        MachineFailed: a benchmark does not run.
    """
    here = machine.machine(target)
    tell("ceilings")
    measurement = Measurement(
        machine=here,
        measured=this_minute(),
        ceilings=ceiling.measure(target),
        noise=noise.measure(target, tell),
    )
    machine.save_measurement(project, measurement)
    return measurement


def ensure(project: Project, target: Target, tell: Tell = lambda _: None) -> Measurement:
    """What was measured on this machine: measured now where it was not yet, its floor anew where that is outdated.

    Raises:
        CorruptRecord: the measurement on disk is broken.
    """
    here = machine.machine(target)
    found = machine.load_measurement(project, here)
    if found is None:
        return record(project, target, tell)
    if why := noise.outdated(found.noise, target):
        tell(f"A/A floor: {why}")
        found = found.model_copy(update={"noise": noise.measure(target, tell)})
        machine.save_measurement(project, found)
    return found
