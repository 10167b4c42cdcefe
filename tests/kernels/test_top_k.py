"""The k largest: there is one right result; peers may order equal elements; the draft is right where the
interpreter can tell, and compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiled import compile_reports
from kernel_copies import copy_with

from warpsmith.lab.grading import correctness, shapes
from warpsmith.lab.operator import definition_file, peers
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "top_k"
FILE = definition_file.load_definition(FOLDER / "definition.py")
DRAFT = FOLDER / "drafts" / "triton" / "01_groups.py"
ODD = {workload.name: workload for workload in FILE.definition.select("odd")}
TIED = torch.tensor([[1.0, 3.0, -0.0, 3.0, torch.nan, 0.0, torch.inf, 3.0]])


def graded(outputs, x, k):
    workload = ODD["3x1000-7-fp32"].model_copy(update={"axes": {"rows": len(x), "cols": x.shape[1], "k": k}})
    truth = correctness.compute_truth(FILE, workload, {"x": x})
    return correctness.grade_outputs(truth, FILE.outputs(outputs)).status


def test_equal_elements_come_by_their_places_and_nan_first():
    _, indices = FILE.reference(TIED, 8)
    assert indices.tolist() == [[4, 6, 1, 3, 7, 0, 2, 5]]


def test_a_row_shorter_than_k_comes_back_whole():
    values, indices = FILE.reference(TIED, 100)
    assert values.shape == indices.shape == (1, 8)


def test_k_is_drawn_with_the_sizes():
    drawn = shapes.draw_class_workloads(FILE, FILE.definition.workloads, seed=1)
    numbers = {(workload.axes["k"], FILE.definition.scalars(workload)["k"]) for workload in drawn}
    assert len(numbers) > 5
    assert all(size == number for size, number in numbers)


@pytest.mark.parametrize("fault", ["places", "next", "order"])
def test_what_is_wrong_fails(fault):
    x = torch.randn(3, 1000)
    values, indices = FILE.reference(x, 8)
    assert graded((values[:, :7], indices[:, :7]), x, 7) == "PASSED"
    wrong = {
        "places": (values[:, :7], indices[:, [1, 0, 2, 3, 4, 5, 6]]),
        "next": (values[:, 1:], indices[:, 1:]),
        "order": (values[:, :7].flip(-1), indices[:, :7].flip(-1)),
    }
    assert graded(wrong[fault], x, 7) == "INCORRECT_NUMERICAL"


def test_a_peer_may_choose_among_equal_elements_and_nothing_else():
    peer = peers.get_peer(FILE, "torch.topk")
    inputs = {"x": torch.randint(4, (5, 300)).float(), "k": 40}
    expected = FILE.reference(**inputs)
    values, indices = peer(*inputs.values())
    for places, is_right in ((indices, True), (indices.roll(1, 0), False), (indices[:, [0]].expand(5, 40), False)):
        outputs = peer.canonical(inputs, {"values": values, "indices": places})
        assert torch.equal(outputs["values"], expected[0])
        assert torch.equal(outputs["indices"], expected[1]) == is_right


SMALL = """
definition = definition.model_copy(update={"workloads": tuple(at(*sizes, set="odd") for sizes in [SIZES])})
"""


@pytest.mark.parametrize(
    ("constants", "sizes"),
    [
        ({}, "(1, 1, 1), (3, 1000, 7), (2, 513, 2, 'float16'), (2, 200, 200)"),
        ({"SHORT": 64, "TILE": 64, "MOST": 32}, "(2, 1000, 9), (1, 70, 32), (1, 640, 1, 'float16')"),
        ({"SHORT": 32, "TILE": 64, "MOST": 8}, "(2, 100, 20), (1, 40, 40)"),
    ],
    ids=["short rows", "long rows", "turns"],
)
def test_the_draft_is_right_in_the_interpreter(constants, sizes, interpret, tmp_path):
    path = copy_with(tmp_path, DRAFT, **constants)
    definition = path.parents[2] / "definition.py"
    definition.write_text(definition.read_text() + SMALL.replace("SIZES", sizes))
    answer = interpret(path)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) >= 2


@pytest.mark.parametrize("cols", [1 << power for power in range(4, 23)])
def test_there_are_enough_groups(cols):
    group_of = execute_file(DRAFT).group_of
    for kept in (1 << power for power in range(cols.bit_length())):
        assert kept <= cols // group_of(cols, kept)


def test_the_draft_does_not_spill(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["4096x4096-64-fp32", "64x1048576-64-bf16"]
    reports = compile_reports(triton_compile.main, DRAFT, FILE.definition, asked, tmp_path)
    assert {report.kernel for report in reports} == {
        "short_kernel", "group_kernel", "winner_kernel", "chosen_kernel"
    }  # fmt: skip
    assert [report.kernel for report in reports if report.spill_bytes] == []
