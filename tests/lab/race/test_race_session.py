"""Host time of a race's sides, from the blocks that they report."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith.lab.race.race_session import RaceSession


class Reporting:
    """A side that says how long it took to issue its blocks."""

    def __init__(self, *issued):
        self._issued = list(issued)

    def resume(self):
        pass

    pause = tell = lambda self, *_: None

    def answer(self, name, at_once=False):
        return {"seconds": 1.0, "issue": self._issued.pop(0)}


@pytest.mark.parametrize(
    ("issued", "expected"),
    [((4e-5, 8e-5, 4.4e-5), 1.1e-5), ((0.0, 0.0, 0.0), None), (("soon", float("nan"), None), None)],
)
def test_the_host_time_of_a_side_is_the_median_over_its_blocks(issued, expected):
    session = RaceSession.__new__(RaceSession)
    session.device, session.graphs, session.slots = "cuda", False, 4
    session.sides = {"peer": Reporting(*issued)}
    session._host, session._short_blocks, session._consumed, session._delivered = {}, {}, set(), {}
    session._peers = {"peer": SimpleNamespace(consumes=())}
    session._draw_order = lambda name: [0, 1, 2, 3]
    for _ in range(3):
        assert session.time_block("peer").seconds == 0.25
    assert session.host_seconds("peer") == (None if expected is None else pytest.approx(expected))
