from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import session_clock
from lab_samples import GIVEN, HONEST, HONEST_SCALE, SCALE, SQUARE, kernel, workers

from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import (
    BEST,
    COMPILED,
    REFERENCE,
    RESTLESS,
    TWIN,
    Aggregate,
    Decision,
    Interval,
    Status,
    Verdict,
)
from warpsmith.core.trust import Check
from warpsmith.errors import BadDefinition, MachineLacks, Misuse
from warpsmith.lab.gate import control, judge
from warpsmith.lab.gate.calls import late_calls
from warpsmith.lab.gate.calls.late_calls import LateCalls
from warpsmith.lab.gate.calls.probes import Probes
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate.paired_timing import PairedTiming
from warpsmith.lab.machine import hardware, system
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.sides import Sides
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import Limits, Side, SideFailed

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
pytestmark = [needs_compiler, pytest.mark.usefixtures("idle")]


FAULTS = {
    "wrong": ("for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * 1.001f;", "INCORRECT_NUMERICAL"),
    "nan": ("for (int64_t i = 0; i < n; ++i) y[i] = NAN;", "INCORRECT_NUMERICAL"),
    "tail": ("for (int64_t i = 0; i < n / 8 * 8; ++i) y[i] = x[i] * x[i];", "INCORRECT_NUMERICAL"),
    "mutated": (HONEST + " const_cast<float*>(x)[n - 1] += 1;", "INPUT_MUTATED"),
    "crash": ("std::abort();", "RUNTIME_ERROR"),
    "exit": (HONEST + " _exit(0);", "RUNTIME_ERROR"),
    "constant": (
        "static float kept[1 << 22]; static int64_t had = 0; if (had != n) { had = n; "
        "for (int64_t i = 0; i < n; ++i) kept[i] = x[i] * x[i]; } for (int64_t i = 0; i < n; ++i) y[i] = kept[i];",
        "INCORRECT_NUMERICAL",
    ),
    "does not compile": ("y[0] = undeclared;", "COMPILE_ERROR"),
}


def test_where_more_is_timed_the_representative_workloads_are_named(judged):
    text = SQUARE.replace('axes={"n": 1000})', 'axes={"n": 1000}, set="full")')
    broken = kernel(FAULTS["does not compile"][0])
    assert judged(broken, text, sets=("representative", "full")).representative == ("large",)
    assert judged(broken, text).representative == ()
    assert "representative" not in judged(broken, sets=("representative", "full")).model_dump()


def test_a_correct_kernel_is_the_baseline(judged):
    found = judged(kernel(HONEST))
    assert found.decision.verdict is Verdict.ACCEPT, found.decision.reason
    notes = next(step.notes for step in found.steps if step.name == "correctness")
    assert all(note.startswith("far-") and "would take about" in note for note in notes), (
        "a busy machine may be too slow for far shapes"
    )
    assert [(step.name, step.state) for step in found.steps] == [
        ("lint", "passed"),
        ("build", "passed"),
        ("correctness", "noted" if notes else "passed"),
        ("probes", "passed"),
        ("timing", "passed"),
        ("plausibility", "passed"),
        ("conditions", "passed"),
        ("sanitizers", "skipped"),
        ("decision", "passed"),
    ]
    assert set(found.timed) == {"small", "large"}
    odd = {"odd-ones", "odd-primes", "odd-uneven", "odd-empty-n", "near-small", "near-large", "larger-large"}
    drawn = {r.workload for r in found.results} - {"small", "large", *odd}
    kinds = Counter(name.split("-")[0] for name in drawn)
    assert kinds.pop("far") == 3 - len(notes)
    assert kinds == {"edge": 1, "long": 2, "round": 8, "tiny": 3}
    assert odd < {r.workload for r in found.results}
    assert found.aggregate(REFERENCE).speedup > 0
    assert found.timed["small"].samples == 3
    calls = {r.workload: r.correctness.calls for r in found.results}
    assert calls["small"] == 2 + 2 + 3 + 3  # masks of three kinds, and timed calls are graded


def test_a_verdict_says_what_it_rests_on(judged):
    found = judged(kernel(HONEST))
    ran = {check.name: check.ran for check in found.trust}
    assert ran["edits in place"]
    assert ran["training loop"]
    assert ran["sanitizers"] is False
    assert {"files", "network", "signals", "outputs at the answer", "machine idle"} <= set(ran)
    graded = next(r.correctness for r in found.results if r.workload == "near-large")
    assert graded.reordered is not None
    assert graded.repeat == 0


def test_a_verdict_says_whether_inputs_arrived_late(judged, monkeypatch):
    said = (Check(name=late_calls.LATE_CALLS, ran=True, how="at 8 workloads, from a CUDA graph too"),)
    monkeypatch.setattr(LateCalls, "checks", said)
    assert set(said) <= set(judged(kernel(HONEST), timed=False).trust)
    monkeypatch.undo()
    assert late_calls.LATE_CALLS not in {check.name for check in judged(kernel(HONEST), timed=False).trust}


def test_results_that_are_not_the_same_twice(judged):
    body = "static int calls = 0; ++calls; " + HONEST.replace(
        "x[i] * x[i]", "x[i] * x[i] * (1 + 6e-8f * (calls % 2))"
    )
    assert judged(kernel(body)).decision.verdict is Verdict.ACCEPT
    bitwise = SQUARE.replace('name="square"', 'name="square", deterministic=True')
    assert judged(kernel(body), bitwise).status is Status.NOT_REPRODUCIBLE


def test_a_quick_check_ends_after_correctness(judged):
    found = judged(kernel(HONEST), timed=False)
    assert {step.name: step.state for step in found.steps}["timing"] == "skipped"
    assert found.correct
    assert found.timed == {}
    assert found.decision.verdict is Verdict.INVALID
    assert "only a check was asked for" in found.decision.reason


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_a_rollback_with_its_status(judged, fault):
    body, status = FAULTS[fault]
    found = judged(kernel(body))
    assert (found.status, found.decision.verdict) == (Status(status), Verdict.ROLLBACK), found.decision.reason
    assert found.decision.reason.startswith(f"{status} at ")
    assert found.steps[-1].state == "failed"
    assert found.aggregates == ()


def test_a_hang_is_killed(judged):
    found = judged(kernel("volatile bool on = true; while (on) {}"), limits=Limits(seconds=3))
    assert (found.status, found.decision.verdict) == (Status.TIMEOUT, Verdict.ROLLBACK)


@pytest.mark.parametrize("body", ["y[n] = 1;", "const_cast<float*>(x)[-1] = 1;"])
def test_writing_outside_of_given_tensors(judged, body):
    found = judged(kernel(HONEST + body), GIVEN, "given")
    assert (found.status, found.decision.verdict) == (Status.OUT_OF_BOUNDS, Verdict.ROLLBACK)


def test_given_outputs(judged):
    assert judged(kernel(HONEST), GIVEN, "given").decision.verdict is Verdict.ACCEPT
    found = judged(kernel("for (int64_t i = 1; i < n; ++i) y[i] = x[i] * x[i];"), GIVEN, "given")
    assert found.status is Status.INCORRECT_NUMERICAL
    assert found.results[-1].correctness.worst > 1


def test_elements_that_must_stay_may_hold_anything(judged):
    """The reference marks what must stay as NaN; NaN times two is NaN, as the lab's poison is."""
    half = GIVEN.replace("return x * x", "return torch.where(x > 0, x * x, torch.nan)")
    honest = "for (int64_t i = 0; i < n; ++i) if (x[i] > 0) y[i] = x[i] * x[i];"
    assert judged(kernel(honest), half, "given").decision.verdict is Verdict.ACCEPT
    scales = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] * x[i] : 2 * y[i];"
    found = judged(kernel(scales), half, "given")
    assert found.status is Status.INCORRECT_NUMERICAL
    assert "must keep their content" in found.decision.reason


def test_cheating_after_the_correctness_calls_is_caught_in_the_timed_ones(judged, monkeypatch):
    # Honest for longer than correctness and probes take at this size; then it repeats an old result.
    monkeypatch.setattr(Probes, "_edit_at_timed_sizes", lambda _: None)
    body = "static int calls = 0; static float kept[5000]; if (n != 5000 || ++calls <= 40) { " + HONEST
    body += (
        " for (int64_t i = 0; i < n && n == 5000; ++i) kept[i] = y[i]; }"
        " else for (int64_t i = 0; i < n; ++i) y[i] = kept[i];"
    )
    found = judged(kernel(body), budget=TimingBudget(rounds=45, most=45, seconds=0))
    assert found.status is Status.INCORRECT_NUMERICAL
    assert "the output of a timed call" in found.decision.reason
    assert next(step for step in found.steps if step.name == "correctness").state == "passed"


def test_reaching_for_the_grader_is_refused(judged):
    found = judged(kernel(HONEST, before='const char* name = "record.json";'))
    assert (found.status, found.decision.verdict) == (Status.REFUSED, Verdict.ROLLBACK)


def test_a_time_under_the_limit_of_the_hardware(judged, monkeypatch):
    monkeypatch.setattr(hardware, "speed_limit", lambda *_: 1.0)
    found = judged(kernel(HONEST))
    assert (found.status, found.decision.verdict) == (Status.IMPLAUSIBLE_TIME, Verdict.ROLLBACK)


@pytest.fixture
def scripted_times(monkeypatch):
    """A version that sleeps takes fifty times as long as another."""
    session_clock.use_scripted_clock(monkeypatch.setattr, lambda source: 5e-3 if "usleep" in source else 1e-4)


def test_against_the_best_version(workshop, lent, scripted_times):
    file = workshop.load("square", SQUARE)
    quick = workshop.solution(kernel(HONEST), version="v1")
    slow = workshop.solution(kernel("usleep(1);" + HONEST), version="v2")
    request = workshop.request(file, quick, best=quick, budget=TimingBudget(rounds=7, most=7, seconds=0))
    itself = judge.judge_version(request)
    assert itself.decision.verdict is Verdict.ROLLBACK, itself.decision.reason
    gain = judge.judge_version(replace(request, best=slow))
    assert gain.decision.verdict is Verdict.ACCEPT, gain.decision.reason
    assert gain.aggregate(BEST).interval.low > 1.2
    assert gain.decision.again.interval.low > 1.2
    steady = workshop.measurement(floor=0.01)
    loss = judge.judge_version(replace(request, candidate=slow, measurement=steady))
    assert loss.decision.verdict is Verdict.ROLLBACK
    assert loss.decision.again is None, "so much slower is seen at the first look"
    assert loss.correct
    assert workers(lent) == []


def test_a_gain_of_one_pair_of_processes_alone(workshop, lent, scripted_times, monkeypatch, idle):
    start = Sides.start

    def alike_from_now_on(bench, names=None):
        if names is not None and TWIN in names:
            bench._sources[SOLUTION] = bench._sources[BEST]
        start(bench, names)

    monkeypatch.setattr(Sides, "start", alike_from_now_on)
    file = workshop.load("square", SQUARE)
    quick = workshop.solution(kernel(HONEST), version="v2")
    slow = workshop.solution(kernel("usleep(1);" + HONEST), version="v1")
    found = judge.judge_version(
        workshop.request(file, quick, best=slow, budget=TimingBudget(rounds=7, most=7, seconds=0))
    )
    assert (found.decision.verdict, found.decision.ambiguous) == (Verdict.ROLLBACK, True)
    assert "not confirmed in fresh processes" in found.decision.reason
    assert found.aggregate(BEST).speedup > 2 > found.decision.again.speedup
    assert found.correct
    assert workers(lent) == []
    idle.append("other processes keep 1.5 cores busy")
    busy = judge.judge_version(
        workshop.request(file, quick, best=slow, budget=TimingBudget(rounds=7, most=7, seconds=0))
    )
    assert busy.decision.verdict is Verdict.INVALID
    assert "1.5 cores busy. Judge again when the machine is idle." in busy.decision.reason


def test_a_best_version_that_slows_down_now_and_then_is_found_out(workshop, lent, monkeypatch):
    """It is slow in the first process and fast in its twin, as one that dawdles by chance is."""
    load, seconds = Side.load, {}

    def load_side(side, *arguments, **options):
        seconds[side.pid] = 8e-4 if side.name == BEST else 2e-4
        load(side, *arguments, **options)

    def time_block(session, name, **_):
        session.call_side(name)
        return TimedBlock(seconds[session.sides[name].pid], 0.0)

    monkeypatch.setattr(Side, "load", load_side)
    monkeypatch.setattr(Session, "time_block", time_block)
    file, honest = workshop.load("square", SQUARE), workshop.solution(kernel(HONEST))
    found = judge.judge_version(workshop.request(file, honest, best=honest)).decision
    assert found.verdict is Verdict.INVALID
    assert found.reason.startswith(RESTLESS)


def test_a_confirmed_gain_says_how_far_the_best_version_is_from_itself(workshop, lent, scripted_times):
    file = workshop.load("square", SQUARE)
    quick = workshop.solution(kernel(HONEST), version="v2")
    slow = workshop.solution(kernel("usleep(1);" + HONEST), version="v1")
    found = judge.judge_version(workshop.request(file, quick, best=slow)).decision
    assert found.verdict is Verdict.ACCEPT
    assert 0 <= found.twin < 0.02


def test_no_version_can_tell_by_its_messages_that_it_is_the_best(workshop, lent, scripted_times, monkeypatch):
    """Every message that a process gets while gains are confirmed is the same for all versions."""
    messages, ask = {}, Side.ask

    def noted(side, message, *rest, **options):
        messages.setdefault((side.pid, side.name), []).append(message["do"])
        return ask(side, message, *rest, **options)

    monkeypatch.setattr(Side, "ask", noted)
    file = workshop.load("square", SQUARE)
    quick = workshop.solution(kernel(HONEST), version="v2")
    slow = workshop.solution(kernel("usleep(1);" + HONEST), version="v1")
    judge.judge_version(workshop.request(file, quick, best=slow))
    (twin,) = (said for (_, name), said in messages.items() if name == TWIN)
    assert len(twin) > 10
    for side in (SOLUTION, BEST):  # both are then timed at unseen shapes
        _, confirmed, *_ = (said for (_, name), said in messages.items() if name == side)
        assert confirmed[: len(twin)] == twin


@pytest.mark.parametrize("shown_again", [True, False])
def test_a_loss_is_seen_again_in_fresh_processes(workshop, lent, monkeypatch, shown_again):
    """The looks are scripted, because the load of the machine would decide otherwise."""
    interval = Interval(low=0.9, high=1.0)
    whole = Aggregate(against=BEST, speedup=0.95, interval=interval, worst_workload="small", worst=0.9)
    said = Decision(verdict=Verdict.ROLLBACK, reason="small -10.0%", against=BEST)
    first = ProvisionalDecision(True, said, whole, {"small": 0.9}, needs_confirmation=True)
    second = first._replace(aggregate=whole.model_copy(update={"speedup": 0.96}), regressions={})
    looks, started = [first, first if shown_again else second], []
    settle, start = PairedTiming.settle, Sides.start

    def looked(race, *arguments):
        settle(race, *arguments)
        return looks.pop(0)

    def noted(bench, names=None):
        start(bench, names)
        started.append(bench.running[SOLUTION].pid)

    monkeypatch.setattr(PairedTiming, "settle", looked)
    monkeypatch.setattr(Sides, "start", noted)
    file, honest = workshop.load("square", SQUARE), workshop.solution(kernel(HONEST))
    found = judge.judge_version(workshop.request(file, honest, best=honest)).decision
    assert (found.verdict, found.ambiguous) == (Verdict.ROLLBACK, not shown_again)
    assert found.again.speedup == (0.95 if shown_again else 0.96)
    assert len(set(started)) == 2
    assert workers(lent) == []


def test_energy_decides_where_it_is_the_objective(workshop, lent, monkeypatch):
    weighed = []

    def weigh(race, workload, opened):
        sides = list(opened(workload).sides)
        weighed.append((workload.name, sides))
        for side in sides:
            race.samples[workload.name].joules[side] += [1.5 if side == BEST else 1.0] * 6

    file = workshop.load("square", f"{SQUARE}peers = {{'like': reference}}\n")
    honest = workshop.solution(kernel(HONEST))
    request = workshop.request(file, honest, best=honest, peers=("like",), objective="energy")
    anything = Thresholds(regression=0.99)  # the load of this machine causes no loss
    request = replace(request, thresholds=anything, measurement=workshop.measurement(floor=0.99))
    with pytest.raises(MachineLacks, match="no energy counter to read: no GPU"):
        judge.judge_version(request)
    assert judge.judge_version(replace(request, timed=False)).correct
    monkeypatch.setattr(judge.energy, "missing_energy_counter", lambda target: None)
    monkeypatch.setattr(PairedTiming, "read_energy", weigh)
    monkeypatch.setattr(judge.unseen, "describe_large_loss", lambda _: "")  # nor does it at drawn shapes
    found = judge.judge_version(request)
    assert found.decision.verdict is Verdict.ACCEPT, found.decision.reason
    assert found.decision.reason.startswith("+50.0% [+50.0%, +50.0%] over the best version in joules a call")
    assert found.gain.speedup == found.decision.again.speedup == pytest.approx(1.5)
    assert found.energy.workloads["large"].best_joules == 1.5
    assert weighed == [(name, [SOLUTION, BEST]) for name in ("small", "large")] * 2
    assert workers(lent) == []


@pytest.mark.parametrize("body", ["std::abort();", "#error no longer"])
def test_a_best_version_that_fails_is_not_the_candidates_fault(judged, workshop, body):
    best = workshop.solution(kernel("\n" + body + "\n"), version="v0")
    found = judged(kernel(HONEST), best=best)
    assert found.decision.verdict is Verdict.INVALID
    assert "best" in found.decision.reason


@pytest.mark.parametrize("fault", ["raise RuntimeError('not here')", "os.abort()", "time.sleep(60)"])
def test_a_reference_that_fails_in_its_worker(judged, monkeypatch, fault):
    monkeypatch.setenv("IN_THE_GRADER", "1")  # workers do not get it
    text = SQUARE.replace(
        "    return x * x", f"    if 'IN_THE_GRADER' not in os.environ: {fault}\n    return x * x"
    )
    found = judged(kernel(HONEST), text, limits=Limits(seconds=4))
    assert found.decision.verdict is Verdict.INVALID
    assert found.decision.reason.startswith("reference: ")
    assert found.results == ()


def test_a_reference_that_misses_its_own_bound_blames_the_definition(judged):
    found = judged(kernel(HONEST), SQUARE.replace("return x * x", "return (x + 1e4) - 1e4"))
    assert found.decision.verdict is Verdict.INVALID
    assert "the tolerance of the definition is wrong" in found.decision.reason


def test_a_wrong_reference_is_the_users_error(judged):
    with pytest.raises(BadDefinition, match="returns `y` as float16"):
        judged(kernel(HONEST), SQUARE.replace("return x * x", "return (x * x).half()"))


def test_a_peer_that_prepares_weights_is_for_races(judged):
    text = SCALE + "from warpsmith import Peer\npeers = {'packs': Peer(reference, prepare=lambda w: (w,))}\n"
    with pytest.raises(Misuse, match=r"The peer packs prepares w; .*`warpsmith race"):
        judged(kernel(HONEST_SCALE, weight=True), text, "scale", peers=("packs",))


def test_a_peer_that_writes_over_inputs_is_for_races(judged):
    text = f"{SQUARE}from warpsmith import Peer\npeers = {{'adds': Peer(reference, consumes=('x',))}}\n"
    with pytest.raises(Misuse, match=r"The peer adds writes over x; .*`warpsmith race"):
        judged(kernel(HONEST), text, peers=("adds",))


COMPILES_NOT = """
if "IN_THE_GRADER" not in os.environ:
    def compiles_not(function, **_):
        def run(x):
            if len(x) in SIZES:
                FAULT
            return function(x)
        return run
    torch.compile = compiles_not
"""


@pytest.mark.parametrize(
    ("sizes", "fault", "why"),
    [
        ((1000, 5000), "raise TypeError('list indices')", "small: TypeError: list indices"),
        ((5000,), "raise TypeError('list indices')", "large: TypeError: list indices"),
        ((5000,), "os.abort()", "large: the worker was killed by SIGABRT"),
    ],
)
def test_a_reference_that_cannot_be_compiled_is_raced_without_that(judged, monkeypatch, sizes, fault, why):
    monkeypatch.setenv("IN_THE_GRADER", "1")
    text = (
        SQUARE
        + COMPILES_NOT.replace("SIZES", str(sizes)).replace("FAULT", fault)
        + "peers = {'fine': reference}\n"
    )
    told = []
    found = judged(kernel(HONEST), text, peers=(COMPILED, "fine"), tell=told.append)
    assert found.decision.verdict is Verdict.ACCEPT, found.decision.reason
    assert list(found.absent) == [COMPILED]
    assert found.absent[COMPILED].startswith(why)
    assert {mean.against for mean in found.aggregates} == {REFERENCE, "fine"}
    for timing in found.timed.values():
        assert {one.against for one in timing.comparisons} == {REFERENCE, "fine"}
        assert timing.samples == 3
    assert f"{COMPILED} is left out: {found.absent[COMPILED]}" in told


def test_a_peer_that_cannot_be_loaded_is_left_out(judged, monkeypatch):
    monkeypatch.setenv("IN_THE_GRADER", "1")
    text = f"{SQUARE}peers = {{'here': reference}} if 'IN_THE_GRADER' in os.environ else {{}}\n"
    found = judged(kernel(HONEST), text, peers=("here",))
    assert found.decision.verdict is Verdict.ACCEPT, found.decision.reason
    assert found.absent == {"here": "KeyError: 'here'"}
    assert set(found.timed) == {"small", "large"}


def test_a_reference_that_fails_beside_a_peer_is_still_the_machines_fault(judged, monkeypatch):
    monkeypatch.setenv("IN_THE_GRADER", "1")
    text = SQUARE.replace(
        "    return x", "    if 'IN_THE_GRADER' not in os.environ: raise OSError('no')\n    return x"
    )
    found = judged(kernel(HONEST), text + "peers = {'fine': torch.square}\n", peers=("fine",))
    assert found.decision.verdict is Verdict.INVALID
    assert found.decision.reason == "reference: OSError: no"


def test_what_fails_beside_a_version_alone_is_its_fault(judged, monkeypatch):
    def fail(timing, workload, open_session):
        raise SideFailed(Status.OUT_OF_MEMORY, "no memory is left", REFERENCE)

    monkeypatch.setattr(PairedTiming, "time_workload", fail)
    found = judged(kernel(HONEST))
    assert (found.decision.verdict, found.status) == (Verdict.ROLLBACK, Status.RUNTIME_ERROR)
    assert "reference: no memory is left" in found.decision.reason

    monkeypatch.setattr(control, "control_failure", lambda request, host, device: "no memory is left")
    assert judged(kernel(HONEST)).decision.verdict is Verdict.INVALID


def test_a_best_version_may_starve_the_reference(judged, workshop, monkeypatch):
    genuine = PairedTiming.time_workload

    def fail(timing, workload, open_session):
        if BEST in (session := open_session(workload)).sides:
            raise SideFailed(Status.OUT_OF_MEMORY, "no memory is left", REFERENCE)
        genuine(timing, workload, lambda _: session)

    monkeypatch.setattr(PairedTiming, "time_workload", fail)
    found = judged(kernel(HONEST), best=workshop.solution(kernel(HONEST), version="v0"))
    assert found.decision.verdict is Verdict.INVALID


def test_a_best_version_may_fail_by_itself(judged, workshop, monkeypatch):
    def fail(timing, workload, open_session):
        raise SideFailed(Status.RUNTIME_ERROR, "exited", BEST)

    monkeypatch.setattr(PairedTiming, "time_workload", fail)
    found = judged(kernel(HONEST), best=workshop.solution(kernel(HONEST), version="v0"))
    assert found.decision.verdict is Verdict.INVALID


def test_a_failure_that_passes_is_not_the_versions_fault(judged, monkeypatch):
    genuine, failures = PairedTiming.time_workload, [SideFailed(Status.RUNTIME_ERROR, "killed", REFERENCE)]

    def fail_once(timing, workload, open_session):
        if failures:
            raise failures.pop()
        genuine(timing, workload, open_session)

    monkeypatch.setattr(PairedTiming, "time_workload", fail_once)
    assert judged(kernel(HONEST)).decision.verdict is Verdict.ACCEPT
    assert not failures
