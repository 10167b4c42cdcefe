"""Diagnosis of ranks on GPUs, part by part, in about 20 seconds: what the judge relies on, and where it breaks.

    python benchmarks/ranks_diagnosis.py --ranks 2

Each part prints its facts or the error; the exit code is the number of parts that fail.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from warpsmith.core.definition import Workload
from warpsmith.lab.grading import correctness
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.ranks import gpu_kernels, rank_host
from warpsmith.lab.ranks.correctness_check import check_rank_workload, grade_slot
from warpsmith.lab.ranks.group import SLOTS, RankGroup
from warpsmith.lab.ranks.shards import change_ranks
from warpsmith.lab.ranks.start_gate import PAGE_BYTES, GatePage, StartGate
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import find_project

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "lab" / "ranks" / "redteam" / "gpu"
DEFINITION = ROOT / "examples" / "ranks" / "all_reduce_rmsnorm" / "definition.py"
WORKLOAD = Workload(name="32x1024", axes={"rows": 32, "cols": 1024})


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    failures = [run_part("machine", print_machine)]
    target = hardware.require_local_target(find_project())
    with rank_host.open_rank_host(target, options.ranks, print) as host:
        uuids = rank_host.leased_uuids()
        print(f"leased {', '.join(uuids)}; link `{rank_host.describe_link(uuids)}`")
        failures += [run_part("kernels and gate", check_kernels)]
        for name in ("control_all_reduce", "control_one_shot", "control_signals", "control_point_to_point"):
            failures.append(run_part(name, lambda name=name: judge_case(name, host, options.ranks)))
    print(f"{sum(failures)} parts failed")
    sys.exit(sum(failures))


def run_part(name: str, part: Callable[[], None]) -> bool:
    """Run a part and print its seconds; return whether it failed."""
    started = time.monotonic()
    print(f"== {name}")
    try:
        part()
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return True
    finally:
        print(f"   {time.monotonic() - started:.1f} s", flush=True)
    return False


def print_machine() -> None:
    """Print versions, devices and variables."""
    print(f"python {sys.version.split()[0]}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    print(f"devices {identity.list_gpus()}, cores {os.cpu_count()}, CUDA_VISIBLE_DEVICES", end=" ")
    print(
        os.environ.get("CUDA_VISIBLE_DEVICES"), {n: v for n, v in os.environ.items() if "NCCL" in n or "NVSH" in n}
    )
    if shutil.which("nvidia-smi"):
        print(
            subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True, check=False).stdout[:1500]
        )
    print(subprocess.run(["df", "-h", "/dev/shm", "/tmp"], capture_output=True, text=True, check=False).stdout)


def check_kernels() -> None:
    """Load the kernels on the first GPU, hold its stream, and open the gate for it."""
    torch.cuda.set_device(0)
    torch.empty(1, device="cuda")
    peers = [torch.cuda.can_device_access_peer(0, other) for other in range(1, torch.cuda.device_count())]
    print(f"{torch.cuda.device_count()} devices visible, peer access from 0: {peers}")
    gpu_kernels.load_kernels()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    for _ in range(2):
        marks[0].record()
        gpu_kernels.hold_stream(1e-3)
        marks[1].record()
        torch.cuda.synchronize()
    print(f"a hold of 1 ms took {marks[0].elapsed_time(marks[1]):.3f} ms")
    gate = StartGate(1)
    page = GatePage(gate.file)
    word = gpu_kernels.map_host_memory(page.address, PAGE_BYTES)
    delays = []
    for _ in range(20):
        block = gate.shut()
        gpu_kernels.await_start(word, block)
        marks[0].record()
        page.report_arrival(0, block)
        page.report_issue(0, block)
        time.sleep(0.002)
        early = marks[0].query()
        started = time.perf_counter()
        gate.look()
        marks[0].synchronize()
        delays.append((time.perf_counter() - started) * 1e6)
        assert not early, "the GPU did not wait at the gate"
        assert gate.is_open
    print(f"from the opening to the host's notice: {min(delays):.1f} to {max(delays):.1f} us")
    started = time.perf_counter()
    gpu_kernels.jam_device(torch.cuda.Stream(priority=-1))
    torch.cuda.synchronize()
    print(f"{gpu_kernels.JAMS} jams took {(time.perf_counter() - started) * 1e3:.2f} ms")


def judge_case(name: str, host: WorkerHost, ranks: int) -> None:
    """Check an honest version and time some blocks of it."""
    file = definition_file.load_definition(DEFINITION, over_ranks=True)
    file = replace(file, definition=change_ranks(file.definition, ranks))
    path, steps = CASES / f"{name}.py", [("start", time.monotonic())]
    with RankGroup(name, file.definition, [WORKLOAD], path, path.read_bytes(), host, Limits(seconds=20)) as group:
        steps.append(("checks", time.monotonic()))
        print(f"{group.devices}, NCCL {group.nccl}, truths on {group.grading_device}")
        graded = check_rank_workload(file, WORKLOAD, group, 1)
        steps.append(("blocks", time.monotonic()))
        print(f"worst error/bound {graded.worst:.3g}")
        inputs, times = Inputs(file, WORKLOAD, 2, group.grading_device), []
        for slot in [0, 1, 2, 3] * 3:
            slots = list(inputs.draw_several(SLOTS))
            group.fill(slots)
            seconds = group.call_slots([[0.0] * SLOTS] * ranks, checked=False, graded=slot)
            times.append(f"{seconds / SLOTS * 1e6:.1f}{'' if group.ahead else '*'}")
            truth = correctness.compute_truth(file, WORKLOAD, slots[slot])
            grade_slot(file, group, slot, slots[slot], truth, "a timed call")
        print(f"us per call by block (* with the host's time): {' '.join(times)}")
        steps.append(("end", time.monotonic()))
    steps.append(("", time.monotonic()))
    parts = (f"{steps[each][0]} {steps[each + 1][1] - steps[each][1]:.2f} s" for each in range(len(steps) - 1))
    print(", ".join(parts))


if __name__ == "__main__":
    main()
