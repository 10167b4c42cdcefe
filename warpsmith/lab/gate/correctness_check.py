"""Correctness check: a solution's outputs, graded at one workload after another on inputs that it never saw."""

from __future__ import annotations

import functools
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import DECLARED, Workload, shape_class
from warpsmith.core.evaluation import REFERENCE_MISSES, Correctness, Status
from warpsmith.core.port.check import KernelLaunch
from warpsmith.core.trust import Check
from warpsmith.errors import BadDefinition, MachineFailed
from warpsmith.lab.gate.call_costs import CallCosts
from warpsmith.lab.gate.calls import batches, large_edits
from warpsmith.lab.gate.calls.callers import OtherCallers
from warpsmith.lab.gate.calls.late_calls import LateCalls
from warpsmith.lab.gate.calls.other_values import fill_other_values
from warpsmith.lab.gate.calls.special_numbers import SpecialNumbers
from warpsmith.lab.gate.calls.unread_inputs import call_beside_unwritten
from warpsmith.lab.gate.history import FirstCalls
from warpsmith.lab.grading import adversarial, correctness, planted_values, rounding, rows, shapes
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.instrumented.counted_build import COUNTED, UnrunLines
from warpsmith.lab.operator import input_rules, scalar_values
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.promises import promises_finite
from warpsmith.lab.operator.values.distributions import ALONE, FINITE, HUGE, MASKS, RELATED_INPUTS
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, Arenas, list_dense_layouts, list_layouts
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.slots import ALIASED, OVERLAPPED, VIEWED
from warpsmith.lab.workers.side import Side, SideFailed

_INFINITE_DRAWS = 2
"""Draws with an infinite result after which a distribution is left out."""

_TELLING_ELEMENTS = 64
"""Output elements below which the largest error may be small by chance, which says nothing about the bound."""


@dataclass
class Extremes:
    """Largest values at one workload, as shares of the bound."""

    reordered: float = 0.0
    """Error of the reference in its own precision, with its sums in other orders."""
    repeat: float = 0.0
    """Difference between two calls on the same inputs."""


class CorrectnessCheck:
    """Grades of one solution so far."""

    def __init__(
        self,
        file: DefinitionFile,
        arenas: Arenas,
        side: Side,
        device: str,
        fresh_seed: Callable[[], int],
        interpreted: bool = False,
        take_launches: Callable[[Workload | None, Sequence[KernelLaunch]], None] | None = None,
        numbers: Collection[float] = (),
        line_counts: UnrunLines | None = None,
    ) -> None:
        self._file, self.arenas, self._side, self._device = file, arenas, side, device
        self._fresh_seed, self._take_launches = fresh_seed, take_launches
        self._late_calls = LateCalls(device)
        turns = input_rules.DISTRIBUTION_TURNS
        numbers = set(numbers) - {0, 1}  # which are drawn anyway
        self._numbers = sorted(numbers)
        self._planted: set[float] = set()
        self._finite: set[str] = set()
        self._near_scalars = planted_values.near_scalars(file, numbers, random.SystemRandom()) if numbers else []
        self._scalar_calls = 0
        self._turns = itertools.cycle(range(turns)) if interpreted else None
        self._line_counts = line_counts
        self._callers = OtherCallers(file, side) if device == "cpu" and not interpreted else None
        self._costs = CallCosts(file, self.open_session, device)
        self._uncalled: list[str] = []
        self._special_numbers = SpecialNumbers(file, self.open_session)
        self._first_calls = FirstCalls(file)
        self.grades: dict[str, list[Grade]] = defaultdict(list)
        """Workload name to the grades of its calls."""
        self.extremes: dict[str, Extremes] = defaultdict(Extremes)
        """Workload name to its extremes."""
        self.kernels: dict[str, set[str]] = {}
        """Workload name to the compiled kernels that it was the first to launch; only on a GPU."""

    def open_session(self, workload: Workload, layout: str = "contiguous") -> Session:
        """Open a session of the solution alone, with the few slots that a check needs."""
        sides = {SOLUTION: self._side, **(self._line_counts.sides if self._line_counts else {})}
        return Session(
            self._file,
            workload,
            self.arenas,
            sides,
            self._fresh_seed(),
            self._device,
            count=CHECKED_SLOTS,
            layout=layout,
        )

    def check_workload(self, workload: Workload, notes: list[str]) -> None:
        """Grade the solution at a workload, in every layout that callers may use.

        Raises:
            SideFailed: it is wrong there.
            MachineFailed: the definition's tolerance is wrong.
        """
        plain, *others = list_layouts(self._file, workload, self._device)
        if workload.set != "odd" and others:  # each takes as long as a plain one
            others = random.SystemRandom().sample(others, 1)
        if self._take_launches:
            self._side.launches()  # those of other workloads
        self._check_layout(self.open_session(workload, plain), plain, notes)
        if self._take_launches:
            self._take_launches(workload, self._side.launches())
        for layout in others:
            self._check_layout(self.open_session(workload, layout), layout, notes)
        self._check_aliased(workload)
        self._check_other_numbers(workload)
        for session, grade, description in self._special_numbers.calls(workload):
            self._record_grade(session, grade, description)
        if call := call_beside_unwritten(self._file, workload, self.open_session):
            self._record_grade(*call)
        if self._take_launches:
            self._take_launches(None, self._side.launches())
        if self._device != "cpu":
            self._record_kernels(workload)

    def _check_aliased(self, workload: Workload) -> None:
        """Grade a call in which some inputs are one tensor, or overlap; at some sizes, one in which one begins
        another one.

        Inputs are only read, so callers may share them. Outputs never lie in an input.
        """
        is_small = workload.set == "odd" or self._file.definition.elements(workload) <= input_rules.NEAR_ELEMENTS
        chance = random.SystemRandom()
        if not is_small or (self._turns is not None and chance.random() >= input_rules.ALIASED_SHARE):
            return
        is_declared = shape_class(workload.name) == DECLARED
        same = OVERLAPPED if chance.random() < input_rules.OVERLAPPED_SHARE else ALIASED
        for layout in (same, VIEWED) if is_declared or chance.random() < input_rules.ALIASED_SHARE else (same,):
            if not Inputs(self._file, workload, 0, self._device).draw_alias(same_shape=layout != VIEWED):
                continue
            session = self.open_session(workload, layout)
            grade = self._grade_distribution(session, RELATED_INPUTS)
            if grade and (grade.status is Status.PASSED or session.grade_reference().status is Status.PASSED):
                self._record_grade(session, grade, f"{session.describe_alias()},")
            return

    def _check_other_numbers(self, workload: Workload) -> None:
        """Grade a call of a declared size with other numbers: none of them belongs to a size.

        Its tensors are those of a call with the usual numbers, by which a result that was kept is found again; new
        ones where the reference does not take these.
        """
        other = scalar_values.vary_scalars(self._file, workload, random.SystemRandom())
        if other.scalars == workload.scalars or shape_class(workload.name) != DECLARED:
            return
        usual = self.open_session(workload)
        usual.fill_inputs(slots=1)
        usual.call_side(SOLUTION)
        session = self.open_session(other)
        for same in (True, False):
            try:
                session.write_inputs(0, usual.drawn[0]) if same else session.fill_inputs(slots=1)
                if session.grade_reference().status is not Status.PASSED:
                    continue
            except BadDefinition:  # its own draw, or these tensors, do not take these numbers
                continue
            numbers = ", ".join(f"{name} {value:g}" for name, value in other.scalars.items())
            self._grade_call(session, f"{'the same' if same else 'normal'} inputs, {numbers},")
            return

    def check_larger(self, workload: Workload, notes: list[str]) -> bool:
        """Grade the solution at a size between or beyond the declared ones, by sampled rows where it is large.

        Returns:
            False if the reference takes too long and cannot be computed row by row, which a note says.

        Raises:
            SideFailed: it is wrong there.
        """
        kind = shape_class(workload.name)
        axis, elements = None, self._file.definition.elements(workload)
        if elements > input_rules.WHOLE_ELEMENTS[self._device] and kind != shapes.FAR:
            axis = rows.find_row_axis(self._file)
            if axis is None:
                notes.append(f"{workload.name} skipped: its reference takes too long, and has no rows to sample")
                return False
        definition = self._file.definition
        promised = definition.constraints or (self._file.inputs and not definition.drawn_along)
        promised = promised or kind == shapes.FAR
        share = 1.0
        if axis is not None and not promised:  # else the whole reference is tried once
            share = len(rows.sample_rows(workload.axes[axis], elements)) / workload.axes[axis]
        if kind in (shapes.GUIDED, shapes.FAR) and (excess := self._costs.find_excess(workload, share)):
            notes.append(f"{workload.name} skipped: {excess.reason}")
            if excess.in_version:
                self._uncalled.append(workload.name)
            return False
        layout = random.SystemRandom().choice(list_dense_layouts(self._file))
        session = self.open_session(workload, layout)
        if promised and not self._reference_computes(session):
            notes.append(f"{workload.name} skipped: the reference cannot compute it")
            return False
        for distribution in (None, *self._adversarial(session)):
            session.fill_inputs(distribution, quick=True, slots=1)
            if axis is None and session.grade_reference().status is not Status.PASSED:
                notes.append(
                    f"{workload.name}: {distribution or 'normal'} left out, the reference misses the bound"
                )
                continue
            chosen = rows.sample_rows(workload.axes[axis], elements) if axis else ()
            grade = (
                session.call_and_grade_rows(SOLUTION, axis, chosen, distribution=distribution)
                if axis
                else self._grade_where_defined(session, distribution)
            )
            if grade is None or (axis is None and self._may_be_lost(session, SOLUTION, distribution, grade)):
                continue
            where = f"{layout}{', sampled rows' if axis else ''}"
            description = f"{distribution or 'normal'} inputs, {where}"
            self._record_grade(session, grade, description, axis, chosen, distribution)
            if distribution is None and axis is None and self._callers:
                self._callers.check(session)
            if distribution is None:
                for call in large_edits.call_after_edits(session):
                    self._record_grade(session, call.grade, f"{call.description}, {layout}", call.axis, call.rows)
        if axis is None and self._turns is None:
            self._check_planted(session)
        return bool(self.grades[workload.name])

    def _reference_computes(self, session: Session) -> bool:
        try:
            session.fill_inputs(quick=True, slots=1)
            return session.grade_reference().status is Status.PASSED
        except (BadDefinition, ValueError):
            return False

    def check_batches(self, workload: Workload) -> None:
        """Call rows of a checked workload again in other batches, longer ones too, if the definition is batch
        invariant; every bit must be the same.

        Raises:
            SideFailed: a row depends on its batch.
        """
        arenas = None if self._turns is not None else self.arenas  # an interpreter is too slow for longer ones
        if self._file.definition.batch_invariant is None or not self.grades[workload.name]:
            return
        if lengths := batches.draw_lengths(self._file, workload, self._numbers, arenas):
            batches.check_batches(self._file, workload, lengths, self.open_session)

    def check_plain(self, workload: Workload) -> None:
        """Grade a call on normal inputs, if the reference computes it.

        Raises:
            SideFailed: it is wrong there.
        """
        session = self.open_session(workload)
        if self._reference_computes(session):
            self._grade_call(session, "normal")

    def check_again(self, workload: Workload) -> None:
        """Grade the solution once more after other sizes, whose leftovers in a workspace must not matter.

        Raises:
            SideFailed: it is wrong now, or its first call there has other bits now.
        """
        self._first_calls.repeat(workload)
        session = self.open_session(workload)
        session.fill_inputs(slots=1)
        self._grade_call(session, "normal, after larger sizes")
        if self._near_scalars and self._scalar_calls < input_rules.GUIDED_NUMBERS:
            self._check_near_scalar(workload, *self._near_scalars.pop())

    def _check_near_scalar(self, workload: Workload, name: str, value: float) -> None:
        """Grade a call in which a number is one of the version's source, if the reference takes it."""
        scalars = {**workload.scalars, name: value}
        session = self.open_session(workload.model_copy(update={"scalars": scalars}))
        try:
            session.fill_inputs(slots=1)
            holds = session.grade_reference().status is Status.PASSED
        except BadDefinition:
            return
        if holds:
            self._grade_call(session, f"normal inputs, {name} {value:g},")
            self._scalar_calls += 1

    def _check_planted(self, session: Session) -> None:
        """Grade a call in which numbers of the version's source stand among the inputs.

        Where the reference misses its bound beside some of them, or noise in its sums moves results as far as the
        version's are off, fewer are drawn, and in the end a single one.
        """
        names = planted_values.plantable_inputs(self._file, session.workload, session.inputs)
        chance = random.SystemRandom()
        for attempt in range(gate_rules.DRAW_TRIES if self._numbers and names else 0):
            last = attempt == gate_rules.DRAW_TRIES - 1
            chosen = chance.sample(self._numbers, 1 if last else max(1, len(self._numbers) >> 2 * attempt))
            session.fill_inputs(quick=session.workload.set != "odd", slots=1)
            drawn = session.drawn[0]
            session.write_inputs(0, planted_values.plant_numbers(drawn, chosen, names, session.inputs, chance))
            session.correlated = True
            grade = session.call_and_grade(SOLUTION)
            if grade.near_miss and not last:
                continue
            if grade.status is Status.PASSED or self._decides(session, chance):
                self._record_grade(session, grade, "numbers of its source among the inputs")
                self._planted.update(chosen)
                return

    def _decides(self, session: Session, chance: random.Random) -> bool:
        if session.grade_reference().status is not Status.PASSED:
            return False
        outputs = session.fetch_outputs(SOLUTION, 0)
        values = (self._file, session.workload, session.drawn[0], session.truth(0), outputs)
        return planted_values.decides(*values, chance.getrandbits(50))

    def summary(self, name: str, timed: Sequence[Grade] = ()) -> Correctness:
        """Return the record of one workload, including the grades of its timed calls."""
        extremes = self.extremes[name]
        grades = [*self.grades[name], *timed]
        return correctness.summarize_grades(grades, reordered=extremes.reordered, repeat=extremes.repeat)

    def end(self) -> tuple[Check, ...]:
        """End the count of lines, and return the checks that ran in addition to plain calls."""
        counted = (self._line_counts.end(),) if self._line_counts else ()
        callers = self._callers.describe() if self._callers else []
        return (
            *self._late_calls.checks,
            *callers,
            *self._describe_numbers(),
            *self._describe_uncalled(),
            *counted,
        )

    def _describe_uncalled(self) -> list[Check]:
        """Return a check that did not run where the version is too slow to be called at some shapes."""
        reason = f"the version alone is too slow to be called at {', '.join(self._uncalled)}"
        return [Check(name="long calls", ran=False, how=reason)] if self._uncalled else []

    def _describe_numbers(self) -> list[Check]:
        """Return a check that says how many numbers of the source were drawn, and as what."""
        shapes_drawn = sum(
            bool(grades) and name.startswith(f"{shapes.GUIDED}-") for name, grades in self.grades.items()
        )
        description = (
            f"{len(self._numbers)} read: {shapes_drawn} shapes drawn at them, {len(self._planted)} of them among "
            f"inputs, {self._scalar_calls} as a number of the call"
        )
        return [Check(name="numbers of the source", ran=True, how=description)] if self._numbers else []

    def _check_layout(self, session: Session, layout: str, notes: list[str]) -> None:
        """Grade fresh inputs twice in the same memory, then the same inputs again.

        Odd workloads are also graded on every adversarial distribution, larger ones on rows that mix them; in
        each further layout on one of these.
        """
        name = session.workload.name
        normal = "normal" if layout == "contiguous" else f"normal, {layout}"
        reference_grade = self._fill_where_reference_holds(session)
        is_declared = shape_class(session.workload.name) == DECLARED
        if reference_grade.status is not Status.PASSED and (session.shares_elements or not is_declared):
            notes.append(f"{name} left out: the reference misses its own bound at this draw")
            return
        if reference_grade.status is not Status.PASSED:
            raise MachineFailed(
                f"{REFERENCE_MISSES} at {name} ({reference_grade.detail}): "
                "the tolerance of the definition is wrong; `warpsmith amend` mends it."
            )
        extremes = self.extremes[name]
        extremes.reordered = max(extremes.reordered, reference_grade.worst)
        outputs = sum(value.numel() for value in session.truth(0).values.values())
        if correctness.tolerance_is_loose(reference_grade.worst) and outputs >= _TELLING_ELEMENTS:
            share = f"{reference_grade.worst:.1e}"
            notes.append(f"{name}: rounding alone uses {share} of the bound: the tolerance is wide")
        self._grade_call(session, normal)
        if layout == "contiguous":
            self._first_calls.take_last(session)
        if not session.correlated:
            self._check_rounding(session)
        self._check_untouched(session)
        if session.workload.set != "odd" and layout == "contiguous":
            self._check_adversarial(session, notes)  # first, so that plain values are what stays in a workspace
        self._check_repeat_on_others(session, extremes)
        session.fill_inputs()
        if session.shares_elements and session.grade_reference().status is not Status.PASSED:
            return  # a row may be one number, at which its deviation is rounding alone
        self._grade_call(session, normal)
        self._check_repeat(session, extremes)
        if layout != "contiguous":
            if self._callers:
                self._callers.check_pages(session)
            self._check_adversarial(session, notes, layout)
            return
        if self._callers:
            self._callers.check(session)
        for grade, description in self._late_calls.calls(session):
            self._record_grade(session, grade, description)
        if session.workload.set == "odd":
            self._check_adversarial(session, notes)
        if self._turns is None or not self._planted:
            self._check_planted(session)

    def _fill_where_reference_holds(self, session: Session) -> Grade:
        """Draw inputs, again where the reference misses its bound there; return its last grade.

        A result of one element may hang on one unlucky draw; a wrong tolerance fails at each.
        """
        for _ in range(gate_rules.DRAW_TRIES):
            session.fill_inputs(slots=1)
            grade = session.grade_reference()
            if grade.status is Status.PASSED:
                break
        return grade

    def _check_adversarial(self, session: Session, notes: list[str], layout: str = "contiguous") -> None:
        """Grade a session's further distributions, or in another layout the first of a few by chance that can be
        graded; a note names those at which the reference misses its bound."""
        has_results = any(value.numel() for value in session.truth(0).values.values())
        is_plain = layout == "contiguous"
        for distribution in self._adversarial(session, None if is_plain else gate_rules.DRAW_TRIES):
            grade = self._grade_distribution(session, distribution) if has_results else None
            if grade is None:
                continue
            if grade.status is Status.PASSED or session.grade_reference().status is Status.PASSED:
                description = f"{distribution} inputs{'' if is_plain else f', {layout}'}"
                self._record_grade(session, grade, description, distribution=distribution)
                if not is_plain:
                    break
            else:
                name = session.workload.name
                notes.append(f"{name}: {distribution} left out, the reference itself misses the bound there")

    def _grade_distribution(self, session: Session, distribution: str) -> Grade | None:
        """Return the grade of a call on inputs of a distribution, drawn again after a near miss.

        None where masks leave a NaN at two draws, or numbers near the ends of a type an infinite result; and where
        an honest version may lose the others to infinite parts, and has finite ones where they must be.
        """
        grade, infinite = None, 0
        for _ in range(gate_rules.DRAW_TRIES):
            session.fill_inputs(distribution, slots=1)
            defined = self._grade_where_defined(session, distribution)
            if defined is None:
                infinite += 1
                if infinite == _INFINITE_DRAWS:
                    break
                continue
            if distribution in MASKS and self._holds_infinity(session):  # slices of one element do not
                self._finite.add(distribution)
            grade = defined
            if not grade.near_miss:
                break
        return None if grade and self._may_be_lost(session, SOLUTION, distribution, grade) else grade

    def _may_be_lost(self, session: Session, side: str, distribution: str | None, grade: Grade) -> bool:
        """Return True for a wrong last call of a side that an honest version makes too: on inputs of the
        distribution it may lose results to infinite parts, and it has finite ones where they must be."""
        loses = distribution in ALONE or (distribution == HUGE and not session.truth(0).is_finite)
        is_wrong = loses and grade.status is Status.INCORRECT_NUMERICAL
        return is_wrong and session.has_right_special_values(side)

    def _holds_infinity(self, session: Session) -> bool:
        drawn = session.drawn[0].values()
        return any(bool(value.isinf().any()) for value in drawn if value.element_size() > 1)

    def _may_mask(self, workload: Workload) -> bool:
        """Return True if infinite inputs have results to grade.

        Promises of finite numbers forbid them. Where only integers are computed from several floating-point
        inputs, a difference of infinite parts, say, is NaN, and an index or a comparison does not show it.
        """
        definition = self._file.definition
        sources, results = (
            [spec for spec in specs if is_floating(definition.dtype(spec, workload))]
            for specs in (definition.tensor_inputs.values(), definition.outputs.values())
        )
        return not promises_finite(definition) and (bool(results) or len(sources) < 2)

    def _grade_where_defined(self, session: Session, distribution: str | None) -> Grade | None:
        """Return the grade of a call; None of one whose results `adversarial.is_defined` leaves out."""
        if distribution in FINITE and not adversarial.is_defined(distribution, session.truth(0)):
            return None
        return session.call_and_grade(SOLUTION)

    def _adversarial(self, session: Session, most: int | None = None) -> Sequence[str]:
        """Return the further distributions of a session, or so many of them by chance; where each call is
        interpreted, larger ones get none, and a part of them has none either."""
        distributions, workload = session.inputs.adversarial_distributions, session.workload
        if self._turns is not None and (workload.set != "odd" or most is not None):
            return ()
        turn = next(self._turns) if self._turns is not None and distributions else None
        chance = random.SystemRandom()
        square = self._turns is None and session.inputs.has_square
        chosen = adversarial.choose_distributions(workload, distributions, chance, turn, self._finite, square)
        chosen = chosen if self._may_mask(workload) else tuple(each for each in chosen if each not in MASKS)
        return chosen if most is None else chance.sample(chosen, min(most, len(chosen)))

    def _grade_call(self, session: Session, distribution: str) -> None:
        """Grade a call on what slot 0 holds, and on new inputs after a near miss."""
        grade = session.call_and_grade(SOLUTION)
        for _ in range(gate_rules.DRAW_TRIES - 1):
            if not grade.near_miss:
                break
            session.fill_inputs(slots=1)
            grade = session.call_and_grade(SOLUTION)
        self._record_grade(session, grade, f"{distribution} inputs")

    def _record_grade(
        self,
        session: Session,
        grade: Grade,
        description: str,
        axis: str | None = None,
        chosen: Sequence[int] = (),
        distribution: str | None = None,
    ) -> None:
        """Record the grade of a call, of whose result some rows along an axis may have been chosen. The build that
        counts lines makes the call too, and is graded alike."""
        self.grades[session.workload.name].append(grade)
        if grade.status is not Status.PASSED:
            raise SideFailed(grade.status, f"{grade.detail} ({description})")
        if self._line_counts and COUNTED in self._line_counts.sides and COUNTED in session.sides:
            grade_rows = functools.partial(
                session.call_and_grade_rows, axis=axis or "", chosen=chosen, distribution=distribution
            )
            call = grade_rows if axis else session.call_and_grade
            excuse = functools.partial(self._may_count_lost, session, axis, distribution)
            self._line_counts.repeat_call(call, self._file.definition, session.workload, description, excuse)

    def _may_count_lost(self, session: Session, axis: str | None, distribution: str | None, grade: Grade) -> bool:
        """Return True for a wrong call of the build that counts lines whose version may be right: beside infinite
        results too, since what a fused product and sum keeps infinite is NaN without."""
        is_finite = axis is not None or session.truth(0).is_finite
        return not is_finite or (axis is None and self._may_be_lost(session, COUNTED, distribution, grade))

    def _check_repeat(self, session: Session, extremes: Extremes) -> None:
        """Call again on the same inputs and compare.

        The results must agree within the bound, or in every bit if the definition is deterministic. The worker's
        own memory is not poisoned before this call, so that it looks as in the timed ones.
        """
        first = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
        session.poison_outputs()
        session.call_side(SOLUTION, deliver=True)
        second = session.fetch_outputs(SOLUTION, 0)
        deterministic = self._file.definition.deterministic
        share, failure = correctness.compare_calls(first, second, session.truth(0), deterministic)
        extremes.repeat = max(extremes.repeat, share)
        if failure:
            raise SideFailed(Status.NOT_REPRODUCIBLE, failure)

    def _check_repeat_on_others(self, session: Session, extremes: Extremes) -> None:
        """Call twice on the same inputs of an adversarial distribution, by chance, where bits are promised."""
        if self._turns is not None or not self._file.definition.deterministic:
            return
        if session.chance(input_rules.OTHER_VALUES_SHARE) and fill_other_values(session):
            session.call_side(SOLUTION, deliver=True)
            self._check_repeat(session, extremes)

    def _check_rounding(self, session: Session) -> None:
        """Look for results of the last call that are truncated, whose errors stay within the bound."""
        outputs = session.fetch_outputs(SOLUTION, 0)
        expected = session.truth(0).values
        if text := rounding.describe_truncation(self._file.definition, session.workload, outputs, expected):
            raise SideFailed(Status.INCORRECT_NUMERICAL, text)

    def _check_untouched(self, session: Session) -> None:
        """Call again where elements that must keep their content hold numbers, not the poison of other calls."""
        definition = self._file.definition
        if definition.outputs_are != "given":
            return
        masks = {
            name: value.isnan() for name, value in session.truth(0).values.items() if value.is_floating_point()
        }
        if not any(bool(mask.any()) for mask in masks.values()):
            return
        before = session.write_numbers(masks)
        session.call_side(SOLUTION, deliver=True)
        after = session.fetch_outputs(SOLUTION, 0)
        for name, mask in masks.items():
            if correctness.differing_output({name: before[name][mask]}, {name: after[name][mask]}):
                text = f"{name} has elements that must keep their content, and numbers there change"
                raise SideFailed(Status.INCORRECT_NUMERICAL, text)
        session.poison_outputs()

    def _record_kernels(self, workload: Workload) -> None:
        loaded = {part.model_dump_json() for part in self._side.resources()}
        earlier: set[str] = set().union(*self.kernels.values())
        self.kernels[workload.name] = loaded - earlier
