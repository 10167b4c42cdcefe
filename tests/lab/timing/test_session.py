"""Sessions: the size of a block, results read at the answer, and arbitrary answers of a worker."""

from __future__ import annotations

import os
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab_samples import GIVEN, HONEST, SQUARE, kernel

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.calls.probes import Probes
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import system
from warpsmith.lab.timing import answers as worker_answers
from warpsmith.lab.timing import arenas as timing_arenas
from warpsmith.lab.timing.arenas import allocate_arenas, count_slots
from warpsmith.lab.timing.session import Session
from warpsmith.lab.timing.timing import SOLUTION
from warpsmith.lab.workers import process
from warpsmith.lab.workers.side import SideFailed

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
repeatable = settings(derandomize=True, deadline=None, max_examples=200)

LATE = """
  std::thread([=] { usleep(50000); for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i]; }).detach();
"""


def at(file, n):
    return file.definition.workloads[0].model_copy(update={"axes": {"n": n}})


def test_a_block_is_one_call_on_the_cpu_and_spans_the_cache_on_a_gpu(workshop, monkeypatch):
    monkeypatch.setattr(timing_arenas, "_device_bytes", lambda: 128 << 30)
    file = workshop.load("square", SQUARE)
    assert count_slots(file, at(file, 1000), "cpu") == 1
    assert count_slots(file, at(file, 1), "cuda") == gate_rules.MAX_SLOTS
    middle = count_slots(file, at(file, 1 << 20), "cuda")  # 8 MiB a call
    assert middle * (8 << 20) > 2 * gate_rules.L2_BYTES
    assert count_slots(file, at(file, 1 << 27), "cuda") == 4  # 1 GiB a call: as many as the memory allows
    assert count_slots(file, at(file, 1 << 32), "cuda") == 2


@needs_compiler
def test_what_a_thread_writes_later_is_not_there(workshop, seat, monkeypatch):
    monkeypatch.setattr(gate_rules, "NUMBERS_SHARE", 0)
    found = seat(workshop.load("square", SQUARE), kernel(LATE))
    one = found.session()
    one.fill_inputs()
    assert one.reads_memory_of(SOLUTION), found.side.unreadable_reason()
    grade = one.call_and_grade(SOLUTION)
    assert grade.status is Status.INCORRECT_NUMERICAL
    assert "nan" in grade.detail


@needs_compiler
@pytest.mark.parametrize(("name", "text"), [("square", SQUARE), ("given", GIVEN)])
def test_no_version_tells_a_graded_call_by_poison(workshop, seat, name, text):
    body = "const bool checked = y[0] != y[0]; for (int64_t i = 0; i < n; ++i) y[i] = checked ? x[i] * x[i] : 7;"
    session = seat(workshop.load(name, text), kernel(body)).session()
    grades = []
    for _ in range(20):
        session.fill_inputs()
        grades.append(session.call_and_grade(SOLUTION).status)
    assert set(grades) == {Status.PASSED, Status.INCORRECT_NUMERICAL}


@needs_compiler
def test_an_honest_result_is_read_or_delivered(workshop, seat, monkeypatch):
    found = seat(workshop.load("square", SQUARE), kernel(HONEST))
    one = found.session()
    one.fill_inputs()
    assert one.call_and_grade(SOLUTION).status is Status.PASSED
    monkeypatch.setattr(found.side, "unreadable_reason", lambda: "tracing is not allowed")
    assert not one.reads_memory_of(SOLUTION)
    one.fill_inputs()
    assert one.call_and_grade(SOLUTION).status is Status.PASSED


@needs_compiler
def test_a_result_that_cannot_be_read_is_delivered_before_the_answer(workshop, seat, monkeypatch):
    found = seat(workshop.load("square", SQUARE), kernel(HONEST))
    one, told = found.session(), []
    monkeypatch.setattr(found.side, "unreadable_reason", lambda: "tracing is not allowed")
    tell = found.side.tell
    monkeypatch.setattr(
        found.side, "tell", lambda message, *rest: told.append(message["do"]) or tell(message, *rest)
    )
    one.fill_inputs()
    assert one.call_and_grade(SOLUTION).status is Status.PASSED
    assert torch.equal(one.fetch_outputs(SOLUTION, 0)["y"], one.drawn[0]["x"] ** 2)
    assert told == ["call"]
    one.call_again(SOLUTION, 0, 1)  # may change what was delivered
    one.fetch_outputs(SOLUTION, 0)
    assert told == ["call", "call_again", "deliver"]
    one.poison_outputs()
    one.call_side(SOLUTION)  # a call that is timed delivers nothing
    assert bool(one._placements[0][1]["y"].view(one._arenas.outputs[SOLUTION].memory).isnan().all())


@needs_compiler
def test_a_side_runs_only_while_it_is_asked(workshop, seat):
    busy = "static long count = 0; std::thread([] { for (;;) { ++count; usleep(100); } }).detach();" + HONEST
    found = seat(workshop.load("square", SQUARE), kernel(busy))
    one = found.session()
    one.fill_inputs()
    one.call_side(SOLUTION)
    tasks = os.listdir(f"/proc/{found.side.pid}/task")  # noqa: PTH208
    assert {process.read_stat(f"{found.side.pid}/task/{task}").state for task in tasks} == {"T"}
    assert found.side.ask({"do": "no_op"})  # this resumes it
    assert "T" not in {process.read_stat(f"{found.side.pid}/task/{task}").state for task in tasks}


@needs_compiler
def test_nothing_is_captured_on_the_cpu(workshop, seat):
    one = seat(workshop.load("square", SQUARE), kernel(HONEST)).session()
    assert one.capture_graphs() == {}
    assert one.graphs is False


def test_a_side_that_fails_in_a_capture_leaves_no_answer_of_the_others_behind(forged, monkeypatch):
    one, asked = forged.one, []

    class Captured(Forger):
        def answer(self, doing, *, at_once=False):
            asked.append(doing)
            return {"reason": ""}

    class Broken(Captured):
        def answer(self, doing, *, at_once=False):
            super().answer(doing)
            raise SideFailed(Status.RUNTIME_ERROR, "it does not compile", "broken")

    monkeypatch.setattr(one, "device", "cuda")
    monkeypatch.setattr(one, "fill_inputs", lambda **_: None)
    one.sides = {SOLUTION: Captured(), "broken": Broken(), "other": Captured()}
    with pytest.raises(SideFailed, match="it does not compile"):
        one.capture_graphs()
    assert asked == ["capture"] * 3
    assert one.graphs is False


@repeatable
@given(st.lists(st.integers(0, 4), max_size=4), st.lists(st.integers(0, 30), max_size=4))
def test_contiguous_is_what_pytorch_calls_so(shape, strides):
    strides = [*strides, 1, 1, 1, 1][: len(shape)]
    tensor = torch.empty(1000).as_strided(shape, strides)
    assert worker_answers._is_contiguous(list(tensor.stride()), list(tensor.shape)) == tensor.is_contiguous()
    assert worker_answers._is_contiguous(list(torch.empty(shape).stride()), shape)
    assert not worker_answers._is_contiguous([1] * (len(shape) + 1), shape)


@pytest.mark.parametrize("facts", [{"bound_to": "a graph of autograd"}, {"storage": 1 << 40}])
def test_only_a_trusted_side_may_return_tensors_that_others_hold(workshop, facts):
    definition = workshop.load("square", SQUARE).definition
    workload = definition.workloads[0]
    shape = list(definition.shape(definition.outputs["y"], workload))
    outputs = [{"type": "Tensor", "shape": shape, "dtype": "float32", "strides": [1], "address": 0, **facts}]
    worker_answers.check_outputs(definition, workload, outputs, trusted=True)
    with pytest.raises(SideFailed):
        worker_answers.check_outputs(definition, workload, outputs)


class Forger:
    """A side whose worker gives arbitrary answers."""

    trusted = False

    def __init__(self) -> None:
        self.said: dict[str, object] = {}

    def resume(self) -> None: ...

    def pause(self) -> None: ...

    def unreadable_reason(self) -> None: ...

    def tell(self, message: dict[str, object]) -> None: ...

    def answer(self, doing: str, *, at_once: bool = False) -> dict[str, object]:
        return self.said

    def ask(self, message: dict[str, object]) -> dict[str, object]:
        return {"ok": True} if message["do"] == "workload" else self.said

    def read(self, address: int, target: memoryview) -> None:
        try:
            process.read_memory(os.getpid(), address, target)
        except OSError as error:
            raise SideFailed(Status.RUNTIME_ERROR, str(error), SOLUTION) from error


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TRUE_KIND = {"type": "Tensor", "shape": [1000], "dtype": "float32", "strides": [1], "address": 0}
kinds = st.dictionaries(st.sampled_from([*TRUE_KIND]), junk, max_size=2).map(lambda other: {**TRUE_KIND, **other})
cut = st.sampled_from([*TRUE_KIND]).map(lambda key: {k: v for k, v in TRUE_KIND.items() if k != key})
answers = st.fixed_dictionaries({"outputs": junk | st.lists(kinds | cut, max_size=2)}) | st.dictionaries(
    st.text(max_size=8), junk, max_size=2
)


@pytest.fixture
def forged(workshop):
    file = workshop.load("square", SQUARE)
    arenas = allocate_arenas(file, [file.definition.workloads[0]], [], [SOLUTION], "cpu")
    side = Forger()
    one = Session(file, file.definition.workloads[0], arenas, {SOLUTION: side}, 1, "cpu", count=2)
    one.fill_inputs()
    yield SimpleNamespace(one=one, side=side)
    arenas.close()


def outcome(call):
    """Return the result of a call, or the status with which it fails."""
    try:
        return call()
    except SideFailed as failure:
        return failure.status


anything = settings(repeatable, suppress_health_check=[HealthCheck.function_scoped_fixture])


@anything
@given(answers)
def test_whatever_a_worker_answers_is_graded_or_its_failure(forged, answer):
    forged.side.said = answer
    assert isinstance(outcome(lambda: forged.one.call_and_grade(SOLUTION)), Grade | Status)


@anything
@given(answers | st.fixed_dictionaries({"reason": junk}) | st.fixed_dictionaries({"driver_error": junk}))
def test_whatever_a_worker_answers_to_a_late_call_is_said_or_its_failure(forged, answer):
    forged.side.said = answer
    forged.one.fill_inputs()
    with suppress(MachineFailed):
        found = outcome(lambda: forged.one.call_with_late_inputs(SOLUTION, captured=True))
        assert isinstance(found, str)
        assert "driver_error" not in answer


def test_a_late_call_is_graded_by_the_inputs_that_arrived(forged):
    one, forged.side.said = forged.one, {"outputs": [TRUE_KIND]}
    seen, fresh = one.drawn
    expected, asked = one.truth(1), []
    forged.side.ask = lambda message: asked.append(message) or forged.side.said
    assert one.call_with_late_inputs(SOLUTION, captured=False) == ""
    assert asked == [{"do": "call_with_late_inputs", "slot": 0, "source": 1, "captured": False}]
    assert one.drawn == [fresh, fresh]
    assert one.truth(0) is expected
    with pytest.raises(SideFailed, match="changed its input x"):  # nobody copied anything
        one._check_memory(SOLUTION, 0)
    one.write_inputs(0, seen)
    assert one.truth(0) is not expected


def test_a_late_call_that_cannot_be_made(forged):
    one, drawn = forged.one, list(forged.one.drawn)
    forged.side.said = {"reason": "RuntimeError: it waits for the device"}
    assert one.call_with_late_inputs(SOLUTION, captured=True) == "RuntimeError: it waits for the device"
    forged.side.said = {"driver_error": "no PTX here"}
    with pytest.raises(MachineFailed, match="cannot be made to arrive late: no PTX here"):
        one.call_with_late_inputs(SOLUTION, captured=True)
    assert one.drawn == drawn


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({"type": "Parameter"}, Status.INCORRECT_DTYPE),
        ({"dtype": "float16"}, Status.INCORRECT_DTYPE),
        ({"shape": [999]}, Status.INCORRECT_SHAPE),
        ({"strides": [2]}, Status.INCORRECT_SHAPE),
        ({"address": "0"}, Status.RUNTIME_ERROR),
        ({"address": 16}, Status.RUNTIME_ERROR),  # an address with no tensor
    ],
)
def test_what_a_result_must_be(forged, other, status):
    forged.side.said = {"outputs": [{**TRUE_KIND, **other}]}
    assert outcome(lambda: forged.one.call_and_grade(SOLUTION)) is status
    forged.side.said = {"outputs": [{**TRUE_KIND, **other}] * 2}
    assert outcome(lambda: forged.one.call_and_grade(SOLUTION)) is Status.INCORRECT_SHAPE


times = st.sampled_from([1e-3, 0.0, -1.0, 1, True, "1e-3", None, float("inf"), float("nan"), [1e-3]])


@anything
@given(
    st.just({}) | st.fixed_dictionaries({"seconds": times | junk}),
    st.sampled_from(["time_one_call_cold", "time_block"]),
)
def test_a_time_that_a_worker_reports_is_above_zero_or_its_failure(forged, answer, how):
    one, forged.side.said = forged.one, answer
    one.device = "cuda"  # where the worker controls the events
    found = outcome(lambda: getattr(one, how)(SOLUTION))
    one.device = "cpu"
    said = answer.get("seconds")
    possible = isinstance(said, float) and 0 < said < float("inf")
    assert (found is not Status.IMPLAUSIBLE_TIME) == possible


@anything
@given(st.dictionaries(st.just("operators"), junk | st.dictionaries(st.text(max_size=5), junk, max_size=2)))
def test_whatever_a_worker_says_of_operators_is_heard_or_its_failure(forged, answer):
    one, definition = forged.one, forged.one.file.definition
    forged.side.said = answer
    found = Probes(definition, lambda _: one, [one.workload], [], device="cpu", interpreted=False)
    assert outcome(lambda: found._record_library_calls(one)) in (None, Status.RUNTIME_ERROR, Status.LIBRARY_CALL)
