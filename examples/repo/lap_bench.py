"""Benchmark of lap.lapjv, one row of CSV for each workload: uniform, integer and tracked costs."""

from __future__ import annotations

import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from lap import lapjv

KEYS = ("kind", "n")
ROWS: list[dict[str, object]] = [
    {"kind": k, "n": n} for k in ("uniform", "integer", "distance") for n in (50, 200, 800)
]
LEAST_SECONDS = 0.3


def prepare(row: dict[str, object]) -> Callable[[], object]:
    """Return a call of the solver on a new matrix of costs."""
    n = int(row["n"])
    rng = np.random.default_rng(n)
    if row["kind"] == "uniform":
        cost = rng.random((n, n))
    elif row["kind"] == "integer":
        cost = rng.integers(1, 100, (n, n)).astype(float)
    else:  # positions of n objects in two frames, moved by a little
        a = rng.random((n, 2))
        b = a[rng.permutation(n)] + rng.normal(0, 0.3 / n**0.5, (n, 2))
        cost = np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))
    cost = np.ascontiguousarray(cost)
    return lambda: lapjv(cost)


def measure(call: Callable[[], object]) -> float:
    """Return the median of the milliseconds of processor time of a call."""
    call()
    times: list[float] = []
    while len(times) < 5 or sum(times) < LEAST_SECONDS:
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    requested = json.loads(os.environ.get("BENCH_ROWS", "null"))
    writer = csv.writer(sys.stdout)
    writer.writerow((*KEYS, "ms"))
    for row in ROWS:
        texts = {key: str(row[key]) for key in KEYS}
        if requested is None or texts in requested:
            writer.writerow((*texts.values(), f"{measure(prepare(row)):.9g}"))
            sys.stdout.flush()
