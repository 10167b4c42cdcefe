"""Floors: the least time of each workload on a target, from its roofline."""

from __future__ import annotations

from collections.abc import Iterable

from warpsmith.core.definition import Definition, Workload
from warpsmith.errors import MachineLacks, UnknownFigure
from warpsmith.lab.machine import hardware, identity, measurement_store
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.project import Project


def floor_seconds_by_workload(
    project: Project, page: HardwarePage, definition: Definition, workloads: Iterable[Workload]
) -> dict[str, float | None]:
    """Return the roofline floor of each workload in seconds; None where no bandwidth is known.

    The ceilings are this machine's if it is the target and was measured, else those of the target's page.
    """
    try:
        measurement = measurement_store.load_measurement(project, identity.identify_machine(page.target))
    except MachineLacks:
        measurement = None
    floors: dict[str, float | None] = {}
    for workload in workloads:
        try:
            roofline = hardware.workload_roofline(project, page, measurement, definition, workload)
            floors[workload.name] = roofline.floor_seconds
        except UnknownFigure:
            floors[workload.name] = None
    return floors
