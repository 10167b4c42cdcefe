"""Races: each side is checked and timed; one that is wrong, fails or is missing is named, and the others go on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lab_samples import HONEST, SQUARE, kernel

from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.core.race import NEAR, RaceRecord
from warpsmith.errors import MachineFailed, MachineLacks, Misuse, SolutionFailed
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import system
from warpsmith.lab.operator import peers
from warpsmith.lab.race import peer_race, race_energy
from warpsmith.lab.race.peer_race import PeerRace
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import SideFailed

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

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
def rounds(x):
    return x * x * (1 + 37 * 2 ** -24)  # the bound is 35 roundoffs, near are 39
def twice(x):
    return x * x * 2
from warpsmith.lab.peers import Peer
def halved(inputs, outputs):
    return {"y": outputs["y"] / 2}
consuming = Peer(in_place, consumes=("x",), differs="squares in place")
peers = dict(right=right, wrong=wrong, picky=picky, dies=dies, absent=absent, in_place=in_place, rounds=rounds,
             consuming=consuming, twice=Peer(twice, canonical=halved))
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
def test_a_race_that_is_ended_keeps_the_workloads_before(asked, host):
    kept: list[RaceRecord] = []
    whole = peer_race.run_race(asked("right"), host=host, keep=kept.append)
    assert [(len(record.results), record.unraced) for record in kept] == [(1, ("large",))]
    assert kept[0].aggregates["eager"]
    assert whole.unraced == ()
    assert whole.results[0] == kept[0].results[0]


@needs_compiler
def test_every_side_is_checked_and_those_that_are_right_are_timed(asked, host):
    record = peer_race.run_race(asked("right", "wrong", "picky", "dies", "absent", "in_place"), host=host)
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
    assert all(side.correctness.calls > 2 for side in large.sides if side.timed)  # the timed ones too


@needs_compiler
def test_a_reference_that_returns_a_view_is_raced_and_a_peer_is_told_of_its_layout(asked, host):
    text = (
        PEERS + "def reference(x):\n    return (x * x).repeat_interleave(2)[::2]\npeers['strided'] = reference\n"
    )
    (result,) = peer_race.run_race(asked("right", "strided", text=text), ["small"], host=host).results
    assert {side.side: side.status for side in result.sides} == {
        SOLUTION: Status.PASSED, REFERENCE: Status.PASSED, "right": Status.PASSED,
        "strided": Status.INCORRECT_SHAPE,
    }  # fmt: skip
    assert result.sides[-1].message == "y has the strides [2]: not contiguous"
    assert {c.against for c in result.eager.comparisons} == {REFERENCE, "right"}


def test_torch_compile_and_the_reference_give_contiguous_results_whatever_was_returned():
    view, whole = torch.zeros(3, 2).t(), torch.zeros(2, 3)
    first, second, third = peers.with_contiguous_results(lambda: (view, whole, None))()
    assert first.is_contiguous()
    assert (second is whole, third) == (True, None)
    assert peers.with_contiguous_results(lambda: view)().is_contiguous()


@needs_compiler
def test_peers_may_be_near_consume_what_they_say_and_have_a_canonical_form(asked, host):
    record = peer_race.run_race(asked("rounds", "consuming", "twice"), ["small"], host=host)
    (result,) = record.results
    sides = {side.side: side for side in result.sides}
    assert {name: side.status for name, side in sides.items()} == {
        SOLUTION: Status.PASSED, REFERENCE: Status.PASSED, "rounds": NEAR, "consuming": Status.PASSED,
        "twice": Status.PASSED,
    }  # fmt: skip
    assert {c.against for c in result.eager.comparisons} == {REFERENCE, "rounds", "consuming", "twice"}
    assert sides["rounds"].correctness.worst == pytest.approx(37 / 35, rel=0.03)
    assert sides["rounds"].message.startswith("y[")
    assert {name: side.differs for name, side in sides.items() if side.differs} == {
        "consuming": "squares in place"
    }
    assert [mean.against for mean in record.aggregates["eager"]] == [REFERENCE, "rounds", "consuming", "twice"]
    assert (record.near("rounds"), record.near("twice")) == (True, False)
    assert RaceRecord.model_validate_json(record.model_dump_json()) == record


@needs_compiler
def test_our_own_version_is_never_near(asked, host):
    with pytest.raises(SolutionFailed, match=r"INCORRECT_NUMERICAL: y\["):
        peer_race.run_race(
            asked("right", source=HONEST.replace("x[i];", "x[i] * (1 + 37 / 16777216.0);")), host=host
        )


@needs_compiler
def test_one_workload_alone(asked, host):
    record = peer_race.run_race(asked("right"), ["large"], host=host)
    assert [result.workload for result in record.results] == ["large"]


@needs_compiler
def test_a_version_that_is_wrong_ends_the_race(asked, host):
    with pytest.raises(SolutionFailed, match=r"v1.cpp failed in the race: INCORRECT_NUMERICAL"):
        peer_race.run_race(asked("right", source="for (int64_t i = 0; i < n; ++i) y[i] = x[i];"), host=host)


@needs_compiler
def test_a_reference_that_fails_is_the_machines_failure(asked, host):
    text = PEERS.replace("def reference(x):", "def reference(x):\n    if x.dtype == torch.float32: 1 / 0")
    with pytest.raises(MachineFailed, match="The reference failed in the race: ZeroDivisionError"):
        peer_race.run_race(asked("right", text=text), host=host)


def test_what_is_not_there_is_misuse(asked):
    with pytest.raises(Misuse, match=r"no peer nope; it has: torch.compile, right"):
        peer_race.run_race(asked("nope"), ["large"])
    with pytest.raises(Misuse, match="named huge; there are: small, large"):
        peer_race.run_race(asked("right"), ["huge"])


def test_a_language_that_only_interprets_is_not_raced(asked, workshop):
    request = asked("right")
    triton = workshop.request(request.file, workshop.solution("", "triton"))
    with pytest.raises(MachineLacks):
        peer_race.run_race(triton)


def test_all_peers_where_none_is_named(asked):
    assert peer_race.list_race_sides(asked()) == (
        REFERENCE, "torch.compile", "right", "wrong", "picky", "dies", "absent", "in_place", "rounds", "consuming",
        "twice",
    )  # fmt: skip
    assert peer_race.list_race_sides(asked("right")) == (REFERENCE, "right")


class Opened:
    """A session on a GPU with scripted times; one side cannot be captured, one is wrong."""

    def __init__(self, names, wrong="", near=""):
        self.sides, self.slots, self.workload = dict.fromkeys(names), 8, SimpleNamespace(name="small")
        self.wrong, self.near, self.asked = wrong, near, []

    def fill_inputs(self, *, quick):
        assert quick

    def shuffled_sides(self):
        return list(self.sides)

    def host_seconds(self, name):
        return 9e-6 if name == SOLUTION else None

    def time_block(self, name):
        self.asked.append(name)

    def pick_slot(self):
        return 0

    def grade_with_near(self, name, slot):
        if name not in (self.wrong, self.near):
            return Grade(Status.PASSED, 0.1, 0.0), False
        return Grade(Status.INCORRECT_NUMERICAL, 1.5, 0.0, detail="off"), name == self.near

    def capture_graphs(self):
        self.asked.append("capture")
        return {}


@pytest.fixture
def gpu(asked, monkeypatch):
    """`gpu(eager=..., wrong=..., near=...)`: a race on a scripted GPU, its graph timing, and the sessions."""
    seconds = {SOLUTION: 1e-4, REFERENCE: 3e-4, "right": 2e-4, "wrong": 4e-4}

    def make(eager=None, wrong="", near=""):
        request = asked("right", "wrong")
        one = PeerRace(request, request.file.definition.workloads[:1])
        opened, refused = [], dict(eager or {})

        def run(session, samples, budget, gauge, *, graphs):
            samples.slots = session.slots
            if graphs:
                samples.eager |= {name: why for name, why in refused.items() if name in session.sides}
            for name in session.sides:
                samples.seconds[name] += [seconds[name] * wobble for wobble in (0.99, 1.0, 1.01)]

        def start(workload, names):
            opened.append(Opened(names, wrong, near))
            return opened[-1]

        monkeypatch.setattr(timing, "time_rounds", run)
        monkeypatch.setattr(timing, "summarize_samples", lambda samples, roofline, device: samples)

        def weigh(session, name, seconds, gauge, mode):
            one.weighed.append((name, mode))
            return None if name == "wrong" else 500 * seconds

        def check(workload, name):
            one._add_grade(name, Grade(Status.PASSED, 0.1, 0.0), near=False)

        monkeypatch.setattr(race_energy, "joules_per_call", weigh)
        monkeypatch.setattr(peer_race, "RaceResult", lambda **parts: SimpleNamespace(**parts))
        monkeypatch.setattr(one, "_open_session", start)
        monkeypatch.setattr(one, "_check_side", check)
        one.device, one.sides, one.weighed = "cuda", SimpleNamespace(running={}), []
        one.gauge = SimpleNamespace(joules=lambda: 1.0)
        return one, one._race_workload(one.workloads[0]).graph, opened

    return make


def test_graphs_are_timed_with_the_sides_that_can_be_captured(gpu):
    one, samples, opened = gpu(eager={"right": "it waits for the device"})
    assert set(samples.seconds) == {SOLUTION, REFERENCE, "wrong"}
    assert one.results["right"].uncaptured == "it waits for the device"
    assert (one.results[SOLUTION].host_seconds, one.results["right"].host_seconds) == (9e-6, None)
    assert one.results["right"].status is Status.PASSED
    assert (one.results["right"].joules, one.results["right"].joules_mode) == (pytest.approx(0.1), "eager")
    assert (one.results[REFERENCE].joules, one.results[REFERENCE].joules_mode) == (pytest.approx(0.15), "graph")
    assert one.weighed == [*((name, "graph") for name in (SOLUTION, REFERENCE, "wrong")), ("right", "eager")]
    assert [list(one.sides) for one in opened] == [
        [SOLUTION, REFERENCE, "right", "wrong"],  # eager
        [SOLUTION, REFERENCE, "right", "wrong"],  # graphs, in vain
        [SOLUTION, REFERENCE, "wrong"],
        ["right"],  # its energy
    ]
    assert opened[2].asked == [REFERENCE, "wrong", "capture"]


def test_a_version_that_is_no_graph_has_only_eager_times(gpu):
    one, samples, _ = gpu(eager={SOLUTION: "it allocates"})
    assert samples is None
    assert one.notes == ["small: the version is no CUDA graph: it allocates"]
    assert {mode for _, mode in one.weighed} == {"eager"}
    assert one.results[SOLUTION].joules_mode == "eager"
    assert (one.results["wrong"].joules, one.results["wrong"].joules_mode) == (None, None)


def test_a_peer_whose_timed_result_is_wrong_leaves_the_race(gpu):
    one, samples, opened = gpu(wrong="wrong")
    assert set(samples.seconds) == {SOLUTION, REFERENCE, "right"}
    assert not one.results["wrong"].timed
    assert (one.results["wrong"].status, one.results["wrong"].message) == (
        Status.INCORRECT_NUMERICAL,
        "the output of a timed call: off",
    )
    eager, again, graph = ("wrong" in one.sides for one in opened)
    assert (eager, again, graph) == (True, False, False)


def test_a_peer_whose_timed_result_is_near_stays_and_is_marked(gpu):
    one, samples, _ = gpu(near="right")
    assert "right" in samples.seconds
    side = one.results["right"]
    assert (side.status, side.message) == (NEAR, "the output of a timed call: off")
    assert (side.correctness.worst, side.correctness.calls) == (1.5, 3)
    assert side.joules_mode == "graph"


def test_a_failure_names_its_side():
    with pytest.raises(SideFailed) as caught, PeerRace._attribute_failures(SimpleNamespace(), "right"):
        raise SideFailed(Status.TIMEOUT, "late")
    assert caught.value.side == "right"
