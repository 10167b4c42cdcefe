"""Evaluation: a record that its outcome does not allow cannot be made."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from warpsmith.core.evaluation import Evaluation, Status, Verdict, WorkloadResult

GRADED = {"calls": 3, "worst": 0.4, "relative_error": 1e-6}
INTERVAL = {"low": 1.1, "high": 1.3}
BEST = {"against": "best", "other_seconds": 1.2, "speedup": 1.2, "interval": INTERVAL, "pairs": 8}
TIMING = {
    "seconds": 1.0, "samples": 9, "spread": 0.01, "clock": "parent", "parent_seconds": 1.1, "comparisons": [BEST],
    "floor_seconds": 0.5, "ceiling_share": 0.5, "bandwidth": 1e9, "rate": 1e9,
}  # fmt: skip
AGGREGATE = {"against": "best", "speedup": 1.2, "interval": INTERVAL, "worst_workload": "a", "worst": 1.2}


def passed(name: str = "a", **changes: Any) -> dict[str, Any]:
    return {"workload": name, "status": "PASSED", "correctness": GRADED, "timing": TIMING} | changes


def failed(name: str = "b", status: str = "TIMEOUT") -> dict[str, Any]:
    return {"workload": name, "status": status, "message": "It did not end."}


def evaluation(verdict: str = "ACCEPT", **changes: Any) -> Evaluation:
    machine = {"id": "m-0", "target": "cpu", "device": "d", "processor": "p", "libraries": {}}
    data = {
        "definition": "norm", "language": "cpp", "version": "v1", "target": "cpu",
        "provenance": {
            "solution": "kernels/norm/cpp/v1.cpp", "solution_sha256": "a" * 64, "definition_sha256": "b" * 64,
            "lab_sha256": "c" * 64, "gate_version": 1, "seed": 1, "machine": machine,
            "measured": "2026-11-21 10:00",
        },
        "steps": [{"name": "lint", "state": "passed", "seconds": 0.1}],
        "results": [passed()],
        "decision": {"verdict": verdict, "reason": "as the numbers say"},
    }  # fmt: skip
    return Evaluation.model_validate(data | changes)


def test_what_passed_must_be_graded():
    with pytest.raises(ValidationError, match="passed must have been graded"):
        WorkloadResult.model_validate(passed(correctness=None))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_what_failed_has_no_timing(status: Status):
    with pytest.raises(ValidationError, match="failed has no timing"):
        WorkloadResult.model_validate(passed(status=status, message="why"))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_what_failed_says_why(status: Status):
    with pytest.raises(ValidationError, match="must say why"):
        WorkloadResult(workload="a", status=status, correctness=GRADED)
    assert WorkloadResult(workload="a", status=status, message="why", correctness=GRADED).timing is None


def test_a_numerical_failure_says_by_how_much():
    with pytest.raises(ValidationError, match="by how much"):
        WorkloadResult(workload="a", status=Status.INCORRECT_NUMERICAL, message="far off")


def test_a_correctness_only_workload_passes_without_timing():
    assert WorkloadResult.model_validate(passed(timing=None)).timing is None


@pytest.mark.parametrize("verdict", ["ACCEPT", "ACCEPT_WITH_NOTE"])
@pytest.mark.parametrize(
    "results", [[], [failed()], [passed(), failed()], [passed(timing=None)]], ids=len
)  # fmt: skip
def test_an_accepted_version_passed_everything_and_was_timed(verdict: str, results: list[dict[str, Any]]):
    with pytest.raises(ValidationError, match="passed every workload and been timed"):
        evaluation(verdict, results=results)


@pytest.mark.parametrize("verdict", ["ROLLBACK", "INVALID"])
@pytest.mark.parametrize("results", [[], [passed(), failed()]], ids=len)
def test_aggregates_need_every_workload_to_have_passed(verdict: str, results: list[dict[str, Any]]):
    with pytest.raises(ValidationError, match="an aggregate needs every workload"):
        evaluation(verdict, results=results, aggregates=[AGGREGATE])
    assert evaluation(verdict, results=results).aggregates == ()


def test_an_absent_side_has_no_aggregate():
    assert evaluation().absent == {}, "as in records from before it was written"
    assert evaluation(aggregates=[AGGREGATE], absent={"torch.compile": "a: why"}).absent
    with pytest.raises(ValidationError, match="best has an aggregate and is absent"):
        evaluation(aggregates=[AGGREGATE], absent={"best": "a: why"})


def test_a_slow_version_may_have_aggregates():
    found = evaluation("ROLLBACK", aggregates=[AGGREGATE]).aggregate("best")
    assert found is not None
    assert found.speedup == 1.2
    assert evaluation("ROLLBACK", aggregates=[AGGREGATE]).aggregate("reference") is None


def test_the_status_is_the_first_failure():
    found = evaluation("ROLLBACK", results=[passed(), failed("b"), failed("c", "RUNTIME_ERROR")])
    assert (found.status, found.correct, list(found.timed)) == (Status.TIMEOUT, False, ["a"])
    assert evaluation().correct
    assert not evaluation("INVALID", results=[]).correct


def test_a_comparison_is_found_by_its_other_side():
    timing = evaluation().timed["a"]
    assert timing.against("best") == timing.comparisons[0]
    assert timing.against("reference") is None


@pytest.mark.parametrize("field", ["seconds", "floor_seconds", "ceiling_share", "parent_seconds"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_times_are_finite_and_above_zero(field: str, value: float):
    with pytest.raises(ValidationError):
        WorkloadResult.model_validate(passed(timing=TIMING | {field: value}))


def test_only_two_verdicts_accept():
    assert [verdict.name for verdict in Verdict if verdict.accepted] == ["ACCEPT", "ACCEPT_WITH_NOTE"]


def test_it_reads_back_what_it_writes():
    found = evaluation(aggregates=[AGGREGATE])
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


JOULES = {"joules": 0.05, "readings": 6, "best_joules": 0.06, "saving": 1.2, "interval": INTERVAL}
ENERGY = {"workloads": {"a": JOULES}, "aggregate": AGGREGATE | {"speedup": 1.3}, "floor": 0.01}


def test_where_time_is_the_objective_a_record_has_no_word_of_energy():
    found = evaluation(aggregates=[AGGREGATE])
    assert "energy" not in found.model_dump()
    assert "energy" not in found.model_dump_json()
    assert found.gain == found.aggregate("best")
    assert evaluation().gain is None


def test_joules_read_back_and_decide():
    found = evaluation(aggregates=[AGGREGATE], energy=ENERGY)
    assert Evaluation.model_validate_json(found.model_dump_json()) == found
    assert found.gain is not None
    assert found.gain.speedup == 1.3
    first = evaluation(energy={"workloads": {"a": {"joules": 0.05, "readings": 6}}})
    assert Evaluation.model_validate_json(first.model_dump_json()) == first
    assert first.gain is None


def test_joules_are_of_versions_that_passed():
    with pytest.raises(ValidationError, match="joules need every workload to have passed"):
        evaluation("ROLLBACK", results=[passed(), failed()], energy=ENERGY)


UNTIMED = passed(timing=None)
PORT = {"arch": "gfx942"}


def test_an_untimed_version_passed_and_was_compiled_and_has_no_time():
    judged = evaluation("UNTIMED", results=[UNTIMED], port=PORT)
    assert judged.decision.verdict.stands
    assert not judged.decision.verdict.accepted
    for changes in ({"results": [failed()]}, {"results": [passed()]}, {"port": None}, {"results": []}):
        with pytest.raises(ValidationError, match=r"UNTIMED version|only compiled"):
            evaluation("UNTIMED", **{"results": [UNTIMED], "port": PORT, **changes})


@pytest.mark.parametrize("verdict", ["ACCEPT", "ACCEPT_WITH_NOTE"])
def test_what_was_only_compiled_is_never_accepted(verdict):
    with pytest.raises(ValidationError, match="is not accepted"):
        evaluation(verdict, port=PORT)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_all_that_is_accepted_stands(verdict):
    assert verdict.stands == (verdict.accepted or verdict is Verdict.UNTIMED)
