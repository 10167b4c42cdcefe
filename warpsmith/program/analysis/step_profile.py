"""Profile of one step of a program: facts, trace, and time in parts; recommendations are derived from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace.models import Family, Parts, Trace
from warpsmith.program.analysis.ranks import AnalyzedRanks
from warpsmith.program.lines import line_rules
from warpsmith.program.lines.models import LineFinding, LineKind
from warpsmith.program.lines.raw_lines import WatchedLines
from warpsmith.program.models import ObservedStep, ProgramFacts
from warpsmith.program.process.profiler_recording import WHOLE_OPERATORS


@dataclass(frozen=True)
class StepProfile:
    """Profile of one step, as the rules read it."""

    facts: ProgramFacts
    """Facts of the program, with an observed step."""
    trace: Trace
    """Trace of several steps."""
    parts: Parts
    """Time of one step in parts, as it is without the profiler."""
    program: tuple[str, ...] = ("FILE", "--step", "STEP")
    """The program as arguments of a command: `train.py`, `--step`, `train_step`."""
    args: tuple[str, ...] = ()
    """The program's own arguments."""
    watched: WatchedLines | None = None
    """Counts by line of watched steps; None if no step was watched."""
    folder: Path = Path()
    """Folder that paths of the program's files are relative to."""
    ranks: AnalyzedRanks | None = None
    """All ranks of the program; None if it has only one."""

    def command(self, *verb: str, options: tuple[str, ...] = ()) -> str:
        """Format a Warpsmith command on the program; a script that runs as it is has no step to capture."""
        if self.program[0] == "--command" and verb[0] == "graph":
            return f"`{shlex.join(('warpsmith', *verb, *options))}` on a file with this step as a function"
        args = ("--", *self.args) if self.args else ()
        return f"`{shlex.join(('warpsmith', *verb, *self.program, *options, *args))}`"

    @property
    def seconds(self) -> float:
        """Time of one step, in seconds."""
        return float(sum(seconds for _, seconds in self.parts))

    @property
    def observed(self) -> ObservedStep:
        """The observed step."""
        if self.facts.observed is None:
            raise ValueError("no step was observed")
        return self.facts.observed

    @property
    def idle_share(self) -> float:
        """Share of a step in which the device is idle; without a device, the time outside of operators."""
        return self.share_of(self.parts.launches_seconds + self.parts.host_seconds)

    def share_of(self, seconds: float) -> float:
        """Return these seconds as a share of a step, at most 1."""
        return min(1.0, seconds / self.seconds)

    def kernel_share(self, *families: Family) -> float:
        """Return the share of a step in which only kernels of these families ran."""
        alone = sum(
            kernel.alone_seconds
            for kernel in self.trace.kernels
            if kernel.family in families and kernel.name not in trace_names.HOST_COPIES
        )
        whole = self.seconds * self.trace.repetitions if self.facts.gpu else self.trace.region.seconds
        return min(1.0, alone / whole)

    def operator_share(self, *names: str) -> float:
        """Return the share of a step that these operators take themselves, without the operators they call.

        Without a GPU the trace has operators, and its share is that of the table. It has kernels on a GPU, and no
        operator as a whole: there the time of the observed step counts.
        """
        return min(1.0, sum(map(self._share_of_operator, names)))

    def share_source(self, *names: str) -> str:
        """Return a note if the trace, which the table is made of, lists none of these operators."""
        return "" if any(self._traced(name) is not None for name in names) else " of the observed step"

    def _share_of_operator(self, name: str) -> float:
        traced = self._traced(name)
        if traced is not None:
            return traced / self.trace.region.seconds
        own = self.observed.times.get(name, 0.0)
        return own / (self.seconds if self.facts.gpu else self.observed.seconds)

    def _traced(self, name: str) -> float | None:
        """Return the seconds of an operator in the trace; None if it lists kernels or not this operator."""
        if self.facts.gpu or name in WHOLE_OPERATORS:
            return None
        return next((kernel.alone_seconds for kernel in self.trace.kernels if kernel.name == name), None)

    @cached_property
    def lines(self) -> tuple[LineFinding, ...]:
        """Lines that cost time in a step, the largest share first."""
        return line_rules.find_lines(
            self.watched or WatchedLines(), self.folder, copy_share=self.operator_share("aten::copy_"),
            gpu=self.facts.gpu, compiled=self.facts.compile_events,
        )  # fmt: skip

    def list_lines(self, kind: LineKind) -> list[LineFinding]:
        """List the lines of one kind, the largest share first."""
        return [line for line in self.lines if line.kind == kind]

    def loop_part(self, name: str) -> float:
        """Return the part of an operator's calls that loops of small operators make, from 0 to 1."""
        sites = self.watched.sites if self.watched else ()
        calls = sum(site.operators.get(name, 0) for site in sites)
        inside = sum(site.operators.get(name, 0) for site in sites if line_rules.is_small_loop(site))
        return inside / calls if calls else 0.0

    def loop_operator_share(self, *families: Family) -> float:
        """Return the share of a step in operators of these families that such loops call; 0 on a GPU."""
        if self.facts.gpu:
            return 0.0
        names = [kernel.name for kernel in self.trace.kernels if kernel.family in families]
        return sum(self.operator_share(name) * self.loop_part(name) for name in names)

    def operator_lines(self, *names: str) -> tuple[tuple[str, str], ...]:
        """List the lines that call these operators, the most calls first, each with its package."""
        return line_rules.operator_locations(self.watched, self.folder, names) if self.watched else ()

    @property
    def optimizer_line(self) -> tuple[str, str]:
        """Return the line that steps the optimizer and its package; both empty if it is unknown."""
        update = self.watched.update if self.watched else None
        return (line_rules.format_location(update, self.folder), update.package) if update else ("", "")

    def host_share(self, seconds: float) -> float:
        """Return these host seconds as a share of the observed step; on a GPU, at most the idle share."""
        share = min(1.0, seconds / self.observed.seconds)
        return min(share, self.idle_share) if self.facts.gpu else share

    @property
    def waits_per_step(self) -> float:
        """Number of times per step that the host waits for the device."""
        return self.trace.waits.count / self.trace.repetitions

    @property
    def memory_share(self) -> float:
        """Peak share of the device memory in use."""
        return self.facts.memory_peak / max(1, self.facts.memory_total)
