"""Judgements beside other tests."""

from __future__ import annotations

import pytest

from warpsmith.lab.machine import contention


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The load of other tests does not count: a busy CPU decides nothing."""
    monkeypatch.setattr(contention, "describe_cpu_load", lambda: None)
