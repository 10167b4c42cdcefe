from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader

from warpsmith.program.process import gather, profile_steps

COMPILED = """import json
import torch
from warpsmith.program.process import gather
gather.record_compile_calls()

@torch.compile(backend="eager")
def step(x):
    torch._dynamo.graph_break()
    return x + 1

for size in (3, 4):
    step(torch.ones(size))
print(json.dumps([*gather.graph_breaks, *gather.list_recompilations()]))
"""


@pytest.fixture
def switches() -> Iterator[None]:
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    before = matmul.fp32_precision, conv.fp32_precision
    yield
    matmul.fp32_precision, conv.fp32_precision = before


def test_tf32_is_seen_whichever_switch_set_it(switches: None) -> None:
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    assert gather.gather_facts()["tf32_products"] is False
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "ieee"  # from here on the older switch cannot be read
    found = gather.gather_facts()
    assert (found["tf32_products"], found["tf32_convolutions"]) == (True, False)


def test_layouts_loaders_and_optimizers_are_told() -> None:
    convolution = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    loader = DataLoader([1, 2, 3, 4], batch_size=2)
    optimizer = torch.optim.Adam(convolution.parameters(), fused=True)
    found = gather.gather_facts()
    del loader, optimizer  # they had to live until here
    assert found["channels_last"] is True
    assert {"workers": 0, "pin_memory": False, "batch": 2, "persistent": False} in found["loaders"]
    told = [one for one in found["optimizers"] if one["kind"] == "Adam" and one["tensors"] == 2]
    assert told[0]["fused"] is True


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
def test_calls_of_compile_are_counted_with_their_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", torch.compile)
    monkeypatch.setattr(gather, "compile_modes", [])
    gather.record_compile_calls()
    torch.compile(torch.nn.Linear(1, 1), mode="max-autotune")

    @torch.compile(mode="reduce-overhead")
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    torch.nn.Linear(1, 1).compile()
    assert gather.compile_modes == ["max-autotune", "reduce-overhead", "default"]


def test_the_peak_begins_anew() -> None:
    """In a process of its own: in this one other tests' threads come and go."""
    text = """
import torch
from warpsmith.program.process import gather
block = torch.ones(64 << 18)
high = gather.gather_memory()["memory_peak"]
del block
gather.reset_peak_memory()
print(gather.gather_memory()["memory_peak"] < high)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"


def test_a_graph_break_that_the_compiler_logs_is_kept_with_line_and_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gather, "graph_breaks", kept := [])
    log = logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks")
    before = log.level, list(log.handlers), log.propagate
    gather._record_graph_breaks()
    gather._record_graph_breaks()
    try:
        log.debug(
            "Graph break in user code at /path/to/a.py:12\nGraph Break Reason: Encountered graph break when\n"
            "\nUnsupported call\n  Explanation: Dynamo cannot trace `print`.\n  Hint: Avoid it.\n\nUser code:\n"
        )
        log.debug("another message")
    finally:
        log.setLevel(before[0])
        log.handlers[:], log.propagate = before[1], before[2]
    (event,) = kept
    assert (event["file"], event["line"], event["kind"]) == ("/path/to/a.py", 12, "graph break")
    assert event["reason"] == "Dynamo cannot trace `print`"
    assert capsys.readouterr().err == ""


def test_the_reason_of_a_recompilation_is_its_first_line() -> None:
    text = "3/1: k == 2          # return x*k  # train.py:18 in g\nUser stack trace:\n  File"
    assert gather._short_reason(text) == "k == 2"


def test_the_compilers_breaks_and_recompilations_are_told(tmp_path: Path) -> None:
    """In a process of its own: PyTorch's compiler takes seconds to import, and stays."""
    path = tmp_path / "train.py"
    path.write_text(COMPILED)
    ran = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=120)
    events = [(event["kind"], event["line"]) for event in json.loads(ran.stdout.splitlines()[-1])]
    assert ("graph break", 8) in events
    assert ("recompilation", 8) in events
    assert not [line for line in ran.stderr.splitlines() if "Graph break in user code" in line]


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs of which the process uses the second one, while the first is still the current one."""
    peaks = {0: 0, 1: 700}
    monkeypatch.setattr(gather, "gpu_initialized", lambda: True)
    for name, stand_in in {
        "device_count": lambda: 2,
        "max_memory_allocated": lambda index: peaks[index],
        "memory_stats": lambda index: {"num_alloc_retries": index},
        "memory_reserved": lambda index: 800 + index,
        "get_device_properties": lambda index: SimpleNamespace(total_memory=900 + index),
        "get_device_name": lambda index: f"GPU {index}",
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda index: index == 1, raising=False)


def test_the_gpu_of_a_rank_need_not_be_the_current_one(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (gather.list_own_gpus(), gather.main_gpu()) == ([1], 1)
    facts = gather.gather_facts()
    assert (facts["gpu"], facts["device"]) == (True, "GPU 1")
    memory = (facts["memory_peak"], facts["memory_reserved"], facts["memory_total"], facts["allocation_retries"])
    assert memory == (700, 801, 901, 1)
    calls: list[tuple[str, int]] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda index: calls.append(("wait", index)))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda index: calls.append(("reset", index)))
    profile_steps.synchronize_device()
    gather.reset_peak_memory()
    assert calls == [("wait", 1), ("reset", 1)]


def test_without_a_gpu_there_is_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "gpu_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "synchronize", pytest.fail)
    profile_steps.synchronize_device()
    assert (gather.list_own_gpus(), gather.main_gpu()) == ([], None)
