"""Tuning: the configurations that a version's file declares, and the table of those that are in force.

A file says in comments what may be tried, and holds the table between two marks, in any language:

    # tune: BLOCK in 1024, 2048, 4096
    # tune: GRID in 1, 2, 4 (at launch)
    # tune: where element_bytes * BLOCK <= shared_memory_per_block_max
    # tuned: begin
    CONFIGS = (
        (1024, {"BLOCK": 1024, "GRID": 1}),  # for cols <= 1024
        (None, {"BLOCK": 4096, "GRID": 2}),  # for any
    )
    # tuned: end

A row of the table is a line that gives every parameter as a plain number and ends in a comment that says for which
shapes: the first row that holds is the one. Only those numbers are changed, and what the first mark says.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from pydantic import Field

from warpsmith.core.base import Model, Name
from warpsmith.core.evaluation import Interval
from warpsmith.core.expression import evaluate

Config = Mapping[str, int]
"""Parameter to value."""

MOST = 4096
"""Configurations of a space at most: a larger one is no search but a lottery."""

_DECLARED = re.compile(r"^\s*(?:#|//)\s*tune:\s*(.+?)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"([A-Za-z_]\w*) in (-?\d+(?:\s*,\s*-?\d+)*)(\s*\(at launch\))?")
_MARK = re.compile(r"^\s*(?:#|//)\s*tuned: (begin|end)\b")
_FOR = re.compile(r"(?:#|//)\s*for (.+?)\s*$")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile("(<=|>=|==|<|>)")


class Parameter(Model):
    """One thing that may be chosen."""

    name: str
    """As the table's rows call it."""
    values: tuple[int, ...] = Field(min_length=1)
    """What may be tried, in order: neighbours are one step apart."""
    at_launch: bool = False
    """Whether it changes only how code is launched: then equal code does not mean an equal configuration."""


class Row(Model):
    """One line of the table: the configuration of a class of shapes."""

    line: int
    """Its line in the file, from 0."""
    condition: str
    """For which axes it holds: `cols <= 1024`, or `any`."""
    config: dict[str, int]
    """Parameter to value."""


class Tunable(Model):
    """What a version's file declares."""

    parameters: tuple[Parameter, ...]
    """In the order of the file."""
    where: tuple[str, ...]
    """Conditions on parameters, axes and the target's figures that every configuration must hold."""
    rows: tuple[Row, ...]
    """The table in force, in order."""

    def row(self, axes: Mapping[str, int]) -> int | None:
        """The index of the first row that holds for these axes; None: no row does.

        Raises:
            ValueError: a condition names what is no axis.
        """
        found = (k for k, row in enumerate(self.rows) if row.condition == "any" or holds(row.condition, axes))
        return next(found, None)

    @property
    def size(self) -> int:
        """Configurations before any condition."""
        return prod(len(parameter.values) for parameter in self.parameters)

    def space(self, shapes: Sequence[Mapping[str, int]], figures: Mapping[str, int]) -> list[dict[str, int]]:
        """Every configuration that the arithmetic of the conditions allows at all of these shapes.

        Args:
            shapes: the axes of the workloads that it is for.
            figures: the target's, in bytes and counts.

        Raises:
            ValueError: a condition holds an unknown name, or the space is larger than `MOST`.
        """
        if self.size > MOST:
            raise ValueError(f"the space has {self.size} configurations; declare at most {MOST}")
        names = [parameter.name for parameter in self.parameters]
        every = [dict(zip(names, values, strict=True)) for values in product(*(p.values for p in self.parameters))]
        known = [{**figures, **axes} for axes in shapes]
        return [c for c in every if all(holds(text, {**one, **c}) for one in known for text in self.where)]

    def distance(self, one: Config, other: Config) -> int:
        """Steps between two configurations, over all parameters; a value outside of the space is one step away."""
        return sum(self._steps(parameter, one, other) for parameter in self.parameters)

    def _steps(self, parameter: Parameter, one: Config, other: Config) -> int:
        ours, theirs, values = one[parameter.name], other[parameter.name], parameter.values
        if ours in values and theirs in values:
            return abs(values.index(ours) - values.index(theirs))
        return int(ours != theirs)

    def at_launch(self, config: Config) -> dict[str, int]:
        """The part of a configuration that compiled code does not show."""
        return {p.name: config[p.name] for p in self.parameters if p.at_launch}


class Tried(Model):
    """One configuration that was looked at."""

    condition: str
    """The row that it was tried for."""
    config: dict[str, int]
    """Parameter to value."""
    step: str
    """`hand-picked`, `slope`, `search` or `again`: once more in fresh processes."""
    seconds: float | None = None
    """Geometric mean over the workloads of the row; null where it was not timed."""
    speedup: float | None = None
    """Over the hand-picked configuration, timed side by side; null where it was not timed."""
    interval: Interval | None = None
    """The 95 % interval of the speedup."""
    note: str = ""
    """Why it was not timed, or does not count: it does not build, is wrong, or is the code of another."""


class Tuning(Model):
    """What `warpsmith tune` tried, and what came of it."""

    version: str
    """The version that was tuned, as `triton/v3`."""
    definition: Name
    """Its operator."""
    target: str
    """The device kind."""
    device: str
    """The device."""
    tried: tuple[Tried, ...]
    """In order."""
    pruned: int
    """Configurations that the conditions left out, over all rows."""
    left: int
    """Configurations that the time did not reach, over all rows."""
    seconds: float
    """Wall time."""
    rows: tuple[Row, ...]
    """The table that came out."""
    written: str | None = None
    """The new version's file; null where no row changed."""


def read(source: str) -> Tunable:
    """What a file declares.

    Raises:
        ValueError: it declares nothing, or breaks the form; one sentence without the file's name.
    """
    parameters, where = _declared(source)
    rows = tuple(_rows(source.splitlines(), [parameter.name for parameter in parameters]))
    if not rows:
        raise ValueError(
            "no line between `tuned: begin` and `tuned: end` gives every parameter as a number and ends in "
            "a comment such as `for cols <= 1024` or `for any`"
        )
    return Tunable(parameters=parameters, where=where, rows=rows)


def write(source: str, row: Row, config: Config) -> str:
    """The file with another configuration in one row: only the numbers change."""
    lines = source.splitlines(keepends=True)
    for name, value in config.items():
        lines[row.line] = _assigned(name).sub(rf"\g<1>{value}", lines[row.line], count=1)
    return "".join(lines)


def signed(source: str, by: str) -> str:
    """The file with its table's first mark saying where the numbers come from."""
    return re.sub(
        r"^(\s*(?:#|//)\s*tuned: begin).*$", lambda mark: f"{mark[1]}, {by}", source, count=1, flags=re.M
    )


def holds(condition: str, names: Mapping[str, int]) -> bool:
    """Whether a condition holds: comparisons of arithmetic, joined by `and`.

    Raises:
        ValueError: it is none, or holds an unknown name.
    """
    return all(_compared(part, names) for part in condition.split(" and "))


def nearest(tunable: Tunable, space: Iterable[Config], best: Config) -> list[Config]:
    """Configurations by their distance from the best, the order of the space among equals."""
    return sorted(space, key=lambda config: tunable.distance(config, best))


def _compared(text: str, names: Mapping[str, int]) -> bool:
    parts = _COMPARISON.split(text)
    if len(parts) != 3:
        raise ValueError(f"`{text.strip()}` is no comparison; write it as `BLOCK * 4 <= 65536`")
    left, order, right = parts
    return _ORDERS[order](evaluate(left.strip(), names), evaluate(right.strip(), names))


def _declared(source: str) -> tuple[tuple[Parameter, ...], tuple[str, ...]]:
    parameters: list[Parameter] = []
    where: list[str] = []
    for text in _DECLARED.findall(source):
        if text.startswith("where "):
            where.append(text.removeprefix("where "))
            continue
        found = _PARAMETER.fullmatch(text)
        if found is None:
            raise ValueError(f"`tune: {text}` is neither `NAME in 1, 2, 4` nor `where ...`")
        values = tuple(int(value) for value in found[2].split(","))
        parameters.append(Parameter(name=found[1], values=values, at_launch=bool(found[3])))
    if not parameters:
        raise ValueError("it declares nothing to tune; add comments such as `tune: BLOCK in 1024, 2048`")
    return tuple(parameters), tuple(where)


def _rows(lines: Sequence[str], names: Sequence[str]) -> Iterator[Row]:
    inside = False
    for number, line in enumerate(lines):
        if mark := _MARK.match(line):
            inside = mark[1] == "begin"
            continue
        said, found = _FOR.search(line), [_assigned(name).search(line) for name in names]
        if inside and said and all(found):
            config = {name: int(match[2]) for name, match in zip(names, found, strict=True) if match}
            yield Row(line=number, condition=said[1], config=config)


def _assigned(name: str) -> re.Pattern[str]:
    """`NAME = 4`, `"NAME": 4`, `.NAME = 4`, in whatever language."""
    return re.compile(rf"""(\b{name}\b["']?\s*[:=]\s*)(-?\d+)\b""")
