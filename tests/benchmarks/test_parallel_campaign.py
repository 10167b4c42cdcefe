"""The benchmark of several contenders: drafts from recorded campaigns, and one measurement for both campaigns."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpsmith.driver.drafts_designer import DraftsDesigner
from warpsmith.lab.operator import definition_file
from warpsmith.project import SHIPPED, find_project

SOFTMAX = SHIPPED / "devlog" / "softmax"
RECORDINGS = (SOFTMAX / "softmax-triton-h200-20261121", SOFTMAX / "softmax-triton-h200-20261121-2")
SHORT = SHIPPED / "benchmarks" / "short" / "softmax" / "definition.py"


@pytest.fixture
def benchmark(load_benchmark) -> ModuleType:
    return load_benchmark("parallel_campaign")


def run(benchmark: ModuleType, out: Path, *words: str) -> list[dict[str, Any]]:
    """Run with campaigns that only look at what they get; return what each saw."""
    seen: list[dict[str, Any]] = []

    def play(root: Path, definition: Path, options: Any, count: int) -> dict[str, Any]:
        (root / "warpsmith.toml").parent.mkdir(parents=True, exist_ok=True)
        (root / "warpsmith.toml").touch()
        measurements = find_project(root).measurements
        names = sorted(path.name for path in measurements.glob("*.json"))
        designer = DraftsDesigner(options.drafts)
        plans = [designer.read_page(draft).plan for draft in designer.drafts]
        seen.append({"count": count, "measured": names, "plans": plans, "sources": designer.drafts})
        seen[-1]["texts"] = [draft.read_text() for draft in designer.drafts]
        measurements.mkdir(parents=True, exist_ok=True)
        (measurements / "cpu-1.json").touch()
        return {"seconds": 4.0 / count, "best": "02.py", "rounds": []}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "_play", play)
        patch.chdir(SHIPPED)
        arguments = ["softmax", "--target", "cpu", "--out", str(out), "--definition", str(SHORT), *words]
        patch.setattr(sys, "argv", ["parallel_campaign.py", *arguments])
        benchmark.main()
    return seen


def test_versions_of_recordings_are_played_with_their_plans(benchmark: ModuleType, tmp_path: Path):
    serial, several = run(benchmark, tmp_path / "out.json", "--recording", *map(str, RECORDINGS))
    versions = SHIPPED / "kernels" / "softmax" / "triton"
    assert serial["texts"] == [(versions / f"v{number}.py").read_text() for number in range(1, 9)]
    assert len({plan.hypothesis for plan in serial["plans"]}) == 8
    assert (serial["count"], several["count"]) == (1, 4)
    assert (serial["measured"], several["measured"]) == ([], ["cpu-1.json"])
    record = json.loads((tmp_path / "out.json").read_text())
    assert (record["share"], record["same_winner"], record["drafts"][0]) == (0.25, True, "01.py")


def test_the_first_campaign_is_on_record_before_the_second_begins(benchmark: ModuleType, tmp_path: Path):
    out = tmp_path / "out.json"
    kept: list[dict[str, Any]] = []
    write = benchmark._write_record

    def keep(path: Path, record: dict[str, Any]) -> None:
        write(path, record)
        kept.append(json.loads(path.read_text()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "_write_record", keep)
        run(benchmark, out, "--recording", str(RECORDINGS[0]), "--most", "2")
    assert ["several" in record for record in kept] == [False, True]
    assert kept[0]["serial"] == kept[1]["serial"]


def test_the_first_versions_alone(benchmark: ModuleType, tmp_path: Path):
    serial, _ = run(benchmark, tmp_path / "out.json", "--recording", str(RECORDINGS[0]), "--most", "5")
    assert [path.name for path in serial["sources"]] == [f"0{number}.py" for number in range(1, 6)]


def test_the_campaign_one_by_one_of_an_earlier_record(benchmark: ModuleType, tmp_path: Path):
    drafts = ("--recording", str(RECORDINGS[0]), "--most")
    (serial,) = run(benchmark, tmp_path / "serial.json", *drafts, "5", "--parallel", "1")
    (several,) = run(benchmark, tmp_path / "out.json", *drafts, "5", "--serial", str(tmp_path / "serial.json"))
    record = json.loads((tmp_path / "out.json").read_text())
    assert (serial["count"], several["count"], record["share"]) == (1, 4, 0.25)
    with pytest.raises(SystemExit, match="other drafts"):
        run(benchmark, tmp_path / "out.json", *drafts, "4", "--serial", str(tmp_path / "serial.json"))


def test_the_short_definition_is_the_operator_at_fewer_sizes():
    short = definition_file.load_definition(SHORT).definition
    whole = definition_file.load_definition(SHIPPED / "kernels" / "softmax" / "definition.py").definition
    assert short.model_copy(update={"workloads": ()}) == whole.model_copy(update={"workloads": ()})
    assert {workload.name for workload in short.workloads} < {workload.name for workload in whole.workloads}
