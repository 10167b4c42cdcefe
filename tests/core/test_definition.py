"""Definition: sizes, shapes, data types and work of workloads, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Work, Workload


def definition(**changes: Any) -> Definition:
    data = {
        "name": "norm", "description": "Normalise rows.",
        "axes": {"rows": "how many", "cols": "how long", "group": 4},
        "inputs": {
            "x": {"shape": ["rows", "cols"]},
            "scale": {"shape": ["cols // group", 2], "dtype": "float32"},
            "eps": {"value": 1e-6},
        },
        "outputs": {"y": {"shape": ["rows", "cols"], "dtype": "bfloat16"}},
        "flops": "4 * rows * cols",
        "workloads": [
            {"name": "small", "axes": {"rows": 3, "cols": 8}, "dtype": "float16", "scalars": {"eps": 1e-3}},
            {"name": "large", "axes": {"rows": 30, "cols": 80}, "set": "full"},
            {"name": "edge", "axes": {"rows": 1, "cols": 7}, "set": "odd"},
        ],
    }  # fmt: skip
    return Definition.model_validate(data | changes)


def workload(**changes: Any) -> dict[str, Any]:
    return {"name": "w", "axes": {"rows": 2, "cols": 8}} | changes


def test_a_workload_is_found_by_either_name_of_its_type():
    model = definition(workloads=[workload(name=name) for name in ("2x8-bf16", "2x8-float32-long", "xfloat32")])
    first, second, _ = model.workloads
    assert model.find_workload("2x8-bfloat16") == model.find_workload("2x8-bf16") == first
    assert model.find_workload("2x8-fp32-long") == model.find_workload("2x8-float32-long") == second
    assert model.find_workload("2x8-float16") is None
    assert model.find_workload("xfp32") is None  # no word of its own


def test_only_an_axis_of_an_output_can_be_a_batch():
    assert definition(batch_invariant="rows").batch_invariant == "rows"
    for name in ("group", "nothing"):
        with pytest.raises(ValidationError, match="batch_invariant"):
            definition(batch_invariant=name)


def test_sizes_join_fixed_and_variable_axes():
    made = definition()
    assert made.sizes(made.workloads[0]) == {"rows": 3, "cols": 8, "group": 4}


def test_a_workload_may_set_a_fixed_axis_and_it_wins():
    made = definition(workloads=[workload(axes={"rows": 2, "cols": 8, "group": 2})])
    assert made.sizes(made.workloads[0])["group"] == 2
    assert made.shape(made.tensor_inputs["scale"], made.workloads[0]) == (4, 2)


def test_shapes_are_whole_numbers_and_scalar_tensors_have_none():
    made = definition()
    found = made.shape(made.tensor_inputs["scale"], made.workloads[1])
    assert found == (20, 2)
    assert all(type(size) is int for size in found)
    assert made.shape(TensorSpec(shape=()), made.workloads[0]) == ()


def test_a_size_below_zero_is_no_shape():
    made = definition(outputs={"y": {"shape": ["rows", "cols - 8"]}})
    assert [made.has_shapes(each) for each in made.workloads] == [True, True, False]


def test_the_workload_names_the_type_of_tensors_that_say_workload():
    made = definition()
    small, large = made.workloads[:2]
    x, scale = made.tensor_inputs.values()
    assert [made.dtype(x, small), made.dtype(x, large)] == ["float16", "float32"]
    assert made.dtype(scale, small) == "float32"
    assert made.dtype(made.outputs["y"], small) == "bfloat16"


def test_bytes_follow_shape_and_type():
    made = definition()
    small = made.workloads[0]
    assert made.nbytes(made.tensor_inputs["x"], small) == 3 * 8 * 2
    assert made.nbytes(made.tensor_inputs["scale"], small) == 2 * 2 * 4
    assert made.nbytes(TensorSpec(shape=(), dtype="float64"), small) == 8


def test_work_reads_every_input_and_writes_every_output_once():
    made = definition()
    work = made.work(made.workloads[0])
    assert (work.flops, work.bytes_read, work.bytes_written) == (96, 48 + 16, 48)
    assert work.bytes == 112
    assert work.intensity == pytest.approx(96 / 112)


def test_work_takes_the_byte_counts_that_the_definition_states():
    made = definition(bytes_read="rows * 2", bytes_written="rows")
    work = made.work(made.workloads[0])
    assert (work.bytes_read, work.bytes_written) == (6, 3)


def test_work_without_bytes_has_no_end_of_intensity():
    assert Work(flops=1, bytes_read=0, bytes_written=0).intensity == float("inf")


def test_inputs_are_told_apart_in_order():
    made = definition()
    assert list(made.tensor_inputs) == ["x", "scale"]
    assert list(made.scalar_inputs) == ["eps"]
    assert isinstance(made.inputs["eps"], ScalarSpec)


def test_a_workload_replaces_scalars():
    made = definition()
    assert made.scalars(made.workloads[0]) == {"eps": 1e-3}
    assert made.scalars(made.workloads[1]) == {"eps": 1e-6}


def test_an_integer_with_the_name_of_an_axis_is_its_size():
    inputs = {"x": {"shape": ["rows", "cols"]}, "group": {"type": "int", "value": 2}, "eps": {"value": 1e-6}}
    made = definition(inputs=inputs)
    assert made.size_inputs == {"group"}
    assert list(made.free_scalars) == ["eps"]
    assert made.scalars(made.workloads[0]) == {"group": 4, "eps": 1e-3}
    drawn = made.workloads[0].model_copy(update={"axes": {"rows": 3, "cols": 8, "group": 8}})
    assert made.scalars(drawn)["group"] == 8
    assert not made.has_smaller_number(drawn.model_copy(update={"axes": {**drawn.axes, "group": 1}}))
    given = [workload(scalars={"group": 4})]
    assert definition(inputs=inputs, workloads=given).scalars(drawn)["group"] == 8
    with pytest.raises(ValidationError, match="`group` is the size of an axis, 4"):
        definition(inputs=inputs, workloads=[workload(scalars={"group": 3})])


def test_select_keeps_the_order_and_odd_ones_are_not_timed():
    made = definition()
    assert [w.name for w in made.select("odd", "representative")] == ["small", "edge"]
    assert [w.timed for w in made.workloads] == [True, True, False]


def test_one_tolerance_for_all_or_one_by_output():
    tight = Tolerance(reduction="cols", slack=1.5)
    assert definition(tolerance=tight).tolerance_of("y") == tight
    assert definition(tolerance={"y": tight}).tolerance_of("y") == tight


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"workloads": [workload(), workload()]}, "share a name"),
        ({"workloads": [workload(name="long-context")]}, "begin with `long-`; rename it"),
        ({"workloads": [workload(set="full")]}, "no workload has the set `representative`"),
        ({"workloads": []}, "no workload has the set `representative`"),
        ({"outputs": {}}, "no outputs"),
        ({"workloads": [workload(axes={"rows": 2})]}, r"axes \['cols'\]"),
        ({"workloads": [workload(axes={"rows": 2, "cols": 8, "depth": 1})]}, r"axes \['depth'\]"),
        ({"workloads": [workload(dtype="float12")]}, "no dtype for `x`"),
        ({"workloads": [workload(set="often")]}, "representative"),
        ({"inputs": {"x": {"shape": ["depth"]}}}, "`depth`, which is not an axis"),
        ({"inputs": {"x": {"shape": ["rows"], "dtype": "float12"}}}, "unknown dtype `float12`"),
        ({"flops": "rows * depth"}, "`depth`, which is not an axis"),
        ({"bytes_read": "len(rows)"}, "more than arithmetic"),
        ({"bytes_written": "rows *"}, "not an arithmetic expression"),
        ({"tolerance": {"reduction": "depth"}}, "`depth`, which is not an axis"),
        ({"tolerance": {"z": {}}}, "tolerances and outputs differ in y, z"),
        ({"tolerance": {"slack": 0.5}}, "slack"),
        ({"tolerance": {"required_match": 0.5}}, "required_match"),
        ({"name": "Norm"}, "name"),
        ({"surprise": 1}, "surprise"),
    ],
)  # fmt: skip
def test_refused(changes: dict[str, Any], told: str):
    with pytest.raises(ValidationError, match=told):
        definition(**changes)


def test_models_do_not_change():
    made = definition()
    with pytest.raises(ValidationError, match="frozen"):
        made.workloads[0].dtype = "float64"
    assert isinstance(made.workloads[0], Workload)


@pytest.mark.parametrize(
    ("x", "scale", "expected"),
    [
        ("workload", "float32", "float16"),
        ("float8_e4m3fn", "float32", "float8_e4m3fn"),
        ("float32", "float8_e4m3fn", "float16"),
        ("int32", "float32", "float16"),
    ],
)
def test_operands_are_the_largest_input_where_it_is_narrower(x, scale, expected):
    shapes = {"x": ["rows", "cols"], "scale": ["cols // group", 2]}
    inputs = {name: {"shape": shapes[name], "dtype": dtype} for name, dtype in (("x", x), ("scale", scale))}
    model = definition(inputs={**inputs, "eps": {"value": 1e-6}})
    assert model.operand_dtype(model.workloads[0]) == expected
