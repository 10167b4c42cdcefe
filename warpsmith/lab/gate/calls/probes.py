"""Probes: each call of a solution must be computed from its own inputs, by itself, and leave nothing behind.

Each probe is a plain use that a caller may make: an input edited in place, the same values at another address,
weights that a training step updates. A result that was kept from an earlier call shows as wrong, or as too fast.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable

import psutil

from warpsmith.core import gate_rules
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.text import quote_foreign
from warpsmith.core.trust import Check
from warpsmith.lab.gate.calls import edits, leftovers, repeats, views
from warpsmith.lab.gate.calls.other_values import require_pass_on_others
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.tensor_bytes import equal_bytes
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.calls import audit
from warpsmith.lab.workers.side import SideFailed

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
        self._checked, self._timed, self._device, self._interpreted = checked, timed, device, interpreted
        most = gate_rules.PROBE_ELEMENTS_INTERPRETED if interpreted else gate_rules.PROBE_ELEMENTS
        self._definition = definition
        self.workload = max(
            checked, key=lambda w: (interpreted or self._has_enough_outputs(w), self._size_up_to(w, most))
        )
        """Workload of all probes except those that time calls."""
        enough = [workload for workload in checked if self._has_enough_outputs(workload)]
        self._small_workload = min(
            enough or checked, key=lambda w: (w.distribution != "normal", self._nonzero_size(w))
        )
        """Workload of many calls, which results are held over and leftovers counted after, and of calls in direct
        succession; of normal inputs where there is one, so that these calls look like most."""
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
        session = self._open(self._small_workload)
        self._call_in_succession(session)
        self._let_weights_drift(session)
        self._hold_results(session)
        self._compare_state(session)
        self._edit_at_odd_sizes()
        self._edit_at_timed_sizes()
        self._call_on_views()
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
        edits.require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before any edit")
        drawn = session.drawn[0]
        kinds: set[str] = set()
        for name, tensor in drawn.items():
            for _ in range(gate_rules.EDITS if tensor.numel() else 0):
                edits.require_fresh_result(session, drawn, name)
            structure = edits.list_edit_kinds(session, name, tensor)
            edits.require_fresh_results(session, drawn, [(name, kind) for kind in structure])
            kinds.update(structure)
        more = f", and {', '.join(sorted(kinds))}" if kinds else ""
        self._add_check("edits in place", f"{gate_rules.EDITS} of each input{more} at {session.workload.name}")

    def _edit_at_odd_sizes(self) -> None:
        """Edit inputs in place at odd sizes that no candidate can predict, such as a single row."""
        chance = random.SystemRandom()
        fitting = [w for w in self._checked if self._definition.elements(w) and w is not self.workload]
        most, names = 1 if self._interpreted else gate_rules.EDITED_SIZES, []
        for workload in chance.sample(fitting, min(len(fitting), most)):
            session = self._open(workload)
            session.fill_inputs()
            drawn = session.drawn[0]
            edited = [name for name, tensor in drawn.items() if tensor.numel()]
            if edited and session.grade_reference().status is Status.PASSED:
                names.append(workload.name)
                edits.require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before any edit")
                edits.require_fresh_result(session, drawn, chance.choice(edited))
                edits.require_fresh_results(session, drawn, edits.draw_edits(session, drawn))
        if names:
            self._add_check("edits at odd sizes", f"some at {', '.join(names)}")

    def _edit_at_timed_sizes(self) -> None:
        """Edit inputs in place at timed sizes that no candidate can predict; train the weights at one of them."""
        most, chance = gate_rules.EDITED_ELEMENTS[self._device], random.SystemRandom()
        fitting = [w for w in self._timed if 0 < self._definition.elements(w) <= most and w is not self.workload]
        chosen = [] if self._interpreted else chance.sample(fitting, min(len(fitting), gate_rules.EDITED_SIZES))
        for workload in chosen:
            session = self._open(workload)
            session.fill_inputs()
            edits.require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "before any edit")
            drawn = session.drawn[0]
            edited = chance.choice([name for name, tensor in drawn.items() if tensor.numel()])
            edits.require_fresh_result(session, drawn, edited)
            edits.require_fresh_results(session, drawn, edits.draw_edits(session, drawn))
            if workload is chosen[-1]:
                if self._weights:
                    self._run_training_loop(session, gate_rules.TIMED_TRAINING_STEPS)
                    self._add_check("training loop at a timed size", f"at {workload.name}")
                self._hold_at_timed_size(session)
        if chosen:
            self._add_check("edits at timed sizes", f"some at {', '.join(workload.name for workload in chosen)}")

    def _call_on_views(self) -> None:
        """Call on the same elements in two shapes, and in two orders of axes, at a timed size and at a checked
        one, as far as possible."""
        limits = gate_rules.EDITED_ELEMENTS
        most = gate_rules.PROBE_ELEMENTS_INTERPRETED if self._interpreted else limits[self._device]
        shapes, orders = [], []
        for workloads in (self._timed, self._checked):
            fitting = [workload for workload in workloads if 0 < self._definition.elements(workload) <= most]
            random.SystemRandom().shuffle(fitting)
            shapes.append(views.call_on_views(self._open, fitting))
            orders.append(views.call_on_exchanged(self._open, fitting))
        for name, calls in (("another shape", shapes), ("another order of axes", orders)):
            if any(calls):
                self._add_check(f"same elements in {name}", "; ".join(filter(None, calls)))

    def _hold_at_timed_size(self, session: Session) -> None:
        """Call many times on the same inputs of a timed size: memory must not grow, and an edit must show."""
        session.fill_inputs()
        session.call_again(SOLUTION, 1, 1)
        memory = self._memory_in_use(session)
        calls = session.call_again(SOLUTION, 1, gate_rules.HELD_CALLS[1])
        self._require_no_growth(session, memory, calls)
        self._edit_after_calls(session)

    def _require_no_growth(self, session: Session, memory: int, calls: int) -> None:
        """Refuse calls that keep memory: too much of it, or more with each of several times as many calls."""
        growth = self._memory_in_use(session) - memory
        least, times, share = gate_rules.STEADY_GROWTH
        steady = growth > least
        for _ in range(times if growth <= gate_rules.LEAK_BYTES else 0):
            if steady:
                before = self._memory_in_use(session)
                session.call_again(SOLUTION, 1, calls)
                steady = self._memory_in_use(session) - before > share * growth
        if steady or growth > gate_rules.LEAK_BYTES:
            message = f"{calls} calls on the same inputs grew its memory by {growth >> 20} MiB: they never free it"
            raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)

    def _exchange_addresses(self, session: Session) -> None:
        """Exchange the values of two slots, so that each set of values lies at the other's address."""
        for _ in range(gate_rules.DRAW_TRIES):
            session.fill_inputs()
            grades = [session.call_and_grade(SOLUTION, slot) for slot in (0, 1)]
            if not any(grade.near_miss for grade in grades):
                break
        for grade in grades:
            edits.require_pass(grade, Status.INCORRECT_NUMERICAL, "on fresh inputs")
        first, second = session.drawn
        session.write_inputs(0, second)
        session.write_inputs(1, first)
        for slot in (0, 1):
            grade = session.call_and_grade(SOLUTION, slot)
            edits.require_pass(grade, Status.CACHED_RESULT, "after two inputs exchanged their places")
        self._add_check("exchanged places", f"at {session.workload.name}")

    def _hold_results(self, session: Session) -> None:
        """Check that the results of a call change neither at the next call nor at any of the hundreds after it."""
        session.fill_inputs()
        session.call_side(SOLUTION, 0, deliver=True)
        before = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
        session.call_side(SOLUTION, 1, keep=True, deliver=True)
        second_grade = session.grade_last_call(SOLUTION, 1, session.truth(1))
        edits.require_pass(second_grade, Status.INCORRECT_NUMERICAL, "on a second call")
        session.call_again(SOLUTION, 1, 1)
        memory = self._memory_in_use(session)
        side = session.sides[SOLUTION]
        before_calls = leftovers.count_leftovers(side.pid)
        calls = 1 + session.call_again(SOLUTION, 1, random.SystemRandom().randint(*gate_rules.HELD_CALLS))
        leftovers.require_few_left(side, before_calls, calls - 1)
        self._require_no_growth(session, memory, calls)
        for name, tensor in session.fetch_outputs(SOLUTION, 0).items():
            if not equal_bytes(tensor, before[name]):
                raise SideFailed(
                    Status.CACHED_RESULT,
                    f"{name} of an earlier call changed within the next {calls}: "
                    "calls share the memory of their results",
                    SOLUTION,
                )
        self._edit_after_calls(session, input_rules.LATE_DISTRIBUTIONS)
        self._add_check("results held", f"over {calls} calls at {session.workload.name}")
        self._add_check("nothing left behind", f"after {calls} calls at {session.workload.name}")

    def _edit_after_calls(self, session: Session, further: int = 0) -> None:
        """Change an element after hundreds of calls on the same inputs: a result may be kept only from then on.

        Then call on rows that mix adversarial distributions, and on `further` of these: a version may take it from
        the calls so far that none comes.
        """
        drawn = session.drawn[1]
        session.write_inputs(0, drawn)
        edits.require_pass(session.call_and_grade(SOLUTION), Status.INCORRECT_NUMERICAL, "after many calls")
        for name in [name for name, tensor in drawn.items() if tensor.numel()]:
            edits.require_fresh_result(session, drawn, name)
        if not self._interpreted:
            require_pass_on_others(session, further, "after many calls on normal ones")

    def _reuse_memory(self, session: Session) -> None:
        """Call with an earlier result in the memory of the outputs, whether passed or allocated."""
        session.fill_inputs()
        session.call_side(SOLUTION, deliver=True)
        earlier = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
        for _ in range(gate_rules.DRAW_TRIES):  # an earlier result is no near miss
            session.fill_inputs()
            session.leave_results(0, earlier)
            session.call_side(SOLUTION, fresh="earlier", deliver=True)
            grade = session.grade_last_call(SOLUTION, 0, session.truth(0))
            if not grade.near_miss:
                break
        edits.require_pass(grade, Status.CACHED_RESULT, "where its memory held an earlier result")
        self._add_check("earlier results in memory", f"at {session.workload.name}")

    def _call_in_succession(self, session: Session) -> None:
        """Call twice without a message in between, the second time on other inputs at the same place."""
        session.fill_inputs()
        grade = session.call_and_grade_in_succession(SOLUTION)
        edits.require_pass(grade, Status.CACHED_RESULT, "directly after a call on other inputs at its place")
        self._add_check("direct succession", f"at {session.workload.name}")

    def _run_training_loop(self, session: Session, steps: int) -> None:
        """Run training steps: new activations twice per step, and weights updated in place after each step."""
        weights = self._weights
        session.fill_inputs()
        current = {name: session.drawn[0][name] for name in weights}
        for step in range(steps):
            for _ in ("forward", "again"):
                for _ in range(gate_rules.DRAW_TRIES):  # stale weights are no near miss
                    edits.write_combined(session, lambda drawn: drawn | current)
                    grade = session.call_and_grade(SOLUTION)
                    if not grade.near_miss:
                        break
                edits.require_pass(grade, Status.CACHED_RESULT, f"in step {step + 1} of a training loop")
            # Decay alone keeps the signs, order and proportions that a definition's own draw may promise.
            directions = session.inputs.draw() if session.file.inputs is None else current
            updated = {name: edits.update_weight(current[name], directions[name]) for name in weights}
            limits = session.inputs.range_limits
            current.update({name: edits.hold_limits(each, limits(name)) for name, each in updated.items()})

    def _let_weights_drift(self, session: Session) -> None:
        """Move a weight by little before each of many calls: what is kept until it moves by more falls behind."""
        session.fill_inputs()
        drawn = session.drawn[0]
        fine = [name for name in self._weights if drawn[name].is_floating_point() and drawn[name].itemsize > 1]
        fine = [name for name in fine if drawn[name].numel()]  # types of 8 bits have no small step
        if not fine or self._interpreted:
            return
        name = random.SystemRandom().choice(fine)
        if calls := edits.require_fresh_after_drift(session, drawn, name):
            self._add_check("slow drift", f"{calls} steps of {name} at {session.workload.name}")

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
        if not audit.is_little(computing, elements):
            name, count = next(iter(computing.items()))
            raise SideFailed(
                Status.LIBRARY_CALL,
                f"PyTorch's {quote_foreign(name)} computes {count} elements of this call: a library does the work",
                SOLUTION,
            )
        if computing:
            self.notes.append(f"PyTorch computes a little: {quote_foreign(', '.join(computing))}")
        self._add_check("library calls", f"{len(operators)} operators heard at {session.workload.name}")

    def _compare_state(self, session: Session) -> None:
        """Compare modes, settings and random numbers of the process with those before the version was loaded."""
        leftovers.require_same_state(session.sides[SOLUTION])
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
                    f"a call on the inputs of the call before takes {share:.0%} of a fresh one's time: "
                    "its result is kept",
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
