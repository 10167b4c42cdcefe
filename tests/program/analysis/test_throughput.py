from __future__ import annotations

import pytest
from trial_kit import FACTS, OBSERVED

from warpsmith import project as projects
from warpsmith.errors import Misuse
from warpsmith.lab.machine import hardware
from warpsmith.program.analysis import throughput
from warpsmith.program.analysis.throughput import StepWork
from warpsmith.program.models import LoaderFacts

LOADER = LoaderFacts(workers=0, pin_memory=False, batch=32, persistent=False)


def test_the_work_of_a_step_is_parsed_or_refused() -> None:
    assert throughput.parse_work("8192 tokens") == StepWork(count=8192, unit="tokens")
    for text in ("tokens", "0 tokens", "8192", "-1 rows"):
        with pytest.raises(Misuse, match="--per-step"):
            throughput.parse_work(text)


def test_one_loader_tells_the_samples_of_a_step() -> None:
    assert throughput.loader_work(FACTS) is None
    one = FACTS.model_copy(update={"loaders": (LOADER,)})
    assert throughput.loader_work(one) == StepWork(count=32, unit="samples")
    assert throughput.loader_work(FACTS.model_copy(update={"loaders": (LOADER, LOADER)})) is None
    micro = OBSERVED.model_copy(update={"backwards": 4, "optimizer_steps": 1})
    assert throughput.loader_work(one.model_copy(update={"observed": micro, "world": 2})) == StepWork(
        count=256, unit="samples"
    )


def test_the_limit_is_the_products_at_the_devices_peak() -> None:
    target = hardware.read_target_page(projects.find_project(), "h100").target
    limit = throughput.step_limit(989.4e12, target)
    assert limit.seconds == pytest.approx(1.0)
    assert "h100" in limit.source
    unknown = throughput.step_limit(1e9, None)
    assert (unknown.seconds, unknown.flops) == (None, 1e9)
    assert throughput.step_limit(0, target).seconds is None


def test_rates_name_steps_and_work_per_second() -> None:
    assert throughput.format_rates(0.5, None) == "2 steps per second"
    assert throughput.format_rates(0.5, StepWork(count=8192, unit="tokens")).endswith(", 16,384 tokens per second")
