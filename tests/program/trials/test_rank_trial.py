"""Trials of programs of two ranks under torchrun, with Gloo: real numerics on all ranks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from trial_kit import changed

from warpsmith.core.trial import ORIGINAL, ProgramRules, StepTiming, TrialVerdict
from warpsmith.errors import Misuse
from warpsmith.lab.timing import timing
from warpsmith.program.process.program import Program, resolve_step_program
from warpsmith.program.trials import pair_timing, trial, trial_store
from warpsmith.program.trials.pair_timing import PairResult, ProgramForm
from warpsmith.program.trials.trial import ClosedTrial, TrialRequest
from warpsmith.project import Project, find_project

pytestmark = pytest.mark.own_process

REPLICAS = """
import contextlib
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
layers = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(3)])
model = DistributedDataParallel(layers, bucket_cap_mb=0.0001)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.Generator().manual_seed(dist.get_rank())
for step in range(100000):
    for part in range(2):
        x = torch.randn(4, 8, generator=data)
        with contextlib.nullcontext():
            loss = (model(x) - x).square().mean()
            loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SHARDED = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (2,))
model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(3)])
for block in model:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = torch.Generator().manual_seed(dist.get_rank())
for step in range(100000):
    loss = model(torch.randn(4, 8, generator=data)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ONCE = ("contextlib.nullcontext()", "model.no_sync() if part == 0 else contextlib.nullcontext()")
NEVER = ("contextlib.nullcontext()", "model.no_sync()")
KEEP = ("fully_shard(block, mesh=mesh)", "fully_shard(block, mesh=mesh, reshard_after_forward=False)")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project in which any edit is timed as twice as fast; the clock of the machine does not count."""
    (tmp_path / "warpsmith.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pair_timing, "time_pair", time_as_twice_as_fast)
    monkeypatch.setattr(pair_timing, "time_form", lambda *_, **__: timed(0.02))
    return find_project(tmp_path)


def time_as_twice_as_fast(original: ProgramForm, edited: ProgramForm, **_: object) -> PairResult:
    return PairResult(timing.compare_times(ORIGINAL, [0.01] * 10, [0.02] * 10), timed(0.02), timed(0.01))


def timed(seconds: float) -> StepTiming:
    return StepTiming(seconds=seconds, spread=0, batches=10, steps=1, first_seconds=seconds, warm_up=2)


def command() -> Program:
    torchrun = f"{sys.executable} -m torch.distributed.run --nproc_per_node 2 train.py"
    return resolve_step_program(None, None, command=torchrun)


def tried(project: Project, text: str, edit: tuple[str, str], *needs: str) -> ClosedTrial:
    """The trial of an edit, with its verdict."""
    path = project.root / "train.py"
    path.write_text(text)
    request = TrialRequest("one-reduction-per-step", ProgramRules(needs=needs), command(), (path,))
    plan = trial.open_trial(project, request, 120)
    assert plan.prerequisites.refused == ()
    path.write_text(changed(text, edit))
    return trial.verify_trial(trial_store.Trials(project, plan.subject.name), 120)


@pytest.mark.long
def test_one_reduction_per_step_is_kept(project: Project) -> None:
    closed = tried(project, REPLICAS, ONCE, "training", "distributed", "replicas", "accumulation")
    assert closed.record.decision.verdict is TrialVerdict.KEPT, closed.record.decision.reason
    assert closed.record.numerics is not None
    assert "ranks" in [check.name for check in closed.record.numerics.checks]
    assert (project.root / "train.py").read_text() == changed(REPLICAS, ONCE)


@pytest.mark.slow
def test_ranks_that_no_longer_reduce_are_named_and_the_file_is_restored(project: Project) -> None:
    closed = tried(project, REPLICAS, NEVER, "distributed")
    assert closed.record.decision.verdict is TrialVerdict.RESTORED
    assert "ranks: ranks 0 and 1 hold DistributedDataParallel.module." in closed.record.decision.reason
    assert (project.root / "train.py").read_text() == REPLICAS


@pytest.mark.long
def test_sharded_parameters_are_compared_rank_by_rank(project: Project) -> None:
    closed = tried(project, SHARDED, KEEP, "distributed", "sharded")
    assert closed.record.decision.verdict is TrialVerdict.KEPT, closed.record.decision.reason
    assert closed.record.numerics is not None
    assert "ranks" not in [check.name for check in closed.record.numerics.checks], "each rank has its own part"


@pytest.mark.slow
def test_ranks_that_start_apart_are_refused_and_nothing_changes(project: Project) -> None:
    seeded = changed(REPLICAS, ("torch.manual_seed(0)", "torch.manual_seed(dist.get_rank())"))
    text = changed(seeded, ("DistributedDataParallel(layers, bucket_cap_mb=0.0001)", "layers"))
    path = project.root / "train.py"
    path.write_text(text)
    request = TrialRequest("balanced-ranks", ProgramRules(needs=("distributed",)), command(), (path,))
    with pytest.raises(Misuse, match=r"different values of Sequential\.0\.0\.weight and 5 more parameters"):
        trial.open_trial(project, request, 120)
    assert path.read_text() == text
    assert not (project.devlog / "programs" / "train.__main__" / "trials" / "open").exists()
