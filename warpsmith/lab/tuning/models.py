"""Tuning models: the configurations that a version's file declares, and the table of those in force.

A file declares in comments what may be tried, and holds the table between two marks, in any language:

    # tune: BLOCK in 1024, 2048, 4096
    # tune: GRID in 1, 2, 4 (at launch)
    # tune: where element_bytes * BLOCK <= shared_memory_per_block_max
    # tuned: begin CONFIGS = (
        (1024, {"BLOCK": 1024, "GRID": 1}),  # for cols <= 1024 (None, {"BLOCK": 4096, "GRID": 2}),  # for any
    )
    # tuned: end

A row of the table is a line that gives every parameter as a plain number and ends in a comment with the shapes
that it is for. The first row whose comment holds applies. Tuning changes only those numbers and the text of the
first mark.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from pydantic import Field

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.base import Model, Name
from warpsmith.core.evaluation import Interval

Config = Mapping[str, int]
"""Parameter to value."""

MAX_CONFIGS = 4096
"""Largest number of configurations in a space; a larger space is no search but a lottery."""

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
    """One parameter of a configuration."""

    name: str
    """Name in the table's rows."""
    values: tuple[int, ...] = Field(min_length=1)
    """Values to try, in order: neighbours are one step apart."""
    at_launch: bool = False
    """True if it changes only how code is launched, so that equal code does not mean an equal configuration."""


class TuningRow(Model):
    """One line of the table: the configuration for a class of shapes."""

    line: int
    """Line in the file, from 0."""
    condition: str
    """Condition on the axes, such as `cols <= 1024`, or `any`."""
    config: dict[str, int]
    """Parameter to value."""


class Tunable(Model):
    """Declarations of a version's file."""

    parameters: tuple[Parameter, ...]
    """Parameters, in the order of the file."""
    where: tuple[str, ...]
    """Conditions on parameters, axes and the target's figures that every configuration must hold."""
    rows: tuple[TuningRow, ...]
    """Table in force, in order."""

    def row_for(self, axes: Mapping[str, int]) -> int | None:
        """Return the index of the first row that holds for these axes, or None.

        Raises:
            ValueError: a condition names something that is no axis.
        """
        indices = (
            index
            for index, row in enumerate(self.rows)
            if row.condition == "any" or condition_holds(row.condition, axes)
        )
        return next(indices, None)

    @property
    def size(self) -> int:
        """Number of configurations before any condition."""
        return prod(len(parameter.values) for parameter in self.parameters)

    def space(self, shapes: Sequence[Mapping[str, int]], figures: Mapping[str, int]) -> list[dict[str, int]]:
        """List the configurations that the conditions allow at all of these shapes.

        Args:
            shapes: axes of each workload that the configuration is for.
            figures: figures of the target, in bytes and counts.

        Raises:
            ValueError: a condition holds an unknown name, or the space is larger than `MAX_CONFIGS`.
        """
        if self.size > MAX_CONFIGS:
            raise ValueError(f"the space has {self.size} configurations; declare at most {MAX_CONFIGS}")
        names = [parameter.name for parameter in self.parameters]
        every = [dict(zip(names, values, strict=True)) for values in product(*(p.values for p in self.parameters))]
        scopes = [{**figures, **axes} for axes in shapes]
        return [
            config
            for config in every
            if all(condition_holds(text, {**scope, **config}) for scope in scopes for text in self.where)
        ]

    def distance(self, first: Config, second: Config) -> int:
        """Count the steps between two configurations, over all parameters; a value outside the space is one
        step."""
        return sum(self._steps(parameter, first, second) for parameter in self.parameters)

    def _steps(self, parameter: Parameter, first: Config, second: Config) -> int:
        left, right, values = first[parameter.name], second[parameter.name], parameter.values
        if left in values and right in values:
            return abs(values.index(left) - values.index(right))
        return int(left != right)

    def at_launch(self, config: Config) -> dict[str, int]:
        """Return the part of a configuration that compiled code does not show."""
        return {p.name: config[p.name] for p in self.parameters if p.at_launch}


class ScreenedConfig(Model):
    """One configuration that was tried."""

    condition: str
    """Condition of the row that it was tried for."""
    config: dict[str, int]
    """Parameter to value."""
    step: str
    """`hand-picked`, `slope`, `search` or `again`: once more in fresh processes."""
    seconds: float | None = None
    """Geometric mean over the workloads of the row; null where it was not timed."""
    speedup: float | None = None
    """Speedup over the hand-picked configuration, timed side by side; null where it was not timed."""
    interval: Interval | None = None
    """The 95 % interval of the speedup."""
    note: str = ""
    """Reason why it was not timed or does not count: it does not build, is wrong, or has the code of another."""


class Tuning(Model):
    """Configurations that `warpsmith tune` tried, and the resulting table."""

    version: str
    """Version that was tuned, such as `triton/v3`."""
    definition: Name
    """Name of the operator."""
    target: str
    """Kind of device."""
    device: str
    """Name of the device."""
    tried: tuple[ScreenedConfig, ...]
    """Configurations in the order in which they were tried."""
    pruned: int
    """Configurations that the conditions left out, over all rows."""
    left: int
    """Configurations that the time did not reach, over all rows."""
    seconds: float
    """Wall time in seconds."""
    rows: tuple[TuningRow, ...]
    """Resulting table."""
    written: str | None = None
    """File of the new version; null where no row changed."""


def read_tunable(source: str) -> Tunable:
    """Read the declarations of a file.

    Raises:
        ValueError: it declares nothing, or breaks the form; one sentence without the file's name.
    """
    parameters, where = _read_declarations(source)
    rows = tuple(_read_rows(source.splitlines(), [parameter.name for parameter in parameters]))
    if not rows:
        raise ValueError(
            "no line between `tuned: begin` and `tuned: end` gives every parameter as a number and ends in "
            "a comment such as `for cols <= 1024` or `for any`"
        )
    return Tunable(parameters=parameters, where=where, rows=rows)


def write_config(source: str, row: TuningRow, config: Config) -> str:
    """Return the file with another configuration in one row; only the numbers change."""
    lines = source.splitlines(keepends=True)
    for name, value in config.items():
        lines[row.line] = _assignment(name).sub(rf"\g<1>{value}", lines[row.line], count=1)
    return "".join(lines)


def sign_table(source: str, origin: str) -> str:
    """Return the file with the origin of the numbers in the table's first mark."""
    return re.sub(
        r"^(\s*(?:#|//)\s*tuned: begin).*$", lambda mark: f"{mark[1]}, {origin}", source, count=1, flags=re.M
    )


def condition_holds(condition: str, names: Mapping[str, int]) -> bool:
    """Evaluate a condition: comparisons of arithmetic, joined by `and`.

    Raises:
        ValueError: it is no condition, or holds an unknown name.
    """
    return all(_comparison_holds(part, names) for part in condition.split(" and "))


def sort_by_distance(tunable: Tunable, space: Iterable[Config], best: Config) -> list[Config]:
    """Sort configurations by their distance from the best; equal ones keep the order of the space."""
    return sorted(space, key=lambda config: tunable.distance(config, best))


def _comparison_holds(text: str, names: Mapping[str, int]) -> bool:
    parts = _COMPARISON.split(text)
    if len(parts) != 3:
        raise ValueError(f"`{text.strip()}` is no comparison; write it as `BLOCK * 4 <= 65536`")
    left, order, right = parts
    return _ORDERS[order](evaluate(left.strip(), names), evaluate(right.strip(), names))


def _read_declarations(source: str) -> tuple[tuple[Parameter, ...], tuple[str, ...]]:
    parameters: list[Parameter] = []
    where: list[str] = []
    for text in _DECLARED.findall(source):
        if text.startswith("where "):
            where.append(text.removeprefix("where "))
            continue
        match = _PARAMETER.fullmatch(text)
        if match is None:
            raise ValueError(f"`tune: {text}` is neither `NAME in 1, 2, 4` nor `where ...`")
        values = tuple(int(value) for value in match[2].split(","))
        parameters.append(Parameter(name=match[1], values=values, at_launch=bool(match[3])))
    if not parameters:
        raise ValueError("it declares nothing to tune; add comments such as `tune: BLOCK in 1024, 2048`")
    return tuple(parameters), tuple(where)


def _read_rows(lines: Sequence[str], names: Sequence[str]) -> Iterator[TuningRow]:
    inside = False
    for number, line in enumerate(lines):
        if mark := _MARK.match(line):
            inside = mark[1] == "begin"
            continue
        condition, assignments = _FOR.search(line), [_assignment(name).search(line) for name in names]
        if inside and condition and all(assignments):
            config = {name: int(match[2]) for name, match in zip(names, assignments, strict=True) if match}
            yield TuningRow(line=number, condition=condition[1], config=config)


def _assignment(name: str) -> re.Pattern[str]:
    """Return the pattern of `NAME = 4`, `"NAME": 4` and `.NAME = 4`, in any language."""
    return re.compile(rf"""(\b{name}\b["']?\s*[:=]\s*)(-?\d+)\b""")
