"""Shapes by class: what is drawn, and that numbers vary with them."""

from __future__ import annotations

from pathlib import Path

from lab_samples import SQUARE

from warpsmith.core.definition import shape_class
from warpsmith.lab.grading import free_axes, rows, shapes
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import load_definition

KERNELS = Path(__file__).parents[3] / "kernels"


def test_every_class_of_declared_shapes():
    file = load_definition(KERNELS / "softmax" / "definition.py")
    judged = file.definition.select("representative")
    longest = {axis: max(workload.axes[axis] for workload in judged) for axis in ("rows", "cols")}
    for seed in range(10):
        drawn = shapes.draw_class_workloads(file, judged, seed=seed)
        by_kind = {workload.name.split("-")[0]: workload for workload in drawn}
        assert set(by_kind) == {"edge", "tiny", "round", "ragged", "long", "skewed", "square"}
        assert {workload.set for workload in drawn} == {"odd"}
        assert 1 in by_kind["edge"].axes.values()
        assert any(size % min(input_rules.ROUND_SIZES) == 0 for size in by_kind["round"].axes.values())
        tiny = [workload for workload in drawn if workload.name.startswith("tiny-")]
        assert len(tiny) == input_rules.TINY_SHAPES
        assert all(2 <= size < input_rules.TINY_SIZE for workload in tiny for size in workload.axes.values())
        assert len(set(tiny[0].axes.values())) == 1  # inputs of other axes have one shape there
        (size,) = set(by_kind["square"].axes.values())
        assert input_rules.TINY_SIZE <= size <= longest["cols"]
        for axis, other in (("rows", "cols"), ("cols", "rows")):
            long, *whole = (workload for workload in drawn if workload.name.startswith(f"long-{axis}"))
            assert long.axes[axis] > longest[axis]
            assert all(workload.axes[other] < input_rules.TINY_SIZE for workload in (long, *whole))
            steps = [step for step in input_rules.LONG_STEPS if 2 * step <= longest[axis]]
            tiles = [workload.axes[axis] / step for workload, step in zip(whole, steps, strict=True)]
            assert all(count > 1 == count % 2 for count in tiles), "tiles may be taken two at a time"


CUBE = (
    SQUARE.replace('axes={"n": "length"}', 'axes={"a": "sequences", "b": "tokens", "c": "features"}')
    .replace('shape=("n",)', 'shape=("a", "b", "c")')
    .replace('axes={"n": 1000}', 'axes={"a": 8, "b": 40, "c": 200}')
    .replace('axes={"n": 5000}', 'axes={"a": 16, "b": 64, "c": 128}')
    .replace('flops="n"', 'flops="a * b * c"')
)


def test_a_single_row_and_a_tail_of_half_of_each_tile(workshop):
    file = workshop.load("square", CUBE)
    for seed in range(10):
        drawn = shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
        single = [w for w in drawn if w.name.startswith("edge-") and w.axes["a"] == w.axes["b"] == 1]
        assert max(workload.axes["c"] for workload in single) > input_rules.TINY_SIZE
        assert all(workload.axes["c"] == 1 or workload.axes["c"] % input_rules.TILE for workload in single)
        tokens = [w for w in drawn if w.name.startswith("edge-b-")]
        assert [(w.axes["b"], w.axes["c"] > 60) for w in tokens] == [(1, True)]
        for step in (step for step in input_rules.ROUND_SIZES if step <= 200):
            (tail,) = (w for w in drawn if w.name.startswith(f"round-{step}-"))
            assert any(size % (2 * step) == step for size in tail.axes.values())
            assert step > 32 or tail.axes["c"] % (2 * step) == step < tail.axes["c"]


def test_a_ragged_shape_has_a_tail_along_one_axis(workshop):
    file = workshop.load("square", CUBE)
    for seed in range(10):
        drawn = shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
        ragged = {w.name.split("-")[1]: w.axes for w in drawn if shape_class(w.name) == "ragged"}
        assert set(ragged) == {"a", "b", "c"}
        for along, sizes in ragged.items():
            uneven = {axis for axis, size in sizes.items() if size % input_rules.TILE}
            assert uneven == {along}


def test_a_vector_has_no_single_row(workshop):
    file = workshop.load("square", SQUARE)
    drawn = shapes.draw_class_workloads(file, file.definition.workloads, seed=1)
    assert not any(workload.name.startswith("edge-single") for workload in drawn)


def test_a_single_row_has_a_round_length_by_chance(workshop):
    file = workshop.load("square", CUBE)
    drawn = [shapes.draw_class_workloads(file, file.definition.workloads, seed=seed) for seed in range(30)]
    edges = [w for each in drawn for w in each if w.name.startswith("edge-a-")]
    is_round = [w.axes["c"] % input_rules.TILE == 0 for w in edges]
    assert 5 < sum(is_round) < len(is_round) - 5


def test_a_single_row_of_each_judged_length():
    file = load_definition(KERNELS / "softmax" / "definition.py")
    judged = file.definition.select("representative")
    lengths = {workload.axes["cols"] for workload in judged if workload.axes["cols"] <= input_rules.NEAR_ELEMENTS}
    drawn = shapes.draw_class_workloads(file, judged)
    single = [w.axes for w in drawn if w.name.startswith("edge-single-")]
    assert len(single) == min(len(lengths), input_rules.SINGLE_ROWS)
    assert {axes["rows"] for axes in single} == {1}
    assert {axes["cols"] for axes in single} <= lengths


def test_a_dtype_of_odd_workloads_alone_has_shapes_of_its_own(workshop):
    text = CUBE.replace('"c": 128}', '"c": 128}, dtype="float16", set="odd"')
    file = workshop.load("square", text)
    judged = file.definition.workloads[:1]
    drawn = shapes.draw_class_workloads(file, judged, seed=1)
    other = [workload.name.split("-")[0] for workload in drawn if workload.dtype == "float16"]
    assert sorted(other) == ["edge", *["ragged"] * 3, "round", *["tiny"] * 3]
    assert all(w.dtype == judged[0].dtype for w in shapes.draw_class_workloads(file, judged, interpreted=True))


def test_a_round_shape_of_another_dtype_fits_short_axes(workshop):
    text = SQUARE.replace('axes={"n": 1000}', 'axes={"n": 12}').replace(
        'axes={"n": 5000}', 'axes={"n": 5}, dtype="float16", set="odd"'
    )
    file = workshop.load("square", text)
    for seed in range(10):
        drawn = shapes.draw_class_workloads(file, file.definition.workloads[:1], seed=seed)
        other = [w.axes["n"] for w in drawn if w.name.startswith("round-") and w.dtype == "float16"]
        assert other == [8]


def test_some_sizes_are_powers_of_two(workshop):
    file, powers = workshop.load("square", CUBE), set()
    for seed in range(30):
        drawn = shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
        chosen = [workload for workload in drawn if workload.name.startswith("round-power-")]
        assert len(chosen) == input_rules.POWER_SHAPES
        assert all(size & (size - 1) == 0 for workload in chosen for size in workload.axes.values())
        powers |= {(workload.name[12], workload.axes["c"]) for workload in chosen}
    assert powers == {("0", 16), ("0", 64), ("1", 32), ("1", 128)}


def test_each_of_several_axes_is_once_as_long_as_another_one(workshop):
    file = workshop.load("square", CUBE)
    partners = set()
    for seed in range(20):
        drawn = shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
        for axis in "abc":
            (square,) = (workload for workload in drawn if workload.name.startswith(f"square-{axis}-"))
            equal = {other for other in "abc" if square.axes[other] == square.axes[axis]}
            assert len(equal) > 1
            partners |= {(axis, *sorted(equal - {axis}))}
    assert {("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")} <= partners


def test_many_axes_do_not_multiply_to_large_tensors(workshop):
    text = CUBE.replace('"c": "features"', '"c": "features", "d": 1 << 12').replace('"b", "c")', '"b", "c", "d")')
    text = text.replace('{"a": 8, "b": 40, "c": 200}', '{"a": 4, "b": 4, "c": 8}').replace('"c": 128', '"c": 16')
    file = workshop.load("square", text.replace('"b": 64', '"b": 16'))
    most = input_rules.NEAR_ROOM * input_rules.NEAR_ELEMENTS
    for seed in range(3):
        drawn = shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
        assert {"long-a", "long-b", "long-c"} < {workload.name[:6] for workload in drawn}
        for workload in drawn:
            limit = input_rules.LONG_ELEMENTS if workload.name.startswith("long-") else most
            assert file.definition.elements(workload) <= limit, workload


def test_rows_and_counters_go_far_beyond_small_definitions(workshop):
    rounded = workshop.load("square", SQUARE.replace("return x * x", "return x.cumsum(0)"))
    assert _longest_drawn(rounded) <= input_rules.LARGER_FACTORS[1] * 5000 + input_rules.TILE
    text = SQUARE.replace('{"y": TensorSpec(shape=("n",))}', '{"y": TensorSpec(shape=("n",), dtype="int64")}')
    counted = workshop.load("square", text.replace("return x * x", "return (x > 0).cumsum(0)"))
    assert 1 << 16 < _longest_drawn(counted) <= input_rules.FAR_ELEMENTS
    assert 1 << 16 < _longest_drawn(workshop.load("square", SQUARE)) <= input_rules.FAR_ELEMENTS


def _longest_drawn(file):
    seeds = range(20)
    drawn = [shapes.draw_larger_workload(file, file.definition.workloads, 1 << 30, seed=seed) for seed in seeds]
    return max(workload.axes["n"] for workload in drawn if workload)


def test_a_vector_cannot_be_skewed(workshop):
    file = workshop.load("square", SQUARE)
    edge, *_ = shapes.draw_class_workloads(file, file.definition.select("representative"), seed=1)
    assert edge.axes == {"n": 1}


def test_numbers_vary_and_stay_what_they_are():
    file = load_definition(KERNELS / "rmsnorm" / "definition.py")
    values = [
        workload.scalars["eps"]
        for seed in range(10)
        for workload in shapes.draw_class_workloads(file, file.definition.select("representative"), seed=seed)
    ]
    assert min(values) >= 1e-6 * 2**-20
    assert min(values) < 1e-8
    assert max(values) > 1e-2
    assert max(values) <= 1
    assert len(set(values)) > 10


def test_the_larger_shape_is_beyond_the_largest_judged():
    file = load_definition(KERNELS / "softmax" / "definition.py")
    judged = file.definition.select("representative")
    dtypes = {workload.dtype for workload in judged}
    most = {d: max(file.definition.elements(w) for w in judged if w.dtype == d) for d in dtypes}
    drawn = [shapes.draw_larger_workload(file, judged, 1 << 34, seed=seed) for seed in range(20)]
    for larger in drawn:
        assert most[larger.dtype] < file.definition.elements(larger) < 4.1 * most[larger.dtype]
        assert any(size % 8 for size in larger.axes.values())
    assert {larger.dtype for larger in drawn} == dtypes
    assert shapes.draw_larger_workload(file, judged, 1 << 10) is None


def test_a_far_shape_is_long_along_one_axis_and_small_otherwise():
    file = load_definition(KERNELS / "rmsnorm" / "definition.py")
    judged = file.definition.select("representative")
    axes = set()
    for seed in range(5):
        for workload in shapes.draw_far_workloads(file, judged, seed=seed):
            longest = max(workload.axes, key=workload.axes.get)
            lengths = [range(*each) for each in (input_rules.FAR_LENGTHS, *input_rules.SHORT_LENGTHS)]
            assert any(workload.axes[longest] in each for each in lengths)
            assert all(workload.axes[each] < input_rules.FAR_WIDTH for each in workload.axes if each != longest)
            assert shape_class(workload.name) == shapes.FAR
            axes.add(longest)
    assert len(axes) == len(judged[0].axes)


def test_no_tensor_has_a_size_below_zero(workshop):
    text = SQUARE.replace('axes={"n": "length"}', 'axes={"n": "length", "k": "filter"}')
    text = text.replace("inputs={", 'inputs={"w": TensorSpec(shape=("k",)), ').replace(
        "reference(x)", "reference(w, x)"
    )
    text = text.replace('outputs={"y": TensorSpec(shape=("n",))', 'outputs={"y": TensorSpec(shape=("n - k + 1",))')
    text = text.replace('{"n": 1000}', '{"n": 1000, "k": 3}').replace('{"n": 5000}', '{"n": 5000, "k": 5}')
    text = text.replace("x * x", "x[: len(x) - len(w) + 1] * w[:1]")
    file = workshop.load("square", text)
    judged = file.definition.workloads
    drawn = shapes.draw_judged_workloads(file, judged, interpreted=False, device="cpu")[1]
    for seed in range(20):
        drawn += shapes.draw_far_workloads(file, judged, seed=seed)
        drawn.append(shapes.draw_larger_workload(file, judged, 1 << 20, seed=seed))
    assert any(shape_class(workload.name) == shapes.FAR for workload in drawn)
    assert all(file.definition.has_shapes(workload) for workload in drawn), "a size is below zero"
    impossible = drawn[-1].model_copy(update={"axes": {"n": 3, "k": 5}})
    assert not free_axes.reference_holds(file, impossible)


def test_rows_in_which_nothing_is_added_are_far_longer_without_a_reduction(workshop):
    text = SQUARE.replace('axes={"n": "length"}', 'axes={"m": "lines", "n": "length"}')
    text = text.replace('shape=("n",)', 'shape=("m", "n")').replace('axes={"n"', 'axes={"m": 3, "n"')
    for result, expected in (
        ("x - x.amax(-1, keepdim=True)", {"m", "n"}),
        ("x - x.mean(-1, keepdim=True)", {"m"}),
    ):
        file = workshop.load("square", text.replace("x * x", result))
        drawn = shapes.draw_far_workloads(file, file.definition.workloads, seed=1)
        assert {max(workload.axes, key=workload.axes.get) for workload in drawn} == expected


def test_promised_multiples_leave_rows_and_offsets(workshop):
    text = CUBE.replace('flops="a * b * c"', 'flops="a * b * c", constraints=("c % 8 == 0", "a % 8 == 0")')
    file = workshop.load(
        "square", text.replace("return x * x", "return x.unflatten(-1, (-1, 8)).square().flatten(-2)")
    )
    assert rows.find_row_axis(file) == "a"
    beyond = shapes.lengthen_beyond(file, file.definition.workloads[0], "a", 1 << 20)
    assert file.definition.has_shapes(beyond)
    assert file.definition.elements(beyond) > 2 << 20


def test_far_shapes_are_drawn_on_a_cpu_alone():
    file = load_definition(KERNELS / "rmsnorm" / "definition.py")
    judged = file.definition.select("representative")
    _, cpu = shapes.draw_judged_workloads(file, judged, interpreted=False, device="cpu")
    assert any(shape_class(workload.name) == shapes.FAR for workload in cpu)


def test_what_is_counted_goes_beyond_what_a_float_counts(workshop):
    text = SQUARE.replace('{"y": TensorSpec(shape=("n",))}', '{"y": TensorSpec(shape=(1,), dtype="int64")}')
    counted = workshop.load("square", text.replace("return x * x", "return (x > 0).sum(0, keepdim=True)"))
    far, *short = shapes.draw_far_workloads(counted, counted.definition.workloads)
    assert [1 << each.axes["n"].bit_length() - 1 for each in short] == [1 << 15, 1 << 16]
    assert far.axes["n"] in range(*input_rules.COUNTED_LENGTHS)
    assert 0.95 * far.axes["n"] > 1 << 24
    whole, *_ = shapes.draw_far_workloads(workshop.load("square", SQUARE), counted.definition.workloads)
    assert whole.axes["n"] in range(*input_rules.FAR_LENGTHS)


def test_a_size_in_the_middle_is_neither_small_nor_declared():
    file = load_definition(KERNELS / "softmax" / "definition.py")
    judged = file.definition.select("representative")
    most = max(file.definition.elements(workload) for workload in judged)
    for seed in range(10):
        middle = shapes.draw_middle_workload(file, judged, seed=seed)
        assert input_rules.NEAR_ELEMENTS / 2 < file.definition.elements(middle) < most
        assert middle.set == "full"


def test_promises_in_words_keep_the_common_divisor(workshop):
    text = SQUARE.replace("workloads=", 'constraints=("n is a multiple of 100",), workloads=')
    file = workshop.load("square", text)
    drawn = [shapes.draw_middle_workload(file, file.definition.workloads, seed=seed) for seed in range(60)]
    assert {workload.axes["n"] for workload in drawn if workload} == {2000, 3000, 4000}


def test_small_declared_sizes_have_no_middle(workshop):
    file = workshop.load("square", SQUARE)
    assert shapes.draw_middle_workload(file, file.definition.workloads) is None


def test_scalars_of_every_kind_vary(workshop):
    scalars = '"zero": ScalarSpec(value=0.0), "on": ScalarSpec(value=True), "k": ScalarSpec(value=4)'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', f'"x": TensorSpec(shape=("n",)), {scalars}', 1)
    text = text.replace("def reference(x):", "def reference(x, zero, on, k):")
    text = text.replace('axes={"n": 5000})', 'axes={"n": 5000}, scalars={"k": 6})')
    file = workshop.load("square", text)
    drawn = [
        file.definition.scalars(workload)
        for seed in range(30)
        for workload in shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
    ]
    assert {each["on"] for each in drawn} == {True, False}
    assert {each["k"] for each in drawn} == {4, 5, 6}
    assert all(0 <= each["zero"] <= 1 for each in drawn)
    assert {0.0, 1.0} < {each["zero"] for each in drawn}


def test_numbers_stay_in_their_range(workshop):
    scalars = '"slope": ScalarSpec(value=0.01, between=(-1, 3)), "eps": ScalarSpec(value=-1e-6)'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', f'"x": TensorSpec(shape=("n",)), {scalars}', 1)
    file = workshop.load("square", text.replace("def reference(x):", "def reference(x, slope, eps):"))
    workloads = [
        workload
        for seed in range(30)
        for workload in shapes.draw_class_workloads(file, file.definition.workloads, seed=seed)
    ]
    drawn = [file.definition.scalars(workload) for workload in workloads]
    slopes = {each["slope"] for each in drawn}
    assert {-1, 0, 1, 3} < slopes
    assert all(-1 <= slope <= 3 for slope in slopes)
    assert all(-1 <= each["eps"] <= -1e-6 * 2**-20 for each in drawn)


def test_a_large_declared_size_has_unscaled_neighbours(workshop):
    file = load_definition(KERNELS / "softmax" / "definition.py")
    judged = file.definition.select("representative")
    large = {w.name: w for w in judged if file.definition.elements(w) > input_rules.NEAR_ELEMENTS}
    bases = set()
    for seed in range(30):
        close = shapes.draw_close_workload(file, judged, seed=seed)
        base = large[close.name.removeprefix("near-").removesuffix("-unscaled")]
        distances = [abs(close.axes[name] - size) for name, size in base.axes.items()]
        assert all(0 < distance <= input_rules.NEAR_DISTANCE for distance in distances)
        assert (shape_class(close.name), close.set, close.dtype) == ("near", "full", base.dtype)
        bases.add(base.name)
    assert len(bases) > 1
    small = workshop.load("square", SQUARE)
    assert shapes.draw_close_workload(small, small.definition.workloads) is None
