"""Versions over ranks in processes of their own, with interpreted kernels, and how their results are graded."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import torch

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.ranks import shards

EXAMPLES = Path(__file__).parents[2] / "examples" / "ranks"
PROGRAM = Path(__file__).with_name("rank_program.py")
SECONDS = 120


def play(version, calls, folder, ranks=2, **constants):
    """Grade all calls of a version on all ranks; return the statuses, and whether ranks have the same bytes."""
    path = EXAMPLES / version if isinstance(version, str) else version
    definition = path.parent / "definition.py" if isinstance(version, str) else constants.pop("definition")
    file = definition_file.load_definition(definition, over_ranks=True)
    axes = {**file.definition.axes, **({"parts": ranks} if "parts" in file.definition.axes else {})}
    request = {
        "version": str(path), "definition": str(definition), "ranks": ranks, "calls": calls,
        "constants": constants, "update": {"ranks": ranks, "axes": axes},
    }  # fmt: skip
    (folder / "calls.json").write_text(json.dumps(request))
    results = run_ranks(folder, ranks)
    file = dataclasses.replace(file, definition=file.definition.model_copy(update=request["update"]))
    return [grade_call(file, call, [each[number] for each in results]) for number, call in enumerate(calls)]


def run_ranks(folder, ranks):
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment |= {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen([sys.executable, PROGRAM, folder, str(rank)], env=environment, stderr=subprocess.PIPE)
        for rank in range(ranks)
    ]
    try:
        errors = [process.communicate(timeout=SECONDS)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(errors)[-3000:]
    return [torch.load(folder / f"results-{rank}.pt") for rank in range(ranks)]


def grade_call(file, call, results):
    """Return the worst status of all ranks, and whether outputs that all have are the same."""
    workload = file.definition.workloads[0].model_copy(update=call["workload"])
    inputs = Inputs(file, workload, call["seed"], "cpu").draw()
    truth = correctness.compute_truth(file, workload, inputs)
    local = [dict(zip(file.definition.outputs, outputs, strict=True)) for outputs in results]
    statuses = set()
    for outputs in shards.join_outputs(file.definition, local):
        grade = correctness.grade_outputs(truth, outputs)
        statuses.add(f"{grade.status}" if grade.status == "PASSED" else f"{grade.status}: {grade.detail}")
    shared = [name for name, spec in file.definition.outputs.items() if spec.shard_axis is None]
    same = all(
        torch.equal(local[0][name].reshape(-1).view(torch.uint8), each[name].reshape(-1).view(torch.uint8))
        for each in local[1:]
        for name in shared
    )
    return (*sorted(statuses), same)


def calls_at(workload, count, ranks, late=0.03):
    """List calls of one workload; each rank is late in turn."""
    return [
        {
            "workload": {"name": f"call {number}", "dtype": "float32", **workload},
            "seed": number,
            "late": [late * (rank == number % ranks) for rank in range(ranks)],
        }
        for number in range(count)
    ]
