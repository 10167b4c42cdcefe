"""The arithmetic of the transfer audit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.core.evaluation import Comparison, Interval
from warpsmith.program.operators.transfer_record import Gain, Transfer, WorkloadTransfer, speedup_from_gain

SECONDS = st.floats(-1e-3, 1e-3)
GAIN = st.builds(Gain, seconds=SECONDS, error=st.floats(0, 1e-5))


def workload(name: str = "a", **changes: object) -> WorkloadTransfer:
    none = {"seconds": 0.0, "error": 0.0}
    usual = {
        "workload": name, "calls": 2, "reference_seconds": 1e-3, "seconds": 5e-4, "fresh": none, "weights": none,
        "same": none,
    }  # fmt: skip
    return WorkloadTransfer.model_validate({**usual, **changes})


def transfer(*workloads: WorkloadTransfer, step: float = 1.0) -> Transfer:
    return Transfer(
        op="mine", operator="aten::mine", solution="cpp/v1", device="cpu", step_seconds=step, workloads=workloads
    )


@given(st.lists(st.tuples(st.floats(0.1, 100), GAIN, GAIN, GAIN), min_size=1, max_size=5))
def test_the_shares_add_up_to_what_a_benchmark_sees(drawn):
    found = transfer(*(
        workload(str(n), calls=calls, fresh=fresh, weights=weights, same=same)
        for n, (calls, fresh, weights, same) in enumerate(drawn)
    ))  # fmt: skip
    seen = sum(calls * same.seconds for calls, _, _, same in drawn)
    shares = found.real.seconds + found.weight_cache.seconds + found.residual.seconds
    assert math.isclose(shares, seen, abs_tol=1e-12)
    assert found.residual.error >= max(calls * same.error for calls, _, _, same in drawn) * (1 - 1e-9)


@given(GAIN, st.floats(0, 1e-3))
def test_a_gain_that_needs_no_repeats_is_all_real(gain, step):
    found = transfer(workload(fresh=gain, weights=gain, same=gain))
    assert found.real.seconds == pytest.approx(2 * gain.seconds)
    assert found.weight_cache.seconds == found.residual.seconds == 0
    assert found.inflated == ()


def test_what_only_repeats_gain_is_a_residual_beyond_noise_and_a_hundredth():
    hit = {"seconds": 4e-4, "error": 1e-6}
    assert workload(same=hit).inflated
    assert not workload(same={"seconds": 4e-4, "error": 2e-4}).inflated  # noise
    assert not workload(same={"seconds": 9e-6, "error": 1e-9}).inflated  # below a hundredth
    assert not workload(weights=hit, same=hit).inflated  # weights do stay the same within a step
    assert not workload(same={"seconds": -4e-4, "error": 0.0}).inflated
    found = transfer(workload("a"), workload("b", same=hit))
    assert [one.workload for one in found.inflated] == ["b"]
    assert found.residual.seconds == pytest.approx(8e-4)


def test_noise_that_could_hide_a_kept_result_is_named_where_the_kernel_matters():
    noisy = {"seconds": 0.0, "error": 1e-4}  # three of them are more than half of the kernel's 0.5 ms
    assert workload().detectable
    assert not workload(same=noisy).detectable
    assert workload(same={"seconds": 0.0, "error": 8e-5}).detectable
    found = transfer(workload("a"), workload("b", same=noisy), step=0.05)
    assert [one.workload for one in found.undetectable] == ["b"]
    assert transfer(workload("b", same=noisy), step=1.0).undetectable == ()  # 1 ms of a second


def test_the_prediction_is_what_calls_gain_in_the_program():
    gain = {"seconds": 1e-3, "error": 0.0}
    here, judged = workload("a", fresh=gain), workload("b", calls=10, fresh=gain, judged=2e-2)
    found = transfer(here, judged, step=1.0)
    assert found.predicted == pytest.approx(1 / (1 - 0.012))
    assert found.judged_seconds is None
    assert transfer(judged).judged_seconds == pytest.approx(0.2)
    assert transfer(judged, step=0.01).predicted is None


@given(st.floats(1e-6, 1e3), st.floats(-1e3, 1e3))
def test_a_speedup_and_a_gain_are_one_thing(step, gain):
    found = speedup_from_gain(step, gain)
    if gain >= step:
        assert found is None
    else:
        assert found is not None
        assert found > 0
        assert (found > 1) == (step > step - gain)


def test_the_measured_gain_is_of_the_step_without_the_kernel():
    comparison = Comparison(
        against="original", other_seconds=1.2, speedup=1.2, interval=Interval(low=1.1, high=1.3), pairs=9
    )
    found = transfer(workload()).model_copy(update={"measured": comparison})
    assert found.measured_seconds == pytest.approx(0.2)
    assert transfer(workload()).measured_seconds is None


def test_a_workload_stands_once():
    with pytest.raises(ValueError, match="twice"):
        transfer(workload("a"), workload("a"))
