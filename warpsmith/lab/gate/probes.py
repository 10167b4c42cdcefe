"""Probes: each call of a solution must be computed from its own inputs, by itself, and leave nothing behind.

Each probe is a plain use that a caller may make: an input edited in place, the same values at another address,
weights that a training step updates. A result that was kept from an earlier call shows as wrong, or as too fast.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import psutil

from warpsmith.core import gate_rules
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.text import quote_foreign
from warpsmith.core.trust import Check
from warpsmith.lab.gate import repeats
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator.tensor_bytes import equal_bytes
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers import audit, process
from warpsmith.lab.workers.side import Side, SideFailed

if TYPE_CHECKING:
    import torch

_IDLE_MS = gate_rules.IDLE_SECONDS * 1e3

_EVEN = 0.5
"""Chance of each of two kinds of edits."""

Tensors = dict[str, "torch.Tensor"]
"""Inputs by name."""

ProbeSessionOpener = Callable[[Workload], Session]
"""Opens a session with two slots for a workload."""


class Probes:
    """The probes of one judgement, in order; the first that fails raises SideFailed."""

    def __init__(
        self,
        definition: Definition,
        open_session: ProbeSessionOpener,
        checked: list[Workload],
        timed: list[Workload],
        *,
        device: str,
        interpreted: bool,
    ) -> None:
        """Choose the workloads.

        Args:
            definition: the operator.
            open_session: opens a session.
            checked: workloads at which correctness was judged.
            timed: workloads that will be timed; empty if nothing is timed.
            device: `cpu` or `cuda`.
            interpreted: True if an interpreter runs the solution, whose times mean nothing.
        """
        self._open = open_session
        self._timed, self._device, self._interpreted = timed, device, interpreted
        most = gate_rules.PROBE_ELEMENTS_INTERPRETED if interpreted else gate_rules.PROBE_ELEMENTS
        self._definition = definition
        self.workload = max(
            checked, key=lambda w: (interpreted or self._has_enough_outputs(w), self._size_up_to(w, most))
        )
        """Workload of all probes except those that time calls."""
        enough = [workload for workload in checked if self._has_enough_outputs(workload)]
        self._leak_workload = min(enough or checked, key=self._nonzero_size) if interpreted else self.workload
        """Workload at which results are held and leftovers counted; small for an interpreter, as it takes many
        calls."""
        self.notes: list[str] = []
        """Findings that deserve a look."""
        self.checks: list[Check] = []
        """Probes that ran."""

    def run(self) -> None:
        """Run all probes.

        Raises:
            SideFailed: a result was kept, a library computes, or something was left behind.
        """
        session = self._open(self.workload)
        self._edit_in_place(session)
        self._exchange_addresses(session)
        self._reuse_memory(session)
        self._run_training_loop(session, gate_rules.TRAINING_STEPS)
        weights = ", ".join(self._weights)
        changed = f"{weights} updated in place" if weights else "no input is a weight"
        self._add_check("training loop", f"{gate_rules.TRAINING_STEPS} steps of two calls, {changed}")
        self._suppress_kernels(session)
        self._record_library_calls(session)
        self._bound_memory(session)
        if self._leak_workload is not self.workload:
            session = self._open(self._leak_workload)
        self._hold_results(session)
        self._count_leftovers(session)
        self._compare_state(session)
        self._edit_at_timed_sizes()
        self._time_repeats()

    @property
    def _weights(self) -> tuple[str, ...]:
        return tuple(name for name, spec in self._definition.tensor_inputs.items() if spec.role == "weight")

    def _add_check(self, name: str, description: str) -> None:
        self.checks.append(Check(name=name, ran=True, how=description))

    def _edit_in_place(self, session: Session) -> None:
        """Change single elements of the inputs in place: same address, same object, same version counter.

        The new value exceeds the largest and may rule a row, where an honest sum's rounding sometimes misses its
        bound. A kept result misses it by far, and at each edit. Each edit undoes the one before. If they piled up,
        values would become so large that a float32 sum loses the rest of a row term by term.
        """
        session.fill_inputs()
        _require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before any edit")
        drawn = session.drawn[0]
        for name, tensor in drawn.items():
            for _ in range(gate_rules.EDITS if tensor.numel() else 0):
                _call_after_edit(session, drawn, name)
        self._add_check("edits in place", f"{gate_rules.EDITS} of each input at {session.workload.name}")

    def _edit_at_timed_sizes(self) -> None:
        """Change one element in place at timed sizes that no candidate can predict, and the weights at one of
        them."""
        most, chance = gate_rules.EDITED_ELEMENTS[self._device], random.SystemRandom()
        fitting = [w for w in self._timed if 0 < self._definition.elements(w) <= most and w is not self.workload]
        chosen = [] if self._interpreted else chance.sample(fitting, min(len(fitting), gate_rules.EDITED_SIZES))
        for workload in chosen:
            session = self._open(workload)
            session.fill_inputs()
            _require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before any edit")
            drawn = session.drawn[0]
            _call_after_edit(session, drawn, chance.choice([name for name, t in drawn.items() if t.numel()]))
            if workload is chosen[-1]:
                if self._weights:
                    self._run_training_loop(session, gate_rules.TIMED_TRAINING_STEPS)
                    self._add_check("training loop at a timed size", f"at {workload.name}")
                self._hold_at_timed_size(session)
        if chosen:
            self._add_check("edits at timed sizes", f"one at {', '.join(workload.name for workload in chosen)}")

    def _hold_at_timed_size(self, session: Session) -> None:
        """Call many times on the same inputs of a timed size: memory must not grow, and an edit must show."""
        session.fill_inputs()
        session.call_side(SOLUTION, 1)
        memory = self._memory_in_use(session)
        calls = session.call_again(SOLUTION, 1, gate_rules.HELD_CALLS[1])
        self._require_no_growth(session, memory, calls)
        self._edit_after_calls(session)

    def _require_no_growth(self, session: Session, memory: int, calls: int) -> None:
        growth = self._memory_in_use(session) - memory
        if growth > gate_rules.LEAK_BYTES:
            message = f"{calls} calls on the same inputs grew its memory by {growth >> 20} MiB: they never free it"
            raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)

    def _exchange_addresses(self, session: Session) -> None:
        """Exchange the values of two slots, so that each set of values lies at the other's address."""
        session.fill_inputs()
        first, second = session.drawn
        for slot in (0, 1):
            grade = session.call_and_grade(SOLUTION, slot)
            _require_pass(grade, Status.INCORRECT_NUMERICAL, "on fresh inputs")
        session.write_inputs(0, second)
        session.write_inputs(1, first)
        for slot in (0, 1):
            grade = session.call_and_grade(SOLUTION, slot)
            _require_pass(grade, Status.CACHED_RESULT, "after two inputs exchanged their places")
        self._add_check("exchanged places", f"at {session.workload.name}")

    def _hold_results(self, session: Session) -> None:
        """Check that the results of a call change neither at the next call nor at any of the hundreds after it."""
        session.fill_inputs()
        session.call_side(SOLUTION, 0)
        before = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
        session.call_side(SOLUTION, 1, keep=True)
        second_grade = session.grade_last_call(SOLUTION, 1, session.truth(1))
        _require_pass(second_grade, Status.INCORRECT_NUMERICAL, "on a second call")
        memory = self._memory_in_use(session)
        files, ended = _count_leftovers_of(session.sides[SOLUTION].pid)
        calls = 1 + session.call_again(SOLUTION, 1, random.SystemRandom().randint(*gate_rules.HELD_CALLS))
        new_files, new_ended = _count_leftovers_of(session.sides[SOLUTION].pid)
        if new_files - files > gate_rules.LEFT_FILES or new_ended - ended > gate_rules.LEFT_FILES:
            message = (
                f"{calls} calls left {new_files - files} files open and {new_ended - ended} processes not reaped"
            )
            raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)
        self._require_no_growth(session, memory, calls)
        for name, tensor in session.fetch_outputs(SOLUTION, 0).items():
            if not equal_bytes(tensor, before[name]):
                raise SideFailed(
                    Status.CACHED_RESULT,
                    f"{name} of an earlier call changed within the next {calls}: "
                    "calls share the memory of their results",
                    SOLUTION,
                )
        self._edit_after_calls(session)
        self._add_check("results held", f"over {calls} calls at {session.workload.name}")

    def _edit_after_calls(self, session: Session) -> None:
        """Change an element after hundreds of calls on the same inputs: a result may be kept only from then on."""
        drawn = session.drawn[1]
        session.write_inputs(0, drawn)
        _require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "after many calls")
        for name in [name for name, tensor in drawn.items() if tensor.numel()]:
            _call_after_edit(session, drawn, name)

    def _reuse_memory(self, session: Session) -> None:
        """Call with an earlier result in the memory of the outputs, whether passed or allocated."""
        session.fill_inputs()
        session.call_side(SOLUTION)
        earlier = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
        for _ in range(gate_rules.DRAW_TRIES):  # an earlier result is no near miss
            session.fill_inputs()
            session.leave_results(0, earlier)
            session.call_side(SOLUTION, fresh="earlier")
            grade = session.grade_last_call(SOLUTION, 0, session.truth(0))
            if not grade.near_miss:
                break
        _require_pass(grade, Status.CACHED_RESULT, "where its memory held an earlier result")
        self._add_check("earlier results in memory", f"at {session.workload.name}")

    def _run_training_loop(self, session: Session, steps: int) -> None:
        """Run training steps: new activations twice per step, and weights updated in place after each step."""
        weights = self._weights
        session.fill_inputs()
        current = {name: session.drawn[0][name] for name in weights}
        for step in range(steps):
            for _ in ("forward", "again"):
                for _ in range(gate_rules.DRAW_TRIES):  # stale weights are no near miss
                    _write_combined(session, lambda drawn: drawn | current)
                    grade = session.call_and_grade(SOLUTION)
                    if not grade.near_miss:
                        break
                _require_pass(grade, Status.CACHED_RESULT, f"in step {step + 1} of a training loop")
            # Decay alone keeps the signs, order and proportions that a definition's own draw may promise.
            directions = session.inputs.draw() if session.file.inputs is None else current
            current.update({name: _update_weight(current[name], directions[name]) for name in weights})

    def _suppress_kernels(self, session: Session) -> None:
        """Call with the solution's own kernel launches suppressed; the result must be wrong."""
        session.fill_inputs()
        share = 0.0
        with contextlib.suppress(SideFailed):  # without its kernels it may return anything, or fail
            if not session.call_without_launches(SOLUTION):
                return  # a language whose code is linked only for itself
            share = correctness.right_share(session.truth(0), session.fetch_outputs(SOLUTION, 0))
        if share > gate_rules.OWN_SHARE:
            raise SideFailed(
                Status.LIBRARY_CALL,
                f"{share:.0%} of the result is right although none of its own kernels was launched: "
                "something else does the work",
                SOLUTION,
            )
        self._add_check("own kernels", f"{share:.0%} is right without them at {session.workload.name}")

    def _record_library_calls(self, session: Session) -> None:
        """Count the elements that PyTorch's own operators compute during a call."""
        session.fill_inputs()
        reported = session.ask(SOLUTION, {"do": "audit", "slot": 0}).get("operators")
        if not isinstance(reported, dict) or not all(isinstance(count, int) for count in reported.values()):
            message = "the worker does not report which operators were called"
            raise SideFailed(Status.RUNTIME_ERROR, message, SOLUTION)
        operators: dict[str, int] = reported
        elements = sum(tensor.numel() for tensor in session.drawn[0].values())
        computing = audit.computing_operators(operators)
        if sum(computing.values()) > gate_rules.LIBRARY_SHARE * max(elements, 1):
            name, count = next(iter(computing.items()))
            raise SideFailed(
                Status.LIBRARY_CALL,
                f"PyTorch's {quote_foreign(name)} computes {count} elements of this call: a library does the work",
                SOLUTION,
            )
        if computing:
            self.notes.append(f"PyTorch computes a little: {quote_foreign(', '.join(computing))}")
        self._add_check("library calls", f"{len(operators)} operators heard at {session.workload.name}")

    def _count_leftovers(self, session: Session) -> None:
        """Count processes and threads that calls leave running."""
        side = session.sides[SOLUTION]
        session.fill_inputs()
        session.call_side(SOLUTION)
        threads = _count_threads(side.pid)
        for _ in range(gate_rules.LEAK_CALLS):
            session.call_side(SOLUTION)
        new_threads = _count_threads(side.pid) - threads
        processes = side.descendants()
        if processes:
            raise SideFailed(Status.LEFT_BEHIND, f"its calls left {len(processes)} processes running", SOLUTION)
        if new_threads >= gate_rules.LEAK_THREADS:
            message = f"{gate_rules.LEAK_CALLS} calls left {new_threads} threads running"
            raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)
        self._add_check("nothing left behind", f"processes and threads after {gate_rules.LEAK_CALLS} calls")

    def _compare_state(self, session: Session) -> None:
        """Compare modes, settings and random numbers of the process with those before the version was loaded."""
        require_same_state(session.sides[SOLUTION])
        self._add_check("state of the process", "modes, settings and random numbers are as before it was loaded")

    def _time_repeats(self) -> None:
        """Time calls on the inputs of the call before: neither results nor too many weights may be kept."""
        if not self._timed or self._interpreted:
            reason = "the solution is interpreted" if self._interpreted else "nothing is timed"
            self.checks.append(Check(name="kept results by time", ran=False, how=reason))
            return
        most, chance = gate_rules.TIMED_PROBE_ELEMENTS[self._device], random.SystemRandom()
        largest = max(self._timed, key=lambda workload: self._size_up_to(workload, most))
        others = [w for w in self._timed if w is not largest and 0 < self._definition.elements(w) <= most]
        chosen = [largest, *chance.sample(others, min(len(others), gate_rules.REPEATED_SIZES - 1))]
        inputs, weights = tuple(self._definition.tensor_inputs), self._weights
        texts = []
        for workload in chosen:
            session = self._open(workload)
            share = repeats.repeat_time_share(session, same=inputs, unchanged=weights)
            if share < gate_rules.KEPT_SHARE:
                raise SideFailed(
                    Status.CACHED_RESULT,
                    f"a call on the inputs of the call before takes {share:.0%} of a fresh one's time, "
                    "the fastest of each: its result is kept",
                    SOLUTION,
                )
            texts.append(f"a repeated call takes {share:.0%} of a fresh one at {workload.name}")
            if workload is largest:
                self._look_for_weight_cache(session)
        self._add_check("kept results by time", "; ".join(texts))

    def _look_for_weight_cache(self, session: Session) -> None:
        if not self._weights:
            return
        if repeats.repeat_time_share(session, same=self._weights) > gate_rules.KEPT_SHARE:
            self._add_check("weight cache", "none: known weights save no time")
            return
        self.notes.append("it keeps work done on weights: right after updates in place, and bounded")
        self._add_check("weight cache", "one is in use: it follows updates in place and is bounded")

    def _bound_memory(self, session: Session) -> None:
        """Check that new weights do not cost memory that is never freed."""
        size = sum(session.drawn[0][name].nbytes for name in self._weights)
        if not size:
            return
        session.fill_inputs()
        session.call_side(SOLUTION)
        before = self._memory_in_use(session)
        least, most = gate_rules.CHANGED_WEIGHTS
        most = least if self._interpreted else most
        changes = min(most, max(least, 4 * gate_rules.LEAK_BYTES // size))
        for _ in range(changes):
            session.fill_inputs(quick=True)
            session.call_side(SOLUTION)
        growth = self._memory_in_use(session) - before
        if growth > changes // 2 * size + gate_rules.LEAK_BYTES:
            raise SideFailed(
                Status.LEFT_BEHIND,
                f"{changes} different weights grew its memory by {growth >> 20} MiB: "
                "its weight cache has no bound",
                SOLUTION,
            )
        self._add_check("bounded memory", f"{changes} different weights")

    def _size_up_to(self, workload: Workload, most: int) -> int:
        """Return the elements of a workload, negated above `most`, so that the largest quick enough is the
        maximum."""
        size = self._definition.elements(workload)
        return size if size <= most else -size

    def _has_enough_outputs(self, workload: Workload) -> bool:
        """Return True if the outputs of a workload have `gate_rules.PROBE_OUTPUTS` elements together."""
        shapes = (self._definition.shape(spec, workload) for spec in self._definition.outputs.values())
        return sum(map(math.prod, shapes)) >= gate_rules.PROBE_OUTPUTS

    def _nonzero_size(self, workload: Workload) -> float:
        """Return the elements of a workload, and infinity for none, since an empty one may launch nothing."""
        return self._definition.elements(workload) or float("inf")

    def _memory_in_use(self, session: Session) -> int:
        """Return the bytes that the solution's process, or the GPU, has in use."""
        if session.device == "cpu":
            return int(psutil.Process(session.sides[SOLUTION].pid).memory_info().rss)
        import torch

        free, total = torch.cuda.mem_get_info()
        return int(total - free)


def require_same_state(side: Side) -> None:
    """Ask a version's process what its calls left changed.

    Raises:
        SideFailed: something is not as it was before the version was loaded.
    """
    try:
        changes = side.ask({"do": "compare_state"}).get("changes")
    finally:
        side.pause()
    if not isinstance(changes, list):
        raise SideFailed(Status.RUNTIME_ERROR, "the worker does not report the state of its process", SOLUTION)
    if changes:
        message = f"its calls leave changed: {quote_foreign('; '.join(map(str, changes)))}"
        raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)


def require_few_leftovers(side: Side) -> None:
    """Check what a version's process has left running after it was timed.

    Raises:
        SideFailed: processes, or far more threads than a machine has cores.
    """
    if processes := side.descendants():
        raise SideFailed(Status.LEFT_BEHIND, f"its calls left {len(processes)} processes running", SOLUTION)
    threads, per_core, more = _count_threads(side.pid), *gate_rules.THREADS_AFTER_TIMING
    if threads > per_core * (os.cpu_count() or 1) + more:
        raise SideFailed(Status.LEFT_BEHIND, f"{threads} threads run after its calls were timed", SOLUTION)
    side.resume()
    time.sleep(gate_rules.IDLE_SECONDS / 2)  # what its last call has yet to clear up
    before = process.core_seconds(side.pid)
    time.sleep(gate_rules.IDLE_SECONDS)
    busy = process.core_seconds(side.pid) - before
    side.pause()
    if busy > gate_rules.IDLE_SHARE * gate_rules.IDLE_SECONDS:
        message = f"its process keeps a core busy while nobody calls it: {busy * 1e3:.0f} ms of {_IDLE_MS:.0f}"
        raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)


def _call_after_edit(session: Session, drawn: Tensors, name: str) -> None:
    """Edit an element of an input, again after a near miss, and require that the result follows."""
    for _ in range(gate_rules.DRAW_TRIES):
        _write_edit(session, drawn, name)
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    _require_pass(grade, Status.CACHED_RESULT, f"after an edit of {name} in place")


def _require_pass(grade: Grade, status: Status, when: str) -> None:
    if grade.status is not Status.PASSED:
        raise SideFailed(status, f"{grade.detail} ({when})", SOLUTION)


def _write_edit(session: Session, before: Tensors, name: str) -> None:
    """Write `before` into slot 0 with one element of one input changed.

    A definition with its own generator may promise a range. There the new value is one of those that it draws.
    """
    spec = session.file.definition.tensor_inputs[name]
    within = session.file.inputs is not None or spec.distribution.startswith(("offsets", "distinct"))
    _write_combined(session, lambda drawn: {**before, name: _edit(before[name], drawn[name], within=within)})


def _write_combined(session: Session, combine: Callable[[Tensors], Tensors]) -> None:
    """Write a combination of a new draw and earlier inputs into slot 0.

    A definition with its own generator may promise that no choice depends on rounding, but only for whole draws.
    Its combined draws are retried until the reference's own sums agree and no choice depends on rounding. After
    `gate_rules.DRAW_TRIES` of them, a whole fresh draw is used.
    """
    own_generator = session.file.inputs is not None
    for _ in range(gate_rules.DRAW_TRIES if own_generator else 1):
        session.write_inputs(0, combine(session.inputs.draw()))
        if not own_generator:
            return
        if session.grade_reference().status is Status.PASSED and session.choices_are_stable():
            return
    session.write_inputs(0, session.inputs.draw())


def _edit(tensor: torch.Tensor, fresh: torch.Tensor, *, within: bool) -> torch.Tensor:
    """Return a copy with one element changed, or two exchanged.

    By chance the element becomes larger than the largest, so that sums and maxima depend on it, or any other one
    of the fresh values, so that a checksum of extremes does not see it. With `within` it becomes the largest of
    the fresh values, or the smallest if it is the largest already. Integers, whose values may have to fit each
    other, are exchanged or replaced by the fresh ones.
    """
    chance = random.SystemRandom()
    edited = tensor.clone()
    flat = edited.view(-1)
    index = chance.randrange(flat.numel())
    if not tensor.is_floating_point():
        if within or chance.random() < _EVEN:
            return fresh
        other = chance.randrange(flat.numel())
        flat[index], flat[other] = flat[other].clone(), flat[index].clone()
        return edited
    if not within:
        if chance.random() < _EVEN:
            flat[index] = fresh.view(-1)[chance.randrange(flat.numel())]
            return edited
        largest = float(flat.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max())
        flat[index] = gate_rules.EDIT_FACTOR * largest + gate_rules.EDIT_OFFSET
        return edited
    drawn = fresh.flatten().double()
    drawn = drawn[drawn.isfinite()]
    if drawn.numel():
        most, least = float(drawn.max()), float(drawn.min())
        flat[index] = least if float(flat[index]) == most else most
    return edited


def _update_weight(weight: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """Return the weight after an optimizer's step; integers are those that were drawn."""
    if not weight.is_floating_point():
        return direction
    return (weight - gate_rules.WEIGHT_UPDATE * direction).to(weight.dtype)


def _count_leftovers_of(pid: int) -> tuple[int, int]:
    """Return the files that a process has open, and its children, ended ones too; 0 where they cannot be seen."""
    try:
        files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except OSError:
        files = 0
    return files, len(process.list_children(pid))


def _count_threads(pid: int) -> int:
    try:
        return int(psutil.Process(pid).num_threads())
    except psutil.Error:
        return 0
