"""Values that records support, and the figures of a text that none of them does."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpsmith.core.claims.figures import TextFigure, parse_figures, split_statements

_URL = re.compile(r"https?://\S")
_PATH = re.compile(r"(?<![\w/.])[\w.-]+(?:/[\w.-]+)+\.(?:json|md|yaml)\b")
_FACTORS = {"speedup", "low", "high", "worst", "saving", "predicted"}
_GAINS = {"gain", "predicted_gain", "small_gain"}
_SHARES = {*_GAINS, "floor", "regression", "ceiling_share", "spread", "slower", "performance_target"}
_RATIOS = {"thread_scaling", "size_slope", "traffic_amplification", "waves", "accuracy"}
_RATES = {"bandwidth": "B/s", "rate": "FLOP/s", "power": "W"}
_OF_METRIC = {"value", "before", "after", "predicted", "expected_change"}
"""Keys whose number is a value of the metric that the key `metric` or `name` beside them names."""
_UNMEASURED = {"correctness", "numerics", "provenance", "settings", "telemetry", "steps", "spent"}
"""Parts of a record whose numbers are no results: errors, identities, clocks, and times of the lab's own work."""


@dataclass(frozen=True)
class Quantities:
    """Values that records support, by dimension."""

    values: dict[str, set[float]] = field(default_factory=lambda: defaultdict(set))
    """Values without sign, in percent or in the dimension's unit."""

    @classmethod
    def of(cls, *trees: Any) -> Quantities:  # noqa: ANN401 - what `json.loads` returns
        """Collect the results in JSON trees: numbers by their keys, and the figures in texts by the lab."""
        quantities = cls()
        for tree in trees:
            quantities._collect(tree, "")
        return quantities

    def union(self, other: Quantities) -> Quantities:
        """Return the values of both."""
        merged = Quantities()
        for quantities in (self, other):
            for dimension, values in quantities.values.items():
                merged.values[dimension] |= values
        return merged

    def support(self, figure: TextFigure) -> bool:
        """Return whether a recorded value rounds to the figure; a tie may round either way."""
        slack = figure.half * 1.001 + 1e-9 * figure.value
        return any(abs(value - figure.value) <= slack for value in self.values.get(figure.dimension, ()))

    def _collect(self, tree: Any, key: str) -> None:  # noqa: ANN401
        if isinstance(tree, Mapping):
            name = tree.get("metric") or tree.get("name")
            for part, value in tree.items():
                if part not in _UNMEASURED:
                    self._collect(value, name if isinstance(name, str) and part in _OF_METRIC else part)
            if isinstance(before := tree.get("before"), float) and isinstance(after := tree.get("after"), float):
                self._add_factor(after / before if before else 0, is_speed=False)
        elif isinstance(tree, list | tuple):
            for value in tree:
                self._collect(value, key)
        elif isinstance(tree, str):
            for figure in parse_figures(tree):
                self.values[figure.dimension].add(figure.value)
        elif isinstance(tree, int | float) and not isinstance(tree, bool):
            self._add(key, abs(tree))

    def _add(self, key: str, value: float) -> None:
        if key.endswith("_pct"):
            self.values["percent"].add(value)
        elif "seconds" in key:
            self.values["s"].add(value)
        elif key.endswith("_us"):
            self.values["s"].add(value * 1e-6)
        elif key.endswith("joules"):
            self.values["J"].add(value)
        elif key in _RATES:
            self.values[_RATES[key]].add(value)
        elif key in _FACTORS:
            self._add_factor(value)
        elif key in _SHARES:
            self.values["percent"].add(100 * value)
            if key in _GAINS:
                self.values["ratio"] |= {1 + value, 1 - value}
        elif key in _RATIOS:
            self.values["ratio"].add(value)
            self.values["percent"].add(100 * value)

    def _add_factor(self, factor: float, *, is_speed: bool = True) -> None:
        """Add a factor: a speedup of 0.1 supports `10x slower`, and no `10x` alone."""
        if factor > 0:
            inverse = 1 / factor
            self.values["slowdown"] |= {factor, inverse}
            self.values["ratio"] |= {factor, min(factor, inverse) if is_speed else inverse}
            self.values["percent"] |= {100 * abs(factor - 1), 100 * abs(1 - 1 / factor), 100 * factor}


def unsupported_figures(
    text: str, recorded: Quantities, read_cited: Callable[[str], Quantities | None]
) -> Iterator[str]:
    """Yield the figures of a text that no record supports and no source in the same sentence.

    Args:
        text: the text.
        recorded: values of the round's record.
        read_cited: reads the values of a file of the project that the text cites; None if it does not exist.
    """
    for statement in split_statements(text):
        if _URL.search(statement):
            continue
        cited = [values for path in _PATH.findall(statement) if (values := read_cited(path))]
        for figure in parse_figures(statement):
            if not any(values.support(figure) for values in (recorded, *cited)):
                yield figure.text
