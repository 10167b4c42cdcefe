"""Session of one workload: shared tensors, the sides that run on them, and ways to call a side.

An untrusted side runs only while the grader waits for its answer. It is stopped when it answers and resumed with
the next message, so that none of its threads runs while inputs are written or outputs are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BEST, TWIN, Status
from warpsmith.core.text import quote_foreign
from warpsmith.errors import MachineFailed
from warpsmith.lab.grading import adversarial, correctness, row_parts, rows
from warpsmith.lab.grading.correctness import Grade, Truth
from warpsmith.lab.grading.error_figures import has_wrong_special_value
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.tensor_bytes import are_finite, as_bytes, select_bytes
from warpsmith.lab.timing.answers import (
    OutputFacts,
    TimedBlock,
    check_outputs,
    issue_seconds,
    parse_count,
    parse_outputs,
    parse_seconds,
)
from warpsmith.lab.timing.arenas import Arenas, describe_slots
from warpsmith.lab.timing.slots import Slots
from warpsmith.lab.timing.stages import stage
from warpsmith.lab.workers import process
from warpsmith.lab.workers.calls.fresh_memory import FreshContent, draw_leftovers
from warpsmith.lab.workers.side import Side, SideFailed

if TYPE_CHECKING:
    import torch

    from warpsmith.lab.workers.channel import Message

SOLUTION = "solution"
"""The side that is judged."""

JUDGED = (SOLUTION, BEST, TWIN)
"""Sides that get the same messages while they are timed, so that no version knows which of them it is."""

_PROBES = 3
_BURSTS = 3
_CLOCK_TICK = 1e-7


class CallTime(NamedTuple):
    """Time of one call of a side."""

    seconds: float
    """Seconds by the grader's clock, including the hand-over; on a GPU by events."""
    busy: float | None = None
    """Seconds that its process had a core for; waiting for one does not lengthen them. None on a GPU."""


class Session(Slots):
    """A workload with its slots, and the sides that are prepared for it."""

    def __init__(
        self,
        file: DefinitionFile,
        workload: Workload,
        arenas: Arenas,
        sides: dict[str, Side],
        seed: int,
        device: str,
        *,
        count: int | None = None,
        layout: str = "contiguous",
        mix: Sequence[Workload] = (),
    ) -> None:
        """Prepare the sides for a workload.

        Args:
            file: the definition.
            workload: one of its points.
            arenas: memory that the workload fits in.
            sides: name to side.
            seed: seed of every draw; a new one for each session.
            device: `cpu` or `cuda`.
            count: slots; by default those that the workload is timed with.
            layout: memory layout of the inputs, one of `arenas.list_layouts`.
            mix: workloads of the slots, one each, with numbers of their own; by default each has `workload`.
        """
        super().__init__(file, workload, arenas, tuple(sides), seed, device, count=count, layout=layout, mix=mix)
        self.sides = sides
        self.graphs = False
        """True if blocks are replayed from CUDA graphs."""
        self._short_blocks: dict[str, int] = {}
        """Slow side to the number of calls in its blocks."""
        self._answers: dict[tuple[str, int], list[OutputFacts]] = {}
        self._delivered: dict[tuple[str, int], list[OutputFacts]] = {}
        """Results that are in the arena, as they were at the side's last answer."""
        self.prepare()

    @stage("inputs")
    def fill_inputs(self, distribution: str | None = None, *, quick: bool = False, slots: int = 0) -> None:
        """Draw new inputs for every slot, or the first `slots`, and poison the memory of the outputs."""
        self.correlated = distribution is not None or self.shares_elements
        for slot, values in enumerate(self._draw_slots(slots or self.slots, distribution, quick=quick)):
            self._write_slot(slot, values)
        self.poison_outputs(graded=quick)
        row_parts.release_unused(self.device)

    @stage("inputs")
    def write_inputs(self, slot: int, values: dict[str, torch.Tensor]) -> None:
        """Write inputs into a slot, at the same addresses as before, and poison the outputs."""
        self._write_slot(slot, values)
        self.poison_outputs()

    def write_unread(self, slot: int, values: dict[str, torch.Tensor]) -> None:
        """Write inputs that differ only where the reference reads nothing: its results and their bounds stay."""
        truth = self.truth(slot)
        self.write_inputs(slot, values)
        self._truths[slot] = truth

    def leave_results(self, slot: int, results: dict[str, torch.Tensor]) -> None:
        """Write earlier results over the poison in the solution's outputs of a slot.

        Where a definition passes the outputs, the reference marks elements that may not be written as NaN; these
        stay poisoned.
        """
        memory = self._arenas.outputs[SOLUTION].memory
        passed = self.file.definition.outputs_are == "given"
        for name, placement in self._placements[slot][1].items():
            current, earlier = placement.view(memory), results[name]
            untouched = self.truth(slot).values[name].isnan() if passed else None
            current.copy_(earlier if untouched is None else select_bytes(untouched, current, earlier))
        self._synchronize()

    def write_numbers(self, masks: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Write random numbers over the poison in some elements of the solution's outputs of slot 0.

        Args:
            masks: output to the elements.

        Returns:
            Output to a copy of its content.
        """
        import torch

        memory, contents = self._arenas.outputs[SOLUTION].memory, {}
        for name, mask in masks.items():
            view = self._placements[0][1][name].view(memory)
            numbers = torch.rand(view.shape, device=view.device).add_(0.5).to(view.dtype)
            view.copy_(select_bytes(mask, numbers, view))
            contents[name] = view.clone()
        self._synchronize()
        return contents

    def poison_outputs(self, *, graded: bool = False) -> None:
        """Fill every output with a value that no honest result has; with `graded` only those of versions."""
        self._answers.clear()
        self._delivered.clear()
        self._poison_outputs([name for name in self.sides if not graded or name in JUDGED])

    def ask(self, name: str, message: Message) -> Message:
        """Resume a side, send one message, and stop the side when it has answered."""
        self._begin_message()
        side = self.sides[name]
        with stage("version"):
            side.resume()
            try:
                return side.ask(message)
            finally:
                side.pause()

    def call_and_grade(self, name: str, slot: int = 0, *, keep: bool = False) -> Grade:
        """Call a side once on a filled slot and grade the result in full.

        Its fresh memory is poisoned, or holds random numbers: timed calls find no poison there, and no version can
        take that for a sign.

        Args:
            name: the side.
            slot: the slot.
            keep: keep alive what earlier calls returned.
        """
        fresh: FreshContent = "poison"
        if name == SOLUTION and self._random.random() < gate_rules.NUMBERS_SHARE:
            fresh = "numbers"
            placements, memory = self._placements[slot][1], self._arenas.outputs[SOLUTION].memory
            numbers = {key: draw_leftovers(each.view(memory)) for key, each in placements.items()}
            self.leave_results(slot, numbers)
        self.call_side(name, slot, fresh=fresh, keep=keep, deliver=True)
        return self.grade_last_call(name, slot, self.truth(slot))

    def call_and_grade_rows(
        self, name: str, axis: str, chosen: Sequence[int], *, whole: bool = True, distribution: str | None = None
    ) -> Grade:
        """Call a side once on slot 0 and grade the chosen rows of the result along an axis.

        With `whole`, look for NaN in all others if inputs are finite. A call on inputs of a distribution may not
        count: `adversarial.is_defined` says so of the reference of these rows.

        Raises:
            SideFailed: as `grade_last_call`.
            BadDefinition: the reference cannot compute the rows.
        """
        definition = self.file.definition
        self.call_side(name, fresh="poison", deliver=True)
        outputs = self.fetch_outputs(name, 0)
        self._check_memory(name, 0)
        inputs = rows.take_rows(self.drawn[0], definition.tensor_inputs, axis, chosen)
        part = rows.shorten(self.workload, axis, len(chosen))
        truth = correctness.compute_truth(self.file, part, inputs, correlated=self.correlated)
        holds = correctness.grade_reference(self.file, part, inputs, truth).status is Status.PASSED
        if not holds or not adversarial.is_defined(distribution, truth):
            return Grade(Status.PASSED, 0.0, 0.0)
        grade = correctness.grade_outputs(truth, rows.take_rows(outputs, definition.outputs, axis, chosen))
        is_right = grade.status is Status.PASSED
        if whole and is_right and not self.correlated and are_finite(self.drawn[0].values()):
            return correctness.grade_unsampled(truth, outputs, grade)
        return grade

    def call_side(
        self,
        name: str,
        slot: int = 0,
        *,
        fresh: FreshContent = "",
        keep: bool = False,
        deliver: bool = False,
        caller: dict[str, float | str] | None = None,
    ) -> float:
        """Call a side once; return the grader's seconds around the call, including the hand-over.

        Args:
            name: the side.
            slot: the slot.
            fresh: content of memory that the side allocates during the call.
            keep: keep alive what earlier calls returned.
            deliver: a result that the grader cannot read is delivered before the answer, with no other message;
                for calls whose seconds are not used.
            caller: arguments of `Worker.call_as`; by default the worker's own thread calls, on the arena.
        """
        side, message = self.sides[name], {"do": "call", "slot": slot, "fresh": fresh, "keep": keep}
        if deliver:
            message |= self._delivery(name)
        if caller:
            message["caller"] = caller
        self._begin_message()
        with stage("version"):
            started = time.perf_counter()  # before it runs, because it could begin as soon as its inputs change
            side.resume()
            try:
                answer = side.ask(message)
                seconds = time.perf_counter() - started
            finally:
                side.pause()
        self._note_outputs(name, slot, message, answer)
        return seconds

    def has_right_special_values(self, name: str) -> bool:
        """Return whether the last results of a side on slot 0 are NaN and infinite where the reference is, but for
        results so large that the order of a sum may decide whether it overflows."""
        outputs, expected = self.fetch_outputs(name, 0), self.truth(0).values
        return not any(
            has_wrong_special_value(outputs[output][small], value[small])
            for output, value in expected.items()
            for small in [~(value.abs() > gate_rules.LARGE_RESULT) | value.isinf()]
        )

    def call_again(self, name: str, slot: int, times: int) -> int:
        """Call a side up to `times` times on a slot, and keep alive what earlier calls returned.

        Returns:
            The number of calls; fewer if they take longer than `gate_rules.HELD_SECONDS`.
        """
        seconds = gate_rules.HELD_SECONDS
        answer = self.ask(name, {"do": "call_again", "slots": [slot], "times": times, "seconds": seconds})
        return parse_count(answer, name)

    def call_in_burst(self, name: str, times: int, seconds: float) -> int:
        """Call a side on all slots in turns, up to `times` times or for `seconds`; return the number of calls."""
        slots = list(range(self.slots))
        return parse_count(
            self.ask(name, {"do": "call_again", "slots": slots, "times": times, "seconds": seconds}), name
        )

    def call_at_once(self, name: str, times: int) -> list[Grade]:
        """Call a side some times on each filled slot, from as many threads at once; return a grade of each last
        result.

        Raises:
            SideFailed: the side fails.
        """
        slots = list(range(self.slots))
        answer = self.ask(name, {"do": "call_at_once", "slots": slots, "times": times})
        parts = answer.get("slots")
        for slot in slots:
            part = parts[slot] if isinstance(parts, list) and len(parts) == len(slots) else None
            self._answers[name, slot] = parse_outputs(part, name)
        return [self.grade_last_call(name, slot, self.truth(slot)) for slot in slots]

    def call_and_grade_in_succession(self, name: str) -> Grade:
        """Call a side on slot 0, copy the inputs of slot 1 there, and call it again at once; grade that result.

        No message lies between the calls, so that a result which is kept for microseconds shows.
        """
        message = {"do": "call_in_succession", "slot": 0, "source": 1, **self._delivery(name)}
        answer = self.ask(name, message)
        self.drawn[0], self._truths[0] = self.drawn[1], self.truth(1)
        self._note_outputs(name, 0, message, answer)
        return self.grade_last_call(name, 0, self.truth(0))

    def call_with_late_inputs(self, name: str, *, captured: bool) -> str:
        """Call a side on slot 0 while a kernel ahead of it in the stream still copies the inputs of slot 1 there.

        Args:
            name: the side.
            captured: capture the call in a CUDA graph, which is then replayed.

        Returns:
            The reason why the call could not be captured; empty if it was made.

        Raises:
            SideFailed: the side fails.
            MachineFailed: the kernel that copies cannot be launched.
        """
        message = {"do": "call_with_late_inputs", "slot": 0, "source": 1, "captured": captured}
        message |= self._delivery(name)
        answer = self.ask(name, message)
        if "driver_error" in answer:
            raise MachineFailed(f"Inputs cannot be made to arrive late: {answer['driver_error']}")
        if reason := answer.get("reason"):
            return str(reason)
        self.drawn[0], self._truths[0] = self.drawn[1], self.truth(1)
        self._note_outputs(name, 0, message, answer)
        return ""

    def call_without_launches(self, name: str) -> bool:
        """Call the side on slot 0 with its own kernel launches suppressed.

        Returns:
            False if the side's language cannot suppress them.

        Raises:
            SideFailed: the call fails.
        """
        answer = self.ask(name, {"do": "call_without_launches", "slot": 0})
        if not answer.get("suppressed"):
            return False
        self._answers[name, 0] = parse_outputs(answer.get("outputs"), name)
        return True

    def time_one_call_cold(self, name: str) -> CallTime:
        """Time one call on slot 0, with cold caches on a CPU."""
        if self.device != "cpu":
            return CallTime(parse_seconds(self.ask(name, {"do": "block", "graph": False, "slots": [0]}), name))
        _flush_cpu_caches()
        before = process.core_seconds(self.sides[name].pid)
        seconds = self.call_side(name)
        return CallTime(seconds, process.core_seconds(self.sides[name].pid) - before)

    def time_hand_over(self, name: str) -> CallTime:
        """Time an empty message, which is what `time_one_call_cold` measures in addition to the call.

        On a GPU this is zero, because events time the call.
        """
        if self.device != "cpu":
            return CallTime(0.0)
        before, started = process.core_seconds(self.sides[name].pid), time.perf_counter()
        self.sides[name].resume()
        self.sides[name].ask({"do": "no_op"})
        seconds = time.perf_counter() - started
        self.sides[name].pause()
        return CallTime(seconds, process.core_seconds(self.sides[name].pid) - before)

    def grade_last_call(self, name: str, slot: int, truth: Truth) -> Grade:
        """Fetch the results of a side's last call on a slot and grade them.

        Raises:
            SideFailed: wrong type, shape, strides or dtype; inputs changed; a guard band written.
        """
        with stage("grading"):
            outputs = self.fetch_outputs(name, slot)
            self._check_memory(name, slot)
            return correctness.grade_outputs(truth, outputs)

    def fetch_outputs(self, name: str, slot: int) -> dict[str, torch.Tensor]:
        """Return a slot's results as they were when the side answered, in the grader's memory.

        On the CPU they are read out of the stopped process, so that a result computed later is missing. On a GPU,
        or where the system does not let the grader read, the side copies them to shared memory.

        Raises:
            SideFailed: wrong type, shape, strides or dtype; or they cannot be read.
        """
        placements, memory = self._placements[slot][1], self._arenas.outputs[name].memory
        views = {output: placement.view(memory) for output, placement in placements.items()}
        definition = self.file.definition
        if (name, slot) in self._answers and self.reads_memory_of(name):
            outputs = self._answers[name, slot]
            check_outputs(definition, self.workloads[slot], outputs, trusted=self.sides[name].trusted)
            if definition.outputs_are == "returned":
                for facts, view in zip(outputs, views.values(), strict=True):
                    if view.numel():
                        content: Any = as_bytes(view).numpy()  # a buffer by its type only from Python 3.12 on
                        self.sides[name].read(int(facts["address"]), memoryview(content))
            return views
        if (name, slot) not in self._delivered:
            answer = self.ask(name, {"do": "deliver", "slot": slot})
            self._delivered[name, slot] = parse_outputs(answer.get("outputs"), name)
        delivered = self._delivered[name, slot]
        check_outputs(definition, self.workloads[slot], delivered, trusted=self.sides[name].trusted)
        return views

    def reads_memory_of(self, name: str) -> bool:
        """Return True if the grader reads a side's results out of its stopped process."""
        return self.device == "cpu" and self.sides[name].unreadable_reason() is None

    @stage("version")
    def time_block(self, name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        """Time one block of a side: one call per slot, on inputs that it sees for the first time.

        Args:
            name: the side.
            fetch: on a GPU, have one result delivered inside the grader's time, which reveals work that was still
                undone when the side answered.
            times: replays of a captured block.
        """
        if self.device == "cpu":
            _flush_cpu_caches()
            return TimedBlock(self.call_side(name), 0.0)
        side, order = self.sides[name], self._draw_order(name)
        self._delivered.clear()
        started = time.perf_counter()
        side.resume()
        try:
            side.tell({"do": "block", "graph": self.graphs, "slots": order, "times": times})
            answer = side.answer("block", at_once=True)
            event_seconds = parse_seconds(answer, name)
            if fetch and self.times_every_slot(name):
                side.tell({"do": "deliver", "slot": self.pick_slot()})
                side.answer("deliver", at_once=True)
            grader_seconds = time.perf_counter() - started
        finally:
            side.pause()
        host = issue_seconds(answer) / len(order)
        return TimedBlock(event_seconds / len(order) / times, grader_seconds - event_seconds, host)

    def _draw_order(self, name: str) -> list[int]:
        """Return the slots of a side's next block in a random order if it is short, else all in their order."""
        slots = list(range(self.slots))
        return self._random.sample(slots, self._short_blocks[name]) if name in self._short_blocks else slots

    def times_every_slot(self, name: str) -> bool:
        """Return whether a side's blocks call all slots, so that each has a result."""
        return name not in self._short_blocks

    def shorten_blocks(self, seconds: float) -> None:
        """Have blocks that would take longer than this call only some slots, so that slow sides do not take all
        the time."""
        if self.device == "cpu":
            return
        self.fill_inputs(quick=True)
        for name in self.sides:
            self._short_blocks[name] = 1
            call = min(self.time_block(name).seconds for _ in range(_PROBES))  # the first one may compile
            calls = max(1, int(seconds / max(call, 1e-9)))
            if calls < self.slots:
                self._short_blocks[name] = calls
            else:
                del self._short_blocks[name]

    @stage("version")
    def capture_graphs(self) -> dict[str, str]:
        """Record the block of every side in a CUDA graph; return the reason for each side that cannot be captured.

        The order of the slots is new for each side, so that no call can know which slots come later.

        Raises:
            SideFailed: a side fails outside of its graph.
        """
        if self.device == "cpu":
            return {}
        self.fill_inputs(quick=True)
        for name, side in self.sides.items():  # all at once: half of a capture is Python's own housekeeping
            order = self._draw_order(name)
            self._random.shuffle(order)
            side.tell({"do": "capture", "slots": order})
        reasons, failures = {}, []
        for name, side in self.sides.items():
            try:
                reason = side.answer("capture").get("reason")
                reasons[name] = quote_foreign(str(reason)) if reason else ""
            except SideFailed as failure:  # the other answers must still be received: those sides may go on
                failures.append(failure)
        for side in self.sides.values():
            side.pause()
        if failures:
            raise failures[0]
        uncaptured = {name: reason for name, reason in reasons.items() if reason}
        self.graphs = not uncaptured
        return uncaptured

    def time_random_slot(self, name: str) -> float:
        """Return the seconds of a block of one call on a random slot, whose result is graded.

        The call is captured in a graph of its own if the blocks are graphs.

        Raises:
            SideFailed: its output is wrong.
        """
        slot = self.pick_slot()
        if self.graphs:
            self.ask(name, {"do": "capture", "slots": [slot]})
        self.fill_inputs(quick=True)
        answer = self.ask(name, {"do": "block", "graph": self.graphs, "slots": [slot]})
        grade = self.grade_last_call(name, slot, self.truth(slot))
        if grade.status is not Status.PASSED:
            raise SideFailed(grade.status, f"the output of a single call after timing: {grade.detail}", name)
        return parse_seconds(answer, name)

    def replay_block(self, name: str, times: int, meanwhile: Callable[[], None]) -> None:
        """Replay a side's captured block `times` times on the same inputs while `meanwhile` runs."""
        side = self.sides[name]
        self._delivered.clear()
        side.resume()
        try:
            side.tell({"do": "block", "graph": True, "slots": list(range(self.slots)), "times": times})
            meanwhile()
            side.answer("block")
        finally:
            side.pause()

    def wall_seconds(self, name: str) -> float:
        """Return the seconds per call by the grader's clock, for calls that are launched one by one.

        It subtracts a block over one slot from a block over all slots, so that the hand-over cancels.
        """
        long, short = [], []
        for _ in range(_BURSTS):
            long.append(self._time_launches(name, self.slots))
            short.append(self._time_launches(name, 1))
        return max((min(long) - min(short)) / (self.slots - 1), _CLOCK_TICK)

    def shuffled_sides(self) -> list[str]:
        """Return the names of the sides in random order."""
        return self._random.sample(list(self.sides), len(self.sides))

    def pick_slot(self) -> int:
        """Draw a slot; done after the calls, so that the worker cannot know which call is graded."""
        return self._random.randrange(self.slots)

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self._random.random() < share

    def _begin_message(self) -> None:
        """Clear memory that belongs to no tensor, where the side before could have left a message for the next.

        No other one runs while a session has a single side, whose memory was cleared when it began.
        """
        self._delivered.clear()
        if len(self.sides) > 1:
            self._arenas.inputs.clear_beyond(self._input_layout)

    def _delivery(self, name: str) -> Message:
        """Return the part of a message that has a result delivered before the answer; empty where it is read."""
        return {} if self.reads_memory_of(name) else {"deliver": True}

    def _note_outputs(self, name: str, slot: int, message: Message, answer: Message) -> None:
        self._answers[name, slot] = outputs = parse_outputs(answer.get("outputs"), name)
        if message.get("deliver"):
            self._delivered[name, slot] = outputs

    def _time_launches(self, name: str, count: int) -> float:
        self.fill_inputs(quick=True)
        started = time.perf_counter()
        self.ask(name, {"do": "block", "graph": False, "slots": list(range(count))})
        return time.perf_counter() - started

    def prepare(self) -> None:
        """Prepare memory and sides for the slots as they lie."""
        self._prepare_memory()
        slots = describe_slots(self.file.definition, self.workloads, self._placements)
        for name in self.sides:
            self.ask(name, {"do": "workload", "slots": slots})


_flushed_memory: list[torch.Tensor] = []


def _flush_cpu_caches() -> None:
    """Write more memory than the caches hold, so that no side finds its inputs there."""
    import torch

    if not _flushed_memory:
        _flushed_memory.append(torch.zeros(gate_rules.CPU_FLUSH_BYTES, dtype=torch.uint8))
    _flushed_memory[0].add_(1)
