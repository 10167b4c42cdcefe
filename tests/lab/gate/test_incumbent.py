"""The best version is held against the time that it was accepted with, beside the reference."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith.core.evaluation import BEST, REFERENCE
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.incumbent import require_accepted_speed
from warpsmith.lab.timing.samples import Samples

MACHINE = SimpleNamespace(id="m1")


def accepted(seconds: float = 1.0, reference: float = 2.0, machine: str = "m1") -> SimpleNamespace:
    timing = SimpleNamespace(
        seconds=seconds,
        against=lambda side: SimpleNamespace(other_seconds=reference) if side == REFERENCE else None,
    )
    return SimpleNamespace(
        provenance=SimpleNamespace(machine=SimpleNamespace(id=machine)), timed={"small": timing, "large": timing}
    )


def samples(best: float, reference: float) -> dict[str, Samples]:
    return {name: Samples({BEST: [best] * 4, REFERENCE: [reference] * 4}) for name in ("small", "large", "new")}


@pytest.mark.parametrize(("best", "reference"), [(1.0, 2.0), (1.2, 2.0), (3.0, 6.0), (0.2, 2.0)])
def test_its_usual_speed_beside_the_reference_passes(best, reference):
    require_accepted_speed(accepted(), samples(best, reference), MACHINE)


def test_a_version_that_slowed_down_is_no_rival():
    with pytest.raises(MachineFailed, match=r"takes 2.0 times as long"):
        require_accepted_speed(accepted(), samples(2.0, 2.0), MACHINE)


def test_times_of_another_machine_or_none_say_nothing():
    require_accepted_speed(accepted(machine="m2"), samples(9.0, 2.0), MACHINE)
    require_accepted_speed(None, samples(9.0, 2.0), MACHINE)
    require_accepted_speed(accepted(), {"small": Samples({BEST: [9.0] * 4})}, MACHINE)
