"""Several versions over ranks side by side at one workload: each graded, then timed in the same rounds.

Benchmarks use it. Nothing is decided, and no record is kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Correctness, Status
from warpsmith.core.text import Tell
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.ranks.correctness_check import check_rank_workload
from warpsmith.lab.ranks.group import RankGroup
from warpsmith.lab.ranks.timing import RankTimes
from warpsmith.lab.workers.side import Limits, SideFailed, WorkerHost


@dataclass
class VersionOutcome:
    """Outcome of a version at the workload."""

    status: Status = Status.PASSED
    """Outcome; a version that failed has no times."""
    message: str = ""
    """Reason in one sentence if it failed."""
    correctness: Correctness | None = None
    """Errors of the graded calls."""
    seconds: tuple[float, ...] = ()
    """Seconds per call of the slowest rank, by round; the rounds are those of the other versions."""
    issued_ahead: bool | None = None
    """True if no time of the host is in them; None on a processor."""


def time_side_by_side(
    file: DefinitionFile,
    workload: Workload,
    versions: Mapping[str, Path],
    host: WorkerHost,
    limits: Limits | None = None,
    tell: Tell = lambda _: None,
) -> dict[str, VersionOutcome]:
    """Grade each version at a workload, and time those that passed in rounds of one block each.

    Args:
        file: definition, with the number of ranks that the host has GPUs for.
        workload: the workload; it need not be one of the definition's.
        versions: name to the file of a version.
        host: from `open_rank_host`.
        limits: time for a block of calls, and memory for each rank.
        tell: takes lines of progress.

    Raises:
        MachineFailed: the ranks cannot reach each other, or the reference misses its own bound.
    """
    outcomes = {name: VersionOutcome() for name in versions}
    with ExitStack() as stack:
        groups: dict[str, RankGroup] = {}
        for name, source in versions.items():
            tell(f"correctness of {name} at {workload.name}")
            try:
                group = RankGroup(
                    name, file.definition, [workload], source, source.read_bytes(), host, limits or Limits()
                )
                stack.callback(group.close)
                seed = secrets.randbits(62)
                outcomes[name].correctness = check_rank_workload(file, workload, group, seed)
                groups[name] = group
            except SideFailed as failure:
                outcomes[name].status, outcomes[name].message = failure.status, failure.message
        while groups:
            tell(f"timing {', '.join(groups)} at {workload.name}")
            times = RankTimes(file, secrets.randbits(62), tell)
            try:
                times.time_workload(workload, groups)
            except SideFailed as failure:
                name = failure.side if failure.side in groups else next(iter(groups))
                groups.pop(name).close()
                outcomes[name].status, outcomes[name].message = failure.status, failure.message
                continue
            for name, seconds in times.seconds[workload.name].items():
                outcomes[name].seconds = tuple(seconds)
                outcomes[name].issued_ahead = times.ahead.get(workload.name, {}).get(name)
            break
    return outcomes
