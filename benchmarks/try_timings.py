"""How long `warpsmith try` takes for 16 variants of softmax at 8 workloads, in a cold process and in a warm one.

Each language is swept twice. The first run finds no compiled kernel and no file of Python's in memory; the second
one has the caches that the first left. A run's steps come from its log, and with --profile its functions' times.

    python benchmarks/try_timings.py --out record.json
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from warpsmith import project
from warpsmith.core.base import this_minute

SWEEPS = {"triton": "BLOCK=512,1024,2048,4096 WARPS=4,8,16,32", "cuda": "THREADS=128,256,512,1024 UNROLL=1,2,4,8"}
"""Language to the sweep of its kernel; 16 settings each."""


def main() -> None:
    """Run every sweep cold and warm, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--profile", type=Path, help="folder for the profile of each run's own process")
    parser.add_argument("--out", type=Path, default=Path("try_timings.json"))
    options = parser.parse_args()
    root = project.find_project().root
    record: dict[str, Any] = {"measured": this_minute(), "seconds": options.seconds, "runs": {}}
    with tempfile.TemporaryDirectory() as caches:
        os.environ |= {"TRITON_CACHE_DIR": f"{caches}/triton", "CUDA_CACHE_PATH": f"{caches}/cuda"}
        os.environ.pop(
            "PYTHONDONTWRITEBYTECODE", None
        )  # an image that sets it compiles PyTorch's text in each run
        for language, sweep in SWEEPS.items():
            shutil.rmtree(root / ".warpsmith" / "compiled", ignore_errors=True)
            for state in ("cold", "warm"):
                name = f"{language} {state}"
                record["runs"][name] = run = _run(root, language, sweep, options, name)
                steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in run["steps"].items())
                print(f"{name}: {run['seconds']:.1f} s, first line at {run['first']:.1f} s; {steps}", flush=True)
                options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _run(root: Path, language: str, sweep: str, options: argparse.Namespace, name: str) -> dict[str, Any]:
    kernel = Path(__file__).parent / "try_kernels" / f"softmax_{language}.py"
    profiler = []
    if options.profile:
        profiler = ["-m", "cProfile", "-o", str(options.profile / f"{name.replace(' ', '-')}.pstats")]
    command = [sys.executable, *profiler, "-m", "warpsmith", "try", "softmax", str(kernel), "--sweep", sweep]
    command += ["--target", options.target, "--seconds", str(options.seconds)]
    before, started, first = set((root / ".warpsmith" / "tries").glob("*")), time.monotonic(), 0.0
    lines = []
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=root, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            if not first and line.startswith(kernel.name):
                first = time.monotonic() - started
    seconds = time.monotonic() - started
    if process.returncode:
        sys.exit("\n".join(lines))
    (log,) = set((root / ".warpsmith" / "tries").glob("*")) - before
    steps = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["steps"]
    return {"seconds": seconds, "first": first, "steps": steps, "output": lines}


if __name__ == "__main__":
    main()
