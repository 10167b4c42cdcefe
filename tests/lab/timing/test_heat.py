"""Race sessions: consumed inputs are restored for the next side, and open results are compared in one form."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import torch
from lab_samples import SCALE

from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.operator import peers
from warpsmith.lab.race.race_session import RaceSession
from warpsmith.lab.timing import session
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.workers.side import Limits, SideFailed

PEERS = (
    SCALE
    + """
from warpsmith.lab.peers import Peer
def in_place(x, w):
    return x.mul_(w)
def both(x, w):
    x.mul_(w)
    w.add_(1)
    return x.clone()
def reversed_(x, w):
    return (x * w).flip(0)
def back(inputs, outputs):
    assert sorted(inputs) == ["w", "x"]
    return {"y": outputs["y"].flip(0)}
def reverse(w):
    return (w.flip(0),)
def with_reversed(x, reversed_w):
    return x * reversed_w.flip(0)
def ahead(x):
    return (x,)
def fails(inputs, outputs):
    raise ValueError("not one of ours")
peers = dict(
    in_place=Peer(in_place, consumes=("x",)), both=Peer(both, consumes=("x",)), undeclared=in_place,
    flipped=Peer(reversed_, canonical=back), plain=reversed_, broken=Peer(reversed_, canonical=fails),
    strange=Peer(in_place, consumes=("z",)), packed=Peer(with_reversed, prepare=reverse),
    ahead=Peer(in_place, prepare=ahead),
)
"""
)


@pytest.fixture
def race_session(workshop, host):
    """`race_session(*sides)`: a filled session of these peers of `scale`, with two slots."""
    with ExitStack() as stack:

        def make(*names):
            file = workshop.load("scale", PEERS)
            workload = file.definition.workloads[0]
            arenas = allocate_arenas(file, [workload], [], names, "cpu")
            sources = {name: SideSource((file.path, name), limits=Limits(seconds=30)) for name in names}
            bench = stack.enter_context(Sides(file, host, arenas, sources, "cpu"))
            bench.start()
            made = RaceSession(file, workload, arenas, bench.running, 7, "cpu", count=2)
            made.fill_inputs()
            return made

        yield make


def test_a_consuming_peer_is_right_on_fresh_inputs_and_leaves_them_to_the_next(race_session):
    opened = race_session("in_place", "reference")
    for name in ("in_place", "reference", "in_place", "in_place", "reference"):
        opened.call_side(name, 1)
        assert opened.grade_with_near(name, 1)[0].status is Status.PASSED, name
    opened.call_side("in_place", 0)  # not fetched: its consumed inputs are restored when the next side is called
    assert not torch.equal(held(opened, 0), opened.drawn[0]["x"])
    opened.time_block("reference")
    assert torch.equal(held(opened, 0), opened.drawn[0]["x"])
    assert opened.grade_with_near("reference", 0)[0].status is Status.PASSED


def held(opened: RaceSession, slot: int) -> torch.Tensor:
    """Return the content of the memory of a slot's x."""
    return opened._placements[slot][0]["x"].view(opened._arenas.inputs.memory)


@pytest.mark.parametrize(("name", "changed"), [("undeclared", "x"), ("both", "w")])
def test_what_is_not_declared_may_not_change(race_session, name, changed):
    opened = race_session(name)
    opened.call_side(name)
    with pytest.raises(SideFailed, match=f"{name} changed its input {changed}") as caught:
        opened.grade_with_near(name, 0)
    assert caught.value.status is Status.INPUT_MUTATED


def test_an_open_result_is_compared_in_canonical_form(race_session):
    opened = race_session("flipped", "plain")
    for name, status in (("flipped", Status.PASSED), ("plain", Status.INCORRECT_NUMERICAL)):
        opened.call_side(name)
        grade, near = opened.grade_with_near(name, 0)
        assert (grade.status, near) == (status, False)


def test_a_result_without_a_canonical_form_is_the_peers_failure(race_session):
    opened = race_session("broken")
    opened.call_side("broken")
    with pytest.raises(SideFailed, match="no canonical form: ValueError: not one of ours") as caught:
        opened.grade_with_near("broken", 0)
    assert caught.value.side == "broken"


def test_a_peer_consumes_what_the_operator_has(workshop):
    file = workshop.load("scale", PEERS)
    with pytest.raises(BadDefinition, match="the peer strange consumes z"):
        peers.get_peer(file, "strange")
    assert peers.get_peer(file, "undeclared").consumes == ()
    assert peers.get_peer(file, "torch.compile").canonical is None


def test_after_a_capture_everything_that_is_consumed_is_renewed(race_session, monkeypatch):
    opened = race_session("in_place", "reference")
    monkeypatch.setattr(session.Session, "capture_graphs", lambda self: {})
    opened.capture_graphs()
    held(opened, 0).zero_()
    opened.call_side("reference", 0)
    assert torch.equal(held(opened, 0), opened.drawn[0]["x"])


def test_calls_launched_back_to_back_always_have_the_next_block_waiting():
    told: list[object] = []
    side = SimpleNamespace(
        resume=lambda: told.append("go on"),
        tell=lambda message: told.append((message["graph"], message["slots"])),
        answer=lambda doing: told.append(doing),
        pause=lambda: told.append("stop"),
    )
    opened, left = object.__new__(RaceSession), [True, True, False]
    opened.sides, opened.slots = {"in_place": side}, 2
    opened._peers, opened._consumed = {"in_place": peers.Peer(print, consumes=("x",))}, set()
    opened.launch_blocks("in_place", lambda: left.pop(0))
    block = (False, [0, 1])
    assert told == ["go on", block, block, "block", block, "block", "block", "stop"]
    assert opened._consumed == {(0, "x"), (1, "x")}


def test_prepared_weights_follow_every_draw(race_session):
    opened = race_session("packed", "reference")
    for _ in range(2):
        for slot in (1, 0):
            opened.call_side("packed", slot)
            assert opened.grade_with_near("packed", slot)[0].status is Status.PASSED
        opened.fill_inputs()


def test_prepared_weights_stay_where_a_captured_call_reads_them(workshop):
    peer = peers.get_peer(workshop.load("scale", PEERS), "packed")
    made = peers.PreparedWeights(peer, ("x", "w"))
    x, w = torch.ones(3), torch.arange(3.0)
    first = [made.arguments_of_run(slot, (x, w)) for slot in (0, 1)]
    w.add_(1)
    again = made.arguments_of_run(0, (x, w))
    assert [one.data_ptr() for one in again] == [one.data_ptr() for one in first[0]]
    assert torch.equal(again[1], torch.tensor([3.0, 2.0, 1.0]))
    assert torch.equal(first[1][1], torch.tensor([2.0, 1.0, 0.0]))


def test_only_weights_may_be_prepared(workshop):
    with pytest.raises(BadDefinition, match=r'the peer ahead prepares x; only .*`role="weight"`.*: w'):
        peers.get_peer(workshop.load("scale", PEERS), "ahead")
