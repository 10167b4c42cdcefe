"""Representative rows lie far apart in their keys and in time, and are always the same."""

from __future__ import annotations

from warpsmith.repo.benchmark import BenchmarkRow
from warpsmith.repo.representative import choose_representative_rows

ROWS = {
    f"n={n} kind={kind}": BenchmarkRow(f"n={n} kind={kind}", {"n": str(n), "kind": kind}, {"ms": float(n)})
    for n in (1, 2, 30, 400)
    for kind in ("a", "b")
}
COSTS = {name: row.values["ms"] for name, row in ROWS.items()}


def test_they_hold_the_slowest_and_the_fastest_and_every_kind():
    chosen = choose_representative_rows(ROWS, COSTS, 3)
    assert "n=400 kind=a" in chosen
    assert any(name.startswith("n=1 ") for name in chosen)
    assert {name[-1] for name in chosen} == {"a", "b"}


def test_they_are_in_the_table_s_order_and_no_more_than_there_are():
    assert choose_representative_rows(ROWS, COSTS, 99) == tuple(ROWS)
    assert choose_representative_rows(ROWS, COSTS, 3) == tuple(
        name for name in ROWS if name in choose_representative_rows(ROWS, COSTS, 3)
    )
    assert len(choose_representative_rows(ROWS, COSTS, 1)) == 1
