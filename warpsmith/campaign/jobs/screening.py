"""Screens: times of contenders beside the best version, here or on the machine of a context.

They choose who is judged; they are in no verdict.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith.campaign import lab_requests
from warpsmith.campaign.history import solutions
from warpsmith.campaign.jobs import send
from warpsmith.core.base import Model
from warpsmith.core.campaign import Manifest, ScreenedSpeedup
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.text import Tell
from warpsmith.execution.job import ScreenResult, ScreenResults
from warpsmith.lab.machine import device_lease, hardware
from warpsmith.lab.operator import definition_file
from warpsmith.lab.tuning.variants import Variant
from warpsmith.lab.tuning.workbench import Bench, Workbench
from warpsmith.project import Project


class ScreenOrder(Model):
    """Contenders to time beside the best version."""

    root: str
    """Root of the project."""
    manifest: Manifest
    """Settings of the campaign: operator, target and context."""
    best: str
    """Name of the best version, such as `cpp/v3`."""
    language: str
    """Language of the contenders."""
    sets: tuple[WorkloadSet, ...]
    """Workload sets that are timed."""
    seconds: float
    """Wall time of the screen."""
    paths: dict[int, str]
    """Contender to its file."""


def screen_contenders(owner: Project, order: ScreenOrder, tell: Tell) -> ScreenResults:
    """Time contenders on a device that nobody else times on meanwhile: here, or on that of the context.

    Raises:
        MachineLacks: there is no such device, or the language cannot run there.
        MachineFailed: the best version fails, or the outcome is not that of this screen.
    """
    if order.manifest.context is not None:
        best = solutions.find_solution(owner, order.manifest.target_op, order.best)
        paths = {number: Path(path) for number, path in order.paths.items()}
        return send.screen_in_context(
            owner,
            order.manifest,
            best,
            paths,
            tell,
            language=order.language,
            sets=order.sets,
            seconds=order.seconds,
        )
    target = hardware.read_target_page(owner, order.manifest.target).target
    with device_lease.lease_device(target, tell):
        return time_contenders(owner, order, tell)


def time_contenders(owner: Project, order: ScreenOrder, tell: Tell) -> ScreenResults:
    """Time contenders beside the best version on this machine, whose device the caller holds.

    Raises:
        MachineLacks: the language cannot run here.
        MachineFailed: the best version fails.
    """
    op = order.manifest.target_op
    target = hardware.read_target_page(owner, order.manifest.target).target
    file = definition_file.load_definition(owner.definition_path(op))
    variants = [
        Variant(str(number), Path(path), order.language, {}, Path(path).read_text(encoding="utf-8"))
        for number, path in sorted(order.paths.items())
    ]
    best = lab_requests.lab_candidate(solutions.find_solution(owner, op, order.best))
    hidden = (owner.kernels, owner.devlog, owner.scratch)
    workloads = file.definition.select(*order.sets)
    workbench = Workbench(Bench(file, target.kind, variants, workloads, hidden, best, order.seconds))
    for result in workbench.run():
        speedup = f"{result.speedup:.2f}x" if result.speedup else ""
        tell(f"screen: contender {result.variant}: {result.state} {speedup or result.message}".rstrip())
    return ScreenResults(
        results={
            int(result.variant): ScreenResult(
                failure="" if result.state in ("timed", "correct") else result.message or result.state,
                equal=result.state == "same code",
                times=ScreenedSpeedup(speedup=result.speedup, interval=result.interval)
                if result.speedup and result.interval
                else None,
            )
            for result in workbench.results.values()
        }
    )
