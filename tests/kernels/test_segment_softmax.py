"""Segment softmax: offsets have the lengths that they name; wrong kernels fail; drafts are right and compile."""

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

FOLDER = Path(__file__).parents[2] / "kernels" / "segment_softmax"
FILE = definition_file.load_definition(FOLDER / "definition.py")
DRAFTS = sorted(FOLDER.glob("drafts/triton/*.py"))
ODD = {one.name: one for one in FILE.definition.select("odd")}
CHANCE = "int(torch.randint(8, (), **where))"
"""What chooses the values of a workload that is not timed."""
KINDS = {"far_apart": 0, "masked": 2, "not_a_number": 6, "normal": 7}
DRAWS = 12
"""Draws of a workload: its values are hard ones by chance."""


def by_tiles(
    values: torch.Tensor, offsets: torch.Tensor, *, tile: int = 256, forgets: bool = False
) -> torch.Tensor:
    """Sums of a segment's part in each tile, with the part's own shift, added up; with one fault by choice."""
    y = torch.empty_like(values)
    for left, right in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if left == right:
            continue
        x = values[left:right].float()
        first = tile - left % tile
        parts = [x[:first], *x[first:].split(tile)] if len(x) > first else [x]
        tops = torch.stack([part.amax() for part in parts])
        shifts = tops.masked_fill(tops == -torch.inf, 0)
        sums = torch.stack([(part - shift).exp().sum() for part, shift in zip(parts, shifts, strict=True)])
        shift = tops.amax() if tops.amax() > -torch.inf else 0
        if forgets and len(parts) > 1:
            sums[-1] = 0
        y[left:right] = (x - shift).exp() / (sums * (shifts - shift).exp()).sum()
    return y


def grades(name: str, **faults: bool) -> set[str]:
    drawn, found = Inputs(FILE, ODD[name], 5, "cpu"), set()
    for _ in range(DRAWS):
        inputs = drawn.draw()
        truth = correctness.compute_truth(FILE, ODD[name], inputs)
        found.add(correctness.grade_outputs(truth, FILE.outputs(by_tiles(**inputs, **faults))).status)
    return found


@pytest.mark.parametrize("name", ["1000-in-77-fp32-zipf", "4097-in-3-fp16-equal", "20011-in-4000-bf16-empty"])
def test_parts_of_segments_hold_the_bounds(name):
    assert grades(name) == {"PASSED"}


def test_a_forgotten_part_fails():
    assert "INCORRECT_NUMERICAL" in grades("4097-in-3-fp16-equal", forgets=True)


@pytest.mark.parametrize(
    ("law", "least", "most"),
    [("equal", 0.009, 0.011), ("zipf", 0.15, 0.3), ("giant", 0.85, 0.95), ("empty", 0, 0.2)],
)
def test_the_longest_segment_is_that_of_the_law(law, least, most):
    workload = FILE.definition.workloads[0].model_copy(
        update={"axes": {"total": 10007, "segments": 100}, "distribution": law}
    )
    offsets = Inputs(FILE, workload, 3, "cpu").draw()["offsets"]
    lengths = offsets.diff()
    assert (offsets[0], offsets[-1], lengths.min() >= 0) == (0, 10007, True)
    assert least <= float(lengths.max()) / 10007 <= most
    assert (int((lengths == 0).sum()) > 80) == (law == "empty")


@pytest.mark.parametrize("law", ["equal", "zipf", "giant", "empty"])
@pytest.mark.parametrize(("total", "segments"), [(1, 1), (1, 50), (3, 2), (100, 1)])
def test_any_sizes_fit_together(law, total, segments):
    workload = ODD["1-in-1-fp32-equal"].model_copy(
        update={"axes": {"total": total, "segments": segments}, "distribution": law}
    )
    for seed in range(5):
        offsets = Inputs(FILE, workload, seed, "cpu").draw()["offsets"]
        assert (int(offsets[0]), int(offsets[-1]), int(offsets.diff().min() >= 0)) == (0, total, 1)


@pytest.mark.parametrize("kind", ["far_apart", "masked", "not_a_number", "normal"])
@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("01_segments", {"BLOCK": 256}),
        ("02_tiles", {"TILE": 256, "SCANNED": 64}),
        ("05_by_size", {"BLOCK": 256}),
        ("05_by_size", {"SMALL": 0, "TILE": 256, "SCANNED": 64}),
    ],
    ids=str,
)
def test_drafts_are_right_where_the_interpreter_can_tell(name, constants, kind, interpret, tmp_path):
    path = copy_with(tmp_path, FOLDER / "drafts" / "triton" / f"{name}.py", **constants)
    leave_values(path.parents[2] / "definition.py", KINDS[kind])
    answer = interpret(path)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert [grade[0] for grade in answer["graded"]][1:] == ["1000-in-77-fp32-zipf", "4097-in-3-fp16-equal"]


def leave_values(definition: Path, kind: int) -> None:
    """Leave one kind of values, and workloads that an interpreter, which takes block after block, is quick at."""
    slow = tuple(f"at({sizes}," for sizes in ("1, 9", "5003, 3000", "8193, 40", "20011, 4000", "70001, 1"))
    lines = definition.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.strip().startswith(slow))
    assert text.count(CHANCE) == 1
    definition.write_text(text.replace(CHANCE, str(kind)))


@pytest.mark.parametrize("path", DRAFTS, ids=lambda path: path.stem)
def test_drafts_compile_without_spilling(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["16777216-in-65536-fp32-zipf"]
    reports = compile_reports(triton_compile.main, path, FILE.definition, asked, tmp_path)
    assert [report.spill_bytes for report in reports] == [0] * len(reports)
    if path.stem == "02_tiles":
        assert all("LDG.E.128" in note for report in reports for note in report.notes[:1]), "16 bytes a load"
