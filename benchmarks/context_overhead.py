"""How much longer a judgement takes on another machine than on this one, and how many bytes travel.

A small version is judged in turn here and in a context of the same machine (an SSH server on loopback). The
difference is what the context costs: the connection, the bundle, the start of the lab there, and the outcome. Both
are whole commands in fresh processes, `judge --check`, which times nothing. The context is one of the user's own,
and warm: it was used before.

    python benchmarks/context_overhead.py --context lab --out record.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpsmith.campaign import lab_requests
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Manifest
from warpsmith.execution.bundle import pack_job
from warpsmith.execution.contexts import LOCAL, find_context
from warpsmith.execution.job import Job
from warpsmith.execution.lab_copy import LabCopy
from warpsmith.execution.remote import RemoteMachine
from warpsmith.lab.machine import provenance, system
from warpsmith.project import find_project

VERSION = "kernels/square/cpp/v1.cpp"
FILES = {
    "warpsmith.toml": "",
    "kernels/square/definition.py": """\
from warpsmith import Definition, TensorSpec, Workload
definition = Definition(
    name="square", description="y = x * x", axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=(Workload(name="large", axes={"n": 5000}), Workload(name="tail", axes={"n": 7}, set="odd")),
)
def reference(x):
    return x * x
""",
    VERSION: """\
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  for (int64_t i = 0; i < x.size(0); ++i) y.data<float>()[i] = x.data<float>()[i] * x.data<float>()[i];
}
""",
}
"""An operator whose judgement is short."""


def main() -> None:
    """Judge in turn and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", required=True)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("context_overhead.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warpsmith-overhead-") as folder:
        record = _measure(Path(folder), options.context, options.pairs)
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(
        f"overhead {record['overhead_seconds']:.2f} s, median of {options.pairs};"
        f" bundle {record['bundle_bytes']} bytes, lab {record['lab_bytes']} bytes"
    )


def _measure(folder: Path, context: str, count: int) -> dict[str, Any]:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    own = find_project(folder)
    _, solution = lab_requests.locate_version(own, folder / VERSION)
    manifest = Manifest(
        campaign="none", target_op="square", target="cpu", target_language="cpp", created=this_minute()
    )
    bundle = pack_job(own, Job(kind="judge", manifest=manifest, solution=solution.name), solution.path)
    machine = RemoteMachine(find_context(own, context))
    command = [
        sys.executable,
        "-P",
        "-m",
        "warpsmith",
        "judge",
        VERSION,
        "--check",
        "--target",
        "cpu",
        "--context",
    ]

    def judge(where: str) -> float:
        return _seconds(
            lambda: subprocess.run([*command, where], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        )

    for where in (LOCAL, context):
        judge(where)  # brings the lab there, and fills caches
    pairs = [(judge(LOCAL), judge(context)) for _ in range(count)]
    differences = sorted(there - local for local, there in pairs)
    return {
        "measured": this_minute(),
        "load": os.getloadavg()[1],
        "processor": f"{system.processor_model()}, {system.usable_cores()} cores",
        "lab_sha256": provenance.lab_sha256(),
        "local_seconds": [local for local, _ in pairs],
        "context_seconds": [there for _, there in pairs],
        "overhead_seconds": statistics.median(differences),
        "overhead_range": [differences[0], differences[-1]],
        "connection_seconds": statistics.median(_seconds(machine.probe) for _ in range(count)),
        "bundle_bytes": len(bundle.data),
        "lab_bytes": len(LabCopy().pack()),
    }


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
