"""Rows of a profiler run as text by column, whichever file they come from, and the reader of CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from warpsmith.errors import Misuse
from warpsmith.profiling.rocprof.metrics import COLUMNS

START, END = "Start_Timestamp", "End_Timestamp"
"""Columns of a launch's begin and end, in nanoseconds."""

CsvRow = dict[str, str]
"""One row, by the column names of rocprofv3's CSV files."""


class Tables(NamedTuple):
    """Rows of one run."""

    counters: list[CsvRow]
    """One row for each counter of each launch."""
    kernels: list[CsvRow]
    """One row for each launch, with its time."""
    agents: list[CsvRow]
    """One row for each device."""


def csv_rows(file: Path, texts: tuple[str, ...], numbers: tuple[str, ...]) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file after checking its columns, the last ones for numbers.

    Raises:
        Misuse: a column is missing, or a row does not match the header or has a value that is not a number.
    """
    with file.open(newline="", errors="replace") as lines:
        reader = csv.DictReader(lines)
        header = reader.fieldnames or ()
        missing = [column for column in (*texts, *numbers) if column not in header]
        if missing:
            raise Misuse(
                f"{file} lacks the columns {', '.join(missing)}: it is not a rocprofv3 file, or is truncated."
            )
        checked = {*numbers, *(column for column in (*COLUMNS, START, END) if column in header)}
        try:
            for row in reader:
                _check(row, checked)
                yield row
        except (csv.Error, ValueError):
            raise Misuse(f"{file} is damaged at line {reader.line_num}: profile again.") from None


def _check(row: CsvRow, columns: Iterable[str]) -> None:
    """Raise ValueError for a row that does not match the header, or with an invalid number or extent."""
    if None in row or None in row.values():
        raise ValueError(row)
    for column in columns:
        number = float(row[column]) if column == "Counter_Value" else int(row[column])
        if column.startswith("Workgroup_Size") and number < 1:
            raise ValueError(column)
