"""Unseen shapes: one of each class is timed, and the record says how many held."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith.core import gate_rules
from warpsmith.lab.gate import unseen
from warpsmith.lab.gate.unseen import choose_timed, summarize_unseen


@pytest.fixture
def drawn(workshop):
    """Workloads named after their classes, of other sizes."""
    definition = workshop.load("square", SQUARE).definition
    names = {"near-small": 993, "near-large": 4999, "edge-small": 1, "skewed-small": 0, "larger-large": 1 << 24}
    small = definition.workloads[0]
    return definition, [small.model_copy(update={"name": n, "axes": {"n": size}}) for n, size in names.items()]


def test_a_shape_of_each_class_is_timed_if_it_is_neither_empty_nor_large(drawn):
    definition, workloads = drawn
    seen = {workload.name for _ in range(40) for workload in choose_timed(definition, workloads, "cpu")}
    assert seen == {"near-small", "near-large", "edge-small"}
    assert [workload.name.split("-")[0] for workload in choose_timed(definition, workloads, "cpu")] == [
        "near",
        "edge",
    ]


def test_classes_say_how_many_held_and_what_was_gained(drawn, monkeypatch):
    _, workloads = drawn
    monkeypatch.setattr(unseen, "_time_once", lambda session: session)
    speedups = {"near-large": 1.5, "edge-small": 0.9}
    timed = [workload for workload in workloads if workload.name in speedups]
    near, edge, skewed, larger = summarize_unseen(workloads, timed, lambda workload: speedups[workload.name])
    assert (near.kind, near.held, near.workload, near.speedup) == ("near", 2, "near-large", 1.5)
    assert (edge.held, edge.speedup) == (1, 0.9)
    assert (skewed.held, skewed.workload, skewed.speedup) == (1, None, None)
    assert larger.kind == "larger"


def test_without_a_best_version_nothing_is_timed(drawn):
    _, workloads = drawn
    assert {each.speedup for each in summarize_unseen(workloads[:2], workloads[:1], None)} == {None}


def test_a_shape_that_was_left_out_is_not_timed(drawn):
    _, workloads = drawn
    assert summarize_unseen([], workloads, lambda _: pytest.fail("timed")) == ()
    assert gate_rules.UNSEEN_ROUNDS >= 2


@pytest.mark.parametrize(("looks", "speedup"), [([0.3, 0.9], 0.9), ([0.3, 0.4], 0.4), ([0.8], 0.8)])
def test_a_large_loss_is_looked_at_twice(drawn, monkeypatch, looks, speedup):
    _, workloads = drawn
    times = iter(looks)
    monkeypatch.setattr(unseen, "_time_once", lambda _: next(times))
    (near, *_) = summarize_unseen(workloads, workloads[:1], lambda workload: workload)
    assert near.speedup == speedup
    assert list(times) == []
    reason = unseen.describe_large_loss([near])
    assert bool(reason) == (speedup < gate_rules.UNSEEN_LOSS)
    assert not reason or "2.5 times as slow as the best version at near-small" in reason


OWN = "\n\ndef inputs(workload, generator, device):\n    return {'x': torch.randn(%s, generator=generator)}\n"


def test_axes_that_keep_their_sizes_are_said(workshop, drawn):
    _, workloads = drawn
    file = workshop.load("square", SQUARE)
    assert unseen.missing_shapes(file, workloads) == []
    (check,) = unseen.missing_shapes(file, [])
    assert not check.ran
    assert unseen.missing_shapes(workshop.load("square", SQUARE + OWN % "workload.axes['n']"), workloads) == []
    (check,) = unseen.missing_shapes(workshop.load("square", SQUARE + OWN % "1000"), workloads)
    assert not check.ran
    assert "`n` keeps its sizes" in check.how
    assert "(1000,)" in check.how
