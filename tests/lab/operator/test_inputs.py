from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lab_samples import SQUARE

from warpsmith.core.definition import Workload
from warpsmith.errors import BadDefinition
from warpsmith.lab.operator import input_rules, inputs
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values import distributions, related_values
from warpsmith.lab.operator.values.distributions import ADVERSARIAL, DISTRIBUTIONS, FULL, IN_RANGE, MASKS


def bits(tensor):
    return tensor.view(torch.int32)


ROWS = SQUARE.replace('shape=("n",)', 'shape=("n", 64)')


@pytest.fixture
def drawer(workshop):
    file = workshop.load("square", ROWS)
    return lambda seed=1, **changes: Inputs(
        file, file.definition.workloads[0].model_copy(update=changes), seed, "cpu"
    )


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_distribution_is_fresh_and_of_the_right_kind(drawer, name):
    one = drawer().draw(name)["x"]
    assert (one.shape, one.dtype) == ((1000, 64), torch.float32)
    assert one.isnan().any() == (name == "nonfinite")
    assert torch.equal(bits(one), bits(drawer().draw(name)["x"]))
    assert not torch.equal(one, drawer(seed=2).draw(name)["x"])
    again = drawer()
    assert not torch.equal(again.draw(name)["x"], again.draw(name)["x"])


def test_what_distinguishes_the_distributions(drawer, monkeypatch):
    monkeypatch.setattr(distributions, "REGULAR", ())  # without exceptions
    monkeypatch.setattr(input_rules, "TREND_SHARE", 0.0)
    drawn = {name: drawer().draw(name)["x"] for name in DISTRIBUTIONS}
    assert drawn["normal"].std() == pytest.approx(1, rel=0.05)
    assert 0 <= drawn["uniform"].min() < 0.01
    assert drawn["uniform"].max() < 1
    assert drawn["large"].std() == pytest.approx(50, rel=0.05)
    assert drawn["tiny"].std() == pytest.approx(1e-3, rel=0.05)
    assert drawn["shifted"].mean() == pytest.approx(3, abs=0.05)
    assert drawn["far"].mean() == pytest.approx(256, abs=0.1)
    assert drawn["constant"].unique().numel() == 1
    steps = drawn["sorted"].diff(dim=-1)
    assert (steps >= 0).all() or (steps <= 0).all()
    rows = drawn["scaled_rows"].std(dim=-1)
    assert rows.max() / rows.min() > 500
    assert 0.03 < (drawn["sparse"] != 0).float().mean() < 0.07
    assert drawn["ones"].unique().tolist() == [0, 1]
    ones = {round(float(drawer(seed=seed).draw("ones")["x"].mean()), 1) for seed in range(20)}
    assert ones == {0.8, 1.0}, "zeros are a fifth, or few"
    tied = drawn["near_tie"]
    assert ((tied.amax(-1) - tied.amin(-1)).abs() / tied[:, 0].abs()).min() > 2**-24
    assert ((tied.amax(-1) - tied.amin(-1)).abs() / tied[:, 0].abs()).max() < 12 * 2**-23
    assert (drawn["balanced"].double().sum(-1) == 0).all()
    assert drawn["balanced"].std() == pytest.approx(1, rel=0.05)
    runs = [drawer(seed=seed).draw("runs")["x"] for seed in range(60)]
    lengths = {64 // int(each[0].unique().numel()) for each in runs}
    assert lengths == {2, 4, 8, 16, 32, 64}
    assert all((each[:, ::2] == each[:, 1::2]).all() for each in runs)
    odd = ~drawn["nonfinite"].isfinite()
    assert 200 < odd.any(-1).sum() < 550
    assert set(odd.sum(-1).tolist()) == set(range(input_rules.EXCEPTIONS + 1))
    assert drawn["nonfinite"].isposinf().any()
    assert drawn["nonfinite"].isneginf().any()


def test_masks_leave_an_element_of_each_row_and_have_many_forms(drawer):
    masks = [~drawer(seed=seed).draw("masked")["x"].isfinite() for seed in range(40)]
    assert all(bool(mask.any()) and not bool(mask.all(-1).any()) for mask in masks)
    counts = [mask.sum(-1) for mask in masks]
    half = masks[0].shape[-1] // 2
    first = [mask[:, :half].all(-1) & ~mask[:, half:].any(-1) for mask in masks]
    last = [mask[:, half:].all(-1) & ~mask[:, :half].any(-1) for mask in masks]
    for rows in (first, last):
        assert any(400 < int(each.sum()) < 600 for each in rows), "the other half has lengths of its own"
    assert any(bool((count == mask.shape[-1] - 1).all()) for mask, count in zip(masks, counts, strict=True))
    assert any(
        bool((mask.int().diff(dim=-1) >= 0).all()) and len(set(mask.sum(-1).tolist())) > 9 for mask in masks
    )
    along = [~drawer(seed=seed).draw("masked_along")["x"].isfinite() for seed in range(40)]
    assert {bool(mask.all(-1).any()) for mask in along} == {True, False}
    assert all(not bool(mask.all(-1).any()) or not bool(mask.all(0).any()) for mask in along)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_vector_is_never_masked_as_a_whole(workshop, length):
    file = workshop.load("square", SQUARE)
    workload = file.definition.workloads[0].model_copy(update={"axes": {"n": length}})
    for seed in range(10):
        for name in MASKS:
            drawn = Inputs(file, workload, seed, "cpu").draw(name)["x"]
            assert drawn.isfinite().any() or length == 0


@pytest.mark.parametrize(
    ("name", "means"),
    [("masked_rows", (0, -200, 256)), ("padded_rows", (0, -(2.0**30), torch.finfo(torch.float32).min))],
)
def test_masked_rows_differ_in_mean_and_mask(workshop, name, means):
    file = workshop.load("square", ROWS)
    source = Inputs(file, file.definition.workloads[0], 1, "cpu")
    drawn = [source.draw(name)["x"] for _ in range(40)]
    tops = [x.amax(1) for x in drawn]
    spreads = [top - x.nan_to_num(neginf=float("inf")).amin(1) for x, top in zip(drawn, tops, strict=True)]
    rows = zip(drawn, spreads, tops, strict=True)
    by_row = [x for x, spread, top in rows if bool((spread < 20 + top.abs() * 2.0**-20).all())]
    assert 25 < len(by_row) < 40
    alike = torch.stack([(x.isfinite().diff(dim=0) == 0).all(1).double().mean() for x in by_row])
    assert alike.max() > 0.4, "rows of a run share a mask"
    assert 0.2 < alike.mean() < 0.7, "and others have their own"
    assert all(bool(x.isfinite().any(1).all()) for x in by_row)
    x = by_row[0]
    kept, half = x.isfinite(), x.shape[1] // 2
    for mean in means:
        own = kept[(x.amax(1) - mean).abs() < max(20, abs(mean) / 1e6)]
        assert (own.sum(1) == 1).any()
        assert (own[:, :half].all(1) & ~own[:, -half:].any(1)).any()
        assert (own[:, -half:].all(1) & ~own[:, :half].any(1)).any()
    lengths = kept.sum(1)
    begins = kept[:, 0] & ~kept[:, -1] & (kept.int().diff(dim=1).abs().sum(1) == 1)
    assert len(set(lengths[begins].tolist())) > 20
    edges = kept.int().diff(dim=1).abs().sum(1)
    for begin in (True, False):  # a hole and a window, which may be wide
        own = kept[(edges == 2) & (kept[:, 0] == begin) & (kept[:, -1] == begin)]
        assert (own.sum(1) > 16).any()
        assert (own.sum(1) < 48).any()


def test_some_constants_are_those_that_weights_begin_with(drawer):
    constants = {float(drawer(seed=seed).draw("constant")["x"].mode().values[0]) for seed in range(40)}
    assert {1.0, -1.0} < constants
    assert len(constants) > 10


def test_rows_are_sorted_both_ways(drawer):
    steps = [drawer(seed=seed).draw("sorted")["x"].diff(dim=-1) for seed in range(20)]
    assert {bool((step >= 0).all()) for step in steps} == {True, False}
    descents = [(step < 0).sum(-1) for step in steps]
    assert any(int(each.sum()) > 0 and int(each.max()) <= 3 for each in descents), "few exceptions"
    assert any(int(each.min()) > 3 and int(each.max()) < 32 for each in descents), "trend with noise"


def test_weights_of_their_own_scale_are_pruned_and_alike_too(workshop, monkeypatch):
    text = SQUARE.replace('"x": TensorSpec(', '"x": TensorSpec(role="weight", distribution="normal:0:0.02", ')
    file = workshop.load("square", text)
    monkeypatch.setattr(distributions, "REGULAR", ())  # without exceptions
    source = Inputs(file, file.definition.workloads[0], 1, "cpu")
    sparse, constant, large = (source.draw(name)["x"] for name in ("sparse", "constant", "large"))
    assert 0 < (sparse != 0).float().mean() < 0.2
    assert sparse.abs().max() < 0.2
    assert constant.unique().numel() == 1
    assert large.std() == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_activations_with_a_deviation_hold_adversarial_values_of_their_scale(workshop, dtype):
    text = SQUARE.replace('"x": TensorSpec(', f'"x": TensorSpec(dtype="{dtype}", distribution="normal:0:16", ')
    file = workshop.load("square", text)
    source = Inputs(file, file.definition.workloads[0], 1, "cpu")
    assert source.draw("large")["x"].float().std() == pytest.approx(800, rel=0.1)
    assert source.draw("masked")["x"].isinf().any()
    assert all(bool(source.draw(name)["x"].isfinite().all()) for name in ADVERSARIAL)


def test_integers_are_by_chance_mostly_zero(workshop):
    text = SQUARE.replace('"x": TensorSpec(', '"x": TensorSpec(dtype="int8", distribution="integers:-100:100", ')
    file = workshop.load("square", text)
    drawn = [Inputs(file, file.definition.workloads[0], seed, "cpu").draw("sparse")["x"] for seed in range(60)]
    shares = [float((each == 0).float().mean()) for each in drawn]
    assert 1 < sum(0.8 < share < 1 for share in shares) < 15


def test_groups_are_by_chance_equally_long():
    drawn = [
        related_values.draw_offsets(9, 64, torch.Generator().manual_seed(seed)).diff().unique().numel()
        for seed in range(60)
    ]
    assert 2 < drawn.count(1) < 30


@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn", "bfloat16"])
def test_adversarial_values_are_finite_in_narrow_types(drawer, dtype, name):
    for seed in range(8):
        assert drawer(seed=seed, dtype=dtype).draw(name)["x"].float().isfinite().all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_denormal_values_stay_denormal(drawer, dtype):
    drawn = drawer(dtype=dtype).draw("denormal")["x"]
    kept = drawn[drawn != 0].double().abs()
    assert 0.4 < kept.numel() / drawn.numel() < 0.6
    assert kept.max() <= torch.finfo(drawn.dtype).tiny


def test_one_row_at_least_is_not_finite(drawer):
    for seed in range(20):
        assert not drawer(seed, axes={"n": 1}).draw("nonfinite")["x"].isfinite().all()


def test_the_workload_names_its_distribution(drawer):
    assert drawer(distribution="uniform").draw()["x"].min() >= 0
    with pytest.raises(BadDefinition, match="unknown distribution `odd`; known: normal, uniform"):
        drawer(distribution="odd").draw()


def test_large_quick_draws_have_no_structure(workshop, monkeypatch):
    monkeypatch.setattr(input_rules, "QUICK_DRAW_VALUES", 10_007)
    file = workshop.load("square", ROWS)
    one = Inputs(file, file.definition.workloads[0], 1, "cpu")
    first, second = one.draw(quick=True)["x"], one.draw(quick=True)["x"]
    assert first.shape == (1000, 64)
    assert first.isfinite().all()
    assert abs(first.mean()) < 0.02
    assert abs(first.std() - 1) < 0.02
    assert first.unique().numel() > 0.98 * first.numel()
    assert abs(torch.corrcoef(torch.stack([first.flatten(), second.flatten()]))[0, 1]) < 0.02
    flat = first.flatten().double()  # Autocorrelation at every lag shows a block that repeats, at any scale.
    spectrum = torch.fft.rfft(flat, 2 * flat.numel()).abs().square()
    lags = torch.fft.irfft(spectrum)[: flat.numel()]
    assert (lags[1:].abs() / lags[0]).max() < 0.03


def test_mixed_rows_hold_every_adversarial_distribution(workshop):
    file = workshop.load("square", ROWS)
    source = Inputs(file, file.definition.workloads[0], 1, "cpu")
    drawn = [source.draw("mixed_rows")["x"] for _ in range(12)]
    x = next(each for each in drawn if (each.amax(1) == each.amin(1)).any())  # those mixed along the first axis
    assert any((each.amax(0) == each.amin(0)).any() for each in drawn)  # along the last one
    assert x.abs().amax(1).gt(80).any()  # large
    assert x.mean(1).lt(-150).any()  # lowered
    assert (x.amax(1) == x.amin(1)).any()  # constant
    assert ((x != 0).sum(1) == 1).any()  # one_hot
    assert not ((x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)).any()  # denormal is left out
    assert (x.sort(1).values == x).all(1).any()  # sorted


def test_small_quick_draws_repeat_nothing(drawer):
    drawn = drawer().draw(quick=True)["x"]
    assert drawn.unique().numel() > 0.98 * drawn.numel()


def test_integers(workshop):
    specs = '"x": TensorSpec(shape=("n",), dtype="int64", distribution="integers:-3:2 * n"), '
    specs += '"m": TensorSpec(shape=("n",), dtype="bool"), "k": TensorSpec(shape=("n",), dtype="int8")'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', specs, 1).replace("(x)", "(x, m, k)")
    file = workshop.load("square", text)
    drawn = Inputs(file, file.definition.workloads[0], 3, "cpu").draw()
    assert drawn["x"].dtype == torch.int64
    assert -3 <= drawn["x"].min() < 100
    assert 1900 < drawn["x"].max() < 2000
    assert drawn["m"].dtype == torch.bool
    assert 0.4 < drawn["m"].double().mean() < 0.6
    assert (drawn["k"].dtype, int(drawn["k"].min()), int(drawn["k"].max())) == (torch.int8, 0, 127)


INDEXED = SQUARE.replace('"x": TensorSpec(shape=("n",))', '"x": TensorSpec(shape=("n",), dtype="int64")', 1)


def extreme_range(workshop, text):
    """Least and largest of many extreme draws of `x`."""
    file = workshop.load("square", text)
    source = Inputs(file, file.definition.workloads[0], 3, "cpu")
    drawn = torch.cat([source.draw("large")["x"] for _ in range(40)])
    return int(drawn.min()), int(drawn.max())


def test_integers_that_give_integers_may_be_any(workshop):
    text = INDEXED.replace('"y": TensorSpec(shape=("n",))', '"y": TensorSpec(shape=("n",), dtype="int64")')
    assert extreme_range(workshop, text) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_narrow_integers_reach_both_ends_of_their_type(workshop, dtype):
    text = INDEXED.replace('"int64"', f'"{dtype}"').replace("x * x", "x.float()").replace("1000", "100000")
    limits = torch.iinfo(getattr(torch, dtype))
    assert extreme_range(workshop, text) == (limits.min, limits.max)


def test_integers_beside_floats_are_positions(workshop):
    least, most = extreme_range(workshop, INDEXED.replace("x * x", "x.float()"))
    assert least >= 0
    assert input_rules.LARGEST_POSITIONS[0] < most < input_rules.LARGEST_POSITIONS[1]


def test_integers_that_index_an_axis_stay_below_it(workshop):
    least, most = extreme_range(workshop, INDEXED.replace("x * x", "torch.arange(x.shape[0]).float()[x]"))
    assert least >= 0
    assert 500 < most < 1000


@pytest.mark.parametrize("shape", ['("n",)', '("n", 64)', '("n", 8, 16)'])
def test_the_end_of_every_axis_is_heavy(workshop, shape):
    file = workshop.load("square", SQUARE.replace('("n",)', shape))
    x = Inputs(file, file.definition.workloads[0], 3, "cpu").draw("heavy_end")["x"].abs()
    for axis in range(x.ndim):
        last = x.narrow(axis, x.shape[axis] - 1, 1).mean()
        assert last > 10 * x.narrow(axis, 0, 1).mean()
    assert x.flatten()[0] < 6


def test_the_corner_of_heavy_ends_fits_the_type(workshop):
    text = SQUARE.replace('("n",)', '("n", 2, 3, 4)').replace('dtype="float32"', 'dtype="float16"')
    file = workshop.load("square", text)
    workload = file.definition.workloads[0].model_copy(update={"dtype": "float16"})
    for seed in range(5):
        assert Inputs(file, workload, seed, "cpu").draw("heavy_end")["x"].isfinite().all()


def test_integers_are_extreme_where_floats_are(workshop):
    specs = '"x": TensorSpec(shape=("n",), dtype="int64", distribution="integers:-3:2 * n"), '
    specs += '"o": TensorSpec(shape=("n",), dtype="int64", distribution="offsets:n")'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', specs, 1).replace("(x)", "(x, o)")
    file = workshop.load("square", text)
    inputs = Inputs(file, file.definition.workloads[0], 3, "cpu")
    kinds = set()
    for _ in range(400):
        drawn = inputs.draw("large")
        x = drawn["x"]
        assert (x >= -3).all()
        assert (x < 2 * 1000).all()
        kinds.add(
            "sorted" if x.unique().numel() > 1 else "least" if x[0] < 50 else "most" if x[0] > 1950 else "one"
        )
        assert (drawn["o"].diff() >= 0).all()
        assert int(drawn["o"][-1]) <= 1000
    assert kinds == {"sorted", "least", "most", "one"}


def test_no_draw_follows_from_an_earlier_one(drawer):
    """A generator's next values follow from its values, so each draw has a seed of its own."""
    inputs = drawer()
    inputs.draw()
    after = torch.Generator().manual_seed(inputs._generator.initial_seed())
    torch.randn((1000, 64), generator=after)
    following = torch.randn((1000, 64), generator=after)
    assert not torch.equal(inputs.draw()["x"], following)
    assert len({inputs.draw()["x"].flatten()[0].item() for _ in range(20)}) == 20
    first, again = (drawer(seed=5) for _ in range(2))
    assert all(torch.equal(first.draw()["x"], again.draw()["x"]) for _ in range(3))


@pytest.fixture
def ids(workshop):
    """`ids(how, n)`: twenty draws of an integer vector."""

    def make(how, n=50, shape='("n",)'):
        spec = f'"x": TensorSpec(shape={shape}, dtype="int32", distribution="{how}")'
        file = workshop.load("square", SQUARE.replace('"x": TensorSpec(shape=("n",))', spec, 1))
        one = Inputs(file, Workload(name="w", axes={"n": n}), 3, "cpu")
        return [one.draw()["x"] for _ in range(20)]

    return make


def test_offsets_cut_everything_into_groups_of_any_size(ids):
    whole = '("n + 0",)'  # no axis of results, for which they would be beginnings
    drawn = ids("offsets:7 * n", shape=whole)
    for cuts in drawn:
        assert (int(cuts[0]), int(cuts[-1]), cuts.dtype) == (0, 350, torch.int32)
        assert (cuts.diff() >= 0).all()
    largest = [int(cuts.diff().max()) for cuts in drawn]
    assert min(largest) < 20  # balanced
    assert max(largest) == 350  # one has all
    assert max(int((cuts.diff() == 0).sum()) for cuts in drawn) > 40
    assert len({tuple(cuts.tolist()) for cuts in drawn}) == 20
    assert ids("offsets:9", 1, whole)[0].tolist() == [0]
    assert ids("offsets:9", 2, whole)[0].tolist() == [0, 9]
    assert ids("offsets:9", 0, whole)[0].tolist() == []


def test_zipf_ids_are_skewed_and_the_frequent_ones_change(ids):
    drawn = ids("zipf:n // 10", 1000)
    for found in drawn:
        assert 0 <= found.min() <= found.max() < 100
        assert found.bincount().max() > 40
    assert len({int(found.bincount().argmax()) for found in drawn}) > 10


@pytest.mark.parametrize("how", ["offset:7", "offsets:m", "offsets:-1", "zipf:0", "integers:5:5", "integers:5"])
def test_integers_that_cannot_be_drawn_are_named(ids, how):
    with pytest.raises(BadDefinition, match=f"cannot be drawn as `{how}`.*known: integers:<low>:<high>, offsets"):
        ids(how)


def test_full_integers_are_alike_and_by_chance_the_largest(workshop):
    text = SQUARE.replace(
        'inputs={"x": TensorSpec(shape=("n",))}',
        'inputs={"ids": TensorSpec(shape=("n",), dtype="int32", distribution="integers:0:1000"), '
        '"cuts": TensorSpec(shape=(9,), dtype="int64", distribution="offsets:n"), "x": TensorSpec(shape=("n",))}',
    ).replace("def reference(x)", "def reference(ids, cuts, x)")
    file = workshop.load("square", text)
    source = Inputs(file, file.definition.workloads[0], 1, "cpu")
    assert FULL in source.adversarial_distributions
    drawn = [source.draw(FULL) for _ in range(40)]
    assert all(each["ids"].unique().numel() == 1 for each in drawn)
    values = [int(each["ids"][0]) for each in drawn]
    assert 5 < sum(value > 980 for value in values) < 35
    assert len(set(values)) > 10
    assert all(each["cuts"].unique().numel() > 1 and each["x"].unique().numel() > 900 for each in drawn)


def test_offsets_are_a_vector(ids):
    with pytest.raises(BadDefinition, match=r"in the shape \(50, 2\)"):
        ids("offsets:7", shape='("n", 2)')


def test_a_fixed_distribution_stays(workshop):
    file = workshop.load("square", SQUARE.replace('shape=("n",)', 'shape=("n",), distribution="uniform"', 1))
    one = Inputs(file, file.definition.workloads[0], 3, "cpu")
    assert one.adversarial_distributions == (*ADVERSARIAL, IN_RANGE)
    assert one.draw("large")["x"].max() < 1


def test_the_definition_draws_its_own(workshop):
    own = "\ndef inputs(workload, generator, device):\n    return {%s: torch.rand(1000, generator=generator)}\n"
    file = workshop.load("square", SQUARE + own % '"x"')
    one = Inputs(file, file.definition.workloads[0], 3, "cpu")
    assert one.adversarial_distributions == ()
    assert not torch.equal(one.draw()["x"], one.draw()["x"])
    file = workshop.load("square", SQUARE + own % '"z"')
    with pytest.raises(BadDefinition, match=r"inputs\(\) must return \['x'\]"):
        Inputs(file, file.definition.workloads[0], 3, "cpu").draw()
    file = workshop.load("square", SQUARE + own.replace("torch.rand", "torch.dice") % '"x"')
    with pytest.raises(BadDefinition, match=r"inputs\(\) fails: AttributeError"):
        Inputs(file, file.definition.workloads[0], 3, "cpu").draw()


def along(axis, text=SQUARE):
    return text.replace("definition = Definition(", f'definition = Definition(drawn_along="{axis}",')


def test_several_draws_are_one_along_an_axis(workshop):
    calls = "\ncalls = []\n"
    own = "def inputs(workload, generator, device):\n    n = workload.axes['n']\n    calls.append(n)\n    return "
    text = SQUARE + calls + own + "{'x': torch.rand(n, generator=generator)}\n"
    file = workshop.load("square", text)
    size = file.definition.workloads[0].axes["n"]
    assert len(list(Inputs(file, file.definition.workloads[0], 3, "cpu").draw_several(4))) == 4
    assert file.inputs.__globals__["calls"] == [size] * 4
    file = workshop.load("square", along("n", text))
    parts = list(Inputs(file, file.definition.workloads[0], 3, "cpu").draw_several(4))
    assert file.inputs.__globals__["calls"] == [4 * size]
    assert [part["x"].shape for part in parts] == [(size,)] * 4
    assert len({float(part["x"].sum()) for part in parts}) == 4
    with pytest.raises(BadDefinition, match="`m` is not an axis"):
        workshop.load("square", along("m", text))


def test_several_draws_are_made_in_parts_where_they_are_large(workshop, monkeypatch):
    own = "\ndef inputs(workload, generator, device):\n    return {'x': torch.rand(workload.axes['n'])}\n"
    file = workshop.load("square", along("n") + own)
    monkeypatch.setattr(inputs, "_LARGEST_DRAW", 2 * file.definition.workloads[0].axes["n"])
    parts = list(Inputs(file, file.definition.workloads[0], 3, "cpu").draw_several(5))
    assert len({float(part["x"].sum()) for part in parts}) == 5


def test_several_draws_of_an_empty_axis(workshop):
    own = "\ndef inputs(workload, generator, device):\n    return {'x': torch.rand(workload.axes['n'])}\n"
    file = workshop.load("square", along("n") + own)
    parts = list(Inputs(file, Workload(name="empty", axes={"n": 0}), 3, "cpu").draw_several(3))
    assert [part["x"].numel() for part in parts] == [0] * 3


def test_a_workload_without_elements(workshop):
    file = workshop.load("square", SQUARE)
    empty = Workload(name="empty", axes={"n": 0})
    for name in DISTRIBUTIONS:
        assert Inputs(file, empty, 3, "cpu").draw(name)["x"].numel() == 0


numbers = st.sampled_from(["0", "-1", "7", "n", "n - 3", "1.5", "n / 0", "2 ** 70", "10 ** 12", "(", "", "m"])
kinds = st.sampled_from(["integers", "offsets", "zipf", "normal", "", "nothing"])
written = st.builds(lambda kind, texts: ":".join([kind, *texts]), kinds, st.lists(numbers, max_size=3))


@settings(
    derandomize=True, deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example(how="integers:0:2 ** 70", dtype="int64")
@example(how="zipf:10 ** 12", dtype="int64")
@given(how=written | st.text(max_size=8), dtype=st.sampled_from(["int64", "bool", "float16", "float32"]))
def test_however_a_distribution_is_written_it_is_drawn_or_refused(drawer, how, dtype):
    try:
        one = drawer(distribution=how, dtype=dtype, axes={"n": 5}).draw()["x"]
    except BadDefinition as error:
        assert "known: " in str(error)  # noqa: PT017 - most are refused, some are drawn
        return
    assert one.shape == (5, 64)
    assert one.dtype == getattr(torch, dtype)


@pytest.mark.parametrize("name", inputs._INDEPENDENT)
def test_several_draws_are_one_where_values_know_nothing_of_each_other(drawer, monkeypatch, name):
    calls = []
    normal = Inputs._normal
    monkeypatch.setattr(
        Inputs, "_normal", lambda self, shape, dtype: calls.append(shape) or normal(self, shape, dtype)
    )
    parts = [part["x"] for part in drawer().draw_several(5, name)]
    assert calls == [(5, 1000, 64)]
    assert {(part.shape, part.dtype) for part in parts} == {((1000, 64), torch.float32)}
    assert not any(torch.equal(one, two) for one in parts for two in parts if one is not two)
    assert parts[0].float().std() == pytest.approx(float(drawer().draw(name)["x"].std()), rel=0.05)


def test_several_draws_of_other_distributions_are_one_by_one(drawer):
    for part in drawer().draw_several(3, "sorted"):
        share = float((part["x"].diff(dim=-1) >= 0).double().mean())
        assert abs(share - 0.5) > 0.2
    constants = [part["x"].flatten().mode().values for part in drawer().draw_several(30, "constant")]
    assert len({float(value) for value in constants}) > 9


def test_distributions_can_have_numbers(workshop):
    forms = {"w": "normal:2:0.1", "v": "uniform:-1 / n ** 0.5:0.5"}
    text = SQUARE
    for name, form in forms.items():
        text = text.replace(
            '"x": TensorSpec(', f'"{name}": TensorSpec(shape=("n",), distribution="{form}"), "x": TensorSpec('
        )
    file = workshop.load("square", text)
    drawn = Inputs(file, file.definition.workloads[0], 1, "cpu").draw()
    assert drawn["w"].mean() == pytest.approx(2, abs=0.05)
    assert drawn["w"].std() == pytest.approx(0.1, rel=0.2)
    assert -(1000**-0.5) <= drawn["v"].min() < 0 < 0.4 < drawn["v"].max() <= 0.5
    wrong = workshop.load(
        "square", SQUARE.replace('"x": TensorSpec(', '"x": TensorSpec(distribution="normal:a:1", ')
    )
    with pytest.raises(BadDefinition, match="`normal:a:1` has no value"):
        Inputs(wrong, wrong.definition.workloads[0], 1, "cpu").draw()


def test_some_rows_of_sparse_values_are_zero(drawer):
    sparse = drawer().draw("sparse")["x"]
    assert 0.05 < (sparse == 0).all(-1).double().mean() < 0.25


def test_ids_repeat_only_where_there_are_too_few(workshop):
    text = SQUARE.replace(
        '"x": TensorSpec(shape=("n",))',
        '"x": TensorSpec(shape=("n",), dtype="int64", distribution="distinct:3")',
        1,
    )
    x = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 7}), 3, "cpu").draw()["x"]
    assert sorted(x.bincount().tolist()) == [2, 2, 3]


def test_large_values_are_sometimes_ties_of_rounding(drawer):
    source = drawer()
    drawn = [source.draw("large")["x"] for _ in range(20)]
    ties = [bool(((2 * values) % 1 == 0).all()) for values in drawn]
    assert 0 < sum(ties) < len(ties)
    assert all(((2 * values) % 2 == 1).any() for values, has_ties in zip(drawn, ties, strict=True) if has_ties)


@pytest.mark.parametrize(
    ("promise", "passed"),
    [
        ("0 <= label < n, or label == ignored", True),
        ("labels[i] == ignored", True),
        ("ignored is no label", False),
        ("labels == x", False),
    ],
)
def test_an_input_holds_the_number_that_a_promise_gives_it(workshop, promise, passed):
    more = '"labels": TensorSpec(shape=("n",), dtype="int64"), "ignored": ScalarSpec(type="int", value=-100)'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', f'"x": TensorSpec(shape=("n",)), {more}', 1)
    file = workshop.load("square", text.replace("workloads=", f"constraints=({promise!r},), workloads="))
    source = Inputs(file, file.definition.workloads[0], 1, "cpu")
    assert not (source.draw()["labels"] == -100).any()
    assert bool((source.draw("large")["labels"] == -100).any()) == passed
    assert (source.draw("large")["labels"] >= 0).any()
    few = file.definition.workloads[0].model_copy(update={"axes": {"n": 8}})
    assert not any((Inputs(file, few, seed, "cpu").draw("large")["labels"] == -100).any() for seed in range(9))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_gpu_rounds_the_same_normal_values_as_it_draws_them(workshop, dtype):
    file = workshop.load("square", ROWS)
    workload = file.definition.workloads[0].model_copy(update={"dtype": dtype})
    drawn = Inputs(file, workload, 1, "cuda").draw()["x"]
    wide = Inputs(file, workload.model_copy(update={"dtype": "float32"}), 1, "cuda").draw()["x"]
    assert drawn.dtype == getattr(torch, dtype)
    assert torch.equal(drawn, wide.to(drawn.dtype))
