"""What recommendations are made from: a program's facts, its trace, and one step's time in parts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace.models import Family, Parts, Trace
from warpsmith.program.models import ObservedStep, ProgramFacts


@dataclass(frozen=True)
class StepProfile:
    """A program as the rules see it."""

    facts: ProgramFacts
    """The program's, with a step observed."""
    trace: Trace
    """Of some steps."""
    parts: Parts
    """One step's time in parts, as it is without the profiler."""
    program: tuple[str, ...] = ("FILE", "--step", "STEP")
    """How a command names the program: `train.py`, `--step`, `train_step`."""
    args: tuple[str, ...] = ()
    """The program's own arguments."""

    def command(self, *verb: str, options: tuple[str, ...] = ()) -> str:
        """A command of Warpsmith on the program."""
        args = ("--", *self.args) if self.args else ()
        return f"`{shlex.join(('warpsmith', *verb, *self.program, *options, *args))}`"

    @property
    def seconds(self) -> float:
        """One step."""
        return float(sum(seconds for _, seconds in self.parts))

    @property
    def seen(self) -> ObservedStep:
        """The observed step."""
        if self.facts.observed is None:
            raise ValueError("no step was observed")
        return self.facts.observed

    @property
    def idle(self) -> float:
        """Share of a step in which the device does nothing; without one, time outside of operators."""
        return self.share(self.parts.launches_seconds + self.parts.host_seconds)

    def share(self, seconds: float) -> float:
        """Of a step."""
        return min(1.0, seconds / self.seconds)

    def kernels(self, *families: Family) -> float:
        """Share of a step in which only kernels of these families ran."""
        alone = sum(
            kernel.alone_seconds
            for kernel in self.trace.kernels
            if kernel.family in families and kernel.name not in trace_names.HOST_COPIES
        )
        whole = self.seconds * self.trace.repetitions if self.facts.gpu else self.trace.region.seconds
        return min(1.0, alone / whole)

    def operators(self, *names: str) -> float:
        """Share of a step that these operators take themselves."""
        own = sum(self.seen.times.get(name, 0.0) for name in names)
        return min(1.0, own / (self.seconds if self.facts.gpu else self.seen.seconds))

    def host(self, seconds: float) -> float:
        """Share of a step that the host took so long for in the observed one, as far as the device idles."""
        share = min(1.0, seconds / self.seen.seconds)
        return min(share, self.idle) if self.facts.gpu else share

    @property
    def waits(self) -> float:
        """Times a step that the host waits for the device."""
        return self.trace.waits.count / self.trace.repetitions

    @property
    def memory(self) -> float:
        """Share of the device's memory in use at most."""
        return self.facts.memory_peak / max(1, self.facts.memory_total)
