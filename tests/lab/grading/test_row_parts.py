"""Calls too large for the memory: their reference comes by rows, and grades are those of the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from warpsmith.lab.grading import correctness, row_parts
from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.lab.operator.inputs import Inputs

ROOT = Path(__file__).parents[3]
FILE = load_definition(ROOT / "kernels" / "cross_entropy" / "definition.py")
WORKLOAD = next(each for each in FILE.definition.workloads if each.name == "259x515-fp32")


@pytest.fixture
def lengths(monkeypatch):
    """A device of little memory; lengths of the parts that were computed."""
    seen, split = [], row_parts._split_rows

    def noted(*arguments):
        for start, length in split(*arguments):
            seen.append(length)
            yield start, length

    monkeypatch.setattr(row_parts, "_split_rows", noted)
    monkeypatch.setattr(row_parts, "_LEAST_BYTES", 0)
    monkeypatch.setattr(row_parts, "free_bytes", lambda _: 5e6)
    return seen


def whole_and_parts(file, inputs, monkeypatch, correlated):
    """Truths of a call with enough memory, and with too little."""
    with monkeypatch.context() as patch:
        patch.setattr(row_parts, "free_bytes", lambda _: float("inf"))
        whole = correctness.compute_truth(file, WORKLOAD, inputs, correlated=correlated)
    return whole, correctness.compute_truth(file, WORKLOAD, inputs, correlated=correlated)


@pytest.mark.parametrize(
    ("distribution", "spoil"),
    [(None, None), ("sorted", None), ("denormal", None), ("masked", None), (None, float("inf")), (None, 1e-40)],
)
def test_parts_give_the_whole(lengths, monkeypatch, distribution, spoil):
    inputs = Inputs(FILE, WORKLOAD, 1, "cpu").draw(distribution)
    if spoil is not None:
        inputs["logits"][257, 3] = spoil  # in the last part alone
    whole, parts = whole_and_parts(FILE, inputs, monkeypatch, correlated=distribution is not None)
    assert len(lengths) > 3
    assert sum(lengths) == 259
    for name, value in whole.values.items():
        assert torch.equal(value.nan_to_num(), parts.values[name].nan_to_num())
        assert torch.equal(whole.bounds[name].nan_to_num(), parts.bounds[name].nan_to_num())
    assert parts.required == whole.required
    assert parts.norms == pytest.approx(whole.norms, rel=1e-12)


@pytest.mark.parametrize("row", [0, 100, 258])
def test_an_error_in_any_row_is_seen(lengths, row):
    inputs = Inputs(FILE, WORKLOAD, 1, "cpu").draw()
    truth = correctness.compute_truth(FILE, WORKLOAD, inputs)
    assert correctness.grade_reference(FILE, WORKLOAD, inputs, truth).status == "PASSED"
    assert len(lengths) > 12  # the truth and three orders
    outputs = correctness.reference_outputs(FILE, WORKLOAD, inputs)
    outputs["dlogits"][row, 7] += 1e-3
    assert correctness.grade_outputs(truth, outputs).status == "INCORRECT_NUMERICAL"


def test_a_hook_that_looks_at_all_rows_is_called_once(lengths, monkeypatch):
    def magnitude(logits, targets, z_loss):
        loss, gradient = FILE.magnitude(logits, targets, z_loss)
        return loss, gradient.clamp_min(gradient.mean())

    file = replace(FILE, magnitude=magnitude, row_axes={})
    inputs = Inputs(FILE, WORKLOAD, 1, "cpu").draw()
    whole, parts = whole_and_parts(file, inputs, monkeypatch, correlated=False)
    assert not lengths
    assert torch.equal(whole.bounds["dlogits"], parts.bounds["dlogits"])


def test_memory_that_nobody_uses_is_given_back(monkeypatch):
    reserved, free, calls = [100], [100], []
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: reserved[0])
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 50)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: type("P", (), {"total_memory": 3200}))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free[0], 3200))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(1))
    row_parts.release_unused("cuda")
    assert not calls
    reserved[0] = 151
    free[0] = 1000  # so much that a worker hardly misses it
    row_parts.release_unused("cuda")
    assert not calls
    free[0] = 400
    row_parts.release_unused("cuda")
    row_parts.release_unused("cpu")
    assert len(calls) == 1


def test_the_first_part_tells_how_long_the_next_ones_are(monkeypatch):
    peak = {"allocated": 0, "per row": 1e6}
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 0)
    monkeypatch.setattr(row_parts, "free_bytes", lambda _: 4e7)
    parts = row_parts._split_rows(FILE, WORKLOAD, 259, "cuda")
    lengths = []
    for _, length in parts:
        lengths.append(length)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda rows=length: rows * peak["per row"])
    assert lengths[0] > 100
    assert lengths[1:-1] == [10] * (len(lengths) - 2)
    assert sum(lengths) == 259


def test_a_processor_has_the_memory_that_is_available(monkeypatch):
    monkeypatch.setattr(row_parts.psutil, "virtual_memory", lambda: SimpleNamespace(available=3e9))
    assert row_parts.free_bytes("cpu") == 3e9
    large = WORKLOAD.model_copy(update={"axes": {**WORKLOAD.axes, "rows": 1 << 17}})
    assert [row_parts.exceeds_memory(FILE, workload, "cpu") for workload in (WORKLOAD, large)] == [False, True]
