"""Print the requested metrics of an ncu report as JSON.

It runs in a process of its own, because a damaged report
can abort the reader: `python -P ncu_dump.py REPORT`, with
the metrics' names as a JSON list on stdin. It imports nothing but ncu-report.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

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
    launches = [dump_launch(action, names) for part in ncu.load_report(sys.argv[1]) for action in part]
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


if __name__ == "__main__":
    sys.exit(main())
