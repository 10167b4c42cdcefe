"""Operators of watched steps, and the differences between steps, which a graph would not repeat."""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.rules import Observation

CAPTURABLE = {"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "Adadelta", "RMSprop", "Rprop", "Adafactor"}
"""Optimizers that count their steps on the host unless they have capturable=True."""

COUNTS_ON_HOST: dict[str, Certainty] = {"LBFGS": "likely", "SparseAdam": "likely", "Adagrad": "look"}
"""Optimizers that always count on the host, with the certainty that this matters."""

_PACKAGE = str(Path(__file__).resolve().parents[2])
_CONCATENATIONS = {"aten.cat", "aten.hstack", "aten.vstack"}
_LISTED = 3


class UserLine(NamedTuple):
    """One line of the user's files."""

    file: str
    line: int
    function: str


class OperatorInput(NamedTuple):
    """One tensor that an operator reads."""

    shape: tuple[int, ...]
    outside: int | None
    """Address of a tensor from before the step; None if the step made it."""
    carried: bool
    """True if the previous step made it."""


class OperatorEvent(NamedTuple):
    """One call of an operator."""

    name: str
    """Name of the operator: `aten.mm`."""
    line: UserLine | None
    """Innermost line of the user's that led to the call; None if there is none."""
    inputs: tuple[OperatorInput, ...]
    outputs: tuple[tuple[int, ...], ...]
    """Shapes of the results."""
    numbers: tuple[float, ...]
    """Python numbers among the arguments."""
    module: str
    """Path of the innermost module whose forward was running."""
    optimizer: str
    """Class of the optimizer whose step was running."""

    @property
    def key(self) -> tuple[str, UserLine | None]:
        """Return the operator and its line, which must be the same in every step."""
        return self.name, self.line


def compare_steps(steps: Sequence[Sequence[OperatorEvent]]) -> list[Observation]:
    """List the differences between steps, each at the operator where it begins."""
    observations = [item for first, second in pairwise(steps) for item in _compare_paths(first, second)][:1]
    groups: dict[tuple[tuple[str, UserLine | None], ...], list[Sequence[OperatorEvent]]] = {}
    for step in steps:
        groups.setdefault(tuple(event.key for event in step), []).append(step)
    for group in groups.values():
        comparison = _GroupComparison()
        observations += [item for events in zip(*group, strict=True) for item in comparison.compare(events)]
    return observations


def _compare_paths(first: Sequence[OperatorEvent], second: Sequence[OperatorEvent]) -> Iterator[Observation]:
    """Yield an observation at the first operator that one step lacks, or whose order differs."""
    counts = Counter(event.key for event in first), Counter(event.key for event in second)
    if [event.key for event in first] == [event.key for event in second]:
        return
    for own, other, step in ((counts[0], counts[1], first), (counts[1], counts[0], second)):
        for event in step:
            if own[event.key] > other[event.key] and event.line:
                yield _observe("changing-path", f"`{event.name}` runs in some steps only", event)
                return
    event = next(a for a, b in zip(first, second, strict=False) if a.key != b.key)
    if event.line:
        yield _observe("changing-path", "the order of operators changes", event)


class _GroupComparison:
    """Comparison of steps with the same operators; consequences of a reported difference are left out."""

    def __init__(self) -> None:
        self._shapes: set[tuple[int, ...]] = set()
        self._addresses: set[int | None] = set()

    def compare(self, events: Sequence[OperatorEvent]) -> Iterator[Observation]:
        """Yield the differences of one operator, given its event in each step."""
        last = events[-1]
        columns = list(zip(*(event.inputs for event in events), strict=False))
        resized = [column for column in columns if len({tensor.shape for tensor in column}) > 1]
        if any(column[-1].outside is None for column in resized):
            return  # an earlier operator of the step made it, and was reported
        if resized:
            yield from self._compare_sizes(events, resized[0])
        elif len({event.outputs for event in events}) > 1:
            self._shapes |= {*last.outputs}
            sizes = _list_some([str(event.outputs[0]) if event.outputs else "" for event in events])
            yield _observe("changing-shape", f"`{last.name}` makes another size each step: {sizes}", last)
        else:
            if len({event.numbers for event in events}) > 1:
                yield _observe_number(events)
            yield from self._compare_addresses(last, columns)

    def _compare_sizes(
        self, events: Sequence[OperatorEvent], column: Sequence[OperatorInput]
    ) -> Iterator[Observation]:
        last, reported = events[-1], column[-1].shape in self._shapes
        self._shapes |= {column[-1].shape, *last.outputs}
        sizes = _list_some([str(tensor.shape) for tensor in column])
        if last.name in _CONCATENATIONS and any(tensor.carried for tensor in last.inputs):
            yield _observe("growing", f"torch.cat with a result of the previous step: {sizes}", last)
        elif not reported:
            yield _observe("changing-shape", f"an input of another size each step: {sizes}", last)

    def _compare_addresses(
        self, last: OperatorEvent, columns: Sequence[Sequence[OperatorInput]]
    ) -> Iterator[Observation]:
        moved = [
            column for column in columns if len({tensor.outside for tensor in column}) > 1 or column[-1].carried
        ]
        addresses = {column[-1].outside for column in moved}
        if addresses - self._addresses and not last.optimizer:
            carried = any(column[-1].carried for column in moved)
            origin = "that the previous step made" if carried else "that is elsewhere each step"
            yield _observe("new-address", f"`{last.name}` reads a tensor {origin}", last)
        self._addresses |= addresses


def _observe_number(events: Sequence[OperatorEvent]) -> Observation:
    last = events[-1]
    index = next(i for i in range(len(last.numbers)) if len({event.numbers[i : i + 1] for event in events}) > 1)
    numbers = _list_some([f"{event.numbers[index]:g}" for event in events if len(event.numbers) > index])
    if last.optimizer in CAPTURABLE:
        return _observe("optimizer", f"`{last.optimizer}` without capturable=True: {numbers}", last)
    if last.optimizer:
        return _observe("learning-rate", f"a number that changes in `{last.optimizer}`: {numbers}", last)
    return _observe("changing-number", f"a number that changes: {numbers}", last)


def _observe(kind: str, description: str, event: OperatorEvent) -> Observation:
    line = event.line or UserLine("", 1, "")
    return Observation(kind, description, line.file, line.line, "certain", line.function, event.module)


def is_user_file(file: str, folders: Sequence[str]) -> bool:
    """Return true if a file is below one of the folders, and belongs neither to a package nor to Warpsmith."""
    excluded = (*sysconfig.get_paths().values(), _PACKAGE)
    return file.startswith(tuple(f"{folder}/" for folder in folders)) and not file.startswith(excluded)


def _list_some(words: Sequence[str]) -> str:
    return ", ".join(words[:_LISTED]) + (", …" if len(words) > _LISTED else "")
