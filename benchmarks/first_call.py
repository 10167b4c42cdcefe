"""How long a user waits for the first call of `best(op)` in a process, with a cold and with a warm compiler cache.

A process imports PyTorch and `warpsmith`, makes inputs and waits for the device; then `best(op)` and its call are
timed to the end of the device's work, and a second call of the same shape after it.

    python benchmarks/first_call.py [OP ...] --out record.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from warpsmith import project
from warpsmith.core.base import this_minute
from warpsmith.errors import MachineLacks

PROCESS = """
import json, sys, time, warnings
import torch
from warpsmith import best
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.use import choice
warnings.simplefilter("error")  # a reference that runs instead is no first call of ours
file = definition_file.load_definition(choice.find_owning_project(sys.argv[1]).definition_path(sys.argv[1]))
workload = next(w for w in file.definition.workloads if w.set == "representative")
device = "cuda" if torch.cuda.is_available() else "cpu"
drawn = Inputs(file, workload, 1, device).draw()
drawn |= {name: workload.scalars[name] for name in file.definition.scalar_inputs if name in workload.scalars}
def timed(call):
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
timed(lambda: None)
first, second = (timed(lambda: best(sys.argv[1])(**drawn)) for _ in range(2))
name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
print(json.dumps({"workload": workload.name, "device": name, "first": first, "second": second}))
"""


def main() -> None:
    """Time every operator asked for and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", nargs="*", help="by default all with a version for this device")
    parser.add_argument("--out", help="where the record goes")
    given = parser.parse_args()
    found = {op: one for op in given.op or operators() if (one := _timed(op))}
    row = "{:24s} {:22s} {:>10s} {:>10s} {:>11s}"
    print(row.format("operator", "workload", "cold cache", "warm cache", "second call"))
    for op, (cold, warm) in found.items():
        seconds = (f"{value:.3f} s" for value in (cold["first"], warm["first"], warm["second"]))
        print(row.format(op, warm["workload"], *seconds))
    if given.out:
        record = {"measured": this_minute(), "seconds": found}
        Path(given.out).write_text(json.dumps(record, indent=2) + "\n")


def operators() -> list[str]:
    """Those of the project at hand."""
    return sorted(path.parent.name for path in project.find_project().kernels.glob("*/definition.py"))


def _timed(op: str) -> tuple[dict[str, object], dict[str, object]] | None:
    """A process with an empty cache and one that finds what it left; None where no version is for this device."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            return _process(op, cache), _process(op, cache)
        except MachineLacks as lacks:
            print(f"{op}: {lacks}", file=sys.stderr)
            return None


def _process(op: str, cache: str) -> dict[str, object]:
    caches = {"TRITON_CACHE_DIR": cache, "CUDA_CACHE_PATH": cache, "XDG_CACHE_HOME": cache}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, op], env=os.environ | caches, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MachineLacks(done.stderr.strip().splitlines()[-1])
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    main()
