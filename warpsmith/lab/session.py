"""One workload on the bench: shared tensors, the sides that run on them, and calls that are watched."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab import correctness
from warpsmith.lab.arena import Arena, Layout, Place, poison
from warpsmith.lab.correctness import Grade, Truth
from warpsmith.lab.definition_file import DefinitionFile
from warpsmith.lab.inputs import Inputs
from warpsmith.lab.side import Failed, Side

if TYPE_CHECKING:
    import torch

_CPU_FLUSH_BYTES = 96 << 20
_SLOT_BYTES = 2 << 30
_MOST_SLOTS = 8
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


def allocate(file: DefinitionFile, workloads: Iterable[Workload], sides: Iterable[str], device: str) -> Arenas:
    """Arenas that every one of the workloads fits in."""
    sizes = [_layouts(file, workload, slots(file, workload, device)) for workload in workloads]
    inputs = max(layout.size for layout, _, _ in sizes)
    outputs = max(layout.size for _, layout, _ in sizes)
    return Arenas(Arena(inputs, device), {name: Arena(outputs, device) for name in sides})


def slots(file: DefinitionFile, workload: Workload, device: str) -> int:
    """Calls a timed block holds, each on inputs of its own: one on the CPU, where the grader's clock is
    around each call; several on a GPU, where the device's events are read after the block."""
    if device == "cpu":
        return 1
    definition = file.definition
    specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
    size = sum(definition.nbytes(spec, workload) for spec in specs)
    return max(2, min(_MOST_SLOTS, _SLOT_BYTES // max(size, 1)))


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
    ) -> None:
        self.file, self.workload, self.sides, self.device = file, workload, sides, device
        self._arenas = arenas
        self.slots = slots(file, workload, device)
        self._in, self._out, self._places = _layouts(file, workload, self.slots)
        self.inputs = Inputs(file, workload, seed, device)
        self.drawn: list[dict[str, torch.Tensor]] = [{} for _ in range(self.slots)]
        self.correlated = False
        self._truths: dict[int, Truth] = {}
        self._random = random.Random(seed)
        self._prepare()

    def fill(self, distribution: str | None = None, *, quick: bool = False) -> None:
        """Draw new inputs for every slot, and poison where the outputs will be."""
        self.correlated = distribution is not None
        self._truths.clear()
        for slot, (places, outputs) in enumerate(self._places):
            self.drawn[slot] = self.inputs.draw(distribution, quick=quick)
            for name, place in places.items():
                place.view(self._arenas.inputs.memory).copy_(self.drawn[slot][name])
            for arena in self._arenas.outputs.values():
                for place in outputs.values():
                    poison(place.view(arena.memory))
        self._settle()

    def check(self, name: str, slot: int = 0) -> Grade:
        """One call of a side, its fresh memory poisoned, on a slot that was filled; graded in full."""
        self.sides[name].ask({"do": "call", "slot": slot, "poison": True})
        return self.graded(name, slot, self.truth(slot))

    def truth(self, slot: int) -> Truth:
        """What the outputs of a slot's call must be near to."""
        if slot not in self._truths:
            self._truths[slot] = correctness.truth(
                self.file, self.workload, self.drawn[slot], correlated=self.correlated
            )
        return self._truths[slot]

    def holds_itself(self, slot: int = 0) -> Grade:
        """The reference in its own working precision, on a slot that was filled."""
        return correctness.holds_itself(self.file, self.workload, self.drawn[slot], self.truth(slot))

    def graded(self, name: str, slot: int, truth: Truth) -> Grade:
        """Fetch what a side's last call on a slot returned and grade it.

        Raises:
            Failed: wrong type, shape or dtype; inputs changed; a guard band written.
        """
        answer = self.sides[name].ask({"do": "deliver", "slot": slot})
        try:
            self._check_kinds(answer["outputs"])
        except (KeyError, TypeError) as error:
            raise Failed(Status.RUNTIME_ERROR, "the worker answered out of turn", name) from error
        self._check_memory(name, slot)
        places = self._places[slot][1]
        memory = self._arenas.outputs[name].memory
        return correctness.grade(truth, {output: place.view(memory) for output, place in places.items()})

    def seconds(self, name: str) -> list[float]:
        """Time one block of a side: a call a slot, on inputs that it sees for the first time."""
        if self.device == "cpu":
            return [self._wall(name, slot) for slot in range(self.slots)]
        answer = self.sides[name].ask({"do": "events", "slots": list(range(self.slots))})["seconds"]
        if len(answer) != self.slots or not all(_sane(value) for value in answer):
            raise Failed(Status.IMPLAUSIBLE_TIME, f"the worker reported the times {answer}", name)
        return [float(value) for value in answer]

    def wall_seconds(self, name: str) -> float:
        """The grader's own clock, a call: a burst over all slots less a burst over one, so that the cost of
        handing over to the worker cancels. Every burst has fresh inputs."""
        longs, shorts = [], []
        for _ in range(_BURSTS):
            longs.append(self._burst(name, self.slots))
            shorts.append(self._burst(name, 1))
        return max((min(longs) - min(shorts)) / (self.slots - 1), _CLOCK_TICK)

    def _burst(self, name: str, count: int) -> float:
        self.fill()
        started = time.perf_counter()
        self.sides[name].ask({"do": "burst", "slots": list(range(count))})
        return time.perf_counter() - started

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

    def _wall(self, name: str, slot: int) -> float:
        _flush_cpu()
        started = time.perf_counter()
        self.sides[name].ask({"do": "call", "slot": slot})
        return time.perf_counter() - started

    def _prepare(self) -> None:
        self._arenas.inputs.guard(self._in)
        for arena in self._arenas.outputs.values():
            arena.guard(self._out)
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
        for side in self.sides.values():
            side.ask(message)

    def _check_kinds(self, kinds: list[dict[str, object]]) -> None:
        definition = self.file.definition
        if len(kinds) != len(definition.outputs):
            raise Failed(
                Status.INCORRECT_SHAPE, f"run returned {len(kinds)} values, not {len(definition.outputs)}"
            )
        for kind, (name, spec) in zip(kinds, definition.outputs.items(), strict=True):
            shape, dtype = list(definition.shape(spec, self.workload)), definition.dtype(spec, self.workload)
            if kind["type"] != "Tensor":
                raise Failed(Status.INCORRECT_DTYPE, f"{name} is a {kind['type']}, not a plain torch.Tensor")
            if kind["shape"] != shape:
                raise Failed(Status.INCORRECT_SHAPE, f"{name} has the shape {kind['shape']}, not {shape}")
            if kind["dtype"] != dtype:
                raise Failed(Status.INCORRECT_DTYPE, f"{name} is {kind['dtype']}, not {dtype}")

    def _check_memory(self, name: str, slot: int) -> None:
        memory = self._arenas.inputs.memory
        for key, place in self._places[slot][0].items():
            now, before = place.view(memory), self.drawn[slot][key]
            if not _same_bytes(now, before):
                raise Failed(Status.INPUT_MUTATED, f"{name} changed its input {key}")
        if not self._arenas.inputs.intact(self._in) or not self._arenas.outputs[name].intact(self._out):
            raise Failed(Status.OUT_OF_BOUNDS, f"{name} wrote outside of its tensors")

    def _settle(self) -> None:
        if self.device != "cpu":
            import torch

            torch.cuda.synchronize()


Places = tuple[dict[str, Place], dict[str, Place]]


def _layouts(file: DefinitionFile, workload: Workload, count: int) -> tuple[Layout, Layout, list[Places]]:
    definition, inputs, outputs = file.definition, Layout(), Layout()
    places: list[Places] = []
    for _ in range(count):
        one = {
            name: inputs.add(definition.shape(spec, workload), definition.dtype(spec, workload))
            for name, spec in definition.tensor_inputs.items()
        }
        two = {
            name: outputs.add(definition.shape(spec, workload), definition.dtype(spec, workload))
            for name, spec in definition.outputs.items()
        }
        places.append((one, two))
    return inputs, outputs, places


def _plain(place: Place) -> list[object]:
    return [place.offset, list(place.shape), place.dtype]


def _same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def _sane(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value > 0


_cold: list[torch.Tensor] = []


def _flush_cpu() -> None:
    """Write over more than the caches hold, so that no side finds its inputs there."""
    import torch

    if not _cold:
        _cold.append(torch.zeros(_CPU_FLUSH_BYTES, dtype=torch.uint8))
    _cold[0].add_(1)
