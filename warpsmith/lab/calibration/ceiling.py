"""What this machine reaches at best: bandwidths and arithmetic rates, measured in a child process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import psutil
from pydantic import Field, TypeAdapter, ValidationError

from warpsmith.core.base import Model, Positive
from warpsmith.core.hardware import Ceiling, Target
from warpsmith.core.problem import problem
from warpsmith.errors import MachineFailed, MachineLacks, TimedOut
from warpsmith.lab.machine import machine
from warpsmith.lab.workers.side import STEADY_MEMORY

REPETITIONS = 15
"""Times that each kind of work is run on a processor."""

UNSTEADY = 0.1
"""Spread above which the machine was too busy for the ceiling to be trusted."""

_SOURCE = Path(__file__).with_name("ceiling_cpu.cpp")
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-ffp-contract=fast", "-fopenmp")
_ASSUMED_CACHE = 64 * 2**20
_TIMEOUT = 180


class _Sample(Model):
    """What a child prints of one kind of work."""

    unit: str
    how: str
    rates: tuple[Positive, ...] = Field(min_length=1)


def measure(target: Target, repetitions: int = REPETITIONS, array_bytes: int | None = None) -> dict[str, Ceiling]:
    """Every ceiling of the machine at hand, by name.

    Args:
        target: the device kind; a GPU's ceilings are those of the first visible device.
        repetitions: of each kind of work, on a processor.
        array_bytes: size of an array on a processor; by default four times its caches.

    Raises:
        MachineLacks: no compiler or libraries to measure with.
        MachineFailed: the benchmark does not run.
        TimedOut: it takes minutes.
    """
    printed = _gpu() if target.kind == "gpu" else _cpu(repetitions, array_bytes or _array_bytes())
    try:
        samples = TypeAdapter(dict[str, _Sample]).validate_json(printed)
    except ValidationError as error:
        raise MachineFailed(f"The ceiling benchmark printed no valid result: {problem(error)}.") from error
    return {name: _ceiling(sample) for name, sample in samples.items()}


def _ceiling(sample: _Sample) -> Ceiling:
    median = statistics.median(sample.rates)
    quarters = statistics.quantiles(sample.rates, method="inclusive") if len(sample.rates) > 1 else [median] * 3
    return Ceiling(
        value=median,
        unit=sample.unit,
        best=max(sample.rates),
        spread=(quarters[2] - quarters[0]) / median,
        how=f"{sample.how}; median of {len(sample.rates)}",
    )


def _cpu(repetitions: int, array_bytes: int) -> str:
    compiler = machine.compiler()
    if compiler is None:
        raise MachineLacks("No C++ compiler found ($CXX, c++, g++ or clang++); install one with OpenMP.")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ceiling_cpu"
        _run([*compiler, *_FLAGS, str(_SOURCE), "-o", str(program)], "compiling the ceiling benchmark")
        sizes = (array_bytes, repetitions, machine.usable_cores())
        return _run([str(program), *map(str, sizes)], "the ceiling benchmark")


def _gpu() -> str:
    lacking = [name for name in ("torch", "triton") if find_spec(name) is None]
    if lacking:
        raise MachineLacks(f"A GPU's ceilings need {' and '.join(lacking)}; install `warpsmith[lab,triton]`.")
    return _run([sys.executable, "-m", "warpsmith.lab.calibration.ceiling_gpu"], "the ceiling benchmark")


def _array_bytes() -> int:
    """Four times the caches, while three arrays fit into half of the free memory."""
    return min(4 * (machine.cache_bytes() or _ASSUMED_CACHE), psutil.virtual_memory().available // 6)


def _run(command: list[str], what: str) -> str:
    # A user's OpenMP settings would run fewer threads than are counted.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    environment |= STEADY_MEMORY  # as the sides that are measured against the ceilings have it
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{what.capitalize()} took over {_TIMEOUT} s; free the machine and try again.") from error
    except OSError as error:
        raise MachineFailed(f"{what.capitalize()} could not start: {error}.") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        first = next((line for line in said if "error" in line.lower()), said[-1])
        raise MachineFailed(f"{what.capitalize()} failed: {first}.")
    return done.stdout
