"""`best()` over ranks: real ranks with gloo call the version of a round, or the reference on gathered tensors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warpsmith.campaign.rounds import rank_race, rank_rounds
from warpsmith.campaign.rounds.rank_rounds import RankCampaign
from warpsmith.core.evaluation import Decision, Verdict
from warpsmith.lab.operator import definition_file
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.project import Project

DEFINITION = """
from warpsmith import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

definition = Definition(
    name="scaled_sum", description="y = the sum of all parts * factor; z = each rank's part * factor", ranks=2,
    axes={"parts": 2, "cols": "columns"},
    inputs={
        "part": TensorSpec(shape=("parts", "cols"), shard_axis="parts"),
        "factor": ScalarSpec(value=3.0),
    },
    outputs={
        "y": TensorSpec(shape=("cols",)),
        "z": TensorSpec(shape=("parts", "cols"), shard_axis="parts"),
    },
    tolerance=Tolerance(reduction="parts"),
    flops="3 * parts * cols",
    workloads=(Workload(name="8", axes={"cols": 8}), Workload(name="1", axes={"cols": 1}, set="odd")),
)


def reference(part, factor):
    return part.sum(0) * factor, part * factor
"""

VERSION = """
import torch

def run(part, factor):
    total = part[0].clone()
    torch.distributed.all_reduce(total)
    return total * factor, part * factor
"""

PROGRAM = """
import json, os, sys, warnings
import torch
import torch.distributed as dist
import warpsmith, warpsmith.errors

rank, ranks, way = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if way != "alone":
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meeting", rank=rank, world_size=ranks)
part = torch.full((1, 3), float(rank + 1), requires_grad=way == "gradients")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        run = warpsmith.best("scaled_sum", "cpu")
        y, z = run(part, factor=2.0) if way == "numbers" else run(part)
        again = run is warpsmith.best("scaled_sum", "cpu")
        told = {"solution": run.solution, "y": y.tolist(), "z": z.tolist(), "again": again}
    except warpsmith.errors.WarpsmithError as error:
        told = {"error": str(error)}
print(json.dumps(told | {"warned": [str(each.message) for each in caught]}))
if dist.is_initialized():
    dist.destroy_process_group()
"""


@pytest.fixture
def ranks(tmp_path: Path) -> RankCampaign:
    root = tmp_path / "project"
    project = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    project.definition_path("scaled_sum").parent.mkdir(parents=True)
    project.definition_path("scaled_sum").write_text(DEFINITION)
    (root / "warpsmith.toml").write_text("")
    return RankCampaign(project, "scaled_sum", "cpu", 2)


def accept(ranks: RankCampaign, text: str) -> rank_rounds.StoredRankRound:
    """Close an accepted round with a version, as a judgement would."""
    digest = definition_file.definition_sha256(ranks.project.definition_path("scaled_sum"))
    path = ranks.project.root / "version.py"
    path.write_text(text)
    evaluation = judged(path, digest)
    return rank_rounds.close_rank_round(ranks, "It is the plain way to do it.", path, None, evaluation)


def judged(path: Path, definition: str) -> RankEvaluation:
    from warpsmith import files

    machine = {"id": "cpu-0", "target": "cpu", "device": "a cpu", "processor": "a cpu", "libraries": {}}
    correctness = {"calls": 1, "worst": 0.1, "relative_error": 0.1}
    return RankEvaluation.model_validate(
        {
            "definition": "scaled_sum", "ranks": 2, "trust": (),
            "provenance": {
                "solution": "version.py", "solution_sha256": files.file_sha256(path),
                "definition_sha256": definition,
                "lab_sha256": "1" * 64, "gate_version": 1, "seed": 1, "machine": machine,
                "measured": "2026-11-21 10:00",
            },
            "results": [{"workload": "8", "status": "PASSED", "correctness": correctness}],
            "times": {"8": {"seconds": 1e-3, "samples": 9, "spread": 0.1}},
            "decision": Decision(verdict=Verdict.ACCEPT, reason="as measured"),
        }
    )  # fmt: skip


def play(ranks: RankCampaign, way: str = "", count: int = 2) -> list[dict[str, Any]]:
    """Run the program on so many ranks; return what each found."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    (ranks.project.root / "meeting").unlink(missing_ok=True)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(count), way],
            cwd=ranks.project.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * count, ended
    return [json.loads(out) for out, _ in ended]


def test_the_last_accepted_version_runs_on_every_rank(ranks: RankCampaign) -> None:
    accept(ranks, "raise SystemExit('an older one')")
    accept(ranks, VERSION)
    for rank, told in enumerate(play(ranks)):
        assert told == {
            "solution": "ranks/round 2", "y": [9.0] * 3, "z": [[3.0 * (rank + 1)] * 3],
            "again": True, "warned": [],
        }  # fmt: skip


def test_without_a_version_the_reference_runs_on_gathered_tensors(ranks: RankCampaign) -> None:
    for rank, told in enumerate(play(ranks, "numbers")):
        assert (told["solution"], told["y"], told["z"]) == ("reference", [6.0] * 3, [[2.0 * (rank + 1)] * 3])
        assert "no version was accepted for 2 ranks" in told["warned"][0]


def test_versions_of_other_numbers_of_ranks_do_not_run(ranks: RankCampaign) -> None:
    accept(ranks, VERSION)
    assert [told["solution"] for told in play(ranks, count=3)] == ["reference"] * 3


def test_a_version_that_its_final_race_found_wrong_gives_way(ranks: RankCampaign) -> None:
    accept(ranks, VERSION)
    wrong = accept(ranks, VERSION.replace("* factor", "* 0", 1))
    digest = wrong.record.evaluation.provenance.definition_sha256
    right = judged(wrong.folder / rank_rounds.VERSION, digest)
    failed = {"workload": "8", "status": "INCORRECT_SHAPE", "message": "it is wrong"}
    decision = {"verdict": "ROLLBACK", "reason": "it is wrong"}
    found = RankEvaluation.model_validate(
        right.model_dump() | {"results": [failed], "times": {}, "decision": decision}
    )
    race = rank_race.RankRace(round=wrong.number, record_sha256=wrong.sha256, judgements={"round 1": found})
    rank_race.rank_race_path(ranks).write_text(race.model_dump_json())
    assert [told["solution"] for told in play(ranks)] == ["ranks/round 1"] * 2


@pytest.mark.parametrize(("way", "error"), [("alone", "init_process_group"), ("gradients", "no gradients")])
def test_what_it_refuses(ranks: RankCampaign, way: str, error: str) -> None:
    accept(ranks, VERSION)
    for told in play(ranks, way):
        assert error in told["error"]
