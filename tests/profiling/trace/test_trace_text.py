"""The text for agents: short, and all of it from the model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trace_kit import DATA, Raw, device, host, launched, save, step

from warpsmith.profiling.trace import script as trace
from warpsmith.profiling.trace.models import Trace
from warpsmith.profiling.trace.text import format_duration, render_trace

CHARACTERS_A_TOKEN = 3.5


def crowded() -> list[Raw]:
    """Long names, all sorts of work, gaps and steps."""
    long = "a_function_with_a_name_that_is_much_longer_than_any_table_allows"
    events = [device("another", 0, 10, device=other) for other in range(1, 8)]
    for i in range(200):
        at = i * 1000.0
        events += launched(f"norm_{i % 3}_{long}", at + 5, at + 10, at + 60, i)
        events += [device(f"elementwise_{i % 7}", at + 100 + 30 * k, at + 120 + 30 * k) for k in range(3)]
        events += [device("ncclDevKernel_AllReduce", at + 250, at + 300, 20)]
        kind = ("HtoD (Pageable", "HtoD (Pinned", "DtoH (Pinned", "DtoD (Device", "PtoP (Device")[i % 5]
        events += [device(f"Memcpy {kind} -> Device)", at + 350, at + 500, cat="gpu_memcpy", bytes=123456789)]
        events += [host(f"aten::{long}", at + 500, at + 990), step(at, at + 999, "training step")]
        events += [host("cudaStreamSynchronize", at + 980, at + 990, cat="cuda_runtime")]
    return events


def test_the_text_stays_under_600_tokens(tmp_path: Path):
    path = save(tmp_path, crowded(), warpsmith_script="train.py " + "--flag " * 100, distributedInfo={"rank": 1})
    said = render_trace(trace.analyze_trace_file(path))
    assert len(said) / CHARACTERS_A_TOKEN < 600
    for heading in ("## Trace:", "Region:", "Step:", "### Bound:", "### Kernels a step", "### Amdahl"):
        assert heading in said


def test_figures_of_kernels_are_a_step():
    said = render_trace(trace.analyze_trace_file(DATA / "steps.json"))
    assert "## Trace: train.py --steps 4 on NVIDIA H200\n" in said
    assert "| ampere_sgemm | 1 | 40 us | 40 us |" in said
    assert "Step: median 100 us (80 us to 100 us), busy 80 us." in said


@pytest.mark.parametrize("name", ["overlap", "communication", "steps", "cpu"])
def test_the_text_comes_from_the_model_alone(name: str):
    found = trace.analyze_trace_file(DATA / f"{name}.json")
    assert render_trace(Trace.model_validate_json(found.model_dump_json())) == render_trace(found)


def test_the_cpu_is_told_apart():
    said = render_trace(trace.analyze_trace_file(DATA / "cpu.json"))
    assert "on CPU" in said
    assert "### Operators, self time" in said
    assert "No device activity" in said
    assert "### Bound: kernel-bound\nin PyTorch's operators 76%, outside of them 24%." in said


def test_tables_stay_tables():
    said = render_trace(trace.analyze_trace_file(DATA / "communication.json"))
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in said.splitlines() if line.startswith("|")]
    assert set(widths) == {5}


@pytest.mark.parametrize(
    ("seconds", "said"), [(12.34, "12.3 s"), (0.0123, "12.3 ms"), (5e-6, "5 us"), (4.2e-8, "42 ns"), (0.0, "0 ns")]
)
def test_durations(seconds: float, said: str):
    assert format_duration(seconds) == said
