"""How much longer a judgement takes on another machine than on this one, and how many bytes travel.

A version is judged in turn here and in a context of the same machine (an SSH server on loopback), so that the
difference is what the context costs: the connection, the bundle, the start of the lab there, and the outcome. Both
are whole commands in fresh processes, `judge --check`, which times nothing. The context is warm: it was used once.

    python benchmarks/context_overhead.py kernels/rmsnorm/cpp/v1.cpp --context lab --target cpu --out record.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from warpsmith import project
from warpsmith.campaign import lab_requests
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Manifest
from warpsmith.execution.bundle import pack_job
from warpsmith.execution.contexts import LOCAL, find_context
from warpsmith.execution.examine import examine_context
from warpsmith.execution.job import Job
from warpsmith.execution.lab_copy import LabCopy
from warpsmith.execution.remote import RemoteMachine
from warpsmith.lab.machine import provenance, system


def main() -> None:
    """Judge in turn and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", type=Path)
    parser.add_argument("--context", required=True)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("context_overhead.json"))
    options = parser.parse_args()
    own = project.find_project()
    op, solution = lab_requests.locate_version(own, options.version)
    manifest = Manifest(
        campaign="none", target_op=op, target=options.target, target_language=solution.language, created=this_minute()
    )
    bundle = pack_job(own, Job(kind="judge", manifest=manifest, solution=solution.name), solution.path, solution.path)
    entry = find_context(own, options.context)
    examine_context(own, entry)  # brings the lab there

    command = [sys.executable, "-P", "-m", "warpsmith", "judge", str(options.version), "--check"]
    command += ["--target", options.target, "--context"]
    for context in (LOCAL, options.context):
        _seconds([*command, context])  # its bytecode and caches
    pairs = [(_seconds([*command, LOCAL]), _seconds([*command, options.context])) for _ in range(options.pairs)]
    differences = [there - local for local, there in pairs]
    machine = RemoteMachine(entry)
    probes = [_timed_probe(machine) for _ in range(options.pairs)]
    record = {
        "measured": this_minute(),
        "processor": f"{system.processor_model()}, {system.usable_cores()} cores",
        "lab_sha256": provenance.lab_sha256(),
        "version": own.relative(options.version.resolve()),
        "local_seconds": [local for local, _ in pairs],
        "context_seconds": [there for _, there in pairs],
        "overhead_seconds": statistics.median(differences),
        "overhead_range": [min(differences), max(differences)],
        "connection_seconds": statistics.median(probes),
        "bundle_bytes": len(bundle.data),
        "lab_bytes": len(LabCopy().pack()),
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(
        f"overhead {record['overhead_seconds']:.2f} s, median of {len(pairs)}; a connection {record['connection_seconds']:.2f} s;"
        f" bundle {len(bundle.data)} bytes, lab {record['lab_bytes']} bytes"
    )


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _timed_probe(machine: RemoteMachine) -> float:
    started = time.perf_counter()
    machine.probe()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
