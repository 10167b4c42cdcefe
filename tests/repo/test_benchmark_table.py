"""A benchmark's table: what is a row, what it costs, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from warpsmith.core.repo import RepoSettings
from warpsmith.repo.benchmark import BadTable, WrongResults, parse_table, require_rows, row_costs

TABLE = "noise, before\nn,kind,ms,rate,ok\n1,a,2.0,5,yes\n2,a,4.0,10,yes\n\ndone\n"


def contract(**changes: Any) -> RepoSettings:
    return RepoSettings.model_validate(
        {
            "kernel": ["k.py"], "test": "t", "benchmark": "b", "keys": ["n", "kind"], "metrics": {"ms": "lower"},
            **changes,
        }
    )  # fmt: skip


def test_rows_are_named_by_their_keys_and_logs_are_passed_over():
    rows = parse_table(contract(), TABLE, "stdout")
    assert list(rows) == ["n=1 kind=a", "n=2 kind=a"]
    assert rows["n=2 kind=a"].values == {"ms": 4.0}


def test_spaces_and_carriage_returns_do_not_matter():
    assert list(parse_table(contract(), "n , kind, ms\r\n1, a , 2.0\r\n", "x")) == ["n=1 kind=a"]


def test_higher_is_better_costs_the_inverse():
    both = contract(metrics={"ms": "lower", "rate": "higher"})
    assert row_costs(both, parse_table(both, TABLE, "x"))["n=2 kind=a", "rate"] == 0.1


def test_combined_scoring_sums_the_times():
    both = contract(metrics={"ms": "lower", "rate": "lower"}, scoring="combined")
    assert row_costs(both, parse_table(both, TABLE, "x")) == {
        ("n=1 kind=a", "ms + rate"): 7.0,
        ("n=2 kind=a", "ms + rate"): 14.0,
    }


def test_only_some_rows_count():
    assert list(parse_table(contract(only={"n": "2"}), TABLE, "x")) == ["n=2 kind=a"]


@pytest.mark.parametrize(
    ("changes", "text", "words"),
    [
        ({}, "", "x is empty"),
        ({}, "n,kind,time\n1,a,2\n", "x lacks the column `ms`; its header has `n`, `kind`, `time`"),
        ({}, "no table at all\n", "x lacks the column `n`, `kind`, `ms`"),
        ({}, "n,kind,ms\n", "x has a header but no row"),
        ({"only": {"n": "9"}}, TABLE, "no row where"),
        ({}, "n,kind,ms\n1,a,nan\n", "x, row n=1 kind=a, ms: `nan` is no positive number"),
        ({}, "n,kind,ms\n1,a,inf\n", "`inf` is no positive number"),
        ({}, "n,kind,ms\n1,a,0\n", "`0` is no positive number"),
        ({}, "n,kind,ms\n1,a,\n", "`` is no positive number"),
        ({}, "n,kind,ms\n1,a,2\n1,a,3\n", "two rows `n=1 kind=a`"),
        ({"csv": "out.csv"}, "n,kind,ms\n1,a,2\n1,b\n", "a row has 2 fields, the header 3"),
    ],
)
def test_a_bad_table_is_one_sentence(changes: dict[str, Any], text: str, words: str):
    with pytest.raises(BadTable) as raised:
        parse_table(contract(**changes), text, "x")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_check_that_does_not_pass_is_a_wrong_result():
    with pytest.raises(WrongResults, match="row n=2 kind=a: `ok` is `no`, not `yes`"):
        parse_table(contract(check={"column": "ok", "passes": "yes"}), TABLE.replace("10,yes", "10,no"), "x")


def test_a_lost_row_is_named():
    with pytest.raises(BadTable, match="lacks the rows `n=3 kind=a`"):
        require_rows(parse_table(contract(), TABLE, "x"), ["n=1 kind=a", "n=3 kind=a"], "x")
