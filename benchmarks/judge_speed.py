"""How long one warm judgement takes, against the same work done by KernelBench's steps, in one run.

Ours: one candidate of an operator at its representative workloads, correctness and paired timing against the
best version and the reference, the worker host being up and the kernels compiled once before. The sanitizers,
which a version meets that would be accepted, are timed apart.
Theirs, a workload at a time: a fresh process imports torch and the candidate, lets it compile, compares five
random inputs with the reference, and times a hundred calls behind an L2 flush each.

    python benchmarks/judge_speed.py OP CANDIDATE BEST --target h200 --out record.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from warpsmith import project
from warpsmith.campaign import lab_requests
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Manifest
from warpsmith.lab.gate import judge
from warpsmith.lab.workers.worker_host import WorkerHost

STEPS = """
import importlib.util, json, sys
import torch
def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
definition, solution = load(sys.argv[1], "definition"), load(sys.argv[2], "solution")
workload = next(w for w in definition.definition.workloads if w.name == sys.argv[3])
rows, cols = workload.axes["rows"], workload.axes["cols"]
draw = lambda: torch.randn(rows, cols, device="cuda").to(getattr(torch, workload.dtype))
for trial in range(5):
    x = draw()
    torch.testing.assert_close(solution.run(x), definition.reference(x), rtol=1e-2, atol=1e-2)
x, flush, times = draw(), torch.empty(256 << 20, dtype=torch.uint8, device="cuda"), []
for warm in range(3):
    solution.run(x)
for trial in range(100):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.fill_(42)
    start.record()
    solution.run(x)
    end.record()
    torch.cuda.synchronize()
    times.append(start.elapsed_time(end))
print(json.dumps(sum(times) / len(times)))
"""


def main() -> None:
    """Run both and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op")
    parser.add_argument("candidate", type=Path)
    parser.add_argument("best", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", type=Path, default=Path("judge_speed.json"))
    options = parser.parse_args()
    here = project.find_project()
    _, candidate = lab_requests.locate_version(here, options.candidate)
    _, best = lab_requests.locate_version(here, options.best)
    manifest = Manifest(
        campaign="none",
        target_op=options.op,
        target=options.target,
        target_language="triton",
        created=this_minute(),
    )
    request = lab_requests.lab_request(here, manifest, candidate, lambda _: None, best=best)
    workloads = request.file.definition.select("representative")
    with WorkerHost("cuda") as host:
        full = judge.judge_version(request, host)
        ours = []
        for _ in range(3):
            started = time.perf_counter()
            evaluation = judge.judge_version(replace(request, sanitized=False), host)
            ours.append(time.perf_counter() - started)
    theirs = [_theirs(request.file.path, candidate.path, workload.name) for workload in workloads]
    record = {
        "measured": this_minute(),
        "machine": evaluation.provenance.machine.model_dump(mode="json"),
        "candidate": evaluation.provenance.solution,
        "workloads": [workload.name for workload in workloads],
        "checked_too": [result.workload for result in evaluation.results if result.timing is None],
        "ours_seconds": ours,
        "steps_seconds": {step.name: step.seconds for step in evaluation.steps},
        "stages_seconds": {step.name: step.stages for step in evaluation.steps if step.stages},
        "sanitizers_seconds": next((step.seconds for step in full.steps if step.name == "sanitizers"), None),
        "kernelbench_steps_seconds": theirs,
        "ratio": sum(theirs) / sorted(ours)[1],
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(f"ours {sorted(ours)[1]:.2f} s, KernelBench's steps {sum(theirs):.2f} s, ratio {record['ratio']:.1f}")


def _theirs(definition: Path, solution: Path, workload: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", STEPS, str(definition), str(solution), workload],
        check=True,
        env=os.environ,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
