"""The hotspot of a real report, of code without line information, and of a report without samples."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.ncu import dump as ncu_dump
from warpsmith.profiling.ncu import report as ncu_report
from warpsmith.profiling.ncu.hotspot import format_hotspot, read_hotspot

REPORT = Path(__file__).parents[2] / "data" / "ncu" / "softmax_h200.ncu-rep"


def test_the_hotspot_of_a_report(tmp_path: Path) -> None:
    """The samples were added up by hand from the report's own instances: 7575, of them 2863 at line 5."""
    pytest.importorskip("ncu_report", reason="needs ncu-report")
    hotspot = read_hotspot(REPORT)
    assert (hotspot.kernel, hotspot.samples) == ("sm", 7575)
    assert [stall.reason for stall in hotspot.stalls] == ["long_scoreboard", "barrier", "not_selected"]
    assert [stall.share * 7575 for stall in hotspot.stalls] == pytest.approx([2366, 1410, 1183])
    assert (hotspot.file, hotspot.line) == ("/tmp/k.py", 5)
    assert hotspot.share * 7575 == pytest.approx(2863)
    assert hotspot.instructions[0].text == "PRMT R15, R4, 0x7632, R15"
    assert hotspot.instructions[0].share * 7575 == pytest.approx(2019)
    assert hotspot.instructions[0].reason == "long_scoreboard"
    source = tmp_path / "k.py"
    source.write_text("1\n2\n3\n4\n    x = tl.load(p)\n", encoding="utf-8")
    text = format_hotspot(hotspot, [source])
    assert "37.8 % at /tmp/k.py:5: x = tl.load(p)" in text
    assert "/tmp/k.py:5\n" in format_hotspot(hotspot, [tmp_path / "other.py"])
    source.write_text("short\n", encoding="utf-8")
    assert "/tmp/k.py:5\n" in format_hotspot(hotspot, [source])


class FakeMetric:
    """A metric with a value for each instruction, as ncu-report gives it."""

    def __init__(self, values: dict[int, int]) -> None:
        addresses, counts = list(values), list(values.values())
        self.has_correlation_ids = lambda: True
        self.correlation_ids = lambda: SimpleNamespace(value=addresses.__getitem__)
        self.num_instances = lambda: len(counts)
        self.value = counts.__getitem__


def action(metrics: dict[str, FakeMetric]) -> Any:
    return SimpleNamespace(
        metric_by_name=metrics.get,
        metric_names=lambda: tuple(metrics),
        sass_by_pc=lambda address: f"  OP{address}",
        source_info=lambda _: None,
    )


def test_code_without_lines_has_its_hottest_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = "smsp__pcsamp_warps_issue_stalled_"
    samples = ncu_dump.dump_samples(
        action(
            {
                "smsp__pcsamp_sample_count": FakeMetric({16: 10, 32: 30}),
                f"{prefix}wait": FakeMetric({16: 10, 32: 5}),
                f"{prefix}wait_not_issued": FakeMetric({16: 99, 32: 99}),
                f"{prefix}selected": FakeMetric({16: 0, 32: 25}),
            }
        )
    )
    monkeypatch.setattr(
        ncu_report, "read_raw_launches", lambda *_, **__: [
            {"kernel": "idle", "samples": []}, {"kernel": "busy", "samples": samples},
        ],
    )  # fmt: skip
    hotspot = read_hotspot(Path("x"))
    assert (hotspot.kernel, hotspot.line, hotspot.file) == ("busy", 0, "")
    assert hotspot.share == pytest.approx(0.75)
    assert [(stall.reason, stall.share) for stall in hotspot.stalls] == [("wait", pytest.approx(0.375))]
    (instruction,) = hotspot.instructions
    assert (instruction.text, instruction.reason) == ("OP32", "wait")
    assert "75.0 % at an instruction without line information" in format_hotspot(hotspot, [])


def test_a_report_without_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        ncu_report,
        "read_raw_launches",
        lambda *_, **__: [{"kernel": "k", "samples": ncu_dump.dump_samples(action({}))}],
    )
    with pytest.raises(MissingInput, match="SourceCounters"):
        read_hotspot(Path("x"))
    monkeypatch.undo()
    (tmp_path / "empty.ncu-rep").write_bytes(b"")
    with pytest.raises(Misuse, match="empty"):
        read_hotspot(tmp_path / "empty.ncu-rep")
