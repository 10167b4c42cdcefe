"""Table of a benchmark: CSV in stdout or in a file, read strictly, and the cost of each row."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpsmith.core.repo import STDOUT, RepoSettings
from warpsmith.errors import Misuse

_MOST_NAMES = 8


class BadTable(Misuse):
    """A benchmark's table lacks something that the settings say it has."""


class WrongResults(BadTable):
    """The check column says that a row's results were wrong."""


@dataclass(frozen=True)
class BenchmarkRow:
    """One row of the table."""

    name: str
    """Name of the row, from its key columns: `M=4096 N=1024`."""
    keys: dict[str, str]
    """Values of the key columns."""
    values: dict[str, float]
    """Values of the metric columns."""


def parse_table(settings: RepoSettings, text: str, where: str) -> dict[str, BenchmarkRow]:
    """Parse a table into rows by name.

    Lines before the header are ignored. In stdout, the table ends at the first line that is not a row.

    Args:
        settings: the columns of the table.
        text: the text that the benchmark wrote.
        where: name of the text in an error message.

    Raises:
        BadTable: a column is missing, a metric is no positive number, two rows share a name, or there is no row.
        WrongResults: the check column does not pass.
    """
    lines = [[field.strip() for field in line] for line in csv.reader(io.StringIO(text, newline=""))]
    start = _header(settings, lines, where)
    header = lines[start]
    rows: dict[str, BenchmarkRow] = {}
    for line in lines[start + 1 :]:
        if len(line) != len(header):
            if line and settings.csv != STDOUT:
                raise BadTable(f"{where}: a row has {len(line)} fields, the header {len(header)}: {line}.")
            break
        cells = dict(zip(header, line, strict=True))
        if any(cells[column] != value for column, value in settings.only.items()):
            continue
        row = _row(settings, cells, where)
        if row.name in rows:
            raise BadTable(f"{where} has two rows `{row.name}`; add the column that distinguishes them to `keys`.")
        rows[row.name] = row
    if not rows:
        only = f" where {settings.only}" if settings.only else ""
        raise BadTable(f"{where} has a header but no row{only}; correct the benchmark or the settings.")
    return rows


def row_costs(settings: RepoSettings, rows: Mapping[str, BenchmarkRow]) -> dict[tuple[str, str], float]:
    """Cost of each row, by row and metric; less is better.

    A metric that is better when higher costs its inverse; with scoring `combined` the metrics are summed.
    """
    if settings.scoring == "combined":
        together = " + ".join(settings.metrics)
        return {(name, together): sum(row.values.values()) for name, row in rows.items()}
    return {
        (name, metric): value if settings.metrics[metric] == "lower" else 1 / value
        for name, row in rows.items()
        for metric, value in row.values.items()
    }


def require_rows(rows: Mapping[str, BenchmarkRow], names: Sequence[str], where: str) -> dict[str, BenchmarkRow]:
    """Return the rows of these names; raises BadTable if one is missing."""
    missing = [name for name in names if name not in rows]
    if missing:
        raise BadTable(
            f"{where} lacks the rows {_format_names(missing)}; every row of the baseline must be there."
        )
    return {name: rows[name] for name in names}


def _header(settings: RepoSettings, lines: Sequence[Sequence[str]], where: str) -> int:
    if not any(lines):
        raise BadTable(f"{where} is empty; `benchmark` must write a table in CSV there (`csv` says where).")
    missing = {i: [c for c in settings.columns if c not in line] for i, line in enumerate(lines) if line}
    best = min(missing, key=lambda i: len(missing[i]))
    if missing[best]:
        has = (
            f"; its header has {_format_names(lines[best])}" if len(missing[best]) < len(settings.columns) else ""
        )
        raise BadTable(
            f"{where} lacks the column {_format_names(missing[best])}{has}; correct the benchmark or the settings."
        )
    return best


def _row(settings: RepoSettings, cells: Mapping[str, str], where: str) -> BenchmarkRow:
    keys = {column: cells[column] for column in settings.keys}
    name = " ".join(f"{column}={value}" for column, value in keys.items())
    if settings.check and cells[settings.check.column] != settings.check.passes:
        fault = f"`{settings.check.column}` is `{cells[settings.check.column]}`, not `{settings.check.passes}`"
        raise WrongResults(f"{where}, row {name}: {fault}.")
    values = {metric: _number(cells[metric], f"{where}, row {name}, {metric}") for metric in settings.metrics}
    return BenchmarkRow(name, keys, values)


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise BadTable(f"{where}: `{text}` is no positive number; such a row cannot be compared.")
    return value


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:_MOST_NAMES]) + more
