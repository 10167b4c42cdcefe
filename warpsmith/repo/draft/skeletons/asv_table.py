"""Benchmark: calls the `time_` functions of an asv suite, and prints the median of each as a row of CSV."""

from __future__ import annotations

import csv
import functools
import importlib.util
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

KEYS = ("benchmark", "parameters")
FOLDER: str = "benchmarks"
LEAST_SECONDS = 0.2
Owner: TypeAlias = type | Callable[..., object]


def list_calls() -> Iterator[tuple[str, str, Callable[[], float]]]:
    """Yield the name, the parameters, and a function that measures, for each benchmark and set of parameters."""
    sys.path.insert(0, str(Path(FOLDER).parent.resolve()))
    for path in sorted(Path(FOLDER).rglob("*.py")):
        name = ".".join(path.relative_to(Path(FOLDER).parent).with_suffix("").parts)
        spec = importlib.util.spec_from_file_location(name, path)
        if path.name == "__init__.py" or spec is None or spec.loader is None:
            continue
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        for own, value in vars(module).items():
            if own.startswith("time_") and callable(value):
                yield from cover_parameters(f"{name}.{own}", value, value)
            elif isinstance(value, type) and not own.startswith("_"):
                for method in sorted(each for each in dir(value) if each.startswith("time_")):
                    yield from cover_parameters(f"{name}.{own}.{method}", value, method)


def cover_parameters(
    name: str, owner: Owner, target: str | Callable[..., object]
) -> Iterator[tuple[str, str, Callable[[], float]]]:
    """Yield a measurement for each combination of `params`."""
    params = list(getattr(owner, "params", []) or [])
    axes = (
        params if params and all(isinstance(axis, list | tuple) for axis in params) else [params] if params else []
    )
    for values in itertools.product(*axes):
        parameters = json.dumps([str(value) for value in values])
        yield name, parameters, functools.partial(measure_benchmark, owner, target, values)


def measure_benchmark(owner: Owner, target: str | Callable[..., object], values: tuple[object, ...]) -> float:
    """Return the median of the milliseconds of a call, between its `setup` and `teardown`."""
    instance = owner() if isinstance(owner, type) else owner
    call = getattr(instance, target) if isinstance(target, str) else target
    cache = getattr(instance, "setup_cache", None)
    values = (cache(), *values) if cache else values
    getattr(instance, "setup", lambda *_: None)(*values)
    call(*values)
    times: list[float] = []
    while len(times) < 5 or sum(times) < LEAST_SECONDS:
        began = time.perf_counter()
        call(*values)
        times.append(time.perf_counter() - began)
    getattr(instance, "teardown", lambda *_: None)(*values)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    requested = json.loads(os.environ.get("BENCH_ROWS", "null"))
    writer = csv.writer(sys.stdout)
    writer.writerow((*KEYS, "ms"))
    for name, parameters, run in list_calls():
        if requested is None or {"benchmark": name, "parameters": parameters} in requested:
            writer.writerow((name, parameters, f"{run():.9g}"))
            sys.stdout.flush()
