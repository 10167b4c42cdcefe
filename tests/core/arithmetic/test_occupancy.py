"""Occupancy: hand-counted cases on both vendors' limits."""

from __future__ import annotations

import pytest

from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits, resident_warps

KIB = 1024
A100 = MultiprocessorLimits(32, 64, 32, 32, 65536, 164 * KIB, 163 * KIB, 128)
MI300X = MultiprocessorLimits(64, 32, 32, 16, 131072, 64 * KIB, 64 * KIB, 512)


@pytest.mark.parametrize(
    ("limits", "warps", "registers", "shared", "resident", "limit"),
    [
        (A100, 4, 32, 0, 64, "warps"),
        (A100, 4, 64, 0, 32, "registers"),
        (A100, 4, 65, 0, 28, "registers"),  # handed out as 72
        (A100, 4, 32, 80 * KIB, 8, "shared memory"),  # 1 KiB of each block is the driver's
        (A100, 1, 32, 0, 32, "blocks"),
        (A100, 32, 64, 0, 32, "registers"),
        (A100, 4, 32, 164 * KIB, 0, "shared memory"),
        (MI300X, 4, 64, 0, 32, "warps"),
        (MI300X, 4, 100, 0, 16, "registers"),  # four waves of 104 registers in the 512 of a lane
        (MI300X, 4, 512, 0, 4, "registers"),
        (MI300X, 4, 16, 20 * KIB, 12, "shared memory"),
        (MI300X, 1, 16, 0, 32, "warps"),
        (MI300X, 32, 16, 0, 0, "threads of a block"),
    ],
)
def test_hand_counted_cases(limits, warps, registers, shared, resident, limit):
    occupancy = resident_warps(limits, warps, registers, shared)
    assert (occupancy.warps, occupancy.most, occupancy.limit) == (resident, limits.warps, limit)
