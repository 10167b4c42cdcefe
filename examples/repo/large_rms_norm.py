"""Benchmark of Liger-Kernel's RMSNorm at the hidden sizes of its benchmark models.

The number of tokens is so large that launch overhead does not matter. This benchmark is for repo mode and adds to
the package's own in `benchmark/scripts`. Layers, inputs and timing are those of its `benchmark_rms_norm.py`.
The check compares each row's gradients with PyTorch's.
"""

import csv
import sys

import torch
from benchmark_model_configs import MODEL_REGISTRY
from benchmark_rms_norm import setup_rms_norm
from utils import SingleBenchmarkRunInput, run_speed_benchmark

TOKENS = 131072
HIDDEN_SIZES = sorted({model.hidden_size for model in MODEL_REGISTRY.values()})
TOLERANCE = 0.01
"""Largest allowed error of a gradient, relative to its norm."""


def main() -> None:
    """Print a row for each hidden size."""
    table = csv.writer(sys.stdout)
    table.writerow(["tokens", "hidden_size", "forward_ms", "backward_ms", "check"])
    for size in HIDDEN_SIZES:
        times = [f"{_milliseconds(mode, size):.5f}" for mode in ("forward", "backward")]
        table.writerow([TOKENS, size, *times, "PASS" if _is_right(size) else "FAIL"])


def _setup(provider: str, hidden_size: int) -> tuple[torch.Tensor, torch.nn.Module]:
    torch.manual_seed(0)
    config = {"hidden_size": hidden_size, "dtype": torch.bfloat16, "eps": 1e-6}
    x, layer = setup_rms_norm(SingleBenchmarkRunInput(TOKENS, provider, extra_benchmark_config=config))
    torch.nn.init.normal_(layer.weight)
    return x, layer


def _gradients(provider: str, hidden_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, layer = _setup(provider, hidden_size)
    y = layer(x)
    y.backward(torch.randn_like(x).to(y.dtype))
    return x.grad.float(), layer.weight.grad.float()


def _is_right(hidden_size: int) -> bool:
    pairs = zip(_gradients("liger", hidden_size), _gradients("huggingface", hidden_size), strict=True)
    return all(bool((liger - plain).norm() <= TOLERANCE * plain.norm()) for liger, plain in pairs)


def _milliseconds(mode: str, hidden_size: int) -> float:
    x, layer = _setup("liger", hidden_size)
    return run_speed_benchmark(lambda: layer(x), mode, [x], rep=60).y_50


if __name__ == "__main__":
    main()
