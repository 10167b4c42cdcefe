"""Regions with a definition: their digests, and which of them `enable()` takes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith import project as projects
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.program.compiled.region_graph import RegionGraph, RegionNode, RegionTensor
from warpsmith.program.operators import accepted_regions, kernel_override
from warpsmith.program.operators.models import ArgumentSource, Extraction
from warpsmith.program.operators.region_override import CoveredRegion
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project
from warpsmith.use import choice

X = RegionTensor(shape=(4, 3), strides=(1, 4), dtype="float32", device="cpu")
CALL = RegionNode(target="aten.exp.default", args=({"input": 0},), result=X)
EXP = RegionGraph(inputs=(X,), nodes=(CALL,), outputs=(0,))


def extraction(op: str, region: RegionGraph | None = EXP) -> Extraction:
    return Extraction.model_validate(
        {
            "op": op, "operator": "x", "program": {"name": "train", "path": "train.py", "step": "step"},
            "device": "cpu", "step_seconds": 1, "results": [{"output": "out", "order": (1, 0)}], "called": [],
            "slots": [ArgumentSource(argument="x", input="x", order=(1, 0)).model_dump()],
            "region": region.model_dump() if region else None,
        }
    )  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "warpsmith.toml").write_text("")
    for op, region in (("mine", EXP), ("plain", None)):
        path = tmp_path / "kernels" / op / "calls.json"
        path.parent.mkdir(parents=True)
        path.write_text(extraction(op, region).model_dump_json())
    (tmp_path / "kernels" / "torn").mkdir()
    (tmp_path / "kernels" / "torn" / "calls.json").write_text("{")
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {"cpu": [op]})
    monkeypatch.chdir(tmp_path)
    return projects.find_project(tmp_path)


def test_regions_are_listed_by_digest_and_operators_are_not(here):
    assert accepted_regions.list_definitions(here) == {EXP.digest: "mine"}


@pytest.mark.parametrize(("verdict", "listed"), [("KEPT", ["mine"]), ("RESTORED", []), (None, ["mine"])])
def test_a_region_that_the_step_refused_is_not_enabled(here, monkeypatch, verdict, listed):
    from warpsmith.core.trial import TrialVerdict

    trial = SimpleNamespace(
        plan=SimpleNamespace(entry="integrate-mine"),
        decision=SimpleNamespace(verdict=verdict and TrialVerdict(verdict)),
    )
    monkeypatch.setattr(Trials, "records", lambda self: {1: trial} if verdict else {})
    assert accepted_regions.list_accepted(here) == listed


def test_a_region_without_an_accepted_version_is_not_enabled(here, monkeypatch):
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {})
    assert accepted_regions.list_accepted(here) == []


def test_enable_without_a_name_takes_the_accepted_regions(here, monkeypatch):
    installed: list[str] = []
    monkeypatch.setattr(kernel_override, "_install", installed.append)
    scope = {"__file__": str(here.root / "train.py"), "enable": kernel_override.enable}
    exec("enable()", scope)
    assert installed == ["mine"]
    monkeypatch.setenv(kernel_override.SWITCH, "0")
    exec("enable()", scope)
    assert installed == ["mine"]


def covered(**changes: object) -> bool:
    definition = Definition(
        name="mine", description="a test", axes={"rows": "", "cols": ""}, flops="0",
        inputs={"x": TensorSpec(shape=("rows", "cols"))}, outputs={"out": TensorSpec(shape=("rows", "cols"))},
        workloads=(
            Workload(name="w", axes={"rows": 3, "cols": 4}),
            Workload(name="odd", axes={"rows": 7, "cols": 7}, set="odd"),
        ),
    )  # fmt: skip
    return CoveredRegion(extraction("mine"), definition)([X.model_copy(update=changes)])


def test_only_tensors_of_a_workload_are_covered():
    assert covered()
    assert not covered(dtype="bfloat16")
    assert not covered(device="cuda")
    assert not covered(strides=(3, 1))
    assert not covered(shape=(5, 3), strides=(1, 5))
    assert not covered(shape=(7, 7), strides=(1, 7))  # judged, but never timed
