"""Kills by the kernel for want of memory."""

from __future__ import annotations

import pytest

from warpsmith.lab.workers import memory_kills


@pytest.mark.parametrize(
    ("texts", "kills"),
    [
        (["nr_free_pages 7\noom_kill 3\nswap_ra 1\n"], 3),
        (["oom_kill 3\n", "low 0\noom 9\noom_kill 2\noom_group_kill 4\n"], 5),
        (["nr_free_pages 7\n"], 0),
        (["oom_kill many\n"], 0),
        ([], 0),
    ],
    ids=["machine", "machine and group", "no count", "no number", "no file"],
)
def test_kills_are_counted_as_far_as_the_machine_says(tmp_path, monkeypatch, texts, kills):
    paths = [tmp_path / f"count-{index}" for index in range(2)]
    for path, text in zip(paths, texts, strict=False):
        path.write_text(text)
    monkeypatch.setattr(memory_kills, "_COUNTS", tuple(paths))
    monkeypatch.setattr(memory_kills, "_own_groups", list)
    assert memory_kills.count_memory_kills() == kills
