"""Profile of one step of a program: facts, trace, and time in parts; recommendations are derived from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace.models import Family, Parts, Trace
from warpsmith.program.models import ObservedStep, ProgramFacts


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

    def command(self, *verb: str, options: tuple[str, ...] = ()) -> str:
        """Format a Warpsmith command on the program; a script that runs as it is has no step for it."""
        if self.program[0] == "--command":
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
        """Return the share of a step that these operators take themselves, without the operators they call."""
        own = sum(self.observed.times.get(name, 0.0) for name in names)
        return min(1.0, own / (self.seconds if self.facts.gpu else self.observed.seconds))

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
