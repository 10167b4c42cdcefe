"""Benchmark, one row of CSV for each workload. It measures nothing until ROWS and `prepare` are completed."""

from __future__ import annotations

import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

KEYS = ("n",)
ROWS: list[dict[str, object]] = []
"""Workloads, each with a value for every key, such as {"n": 1000}."""

LEAST_SECONDS = 0.2
"""Time that each row is measured for."""


def prepare(row: dict[str, object]) -> Callable[[], object]:
    """Return a function without arguments that calls the kernel once on this workload; make its inputs before."""
    sys.exit(f"{__file__} measures nothing yet: complete prepare() for {row}.")


def measure_call(call: Callable[[], object]) -> float:
    """Return the median of the milliseconds of a call. On a GPU, let the call wait for its result."""
    call()
    times: list[float] = []
    while len(times) < 5 or sum(times) < LEAST_SECONDS:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    if not ROWS:
        sys.exit(f"{__file__} measures nothing yet: complete ROWS and prepare().")
    requested = json.loads(os.environ.get("BENCH_ROWS", "null"))
    writer = csv.writer(sys.stdout)
    writer.writerow((*KEYS, "ms"))
    for row in ROWS:
        texts = {key: str(row[key]) for key in KEYS}
        if requested is None or texts in requested:
            writer.writerow((*texts.values(), f"{measure_call(prepare(row)):.9g}"))
            sys.stdout.flush()
