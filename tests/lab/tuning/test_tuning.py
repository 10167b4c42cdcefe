"""Declarations of a version's file, in any language; only its numbers change."""

from __future__ import annotations

import pytest

from warpsmith.lab.tuning import models as tuning

PYTHON = """\
# tune: BLOCK in 1024, 2048, 4096
# tune: num_warps in 4, 8
# tune: GRID in -1, 2 (at launch)
# tune: where BLOCK * element_bytes <= limit
# tuned: begin
CONFIGS = (
    (1024, {"BLOCK": 1024, "num_warps": 4, "GRID": -1}),  # for cols <= 1024
    (None, {"BLOCK": 4096, "num_warps": 8, "GRID": 2}),  # for any
)
# tuned: end
BLOCK = 7  # for any
"""

CPP = """\
// tune: BLOCK in 64, 256
  // tune: UNROLL in 1, 2
// tuned: begin
constexpr Config CONFIGS[] = {
    {.BLOCK = 64, .UNROLL = 2},  // for rows * cols < 4096 and rows == 1
    {.BLOCK = 256, .UNROLL = 1},  // for any
};
// tuned: end
"""


def test_python():
    found = tuning.read_tunable(PYTHON)
    assert [(p.name, p.values, p.at_launch) for p in found.parameters] == [
        ("BLOCK", (1024, 2048, 4096), False), ("num_warps", (4, 8), False), ("GRID", (-1, 2), True),
    ]  # fmt: skip
    assert found.where == ("BLOCK * element_bytes <= limit",)
    assert [(row.line, row.condition) for row in found.rows] == [(6, "cols <= 1024"), (7, "any")]
    assert found.rows[0].config == {"BLOCK": 1024, "num_warps": 4, "GRID": -1}
    assert found.at_launch(found.rows[1].config) == {"GRID": 2}


def test_only_the_numbers_of_one_row_change():
    found = tuning.read_tunable(PYTHON)
    text = tuning.write_config(PYTHON, found.rows[1], {"BLOCK": 2048, "num_warps": 4, "GRID": -1})
    changed = [pair for pair in zip(PYTHON.splitlines(), text.splitlines(), strict=True) if pair[0] != pair[1]]
    assert changed == [
        (
            '    (None, {"BLOCK": 4096, "num_warps": 8, "GRID": 2}),  # for any',
            '    (None, {"BLOCK": 2048, "num_warps": 4, "GRID": -1}),  # for any',
        )
    ]
    assert tuning.write_config(PYTHON, found.rows[0], found.rows[0].config) == PYTHON


def test_cpp_and_the_rows_of_shapes():
    found = tuning.read_tunable(CPP)
    assert found.rows[0].config == {"BLOCK": 64, "UNROLL": 2}
    assert found.row_for({"rows": 1, "cols": 4000}) == 0
    assert found.row_for({"rows": 2, "cols": 100}) == 1
    assert "{.BLOCK = 256, .UNROLL = 2}" in tuning.write_config(CPP, found.rows[1], {"BLOCK": 256, "UNROLL": 2})
    only = found.model_copy(update={"rows": found.rows[:1]})
    assert only.row_for({"rows": 2, "cols": 1}) is None


def test_the_space_is_pruned_by_arithmetic():
    found = tuning.read_tunable(PYTHON)
    space = found.space([{"cols": 9, "element_bytes": 2}], {"limit": 4096})
    assert found.size == 12
    assert len(space) == 8
    assert {config["BLOCK"] for config in space} == {1024, 2048}
    assert {c["BLOCK"] for c in found.space([{"element_bytes": 2}, {"element_bytes": 4}], {"limit": 4096})} == {
        1024
    }


def test_the_nearest_come_first():
    found = tuning.read_tunable(PYTHON)
    best = {"BLOCK": 1024, "num_warps": 4, "GRID": -1}
    order = tuning.sort_by_distance(found, found.space([{"element_bytes": 1}], {"limit": 1 << 20}), best)
    assert [found.distance(config, best) for config in order] == [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4]
    assert found.distance({**best, "BLOCK": 3}, best) == 1, "a hand-picked value need not be in the space"


def test_the_first_mark_says_where_the_numbers_come_from():
    signed = tuning.sign_table(tuning.sign_table(CPP, "from v1 on a CPU"), "from v2 on a CPU")
    assert signed == CPP.replace("tuned: begin", "tuned: begin, from v2 on a CPU")
    assert tuning.read_tunable(signed) == tuning.read_tunable(CPP)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "declares nothing to tune"),
        ("# tune: BLOCK = 3\n", "neither `NAME in 1, 2, 4` nor `where"),
        ("# tune: BLOCK in 1, x\n", "neither"),
        ("# tune: BLOCK in 1, 2\nBLOCK = 1  # for any\n", "no line between"),
        ("# tune: BLOCK in 1, 2\n# tuned: begin\nBLOCK = 1\n# tuned: end\n", "ends in a comment"),
        ("# tune: A in 1\n# tune: B in 1\n# tuned: begin\nA = 1  # for any\n", "gives every parameter"),
    ],
)
def test_what_breaks_the_form(source, message):
    with pytest.raises(ValueError, match=message):
        tuning.read_tunable(source)


@pytest.mark.parametrize("condition", ["cols", "cols <= 1 <= 2", "unknown <= 3", "cols <= __import__('os')"])
def test_what_is_no_condition(condition):
    with pytest.raises(ValueError, match="`"):
        tuning.condition_holds(condition, {"cols": 1})


def test_a_space_without_bound_is_refused():
    many = "".join(f"# tune: P{k} in 1, 2, 3, 4\n" for k in range(7))
    row = ", ".join(f"P{k} = 1" for k in range(7))
    found = tuning.read_tunable(f"{many}# tuned: begin\n{row}  # for any\n# tuned: end\n")
    with pytest.raises(ValueError, match="16384 configurations; declare at most"):
        found.space([{}], {})
