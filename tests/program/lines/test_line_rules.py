"""Findings made of counts by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpsmith.program.lines import line_rules
from warpsmith.program.lines.raw_lines import WatchedLines
from warpsmith.program.models import CompileEvent

FOLDER = Path("/path/to")


def site(line: int, share: float | None = None, **more: Any) -> dict[str, Any]:
    loop = {"file": "/path/to/train.py", "line": line - 1, "first": line, "last": line, "function": "step"}
    return {
        "file": "/path/to/train.py", "line": line, "function": "step", "package": "", "caller_file": "",
        "caller_line": 0, "loop": None if share is None else {**loop, "share": share},
        "operators": {"aten::mul": 400.0}, "bytes": {"aten::mul": 4096.0}, "copies": {}, "copied_bytes": 0,
        "depth": 1, **more,
    }  # fmt: skip


def find(*sites: dict[str, Any], events: tuple[CompileEvent, ...] = ()) -> list[tuple[str, int, float | None]]:
    counts = WatchedLines.model_validate({"sites": sites, "copied_bytes": 4e6})
    named = line_rules.find_lines(counts, FOLDER, copy_share=0.4, gpu=False, compiled=events)
    return [(one.kind, one.line, one.share) for one in named]


def test_the_largest_share_comes_first() -> None:
    copy = site(20, copies={"contiguous": 2}, copied_bytes=1e6)
    assert find(site(10, 0.05), copy, site(30, 0.3)) == [("loop", 29, 0.3), ("copy", 20, 0.1), ("loop", 9, 0.05)]


def test_few_or_large_operators_are_no_loop_of_small_ones() -> None:
    few = site(10, 0.5, operators={"aten::mul": line_rules.MANY_CALLS - 1})
    large = site(20, 0.5, bytes={"aten::mul": line_rules.SMALL_BYTES + 1})
    assert find(few, large, site(30)) == []


def test_graph_breaks_and_recompilations_are_named_with_their_reason() -> None:
    event = CompileEvent(
        kind="graph break", file="/path/to/train.py", line=7, function="", reason="`print` of a str"
    )
    again = event.model_copy(update={"kind": "recompilation", "reason": "size mismatch"})
    counts = WatchedLines()
    first, second = line_rules.find_lines(
        counts, FOLDER, copy_share=0, gpu=True, compiled=(event, again, again)
    )  # fmt: skip
    assert (first.kind, first.location, first.cause) == ("graph break", "train.py:7", "`print` of a str")
    assert (second.kind, second.calls) == ("recompilation", 2)
    assert "2 times" in second.operation
