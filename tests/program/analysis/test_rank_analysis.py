"""Analyses of programs of many ranks: the part `Ranks`, and runs under torchrun with Gloo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from test_recommend import EARLY, FACTS, OBSERVED, REPLICA, ranks_of

from warpsmith.program.analysis import analysis_store, analyzer
from warpsmith.program.analysis.models import Analysis
from warpsmith.program.analysis.prerequisites import describe_rank_differences
from warpsmith.program.analysis.ranks import AnalyzedRanks, analyze_ranks, format_ranks
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.program import resolve_step_program
from warpsmith.project import find_project

TRAIN = """
import sys, time
import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import record_function
dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train_step():
    time.sleep(0.1 * dist.get_rank())
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

for number in range(int(sys.argv[1])):
    RUN
"""


def analyzed(folder: Path, monkeypatch: pytest.MonkeyPatch, run: str, steps: int) -> Analysis:
    (folder / "warpsmith.toml").touch()
    (folder / "train.py").write_text(TRAIN.replace("RUN", run))
    monkeypatch.chdir(folder)
    torchrun = f"{sys.executable} -m torch.distributed.run --nproc_per_node 2 train.py {steps}"
    project = find_project(folder)
    program = resolve_step_program(None, None, command=torchrun)
    analysis = analyzer.analyze_program(project, program, lambda _: None, steps=3, timeout=120)
    path = analysis_store.write_analysis(project, program, analysis)
    assert analysis_store.read_analysis(path) == analysis
    return analysis


def assert_rank_1_is_slow(analysis: Analysis) -> None:
    assert analysis.ranks is not None
    report = analysis.ranks.report
    assert (report.world, report.backend, report.slowest.rank, report.unmatched) == (2, "gloo", 1, ())
    assert report.ranks[0].wait_seconds > 0.05 > report.ranks[1].wait_seconds
    item = report.find("all_reduce")
    assert item is not None
    assert (item.calls, item.bytes) == (1, 4 * (64 * 64 + 64))
    assert item.bus_rate is not None
    balance = next(one for one in analysis.recommendations if one.entry == "balanced-ranks")
    assert "rank 1 takes" in balance.evidence
    assert (balance.specialist, balance.lacks) == ("distributed", "")


@pytest.mark.own_process
@pytest.mark.slow
def test_a_slow_rank_of_a_command_is_named_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyzed(tmp_path, monkeypatch, "train_step()", 10_000)
    assert_rank_1_is_slow(analysis)
    assert "rank 0 waits for later ranks" in analysis.why
    assert analysis.facts.replicas[0].buckets == (4 * (64 * 64 + 64),)
    assert (tmp_path / ".warpsmith/programs/train.__main__/trace.rank1.json.gz").is_file()


@pytest.mark.own_process
@pytest.mark.slow
def test_ranks_that_mark_their_steps_are_recorded_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = 'with record_function("step"):\n        train_step()'
    assert_rank_1_is_slow(analyzed(tmp_path, monkeypatch, marked, 4))


def facts(**changes: Any) -> ProgramFacts:
    return ProgramFacts.model_validate({**FACTS, "observed": OBSERVED, "world": 2, **changes})


def test_the_text_names_each_rank_its_collectives_and_buckets() -> None:
    ranks = AnalyzedRanks.model_validate(ranks_of(EARLY, unmatched=["broadcast"]))
    lines = list(format_ranks(ranks, facts(replicas=[REPLICA], sharded_modules=3)))
    assert lines[0] == "Ranks: 2 on this host, nccl"
    assert lines[3] == "| 0 | 10 ms | 8 ms | 2 ms | 2 ms | 3 ms | 1 B |"
    text = "\n".join(lines)
    assert "Slowest: rank 1, 2 ms a step more than rank 0" in text
    assert "ranks wait 10% of a step" in text
    assert "all_reduce: 6 calls a step, 6 MB, 4 ms" in text
    assert "1 bucket (1.5 MB), filled up to 25 MB; find_unused_parameters=False" in text
    assert "Not every rank calls broadcast" in text
    assert "fully_shard: 3 modules" in text


def test_ranks_without_collectives_or_a_slow_one_say_so() -> None:
    ranks = AnalyzedRanks.model_validate(ranks_of(collectives=[]))
    text = "\n".join(format_ranks(ranks, facts()))
    assert "no rank takes longer" in text
    assert "No collective was seen" in text


def test_one_rank_has_no_part_of_its_own() -> None:
    assert analyze_ranks([facts()], []) is None


def test_parameters_that_differ_are_counted() -> None:
    assert "of a: " in describe_rank_differences(["a"])
    assert "of a and 2 more parameters: " in describe_rank_differences(["a", "b", "c"])
