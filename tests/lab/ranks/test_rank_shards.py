"""Each rank's part of a tensor, and the whole from the parts."""

from __future__ import annotations

import pytest
import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import BadDefinition, Misuse
from warpsmith.lab.operator import definition_file
from warpsmith.lab.ranks import correctness_check, shards

WORKLOAD = Workload(name="w", axes={"rows": 4, "cols": 6})


def define(ranks: int = 2, **changes: object) -> Definition:
    fields = {
        "name": "op",
        "description": "",
        "ranks": ranks,
        "axes": {"rows": "", "cols": ""},
        "inputs": {
            "x": TensorSpec(shape=("rows", "cols"), shard_axis="cols"),
            "w": TensorSpec(shape=("cols",)),
        },
        "outputs": {
            "y": TensorSpec(shape=("rows", "cols"), shard_axis="rows"),
            "z": TensorSpec(shape=("cols",)),
        },
        "flops": "rows * cols",
        "workloads": (WORKLOAD,),
    }
    return Definition(**(fields | changes))


def test_a_rank_has_its_part_and_the_parts_are_the_whole():
    definition = define()
    local = shards.localize_definition(definition, WORKLOAD)
    assert local.shape(local.tensor_inputs["x"], WORKLOAD) == (4, 3)
    assert local.shape(local.tensor_inputs["w"], WORKLOAD) == (6,)
    y, z = torch.arange(24.0).view(4, 6), [torch.zeros(6), torch.ones(6)]
    parts = [{"y": shards.take_shard(definition.outputs["y"], y, rank, 2), "z": z[rank]} for rank in range(2)]
    whole = shards.join_outputs(definition, parts)
    assert [torch.equal(each["y"], y) for each in whole] == [True, True]
    assert [float(each["z"][0]) for each in whole] == [0.0, 1.0], "each rank's own copy must be graded"


def test_only_one_ranks_inputs_are_drawn_again():
    before = {"x": torch.zeros(4, 6), "w": torch.zeros(6)}
    changed = shards.redraw_rank(define(), before, {"x": torch.ones(4, 6), "w": torch.ones(6)}, 1)
    assert changed["x"][0].tolist() == [0, 0, 0, 1, 1, 1]
    assert not changed["w"].any()
    assert not before["x"].any()


def test_another_number_of_ranks_moves_the_axis_of_their_parts(file):
    more = shards.change_ranks(file.definition, 4)
    assert (more.ranks, more.axes["parts"], more.workloads) == (4, 4, file.definition.workloads)
    local = shards.localize_definition(more, more.workloads[0])
    assert local.tensor_inputs["partial"].shape[0] == 1
    fixed = define(axes={"rows": "", "cols": 6}, workloads=(Workload(name="w", axes={"rows": 6}),))
    assert shards.change_ranks(fixed, 3).axes["cols"] == 6, "it has more than one part for each rank"
    with pytest.raises(Misuse, match="4 ranks cannot share out cols=6"):
        shards.change_ranks(define(), 4)
    with pytest.raises(Misuse, match="at least 2"):
        shards.change_ranks(define(), 1)


def test_drawn_sizes_are_shared_out_evenly():
    odd = WORKLOAD.model_copy(update={"axes": {"rows": 3, "cols": 67}})
    assert correctness_check.share_evenly(define(), odd).axes == {"rows": 4, "cols": 68}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ranks": 1}, "`ranks` above 1"),
        ({"ranks": 4}, "cannot share out cols=6"),
        ({"outputs_are": "given"}, "outputs_are"),
        ({"outputs": {"y": TensorSpec(shape=("rows",), shard_axis="cols")}}, "shard_axis of `y`"),
    ],
)
def test_a_layout_that_ranks_cannot_have_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        define(**changes)


def test_definitions_are_loaded_by_the_commands_for_their_ranks(file, tmp_path):
    with pytest.raises(BadDefinition, match="`warpsmith ranks`"):
        definition_file.load_definition(file.path)
    single = tmp_path / "op" / "definition.py"
    single.parent.mkdir()
    text = file.path.read_text().replace("all_reduce_rmsnorm", "op").replace("ranks=2,", "")
    single.write_text(text.replace(', shard_axis="parts"', ""))
    assert definition_file.load_definition(single).definition.ranks == 1
    with pytest.raises(BadDefinition, match="one process"):
        definition_file.load_definition(single, over_ranks=True)
