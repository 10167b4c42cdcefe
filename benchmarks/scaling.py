"""Weak scaling of a GPT's training step: the same batch on each rank, replicated (ddp) or sharded (fsdp2).

torchrun starts `examples/programs/data_parallel_gpt.py`'s step on each number of ranks: NCCL on GPUs, Gloo on a
CPU. Steps are timed by CUDA events on every rank, after a warm-up; the slowest rank's median counts. Efficiency is
the step on one rank over that on N. `none` is the step in one process without either. A few steps under the
profiler say how much of a step is spent in collectives that no kernel hides.

What is timed is graded: the mean loss of the last ten steps is compared with that of one process that takes the
batches of all ranks one after the other. Exit code 1: they are apart.

    python benchmarks/scaling.py --ranks 1,2,4 --modes ddp,fsdp2 --out scaling.json
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.errors import WarpsmithError
from warpsmith.lab.ranks.multicast import MULTICAST_OFF
from warpsmith.profiling.trace.ranks import report_ranks
from warpsmith.profiling.trace.read import load_trace
from warpsmith.program.process import profile_steps
from warpsmith.program.process.runner import kill_group

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "programs" / "data_parallel_gpt.py"

TOLERANCE = 0.01
"""Largest difference of the losses, as a share of how far the loss fell. Chosen: products are in bfloat16."""

GRADED = 10
"""Last steps whose mean loss is compared."""

TRACED = 3
"""Steps under the profiler after its own warm-up."""


def main() -> int:
    """Run every number of ranks, write the record after each, and print the table."""
    arguments = _options()
    if arguments.worker:
        _work(arguments)
        return 0
    record: dict[str, Any] = {"measured": this_minute(), "rows": []}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="warpsmith-scaling-") as folder:
        results: dict[tuple[str, int], dict[str, Any]] = {}
        for ranks in arguments.ranks:
            failures += filter(None, [_start_ranks(arguments, ranks, Path(folder))])
            for path in sorted(Path(folder).glob(f"result-{ranks}-*.json")):
                result = json.loads(path.read_text())
                results[result["mode"], result["shares"] * result["ranks"]] = result
            record |= next((result["setting"] for result in results.values()), {})
            record["rows"] = _rows(arguments, results, Path(folder))
            record["failures"] = failures
            files.write_file(arguments.out, json.dumps(record, indent=2) + "\n")
    for line in _table(record["rows"]):
        print(line)
    for failure in failures:
        print(failure)
    print(f"Record: {arguments.out}")
    return 1 if failures or not all(row.get("same_loss", True) for row in record["rows"]) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=_numbers, default=[1, 2, 4], help="numbers of ranks, the first of them 1")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["ddp", "fsdp2"])
    parser.add_argument("--warm-up", type=int, default=10, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, default=30, help="timed steps")
    parser.add_argument("--program", default="", help="further options of the program, such as '--batch 8'")
    parser.add_argument("--timeout", type=float, default=100.0, help="seconds for each number of ranks")
    parser.add_argument("--out", type=Path, default=Path("scaling.json"))
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.modes) - {"ddp", "fsdp2"}
    if unknown or arguments.ranks[0] != 1:
        parser.error("--modes are ddp and fsdp2, and --ranks begin with 1, which the others are compared with")
    return arguments


def _numbers(text: str) -> list[int]:
    return sorted({int(part) for part in text.split(",")})


def _start_ranks(arguments: argparse.Namespace, ranks: int, folder: Path) -> str:
    """Run all modes on a number of ranks; return why that failed, or nothing."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--local_addr", "127.0.0.1",
        "--nproc_per_node", str(ranks),
        str(Path(__file__).resolve()), "--worker", str(folder), "--ranks", ",".join(map(str, arguments.ranks)),
        "--modes", ",".join(arguments.modes), "--warm-up", str(arguments.warm_up),
        "--steps", str(arguments.steps), f"--program={arguments.program}",
    ]  # fmt: skip
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    env = {"OMP_NUM_THREADS": "1", **os.environ, **MULTICAST_OFF, "PYTHONPATH": path}
    log = folder / f"log-{ranks}.txt"
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=env, start_new_session=True)
        try:
            code: int | str = process.wait(arguments.timeout)
        except subprocess.TimeoutExpired:
            code = f"none in {arguments.timeout:g} s"
        finally:
            kill_group(process)
    print(f"{ranks} ranks: {time.monotonic() - started:.0f} s", flush=True)
    if code == 0:
        return ""
    lines = log.read_text(errors="replace").splitlines()
    reasons = [line for line in lines if "Error" in line or "error:" in line]
    return f"{ranks} ranks: exit code {code}: {'; '.join(reasons[:3]) or ' '.join(lines[-3:])}"


def _rows(
    arguments: argparse.Namespace, results: Mapping[tuple[str, int], dict[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """Return a row for each mode and number of ranks that has a result."""
    rows = []
    for mode, ranks in [("none", 1), *itertools.product(arguments.modes, arguments.ranks)]:
        result, alone = results.get((mode, ranks)), results.get((mode, 1))
        if result is None:
            continue
        seconds = max(map(statistics.median, result["step_seconds"]))
        row = {
            "mode": mode,
            "ranks": ranks,
            "seconds": seconds,
            "seconds_by_rank": [statistics.median(each) for each in result["step_seconds"]],
            "step_seconds": result["step_seconds"],
            "tokens_per_second": result["tokens"] * ranks / seconds,
            "memory_bytes": result["memory_bytes"],
            "warm_up_seconds": result["warm_up_seconds"],
            "losses": result["losses"],
        }
        if alone is not None:
            row["efficiency"] = max(map(statistics.median, alone["step_seconds"])) / seconds
        reference = results.get(("none", ranks))
        if mode != "none" and reference is not None:
            row |= _compare_losses(result["losses"], reference["losses"])
        if ranks > 1:
            try:
                row |= _read_collectives(folder, mode, ranks)
            except (WarpsmithError, ValueError) as error:  # the times are worth their record without it
                row["trace_failure"] = str(error)
        rows.append(row)
    return rows


def _compare_losses(losses: Sequence[float], reference: Sequence[float]) -> dict[str, Any]:
    """Return the last losses of both, and whether they are as near as `TOLERANCE` allows."""
    own, other = (statistics.mean(each[-GRADED:]) for each in (losses, reference))
    allowed = TOLERANCE * abs(reference[0] - other)
    return {
        "loss": own,
        "reference_loss": other,
        "allowed_difference": allowed,
        "same_loss": abs(own - other) <= allowed,
        "largest_difference": max(abs(a - b) for a, b in zip(losses, reference, strict=True)),
    }


def _read_collectives(folder: Path, mode: str, ranks: int) -> dict[str, Any]:
    """Return what the traces of all ranks say of collectives, per step."""
    report = report_ranks([load_trace(_trace_file(folder, mode, ranks, rank), ranks) for rank in range(ranks)])
    exposed, total, waits = (
        statistics.mean(getattr(rank, name) for rank in report.ranks)
        for name in ("exposed_seconds", "collective_seconds", "wait_seconds")
    )
    return {
        "exposed_share": report.share_of(exposed),
        "collective_share": report.share_of(total),
        "wait_share": report.share_of(waits),
        "collectives": [item.model_dump(mode="json") for item in report.collectives],
        "backend": report.backend,
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table."""
    lines = ["mode   ranks  step       tokens/s  efficiency  in collectives  not hidden  loss    reference  same"]
    for row in rows:
        cells = [_percent(row, name) for name in ("efficiency", "collective_share", "exposed_share")]
        cells += [_fixed(statistics.mean(row["losses"][-GRADED:])), _fixed(row.get("reference_loss"))]
        speed = f"{row['seconds'] * 1e3:>6.2f} ms  {row['tokens_per_second']:>9.0f}"
        shares = f"{cells[0]:>10}  {cells[1]:>14}  {cells[2]:>10}"
        losses = f"{cells[3]}  {cells[4]:>9}  {row.get('same_loss', '')}"
        lines.append(f"{row['mode']:<6} {row['ranks']:>5}  {speed}  {shares}  {losses}".rstrip())
    return lines


def _percent(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:.1%}" if name in row else ""


def _fixed(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _trace_file(folder: Path, mode: str, ranks: int, rank: int) -> Path:
    return folder / f"trace-{ranks}-{mode}.rank{rank}.json.gz"


def _work(arguments: argparse.Namespace) -> None:
    """In a rank that torchrun started: time all modes on these ranks; one rank alone makes the references too."""
    import torch
    import torch.distributed as dist

    program = _load_program()
    options = program.options(arguments.program.split())
    program.join_ranks(options.device)
    world = dist.get_world_size()
    shares = {mode: [1] for mode in arguments.modes}
    if world == 1:
        shares = {"none": arguments.ranks, **shares}
    for mode, counts in shares.items():
        torch._dynamo.reset()  # what was compiled for another mode would only be looked through
        for count in counts:
            options.parallel, options.shares = mode, count
            _measure_mode(arguments, program, options)
    dist.barrier()
    dist.destroy_process_group()


def _measure_mode(arguments: argparse.Namespace, program: ModuleType, options: argparse.Namespace) -> None:
    """Train in one mode, time the steps after the warm-up, and write the result and the traces."""
    import torch
    import torch.distributed as dist

    rank, world = dist.get_rank(), dist.get_world_size()
    training = program.Training(options)
    on_gpu = training.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    losses = [training.step(number) for number in range(arguments.warm_up)]
    profile_steps.synchronize_device()
    warm_up = time.perf_counter() - started
    dist.barrier()
    gc.collect()
    gc.disable()  # a collection would delay the launches of one rank
    marks = [_mark(on_gpu)]
    for number in range(arguments.warm_up, arguments.warm_up + arguments.steps):
        losses.append(training.step(number))
        marks.append(_mark(on_gpu))
    profile_steps.synchronize_device()
    gc.enable()
    seconds = [_seconds_between(*pair) for pair in itertools.pairwise(marks)]
    peak = torch.cuda.max_memory_allocated() if on_gpu else 0
    total = torch.stack(losses)
    dist.all_reduce(total)
    every: list[Any] = [None] * world
    dist.all_gather_object(every, (seconds, peak))
    if world > 1:
        numbers = itertools.count(arguments.warm_up + arguments.steps)
        trace = _trace_file(arguments.worker, options.parallel, world, rank)
        profile_steps.run_steps(
            profile_steps.write_trace(TRACED, str(trace), PROGRAM.name), lambda: training.step(next(numbers))
        )
    dist.barrier()
    if rank == 0:
        result = {
            "mode": options.parallel,
            "ranks": world,
            "shares": options.shares,
            "tokens": options.batch * options.context,
            "losses": (total / world).tolist(),
            "step_seconds": [each for each, _ in every],
            "memory_bytes": [each for _, each in every],
            "warm_up_seconds": warm_up,
            "setting": _describe_setting(options),
        }
        name = f"result-{world}-{options.parallel}-{options.shares}.json"
        files.write_file(arguments.worker / name, json.dumps(result))


def _describe_setting(options: argparse.Namespace) -> dict[str, Any]:
    """Return the device, the libraries and the program's sizes for the record."""
    import torch

    on_gpu = options.device == "cuda"
    return {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "devices": torch.cuda.device_count() if on_gpu else 1,
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None,
        "environment": MULTICAST_OFF,
        "program": {
            name: value for name, value in vars(options).items() if name not in ("parallel", "shares", "steps")
        },
    }


def _mark(on_gpu: bool) -> Any:  # noqa: ANN401 - an event, or seconds
    """Return a mark of this moment: on a GPU an event after the work so far."""
    if not on_gpu:
        return time.perf_counter()
    import torch

    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _seconds_between(begin: Any, end: Any) -> float:  # noqa: ANN401 - events, or seconds
    return float(end - begin) if isinstance(begin, float) else begin.elapsed_time(end) / 1e3


def _load_program() -> ModuleType:
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location("data_parallel_gpt", PROGRAM)
    if spec is None or spec.loader is None:
        raise ImportError(f"{PROGRAM} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
