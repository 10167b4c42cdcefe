"""The contest: each side checked and timed, one that is wrong, fails or is missing named, the others going on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from lab_samples import HONEST, SQUARE, kernel

from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.errors import MachineFailed, MachineLacks, Misuse, SolutionFailed
from warpsmith.lab import contest, energy, machine, timing
from warpsmith.lab.contest import _Contest
from warpsmith.lab.correctness import Grade
from warpsmith.lab.session import SOLUTION
from warpsmith.lab.side import Failed

needs_compiler = pytest.mark.skipif(machine.compiler() is None, reason="no C++ compiler")

PEERS = (
    SQUARE
    + """
def right(x):
    return x ** 2
def wrong(x):
    return x * x + 1e-3
def picky(x):
    if x.shape[0] > 2000:
        raise ValueError("too long for it")
    return x * x
def dies(x):
    os._exit(3)
def absent(x):
    raise ImportError("squares are not installed: pip install squares")
def in_place(x):
    return x.mul_(x)
peers = dict(right=right, wrong=wrong, picky=picky, dies=dies, absent=absent, in_place=in_place)
"""
)


@pytest.fixture
def asked(workshop):
    """`asked(*peers, source=...)`: a request to race a C++ version of `square`."""

    def make(*peers, source=HONEST, text=PEERS):
        file = workshop.load("square", text)
        return workshop.request(file, workshop.solution(kernel(source)), peers=peers)

    return make


@needs_compiler
def test_every_side_is_checked_and_those_that_are_right_are_timed(asked, host):
    record = contest.hold(asked("right", "wrong", "picky", "dies", "absent", "in_place"), host=host)
    small, large = record.results
    statuses = {side.side: side.status for side in small.sides}
    assert statuses == {
        SOLUTION: Status.PASSED,
        REFERENCE: Status.PASSED,
        "right": Status.PASSED,
        "wrong": Status.INCORRECT_NUMERICAL,
        "picky": Status.PASSED,
        "dies": Status.RUNTIME_ERROR,
        "in_place": Status.INPUT_MUTATED,
    }
    assert {c.against for c in small.eager.comparisons} == {REFERENCE, "right", "picky"}
    assert {c.against for c in large.eager.comparisons} == {REFERENCE, "right"}
    messages = {side.side: side.message for side in large.sides}
    assert "too long for it" in messages["picky"]
    assert "exited with code 3" in messages["dies"]
    assert messages["wrong"]
    assert record.absent == {"absent": "squares are not installed: pip install squares"}
    assert [mean.against for mean in record.aggregates["eager"]] == [REFERENCE, "right"]
    assert (small.graph, small.eager.clock, record.solution) == (None, "parent", "cpp/v1")
    assert all(side.correctness.calls == 2 for side in small.sides if side.status is Status.PASSED)


@needs_compiler
def test_one_workload_alone(asked, host):
    record = contest.hold(asked("right"), ["large"], host=host)
    assert [result.workload for result in record.results] == ["large"]


@needs_compiler
def test_a_version_that_is_wrong_ends_the_race(asked, host):
    with pytest.raises(SolutionFailed, match=r"v1.cpp failed in the race: INCORRECT_NUMERICAL"):
        contest.hold(asked("right", source="for (int64_t i = 0; i < n; ++i) y[i] = x[i];"), host=host)


@needs_compiler
def test_a_reference_that_fails_is_the_machines_failure(asked, host):
    text = PEERS.replace("def reference(x):", "def reference(x):\n    if x.dtype == torch.float32: 1 / 0")
    with pytest.raises(MachineFailed, match="The reference failed in the race: ZeroDivisionError"):
        contest.hold(asked("right", text=text), host=host)


def test_what_is_not_there_is_misuse(asked):
    with pytest.raises(Misuse, match=r"square has no peer nope; it has: torch.compile, right"):
        contest.hold(asked("nope"), ["large"])
    with pytest.raises(Misuse, match="No timed workload is named huge; there are: small, large"):
        contest.hold(asked("right"), ["huge"])


def test_a_language_that_only_interprets_is_not_raced(asked, workshop):
    request = asked("right")
    triton = workshop.request(request.file, workshop.solution("", "triton"))
    with pytest.raises(MachineLacks):
        contest.hold(triton)


def test_all_peers_where_none_is_named(asked):
    assert contest.sides(asked()) == (
        REFERENCE, "torch.compile", "right", "wrong", "picky", "dies", "absent", "in_place"
    )  # fmt: skip
    assert contest.sides(asked("right")) == (REFERENCE, "right")


class Opened:
    """A session on a GPU whose sides take the times that they are told; one cannot be captured, one is wrong."""

    def __init__(self, names, wrong=""):
        self.sides, self.slots, self.workload = dict.fromkeys(names), 8, SimpleNamespace(name="small")
        self.wrong, self.asked = wrong, []

    def fill(self, *, quick):
        assert quick

    def order(self):
        return list(self.sides)

    def timed(self, name):
        self.asked.append(name)

    def pick(self):
        return 0

    def truth(self, slot):
        return None

    def graded(self, name, slot, truth):
        status = Status.INCORRECT_NUMERICAL if name == self.wrong else Status.PASSED
        return Grade(status, 0.1, 0.0, detail="off")

    def capture(self):
        self.asked.append("capture")
        return {}


@pytest.fixture
def gpu(asked, monkeypatch):
    """`gpu(eager=..., wrong=...)`: a race on a scripted GPU of `small`, its graph timing, and the sessions."""
    seconds = {SOLUTION: 1e-4, REFERENCE: 3e-4, "right": 2e-4, "wrong": 4e-4}

    def make(eager=None, wrong=""):
        request = asked("right", "wrong")
        one = _Contest(request, request.file.definition.workloads[:1])
        opened, refused = [], dict(eager or {})

        def run(session, samples, budget, gauge, *, graphs):
            assert graphs
            samples.slots = session.slots
            samples.eager |= {name: why for name, why in refused.items() if name in session.sides}
            for name in session.sides:
                samples.seconds[name] += [seconds[name] * wobble for wobble in (0.99, 1.0, 1.01)]

        def start(workload, names):
            opened.append(Opened(names, wrong))
            return opened[-1]

        monkeypatch.setattr(timing, "run", run)
        monkeypatch.setattr(timing, "summarise", lambda samples, roofline, device: samples)
        monkeypatch.setattr(energy, "a_call", lambda session, name, seconds, gauge: 500 * seconds)
        monkeypatch.setattr(one, "_open", start)
        one.device, one.bench = "cuda", SimpleNamespace(sides={})
        one.gauge = SimpleNamespace(joules=lambda: 1.0)
        for name in seconds:
            one._keep(name, [Grade(Status.PASSED, 0.1, 0.0)])
        return one, one._time(one.workloads[0], list(seconds), "graph"), opened

    return make


def test_graphs_are_timed_with_the_sides_that_can_be_captured(gpu):
    one, samples, opened = gpu(eager={"right": "it waits for the device"})
    assert set(samples.seconds) == {SOLUTION, REFERENCE, "wrong"}
    assert one.found["right"].uncaptured == "it waits for the device"
    assert one.found["right"].status is Status.PASSED
    assert one.found["right"].joules is None
    assert one.found[REFERENCE].joules == pytest.approx(0.15)
    assert opened[-1].asked == [REFERENCE, "wrong", "capture"]
    assert len(opened) == 2


def test_a_version_that_is_no_graph_has_only_eager_times(gpu):
    one, samples, _ = gpu(eager={SOLUTION: "it allocates"})
    assert samples is None
    assert one.notes == ["small: the version is no CUDA graph: it allocates"]


def test_a_peer_whose_timed_result_is_wrong_leaves_the_race(gpu):
    one, samples, opened = gpu(wrong="wrong")
    assert set(samples.seconds) == {SOLUTION, REFERENCE, "right"}
    assert (one.found["wrong"].status, one.found["wrong"].message) == (
        Status.INCORRECT_NUMERICAL,
        "the output of a timed call: off",
    )
    assert len(opened) == 2


def test_a_failure_names_its_side():
    with pytest.raises(Failed) as caught, _Contest._blame(SimpleNamespace(), "right"):
        raise Failed(Status.TIMEOUT, "late")
    assert caught.value.side == "right"
