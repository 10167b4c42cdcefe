"""Prints what is asked of an ncu report as JSON, in a process of its own: a damaged report can abort its reader.

`python -P ncu_dump.py REPORT`, the metrics' names as a JSON list on stdin. Imports nothing but ncu-report.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

NOT_LOADED = 4
"""Exit code where ncu-report does not load."""


def main() -> int:
    """Print one object a launch, in the report's order."""
    try:
        ncu = importlib.import_module("ncu_report")  # it publishes no types
    except ImportError as error:
        sys.stderr.write(str(error))
        return NOT_LOADED
    names = json.load(sys.stdin)
    launches = [describe(action, names) for part in ncu.load_report(sys.argv[1]) for action in part]
    json.dump(launches, sys.stdout)
    return 0


def describe(action: Any, names: list[str]) -> dict[str, Any]:  # noqa: ANN401
    """A launch: its name, value and unit of those metrics that it has, and what the tool's own rules say."""
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
