"""A benchmark's table: CSV in stdout or in a file, read strictly, and what each row costs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpsmith.core.repo import STDOUT, RepoSettings
from warpsmith.errors import Misuse

_SHOWN = 8


class BadTable(Misuse):
    """A benchmark's table lacks what the contract says it has."""


class WrongResults(BadTable):
    """The check column says that a row's results were wrong."""


@dataclass(frozen=True)
class BenchmarkRow:
    """One row that counts."""

    name: str
    """Its key columns: `M=4096 N=1024`."""
    keys: dict[str, str]
    """Key column to value."""
    values: dict[str, float]
    """Metric column to value."""


def parse_table(contract: RepoSettings, text: str, where: str) -> dict[str, BenchmarkRow]:
    """The rows of a table by name.

    Lines before the header are no part of it; in stdout, nor are those from the first one on that is no row.

    Args:
        contract: which columns it has.
        text: what was written.
        where: what to call it in an error.

    Raises:
        BadTable: a column is missing, a metric is no positive number, two rows have one name, or there is no row.
        WrongResults: the check column does not pass.
    """
    lines = [[field.strip() for field in line] for line in csv.reader(io.StringIO(text, newline=""))]
    start = _header(contract, lines, where)
    header = lines[start]
    rows: dict[str, BenchmarkRow] = {}
    for line in lines[start + 1 :]:
        if len(line) != len(header):
            if line and contract.csv != STDOUT:
                raise BadTable(f"{where}: a row has {len(line)} fields, the header {len(header)}: {line}.")
            break
        found = dict(zip(header, line, strict=True))
        if any(found[column] != value for column, value in contract.only.items()):
            continue
        row = _row(contract, found, where)
        if row.name in rows:
            raise BadTable(f"{where} has two rows `{row.name}`; name the column that tells them apart in `keys`.")
        rows[row.name] = row
    if not rows:
        only = f" where {contract.only}" if contract.only else ""
        raise BadTable(f"{where} has a header but no row{only}; mend the benchmark or the contract.")
    return rows


def row_costs(contract: RepoSettings, rows: Mapping[str, BenchmarkRow]) -> dict[tuple[str, str], float]:
    """What each row costs, by row and metric: less is better.

    A metric that is better when higher costs its inverse; with scoring `combined` the metrics are summed.
    """
    if contract.scoring == "combined":
        together = " + ".join(contract.metrics)
        return {(name, together): sum(row.values.values()) for name, row in rows.items()}
    return {
        (name, metric): value if contract.metrics[metric] == "lower" else 1 / value
        for name, row in rows.items()
        for metric, value in row.values.items()
    }


def require_rows(rows: Mapping[str, BenchmarkRow], wanted: Sequence[str], where: str) -> dict[str, BenchmarkRow]:
    """The wanted rows; raises BadTable where one is not there."""
    lacking = [name for name in wanted if name not in rows]
    if lacking:
        raise BadTable(f"{where} lacks the rows {_listed(lacking)}; every row of the baseline must be there.")
    return {name: rows[name] for name in wanted}


def _header(contract: RepoSettings, lines: Sequence[Sequence[str]], where: str) -> int:
    if not any(lines):
        raise BadTable(f"{where} is empty; `benchmark` must write a table in CSV there (`csv` says where).")
    lacking = {i: [c for c in contract.columns if c not in line] for i, line in enumerate(lines) if line}
    best = min(lacking, key=lambda i: len(lacking[i]))
    if lacking[best]:
        has = f"; its header has {_listed(lines[best])}" if len(lacking[best]) < len(contract.columns) else ""
        raise BadTable(
            f"{where} lacks the column {_listed(lacking[best])}{has}; mend the benchmark or the contract."
        )
    return best


def _row(contract: RepoSettings, found: Mapping[str, str], where: str) -> BenchmarkRow:
    keys = {column: found[column] for column in contract.keys}
    name = " ".join(f"{column}={value}" for column, value in keys.items())
    if contract.check and found[contract.check.column] != contract.check.passes:
        what = f"`{contract.check.column}` is `{found[contract.check.column]}`, not `{contract.check.passes}`"
        raise WrongResults(f"{where}, row {name}: {what}.")
    values = {metric: _number(found[metric], f"{where}, row {name}, {metric}") for metric in contract.metrics}
    return BenchmarkRow(name, keys, values)


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise BadTable(f"{where}: `{text}` is no positive number; such a row cannot be compared.")
    return value


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"`{name}`" for name in names[:_SHOWN]) + more
