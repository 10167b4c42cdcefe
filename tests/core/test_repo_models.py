"""The contract's models: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from warpsmith.core.repo import RepoLesson, RepoSettings
from warpsmith.core.text import describe_error

LEAST: dict[str, Any] = {
    "kernel": ["pkg/kernel.py"],
    "test": "pytest",
    "benchmark": "python bench.py",
    "keys": ["n"],
    "metrics": {"ms": "lower"},
}


def made(**changes: Any) -> RepoSettings:
    return RepoSettings.model_validate(LEAST | changes)


def test_the_least_contract_has_defaults():
    contract = made()
    assert (contract.csv, contract.scoring, contract.quick, contract.rebuild) == ("stdout", "geomean", None, None)
    assert contract.columns == ("n", "ms")


def test_every_named_column_is_required_once():
    contract = made(check={"column": "ok", "passes": "yes"}, only={"n": "1", "who": "us"})
    assert contract.columns == ("n", "ms", "ok", "who")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernels": "x"}, "unknown key `kernels`"),
        ({"kernel": []}, "`kernel`"),
        ({"kernel": ["/etc/passwd"]}, "must be a path inside the repository"),
        ({"kernel": ["../other.py"]}, "must be a path inside the repository"),
        ({"csv": "../out.csv"}, "must be a path inside the repository"),
        ({"test": " "}, "`test`"),
        ({"metrics": {"ms": "down"}}, "`metrics.ms`: Input should be 'lower' or 'higher'"),
        ({"metrics": {"n": "lower"}}, "column `n` is a key and a metric"),
        ({"scoring": "combined"}, "sums times"),
        ({"scoring": "combined", "metrics": {"ms": "lower", "rate": "higher"}}, "sums times"),
        ({"quick": {}}, "exactly one of `environment` and `benchmark`"),
        ({"quick": {"environment": "A", "benchmark": "b"}}, "exactly one of `environment` and `benchmark`"),
        ({"quick": {"environment": "1A"}}, "`quick.environment`"),
        ({"repeats": 1}, "`repeats`"),
        ({"timeouts": {"test": 0}}, "`timeouts.test`"),
        ({"check": {"column": "ok"}}, "the key `check.passes` is missing"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], words: str):
    with pytest.raises(ValidationError) as raised:
        made(**changes)
    assert words in describe_error(raised.value)


def test_a_lesson_says_something():
    with pytest.raises(ValidationError):
        RepoLesson(learned=True, text="ok")
