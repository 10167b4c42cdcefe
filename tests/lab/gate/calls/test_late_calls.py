"""Late calls: their order, their grades, and their entry in the record."""

from __future__ import annotations

import pytest

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import late_calls
from warpsmith.lab.gate.calls.late_calls import LateCalls
from warpsmith.lab.grading.correctness import Grade


class RecordingSession:
    """A session that records the calls that it gets."""

    def __init__(self, late="PASSED", plain="PASSED", why="") -> None:
        self.drawn = ["seen", "fresh"]
        self.asked: list[str] = []
        self.late_grade, self.plain_grade, self.why = grade(late), grade(plain), why

    def write_inputs(self, slot, values):
        self.drawn[slot] = values
        self.asked.append(f"write {values}")

    def call_with_late_inputs(self, name, *, captured):
        self.asked.append("captured" if captured else "launched")
        if captured and self.why:
            return self.why
        self.drawn[0] = self.drawn[1]
        return ""

    def truth(self, slot):
        return self.drawn[slot]

    def grade_last_call(self, name, slot, truth):
        self.asked.append(f"grade {truth}")
        return self.late_grade

    def call_and_grade(self, name):
        self.asked.append(f"check {self.drawn[0]}")
        return self.plain_grade


def grade(status):
    return Grade(Status(status), 0.0, 0.0, detail=status.lower())


@pytest.fixture
def late(monkeypatch):
    def make(capability=(9, 0), device="cuda"):
        monkeypatch.setattr(late_calls.late_inputs, "compute_capability", lambda: capability)
        return LateCalls(device)

    return make


def test_both_calls_begin_with_inputs_that_were_seen_and_are_graded_by_fresh_ones(late):
    one, found = RecordingSession(), late()
    assert [status.status for status, _ in found.calls(one)] == ["PASSED", "PASSED"]
    assert one.asked == [
        "write seen", "launched", "grade fresh", "write seen", "captured", "grade fresh"
    ]  # fmt: skip
    (check,) = found.checks
    assert (check.name, check.ran, check.how) == (
        "inputs that arrive late", True, "at 1 workloads, from a CUDA graph too"
    )  # fmt: skip


def test_what_is_wrong_only_while_inputs_arrive_is_told_to_wait(late):
    calls = late().calls(RecordingSession(late="INCORRECT_NUMERICAL"))
    for where in ("on a stream", "from a CUDA graph"):
        found, how = next(calls)
        assert found.status is Status.INCORRECT_NUMERICAL
        assert how.startswith(f"called {where} while its inputs were still being written; ")
        assert how.endswith("must wait: griddepcontrol.wait")


def test_what_is_as_wrong_on_inputs_that_are_there_is_not_called_late(late):
    one = RecordingSession(late="INCORRECT_NUMERICAL", plain="NOT_REPRODUCIBLE")
    assert next(late().calls(one)) == (one.plain_grade, "normal inputs")
    assert one.asked[-1] == "check fresh"


def test_where_no_graph_holds_a_call_the_record_says_so(late):
    found = late()
    for _ in range(2):
        assert len(list(found.calls(RecordingSession(why="RuntimeError: it synchronises")))) == 1
    (check,) = found.checks
    assert check.ran
    assert check.how.startswith("at 2 workloads, ")
    assert "but for 2: RuntimeError: it synchronises" in check.how


@pytest.mark.parametrize(
    ("capability", "device", "said"),
    [
        ((8, 9), "cuda", "no kernel starts before the one ahead has ended at compute capability 8.9"),
        ((9, 0), "cpu", None),
    ],
)
def test_where_no_kernel_can_start_early_nothing_is_asked(late, capability, device, said):
    found, one = late(capability, device), RecordingSession()
    assert list(found.calls(one)) == []
    assert one.asked == []
    assert [check.how for check in found.checks if check.ran] == ([said] if said else [])


def test_a_judgement_that_checked_nothing_is_no_proof(late):
    (check,) = late().checks
    assert (check.ran, check.how) == (False, "no workload was checked")
