"""Probes: does a solution compute each call from that call's inputs, by itself, and leave nothing behind?

Each is a plain use that a caller may make: an input edited in place, the same values at another address, weights
that a training step updates. A result that was kept from an earlier call shows as wrong, or as too quick.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import psutil

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.trust import Check
from warpsmith.lab.gate import repeats
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator.content import same_bytes
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers import audit
from warpsmith.lab.workers.side import Failed

if TYPE_CHECKING:
    import torch

EDITS = 3
"""Edits in place of each input."""

TRIES = 4
"""Draws, where a definition draws its inputs itself, until its reference is sure of what is combined from them;
and edits, until rounding has no bad luck."""

STEPS = 4
"""Steps of the training loop."""

WEIGHTS = 8
"""Different weights after which a weight cache must have stopped growing."""

_LARGEST, _LARGEST_INTERPRETED = 1 << 20, 1 << 13
_MOST_TIMED = {"cpu": 1 << 24, "cuda": 1 << 28}
_LEAK_CALLS = 12
_LEAK_THREADS = 6
_LEAK_BYTES = 64 << 20

Tensors = dict[str, "torch.Tensor"]
"""Inputs by name."""

Opener = Callable[[Workload], Session]
"""Makes a session with two slots for a workload."""


class Probes:
    """The probes of one judgement, in order; the first that fails raises Failed."""

    def __init__(
        self,
        definition: Definition,
        opened: Opener,
        checked: list[Workload],
        timed: list[Workload],
        *,
        device: str,
        interpreted: bool,
    ) -> None:
        """Choose the workloads.

        Args:
            definition: the operator.
            opened: makes a session.
            checked: workloads that correctness was judged at.
            timed: those that will be timed; empty where nothing is.
            device: `cpu` or `cuda`.
            interpreted: whether an interpreter runs the solution: its times say nothing.
        """
        self._open = opened
        self._timed, self._device, self._interpreted = timed, device, interpreted
        most = _LARGEST_INTERPRETED if interpreted else _LARGEST
        self._definition = definition
        self.workload = max(checked, key=lambda workload: self._size(workload, most))
        """Where all but the times are probed."""
        self._least = min(checked, key=self._positive) if interpreted else self.workload
        """Where what calls leave behind is counted: many calls, and an interpreter's are slow."""
        self.notes: list[str] = []
        """What deserves a look."""
        self.checks: list[Check] = []
        """What ran."""

    def run(self) -> None:
        """All probes.

        Raises:
            Failed: a result was kept, a library computes, something was left behind.
        """
        one = self._open(self.workload)
        self._edits(one)
        self._places(one)
        self._held(one)
        self._leftovers(one)
        self._loop(one)
        self._ghost(one)
        self._library(one)
        self._growth(one)
        self._left(one if self._least is self.workload else self._open(self._least))
        self._times()

    @property
    def _weights(self) -> tuple[str, ...]:
        return tuple(name for name, spec in self._definition.tensor_inputs.items() if spec.role == "weight")

    def _ran(self, name: str, how: str) -> None:
        self.checks.append(Check(name=name, ran=True, how=how))

    def _edits(self, one: Session) -> None:
        """Single elements change in place: same address, same object, same version counter.

        The new value is beyond the largest, and may rule a row; then an honest sum's rounding misses its bound now
        and then. A result that was kept misses it by far, and at each edit. Each takes the one before it
        back: piled up they reach values beside which a float32 sum loses the rest of a row term by term.
        """
        one.fill()
        _must(one.check(SOLUTION), Status.INCORRECT_NUMERICAL, "before any edit")
        drawn = one.drawn[0]
        for name, tensor in drawn.items():
            for _ in range(EDITS if tensor.numel() else 0):
                for _ in range(TRIES):
                    _edit(one, drawn, name)
                    grade = one.check(SOLUTION)
                    if not grade.near_miss:
                        break
                _must(grade, Status.CACHED_RESULT, f"after an edit of {name} in place")
        self._ran("edits in place", f"{EDITS} of each input at {one.workload.name}")

    def _places(self, one: Session) -> None:
        """The same values at another address, then both places with exchanged values."""
        one.fill()
        first, second = one.drawn
        for slot in (0, 1):
            _must(one.check(SOLUTION, slot), Status.INCORRECT_NUMERICAL, "on fresh inputs")
        one.write(0, second)
        one.write(1, first)
        for slot in (0, 1):
            _must(one.check(SOLUTION, slot), Status.CACHED_RESULT, "after two inputs exchanged their places")
        self._ran("exchanged places", f"at {one.workload.name}")

    def _held(self, one: Session) -> None:
        """What a call returned stays as it was when the next call is made."""
        one.fill()
        one.call(SOLUTION, 0)
        before = {name: tensor.clone() for name, tensor in one.outputs(SOLUTION, 0).items()}
        one.call(SOLUTION, 1, keep=True)
        _must(one.graded(SOLUTION, 1, one.truth(1)), Status.INCORRECT_NUMERICAL, "on a second call")
        for name, tensor in one.outputs(SOLUTION, 0).items():
            if not same_bytes(tensor, before[name]):
                raise Failed(
                    Status.CACHED_RESULT,
                    f"{name} of an earlier call changed at the next call: calls share the memory of their results",
                    SOLUTION,
                )
        self._ran("results held", f"at {one.workload.name}")

    def _leftovers(self, one: Session) -> None:
        """The memory of its outputs, given or allocated, holds what an earlier call returned."""
        one.fill()
        one.call(SOLUTION)
        earlier = {name: tensor.clone() for name, tensor in one.outputs(SOLUTION, 0).items()}
        one.fill()
        one.leave(0, earlier)
        one.call(SOLUTION, fresh="earlier")
        grade = one.graded(SOLUTION, 0, one.truth(0))
        _must(grade, Status.CACHED_RESULT, "where its memory held an earlier result")
        self._ran("earlier results in memory", f"at {one.workload.name}")

    def _loop(self, one: Session) -> None:
        """Four training steps: new activations twice a step, weights updated in place after each."""
        weights = self._weights
        one.fill()
        held = {name: one.drawn[0][name] for name in weights}
        for step in range(STEPS):
            for _ in ("forward", "again"):
                _combine(one, lambda drawn: drawn | held)
                _must(one.check(SOLUTION), Status.CACHED_RESULT, f"in step {step + 1} of a training loop")
            # decay alone keeps the signs, order and proportions that a definition's own draw may promise
            along = one.inputs.draw() if one.file.inputs is None else held
            held.update({name: _updated(held[name], along[name]) for name in weights})
        changed = f"{', '.join(weights)} updated in place" if weights else "no input is a weight"
        self._ran("training loop", f"{STEPS} steps of two calls, {changed}")

    def _ghost(self, one: Session) -> None:
        """A call whose own kernels are not launched must not be right."""
        one.fill()
        right = False
        with contextlib.suppress(Failed):  # without its kernels it may return anything, or fail
            if not one.ghost(SOLUTION):
                return  # a language whose code is linked for itself alone
            right = one.graded(SOLUTION, 0, one.truth(0)).status is Status.PASSED
        if right:
            raise Failed(
                Status.LIBRARY_CALL,
                "the result is right although none of its own kernels was launched: something else does the work",
                SOLUTION,
            )
        self._ran("own kernels", f"nothing is right without them at {one.workload.name}")

    def _library(self, one: Session) -> None:
        """What PyTorch's own operators did of the work."""
        one.fill()
        said = one.ask(SOLUTION, {"do": "audit", "slot": 0}).get("operators")
        if not isinstance(said, dict) or not all(isinstance(count, int) for count in said.values()):
            raise Failed(Status.RUNTIME_ERROR, "the worker does not say which operators were heard", SOLUTION)
        heard: dict[str, int] = said
        tensors = sum(tensor.numel() for tensor in one.drawn[0].values())
        found = audit.computing(heard)
        if sum(found.values()) > audit.SHARE * max(tensors, 1):
            name, count = next(iter(found.items()))
            raise Failed(
                Status.LIBRARY_CALL,
                f"PyTorch's {name} computes {count} elements of this call: a library does the work",
                SOLUTION,
            )
        if found:
            self.notes.append(f"PyTorch computes a little: {', '.join(found)}")
        self._ran("library calls", f"{len(heard)} operators heard at {one.workload.name}")

    def _left(self, one: Session) -> None:
        """Processes and threads that calls leave running."""
        side = one.sides[SOLUTION]
        one.fill()
        one.call(SOLUTION)
        threads = _threads(side.pid)
        for _ in range(_LEAK_CALLS):
            one.call(SOLUTION)
        grown = _threads(side.pid) - threads
        left = side.descendants()
        if left:
            raise Failed(Status.LEFT_BEHIND, f"its calls left {len(left)} processes running", SOLUTION)
        if grown >= _LEAK_THREADS:
            raise Failed(Status.LEFT_BEHIND, f"{_LEAK_CALLS} calls left {grown} threads running", SOLUTION)
        self._ran("nothing left behind", f"processes and threads after {_LEAK_CALLS} calls")

    def _times(self) -> None:
        """Whether a call on what the last call had is not computed; and whether weights are kept, and how many."""
        if not self._timed or self._interpreted:
            why = "the solution is interpreted" if self._interpreted else "nothing is timed"
            self.checks.append(Check(name="kept results by time", ran=False, how=why))
            return
        most = _MOST_TIMED[self._device]
        one = self._open(max(self._timed, key=lambda workload: self._size(workload, most)))
        inputs, weights = tuple(self._definition.tensor_inputs), self._weights
        share = repeats.share(one, same=inputs, known=weights)
        if share < repeats.KEPT:
            raise Failed(
                Status.CACHED_RESULT,
                f"a call on the inputs of the call before takes {share:.0%} of a fresh one's time, "
                "the quickest of each: its result is kept",
                SOLUTION,
            )
        self._ran(
            "kept results by time", f"a repeated call takes {share:.0%} of a fresh one at {one.workload.name}"
        )
        self._weight_cache(one)

    def _weight_cache(self, one: Session) -> None:
        if not self._weights:
            return
        if repeats.share(one, same=self._weights) > repeats.KEPT:
            self.checks.append(Check(name="weight cache", ran=True, how="none: known weights save no time"))
            return
        self.notes.append("it keeps work done on weights: right after updates in place, and bounded")
        self._ran("weight cache", "one is in use: it follows updates in place and is bounded")

    def _growth(self, one: Session) -> None:
        """Whether each new weight costs memory that is never given back."""
        size = sum(one.drawn[0][name].nbytes for name in self._weights)
        if not size:
            return
        one.fill()
        one.call(SOLUTION)
        before = self._memory(one)
        for _ in range(WEIGHTS):
            one.fill()
            one.call(SOLUTION)
        grown = self._memory(one) - before
        if grown > WEIGHTS // 2 * size + _LEAK_BYTES:
            raise Failed(
                Status.LEFT_BEHIND,
                f"{WEIGHTS} different weights grew its memory by {grown >> 20} MiB: its weight cache has no bound",
                SOLUTION,
            )
        self._ran("bounded memory", f"{WEIGHTS} different weights")

    def _size(self, workload: Workload, most: int) -> int:
        """For choosing the largest workload that is quick enough: by size, those with too many elements last."""
        size = self._definition.elements(workload)
        return size if size <= most else -size

    def _positive(self, workload: Workload) -> float:
        """Size, those without elements last: they may launch nothing."""
        return self._definition.elements(workload) or float("inf")

    def _memory(self, one: Session) -> int:
        """Bytes that the solution's process, or the GPU, has in use."""
        if one.device == "cpu":
            return int(psutil.Process(one.sides[SOLUTION].pid).memory_info().rss)
        import torch

        free, total = torch.cuda.mem_get_info()
        return int(total - free)


def _must(grade: Grade, status: Status, when: str) -> None:
    if grade.status is not Status.PASSED:
        raise Failed(status, f"{grade.detail} ({when})", SOLUTION)


def _edit(one: Session, before: Tensors, name: str) -> None:
    """Put `before` into the first slot with an element of one input changed; of a definition with a generator of
    its own, which may promise a range, to a value among those it draws."""
    own = one.file.inputs is not None
    _combine(one, lambda drawn: {**before, name: _edited(before[name], drawn[name], within=own)})


def _combine(one: Session, combined: Callable[[Tensors], Tensors]) -> None:
    """Put into the first slot what is made of a new draw and of earlier ones.

    A definition with a generator of its own may promise that no decision hangs on rounding, but only of whole
    draws: there it is made again until the reference's own sums agree and no choice hangs on rounding, and after
    TRIES a whole draw stands in.
    """
    own = one.file.inputs is not None
    for _ in range(TRIES if own else 1):
        one.write(0, combined(one.inputs.draw()))
        if not own or (one.holds_itself().status is Status.PASSED and one.decided()):
            return
    one.write(0, one.inputs.draw())


def _edited(tensor: torch.Tensor, fresh: torch.Tensor, *, within: bool) -> torch.Tensor:
    """A copy with one element changed to beyond the largest, so that sums and maxima depend on it; integers, whose
    values may have to fit each other, are drawn anew. `within`: changed to the largest of the fresh values, or to
    the smallest where it is as large."""
    if not tensor.is_floating_point():
        return fresh
    other = tensor.clone()
    flat = other.view(-1)
    at = random.SystemRandom().randrange(flat.numel())
    if not within:
        largest = float(flat.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max())
        flat[at] = 1.25 * largest + 1.0
        return other
    drawn = fresh.flatten().double()
    drawn = drawn[drawn.isfinite()]
    if drawn.numel():
        most, least = float(drawn.max()), float(drawn.min())
        flat[at] = least if float(flat[at]) == most else most
    return other


def _updated(weight: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """The weight after an optimizer's step; integers stay."""
    return weight if not weight.is_floating_point() else (weight - 0.1 * direction).to(weight.dtype)


def _threads(pid: int) -> int:
    try:
        return int(psutil.Process(pid).num_threads())
    except psutil.Error:
        return 0
