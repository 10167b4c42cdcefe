"""Tuning: the hand-picked configuration, a few around it for the slope, then a search in bounded time.

What wins is timed once more in fresh processes and counts only beyond the machine's noise: the fastest of many
noisy times is fast by luck. The outcome is a table of plain numbers in a new version; the gate decides about that.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from warpsmith import languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.dtype import DTYPES
from warpsmith.core.hardware import UNITS
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.lab.gate.judge import Request
from warpsmith.lab.machine import machine
from warpsmith.lab.tuning import models as tuning
from warpsmith.lab.tuning import trial
from warpsmith.lab.tuning.models import Row, Tried, Tunable, Tuning
from warpsmith.lab.tuning.trial import WIDTH, Trial, Workplace
from warpsmith.lab.workers.side import WorkerHost

FINALISTS = 3
"""Configurations of a row that are timed again in fresh processes."""

_LAST = 1.5
"""Trials' worth of time that is kept for that."""


def tune(request: Request, seconds: float, host: WorkerHost | None = None) -> tuple[Tuning, str]:
    """Search the configurations that a version declares, row by row of its table.

    Args:
        request: the version and where it runs; `sets` are the workloads that it is tuned at.
        seconds: wall time at most for the search, shared by the rows that have workloads; what runs is finished.
        host: where workers come from; by default one of its own.

    Returns:
        What was tried, and the version's text with the winners in its table.

    Raises:
        Misuse: the version declares nothing to tune, or breaks the form.
        MachineLacks: the language cannot be timed here.
        MachineFailed: the version as it stands fails.
    """
    candidate, kind = request.candidate, request.page.target.kind
    language = languages.get(candidate.language)
    if lacks := language.missing(kind):
        raise MachineLacks(lacks)
    if kind not in language.targets:
        raise MachineLacks(f"{language.name} only interprets on {request.page.target.id}: nothing is timed there.")
    source = candidate.path.read_text(encoding="utf-8")
    try:
        tunable = tuning.read(source)
        spaces = _spaces(request, tunable)
    except ValueError as error:
        raise Misuse(f"{candidate.path}: {error}.") from error
    return _search(request, source, tunable, spaces, seconds, host)


def _search(
    request: Request,
    source: str,
    tunable: Tunable,
    spaces: Sequence[_Space],
    seconds: float,
    host: WorkerHost | None,
) -> tuple[Tuning, str]:
    candidate = request.candidate
    device = "cuda" if request.page.target.kind == "gpu" else "cpu"
    with ExitStack() as stack:
        if host is None:
            here = request.project
            host = stack.enter_context(WorkerHost(device, hidden=(here.kernels, here.devlog)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpsmith-tune-")))
        place = Workplace(request, source, tunable, host, folder, device)
        host.restock(1 + WIDTH[device])  # the host's own start is no part of the search
        started = time.monotonic()
        searches = _searched(place, spaces, started + seconds)
        won = [(search.row, search.winner) for search in searches if search.winner]
        for row, config in won:
            source = tuning.write(source, row, config)
        device_name = machine.machine(request.page.target).device
        if won:
            source = tuning.signed(source, f"from {candidate.version} on {device_name}, {this_minute()[:10]}")
            place.build(source)
    winners = {row.line: config for row, config in won}
    found = Tuning(
        version=f"{candidate.language}/{candidate.version}",
        definition=request.file.definition.name,
        target=request.page.target.id,
        device=device_name,
        tried=tuple(one for search in searches for one in search.tried),
        pruned=sum(search.pruned for search in searches),
        left=sum(len(search.rest) for search in searches),
        seconds=time.monotonic() - started,
        rows=tuple(row.model_copy(update={"config": winners.get(row.line, row.config)}) for row in tunable.rows),
    )
    return found, source


def _searched(place: Workplace, spaces: Sequence[_Space], end: float) -> list[_RowSearch]:
    """A search a row, one after the other; each takes its share of the time that is left until `end`."""
    done: list[_RowSearch] = []
    for count, space in enumerate(spaces):
        now = time.monotonic()
        done.append(_RowSearch(place, space, now + (end - now) / (len(spaces) - count)))
        done[-1].run()
    return done


class _Space(NamedTuple):
    """What may be tried for one row of the table."""

    row: Row
    """The row."""
    workloads: list[Workload]
    """Those that it is for."""
    configs: list[dict[str, int]]
    """What the conditions allow at all of them."""


def _spaces(request: Request, tunable: Tunable) -> list[_Space]:
    """The rows that workloads belong to; raises ValueError."""
    definition = request.file.definition
    mine: dict[int, list[Workload]] = {}
    for workload in definition.select(*request.sets):
        index = tunable.row(_shape(definition, workload))
        if index is None:
            raise ValueError(f"no row of its table holds for {workload.name}; end it with a row `for any`")
        mine.setdefault(index, []).append(workload)
    figures, found = _figures(request), []
    for index, workloads in sorted(mine.items()):
        configs = tunable.space([_shape(definition, workload) for workload in workloads], figures)
        found.append(_Space(tunable.rows[index], workloads, configs))
    return found


class _RowSearch:
    """The search for one row of the table."""

    def __init__(self, place: Workplace, space: _Space, deadline: float) -> None:
        self.row, self._workloads, self._place, self._deadline = space.row, space.workloads, place, deadline
        self.rest = [config for config in space.configs if config != space.row.config]
        """Allowed configurations that were not tried yet."""
        self.pruned = place.tunable.size - len(space.configs)
        """Configurations that the conditions left out."""
        self.tried: list[Tried] = []
        """In order."""
        self.winner: dict[str, int] | None = None
        """What is better than the hand-picked one beyond the noise; None: nothing is."""
        self._took = 0.0

    def run(self) -> None:
        """The slope, the search, and the best ones again."""
        near = [config for config in self.rest if self._place.tunable.distance(config, self.row.config) == 1]
        self._trials(near, "slope")
        slope = [one for one in self.tried if one.speedup is not None]
        if slope and all(abs(one.speedup - 1) <= self._place.floor for one in slope if one.speedup):
            return  # flat: constants do not matter here
        while self.rest and self._time:
            best = max(self._good, key=_speedup, default=None)
            around = tuning.nearest(self._place.tunable, self.rest, best.config if best else self.row.config)
            self._trials(around[: WIDTH[self._place.device]], "search")
        finalists = sorted((one for one in self._good if _speedup(one) > 1), key=_speedup)[-FINALISTS:]
        if finalists:
            self._trial([one.config for one in finalists], "again")
        again = [one for one in self._good if one.step == "again"]
        sure = [one for one in again if one.interval and one.interval.low > 1 + self._place.floor]
        self.winner = max(sure, key=_speedup).config if sure else None

    @property
    def _good(self) -> list[Tried]:
        """What was timed, is right and nowhere slower."""
        return [one for one in self.tried if one.speedup is not None and not one.note]

    @property
    def _time(self) -> bool:
        """Whether one more trial fits, with the last one after it; the first always does."""
        return not self.tried or time.monotonic() + (1 + _LAST) * self._took <= self._deadline

    def _trials(self, configs: Sequence[tuning.Config], step: str) -> None:
        width = WIDTH[self._place.device]
        for start in range(0, len(configs), width):
            if self._time:
                self._trial(configs[start : start + width], step)

    def _trial(self, configs: Sequence[tuning.Config], step: str) -> None:
        began = time.monotonic()
        self._place.request.tell(f"for {self.row.condition}: {step}, {trial.shown(configs[0])}, ...")
        first, *others = Trial(self._place, self.row, self._workloads, configs, step).run()
        if not self.tried or self.tried[0].seconds is None:
            self.tried[:1] = [first]
        self.tried += others
        self.rest = [config for config in self.rest if config not in configs]
        self._took = time.monotonic() - began


def _speedup(one: Tried) -> float:
    return one.speedup or 0.0


def _shape(definition: Definition, workload: Workload) -> dict[str, int]:
    """What conditions may speak of: the axes, and the bytes of an element of the workload's type."""
    return {**definition.sizes(workload), "element_bytes": DTYPES[workload.dtype].bytes}


def _figures(request: Request) -> dict[str, int]:
    """The target's known figures in bytes and counts, for the conditions."""
    known = request.page.target.figures.items()
    return {
        name: int(f.value * UNITS.get(f.unit, 1.0)) for name, f in known if not isinstance(f.value, str)
    }  # fmt: skip
