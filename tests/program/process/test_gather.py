from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from torch.utils.data import DataLoader

from warpsmith.program.process import gather


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
