"""Constants to try: only those that improve a figure and worsen none before it."""

from __future__ import annotations

import pytest

from warpsmith.core.port.check import LaunchFigures
from warpsmith.port.advice import advise_constants


def at(warps: int, **changes: object) -> LaunchFigures:
    plain = {"registers": 64, "spill_bytes": 0, "shared_bytes": 0, "resident_warps": 16, "load_bits": 128}
    return LaunchFigures.model_validate(
        {"num_warps": warps, "num_stages": 2, "limit": "registers", **plain, **changes}
    )


def advice(own: LaunchFigures, *changed: LaunchFigures) -> list[str]:
    return list(advise_constants(own, changed, 32))


def test_nothing_better_is_no_advice():
    assert advice(at(4), at(2, resident_warps=8), at(8, resident_warps=8)) == []


def test_more_warps_of_as_many_blocks_are_no_advice():
    assert advice(at(4), at(8, resident_warps=32), at(16, resident_warps=32)) == []


@pytest.mark.parametrize(
    ("own", "other", "text"),
    [
        (at(32, obstacle="too many"), at(16), "num_warps 16: launches, 1 resident block (16 of 32 warps)"),
        (at(4, spill_bytes=96), at(8), "num_warps 8: no spilled bytes instead of 96"),
        (at(4, load_bits=64), at(8), "num_warps 8: loads of 128 bits instead of 64"),
        (at(4), at(2), "num_warps 2: 8 resident blocks instead of 4 (16 of 32 warps instead of 16)"),
        (
            at(8),
            at(4, resident_warps=24),
            "num_warps 4: 6 resident blocks instead of 2 (24 of 32 warps instead of 16)",
        ),
        (at(4, num_stages=4, spill_bytes=8), at(4, num_stages=3), "num_stages 3: no spilled bytes instead of 8"),
    ],
)
def test_a_gain_is_named_with_both_figures(own, other, text):
    if own.obstacle:
        own = own.model_copy(update={"resident_warps": 0})
    assert advice(own, other) == [text]


@pytest.mark.parametrize(
    "worse",
    [
        at(2, resident_warps=32, spill_bytes=4),
        at(2, resident_warps=32, load_bits=64),
        at(2, resident_warps=32, obstacle="too many"),
        at(4, num_stages=1, resident_warps=32),
    ],
)
def test_more_blocks_do_not_pay_for_spills_narrow_loads_or_lost_stages(worse):
    assert advice(at(4), worse) == []


def test_blocks_get_smaller_where_no_warps_help():
    assert "2048 threads" in advice(at(32, obstacle="has 2048 threads"), at(64, obstacle="more"))[0]
    assert advice(at(4, spill_bytes=8), at(2, spill_bytes=64))[0].startswith("smaller blocks: registers spill")
    assert advice(at(4, resident_warps=4))[0].startswith("smaller blocks: no more than 4 of 32")


def test_spills_are_those_of_a_setting_that_launches():
    launches, spills = advice(at(4, obstacle="too many"), at(2, spill_bytes=120), at(8, spill_bytes=160))[1:]
    assert launches.startswith("num_warps 8: launches")
    assert spills.startswith("smaller blocks: registers spill")
    assert "120 bytes" in spills
