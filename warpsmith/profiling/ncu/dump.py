"""Print the requested metrics of an ncu report as JSON.

It runs in a process of its own, because a damaged report
can abort the reader: `python -P ncu_dump.py REPORT`, with
the metrics' names as a JSON list on stdin, and `--samples`
for the samples of each instruction. It imports nothing but ncu-report.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

SAMPLES = "--samples"
"""Option that adds the samples of each instruction."""

_COUNT = "smsp__pcsamp_sample_count"
_STALL = "smsp__pcsamp_warps_issue_stalled_"

NOT_LOADED = 4
"""Exit code if ncu-report cannot be imported."""


def main() -> int:
    """Print one object for each launch, in the report's order."""
    try:
        ncu = importlib.import_module("ncu_report")  # it publishes no types
    except ImportError as error:
        sys.stderr.write(str(error))
        return NOT_LOADED
    names = json.load(sys.stdin)
    actions = [action for part in ncu.load_report(sys.argv[1]) for action in part]
    launches = [dump_launch(action, names) for action in actions]
    if SAMPLES in sys.argv[2:]:
        launches = [{**launch, "samples": dump_samples(a)} for launch, a in zip(launches, actions, strict=True)]
    json.dump(launches, sys.stdout)
    return 0


def dump_launch(action: Any, names: list[str]) -> dict[str, Any]:  # noqa: ANN401
    """Describe a launch: its name, values and units of the
    metrics that it has, and the findings of ncu's rules."""
    metrics = {name: metric for name in names if (metric := action.metric_by_name(name)) is not None}
    return {
        "kernel": action.name() or "",
        "metrics": {name: metric.value() for name, metric in metrics.items()},
        "units": {name: metric.unit() for name, metric in metrics.items()},
        "whole": bool(action.metric_names()),
        "rules": list(action.rule_results_as_dicts()),
    }


def dump_samples(action: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Describe a launch's sampled instructions: disassembly, source line, and samples by the warp's state."""
    counts = _by_address(action, _COUNT)
    states = {
        name.removeprefix(_STALL): _by_address(action, name)
        for name in action.metric_names()
        if name.startswith(_STALL) and not name.endswith("_not_issued")
    }
    samples = []
    for address, hits in counts.items():
        source = action.source_info(address)
        samples.append(
            {
                "sass": action.sass_by_pc(address) or "",
                "file": source.file_name() if source else "",
                "line": source.line() if source else 0,
                "hits": hits,
                "stalls": {name: by[address] for name, by in states.items() if by.get(address)},
            }
        )
    return samples


def _by_address(action: Any, name: str) -> dict[int, int]:  # noqa: ANN401
    """Return a metric's values by the address of the instruction; empty if the report has none."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.has_correlation_ids():
        return {}
    addresses = metric.correlation_ids()
    return {addresses.value(i): metric.value(i) for i in range(metric.num_instances())}


if __name__ == "__main__":
    sys.exit(main())
