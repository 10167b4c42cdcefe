"""Versions over ranks with interpreted kernels: right and alike on all ranks, however late one of them is."""

from __future__ import annotations

import pytest
from rank_play import EXAMPLES, calls_at, play

from warpsmith.lab.operator.source_module import import_source

pytestmark = pytest.mark.slow

PASSED = {("PASSED", True)}
"""Statuses of right calls, and that all ranks have the same bytes."""

ROWS = [{"rows": 7, "cols": 40}, {"rows": 1, "cols": 1}, {"rows": 2, "cols": 129}]


def calls_at_all(sizes, ranks, count=3, dtype="float32"):
    return [call for axes in sizes for call in calls_at({"axes": axes, "dtype": dtype}, count, ranks)]


@pytest.mark.parametrize(
    ("version", "constants", "dtype"),
    [
        ("all_reduce_rmsnorm/v5.py", {}, "float32"),
        ("all_reduce_rmsnorm/v6.py", {}, "bfloat16"),
        ("all_reduce_rmsnorm_fp8/v2.py", {}, "float32"),
        ("all_reduce_rmsnorm_fp8/v3.py", {"LOW_LATENCY_BYTES": 0, "TWO_SHOT_BYTES": -1}, "bfloat16"),
    ],
)
def test_all_reduce_on_two_ranks(version, constants, dtype, tmp_path):
    calls = calls_at_all(ROWS, 2, dtype=dtype)
    assert set(play(version, calls, tmp_path, BLOCKS=3, **constants)) == PASSED


@pytest.mark.parametrize(
    ("version", "ranks", "two_shot_bytes"),
    [("all_reduce_rmsnorm/v7.py", 3, 1100), ("all_reduce_rmsnorm_fp8/v3.py", 4, 2000)],
)
def test_three_ways_by_size(version, ranks, two_shot_bytes, tmp_path, monkeypatch):
    constants = {"BLOCKS": 4, "LOW_LATENCY_BYTES": 600, "TWO_SHOT_BYTES": two_shot_bytes}
    sizes = [{"rows": 2, "cols": 40}, {"rows": 5, "cols": 40}, {"rows": 11, "cols": 130}, {"rows": 1, "cols": 48}]
    calls = calls_at_all(sizes, ranks, dtype="bfloat16")
    assert set(play(version, calls, tmp_path, ranks, **constants)) == PASSED
    module = import_source("by_size", EXAMPLES / version)
    for name, value in constants.items():
        monkeypatch.setattr(module, name, value)
    ways = [module.choose_way(size["rows"], size["cols"], module.torch.bfloat16, ranks) for size in sizes]
    assert ways == ["low latency", "one-shot", "two-shot", "low latency"]


@pytest.mark.parametrize(("ranks", "dtype"), [(2, "float32"), (4, "bfloat16")])
@pytest.mark.parametrize(
    ("version", "sizes"),
    [
        ("all_gather_matmul/v3.py", [{"rows": 12, "k": 16, "cols": 24}, {"rows": 8, "k": 33, "cols": 12}]),
        ("matmul_reduce_scatter/v3.py", [{"rows": 12, "k": 24, "cols": 20}, {"rows": 24, "k": 12, "cols": 7}]),
        (
            "moe_dispatch_combine/v2.py",
            [
                {"tokens": 28, "hidden": 40, "experts": 4, "top_k": 3},
                {"tokens": 4, "hidden": 33, "experts": 8, "top_k": 1},
            ],
        ),
    ],
)
def test_other_operators(version, sizes, ranks, dtype, tmp_path):
    constants = {"BLOCKS": 3} if "moe" in version else {}
    assert set(play(version, calls_at_all(sizes, ranks, dtype=dtype), tmp_path, ranks, **constants)) == PASSED


@pytest.mark.parametrize(
    ("version", "line", "broken"),
    [
        ("all_reduce_rmsnorm/v5.py", "seen - value < 0", "seen - value < -1"),  # the last call's flag will do
        ("all_reduce_rmsnorm/v5.py", "calls * steps + step + 1, WORLD", "calls * steps + step + 2, WORLD"),
        ("all_reduce_rmsnorm/v7.py", ".to(tl.int32) != number)", ".to(tl.int32) < number - 2)"),
    ],
    ids=["flag of the last call", "flag of the next row", "number of the last call"],
)
def test_a_broken_flag_is_noticed(version, line, broken, tmp_path):
    source = (EXAMPLES / version).read_text()
    assert line in source
    path = tmp_path / "broken.py"
    path.write_text(source.replace(line, broken))
    calls = calls_at_all([{"rows": 3, "cols": 40}], 2, count=6, dtype="bfloat16")
    definition = EXAMPLES / version.partition("/")[0] / "definition.py"
    graded = play(path, calls, tmp_path, definition=definition, BLOCKS=3)
    assert any("INCORRECT" in status for status, *_ in graded)
