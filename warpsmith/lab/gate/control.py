"""Control: the sides beside a candidate, called without it.

Where one of them fails beside the candidate, or the host of all, the control says whether the machine did it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from warpsmith import languages
from warpsmith.core.evaluation import BEST, REFERENCE, Status
from warpsmith.errors import CompanionFailed, MachineFailed
from warpsmith.lab.gate.request import Request
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import BuildFailed
from warpsmith.temporary import TemporaryFolder

_STARVED = (Status.RUNTIME_ERROR, Status.TIMEOUT, Status.OUT_OF_MEMORY)
"""Statuses of a process that lacks what others took."""


def attribute_failure(failure: SideFailed) -> MachineFailed:
    """Return the failure of the reference or of the best version as one of the machine.

    Only the reference's may be the candidate's doing: the best version's may be its own.
    """
    message = f"{failure.side}: {failure.message}"
    starved = failure.side == REFERENCE and failure.status in _STARVED
    return CompanionFailed(message) if starved else MachineFailed(message)


def control_failure(request: Request, host: WorkerHost, device: str) -> str:
    """Time the reference and the best version without the candidate, and return how they fail; empty if they do
    not.

    Args:
        request: the judgement that they failed in.
        host: a fresh worker host, which is ended.
        device: `cpu` or `cuda`.
    """
    file = request.file
    with host as started, TemporaryFolder("build") as folder:
        try:
            sources = {REFERENCE: SideSource((file.path, REFERENCE), limits=request.limits)}
            if best := request.best:
                build = languages.get(best.language).build(best.path, file.definition, Path(folder))
                sources[BEST] = SideSource(build, best.language, request.limits)
            timed = file.definition.select(*request.sets)
            arenas = allocate_arenas(file, timed, timed, sources, device)
            with Sides(file, started, arenas, sources, device) as sides:
                sides.start()
                for workload in timed:
                    session = sides.open_session(workload, secrets.randbits(62))
                    timing.time_rounds(
                        session, Samples(), request.budget or timing.TimingBudget.for_device(device)
                    )
        except (SideFailed, BuildFailed, MachineFailed) as failure:
            return str(failure) or type(failure).__name__
    return ""
