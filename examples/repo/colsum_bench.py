"""Benchmark, one row of CSV for each workload. Processor time under the interpreter."""

from __future__ import annotations

import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch
from flash_colsum.kernel_noncausal import _flash_colsum_non_batched

KEYS = ("tokens", "cls")
ROWS: list[dict[str, object]] = [
    {"tokens": n, "cls": c} for n, c in ((128, -1), (384, -1), (384, 1), (384, 100), (512, 4))
]
"""Workloads, each with a value for every key, such as {"n": 1000}."""

LEAST_SECONDS = 0.05
"""Time that each row is measured for."""


def prepare(row: dict[str, object]) -> Callable[[], object]:
    """Return a function without arguments that calls the kernel once on this workload; make its inputs before."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 2, int(row["tokens"]), 64).half()
    return lambda: _flash_colsum_non_batched(query, key, 0.125, int(row["cls"]))


def measure_call(call: Callable[[], object]) -> float:
    """Return the median of the milliseconds of a call. On a GPU, let the call wait for its result."""
    call()
    times: list[float] = []
    while len(times) < 3 or sum(times) < LEAST_SECONDS:
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
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
