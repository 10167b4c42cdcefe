"""Representative rows lie far apart in their keys and in time, and are always the same."""

from __future__ import annotations

from warpsmith.repo.benchmark import Row
from warpsmith.repo.representative import choose

ROWS = {
    f"n={n} kind={kind}": Row(f"n={n} kind={kind}", {"n": str(n), "kind": kind}, {"ms": float(n)})
    for n in (1, 2, 30, 400)
    for kind in ("a", "b")
}
COSTS = {name: row.values["ms"] for name, row in ROWS.items()}


def test_they_hold_the_slowest_and_the_fastest_and_every_kind():
    chosen = choose(ROWS, COSTS, 3)
    assert "n=400 kind=a" in chosen
    assert any(name.startswith("n=1 ") for name in chosen)
    assert {name[-1] for name in chosen} == {"a", "b"}


def test_they_are_in_the_table_s_order_and_no_more_than_there_are():
    assert choose(ROWS, COSTS, 99) == tuple(ROWS)
    assert choose(ROWS, COSTS, 3) == tuple(name for name in ROWS if name in choose(ROWS, COSTS, 3))
    assert len(choose(ROWS, COSTS, 1)) == 1
