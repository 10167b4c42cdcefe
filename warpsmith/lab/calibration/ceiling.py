"""Ceilings of this machine: bandwidths and arithmetic rates, measured in a child process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psutil
from pydantic import Field, TypeAdapter, ValidationError

from warpsmith.core.base import Model, Positive
from warpsmith.core.hardware import Ceiling, Target
from warpsmith.core.text import describe_error
from warpsmith.errors import MachineFailed, MachineLacks, TimedOut
from warpsmith.lab.machine import system
from warpsmith.lab.workers.worker_host import STEADY_MEMORY
from warpsmith.languages.shared import cxx_compiler
from warpsmith.packages import install_command
from warpsmith.temporary import TemporaryFolder

REPETITIONS = 15
"""Repetitions of each kind of work on a processor."""

UNSTEADY = 0.1
"""Spread above which the machine was too busy for the ceiling to be trusted."""

_SOURCE = Path(__file__).with_name("ceiling_cpu.cpp")
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-ffp-contract=fast", "-fopenmp")
_ASSUMED_CACHE = 64 * 2**20
_TIMEOUT = 180


class _RateSample(Model):
    """Output of the child process for one kind of work."""

    unit: str
    how: str
    rates: tuple[Positive, ...] = Field(min_length=1)


def measure_ceilings(
    target: Target, repetitions: int = REPETITIONS, array_bytes: int | None = None
) -> dict[str, Ceiling]:
    """Measure every ceiling of this machine; return them by name.

    Args:
        target: the device kind; a GPU's ceilings are those of the first visible device.
        repetitions: repetitions of each kind of work on a processor.
        array_bytes: size of an array on a processor; by default four times its caches.

    Raises:
        MachineLacks: no compiler or libraries to measure with.
        MachineFailed: the benchmark does not run.
        TimedOut: it takes minutes.
    """
    on_gpu = target.kind == "gpu"
    output = _run_on_gpu() if on_gpu else _run_on_cpu(repetitions, array_bytes or _array_bytes())
    try:
        samples = TypeAdapter(dict[str, _RateSample]).validate_json(output)
    except ValidationError as error:
        raise MachineFailed(f"The ceiling benchmark printed no valid result: {describe_error(error)}.") from error
    return {name: _ceiling(sample) for name, sample in samples.items()}


def _ceiling(sample: _RateSample) -> Ceiling:
    median = statistics.median(sample.rates)
    quarters = statistics.quantiles(sample.rates, method="inclusive") if len(sample.rates) > 1 else [median] * 3
    return Ceiling(
        value=median,
        unit=sample.unit,
        best=max(sample.rates),
        spread=(quarters[2] - quarters[0]) / median,
        how=f"{sample.how}; median of {len(sample.rates)}",
    )


def _run_on_cpu(repetitions: int, array_bytes: int) -> str:
    compiler = cxx_compiler.find_cxx_compiler()
    if compiler is None:
        raise MachineLacks(cxx_compiler.missing_cxx_compiler())
    with TemporaryFolder() as folder:
        program = Path(folder) / "ceiling_cpu"
        _run([*compiler, *_FLAGS, str(_SOURCE), "-o", str(program)], "compiling the ceiling benchmark")
        sizes = (array_bytes, repetitions, system.usable_cores())
        return _run([str(program), *map(str, sizes)], "the ceiling benchmark")


def _run_on_gpu() -> str:
    lacking = [name for name in ("torch", "triton") if find_spec(name) is None]
    if lacking:
        raise MachineLacks(
            f"A GPU's ceilings need {' and '.join(lacking)}; run `{install_command('lab', 'triton')}`."
        )
    return _run([sys.executable, "-m", "warpsmith.lab.calibration.ceiling_gpu"], "the ceiling benchmark")


def _array_bytes() -> int:
    """Return four times the caches, or less so that three arrays fit into half of the free memory."""
    return min(4 * (system.cache_bytes() or _ASSUMED_CACHE), psutil.virtual_memory().available // 6)


def _run(command: list[str], task: str) -> str:
    # A user's OpenMP settings would run fewer threads than are counted.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    environment |= STEADY_MEMORY  # the same as for the sides that are compared with the ceilings
    try:
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{task.capitalize()} took over {_TIMEOUT} s; free the machine and try again.") from error
    except OSError as error:
        raise MachineFailed(f"{task.capitalize()} could not start: {error}.") from error
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
        first = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise MachineFailed(f"{task.capitalize()} failed: {first}.")
    return process.stdout
