from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.grading import correctness, error_figures
from warpsmith.lab.operator.definition_file import DefinitionFile, load_definition
from warpsmith.lab.operator.inputs import Inputs

NAN, INF = float("nan"), float("inf")


def file_of(reference, dtype="workload", **tolerance):
    definition = Definition(
        name="op",
        description="an operator",
        axes={"rows": "rows", "cols": "columns"},
        inputs={"x": TensorSpec(shape=("rows", "cols"))},
        outputs={"y": TensorSpec(shape=("rows", "cols"), dtype=dtype)},
        tolerance=Tolerance(**tolerance),
        flops="rows * cols",
        workloads=(Workload(name="w", axes={"rows": 8, "cols": 512}),),
    )
    return DefinitionFile(definition, Path("op/definition.py"), "0" * 64, reference)


def graded(file, x, output):
    return correctness.grade_outputs(
        correctness.compute_truth(file, file.definition.workloads[0], {"x": x}), {"y": output}
    )


@pytest.fixture
def x():
    return torch.randn(8, 512, generator=torch.Generator().manual_seed(1))


def softmax(x):
    return torch.softmax(x, dim=-1)


def test_float32_rounding_is_accepted(x):
    found = graded(file_of(softmax, reduction="cols"), x, softmax(x))
    assert found.status == "PASSED"
    assert 0 < found.worst <= 1
    assert 0 < found.relative_error < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_outputs_are_accepted(x, dtype):
    kind = getattr(torch, dtype)
    file = file_of(softmax, dtype, reduction="cols")
    assert graded(file, x, softmax(x).to(kind)).status == "PASSED"
    assert graded(file, x, (softmax(x) * 1.05).to(kind)).status == "INCORRECT_NUMERICAL"


def test_a_relative_error_of_a_thousandth_is_refused(x):
    found = graded(file_of(softmax, reduction="cols"), x, softmax(x) * 1.001)
    assert found.status == "INCORRECT_NUMERICAL"
    assert found.relative_error == pytest.approx(1e-3, rel=1e-3)
    assert "y[0, 0] is" in found.detail
    assert "100.00% of the elements are wrong" in found.detail


@pytest.mark.parametrize("value", [NAN, INF, -INF, 0.0, 1e30])
def test_one_wrong_element_is_found_and_named(x, value):
    output = softmax(x)
    output[5, 300] = value
    found = graded(file_of(softmax, reduction="cols"), x, output)
    assert found.status == "INCORRECT_NUMERICAL"
    assert "y[5, 300]" in found.detail
    assert found.worst > 1


def test_all_nan_is_refused(x):
    found = graded(file_of(softmax), x, torch.full_like(x, NAN))
    assert found.status == "INCORRECT_NUMERICAL"
    correctness.summarize_grades([found])  # every number of it can be kept


def test_a_nan_that_the_reference_has_must_be_there(x):
    x[2, :] = -INF
    file = file_of(softmax, reduction="cols")
    honest = softmax(x)
    assert honest[2].isnan().all()
    assert graded(file, x, honest).status == "PASSED"
    for wrong in (0.0, INF):
        output = honest.clone()
        output[2, 7] = wrong
        found = graded(file, x, output)
        assert found.status == "INCORRECT_NUMERICAL"
        assert "y[2, 7]" in found.detail


def test_masked_rows(x):
    x[..., :256] = -INF
    file = file_of(softmax, reduction="cols")
    assert graded(file, x, softmax(x)).status == "PASSED"
    output = softmax(x)
    output[0, 3] = 1e-6  # masked positions are exactly zero
    assert graded(file, x, output).status == "INCORRECT_NUMERICAL"


def test_infinities_keep_their_sign(x):
    file = file_of(lambda x: x * 1e300)
    honest = (x.double() * 1e300).float()
    assert honest.isinf().all()
    assert graded(file, x, honest).status == "PASSED"
    assert graded(file, x, -honest).status == "INCORRECT_NUMERICAL"
    assert graded(file, x, torch.full_like(x, 3e38).copysign(x)).status == "INCORRECT_NUMERICAL"


def test_integers_are_exact(x):
    file = file_of(lambda x: (x > 0).long(), "int64")
    right = (x > 0).long()
    assert graded(file, x, right).status == "PASSED"
    right[7, 511] += 1
    assert graded(file, x, right).status == "INCORRECT_NUMERICAL"


def off_by(bounds, x, columns):
    """The reference, some elements of the first row off by a multiple of their bound."""
    truth = correctness.compute_truth(file := file_of(softmax), file.definition.workloads[0], {"x": x})
    output = truth.values["y"].clone()
    output[0, :columns] += bounds * truth.bounds["y"][0, :columns]
    return output.float()


def test_a_share_may_be_allowed_to_miss(x):
    file = file_of(softmax, required_match=0.99)
    assert graded(file, x, off_by(10, x, columns=10)).status == "PASSED"
    assert graded(file, x, off_by(10, x, columns=100)).status == "INCORRECT_NUMERICAL"


def test_what_may_miss_is_spread(x):
    x = x.repeat(8, 1)
    workload = Workload(name="w", axes={"rows": 64, "cols": 512})
    file = file_of(softmax, required_match=0.98)
    truth = correctness.compute_truth(file, workload, {"x": x})
    output = softmax(x)
    output[:, 7] += 10 * truth.bounds["y"][:, 7]
    found = correctness.grade_outputs(truth, {"y": output})
    assert "wrong in 100% of the elements at 7 along its axis 1" in found.detail
    output = softmax(x)
    output.view(-1)[::60] += 10 * truth.bounds["y"].view(-1)[::60]
    assert correctness.grade_outputs(truth, {"y": output}).status == "PASSED"


def test_what_may_miss_is_no_wild_number(x):
    file = file_of(softmax, required_match=0.99)
    assert graded(file, x, off_by(30, x, columns=1)).status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(
    "upcast",
    [
        lambda x: x.float(),
        lambda x: x.half(),
        lambda x: x.bfloat16(),
        lambda x: x.to(torch.float32),
        lambda x: x.to(dtype=torch.float16),
        lambda x: x.type(torch.float32),
        lambda x: torch.softmax(x, -1, dtype=torch.float32),
        lambda x: x + torch.full((1,), 1 / 3, dtype=torch.float32),
    ],
)
def test_references_that_upcast_stay_float64(x, upcast):
    file = file_of(lambda x: upcast(x) / 3)
    value = correctness.compute_truth(file, file.definition.workloads[0], {"x": x}).values["y"]
    exact = {"softmax": torch.softmax(x.double(), -1), "full": x.double() + 1 / 3}
    expected = next((exact[n] for n in exact if n in upcast.__code__.co_names), x.double()) / 3
    assert value.dtype == torch.float64
    assert torch.equal(value, expected)


def test_correlated_inputs_widen_the_bound(x):
    file = file_of(softmax, reduction="cols")
    workload = file.definition.workloads[0]
    narrow = correctness.compute_truth(file, workload, {"x": x}).bounds["y"]
    wide = correctness.compute_truth(file, workload, {"x": x}, correlated=True).bounds["y"]
    assert (wide > 2 * narrow).all()


@pytest.mark.parametrize(("scale", "factor"), [(0.125, 1), (1.0, 1), (1e-5, 5)])
def test_a_factor_that_hardly_counts_widens_the_bound(x, scale, factor):
    """It makes the exponentials of a softmax alike, so that the rounding errors of their sum add up."""
    plain = file_of(lambda x, scale: torch.softmax(x * scale, -1), reduction="cols")
    inputs = {"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=0.125)}
    file = replace(plain, definition=plain.definition.model_copy(update={"inputs": inputs}))
    declared = file.definition.workloads[0]
    drawn = declared.model_copy(update={"scalars": {"scale": scale}})
    bounds = [correctness.compute_truth(file, each, {"x": x}).bounds["y"].max() for each in (declared, drawn)]
    share = float(bounds[1] / bounds[0]) * float(
        torch.softmax(x * 0.125, -1).max() / torch.softmax(x * scale, -1).max()
    )
    assert share == pytest.approx(1, abs=0.01) if factor == 1 else share > factor


def test_no_elements_pass():
    file = file_of(softmax)
    workload = Workload(name="w", axes={"rows": 0, "cols": 512})
    empty = torch.empty(0, 512)
    assert (
        correctness.grade_outputs(correctness.compute_truth(file, workload, {"x": empty}), {"y": empty}).status
        == "PASSED"
    )


def test_errors_near_the_bound_all_over_are_refused(x):
    file = file_of(softmax, reduction="cols")
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    exact, bound = truth.values["y"], truth.bounds["y"]
    for part, status in ((0.7, "PASSED"), (0.9, "INCORRECT_NUMERICAL")):
        found = correctness.grade_outputs(truth, {"y": (exact + part * bound).float()})
        assert found.status == status
        assert found.worst < 1
        assert found.norm_share == pytest.approx(part / 0.75, rel=0.05)
    assert "times the norm-wise bound" in found.detail
    few = exact + 0.5 * bound
    few[0, :5] = (exact + 0.95 * bound)[0, :5]
    assert correctness.grade_outputs(truth, {"y": few.float()}).status == "PASSED"


def test_one_element_alone_has_all_of_its_bound(x):
    file = file_of(lambda x: (x * x).sum(-1, keepdim=True).expand(x.shape), reduction="cols")
    truth = correctness.compute_truth(file, Workload(name="w", axes={"rows": 1, "cols": 1}), {"x": x[:1, :1]})
    near = truth.values["y"] + 0.9 * truth.bounds["y"]
    assert correctness.grade_outputs(truth, {"y": near.float()}).status == "PASSED"


def test_without_slack_there_is_no_norm_wise_bound(x):
    file = file_of(softmax, reduction="cols", slack=1.0)
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    near = truth.values["y"] + 0.9 * truth.bounds["y"]
    assert correctness.grade_outputs(truth, {"y": near.float()}).status == "PASSED"


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_no_share_of_nan_or_infinity_may_miss(x, value):
    file = file_of(softmax, required_match=0.99)
    output = softmax(x)
    output[0, :10] = 5.0
    output[6, 300] = value
    assert graded(file, x, output).status == "INCORRECT_NUMERICAL"


def test_elements_that_may_miss_are_no_part_of_the_norm(x):
    found = graded(file_of(softmax, required_match=0.99), x, off_by(10, x, columns=10))
    assert (found.status, found.worst > 1, found.norm_share < 1) == ("PASSED", True, True)


def test_parts_are_put_together(x, monkeypatch):
    whole = graded(file_of(softmax, reduction="cols"), x, softmax(x))
    monkeypatch.setitem(error_figures._PART_ELEMENTS, "cpu", 700)
    parted = graded(file_of(softmax, reduction="cols"), x, softmax(x))
    assert parted.worst == whole.worst
    assert parted.norm_share == pytest.approx(whole.norm_share)
    output = softmax(x).t().contiguous().t()
    output[6, 300] = NAN
    assert "y[6, 300] is nan" in graded(file_of(softmax, reduction="cols"), x, output).detail


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_outputs(x, dtype):
    kind = getattr(torch, dtype)
    file = file_of(lambda x: x / 4, dtype)
    assert graded(file, x, (x / 4).to(kind)).status == "PASSED"
    output = (x / 4).to(kind)
    output[2, 2] = NAN
    assert "y[2, 2] is nan" in graded(file, x, output).detail


def test_terms_that_cancel_to_zero_in_float64_need_not_do_so_in_a_kernel():
    def gelu(x):
        return 0.5 * x * (1 + torch.erf(x / 2**0.5))

    x = torch.full((8, 512), -8.5)
    better = 0.5 * x * torch.special.erfc(-x / 2**0.5)
    assert (gelu(x.double()) == 0).all()
    assert (better != 0).all()
    assert graded(file_of(gelu), x, better).status == "PASSED"
    assert graded(file_of(gelu), x, 100 * better).status == "INCORRECT_NUMERICAL"


def test_hardware_without_subnormals_is_right_at_denormal_inputs(x):
    file = file_of(lambda x: x * 1000)
    tiny = torch.finfo(torch.float32).tiny
    small = x.clamp(-1, 1) * tiny / 2
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": small}, correlated=True)
    assert correctness.grade_outputs(truth, {"y": torch.zeros_like(x)}).status == "PASSED"
    assert correctness.grade_outputs(truth, {"y": small * 1000}).status == "PASSED"
    assert correctness.grade_outputs(truth, {"y": small + 3e3 * tiny}).status == "INCORRECT_NUMERICAL"


def test_each_term_of_a_sum_may_be_flushed_by_itself(x):
    file = file_of(lambda x: (x * 2.0**-60).cumsum(-1), reduction="cols")
    small = x * 2.0**-66  # its product with a factor is about the smallest normal number
    tiny = torch.finfo(torch.float32).tiny
    terms = small.double() * 2.0**-60
    flushed = terms.masked_fill(terms.abs() < tiny, 0.0).cumsum(-1).float()
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": small}, correlated=True)
    assert (flushed - truth.values["y"]).abs().max() > 4 * tiny
    assert correctness.grade_outputs(truth, {"y": flushed}).status == "PASSED"
    assert correctness.grade_outputs(truth, {"y": flushed + 1e3 * tiny}).status == "INCORRECT_NUMERICAL"


def test_workloads_that_are_drawn_alike_have_the_wider_bound(x):
    file = file_of(softmax, reduction="cols")
    plain = file.definition.workloads[0]
    sorted_ = plain.model_copy(update={"distribution": "sorted"})
    narrow, wide = (
        correctness.compute_truth(file, workload, {"x": x}).bounds["y"] for workload in (plain, sorted_)
    )
    assert (wide > 2 * narrow).all()


def test_the_reference_holds_itself_in_every_order(x):
    file = file_of(softmax, reduction="cols")
    workload = file.definition.workloads[0]
    truth = correctness.compute_truth(file, workload, {"x": x})
    itself = correctness.grade_reference(file, workload, {"x": x}, truth)
    assert itself.status == "PASSED"
    assert correctness.grade_outputs(truth, {"y": softmax(x)}).worst <= itself.worst < 0.5


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_parts_of_products_are_added_in_float32_in_every_order(x, name):
    settings, flag = torch.backends.cuda.matmul, f"allow_{name}_reduced_precision_reduction"
    seen, before = [], getattr(settings, flag)

    def noted(x):
        seen.append(getattr(settings, flag))
        return softmax(x)

    file = file_of(noted, reduction="cols")
    orders = correctness.reference_orders(file, file.definition.workloads[0], {"x": x})
    assert seen == [False] * len(orders)
    assert len(orders) > 1
    assert getattr(settings, flag) == before


@pytest.mark.parametrize(("gap", "expected"), [(0.0, False), (2e-7, False), (1e-4, True)])
def test_a_choice_hangs_on_rounding_where_values_are_near_a_tie(gap, expected):
    choose = lambda x: x.argmax(-1, keepdim=True).int() + 0 * x.int()  # noqa: E731
    file = file_of(choose, dtype="int32")
    workload = Workload(name="w", axes={"rows": 1, "cols": 3})
    x = torch.tensor([[1.0, 0.5, 1.0 - gap]])
    truth = correctness.compute_truth(file, workload, {"x": x})
    found = [correctness.choices_are_stable(file, workload, {"x": x}, truth) for _ in range(40)]
    assert sum(found) > 30 if expected else sum(found) < 10


def test_inputs_at_a_limit_of_the_reference_decide_nothing():
    def limited(x):
        if (x > 1).any():
            raise ValueError("beyond 1")
        return x.int()

    file, x = file_of(limited, dtype="int32"), torch.ones(1, 3)
    workload = Workload(name="w", axes={"rows": 1, "cols": 3})
    assert not correctness.choices_are_stable(
        file, workload, {"x": x}, correctness.compute_truth(file, workload, {"x": x})
    )


def test_without_a_choice_nothing_hangs_on_rounding(x):
    file = file_of(softmax, reduction="cols")
    workload = file.definition.workloads[0]
    assert correctness.choices_are_stable(
        file, workload, {"x": x}, correctness.compute_truth(file, workload, {"x": x})
    )


def test_a_bound_that_only_one_order_holds_is_named():
    x = torch.tensor([[1e8, -1e8, 1.0]])  # the large numbers must cancel before the small one comes
    file = file_of(lambda x: x.sum(-1, keepdim=True) + 0 * x)
    workload = Workload(name="w", axes={"rows": 1, "cols": 3})
    assert (file.reference(x) == 1).all()
    truth = correctness.compute_truth(file, workload, {"x": x})
    itself = correctness.grade_reference(file, workload, {"x": x}, truth)
    assert itself.status == "INCORRECT_NUMERICAL"
    assert "its sums in the order `" in itself.detail


def test_calls_that_agree(x):
    file = file_of(softmax, reduction="cols", slack=2.0)
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    y = softmax(x)
    assert correctness.compare_calls({"y": y}, {"y": y.clone()}, truth, True) == (0.0, "")
    other = y.clone()
    other[3, 3] *= 1 + 2**-22
    share, failure = correctness.compare_calls({"y": y}, {"y": other}, truth, False)
    assert 0 < share < 1
    assert failure == ""
    same, failure = correctness.compare_calls({"y": y}, {"y": other}, truth, True)
    assert same == share
    assert failure.startswith("y differs from call to call")
    assert "0.02% of its elements" in failure
    other[3, 3] = 0.5
    share, failure = correctness.compare_calls({"y": y}, {"y": other}, truth, False)
    assert share > 1
    assert "times the bound; 0.02% of its elements" in failure


def test_special_values_agree_with_themselves_only(x):
    x[0] = NAN
    file = file_of(lambda x: x / torch.zeros_like(x).masked_fill_(x > 0, 1.0))
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    y = file.reference(x)
    other = y.clone()
    other.view(torch.int32)[0] ^= 1  # another NaN
    other[1, 1] += 0.0
    assert correctness.compare_calls({"y": y}, {"y": other}, truth, True)[1] == ""
    for wrong in (NAN, INF):
        other = y.clone()
        other[1, int(y[1].isneginf().int().argmax())] = wrong
        assert correctness.compare_calls({"y": y}, {"y": other}, truth, False)[0] == 1e9


def test_integers_agree_exactly(x):
    file = file_of(lambda x: (x > 0).long(), "int64")
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    y = (x > 0).long()
    assert correctness.compare_calls({"y": y}, {"y": y.clone()}, truth, False) == (0.0, "")
    assert "differs from call to call" in correctness.compare_calls({"y": y}, {"y": y ^ 1}, truth, False)[1]


def test_what_the_record_keeps(x):
    found = graded(file_of(softmax, reduction="cols"), x, softmax(x))
    record = correctness.summarize_grades([found, found], reordered=0.1, repeat=0.0)
    assert (record.calls, record.norm_worst, record.reordered, record.repeat) == (2, found.norm_share, 0.1, 0.0)


def test_a_bound_that_rounding_never_comes_near_is_loose(x):
    tight, wide = file_of(softmax, reduction="cols"), file_of(softmax, reduction="cols ** 3", slack=16.0)
    for file, expected in ((tight, False), (wide, True)):
        workload = file.definition.workloads[0]
        truth = correctness.compute_truth(file, workload, {"x": x})
        assert (
            correctness.tolerance_is_loose(correctness.grade_reference(file, workload, {"x": x}, truth).worst)
            is expected
        )
    assert not correctness.tolerance_is_loose(0.0)


def _ten_bits(x):
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _three_products(a, b):
    """Multiply parts of bfloat16, as tensor cores do for nearly all of float32's precision."""
    a_high, b_high = a.bfloat16().float(), b.bfloat16().float()
    a_low, b_low = (a - a_high).bfloat16().float(), (b - b_high).bfloat16().float()
    return a_high @ b_high + (a_high @ b_low + a_low @ b_high)


def _in_order(a, b):
    return sum((a[:, k : k + 1] * b[k : k + 1] for k in range(a.shape[1])), torch.zeros(a.shape[0], b.shape[1]))


def _split(a, b):
    return sum(left @ right for left, right in zip(a.chunk(8, 1), b.chunk(8, 0), strict=True))


@pytest.mark.parametrize("k", [256, 1024, 16384])
@pytest.mark.parametrize(
    ("product", "passes"),
    [
        (torch.mm, True),
        (_in_order, True),
        (_split, True),
        (_three_products, True),
        (lambda a, b: _ten_bits(a) @ _ten_bits(b), False),
        (lambda a, b: (a.bfloat16() @ b.bfloat16()).float(), False),
    ],
    ids=["plain", "in order", "split k", "three products", "ten bits", "bfloat16"],
)
def test_products_of_float32_keep_its_precision_however_long_they_are(k, product, passes):
    """Bounds of elements grow with the length of a product, faster than its result does."""
    file = load_definition(Path(__file__).parents[2] / "redteam" / "matmul" / "definition.py")
    workload = Workload(name="w", axes={"m": 32, "n": 32, "k": k})
    file = replace(file, definition=file.definition.model_copy(update={"workloads": (workload,)}))
    drawn = Inputs(file, workload, k, "cpu").draw()
    grade = correctness.grade_outputs(
        correctness.compute_truth(file, workload, drawn), {"c": product(drawn["a"], drawn["b"])}
    )
    assert (grade.status is Status.PASSED) == passes
    assert grade.norm_share < 0.9 if passes else grade.norm_share > 1.15


def test_errors_of_a_sum_far_longer_than_declared_ones_grow_faster():
    file = file_of(softmax, reduction="cols")
    bounds = []
    for cols in (700, 2800):
        workload = Workload(name="w", axes={"rows": 2, "cols": cols})
        truth = correctness.compute_truth(file, workload, {"x": torch.zeros(2, cols)})
        bounds.append(float((truth.bounds["y"] * cols).max()))
    assert 4 < bounds[1] / bounds[0] < 8


def test_exact_results_may_be_zero(x):
    file = file_of(torch.relu)
    x[0, :9] = 0.0
    assert graded(file, x, torch.relu(x)).status == "PASSED"
    wrong = torch.relu(x)
    wrong[0, 0] = 1e-30
    assert graded(file, x, wrong).status == "INCORRECT_NUMERICAL"


def test_no_error_is_within_a_bound_of_zero_and_nan_is_not():
    zeros = torch.zeros(4, dtype=torch.float64)
    assert error_figures.measure_errors(zeros.float(), zeros, zeros).wrong == 0
    assert error_figures.measure_errors(torch.tensor([0.0, NAN, 0.0, 1.0]), zeros, zeros).wrong == 2


@pytest.mark.parametrize("hook", ["magnitude", "extra"])
def test_a_hook_that_is_infinite_beside_masked_inputs_leaves_a_bound(x, hook):
    file = replace(file_of(softmax, reduction="cols"), **{hook: lambda x: x.abs() * torch.ones_like(x)})
    x[:, 7] = -INF
    truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    assert truth.bounds["y"].isfinite().all()
    assert graded(file, x, softmax(x)).status == "PASSED"
    wrong = softmax(x)
    wrong[:, 7] = 0.01
    assert graded(file, x, wrong).status == "INCORRECT_NUMERICAL"


def test_a_hook_counts_what_masked_inputs_leave(x):
    file = replace(file_of(softmax, reduction="cols"), magnitude=lambda x: x.abs().amax() + 0 * x)
    x[:, 7] = -INF
    file_truth = correctness.compute_truth(file, file.definition.workloads[0], {"x": x})
    zeroed = x.where(x.isfinite(), 0)
    expected = correctness.compute_truth(file, file.definition.workloads[0], {"x": zeroed})
    rows = slice(0, 7)
    assert torch.allclose(file_truth.bounds["y"][:, rows], expected.bounds["y"][:, rows], rtol=0.1)


def test_infinity_and_the_largest_number_are_both_right_where_rounding_decides(x):
    most = torch.finfo(torch.float32).max
    file = file_of(lambda x: (x.double() * 0 + most * (1 - 2.0**-26)).to(x.dtype))
    ends = torch.full_like(x, most)
    assert graded(file, x, ends).status == "PASSED"
    ends[0, 3] = INF
    assert graded(file, x, ends).status == "PASSED"
    for wrong in (-INF, NAN, most / 2):
        ends[0, 3] = wrong
        assert graded(file, x, ends).status == "INCORRECT_NUMERICAL"


def test_the_largest_number_is_right_where_the_reference_just_overflows(x):
    most = torch.finfo(torch.float32).max
    file = file_of(lambda x: x * 0 + most * (1 + 2.0**-24))
    for right in (most, INF):
        assert graded(file, x, torch.full_like(x, right)).status == "PASSED"
    file = file_of(lambda x: x * 0 + most * (1 + 2.0**-12))
    assert graded(file, x, torch.full_like(x, most)).status == "INCORRECT_NUMERICAL"
    assert graded(file, x, torch.full_like(x, INF)).status == "PASSED"


@pytest.mark.parametrize("hook", ["magnitude", "extra"])
def test_hooks_see_inputs_of_8_bits(x, hook):
    file = file_of(lambda x: x.float().exp(), dtype="float32")
    narrow = x.to(torch.float8_e4m3fn)
    file = replace(file, **{hook: lambda x: x.float().exp()})
    assert graded(file, narrow, narrow.float().exp()).status == "PASSED"
    assert graded(file, narrow, x.exp()).status == "INCORRECT_NUMERICAL"
