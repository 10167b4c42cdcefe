"""Throughput of a step, and its share of the limit of the device."""

from __future__ import annotations

import re

from pydantic import Field

from warpsmith.core.base import Model, Positive
from warpsmith.core.hardware import Target
from warpsmith.errors import Misuse
from warpsmith.program.models import ProgramFacts

_PEAK = "peak_bf16_tensor"
_UNITS = {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "GFLOP/s": 1e9}


class StepWork(Model):
    """The amount of data that one step handles."""

    count: Positive
    """Number of units per step."""
    unit: str
    """Unit, in the plural: `samples`, `tokens`."""


class StepLimit(Model):
    """The least time that the device needs for the products and convolutions of a step."""

    flops: float = Field(ge=0)
    """Floating-point operations of the products, convolutions and attention of a step, forward and backward."""
    seconds: Positive | None = None
    """Those operations at the device's peak in bfloat16; null if the peak is unknown."""
    source: str
    """The peak and the page that gives it, or why it is unknown."""


def parse_work(text: str) -> StepWork:
    """Parse `8192 tokens`.

    Raises:
        Misuse: the text has another form.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s+([a-z]+)", text.strip())
    if match is None or not float(match[1]):
        raise Misuse(f"--per-step takes a number and a unit, such as `8192 tokens`, and got `{text}`.")
    return StepWork(count=float(match[1]), unit=match[2])


def loader_work(facts: ProgramFacts) -> StepWork | None:
    """Return the samples per step of a program with one DataLoader; None if the facts do not tell."""
    batches = [loader.batch for loader in facts.loaders]
    if len(batches) != 1 or not batches[0]:
        return None
    observed = facts.observed
    passes = observed.backwards if observed and observed.accumulates else 1
    return StepWork(count=batches[0] * passes * facts.world, unit="samples")


def format_rates(seconds: float, work: StepWork | None) -> str:
    """Return steps per second, and if the work of a step is known, its units per second."""
    steps = f"{_format_count(1 / seconds)} steps per second"
    return f"{steps}, {_format_count(work.count / seconds)} {work.unit} per second" if work else steps


def _format_count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def step_limit(flops: float, target: Target | None) -> StepLimit:
    """Return the limit of a step with this many operations in products on the device of a page."""
    if target is None:
        return StepLimit(flops=flops, source="no hardware page names the device")
    figure = target.figures.get(_PEAK)
    if figure is None or not isinstance(figure.value, int | float) or figure.unit not in _UNITS or not flops:
        return StepLimit(flops=flops, source=f"the page of {target.id} gives no {_PEAK}")
    peak = figure.value * _UNITS[figure.unit]
    return StepLimit(
        flops=flops, seconds=flops / peak, source=f"{target.id}: {_PEAK} {figure.value:g} {figure.unit}"
    )
