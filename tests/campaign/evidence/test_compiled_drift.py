"""Two releases of a compiler: which best versions become other machine code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from warpsmith.campaign.evidence import compiled_drift
from warpsmith.campaign.evidence.compiled_drift import CodeFigures, CompiledDrift
from warpsmith.cli.lab import evidence
from warpsmith.errors import Misuse
from warpsmith.languages.base import BuildFailed
from warpsmith.project import find_project


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.callback()(lambda: None)
    evidence.register(made)
    return made


def figures(registers: int = 40, workload: str = "large", instructions: int = 300) -> dict[str, object]:
    return CodeFigures(
        kernel="row",
        workloads=(workload,),
        registers=registers,
        spill_bytes=0,
        shared_bytes=64,
        instructions=instructions,
    ).model_dump()


def drift(other: list[dict[str, object]], this: list[dict[str, object]]) -> CompiledDrift:
    facts = {"solution": "v1.py", "arch": "sm_90a", "packages": {}}
    return CompiledDrift.model_validate({**facts, "other": other, "this": this})


def test_each_figure_that_differs_is_named() -> None:
    assert drift([figures()], [figures()]).changes == []
    assert drift([figures()], [figures(48, instructions=310)]).changes == [
        "row at large: registers 40 -> 48",
        "row at large: instructions 300 -> 310",
    ]
    assert drift([figures()], [figures(), figures(workload="small")]).changes == [
        "kernels 1 -> 2, at other workloads"
    ]


def test_a_folder_without_a_compiler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"pip install --no-deps --target"):
        next(compiled_drift.compile_drift(find_project(), tmp_path, None))


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with another Triton; its kernels take fewer registers, and one version fails in it."""
    (tmp_path / "triton-3.6.0.dist-info").mkdir()
    (tmp_path / "triton-3.6.0.dist-info" / "METADATA").write_text("Name: triton\nVersion: 3.6.0\n")

    def stored(version: str, language: str) -> SimpleNamespace:
        provenance = SimpleNamespace(solution=f"kernels/softmax/{language}/{version}.py")
        return SimpleNamespace(
            evaluation=SimpleNamespace(
                language=language, target="h200", definition="softmax", provenance=provenance
            )
        )

    def read(project: object, op: str, language: object, source: Path, arch: str) -> list[dict[str, object]]:
        is_other = os.environ.get("PYTHONPATH", "").startswith(str(tmp_path))
        if source.stem == "v2" and is_other:
            raise BuildFailed("no such attribute")
        return [figures(40 if is_other else 48)]

    rounds = [stored("v1", "triton"), stored("v2", "triton"), stored("v3", "cpp")]
    monkeypatch.setattr(compiled_drift.stored_evaluations, "list_evaluations", lambda _: ([], []))
    monkeypatch.setattr(compiled_drift.evidence_check, "best_rounds", lambda _: rounds)
    monkeypatch.setattr(compiled_drift, "_read_figures", read)
    return tmp_path


def test_versions_are_compiled_by_both_and_the_changed_ones_counted(compilers: Path, app: typer.Typer) -> None:
    before = os.environ.get("PYTHONPATH")
    done = CliRunner().invoke(app, ["evidence", "drift", "--compiled", str(compilers)])
    assert done.exit_code == 4
    lines = done.output.splitlines()
    assert "triton/v1.py for sm_90a: row at large: registers 40 -> 48" in lines[0]
    assert "triton/v2.py for sm_90a: no such attribute" in lines[1]
    assert lines[2].startswith("1 of 2 best versions changed: triton 3.6.0 -> ")
    assert os.environ.get("PYTHONPATH") == before


def test_another_device_kind_has_none_and_json_has_every_figure(compilers: Path, app: typer.Typer) -> None:
    none = CliRunner().invoke(app, ["evidence", "drift", "--compiled", str(compilers), "--target", "b200"])
    assert none.exit_code == 0
    assert none.output.startswith("0 of 0 best versions changed")
    first = (
        CliRunner().invoke(app, ["evidence", "drift", "--compiled", str(compilers), "--json"]).output.splitlines()
    )
    record = json.loads(first[0])
    assert (record["other"][0]["registers"], record["this"][0]["registers"]) == (40, 48)
