"""Judgements on a machine that counts as idle, with workers of the shared host."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE, Lent, workers

from warpsmith.lab.gate import judge, request
from warpsmith.lab.machine import contention


@pytest.fixture
def idle(monkeypatch):
    """Other tests run beside these; `idle` says what the load is said to be."""
    said = [None]
    monkeypatch.setattr(contention, "describe_cpu_load", lambda: said[-1])
    return said


@pytest.fixture
def lent(host, monkeypatch):
    """Make judgements take their workers from the shared host."""
    monkeypatch.setattr(request, "WorkerHost", Lent(host))
    return host


@pytest.fixture
def judged(workshop, lent):
    """`judged(source, definition)`: the evaluation; afterwards no worker is left."""

    def run(source, text=SQUARE, name="square", **changes):
        file = workshop.load(name, text)
        found = judge.judge_version(workshop.request(file, workshop.solution(source), **changes))
        assert workers(lent) == []
        return found

    return run
