"""The reference that a region's kernel is timed against."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.lab.operator import definition_file
from warpsmith.program.tasks import transfer

torch = pytest.importorskip("torch")

TEXT = '''"""A region."""
import torch
from warpsmith import Definition, TensorSpec, Workload

definition = Definition(
    name="mine", description="a region", axes={"d0": ""}, inputs={"x": TensorSpec(shape=("d0",), dtype="float32")},
    outputs={"out0": TensorSpec(shape=("d0",)), "out1": TensorSpec(shape=("d0",))}, flops="0",
    workloads=(Workload(name="w", axes={"d0": 8}),),
)


def reference(x):
    return torch.ops.aten.exp.default(x), torch.ops.aten.ne.Scalar(x, 0).to(x.dtype)
'''


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_a_regions_reference_is_what_inductor_makes_of_it(tmp_path: Path):
    path = tmp_path / "kernels" / "mine" / "definition.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    file = definition_file.load_definition(path)
    (workload,) = file.definition.workloads
    plain, compiled = (
        transfer._PairTimer(file, workload, file.reference, "cpu", 0, compiled=on) for on in (False, True)
    )
    assert plain._reference is file.reference
    assert compiled._reference is not file.reference
    x = torch.tensor([0.0, 1.0, -2.0, 0.0, 3.0, 4.0, 5.0, 6.0])
    for result, expected in zip(compiled._reference(x), file.reference(x), strict=True):
        torch.testing.assert_close(result, expected)
    compiled.time_pairs("fresh")
    assert len(compiled.times["fresh"]) == transfer.PAIRS
