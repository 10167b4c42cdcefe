"""The example's operator at small sizes, and a judgement of a file on two ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from warpsmith.core.definition import Workload
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.ranks import correctness_check, judge, timing
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import find_project

EXAMPLE = Path(__file__).parents[3] / "examples" / "ranks" / "all_reduce_rmsnorm"


@pytest.fixture(scope="session")
def file() -> DefinitionFile:
    loaded = definition_file.load_definition(EXAMPLE / "definition.py", over_ranks=True)
    sizes = {"32x1024": "representative", "3x17": "odd"}
    workloads = tuple(
        Workload(name=name, axes=dict(zip(("rows", "cols"), map(int, name.split("x")), strict=True)), set=set_)
        for name, set_ in sizes.items()
    )
    return replace(loaded, definition=loaded.definition.model_copy(update={"workloads": workloads}))


@pytest.fixture
def judge_file(
    host: WorkerHost, file: DefinitionFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., RankEvaluation]:
    """`judge_file(path, against=..., timed=..., seconds=...)` in few rounds, and without sizes drawn by chance."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # an attack leaves a file beside the ranks' folder
    monkeypatch.setattr(timing, "TIMING_SECONDS", 0.1)
    monkeypatch.setattr(correctness_check.odd, "draw_near_workloads", lambda *_, **__: [])

    def judge_it(
        path: Path, *, against: Path | None = None, timed: bool = False, seconds: float = 20
    ) -> RankEvaluation:
        limits = Limits(seconds=seconds)
        return judge.judge_ranks(
            judge.RankRequest(find_project(), file, path, against, timed=timed, limits=limits), host
        )

    return judge_it
