"""What several steps did, operator by operator, and what differs: a graph would repeat one of them."""

from __future__ import annotations

import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.rules import Finding

CAPTURABLE = {"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "Adadelta", "RMSprop", "Rprop", "Adafactor"}
"""Optimizers that count their steps, on the host unless capturable=True is given."""

COUNTS_ON_HOST: dict[str, Certainty] = {"LBFGS": "likely", "SparseAdam": "likely", "Adagrad": "look"}
"""Optimizers that count on the host whatever is given, and how much that matters."""

_OWN = str(Path(__file__).resolve().parents[2])
_CATS = {"aten.cat", "aten.hstack", "aten.vstack"}
_SHOWN = 3


class Place(NamedTuple):
    """A line of the user's files."""

    file: str
    line: int
    function: str


class Input(NamedTuple):
    """A tensor that an operator was given."""

    shape: tuple[int, ...]
    outside: int | None
    """Its address where it was made before the step; None: the step made it."""
    carried: bool
    """Whether the step before made it."""


class Event(NamedTuple):
    """One operator that ran."""

    name: str
    """`aten.mm`."""
    place: Place | None
    """The innermost line of the user's; None: there is none."""
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[int, ...], ...]
    """Their shapes."""
    numbers: tuple[float, ...]
    """Python numbers among its arguments."""
    module: str
    """The module whose forward was running."""
    optimizer: str
    """Class of the optimizer whose step was running."""

    @property
    def key(self) -> tuple[str, Place | None]:
        """What must be the same in every step."""
        return self.name, self.place


def compare(steps: Sequence[Sequence[Event]]) -> list[Finding]:
    """What differs from step to step, at the operators where it begins."""
    found = [finding for one, other in pairwise(steps) for finding in _paths(one, other)][:1]
    alike: dict[tuple[tuple[str, Place | None], ...], list[Sequence[Event]]] = {}
    for step in steps:
        alike.setdefault(tuple(event.key for event in step), []).append(step)
    for same in alike.values():
        group = _Group()
        found += [finding for events in zip(*same, strict=True) for finding in group.told(events)]
    return found


def _paths(one: Sequence[Event], other: Sequence[Event]) -> Iterator[Finding]:
    counts = Counter(event.key for event in one), Counter(event.key for event in other)
    if [event.key for event in one] == [event.key for event in other]:
        return
    for mine, theirs, step in ((counts[0], counts[1], one), (counts[1], counts[0], other)):
        for event in step:
            if mine[event.key] > theirs[event.key] and event.place:
                what = f"`{event.name}` runs in some steps only"
                yield _finding("changing-path", what, event)
                return
    event = next(a for a, b in zip(one, other, strict=False) if a.key != b.key)
    if event.place:
        yield _finding("changing-path", "operators come in another order", event)


class _Group:
    """Steps of the same operators; what follows from a difference that was told is not told again."""

    def __init__(self) -> None:
        self._shapes: set[tuple[int, ...]] = set()
        self._addresses: set[int | None] = set()

    def told(self, events: Sequence[Event]) -> Iterator[Finding]:
        """Of one operator in each of the steps."""
        last = events[-1]
        columns = list(zip(*(event.inputs for event in events), strict=False))
        sized = [column for column in columns if len({given.shape for given in column}) > 1]
        if any(column[-1].outside is None for column in sized):
            return  # follows from what an earlier operator made
        if sized:
            yield from self._sized(events, sized[0])
        elif len({event.outputs for event in events}) > 1:
            self._shapes |= {*last.outputs}
            made = _told([str(event.outputs[0]) if event.outputs else "" for event in events])
            yield _finding("changing-shape", f"`{last.name}` makes another size each step: {made}", last)
        else:
            if len({event.numbers for event in events}) > 1:
                yield _number(events)
            yield from self._moved(last, columns)

    def _sized(self, events: Sequence[Event], column: Sequence[Input]) -> Iterator[Finding]:
        last, known = events[-1], column[-1].shape in self._shapes
        self._shapes |= {column[-1].shape, *last.outputs}
        shown = _told([str(given.shape) for given in column])
        if last.name in _CATS and any(given.carried for given in last.inputs):
            yield _finding("growing", f"torch.cat of what the step before made: {shown}", last)
        elif not known:
            yield _finding("changing-shape", f"an input of another size each step: {shown}", last)

    def _moved(self, last: Event, columns: Sequence[Sequence[Input]]) -> Iterator[Finding]:
        moved = [
            column for column in columns if len({given.outside for given in column}) > 1 or column[-1].carried
        ]
        addresses = {column[-1].outside for column in moved}
        if addresses - self._addresses and not last.optimizer:
            what = (
                "made by the step before" if any(c[-1].carried for c in moved) else "that lies elsewhere each step"
            )
            yield _finding("new-address", f"`{last.name}` reads a tensor {what}", last)
        self._addresses |= addresses


def _number(events: Sequence[Event]) -> Finding:
    last = events[-1]
    place = next(i for i in range(len(last.numbers)) if len({event.numbers[i : i + 1] for event in events}) > 1)
    shown = _told([f"{event.numbers[place]:g}" for event in events if len(event.numbers) > place])
    if last.optimizer in CAPTURABLE:
        return _finding("optimizer", f"`{last.optimizer}` without capturable=True: {shown}", last)
    if last.optimizer:
        return _finding("learning-rate", f"a number that changes in `{last.optimizer}`: {shown}", last)
    return _finding("changing-number", f"a number that changes: {shown}", last)


def _finding(kind: str, what: str, event: Event) -> Finding:
    place = event.place or Place("", 1, "")
    return Finding(kind, what, place.file, place.line, "certain", place.function, event.module)


def is_users(file: str, folders: Sequence[str]) -> bool:
    """Whether a file is below these folders, and neither installed nor Warpsmith's."""
    apart = (*sysconfig.get_paths().values(), _OWN)
    return file.startswith(tuple(f"{folder}/" for folder in folders)) and not file.startswith(apart)


def _told(words: Sequence[str]) -> str:
    return ", ".join(words[:_SHOWN]) + (", …" if len(words) > _SHOWN else "")
