"""Numerics of a port, out of an untimed judgement by the interpreter."""

from __future__ import annotations

import pytest
from record_kit import evaluation, passed

from warpsmith import languages
from warpsmith.port.numerics import check_numerics, summarize_check
from warpsmith.port.versions import PortVersion

NOTES = {
    "name": "correctness",
    "state": "noted",
    "notes": ("64x64 skipped: bfloat16 is wrong here", "a rounding"),
    "seconds": 1.0,
}


def judged(*results: tuple[str, str], reason: str = "because", verdict: str = "INVALID", steps=(NOTES,)):
    rows = [
        passed(name) if status == "PASSED" else {"workload": name, "status": status, "message": "so"}
        for name, status in results
    ]
    decision = {"verdict": verdict, "reason": reason}
    return summarize_check(
        evaluation(verdict=verdict, steps=steps, results=rows, aggregates=(), decision=decision)
    )


def test_a_correct_version_names_its_workloads_and_counts_what_was_skipped():
    numerics = judged(("a", "PASSED"), ("b", "PASSED"))
    assert (numerics.state, numerics.workloads, numerics.skipped) == ("correct", ("a", "b"), 1)


@pytest.mark.parametrize(
    ("status", "verdict", "state"),
    [("INCORRECT_SHAPE", "ROLLBACK", "failed"), ("TIMEOUT", "ROLLBACK", "unchecked")],
)
def test_a_wrong_value_fails_and_a_call_without_end_proves_nothing(status, verdict, state):
    numerics = judged(("a", "PASSED"), ("b", status), verdict=verdict, reason="at b")
    assert (numerics.state, numerics.workloads, numerics.reason) == (state, ("a",), "at b")


def test_workloads_that_nobody_can_interpret_prove_nothing():
    numerics = judged()
    assert (numerics.state, numerics.workloads) == ("unchecked", ())
    assert "interpreter" in numerics.reason


def test_a_judgement_that_never_began_says_why():
    numerics = judged(reason="the reference raises", steps=())
    assert (numerics.state, numerics.reason, numerics.skipped) == ("unchecked", "the reference raises", 0)


def test_a_language_without_interpreter_says_so_and_nothing_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(languages.get("flydsl"), "uninstalled", lambda: None)
    version = PortVersion("flydsl", "01_rows", tmp_path / "01_rows.py")
    numerics = check_numerics(None, None, version, lambda _: pytest.fail("it began"))
    assert numerics.state == "unchecked"
    assert "no interpreter" in numerics.reason
