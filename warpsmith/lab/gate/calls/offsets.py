"""Offsets: a call whose largest tensor is beyond the reach of 32-bit offsets, graded by sampled rows."""

from __future__ import annotations

import contextlib
import gc
import random
import time
from collections.abc import Iterator, Sequence
from math import prod

from filelock import FileLock, Timeout

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.errors import BadDefinition, CompanionFailed
from warpsmith.lab.grading import free_axes, rows, shapes
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.timing.arenas import Arenas, bytes_per_call, lay_out
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.sides import SideSource, load_side
from warpsmith.lab.workers.arena import Arena
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.user_state import user_state_folder

_NAME = "64-bit offsets"
_DRAW_BYTES = 8


def check_offsets(
    file: DefinitionFile, host: WorkerHost, source: SideSource, timed: Sequence[Workload], device: str
) -> Check:
    """Grade sampled rows of a call in which a tensor has more than 2^32 elements, or 2^31 where memory has no room
    for that.

    Args:
        file: the definition.
        host: supplies the version's process.
        source: the version.
        timed: workloads that it was timed at, one of which gets more rows.
        device: `cpu` or `cuda`.

    Returns:
        What was checked, or why nothing was.

    Raises:
        SideFailed: a row is wrong, or the call fails.
    """
    if device == "cpu":
        return Check(name=_NAME, ran=False, how="a call beyond 2^31 elements takes too long on a CPU")
    axis = rows.find_row_axis(file)
    axis = axis if axis in free_axes.variable_axes(file) else None
    if axis is None:
        reason = "the reference is not computed row by row, or callers promise in words what they pass"
        return Check(name=_NAME, ran=False, how=reason)
    largest = max(timed, key=file.definition.elements)
    if file.inputs is not None and _draw_seconds(file, largest, axis, device) > input_rules.OFFSET_DRAW_SECONDS:
        return Check(
            name=_NAME, ran=False, how="the definition takes too long to draw inputs beyond 2^31 elements"
        )
    beyond = [
        shapes.lengthen_beyond(file, random.SystemRandom().choice(list(timed)), axis, limit)
        for limit in input_rules.OFFSET_LIMITS
    ]
    if not all(map(file.definition.has_shapes, beyond)):
        return Check(name=_NAME, ran=False, how="a promise of callers keeps calls shorter")
    with _exclusive_memory():
        return _check_first_that_fits(file, host, source, beyond, axis, device)


def _check_first_that_fits(
    file: DefinitionFile, host: WorkerHost, source: SideSource, beyond: Sequence[Workload], axis: str, device: str
) -> Check:
    import torch

    least = min(_bytes_needed(file, workload) for workload in beyond)
    for workload in beyond:
        if (needed := _bytes_needed(file, workload)) <= _wait_for_memory(least):
            try:
                _grade_rows(file, host, source, workload, axis, device)
            except (CompanionFailed, torch.OutOfMemoryError):  # no room for the grader: a smaller call may fit
                continue
            except BadDefinition as error:
                return Check(
                    name=_NAME, ran=False, how=f"inputs {workload.name} elements cannot be drawn: {error}"[:300]
                )
            except SideFailed as failure:
                if failure.status is Status.OUT_OF_MEMORY:  # It says so, and computes nothing wrong.
                    return Check(
                        name=_NAME, ran=False, how=f"it has no memory for a call {workload.name} elements"
                    )
                message = f"a call {workload.name} elements: {failure.message}"
                raise SideFailed(failure.status, message, failure.side) from failure
            return Check(name=_NAME, ran=True, how=f"sampled rows of a call {workload.name} elements")
    return Check(name=_NAME, ran=False, how=f"a call {workload.name} elements takes {needed >> 30} GiB of memory")


def _bytes_needed(file: DefinitionFile, workload: Workload) -> int:
    """Return the bytes of a call's tensors, twice each: shared, and as drawn or returned; and those of a draw."""
    definition = file.definition
    drawn = [
        prod(definition.shape(spec, workload))
        for spec in definition.tensor_inputs.values()
        if is_floating(definition.dtype(spec, workload))
    ]
    return 2 * bytes_per_call(file, workload) + _DRAW_BYTES * max(drawn, default=0)


@contextlib.contextmanager
def _exclusive_memory() -> Iterator[None]:
    """Hold this user's lock on long calls of a GPU, of which two together would leave it without memory."""
    import torch

    folder = user_state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
    lock = FileLock(folder / f"long-calls-{gpu}.lock", timeout=2 * input_rules.OFFSET_WAIT_SECONDS)
    with contextlib.suppress(Timeout):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _wait_for_memory(needed: int) -> float:
    """Return how many bytes of the GPU a call may take; wait for those that others hold if all would do."""
    import torch

    gc.collect()  # The frames of an error may hold the tensors of an earlier call.
    # cuBLAS keeps a workspace for good, which may lie in a block of many GiB.
    getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)()
    torch.cuda.empty_cache()  # Memory that this process only keeps counts as taken.
    until = time.monotonic() + input_rules.OFFSET_WAIT_SECONDS
    while True:
        free, total = (share * input_rules.OFFSET_MEMORY_SHARE for share in torch.cuda.mem_get_info())
        if free >= needed or total < needed or time.monotonic() > until:
            return free
        time.sleep(random.uniform(0.5, 1.5))


def _draw_seconds(file: DefinitionFile, workload: Workload, axis: str, device: str) -> float:
    """Guess from a draw at a workload how many seconds a definition takes to draw inputs beyond 2^31 elements."""
    import torch

    inputs = Inputs(file, workload, random.SystemRandom().getrandbits(62), device)
    inputs.draw()
    torch.cuda.synchronize()
    started = time.monotonic()
    inputs.draw()
    torch.cuda.synchronize()
    beyond = shapes.lengthen_beyond(file, workload, axis, min(input_rules.OFFSET_LIMITS))
    return (time.monotonic() - started) * beyond.axes[axis] / max(workload.axes[axis], 1)


def _grade_rows(
    file: DefinitionFile, host: WorkerHost, source: SideSource, workload: Workload, axis: str, device: str
) -> None:
    """Call the version once in a process of its own.

    Raises:
        SideFailed: a row is wrong, or the call fails.
    """
    inputs, outputs, _ = lay_out(file, workload, 1, "contiguous")
    arenas = Arenas(Arena(inputs.room, device), {SOLUTION: Arena(outputs.room, device)})
    side = host.start_side(SOLUTION, source.limits, trusted=False)
    with contextlib.ExitStack() as stack:
        stack.callback(arenas.close)
        stack.callback(side.close)
        load_side(side, file, source, arenas, device)
        seed = random.SystemRandom().getrandbits(62)
        session = Session(file, workload, arenas, {SOLUTION: side}, seed, device, count=1)
        session.fill_inputs(quick=True)
        grade = session.call_and_grade_rows(
            SOLUTION, axis, rows.sample_rows(workload.axes[axis], file.definition.elements(workload))
        )
        if grade.status is not Status.PASSED:
            raise SideFailed(grade.status, f"{grade.detail} (sampled rows)", SOLUTION)
