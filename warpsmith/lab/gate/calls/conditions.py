"""Other conditions: a version that gains is called in one more process, whose environment and arguments name
benchmarks and profilers, then a launcher alone, and which shares its only core with a busy process; on a CPU in
another one from several threads at once."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.lab.grading import free_axes
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.scalar_values import vary_scalars
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, Arenas, allocate_arenas
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.sides import SideSource, load_side
from warpsmith.lab.timing.slots import SHARED
from warpsmith.lab.workers import process
from warpsmith.lab.workers.arena import CONTIGUOUS
from warpsmith.lab.workers.side import Side, SideFailed
from warpsmith.lab.workers.worker_host import STEADY_MEMORY, WorkerHost
from warpsmith.languages.source_variables import read_variable_names

_WORKER_VARIABLES = ("OMP_WAIT_POLICY", "PYTHONDONTWRITEBYTECODE", *STEADY_MEMORY)
_SALT = {
    "BENCHMARK": "1",
    "KERNEL_BENCH": "1",
    "PROFILE": "1",
    "PYTEST_CURRENT_TEST": "test_kernels.py::test_speed (call)",
    "CI": "true",
    "OMP_NUM_THREADS": "2",
    "MKL_NUM_THREADS": "2",
}
"""Variables that benchmarks, tests and users set."""

_LAUNCHERS: tuple[dict[str, str], ...] = (
    {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"},
    {"SLURM_NTASKS": "8", "SLURM_PROCID": "1", "SLURM_JOB_ID": "4711"},
    {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_RANK": "1"},
)
"""Variables that each launcher of many processes sets."""

_VALUES = ("1", "2", "8")
"""Values of variables that a version's source names, by chance."""

_BUSY = "in an environment that names benchmarks, then in one of a launcher, on one busy core"
_AT_ONCE = "from {} threads at once"
_MIXED = "each of its own size or numbers"
_ARGUMENTS = ["benchmark.py", "--profile", "--bench", "eval"]
_SPIN = "import os, sys; os.sched_setaffinity(0, [int(sys.argv[1])])\nwhile os.getppid() == int(sys.argv[2]): pass"


def check_conditions(
    file: DefinitionFile,
    host: WorkerHost,
    source: SideSource,
    workloads: Sequence[Workload],
    device: str,
    interpreted: bool = False,
    path: Path | None = None,
) -> Check:
    """Grade calls of a version in further processes under conditions that none of its earlier ones had.

    Args:
        file: the definition.
        host: supplies the processes.
        source: the version.
        workloads: workloads at which it is correct; the first gets the calls, and some others calls at once.
        device: `cpu` or `cuda`.
        interpreted: calls are interpreted, which no two threads can do at once.
        path: file of its source, whose environment variables are set.

    Raises:
        SideFailed: the version is wrong there, or leaves the core that it was given.
    """
    workload, *others = workloads
    names = read_variable_names(path) if path else ()
    clauses = [_check_on_a_busy_core(file, host, source, workload, device, names)]
    if device == "cpu" and not interpreted:
        sizes = _draw_sizes(file, others, workload)
        mixes = _draw_mixes(file, [workload, *others], sizes)
        clauses += _check_at_once(file, host, source, sizes, mixes, names)
    return Check(name="other conditions", ran=True, how="; ".join(clauses))


def _check_on_a_busy_core(
    file: DefinitionFile,
    host: WorkerHost,
    source: SideSource,
    workload: Workload,
    device: str,
    names: Collection[str],
) -> str:
    """Grade calls on one busy core, in an environment that names benchmarks and at last in one that names a
    launcher; return what was done."""
    arenas = allocate_arenas(file, [workload], [], [SOLUTION], device)
    side = host.start_side(SOLUTION, source.limits, trusted=False)
    with contextlib.ExitStack() as stack:
        stack.callback(arenas.close)
        stack.callback(side.close)
        _set_environment(side, draw_benchmark_environment(names))
        with _place_failures(_BUSY), _one_busy_core(side):
            load_side(side, file, source, arenas, device)
            seed = random.SystemRandom().getrandbits(62)
            session = Session(file, workload, arenas, {SOLUTION: side}, seed, device, count=CHECKED_SLOTS)
            for call in range(gate_rules.CONDITION_CALLS):
                if call == gate_rules.CONDITION_CALLS - 1:
                    _set_environment(side, draw_launcher_environment(names))
                _require_passed(session, lambda each: [each.call_and_grade(SOLUTION)])
    return f"{gate_rules.CONDITION_CALLS} calls at {workload.name}, {_BUSY}"


def _set_environment(side: Side, variables: Mapping[str, str | None]) -> None:
    """Set a side's environment variables, and its arguments as a benchmark or a server has them."""
    arguments = _ARGUMENTS if variables["BENCHMARK"] else ["serve.py"]
    side.ask({"do": "set_environment", "variables": dict(variables), "arguments": arguments})


def draw_benchmark_environment(names: Collection[str]) -> dict[str, str | None]:
    """Draw variables that name benchmarks and all launchers, with None for those to remove; those that a source
    names have a value by chance."""
    launchers = {name: value for launcher in _LAUNCHERS for name, value in launcher.items()}
    return {**_draw_named(names), **dict.fromkeys(_WORKER_VARIABLES), **launchers, **_SALT}


def draw_launcher_environment(names: Collection[str]) -> dict[str, str | None]:
    """Draw variables of one launcher alone, as a program in use has them, with None for those to remove."""
    others = {name for launcher in _LAUNCHERS for name in launcher} | _SALT.keys()
    return {**_draw_named(names), **dict.fromkeys(others), **random.SystemRandom().choice(_LAUNCHERS)}


def _draw_named(names: Collection[str]) -> dict[str, str]:
    """Draw values of the variables that a source names."""
    return {name: random.SystemRandom().choice(_VALUES) for name in names if name not in os.environ}


def _check_at_once(
    file: DefinitionFile,
    host: WorkerHost,
    source: SideSource,
    workloads: Mapping[int, Sequence[Workload]],
    mixes: Sequence[Sequence[Workload]],
    names: Collection[str],
) -> list[str]:
    """Grade calls from several threads at once, the first ones of a process among them, on a CPU, where a launcher
    set variables; return what was done.

    Args:
        file: the definition.
        host: supplies the process.
        source: the version.
        workloads: workloads that all of some threads call at, by their number.
        mixes: workloads of threads that each call at one of them.
        names: environment variables that its source names.

    Raises:
        SideFailed: a call is wrong, or threads that have ended left memory behind.
    """
    clauses = []
    arenas = allocate_arenas(file, [], [], [SOLUTION], "cpu", crowds=workloads, mixes=mixes)
    side = host.start_side(SOLUTION, source.limits, trusted=False)
    with contextlib.ExitStack() as stack:
        stack.callback(arenas.close)
        stack.callback(side.close)
        _set_environment(side, draw_launcher_environment(names))
        load_side(side, file, source, arenas, "cpu")
        for threads, sizes in workloads.items():
            for size in sizes:
                with _place_failures(f"{_AT_ONCE.format(threads)}, at {size.name}"):
                    _call_at_once(file, arenas, side, [size] * threads)
            names = ", ".join(size.name for size in sizes)
            clauses.append(f"{gate_rules.CONCURRENT_CALLS} times {_AT_ONCE.format(threads)}, at {names}")
        for mix in mixes:
            where = f"{_AT_ONCE.format(len(mix))}, {_MIXED}"
            with _place_failures(where):
                _call_at_once(file, arenas, side, mix)
            clauses.append(f"{gate_rules.CONCURRENT_CALLS} times {where}")
    return clauses


def _call_at_once(file: DefinitionFile, arenas: Arenas, side: Side, workloads: Sequence[Workload]) -> None:
    """Grade calls from as many threads at once as there are workloads, each at one of them; in some rounds they
    have the same weights, as callers of one model do.

    Rounds that follow each other are in the same memory, where a thread may have kept an earlier result.

    Raises:
        SideFailed: one is wrong, or threads that have ended left memory behind.
    """
    memory, chance = [], random.SystemRandom()
    rounds = (1, *[gate_rules.CONCURRENT_REPEATS] * gate_rules.CONCURRENT_CALLS)
    for layout, some in zip(chance.sample((CONTIGUOUS, SHARED), 2), (rounds[:2], rounds[2:]), strict=True):
        seed, sides = chance.getrandbits(62), {SOLUTION: side}
        session = Session(file, workloads[0], arenas, sides, seed, "cpu", layout=layout, mix=workloads)
        with _place_failures("with the same weights") if layout == SHARED else contextlib.nullcontext():
            for times in some:
                _require_passed(session, functools.partial(Session.call_at_once, name=SOLUTION, times=times))
                memory.append(process.private_bytes(side.pid))
    growth = memory[-1] - memory[1]
    if growth > gate_rules.LEAK_BYTES:
        message = f"threads that came and went grew its memory by {growth >> 20} MiB: they never free it"
        raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)


def _draw_sizes(file: DefinitionFile, others: Sequence[Workload], workload: Workload) -> dict[int, list[Workload]]:
    """Draw the workloads of calls at once, by the number of threads.

    A crowd calls at a small one, before any other call of the process; a few threads call at the usual workload
    and at others, the first of them from those that are not odd.
    """
    chance, elements, most = random.SystemRandom(), file.definition.elements, gate_rules.CONCURRENT_ELEMENTS
    fitting = [each for each in others if each != workload and 0 < elements(each) <= most]
    drawn = chance.sample(fitting, len(fitting))
    least, most = gate_rules.CROWD_ELEMENTS
    small = [each for each in (workload, *drawn) if least <= elements(each) <= most]
    some = sorted(drawn, key=lambda each: each.set == "odd")[:1] + drawn[: gate_rules.CONCURRENT_SIZES - 1]
    crowd = {gate_rules.CROWD: [max(small, key=elements)]} if small else {}  # long calls meet more often
    return {**crowd, gate_rules.CONCURRENT_THREADS: [workload, *some]}


def _draw_mixes(
    file: DefinitionFile, workloads: Sequence[Workload], sizes: Mapping[int, Sequence[Workload]]
) -> list[list[Workload]]:
    """Draw a workload for each thread of a crowd, and of a few: sizes differ as far as there are others, and
    numbers where the reference holds with those that are drawn. None where all would be the same.

    Args:
        file: the definition.
        workloads: workloads at which the version is correct.
        sizes: those that all of some threads call at, by their number.
    """
    chance, elements, mixes = random.SystemRandom(), file.definition.elements, []
    least, most = gate_rules.CROWD_ELEMENTS
    small = {_identify(each): each for each in workloads if least <= elements(each) <= most}
    pools = {
        gate_rules.CROWD: sorted(small.values(), key=elements)[-input_rules.MIXED_SIZES :],
        gate_rules.CONCURRENT_THREADS: sizes[gate_rules.CONCURRENT_THREADS],
    }
    for threads, pool in pools.items():
        mix = [_vary_numbers(file, pool[number % len(pool)]) for number in range(threads)] if pool else []
        if len(set(map(_identify, mix))) > 1:
            mixes.append(chance.sample(mix, len(mix)))
    return mixes


def _identify(workload: Workload) -> str:
    """Return the sizes, type and numbers of a workload."""
    return f"{workload.axes} {workload.dtype} {workload.scalars}"


def _vary_numbers(file: DefinitionFile, workload: Workload) -> Workload:
    """Return the workload with other numbers, if the reference holds with them."""
    varied = vary_scalars(file, workload, random.SystemRandom())
    is_other = varied.scalars != workload.scalars
    return varied if is_other and free_axes.reference_holds(file, varied) else workload


@contextlib.contextmanager
def _place_failures(where: str) -> Iterator[None]:
    """Say in a failure under which conditions it came up."""
    try:
        yield
    except SideFailed as failure:
        raise SideFailed(failure.status, f"{where}: {failure.message}", failure.side) from failure


def _require_passed(session: Session, grade_calls: Callable[[Session], Sequence[Grade]]) -> None:
    """Grade calls on new inputs, again after a near miss; raise SideFailed for a wrong one."""
    for _ in range(gate_rules.DRAW_TRIES):
        session.fill_inputs()
        grades = grade_calls(session)
        if not any(grade.near_miss for grade in grades):
            break
    for grade in grades:
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
    process.set_cores(side.pid, sorted(os.sched_getaffinity(0)))
