"""A heat: what peers consume is renewed for whoever is called next, and what is open is compared in one form."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import torch
from lab_samples import SCALE

from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.operator import peers
from warpsmith.lab.timing import session
from warpsmith.lab.timing.bench import Bench, Source
from warpsmith.lab.timing.heat import Heat
from warpsmith.lab.workers.side import Failed, Limits

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
def fails(inputs, outputs):
    raise ValueError("not one of ours")
peers = dict(
    in_place=Peer(in_place, consumes=("x",)), both=Peer(both, consumes=("x",)), undeclared=in_place,
    flipped=Peer(reversed_, canonical=back), plain=reversed_, broken=Peer(reversed_, canonical=fails),
    strange=Peer(in_place, consumes=("z",)),
)
"""
)


@pytest.fixture
def heat(workshop, host):
    """`heat(*sides)`: a filled heat of these peers of `scale`, with two slots."""
    with ExitStack() as stack:

        def make(*names):
            file = workshop.load("scale", PEERS)
            workload = file.definition.workloads[0]
            arenas = session.allocate(file, [workload], [], names, "cpu")
            sources = {name: Source((file.path, name), limits=Limits(seconds=30)) for name in names}
            bench = stack.enter_context(Bench(file, host, arenas, sources, "cpu"))
            bench.start()
            made = Heat(file, workload, arenas, bench.sides, 7, "cpu", count=2)
            made.fill()
            return made

        yield make


def test_a_consuming_peer_is_right_on_fresh_inputs_and_leaves_them_to_the_next(heat):
    opened = heat("in_place", "reference")
    for name in ("in_place", "reference", "in_place", "in_place", "reference"):
        opened.call(name, 1)
        assert opened.judged(name, 1)[0].status is Status.PASSED, name
    opened.call("in_place", 0)  # not fetched: what it consumed is renewed when the next one is called
    assert not torch.equal(held(opened, 0), opened.drawn[0]["x"])
    opened.timed("reference")
    assert torch.equal(held(opened, 0), opened.drawn[0]["x"])
    assert opened.judged("reference", 0)[0].status is Status.PASSED


def held(opened: Heat, slot: int) -> torch.Tensor:
    """What lies in the memory of a slot's x."""
    return opened._places[slot][0]["x"].view(opened._arenas.inputs.memory)


@pytest.mark.parametrize(("name", "changed"), [("undeclared", "x"), ("both", "w")])
def test_what_is_not_declared_may_not_change(heat, name, changed):
    opened = heat(name)
    opened.call(name)
    with pytest.raises(Failed, match=f"{name} changed its input {changed}") as caught:
        opened.judged(name, 0)
    assert caught.value.status is Status.INPUT_MUTATED


def test_an_open_result_is_compared_in_canonical_form(heat):
    opened = heat("flipped", "plain")
    for name, status in (("flipped", Status.PASSED), ("plain", Status.INCORRECT_NUMERICAL)):
        opened.call(name)
        grade, near = opened.judged(name, 0)
        assert (grade.status, near) == (status, False)


def test_a_result_without_a_canonical_form_is_the_peers_failure(heat):
    opened = heat("broken")
    opened.call("broken")
    with pytest.raises(Failed, match="no canonical form: ValueError: not one of ours") as caught:
        opened.judged("broken", 0)
    assert caught.value.side == "broken"


def test_a_peer_consumes_what_the_operator_has(workshop):
    file = workshop.load("scale", PEERS)
    with pytest.raises(BadDefinition, match="the peer strange consumes z"):
        peers.of(file, "strange")
    assert peers.of(file, "undeclared").consumes == ()
    assert peers.of(file, "torch.compile").canonical is None


def test_after_a_capture_everything_that_is_consumed_is_renewed(heat, monkeypatch):
    opened = heat("in_place", "reference")
    monkeypatch.setattr(session.Session, "capture", lambda self: {})
    opened.capture()
    held(opened, 0).zero_()
    opened.call("reference", 0)
    assert torch.equal(held(opened, 0), opened.drawn[0]["x"])


def test_calls_launched_back_to_back_always_have_the_next_block_waiting():
    told: list[object] = []
    side = SimpleNamespace(
        resume=lambda: told.append("go on"),
        tell=lambda message: told.append((message["graph"], message["slots"])),
        answer=lambda doing: told.append(doing),
        pause=lambda: told.append("stop"),
    )
    opened, left = object.__new__(Heat), [True, True, False]
    opened.sides, opened.slots = {"in_place": side}, 2
    opened._peers, opened._consumed = {"in_place": peers.Peer(print, consumes=("x",))}, set()
    opened.launched("in_place", lambda: left.pop(0))
    block = (False, [0, 1])
    assert told == ["go on", block, block, "block", block, "block", "block", "stop"]
    assert opened._consumed == {(0, "x"), (1, "x")}
