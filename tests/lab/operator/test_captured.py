"""Captured calls beside a definition, as workloads draw from them."""

from importlib.metadata import PackageNotFoundError
from unittest.mock import Mock

import pytest
import torch

from warpsmith import packages
from warpsmith.errors import BadDefinition, MachineLacks, MissingInput
from warpsmith.lab.operator import captured
from warpsmith.lab.operator.captured import CapturedCall, CapturedCalls
from warpsmith.lab.operator.inputs import Inputs

pytest.importorskip("safetensors")

GATHER = """
import torch
from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="gather", description="Rows of a table", axes={"n": "ids", "rows": "rows", "cols": 4},
    inputs={"table": TensorSpec(shape=("rows", "cols")),
            "ids": TensorSpec(shape=("n",), dtype="int64", distribution="integers:0:rows")},
    outputs={"y": TensorSpec(shape=("n", "cols"))}, flops="n",
    workloads=(Workload(name="seen", axes={"n": 3, "rows": 6}, distribution="@FORM@", weight=2),
               Workload(name="unseen", axes={"n": 5, "rows": 9}, distribution="@FORM@")),
)

def reference(table, ids):
    return table[ids]
"""

TABLE = torch.arange(24.0).reshape(6, 4)
TABLE[2] = 0
IDS = torch.tensor([4, 0, 5])


@pytest.fixture
def file(workshop):
    calls = (CapturedCall({"n": 3, "rows": 6}, {"table": "table/0", "ids": "ids/0"}),)
    data = CapturedCalls(calls, {"table/0": TABLE, "ids/0": IDS}).to_bytes()
    loaded = workshop.load("gather", GATHER.replace("@FORM@", captured.digest_form(data)))
    loaded.path.with_name(captured.FILE).write_bytes(data)
    return loaded


def inputs(file, number):
    return Inputs(file, file.definition.workloads[number], 3, "cpu")


def test_a_call_of_the_shape_keeps_its_integers_and_varies_its_floats(file):
    source = inputs(file, 0)
    first, second = source.draw(), source.draw(quick=True)
    for drawn in (first, second):
        assert torch.equal(drawn["ids"], IDS)
        assert (drawn["table"][2] == 0).all()
        assert ((drawn["table"] - TABLE).abs() <= TABLE * 0.0626).all()
    assert not torch.equal(first["table"], second["table"])
    assert torch.equal(first["table"], inputs(file, 0).draw()["table"])


def test_another_shape_has_rows_of_the_calls_and_new_integers(file):
    table, ids = inputs(file, 1).draw().values()
    assert (table.shape, ids.shape) == ((9, 4), (5,))
    assert int(ids.max()) < 9
    for row in table:
        near = ((row - TABLE).abs() <= TABLE * 0.0626).all(-1)
        assert near.any()


def test_an_adversarial_distribution_takes_the_place_of_floats_only(file):
    drawn = inputs(file, 0).draw("far")
    assert float(drawn["table"].min()) > 200
    assert torch.equal(drawn["ids"], IDS)


def test_several_draws_differ(file):
    tables = [drawn["table"] for drawn in inputs(file, 0).draw_several(4)]
    assert len({tuple(table.flatten().tolist()) for table in tables}) == 4


def test_other_bytes_are_refused(file):
    path = file.path.with_name(captured.FILE)
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(BadDefinition, match="does not hold the tensors that were captured"):
        inputs(file, 0).draw()


def test_a_missing_file_is_named(file):
    file.path.with_name(captured.FILE).unlink()
    with pytest.raises(MissingInput, match=r"captured.safetensors does not exist"):
        inputs(file, 0).draw()


def test_a_missing_package_is_named(file, monkeypatch):
    monkeypatch.setattr(captured, "find_spec", lambda name: None)
    monkeypatch.setattr(packages, "metadata", Mock(side_effect=PackageNotFoundError))
    with pytest.raises(MachineLacks, match=r"needs safetensors, .* pip install 'safetensors>="):
        inputs(file, 0).draw()


def test_bytes_that_are_no_calls_are_refused(tmp_path):
    path = tmp_path / captured.FILE
    path.write_bytes(b"nothing")
    with pytest.raises(BadDefinition, match="not a file of captured calls"):
        captured.load_calls(path, captured.split_form(captured.digest_form(b"nothing")))
