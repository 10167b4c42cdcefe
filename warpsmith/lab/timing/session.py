"""One workload on the bench: shared tensors, the sides that run on them, and calls that are watched.

An untrusted side runs only while it is asked something: it is stopped when it answers and goes on at the next
question, so that nothing happens while new inputs are written or outputs are read.
"""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Grade, Truth
from warpsmith.lab.operator.content import as_bytes, chosen, same_bytes
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.workers import process
from warpsmith.lab.workers.arena import LAYOUTS, NAN_PATTERN, PATTERN, Arena, Layout, Place
from warpsmith.lab.workers.fresh_memory import Fresh
from warpsmith.lab.workers.side import Failed, Side

if TYPE_CHECKING:
    import torch

    from warpsmith.lab.workers.channel import Message

SOLUTION = "solution"
"""The side that is judged."""

CHECKED_SLOTS = 2
"""Slots of a session that is only checked."""

_CPU_FLUSH_BYTES = 96 << 20
_L2_BYTES = 64 << 20
_BLOCK_SHARE = 32
_BLOCK_SECONDS = 2e-3
_GUESSED_BANDWIDTH, _GUESSED_LAUNCH = 3e12, 2e-6
_FEWEST_SLOTS, _MOST_SLOTS = 4, 256
_BURSTS = 3
_CLOCK_TICK = 1e-7


class Arenas(NamedTuple):
    """Shared memory for all workloads of a judgement: made once, laid out anew for each."""

    inputs: Arena
    """Shared by all sides."""
    outputs: dict[str, Arena]
    """One a side."""

    def close(self) -> None:
        """Give it back."""
        for arena in (self.inputs, *self.outputs.values()):
            arena.close()


class Block(NamedTuple):
    """One timed block of a side."""

    seconds: float
    """A call, by the clock that the side is timed with."""
    unseen: float
    """Seconds that the grader's clock saw beyond what the device's events told, fetching one result included."""


class Took(NamedTuple):
    """One call of a side."""

    seconds: float
    """By the grader's clock, hand-over included; on a GPU by events."""
    busy: float | None = None
    """Seconds that its process had a core for, which others' load does not lengthen; None on a GPU."""


def allocate(
    file: DefinitionFile, checked: Iterable[Workload], timed: Iterable[Workload], sides: Iterable[str], device: str
) -> Arenas:
    """Arenas that every workload fits in: with the slots it is checked with, or those it is timed with."""
    counted = [(workload, CHECKED_SLOTS, how) for workload in checked for how in layouts(file, workload)]
    counted += [(workload, max(CHECKED_SLOTS, slots(file, workload, device)), "contiguous") for workload in timed]
    sizes = [_layouts(file, workload, count, how) for workload, count, how in counted]
    inputs = max(layout.size for layout, _, _ in sizes)
    outputs = max(layout.size for _, layout, _ in sizes)
    return Arenas(Arena(inputs, device), {name: Arena(outputs, device) for name in sides})


def layouts(file: DefinitionFile, workload: Workload) -> tuple[str, ...]:
    """How inputs lie in memory when this workload is checked: more ways than one where callers may choose."""
    free = any(spec.layout == "any" for spec in file.definition.tensor_inputs.values())
    return LAYOUTS if free and workload.set == "odd" else ("contiguous",)


def slots(file: DefinitionFile, workload: Workload, device: str) -> int:
    """Calls a timed block holds, each on inputs of its own: one on the CPU, with the grader's clock around it.

    On a GPU so many that the tensors are twice the L2 cache and the block is long against the hand-over, as far as
    memory goes.
    """
    if device == "cpu":
        return 1
    size = _bytes(file, workload)
    guess = size / _GUESSED_BANDWIDTH + _GUESSED_LAUNCH
    wanted = max(2 * _L2_BYTES // size + 1, math.ceil(_BLOCK_SECONDS / guess), _FEWEST_SLOTS)
    return max(2, min(wanted, _MOST_SLOTS, _device_bytes() // _BLOCK_SHARE // size))


class Session:
    """A workload with its slots; sides are prepared for it and then called."""

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
    ) -> None:
        """Prepare the sides for a workload.

        Args:
            file: the definition.
            workload: one of its points.
            arenas: memory that the workload fits in.
            sides: who runs on it.
            seed: of every draw; new for each session.
            device: `cpu` or `cuda`.
            count: slots; by default those that it is timed with.
            layout: how the inputs lie in memory, of `arena.LAYOUTS`.
        """
        self.file, self.workload, self.sides, self.device = file, workload, sides, device
        self._arenas = arenas
        self._checked = count is not None
        self.slots = count or slots(file, workload, device)
        self._in, self._out, self._places = _layouts(file, workload, self.slots, layout)
        memory = arenas.inputs.memory
        self._given = [{name: place.view(memory) for name, place in inputs.items()} for inputs, _ in self._places]
        """What each slot's inputs are called with: views of the arena."""
        self.inputs = Inputs(file, workload, seed, device)
        self.drawn: list[dict[str, torch.Tensor]] = [{} for _ in range(self.slots)]
        self.correlated = False
        self.graphs = False
        """Whether blocks are replayed from CUDA graphs."""
        self._truths: dict[int, Truth] = {}
        self._random = random.Random(seed)
        self._answers: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._prepare()

    @property
    def cold(self) -> bool:
        """Whether no call finds its inputs in a cache: on a GPU, a block's tensors are at least twice the L2."""
        return self.device == "cpu" or self.slots * _bytes(self.file, self.workload) >= 2 * _L2_BYTES

    def fill(self, distribution: str | None = None, *, quick: bool = False) -> None:
        """Draw new inputs for every slot, and poison where the outputs will be."""
        self.correlated = distribution is not None
        for slot, values in enumerate(self.inputs.several(self.slots, distribution, quick=quick)):
            self._write(slot, values)
        self.poison(graded=quick)

    def write(self, slot: int, values: dict[str, torch.Tensor]) -> None:
        """Put these inputs into a slot, in the same memory as before, and poison the outputs."""
        self._write(slot, values)
        self.poison()

    def leave(self, slot: int, results: dict[str, torch.Tensor]) -> None:
        """Put earlier results where the solution's outputs of this slot will be, in place of poison. Where nothing
        may be written, which the reference of outputs that are given shows as NaN, poison stays."""
        memory = self._arenas.outputs[SOLUTION].memory
        given = self.file.definition.outputs_are == "given"
        for name, place in self._places[slot][1].items():
            held, earlier = place.view(memory), results[name]
            held.copy_(chosen(self.truth(slot).values[name].isnan(), held, earlier) if given else earlier)
        self._settle()

    def poison(self, *, graded: bool = False) -> None:
        """Fill every output with what no honest result is, or those that are going to be graded."""
        self._answers.clear()
        for name, arena in self._arenas.outputs.items():
            if not graded or name == SOLUTION:
                arena.poison_all(self._out)
        self._settle()

    def ask(self, name: str, message: Message) -> Message:
        """Let a side go on for one question; it is stopped when it has answered."""
        side = self.sides[name]
        side.resume()
        try:
            return side.ask(message)
        finally:
            side.pause()

    def check(self, name: str, slot: int = 0, *, keep: bool = False) -> Grade:
        """One call of a side, its fresh memory poisoned, on a slot that was filled; graded in full.

        Args:
            name: the side.
            slot: the slot.
            keep: leave what earlier calls returned alive.
        """
        self.call(name, slot, fresh="poison", keep=keep)
        return self.graded(name, slot, self.truth(slot))

    def call(self, name: str, slot: int = 0, *, fresh: Fresh = "", keep: bool = False) -> float:
        """One call of a side, its own memory as `fresh` says; the grader's seconds around it, the hand-over
        included."""
        side = self.sides[name]
        started = time.perf_counter()  # before it runs: it could begin when it finds its inputs changed
        side.resume()
        try:
            answer = side.ask({"do": "call", "slot": slot, "fresh": fresh, "keep": keep})
            seconds = time.perf_counter() - started
        finally:
            side.pause()
        self._answers[name, slot] = _listed(answer.get("outputs"), name)
        return seconds

    def late(self, name: str, *, captured: bool) -> str:
        """One call of a side on the first slot while the second one's tensors are still being copied there, as a
        kernel ahead of it in the stream writes them; why it could not be made, empty where it was.

        Args:
            name: the side.
            captured: in a CUDA graph, which is then replayed.

        Raises:
            Failed: the side fails.
            MachineFailed: the kernel that copies cannot be launched.
        """
        answer = self.ask(name, {"do": "late", "slot": 0, "source": 1, "captured": captured})
        if "broken" in answer:
            raise MachineFailed(f"Inputs cannot be made to arrive late: {answer['broken']}")
        if why := answer.get("why"):
            return str(why)
        self.drawn[0], self._truths[0] = self.drawn[1], self.truth(1)
        self._answers[name, 0] = _listed(answer.get("outputs"), name)
        return ""

    def ghost(self, name: str) -> bool:
        """A call of a side on the first slot without its own kernels; False: its language cannot hold them back.

        Raises:
            Failed: it cannot do without.
        """
        answer = self.ask(name, {"do": "ghost", "slot": 0})
        if not answer.get("stubbed"):
            return False
        self._answers[name, 0] = _listed(answer.get("outputs"), name)
        return True

    def single(self, name: str) -> Took:
        """One call on the first slot, on a CPU with cold caches."""
        if self.device != "cpu":
            return Took(_seconds(self.ask(name, {"do": "block", "graph": False, "slots": [0]}), name))
        _flush_cpu()
        before = process.busy(self.sides[name].pid)
        seconds = self.call(name)
        return Took(seconds, process.busy(self.sides[name].pid) - before)

    def hand_over(self, name: str) -> Took:
        """A question that asks for nothing: what `single` holds beside the call; on a GPU none."""
        if self.device != "cpu":
            return Took(0.0)
        before, started = process.busy(self.sides[name].pid), time.perf_counter()
        self.sides[name].resume()
        self.sides[name].ask({"do": "nothing"})
        seconds = time.perf_counter() - started
        self.sides[name].pause()
        return Took(seconds, process.busy(self.sides[name].pid) - before)

    def truth(self, slot: int) -> Truth:
        """What the outputs of a slot's call must be near to."""
        if slot not in self._truths:
            self._truths[slot] = correctness.truth(
                self.file, self.workload, self.drawn[slot], correlated=self.correlated
            )
        return self._truths[slot]

    def holds_itself(self, slot: int = 0) -> Grade:
        """The reference in its own working precision, its sums in several orders, on a slot that was filled."""
        return correctness.holds_itself(self.file, self.workload, self.drawn[slot], self.truth(slot))

    def decided(self, slot: int = 0) -> bool:
        """Whether no choice of the reference hangs on rounding, on a slot that was filled."""
        return correctness.decided(self.file, self.workload, self.drawn[slot], self.truth(slot))

    def graded(self, name: str, slot: int, truth: Truth) -> Grade:
        """Fetch what a side's last call on a slot returned and grade it.

        Raises:
            Failed: wrong type, shape, strides or dtype; inputs changed; a guard band written.
        """
        outputs = self.outputs(name, slot)
        self._check_memory(name, slot)
        return correctness.grade(truth, outputs)

    def outputs(self, name: str, slot: int) -> dict[str, torch.Tensor]:
        """A slot's results as they were when the side answered, in the grader's memory.

        On the CPU they are read out of the stopped process: what is computed later is not there. On a GPU, or
        where the system does not let the grader read, the side copies them to shared memory.

        Raises:
            Failed: wrong type, shape, strides or dtype; or they cannot be read.
        """
        places, memory = self._places[slot][1], self._arenas.outputs[name].memory
        views = {output: place.view(memory) for output, place in places.items()}
        if (name, slot) in self._answers and self.reads(name):
            kinds = self._answers[name, slot]
            self._check_kinds(kinds)
            if self.file.definition.outputs_are == "returned":
                for kind, view in zip(kinds, views.values(), strict=True):
                    if view.numel():
                        self.sides[name].read(int(kind["address"]), _bytes_of(view))
            return views
        self._check_kinds(_listed(self.ask(name, {"do": "deliver", "slot": slot}).get("outputs"), name))
        return views

    def reads(self, name: str) -> bool:
        """Whether the grader takes a side's results out of its stopped process."""
        return self.device == "cpu" and self.sides[name].readable() is None

    def timed(self, name: str, *, fetch: bool = False, times: int = 1) -> Block:
        """Time one block of a side: a call a slot, on inputs that it sees for the first time.

        Args:
            name: the side.
            fetch: on a GPU, have one result delivered inside the grader's time, so that what was left undone when
                the side answered is seen.
            times: replays of a captured block.
        """
        if self.device == "cpu":
            _flush_cpu()
            return Block(self.call(name), 0.0)
        side, order = self.sides[name], list(range(self.slots))
        started = time.perf_counter()
        side.resume()
        try:
            side.tell({"do": "block", "graph": self.graphs, "slots": order, "times": times})
            told = _seconds(side.answer("block", at_once=True), name)
            if fetch:
                side.tell({"do": "deliver", "slot": self.pick()})
                side.answer("deliver", at_once=True)
            seen = time.perf_counter() - started
        finally:
            side.pause()
        return Block(told / self.slots / times, seen - told)

    def capture(self) -> dict[str, str]:
        """Have every side record its block in a CUDA graph; by side why it cannot, empty where all can.

        The order of the slots is new for each side: no call can know what is asked of the later ones.

        Raises:
            Failed: a side fails outside of its graph.
        """
        if self.device == "cpu":
            return {}
        self.fill(quick=True)
        for side in self.sides.values():  # all at once: half of a capture is Python's own housekeeping
            order = list(range(self.slots))
            self._random.shuffle(order)
            side.tell({"do": "capture", "slots": order})
        whys, failed = {}, []
        for name, side in self.sides.items():
            try:
                whys[name] = str(side.answer("capture").get("why"))
            except Failed as failure:  # the other answers must still be taken: those sides may go on
                failed.append(failure)
        for side in self.sides.values():
            side.pause()
        if failed:
            raise failed[0]
        failures = {name: why for name, why in whys.items() if why}
        self.graphs = not failures
        return failures

    def alone(self, name: str) -> float:
        """Seconds of a block of one call on a random slot, captured for itself where the others are; graded.

        Raises:
            Failed: its output is wrong.
        """
        slot = self.pick()
        if self.graphs:
            self.ask(name, {"do": "capture", "slots": [slot]})
        self.fill(quick=True)
        answer = self.ask(name, {"do": "block", "graph": self.graphs, "slots": [slot]})
        grade = self.graded(name, slot, self.truth(slot))
        if grade.status is not Status.PASSED:
            raise Failed(grade.status, f"the output of a single call after timing: {grade.detail}", name)
        return _seconds(answer, name)

    def repeated(self, name: str, times: int, meanwhile: Callable[[], None]) -> None:
        """Replay a side's captured block over and over, on the same inputs, with `meanwhile` called beside it."""
        side = self.sides[name]
        side.resume()
        try:
            side.tell({"do": "block", "graph": True, "slots": list(range(self.slots)), "times": times})
            meanwhile()
            side.answer("block")
        finally:
            side.pause()

    def wall_seconds(self, name: str) -> float:
        """The grader's clock over calls that are launched one by one, a call.

        A block over all slots less one over a single slot: the hand-over cancels.
        """
        longs, shorts = [], []
        for _ in range(_BURSTS):
            longs.append(self._burst(name, self.slots))
            shorts.append(self._burst(name, 1))
        return max((min(longs) - min(shorts)) / (self.slots - 1), _CLOCK_TICK)

    def order(self) -> list[str]:
        """The sides in a random order."""
        names = list(self.sides)
        self._random.shuffle(names)
        return names

    def pick(self) -> int:
        """A slot drawn after the calls: the worker cannot know which call is graded."""
        return self._random.randrange(self.slots)

    def chance(self, share: float) -> bool:
        """True in that share of the calls."""
        return self._random.random() < share

    def _write(self, slot: int, values: dict[str, torch.Tensor]) -> None:
        self._truths.pop(slot, None)
        self.drawn[slot] = values
        for name, given in self._given[slot].items():
            given.copy_(values[name])

    def _burst(self, name: str, count: int) -> float:
        self.fill(quick=True)
        started = time.perf_counter()
        self.ask(name, {"do": "block", "graph": False, "slots": list(range(count))})
        return time.perf_counter() - started

    def _prepare(self) -> None:
        pattern = NAN_PATTERN if self._checked else PATTERN
        self._arenas.inputs.guard(self._in, pattern)
        for arena in self._arenas.outputs.values():
            arena.guard(self._out, pattern)
        self._settle()
        message = {
            "do": "workload",
            "scalars": self.file.definition.scalars(self.workload),
            "slots": [
                {"inputs": {name: _plain(place) for name, place in inputs.items()},
                 "outputs": [_plain(place) for place in outputs.values()]}
                for inputs, outputs in self._places
            ],
        }  # fmt: skip
        for name in self.sides:
            self.ask(name, message)

    def _check_kinds(self, kinds: list[dict[str, Any]]) -> None:
        definition = self.file.definition
        if len(kinds) != len(definition.outputs):
            raise Failed(
                Status.INCORRECT_SHAPE, f"run returned {len(kinds)} values, not {len(definition.outputs)}"
            )
        for kind, (name, spec) in zip(kinds, definition.outputs.items(), strict=True):
            shape, dtype = list(definition.shape(spec, self.workload)), definition.dtype(spec, self.workload)
            if kind.get("type") != "Tensor":
                raise Failed(Status.INCORRECT_DTYPE, f"{name} is a {kind.get('type')}, not a plain torch.Tensor")
            if kind.get("shape") != shape:
                raise Failed(Status.INCORRECT_SHAPE, f"{name} has the shape {kind.get('shape')}, not {shape}")
            if kind.get("dtype") != dtype:
                raise Failed(Status.INCORRECT_DTYPE, f"{name} is {kind.get('dtype')}, not {dtype}")
            if not _contiguous(kind.get("strides"), shape):
                raise Failed(
                    Status.INCORRECT_SHAPE, f"{name} has the strides {kind.get('strides')}: not contiguous"
                )
            if not isinstance(kind.get("address"), int):
                raise Failed(Status.RUNTIME_ERROR, f"the worker does not say where {name} lies")

    def _check_memory(self, name: str, slot: int) -> None:
        for key, given in self._given[slot].items():
            if not same_bytes(given, self.drawn[slot][key]):
                raise Failed(Status.INPUT_MUTATED, f"{name} changed its input {key}")
        if not self._arenas.inputs.intact(self._in) or not self._arenas.outputs[name].intact(self._out):
            raise Failed(Status.OUT_OF_BOUNDS, f"{name} wrote outside of its tensors")

    def _settle(self) -> None:
        if self.device != "cpu":
            import torch

            torch.cuda.synchronize()


Places = tuple[dict[str, Place], dict[str, Place]]


def _layouts(
    file: DefinitionFile, workload: Workload, count: int, how: str
) -> tuple[Layout, Layout, list[Places]]:
    definition, inputs, outputs = file.definition, Layout(), Layout()
    places: list[Places] = []
    for _ in range(count):
        one = {
            name: inputs.add(
                definition.shape(spec, workload),
                definition.dtype(spec, workload),
                how if spec.layout == "any" else "contiguous",
            )
            for name, spec in definition.tensor_inputs.items()
        }
        two = {
            name: outputs.add(definition.shape(spec, workload), definition.dtype(spec, workload))
            for name, spec in definition.outputs.items()
        }
        places.append((one, two))
    return inputs, outputs, places


def _bytes(file: DefinitionFile, workload: Workload) -> int:
    """Of one call's tensors."""
    definition = file.definition
    specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
    return max(1, sum(definition.nbytes(spec, workload) for spec in specs))


def _plain(place: Place) -> list[object]:
    return [place.offset, list(place.shape), place.dtype, None if place.strides is None else list(place.strides)]


def _listed(said: object, name: str) -> list[dict[str, Any]]:
    if not isinstance(said, list) or not all(isinstance(kind, dict) for kind in said):
        raise Failed(Status.RUNTIME_ERROR, "the worker answered out of turn", name)
    return said


def _seconds(answer: Message, name: str) -> float:
    """The time that a worker reports."""
    told = answer.get("seconds")
    if not isinstance(told, float) or not math.isfinite(told) or told <= 0:
        raise Failed(Status.IMPLAUSIBLE_TIME, f"the worker reported the time {told!r}", name)
    return told


def _contiguous(strides: object, shape: Sequence[int]) -> bool:
    """Whether strides are a contiguous tensor's; along axes of size 1, and of empty tensors, any will do."""
    if not isinstance(strides, list) or len(strides) != len(shape):
        return False
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected and 0 not in shape:
            return False
        expected *= size
    return True


@functools.cache
def _device_bytes() -> int:
    import torch

    return int(torch.cuda.get_device_properties(0).total_memory)


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    """The memory of a contiguous CPU tensor."""
    return memoryview(as_bytes(tensor).numpy())  # type: ignore[arg-type]


_cold: list[torch.Tensor] = []


def _flush_cpu() -> None:
    """Write over more than the caches hold, so that no side finds its inputs there."""
    import torch

    if not _cold:
        _cold.append(torch.zeros(_CPU_FLUSH_BYTES, dtype=torch.uint8))
    _cold[0].add_(1)
