"""A whole campaign as a user runs it, judged through Slurm or SSH: from `start` to the final race."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from remote_kit import jobs
from slurm_cluster import NODE, Cluster

from warpsmith import project as projects
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import state
from warpsmith.cli import main as entry_point
from warpsmith.core.evaluation import Evaluation, Status
from warpsmith.execution import remote
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.lab_copy import LabCopy
from warpsmith.languages.shared import cxx_compiler

DEFINITION = """\
from warpsmith import Definition, TensorSpec, Workload
definition = Definition(
    name="double", description="y = 2 * x", axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=(Workload(name="large", axes={"n": 5000}), Workload(name="tail", axes={"n": 7}, set="odd")),
)
def reference(x):
    return 2 * x
"""
BODY = """\
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  for (LOOP) *(KIND float*)(y.data<float>() + i) = FACTOR * x.data<float>()[i];
}
"""
UP, DOWN = "int64_t i = 0; i < x.size(0); ++i", "int64_t i = x.size(0) - 1; i >= 0; --i"
DRAFTS = {
    "1_plain": ("volatile", "2.0f", UP, "One plain loop is the simplest version.", "baseline", 0.0),
    "2_fast": ("", "2.0f", UP, "Stores that may be joined keep more bytes in flight.", "memory", 0.3),
    "3_down": ("", "2.0f", DOWN, "The last values are still in a cache.", "scheduling", 0.2),
    "4_wrong": ("", "3.0f", UP, "Another factor takes fewer instructions.", "compute", 0.1),
}
PLAN = """\
plan:
  hypothesis: {hypothesis}
  category: {category}
  entries: []
  predicted_gain: {gain}
  metric: time_us
  expected_change: {change}
  review: []
"""

Typed = Callable[..., int]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """`typed("start", ...)`: the exit code of the command, in a project with a definition and four drafts."""
    project = tmp_path / "project"
    drafts = project / "kernels" / "double" / "drafts" / "cpp"
    drafts.mkdir(parents=True)
    (project / "warpsmith.toml").touch()
    (drafts.parents[1] / "definition.py").write_text(DEFINITION)
    for name, (kind, factor, loop, hypothesis, category, gain) in DRAFTS.items():
        text = BODY.replace("KIND", kind).replace("FACTOR", factor).replace("LOOP", loop)
        (drafts / f"{name}.cpp").write_text(text)
        plan = PLAN.format(hypothesis=hypothesis, category=category, gain=gain, change=-100 * gain)
        (drafts / f"{name}.yaml").write_text(plan)
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", *arguments])
        with pytest.raises(SystemExit) as ended:
            entry_point.main()
        return int(ended.value.code or 0)

    return run


def use_scripted_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lab that travels take scripted times."""
    whole: Any = vars(LabCopy)["contents"].func
    here = Path(__file__).parent
    added = {
        path.name: path.read_bytes()
        for path in (here / "scripted_performer.py", here.parent / "lab" / "session_clock.py")
    }
    monkeypatch.setattr(LabCopy, "contents", property(lambda self: whole(self) | added))
    monkeypatch.setattr(remote, "MODULE", "scripted_performer")


def run_campaign(
    typed: Typed, entry: NamedContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> list[Evaluation]:
    """Start a campaign in a context, play the drafts, two at once, and return the judgements and the last race."""
    use_scripted_lab(monkeypatch)
    config = tmp_path / "config" / "warpsmith" / "contexts.toml"
    config.parent.mkdir(parents=True)
    settings = entry.context.model_dump(exclude_defaults=True)
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    config.write_text(f"[contexts.{entry.name}]\n{lines}")
    start = ("start", "double", "--target", "cpu", "--language", "cpp", "--peer", "none", "--git", "none")
    assert typed(*start, "--context", entry.name) == 0
    drafts = ("--drafts", "kernels/double/drafts/cpp", "--parallel", "2")
    assert typed("optimize", "double", *drafts, "--resume") == 0
    campaign = store.find_campaign(projects.find_project())
    both = campaign.records()[1].contenders
    assert sorted(each.end for each in both) == ["chosen", "screened"]
    assert all(each.screen for each in both), "both were timed there"
    checks = [
        Evaluation.model_validate_json(path.read_bytes())
        for path in sorted(campaign.ledger.folder_of(2).glob("contender-*.json"))
    ]
    assert [each.provenance.context for each in checks] == [entry.name] * 2
    assert typed("evidence", "check") == 0
    assert typed("next") == 0
    assert jobs(entry) == []
    race = state.read_state(campaign).final
    assert race is not None
    return [*(record.evaluation for record in campaign.records()), race]


def check(judgements: list[Evaluation], context: str) -> None:
    assert [each.decision.verdict for each in judgements] == ["ACCEPT", "ACCEPT", "ROLLBACK", "ACCEPT"]
    assert [each.version for each in judgements] == ["v1", "v2", "v3", "v2"]
    assert judgements[1].gain is not None
    assert judgements[1].gain.speedup > 5
    assert judgements[2].status is Status.INCORRECT_NUMERICAL
    assert {each.provenance.context for each in judgements} == {context}


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # ten judgements, checks and profiles, each in processes of its own
    pytest.mark.skipif(cxx_compiler.missing_cxx_compiler() is not None, reason="no C++ compiler"),
]


def test_a_campaign_through_slurm(
    typed: Typed, cluster: Cluster, slurm_entry: NamedContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    judgements = run_campaign(typed, slurm_entry, monkeypatch, tmp_path)
    check(judgements, "cluster")
    assert {each.provenance.node for each in judgements} == {NODE}
    assert len({each.provenance.slurm_job for each in judgements}) == 1, "one allocation for all"
    assert cluster.jobs() == [], "it ends with the final race"


@pytest.mark.long
def test_a_campaign_through_ssh(
    typed: Typed, entry: NamedContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check(run_campaign(typed, entry, monkeypatch, tmp_path), "lab")
