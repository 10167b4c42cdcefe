"""Other conditions: a version that gains is called in one more process, whose environment and arguments name
benchmarks and profilers, and which shares its only core with a busy process."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, Arenas, allocate_arenas
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.sides import SideSource, load_side
from warpsmith.lab.workers import process
from warpsmith.lab.workers.side import STEADY_MEMORY, Side, SideFailed, WorkerHost

_WORKER_VARIABLES = ("OMP_WAIT_POLICY", "PYTHONDONTWRITEBYTECODE", *STEADY_MEMORY)
_SALT = {
    "BENCHMARK": "1",
    "KERNEL_BENCH": "1",
    "PROFILE": "1",
    "PYTEST_CURRENT_TEST": "test_kernels.py::test_speed (call)",
}
_ARGUMENTS = ["benchmark.py", "--profile", "--bench", "eval"]
_SPIN = "import os, sys; os.sched_setaffinity(0, [int(sys.argv[1])])\nwhile os.getppid() == int(sys.argv[2]): pass"


def check_conditions(
    file: DefinitionFile, host: WorkerHost, source: SideSource, workload: Workload, device: str
) -> Check:
    """Grade calls of a version in another process under conditions that none of its earlier ones had.

    Args:
        file: the definition.
        host: supplies the process.
        source: the version.
        workload: workload of the calls.
        device: `cpu` or `cuda`.

    Raises:
        SideFailed: the version is wrong there, or leaves the core that it was given.
    """
    arenas = allocate_arenas(file, [workload], [], [SOLUTION], device)
    side = host.start_side(SOLUTION, source.limits, trusted=False)
    where = "in an environment that names benchmarks, on one busy core"
    with contextlib.ExitStack() as stack:
        stack.callback(arenas.close)
        stack.callback(side.close)
        try:
            _grade_calls(file, side, source, workload, arenas, device)
        except SideFailed as failure:
            raise SideFailed(failure.status, f"{where}: {failure.message}", failure.side) from failure
    return Check(
        name="other conditions", ran=True, how=f"{gate_rules.CONDITION_CALLS} calls at {workload.name}, {where}"
    )


def _grade_calls(
    file: DefinitionFile, side: Side, source: SideSource, workload: Workload, arenas: Arenas, device: str
) -> None:
    variables = dict.fromkeys(_WORKER_VARIABLES) | _SALT
    side.ask({"do": "set_environment", "variables": variables, "arguments": _ARGUMENTS})
    with _one_busy_core(side):
        load_side(side, file, source, arenas, device)
        seed = random.SystemRandom().getrandbits(62)
        session = Session(file, workload, arenas, {SOLUTION: side}, seed, device, count=CHECKED_SLOTS)
        for _ in range(gate_rules.CONDITION_CALLS):
            session.fill_inputs()
            grade = session.call_and_grade(SOLUTION)
            if grade.status is not Status.PASSED:
                raise SideFailed(grade.status, grade.detail, SOLUTION)


@contextlib.contextmanager
def _one_busy_core(side: Side) -> Iterator[None]:
    """Keep a side on one core that another process keeps busy.

    Raises:
        SideFailed: the side moved to other cores.
    """
    core = random.SystemRandom().choice(sorted(os.sched_getaffinity(0)))
    process.set_cores(side.pid, [core])
    spin = subprocess.Popen([sys.executable, "-S", "-c", _SPIN, str(core), str(os.getpid())])
    try:
        yield
        if process.read_cores(side.pid) != {core}:
            raise SideFailed(Status.LEFT_BEHIND, "it moved to other cores than the one it was given", SOLUTION)
    finally:
        spin.kill()
        spin.wait()
