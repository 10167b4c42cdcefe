"""Benchmark: runs the tests with pytest-benchmark's fixture, and prints the median of each as a row of CSV."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = ("test",)
FILES: list[str] = []


def main() -> None:
    """Run pytest on the files, or on the tests in BENCH_ROWS, and print the table."""
    requested = json.loads(os.environ.get("BENCH_ROWS", "null"))
    tests = FILES if requested is None else [row["test"] for row in requested]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "benchmark.json")
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-only")
        run = subprocess.run((*command, f"--benchmark-json={result}", *tests), stdout=sys.stderr, check=False)
        if run.returncode:
            sys.exit(run.returncode)
        benchmarks = json.loads(result.read_text())["benchmarks"]
    writer = csv.writer(sys.stdout)
    writer.writerow((*KEYS, "ms"))
    for benchmark in benchmarks:
        writer.writerow((benchmark["fullname"], f"{1e3 * benchmark['stats']['median']:.9g}"))


if __name__ == "__main__":
    main()
