"""Tuning: the hand-picked configuration, its neighbours for the slope, then a search in bounded time.

The winner is timed once more in fresh processes and counts only beyond the machine's noise, because the fastest of
many noisy times is fast by luck. The outcome is a table of plain numbers in a new version, which the gate then
judges.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from warpsmith import languages
from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.hardware import UNITS
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.lab.gate.request import Request
from warpsmith.lab.machine import identity
from warpsmith.lab.tuning import models as tuning
from warpsmith.lab.tuning import screening
from warpsmith.lab.tuning.models import ScreenedConfig, Tunable, Tuning, TuningRow
from warpsmith.lab.tuning.screening import WIDTH, Screening, ScreeningContext
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.temporary import TemporaryFolder

FINALISTS = 3
"""Configurations of a row that are timed again in fresh processes."""

_LAST_SCREENING = 1.5
"""Time that is reserved for the finalists, in multiples of a screening's time."""


def tune_version(request: Request, seconds: float, host: WorkerHost | None = None) -> tuple[Tuning, str]:
    """Search the configurations that a version declares, row by row of its table.

    Args:
        request: the version and the conditions; `sets` are the workloads that it is tuned at.
        seconds: wall time at most for the search, shared by the rows that have workloads; a screening that has
            begun is finished.
        host: a running worker host; by default one of its own.

    Returns:
        The record of the search, and the version's text with the winners in its table.

    Raises:
        Misuse: the version declares nothing to tune, or breaks the form.
        MachineLacks: the language cannot be timed here.
        MachineFailed: the unchanged version fails.
    """
    candidate, kind = request.candidate, request.page.target.kind
    language = languages.get(candidate.language)
    if lacks := language.missing(kind):
        raise MachineLacks(lacks)
    if kind not in language.targets:
        raise MachineLacks(f"{language.name} only interprets on {request.page.target.id}: nothing is timed there.")
    source = candidate.path.read_text(encoding="utf-8")
    try:
        tunable = tuning.read_tunable(source)
        spaces = _list_spaces(request, tunable)
    except ValueError as error:
        raise Misuse(f"{candidate.path}: {error}.") from error
    return _search(request, source, tunable, spaces, seconds, host)


def _search(
    request: Request,
    source: str,
    tunable: Tunable,
    spaces: Sequence[_RowSpace],
    seconds: float,
    host: WorkerHost | None,
) -> tuple[Tuning, str]:
    candidate = request.candidate
    device = "cuda" if request.page.target.kind == "gpu" else "cpu"
    with ExitStack() as stack:
        if host is None:
            project = request.project
            host = stack.enter_context(WorkerHost(device, hidden=(project.kernels, project.devlog)))
        folder = Path(stack.enter_context(TemporaryFolder("tune")))
        context = ScreeningContext(request, source, tunable, host, folder, device)
        host.restock(1 + WIDTH[device])  # the host's own start is no part of the search
        started = time.monotonic()
        searches = _search_rows(context, spaces, started + seconds)
        winners = [(search.row, search.winner) for search in searches if search.winner]
        for row, config in winners:
            source = tuning.write_config(source, row, config)
        device_name = identity.identify_machine(request.page.target).device
        if winners:
            origin = f"from {candidate.version} on {device_name}, {this_minute()[:10]}"
            source = tuning.sign_table(source, origin)
            context.build(source)
    configs = {row.line: config for row, config in winners}
    record = Tuning(
        version=f"{candidate.language}/{candidate.version}",
        definition=request.file.definition.name,
        target=request.page.target.id,
        device=device_name,
        tried=tuple(config for search in searches for config in search.tried),
        pruned=sum(search.pruned for search in searches),
        left=sum(len(search.rest) for search in searches),
        seconds=time.monotonic() - started,
        rows=tuple(row.model_copy(update={"config": configs.get(row.line, row.config)}) for row in tunable.rows),
    )
    return record, source


def _search_rows(context: ScreeningContext, spaces: Sequence[_RowSpace], end: float) -> list[_RowSearch]:
    """Search the rows one after the other; each takes its share of the time that remains until `end`."""
    searches: list[_RowSearch] = []
    for count, space in enumerate(spaces):
        started = time.monotonic()
        searches.append(_RowSearch(context, space, started + (end - started) / (len(spaces) - count)))
        searches[-1].run()
    return searches


class _RowSpace(NamedTuple):
    """Configurations to try for one row of the table."""

    row: TuningRow
    """The row."""
    workloads: list[Workload]
    """Workloads that the row is for."""
    configs: list[dict[str, int]]
    """Configurations that the conditions allow at all of these workloads."""


def _list_spaces(request: Request, tunable: Tunable) -> list[_RowSpace]:
    """List the rows that workloads belong to.

    Raises:
        ValueError: no row holds for a workload, or a condition is wrong.
    """
    definition = request.file.definition
    workloads_by_row: dict[int, list[Workload]] = {}
    for workload in definition.select(*request.sets):
        index = tunable.row_for(_condition_names(definition, workload))
        if index is None:
            raise ValueError(f"no row of its table holds for {workload.name}; end it with a row `for any`")
        workloads_by_row.setdefault(index, []).append(workload)
    figures, spaces = _target_figures(request), []
    for index, workloads in sorted(workloads_by_row.items()):
        configs = tunable.space([_condition_names(definition, workload) for workload in workloads], figures)
        spaces.append(_RowSpace(tunable.rows[index], workloads, configs))
    return spaces


class _RowSearch:
    """The search for one row of the table."""

    def __init__(self, context: ScreeningContext, space: _RowSpace, deadline: float) -> None:
        self.row, self._workloads, self._context, self._deadline = space.row, space.workloads, context, deadline
        self.rest = [config for config in space.configs if config != space.row.config]
        """Allowed configurations that were not tried yet."""
        self.pruned = context.tunable.size - len(space.configs)
        """Configurations that the conditions left out."""
        self.tried: list[ScreenedConfig] = []
        """Configurations in the order in which they were tried."""
        self.winner: dict[str, int] | None = None
        """Configuration that beats the hand-picked one beyond the noise; None if there is none."""
        self._screening_seconds = 0.0

    def run(self) -> None:
        """Try the neighbours for the slope, search, and time the best ones again."""
        context = self._context
        near = [config for config in self.rest if context.tunable.distance(config, self.row.config) == 1]
        self._screen_all(near, "slope")
        slope = [config for config in self.tried if config.speedup is not None]
        if slope and all(abs(config.speedup - 1) <= context.floor for config in slope if config.speedup):
            return  # flat: the constants do not matter here
        while self.rest and self._has_time:
            best = max(self._valid, key=_speedup, default=None)
            centre = best.config if best else self.row.config
            nearest = tuning.sort_by_distance(context.tunable, self.rest, centre)
            self._screen_all(nearest[: WIDTH[context.device]], "search")
        finalists = sorted((config for config in self._valid if _speedup(config) > 1), key=_speedup)[-FINALISTS:]
        if finalists:
            self._screen([config.config for config in finalists], "again")
        again = [config for config in self._valid if config.step == "again"]
        sure = [config for config in again if config.interval and config.interval.low > 1 + context.floor]
        self.winner = max(sure, key=_speedup).config if sure else None

    @property
    def _valid(self) -> list[ScreenedConfig]:
        """Configurations that were timed, are right, and are slower at no workload."""
        return [config for config in self.tried if config.speedup is not None and not config.note]

    @property
    def _has_time(self) -> bool:
        """True if one more screening fits, with the last one after it; the first always does."""
        needed = (1 + _LAST_SCREENING) * self._screening_seconds
        return not self.tried or time.monotonic() + needed <= self._deadline

    def _screen_all(self, configs: Sequence[tuning.Config], step: str) -> None:
        width = WIDTH[self._context.device]
        for start in range(0, len(configs), width):
            if self._has_time:
                self._screen(configs[start : start + width], step)

    def _screen(self, configs: Sequence[tuning.Config], step: str) -> None:
        started = time.monotonic()
        first_config = screening.format_config(configs[0])
        self._context.request.tell(f"for {self.row.condition}: {step}, {first_config}, ...")
        first, *others = Screening(self._context, self.row, self._workloads, configs, step).run()
        if not self.tried or self.tried[0].seconds is None:
            self.tried[:1] = [first]
        self.tried += others
        self.rest = [config for config in self.rest if config not in configs]
        self._screening_seconds = time.monotonic() - started


def _speedup(config: ScreenedConfig) -> float:
    return config.speedup or 0.0


def _condition_names(definition: Definition, workload: Workload) -> dict[str, int]:
    """Return the values that conditions may name: the axes, and the bytes of an element of the workload's type."""
    return {**definition.sizes(workload), "element_bytes": DTYPES[workload.dtype].bytes}


def _target_figures(request: Request) -> dict[str, int]:
    """Return the target's known figures in bytes and counts, for the conditions."""
    figures = request.page.target.figures.items()
    return {
        name: int(f.value * UNITS.get(f.unit, 1.0)) for name, f in figures if not isinstance(f.value, str)
    }  # fmt: skip
