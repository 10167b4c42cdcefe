"""The A/A floor: how much faster than itself a kernel looks on this machine, by chance."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import GATE_VERSION, REFERENCE
from warpsmith.core.hardware import Noise, Target
from warpsmith.lab.gate.race import Race
from warpsmith.lab.machine import machine
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing import session, statistics
from warpsmith.lab.timing.bench import Bench, Source
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.timing import Budget
from warpsmith.lab.workers.side import WorkerHost

SIDES = ("first", "second")
"""Two workers with the same code."""

TRIALS = 6
"""A/A comparisons; each takes the same steps as the timing of one judgement."""

SIZES = {"cpu": ("256x1024", "2048x1024", "4096x1024"), "cuda": ("256x1024", "2048x1024", "4096x4096")}
"""A small, a middle and a large one. A GPU's large one is beyond its caches; a CPU's caches are written over
before each call, and grading anything larger would take most of the time there."""

_DEFINITION = Path(__file__).parent / "aa" / "definition.py"


def measure(target: Target, tell: Callable[[str], None] = lambda _: None, trials: int = TRIALS) -> Noise:
    """Compare an operator with itself and see how far from 1 the geometric means fall.

    Raises:
        MachineFailed: a worker fails.
    """
    gains = []
    with TwoAlike(target, SIDES) as alike:
        for trial in range(trials):
            tell(f"A/A comparison {trial + 1} of {trials}")
            alike.restart()
            race = Race(alike.workloads, Budget.of(alike.device), None)
            for workload in alike.workloads:
                race.time(workload, alike.session)
            pairs = {name: (s.seconds[SIDES[0]], s.seconds[SIDES[1]]) for name, s in race.samples.items()}
            gains.append(abs(statistics.geometric_mean(pairs, SIDES[1]).speedup - 1))
    return Noise(
        gate_version=GATE_VERSION,
        settings=_settings(target),
        floor=max(statistics.SMALLEST, statistics.quantile(gains, 0.95)),
        trials=trials,
        how=f"`{alike.file.definition.description}` at {', '.join(w.name for w in alike.workloads)} float32, "
        "two fresh workers each time",
    )


def outdated(noise: Noise | None, target: Target) -> str | None:
    """Why a floor has to be measured again on this machine, in a few words; None: it holds."""
    if noise is None:
        return "it was never measured"
    if noise.gate_version != GATE_VERSION:
        return "the gate times otherwise now"
    now = _settings(target)
    changed = [name for name, value in now.items() if name in noise.settings and noise.settings[name] != value]
    return f"{', '.join(changed)} of the GPU changed" if changed else None


class TwoAlike:
    """Two workers, or more, that run the same plain operator."""

    def __init__(self, target: Target, names: Sequence[str]) -> None:
        self.device = "cuda" if target.kind == "gpu" else "cpu"
        self.file = definition_file.load(_DEFINITION)
        self.workloads = tuple(w for w in self.file.definition.workloads if w.name in SIZES[self.device])
        self._names = names

    def __enter__(self) -> TwoAlike:
        with ExitStack() as stack:
            host = stack.enter_context(WorkerHost(self.device))
            arenas = session.allocate(self.file, (), self.workloads, self._names, self.device)
            sources = {name: Source((self.file.path, REFERENCE)) for name in self._names}
            self._bench = stack.enter_context(Bench(self.file, host, arenas, sources, self.device))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def restart(self) -> None:
        """Go on in fresh processes: two of the same code can differ for as long as they live."""
        self._bench.start()

    def session(self, workload: Workload) -> Session:
        """A session of all of them; `restart` comes first."""
        return self._bench.session(workload, secrets.randbits(62))


def _settings(target: Target) -> dict[str, int | float]:
    found = machine.gpu() if target.kind == "gpu" else None
    return Gauge(found.uuid).settings() if found else {}
