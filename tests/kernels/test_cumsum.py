"""Running sums: the bounds refuse what is wrong; versions are right where an interpreter can tell, and compile."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiled import compile_reports
from kernel_copies import copy_with

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "cumsum"
FILE = definition_file.load_definition(FOLDER / "definition.py")
DRAFT = FOLDER / "drafts" / "triton" / "03_by_rows.py"
VERSIONS = [FOLDER / "triton" / "v1.py", FOLDER / "triton" / "v2.py", DRAFT]
ODD = {one.name: one for one in FILE.definition.select("odd")}


def by_parts(x: torch.Tensor, *, part: int = 512, narrow: bool = False, forgets: bool = False) -> torch.Tensor:
    """Sums of parts, each with the totals of all parts before it; with one fault by choice."""
    parts = x.float().split(part, -1)
    totals = torch.stack([each.sum(-1) for each in parts], -1)
    if narrow:
        totals = totals.bfloat16().float()
    before = totals.cumsum(-1) - totals
    if forgets:
        before[..., -1] = 0
    return torch.cat([each.cumsum(-1) + before[..., [i]] for i, each in enumerate(parts)], -1).to(x.dtype)


def graded(name: str, distribution: str | None = None, **faults: bool) -> str:
    inputs = Inputs(FILE, ODD[name], 5, "cpu").draw(distribution)
    truth = correctness.compute_truth(FILE, ODD[name], inputs, correlated=distribution is not None)
    return correctness.grade_outputs(truth, FILE.outputs(by_parts(inputs["x"], **faults))).status


@pytest.mark.parametrize("name", ["5x4097-fp32", "3x65537-bf16"])
@pytest.mark.parametrize("distribution", [None, "large", "huge", "one_hot", "constant"])
def test_sums_of_parts_hold_the_bounds(name, distribution):
    assert graded(name, distribution) == "PASSED"


@pytest.mark.parametrize("fault", ["narrow", "forgets"])
def test_what_is_wrong_fails(fault):
    assert graded("5x4097-fp32", **{fault: True}) == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(
    ("path", "constants"),
    list(zip(VERSIONS, ({"TILE": 256}, {"PART": 256}, {"PART": 256, "TILE": 512, "FEW_ROWS": 6}), strict=True)),
    ids=["v1", "v2", "03_by_rows"],
)
def test_versions_are_right_where_the_interpreter_can_tell(path, constants, interpret, tmp_path):
    answer = interpret(copy_with(tmp_path, path, **constants))
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) == 6


@pytest.mark.parametrize("path", VERSIONS, ids=lambda path: path.stem)
def test_versions_compile_without_spilling(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["4096x4096-fp32", "64x1048576-fp32", "64x1048576-bf16"]
    reports = compile_reports(triton_compile.main, path, FILE.definition, asked, tmp_path)
    assert [report.spill_bytes for report in reports] == [0] * len(reports)
    sass = "".join(one.read_text() for one in tmp_path.glob("*.sass"))
    assert "LDG.E.EF.128" in sass or "LDG.E.128" in sass, "16 bytes a load"
