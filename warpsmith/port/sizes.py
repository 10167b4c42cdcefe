"""Sizes at which a port's judgement interprets large workloads: as many rows as the interpreter computes in time.

The interpreter takes minutes for what a device does in microseconds, and longer on a busy machine. So a call of
some rows is timed first. What `run` launches at all rows is recorded without being interpreted: fewer rows stand
for it only where they launch the same kernels, with the same types, alignments, constants and options.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith import languages
from warpsmith.core.definition import Workload
from warpsmith.core.port.check import FewerRows, KernelLaunch
from warpsmith.lab.gate.request import Request
from warpsmith.lab.grading import rows
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import allocate_arenas, describe_slots, lay_out
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import SideSource, load_side
from warpsmith.lab.workers.side import Side, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import BuildFailed
from warpsmith.temporary import TemporaryFolder

CALL_SECONDS = 3.0
"""Time that an interpreted call of a large workload may take as foreseen. Chosen: a judgement makes about eight,
and one that takes longer than `gate_rules.MESSAGE_SECONDS` is a rollback."""

_TRIED_ELEMENTS = 1 << 18
"""Elements of the call that is timed; workloads without more are interpreted as they are."""

_CLASS = 16
"""Numbers that differ by a multiple of it are alike for the compiler, unless one of them is 1."""

_TRIED_SLOTS = 1

Kernels = frozenset[tuple[str, str, str]]
"""Kernels of launches, with their programs and what the compiler learns of their arguments."""


@dataclass(frozen=True)
class RowLimit:
    """Rows at which one workload is interpreted, and what it launches at all of its own."""

    fewer: FewerRows
    """The workload, its axis of rows, and their numbers."""
    launches: tuple[KernelLaunch, ...]
    """Launches of `run` at all rows."""

    def left_out(self, interpreted: Sequence[KernelLaunch]) -> str:
        """Name a kernel that is launched at all rows and was not interpreted; empty if there is none."""
        missing = kernels_of(self.launches) - kernels_of(interpreted)
        return next((kernel for kernel, _, _ in sorted(missing)), "")


def kernels_of(launches: Sequence[KernelLaunch]) -> Kernels:
    """Return the kernels of launches, whatever their number of blocks."""
    return frozenset((launch.kernel, launch.program, launch.call) for launch in launches)


def limit_rows(request: Request, host: WorkerHost) -> dict[str, RowLimit]:
    """Return the row limits of the large workloads of a judgement, by name; empty where all are interpreted whole.

    Nothing is graded here: a version that fails is left to the judgement.
    """
    file, language = request.file, languages.get(request.candidate.language)
    definition = file.definition
    large = [
        workload
        for workload in definition.select(*request.sets)
        if definition.elements(workload) > _TRIED_ELEMENTS and not language.distrust(definition, workload)
    ]
    axis = rows.find_row_axis(file) if large else None
    limits: dict[str, RowLimit] = {}
    if axis is None:
        return limits
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryFolder("build")))
            build = language.build(request.candidate.path, definition, folder)
            source = SideSource(build, language.name, request.limits, request.recorded_for)
            arenas = allocate_arenas(file, large, [], [SOLUTION], host.device, checked_slots=_TRIED_SLOTS)
            stack.callback(arenas.close)
            side = host.start_side(SOLUTION, request.limits)
            stack.callback(side.close)
            load_side(side, file, source, arenas, host.device)
            for workload in large:
                request.tell(f"interpreted rows of {workload.name}")
                if limit := _limit_rows(file, side, workload, axis):
                    limits[workload.name] = limit
    except (SideFailed, BuildFailed):
        return limits
    return limits


def shorten_workloads(file: DefinitionFile, limits: Mapping[str, RowLimit]) -> DefinitionFile:
    """Return the definition with fewer rows in the workloads that have a limit."""
    workloads = tuple(
        rows.shorten(workload, limits[workload.name].fewer.axis, limits[workload.name].fewer.rows)
        if workload.name in limits
        else workload
        for workload in file.definition.workloads
    )
    return replace(file, definition=file.definition.model_copy(update={"workloads": workloads}))


def _limit_rows(file: DefinitionFile, side: Side, workload: Workload, axis: str) -> RowLimit | None:
    """Return a workload's row limit; None if it is interpreted whole."""
    total = workload.axes[axis]
    tried = _same_class(total, total * _TRIED_ELEMENTS // file.definition.elements(workload))
    if tried >= total:
        return None
    _lay_out(file, side, rows.shorten(workload, axis, tried))
    seconds = min(_time_call(side) for _ in range(2))  # the first one also builds the kernels
    fitting = max(tried, _same_class(total, int(tried * CALL_SECONDS / seconds)))
    if fitting >= total:
        return None
    launched = []
    for count in (fitting, total):
        _lay_out(file, side, rows.shorten(workload, axis, count))
        side.launches()  # those of other calls
        side.ask({"do": "call_recorded", "slot": 0})
        launched.append(side.launches())
    if not launched[1] or kernels_of(launched[1]) - kernels_of(launched[0]):
        return None
    return RowLimit(FewerRows(workload=workload.name, axis=axis, rows=fitting, total=total), launched[1])


def _same_class(total: int, count: int) -> int:
    """Return a number of rows near `count` that the compiler cannot tell from `total`, and at least two."""
    rest = total % _CLASS
    return max(count // _CLASS, 0 if rest > 1 else 1) * _CLASS + rest


def _lay_out(file: DefinitionFile, side: Side, workload: Workload) -> None:
    placements = lay_out(file, workload, _TRIED_SLOTS, "contiguous")[2]
    slots = describe_slots(file.definition, [workload] * _TRIED_SLOTS, placements)
    side.ask({"do": "workload", "slots": slots})


def _time_call(side: Side) -> float:
    started = time.monotonic()
    side.ask({"do": "call", "slot": 0})
    return time.monotonic() - started
