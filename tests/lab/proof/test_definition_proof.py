from __future__ import annotations

import pytest
from lab_samples import HEAD

from warpsmith.errors import BadDefinition
from warpsmith.lab.proof import definition_proof

MEAN = (
    HEAD
    + """
definition = Definition(
    name="mean", description="mean of all values, plus a shift",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), distribution="uniform"), "shift": ScalarSpec(value=0.5)},
    outputs={"y": TensorSpec(shape=())}, tolerance=Tolerance(reduction="REDUCTION"),
    flops="rows * cols", constraints=("sizes are as given",),
    workloads=(Workload(name="small", axes={"rows": 64, "cols": 100}),
               Workload(name="tiny", axes={"rows": 3, "cols": 5}, set="odd"),
               Workload(name="large", axes={"rows": 512, "cols": 4096}, set="full")),
)
def reference(x, shift):
    return x.mean() + shift
"""
)
WIDE = MEAN.replace("REDUCTION", "1000000000000")
HALF = "every second slice of x along axis 0 is not read"


@pytest.fixture
def prove(workshop):
    def run(text, seconds=20.0):
        file = workshop.load("mean", text)
        return file, definition_proof.prove_definition(file, seconds=seconds)

    return run


def test_an_honest_definition_is_proven_at_every_workload(prove):
    file, proof = prove(MEAN.replace("REDUCTION", "rows * cols"))
    assert proof.counterexamples == ()
    assert (proof.mend, definition_proof.describe_refusal(file, proof)) == ("", "")
    assert proof.workloads == ("tiny", "small", "large")
    assert proof.skipped == {}
    assert proof.hidden == ("the rows of x are permuted",)  # a mean of the same values
    assert 0 < proof.reference_error < 1


def test_the_drawn_integers_are_named_by_their_range(prove):
    tokens = 'inputs={"token": TensorSpec(shape=("rows",), dtype="int32"),'
    text = MEAN.replace("REDUCTION", "rows * cols").replace("inputs={", tokens)
    _, proof = prove(
        text.replace("reference(x,", "reference(token, x,").replace("x.mean()", "token[0] + x.mean()")
    )
    assert set(proof.integers) == {"token"}
    low, high = map(int, proof.integers["token"].removesuffix(" at large").split(" to "))
    assert 0 <= low < 16
    assert 112 <= high < 128  # what integers are drawn as where nothing is declared


def test_axes_that_keep_their_sizes_are_named(prove):
    _, proof = prove(MEAN.replace("REDUCTION", "rows * cols"))
    assert set(proof.fixed) == {"rows", "cols"}
    assert all("promise" in reason for reason in proof.fixed.values())


def test_a_wide_bound_is_refused_with_a_counterexample_and_a_mend_that_holds(prove):
    file, proof = prove(WIDE)
    passing = {example.mutation: example for example in proof.counterexamples}
    assert {HALF, "a constant, the mean over other inputs"} <= set(passing)
    assert "the rows of x are permuted" not in passing
    assert 0 < passing[HALF].error < 1
    assert passing[HALF].reference_error < passing[HALF].error / 10
    gross = [e.error for e in proof.counterexamples if "axis" in e.mutation or "constant" in e.mutation]
    assert gross == sorted(gross) == [e.error for e in proof.counterexamples][: len(gross)]
    refusal = definition_proof.describe_refusal(file, proof)
    assert "a wrong kernel would pass at" in refusal
    assert "set the reduction of y to at most" in refusal
    assert "These would pass too: " in refusal
    length = proof.mend.split("at most ")[1].split(" ")[0]
    assert prove(MEAN.replace("REDUCTION", length))[1].counterexamples == ()


def test_the_first_workload_that_the_reference_misses_is_named(prove):
    strict = MEAN.replace("REDUCTION", "1").replace("x.mean()", "x.bfloat16().mean().float()")
    with pytest.raises(BadDefinition, match=r"misses its own bound at tiny .*correct the tolerance"):
        prove(strict)
    only_large = strict.replace("x.bfloat16().mean()", "(x.mean().bfloat16() if len(x) > 100 else x.mean())")
    with pytest.raises(BadDefinition, match="misses its own bound at large"):
        prove(only_large)


def test_a_slightly_wrong_scalar_is_caught_where_it_counts_and_hidden_where_it_does_not(prove):
    counted = prove(MEAN.replace("REDUCTION", "rows * cols"))[1]
    assert not [name for name in counted.hidden if "scalar" in name]
    ignored = prove(MEAN.replace("REDUCTION", "rows * cols").replace("+ shift", "+ shift * 1e-6"))[1]
    assert "the scalar shift is 0.51, not 0.5" in ignored.hidden
    assert ignored.counterexamples == ()


def test_what_the_reference_refuses_to_read_is_no_mutation(prove):
    picky = MEAN.replace("REDUCTION", "rows * cols").replace(
        "    return", "    if bool((x[-1] == 0).all()):\n        raise ValueError('no zeros')\n    return"
    )
    proof = prove(picky)[1]
    assert proof.counterexamples == ()
    assert "the last tile of x along axis 0 is not read" in proof.hidden


def test_time_and_memory_leave_large_workloads_out_and_say_so(prove, monkeypatch):
    proof = prove(MEAN.replace("REDUCTION", "rows * cols"), seconds=1e-6)[1]
    assert proof.workloads == ("tiny", "small")[: len(proof.workloads)]
    assert "longer than" in proof.skipped["large"]
    monkeypatch.setattr(definition_proof, "_BYTES_PER_ELEMENT", 1 << 60)
    proof = prove(MEAN.replace("REDUCTION", "rows * cols"))[1]
    assert proof.workloads == ()
    assert all("GiB of memory" in reason for reason in proof.skipped.values())


def test_every_output_must_show_it(prove):
    scalar, wide = 'outputs={"y": TensorSpec(shape=())}', 'Tolerance(reduction="1000000000000")'
    both = scalar.replace('{"y"', '{"z": TensorSpec(shape=("rows", "cols")), "y"')
    text = WIDE.replace(scalar, both).replace(wide, f'{{"z": Tolerance(), "y": {wide}}}')
    text = text.replace("return x.mean() + shift", "return x * 2, x.mean() + shift")
    assert {example.output for example in prove(text)[1].counterexamples} == {"y"}


def test_where_callers_choose_the_layout_the_reference_runs_on_it(prove):
    free = 'distribution="uniform", layout="any"'
    text = MEAN.replace("REDUCTION", "rows * cols").replace('distribution="uniform"', free)
    assert prove(text)[1].counterexamples == ()
    wrong = text.replace("x.mean()", "x.mean() * (1 if x.is_contiguous() or x.dtype is torch.float64 else 2)")
    with pytest.raises(BadDefinition, match=r"its own bound at tiny .*, its inputs transposed"):
        prove(wrong)


CONSTANT = "a constant, the mean over other inputs"


@pytest.mark.parametrize(
    ("reference", "generator"),
    [
        ("x.mean() * 1e-9 + 5.0 + shift", ""),  # rounding hides what depends on the input
        ("x.mean() * float('nan')", ""),
        ("x.mean() + shift", "torch.manual_seed(0); return {'x': torch.rand(*workload.axes.values())}"),
    ],
)
def test_a_definition_at_which_a_constant_passes_everywhere_is_refused(prove, reference, generator):
    text = MEAN.replace("REDUCTION", "rows * cols").replace("x.mean() + shift", reference)
    if generator:
        text += f"\ndef inputs(workload, generator, device):\n    {generator}\n"
    file, proof = prove(text)
    assert proof.counterexamples[0].mutation == CONSTANT
    assert CONSTANT not in proof.hidden
    assert "draw inputs whose answers differ more" in definition_proof.describe_refusal(file, proof)


def test_an_output_without_an_input_may_be_constant_beside_one_that_depends_on_it(prove):
    scalar = 'outputs={"y": TensorSpec(shape=())}'
    text = MEAN.replace("REDUCTION", "rows * cols").replace(
        scalar, scalar.replace('{"y"', '{"z": TensorSpec(shape=("rows",), dtype="int64"), "y"')
    )
    positions = text.replace("return x.mean()", "return torch.arange(len(x), device=x.device), x.mean()")
    assert prove(positions)[1].counterexamples == ()


def test_an_infinite_bound_is_refused(prove):
    text = MEAN.replace("REDUCTION", "rows * cols")
    text += "\ndef magnitude(x, shift):\n    return x.mean() * float('inf')\n"
    with pytest.raises(BadDefinition, match="the bound of y is infinite at tiny"):
        prove(text)


def test_a_slight_mutation_must_fail_at_each_output_that_it_changes(prove):
    text = MEAN.replace("REDUCTION", "rows * cols").replace(
        'outputs={"y"', 'outputs={"z": TensorSpec(shape=()), "y"'
    )
    text = text.replace("return x.mean() + shift", "return x.mean() * shift, x.mean() * shift")
    assert prove(text)[1].counterexamples == ()
    lax = text + "\ndef magnitude(x, shift):\n    return x.mean() * 2e4, x.mean()\n"
    examples = prove(lax)[1].counterexamples
    assert {example.output for example in examples} == {"z"}
    assert "the scalar shift is 0.51, not 0.5" in {example.mutation for example in examples}
