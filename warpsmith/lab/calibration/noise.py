"""A/A floor: how much faster than itself a kernel looks on this machine, by chance."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import GATE_VERSION, REFERENCE
from warpsmith.core.hardware import Noise, Target
from warpsmith.core.text import PartCounter, Tell
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.paired_timing import PairedTiming
from warpsmith.lab.machine import identity, system
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.worker_host import WorkerHost

NOISE_SIDES = ("first", "second")
"""Names of two workers with the same code."""

CANARY = "canary"
"""Name of a worker that does the same work twice."""

_DEFINITION = Path(__file__).parent / "aa" / "definition.py"


def measure_noise(
    target: Target,
    tell: Tell = lambda _: None,
    trials: int = gate_rules.NOISE_COMPARISONS,
) -> Noise:
    """Compare an operator with itself and measure how far from 1 the geometric means fall by chance.

    Args:
        target: the device kind.
        tell: takes lines of progress.
        trials: A/A comparisons; each takes the same steps as the timing of one judgement.

    Raises:
        MachineFailed: a worker fails, or the times do not show which side does its work twice.
    """
    gains = []
    parts = PartCounter(tell, trials)
    with IdenticalSides(target, (*NOISE_SIDES, CANARY)) as identical:
        for trial in range(trials):
            parts.begin(f"A/A comparison {trial + 1} of {trials}")
            identical.restart()
            timing = PairedTiming(identical.workloads, TimingBudget.for_device(identical.device), None)
            for workload in identical.workloads:
                timing.time_workload(workload, lambda at: identical.open_session(at, NOISE_SIDES))
            first, second = NOISE_SIDES
            pairs = {name: (s.seconds[first], s.seconds[second]) for name, s in timing.samples.items()}
            gains.append(statistics.geometric_mean(pairs, second).speedup - 1)
        if identical.device != "cpu":  # a CPU's second pass finds its data in a cache
            _check_canary(identical)
    parts.end("A/A floor measured")
    sizes = ", ".join(workload.name for workload in identical.workloads)
    return Noise(
        gate_version=GATE_VERSION,
        boot=system.boot_id(),
        settings=_gpu_settings(target),
        floor=statistics.student_floor(gains),
        trials=trials,
        how=f"`{identical.file.definition.description}` at {sizes} float32, two fresh workers each time",
    )


def _check_canary(identical: IdenticalSides) -> None:
    """Check that a side that does its work twice takes about twice the time: exchanged slots would show."""
    side, workload = NOISE_SIDES[0], identical.workloads[-1]
    timing = PairedTiming([workload], TimingBudget.for_device(identical.device), None)
    timing.time_workload(workload, lambda at: identical.open_session(at, (side, CANARY)))
    seconds = timing.samples[workload.name].seconds
    ratio = statistics.median(seconds[CANARY]) / statistics.median(seconds[side])
    if ratio < gate_rules.CANARY_RATIO:
        raise MachineFailed(
            f"A side that does its work twice takes {ratio:.2f} times as long as one that does it once: other "
            "programs disturb the times, or they do not belong to their sides. Measure again on an idle machine."
        )


def outdated_reason(noise: Noise | None, target: Target) -> str | None:
    """Return in a few words why a floor must be measured again on this machine, or None if it is valid."""
    if noise is None:
        return "it was never measured"
    if noise.gate_version != GATE_VERSION:
        return "it is from another version of the gate"
    if noise.boot != system.boot_id():
        return "the machine was started anew since"
    current = _gpu_settings(target)
    changed = [name for name, value in current.items() if noise.settings.get(name, value) != value]
    return f"{', '.join(changed)} of the GPU changed" if changed else None


class IdenticalSides:
    """Workers that run the same plain operator; one named like a peer of its definition runs that."""

    def __init__(self, target: Target, names: Sequence[str], sizes: Sequence[str] = ()) -> None:
        """Load the operator; no worker is started yet.

        Args:
            target: the device kind.
            names: names of the workers.
            sizes: names of its workloads; by default those of the A/A comparison on the device.
        """
        self.device = "cuda" if target.kind == "gpu" else "cpu"
        self.file = definition_file.load_definition(_DEFINITION)
        chosen = sizes or gate_rules.NOISE_SIZES[self.device]
        self.workloads = tuple(w for w in self.file.definition.workloads if w.name in chosen)
        self._names = names

    def __enter__(self) -> IdenticalSides:
        with ExitStack() as stack:
            host = stack.enter_context(WorkerHost(self.device))
            arenas = allocate_arenas(self.file, (), self.workloads, self._names, self.device)
            peers = self.file.peers
            sources = {
                name: SideSource((self.file.path, name if name in peers else REFERENCE)) for name in self._names
            }
            self._sides = stack.enter_context(Sides(self.file, host, arenas, sources, self.device))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def restart(self) -> None:
        """Replace the workers by fresh processes, because two of the same code can differ for as long as they
        live."""
        self._sides.start()

    def open_session(self, workload: Workload, names: Sequence[str] | None = None) -> Session:
        """Open a session of the named sides, by default of all; call `restart` first."""
        return self._sides.open_session(workload, secrets.randbits(62), names)


def _gpu_settings(target: Target) -> dict[str, int | float]:
    gpu = identity.visible_gpu() if target.kind == "gpu" else None
    return Gauge(gpu.uuid).settings() if gpu else {}
