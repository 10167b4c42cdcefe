"""The garbage collector: what was imported is neither looked at again nor at the end."""

from __future__ import annotations

import gc

import pytest

from warpsmith import collector


@pytest.fixture(autouse=True)
def settings_restored():
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_imports_start_no_collection():
    collector.collect_rarely()
    before = [each["collections"] for each in gc.get_stats()]
    made = [[index] for index in range(50_000)]
    assert [each["collections"] for each in gc.get_stats()] == before
    assert len(made) == 50_000


def test_the_last_collection_finds_nothing_to_look_at():
    collector.skip_last_collection()
    assert gc.get_freeze_count() > 1000
    assert len(gc.get_objects()) < 1000
