from __future__ import annotations

from lab_samples import HEAD

from warpsmith.lab.proof.mend import find_mend
from warpsmith.lab.proof.mutations import list_mutations

MEAN = (
    HEAD
    + """
definition = Definition(
    name="mean", description="mean of values between 0 and 1",
    axes={"rows": "rows"}, inputs={"x": TensorSpec(shape=("rows",), distribution="uniform")},
    outputs={"y": TensorSpec(shape=())}, tolerance=Tolerance(TOLERANCE),
    flops="rows", workloads=(Workload(name="small", axes={"rows": 6400}),),
)
def reference(x):
    return x.mean()
"""
)


def mend_of(workshop, tolerance):
    """The mend for a kernel that leaves out the last eighth of the values: 12.5 % off."""
    file = workshop.load("mean", MEAN.replace("TOLERANCE", tolerance))
    workload = file.definition.workloads[0]
    dropped = next(m for m in list_mutations(file, workload, {}) if m.name.startswith("the last tile of x"))
    return find_mend(file, workload, dropped, "y")


def test_the_usual_slack_comes_first(workshop):
    mend = mend_of(workshop, "slack=16.0, reduction='100000000000'")
    assert mend == "set the slack of y to 2, which the reference holds"


def test_else_the_longest_reduction_that_refuses_it(workshop):
    # 8 * 2 * 2**-24 * sqrt(n) / 2 = 1/8 at n = 2**36, and the steps are quarters.
    mend = mend_of(workshop, f"reduction='{2**45}'")
    assert (
        mend
        == f"set the reduction of y to at most {2**35} at this size (it is {2**45}), which the reference holds"
    )


def test_a_reference_that_is_as_wrong_has_no_such_mend(workshop):
    text = MEAN.replace("x.mean()", "x.mean() * (0.8 if x.dtype == torch.float32 else 1.0)")
    file = workshop.load("mean", text.replace("TOLERANCE", f"reduction='{2**50}'"))
    workload = file.definition.workloads[0]
    dropped = next(m for m in list_mutations(file, workload, {}) if m.name.startswith("the last tile of x"))
    assert find_mend(file, workload, dropped, "y").startswith("no reduction length of y refuses that")
