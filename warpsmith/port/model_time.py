"""Model of a version's time on a device that is not here; nothing is measured, and no verdict rests on it.

It is the roofline of the target's hardware page, with two corrections that follow from the compiled version: bytes
that a spill writes and reads again, and multiprocessors that the launch has no blocks for.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.core.definition import Definition
from warpsmith.core.port.check import InterpretedKernel, ModelTime
from warpsmith.errors import UnknownFigure
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.project import Project


def model_times(
    project: Project, page: HardwarePage, definition: Definition, kernels: Sequence[InterpretedKernel]
) -> tuple[ModelTime, ...]:
    """Return the time of a call at each representative workload at which kernels were launched.

    Empty if the page lacks the bandwidth or the number of multiprocessors.
    """
    try:
        multiprocessors = hardware.sourced_figure(page, "sm_count").value
        threads = hardware.sourced_figure(page, "warp_size").value
        times = []
        for workload in definition.select("representative"):
            launched = [kernel for kernel in kernels if workload.name in kernel.blocks]
            if not launched:
                continue
            roofline = hardware.workload_roofline(project, page, None, definition, workload)
            busy = min(1.0, max(kernel.blocks[workload.name] for kernel in launched) / multiprocessors)
            spilled = 2 * threads * sum(_spilled_by_lane(kernel, workload.name) for kernel in launched)
            memory = (definition.work(workload).bytes + spilled) / roofline.bandwidth.value
            bound = "compute" if roofline.compute_seconds > memory else "memory"
            seconds = max(memory, roofline.compute_seconds) / busy
            times.append(
                ModelTime.model_validate(
                    {"workload": workload.name, "seconds": seconds, "bound": bound, "busy": busy}
                )
            )
    except UnknownFigure:
        return ()
    return tuple(times)


def _spilled_by_lane(kernel: InterpretedKernel, workload: str) -> int:
    """Return the bytes that one lane of all warps of a launch spills."""
    return kernel.blocks[workload] * kernel.figures.num_warps * kernel.figures.spill_bytes
