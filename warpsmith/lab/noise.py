"""The A/A floor: how much faster than itself a kernel looks on this machine, by chance."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from warpsmith.core.hardware import Noise, Target
from warpsmith.lab import definition_file, session, statistics, timing
from warpsmith.lab.session import Session
from warpsmith.lab.side import Limits, WorkerHost
from warpsmith.lab.timing import Budget, Samples

SIDES = ("first", "second")
"""Two workers with the same code."""

TRIALS = 6
"""A/A comparisons; each takes the same steps as the timing of one judgement."""

SMALLEST = 0.002
"""No floor below it is believed: so few trials cannot show one."""

_DEFINITION = Path(__file__).parent / "aa" / "definition.py"


def measure(target: Target, tell: Callable[[str], None] = lambda _: None, trials: int = TRIALS) -> Noise:
    """Compare an operator with itself and see how far from 1 the geometric means fall.

    Raises:
        MachineFailed: a worker fails.
    """
    device = "cuda" if target.kind == "gpu" else "cpu"
    file = definition_file.load(_DEFINITION)
    workloads = file.definition.workloads
    gains = []
    with ExitStack() as stack:
        host = stack.enter_context(WorkerHost(device))
        arenas = session.allocate(file, workloads, SIDES, device)
        stack.callback(arenas.close)
        sides = {name: host.side(name, Limits()) for name in SIDES}
        for name, side in sides.items():
            stack.callback(side.close)
            side.load(file.definition, (file.path, "reference"), [arenas.inputs, arenas.outputs[name]], device)
            side.answer("load")
        for trial in range(trials):
            tell(f"A/A comparison {trial + 1} of {trials}")
            pairs = {}
            for workload in workloads:
                samples = Samples()
                one = Session(file, workload, arenas, sides, secrets.randbits(62), device)
                timing.run(one, samples, Budget.of(device))
                pairs[workload.name] = (samples.seconds[SIDES[0]], samples.seconds[SIDES[1]])
            gains.append(abs(statistics.geometric_mean(pairs, SIDES[1]).speedup - 1))
    return Noise(
        floor=max(SMALLEST, statistics.quantile(gains, 0.95)),
        trials=trials,
        how=f"`{file.definition.description}` at {', '.join(w.name for w in workloads)} float32, two workers",
    )
