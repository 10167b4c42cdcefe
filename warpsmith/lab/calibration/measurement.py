"""Measurement of a machine before anything is judged on it: its ceilings, A/A floor and launch floor."""

from __future__ import annotations

from warpsmith.core.base import this_minute
from warpsmith.core.hardware import Measurement, Noise, Target
from warpsmith.core.text import Tell
from warpsmith.lab.calibration import ceiling, launch, noise
from warpsmith.lab.machine import identity, measurement_store
from warpsmith.project import Project


def record_measurement(project: Project, target: Target, tell: Tell = lambda _: None) -> Measurement:
    """Measure this machine and save the result in the project.

    Raises:
        MachineLacks: no device of that kind, no compiler or libraries to measure with.
        MachineFailed: a benchmark does not run.
    """
    machine = identity.identify_machine(target)
    tell("ceilings")
    measurement = Measurement(
        machine=machine,
        measured=this_minute(),
        ceilings=ceiling.measure_ceilings(target),
        noise=noise.measure_noise(target, tell),
        launch=launch.measure_launch(target),
    )
    measurement_store.save_measurement(project, measurement)
    return measurement


def stored_measurement(project: Project, target: Target) -> Measurement:
    """Return what was measured of this machine, or a measurement without figures; enough where nothing is timed.

    Raises:
        CorruptRecord: the measurement on disk is broken.
    """
    machine = identity.identify_machine(target)
    stored = measurement_store.load_measurement(project, machine)
    return stored or Measurement(machine=machine, measured=this_minute(), ceilings={})


def ensure_measurement(project: Project, target: Target, tell: Tell = lambda _: None) -> Measurement:
    """Load this machine's measurement; measure what is missing, and an outdated floor again.

    Raises:
        CorruptRecord: the measurement on disk is broken.
    """
    machine = identity.identify_machine(target)
    measurement = measurement_store.load_measurement(project, machine)
    if measurement is None:
        return record_measurement(project, target, tell)
    news: dict[str, Noise] = {}
    if reason := noise.outdated_reason(measurement.noise, target):
        tell(f"A/A floor: {reason}")
        news["noise"] = noise.measure_noise(target, tell)
        measurement_store.save_noise(machine, news["noise"])
    if not measurement.launch:
        tell("launch floor: it was never measured")
        measurement = measurement.model_copy(update={"launch": launch.measure_launch(target)})
        measurement_store.save_measurement(project, measurement)
    return measurement.model_copy(update=news)
