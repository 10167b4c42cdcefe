"""The project of the benchmark is a sound one: its records are signed, chained, and judged as they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from warpsmith.campaign.evidence import evidence_check
from warpsmith.campaign.history import store
from warpsmith.project import SHIPPED, find_project
from warpsmith.use import choice


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("records_scale", SHIPPED / "benchmarks" / "records_scale.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "records_scale", module)
    spec.loader.exec_module(module)
    return module


def test_a_small_project(benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "OPERATORS", 2)
    benchmark.build_project(tmp_path / "project", 3, 12)
    project = find_project(tmp_path / "project")
    standing = evidence_check.check_evidence(project, {})
    assert (standing.rounds, standing.stale) == (36, ())
    assert store.find_campaign(project).name == "softmax_0-triton-h200-002"  # the one that goes on
    assert choice.best_versions_by_target(project, "softmax_1")["h200"].solution == "triton/v11"
