"""Lines of a version that no graded call ran: a build with counters gets the same calls, in its own process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from math import sqrt
from pathlib import Path

from warpsmith import languages
from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed, MachineLacks
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.workers.side import Side, SideFailed
from warpsmith.languages.base import Build, CountsLines, Language

COUNTED = "build with line counters"
"""Name of the side that counts lines; its calls are graded as the version's own are."""

_CHECK = "lines that ran"

UNRUN_LINES = "code that no call ran"
"""Name of the check that a version has lines with such code; it says nothing about the machine."""


def build_with_counters(
    language: Language, source: Path, definition: Definition, folder: Path
) -> dict[str, Build]:
    """Build a version as the solution and, where its language counts lines, with counters, at the same time.

    Raises:
        BuildFailed: one of them does not compile.
    """
    counting: object = language
    with ThreadPoolExecutor(1) as pool:
        counted = (
            pool.submit(counting.build_counted, source, definition, folder / "counted")
            if isinstance(counting, CountsLines) and not counting.missing_counters()
            else None
        )
        builds = {SOLUTION: language.build(source, definition, folder)}
        return builds | ({COUNTED: counted.result()} if counted else {})


def start_counts(sides: Sides) -> UnrunLines | None:
    """Return the counts of a version whose language counts lines; None for another one."""
    source = sides.source(SOLUTION)
    counting: object = languages.get(source.language or "")
    if not isinstance(counting, CountsLines) or not isinstance(source.code, Build):
        return None
    return UnrunLines(
        sides.running.get(COUNTED), counting, sides.source(COUNTED) if COUNTED in sides.names else source
    )


class UnrunLines:
    """Lines that graded calls have not run; it counts until all have run, as a few small calls mostly do."""

    def __init__(self, side: Side | None, counting: CountsLines, source: SideSource) -> None:
        """Hold a side that has loaded the build with counters; None where this machine cannot count."""
        assert isinstance(source.code, Build)
        self._side, self._counting, self._build = side, counting, source.code
        self._calls, self._next_look, self._seconds = 0, 4, 0.0
        self._slow: set[str] = set()
        self.lines: tuple[int, ...] | None = None
        """Lines that did not run until the last look; None before it."""
        self.failure = "" if side else counting.missing_counters() or "it was not built"
        """Reason why the counters cannot be read; empty if they can."""

    @property
    def sides(self) -> dict[str, Side]:
        """The side that counts, by its name, as long as further calls may run further lines."""
        return {COUNTED: self._side} if self._side and self.lines != () and not self.failure else {}

    def repeat_call(
        self,
        call: Callable[[str], Grade],
        definition: Definition,
        workload: Workload,
        description: str,
        excuse: Callable[[Grade], bool] = lambda _: False,
    ) -> None:
        """Make a call that the version passed in the build with counters too, and no further one at a workload
        where that takes long.

        Without optimization no product is fused with a sum, so parts may be infinite that the version's own are
        not: what `excuse` says of the version's results holds for these.

        Raises:
            SideFailed: that build fails, or its result is wrong.
        """
        if workload.name in self._slow or self._seconds > gate_rules.COUNTED_SECONDS[1]:
            return
        started = time.monotonic()
        try:
            grade = call(COUNTED)
        except SideFailed as failure:
            raise SideFailed(failure.status, f"in a build with line counters: {failure.message}") from failure
        limit = max(gate_rules.NEAR_MISS_BOUNDS, _growth_in_order(definition, workload))
        is_wrong = grade.status is not Status.PASSED and max(grade.worst, grade.norm_share) > limit
        if is_wrong and not excuse(grade):
            raise SideFailed(grade.status, f"in a build with line counters: {grade.detail} ({description})")
        spent = time.monotonic() - started
        self._seconds += spent
        if spent > gate_rules.COUNTED_SECONDS[0]:
            self._slow.add(workload.name)
        self._calls += 1
        if self._calls >= self._next_look:
            self._next_look *= 2
            self.look()

    def look(self) -> None:
        """Read the counters."""
        side = self.sides.get(COUNTED)
        if side is None:
            return
        try:
            counts = side.ask({"do": "take_counts"}).get("counts")
            self.lines = self._counting.unrun_lines(self._build, str(counts))
        except SideFailed as failure:
            raise SideFailed(failure.status, f"its line counters are not written: {failure.message}") from failure
        except MachineFailed:
            raise
        except (MachineLacks, ValueError) as error:
            self.failure = str(error)
        finally:
            side.pause()

    def end(self) -> Check:
        """End the count and return its check, which names the lines with code that no graded call ran."""
        try:
            self.look()
        except SideFailed as failure:
            self.failure = failure.message
        self._side = None
        if self.failure:
            return Check(name=_CHECK, ran=False, how=self.failure)
        if self.lines:
            holds = "line {} holds" if len(self.lines) == 1 else "lines {} hold"
            where, name = holds.format(_join_ranges(self.lines)), self._build.source.name
            return Check(name=UNRUN_LINES, ran=False, how=f"{where} code of {name} that no graded call ran")
        ran = f"all of its code ran by {self._calls} graded calls of a build with counters"
        return Check(name=_CHECK, ran=True, how=ran)


def _growth_in_order(definition: Definition, workload: Workload) -> float:
    """Return how many times the bound the errors of sums may reach that are computed term by term.

    Bounds grow with the root of a sum's length. Without optimization no sum runs in lanes, and the errors of terms
    that are alike, as exponentials of small numbers are, add up: they grow with the length itself.
    """
    sizes = definition.sizes(workload)
    lengths = (evaluate(definition.tolerance_of(name).reduction, sizes) for name in definition.outputs)
    return sqrt(max(lengths))


def _join_ranges(lines: Sequence[int]) -> str:
    """Return numbers with neighbours joined: `12, 14-16`."""
    groups = [
        [line for _, line in group] for _, group in groupby(enumerate(lines), lambda pair: pair[1] - pair[0])
    ]
    return ", ".join(f"{group[0]}-{group[-1]}" if len(group) > 1 else str(group[0]) for group in groups)
