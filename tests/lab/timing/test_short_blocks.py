"""Blocks of a slow side are short."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from warpsmith.lab.timing.session import Session


class ScriptedSide:
    """Side whose calls take a fixed time, and which records what it is told."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.told = seconds, []

    def tell(self, message: dict) -> None:
        self.told.append(message)

    def answer(self, _: str, *, at_once: bool = False) -> dict:
        return {"seconds": self.seconds * len(self.told[-1]["slots"])}

    def resume(self) -> None: ...

    pause = resume


@pytest.fixture
def session() -> Session:
    made = Session.__new__(Session)
    made.sides = {"fast": ScriptedSide(1e-5), "slow": ScriptedSide(15e-3), "slowest": ScriptedSide(1.0)}
    made.device, made.slots, made.graphs = "cuda", 200, True
    made._short_blocks, made._delivered, made._random = {}, {}, random.Random(1)
    made.fill_inputs = lambda **_: None
    return made


def test_only_slow_sides_have_short_blocks(session: Session) -> None:
    session.shorten_blocks(0.05)
    calls = {}
    for name, side in session.sides.items():
        assert session.time_block(name).seconds == pytest.approx(side.seconds)
        calls[name] = (len(side.told[-1]["slots"]), side.told[-1]["graph"])
    assert calls == {"fast": (200, True), "slow": (3, True), "slowest": (1, True)}


def test_a_graph_holds_the_calls_of_a_short_block(session: Session) -> None:
    session.shorten_blocks(0.05)
    for side in session.sides.values():
        side.answer = lambda *_: {"reason": ""}
    assert not session.capture_graphs()
    captured = {name: side.told[-1]["slots"] for name, side in session.sides.items()}
    assert {name: len(set(slots)) for name, slots in captured.items()} == {"fast": 200, "slow": 3, "slowest": 1}


def test_a_first_call_that_compiles_does_not_count(session: Session) -> None:
    side = session.sides["fast"]
    side.answer = lambda *_, **__: {"seconds": 5.0 if len(side.told) == 1 else 1e-5 * len(side.told[-1]["slots"])}
    session.shorten_blocks(0.05)
    assert session._short_blocks.keys() == {"slow", "slowest"}


def test_a_cpu_times_single_calls_anyway() -> None:
    Session.shorten_blocks(SimpleNamespace(device="cpu"), 0.05)
