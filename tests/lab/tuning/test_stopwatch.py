"""The stopwatch adds up what a step takes, also of one that fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith.lab.tuning import stopwatch


def test_steps_add_up_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter((0.0, 2.0, 10.0, 11.0, 20.0, 23.0))
    monkeypatch.setattr(stopwatch, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    watch = stopwatch.Stopwatch()
    with watch.measure("build"):
        pass
    with watch.measure("time"):
        pass
    with pytest.raises(ValueError, match="no"), watch.measure("build"):
        raise ValueError("no")
    assert list(watch.seconds.items()) == [("build", 5.0), ("time", 1.0)]
