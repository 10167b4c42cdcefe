"""Training step of a GPT block in three ways: eager, torch.compile, and torch.compile with Warpsmith's kernels.

The block has a norm, attention with normalized queries and keys, a second norm, and SwiGLU. Its linear layers
take fp8 inputs, except the one after attention. All three ways compute the same result. They differ only in
`rmsnorm_quant_fp8`, `rmsnorm_backward` and `swiglu_quant_fp8`. All ways use PyTorch's norms for queries and keys:
these inputs are strided and the compiler's kernels read them in place, while a Warpsmith kernel would need
copies, which cost more than it gains.

The gains of the kernels and of the step are printed separately. Each is the median of ratios from alternating
runs, with its 95 % interval.

python examples/gpt_block.py --json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from warpsmith import best
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing import statistics, timing
from warpsmith.use import choice
from warpsmith.use.operator import BestFunction

EPS = 1e-6
GROUP = 128
"""Elements that share a scale; a weight has one scale per block of GROUP x GROUP."""
LARGEST = 448.0
"""Largest finite value of e4m3."""
OPERATORS = ("rmsnorm_quant_fp8", "rmsnorm_backward", "swiglu_quant_fp8")
WAYS = ("eager", "compiled", "best")
SIZES = {
    "cuda": {"batch": 4, "context": 2048, "heads": 32, "head": 128, "width": 14336},
    "cpu": {"batch": 1, "context": 8, "heads": 2, "head": 64, "width": 128},
}
KERNEL_CALLS = 20
"""Number of kernel calls that are timed together."""
STEP_CALLS = 3
"""Number of steps that are timed together."""
WARM_UP = 5
"""Untimed calls at the start, in which compiled code allocates and tunes."""
FARTHEST = 0.05
"""Largest allowed difference between gradients, relative to the norm. If a compiler omits a rounding to bfloat16,
some values round to another fp8 number."""

Call = Callable[[], object]


class Kernels(NamedTuple):
    """Kernels that the ways exchange, as functions of their definitions' inputs."""

    norm: Callable[..., Any]
    """`rmsnorm_quant_fp8`"""
    norm_backward: Callable[..., Any]
    """`rmsnorm_backward`"""
    swiglu: Callable[..., Any]
    """`swiglu_quant_fp8`"""


def dequantize(values: Tensor, scales: Tensor) -> Tensor:
    """Return e4m3 values (tokens, cols) with scales (cols / GROUP, padded tokens) as bfloat16."""
    rows = scales.t()[: values.shape[0]].repeat_interleave(GROUP, 1)
    return (values.float() * rows).to(torch.bfloat16)


def quantize_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return an (out, in) weight as e4m3 with a scale per block; training does this once per step."""
    blocks = weight.float().unflatten(1, (-1, GROUP)).unflatten(0, (-1, GROUP))
    scales = blocks.abs().amax((1, 3)).clamp(min=1e-4) / LARGEST
    values = blocks / scales[:, None, :, None]
    return values.flatten(2).flatten(0, 1).to(torch.float8_e4m3fn), scales


@cache
def can_multiply_fp8(device: str) -> bool:
    """Return True if PyTorch multiplies e4m3 with these scales correctly on the device."""
    if device == "cpu":
        return False
    values = torch.ones(GROUP, 4 * GROUP, device=device).to(torch.float8_e4m3fn)
    scales, blocks = torch.full((4, GROUP), 2.0, device=device), torch.full((1, 4), 3.0, device=device)
    try:
        product = _scaled(values, scales, values, blocks)
    except (RuntimeError, ValueError, NotImplementedError):
        return False
    return bool((product == 6.0 * 4 * GROUP).all())


def _scaled(values: Tensor, scales: Tensor, weight: Tensor, blocks: Tensor) -> Tensor:
    left = scales.t()[: values.shape[0]]
    return torch._scaled_mm(values, weight.t(), scale_a=left, scale_b=blocks.t(), out_dtype=torch.bfloat16)


@torch.library.custom_op("gpt_block::linear", mutates_args=())
def linear(values: Tensor, scales: Tensor, weight: Tensor, blocks: Tensor) -> Tensor:
    """Multiply (tokens, in) by (out, in) transposed, both e4m3; in bfloat16 if the device cannot multiply fp8."""
    tokens, hidden = values.shape
    aligned = tokens % 4 == 0 and hidden % (4 * GROUP) == 0  # cuBLAS requires this for the scales
    if aligned and can_multiply_fp8(values.device.type):
        return _scaled(values, scales, weight, blocks)
    wide = weight.float() * blocks.repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1)
    return dequantize(values, scales) @ wide.to(torch.bfloat16).t()


@linear.register_fake
def _(values: Tensor, scales: Tensor, weight: Tensor, blocks: Tensor) -> Tensor:
    return values.new_empty(values.shape[0], weight.shape[0], dtype=torch.bfloat16)


def autograd_functions(kernels: Kernels) -> tuple[type[Function], type[Function]]:
    """Return the two parts of the block that call the kernels, with their gradients."""

    class NormLinear(Function):
        """Add x to the residual stream, and apply an fp8 linear layer to the norm of the sum."""

        @staticmethod
        def forward(
            ctx: Any,  # noqa: ANN401
            x: Tensor, stream: Tensor, scale: Tensor, weight: Tensor, weight_q: Tensor, blocks: Tensor,
        ) -> tuple[Tensor, Tensor]:  # fmt: skip
            values, scales, grown = kernels.norm(x, stream, scale, EPS)
            ctx.save_for_backward(grown, scale, weight, values, scales)
            return linear(values, scales, weight_q, blocks), grown

        @staticmethod
        def backward(ctx: Any, dy: Tensor, dstream: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
            grown, scale, weight, values, scales = ctx.saved_tensors
            rstd = torch.rsqrt(grown.float().square().mean(-1) + EPS)
            dx, dscale = kernels.norm_backward(grown, dy @ weight, scale, rstd, dstream.contiguous())
            return dx, dx, dscale, dy.t() @ dequantize(values, scales), None, None

    class SwigluLinear(Function):
        """Apply SwiGLU and an fp8 linear layer."""

        @staticmethod
        def forward(
            ctx: Any, x: Tensor, weight: Tensor, weight_q: Tensor, blocks: Tensor  # noqa: ANN401
        ) -> Tensor:  # fmt: skip
            values, scales = kernels.swiglu(x)
            ctx.save_for_backward(x, weight, values, scales)
            return linear(values, scales, weight_q, blocks)

        @staticmethod
        def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
            x, weight, values, scales = ctx.saved_tensors
            gate, up = x.float().chunk(2, -1)
            da, share = (dy @ weight).float(), torch.sigmoid(gate)
            dx = torch.cat([da * up * share * (1 + gate * (1 - share)), da * gate * share], -1)
            return dx.to(x.dtype), dy.t() @ dequantize(values, scales), None, None

    return NormLinear, SwigluLinear


class Block(nn.Module):
    """Attention and a feed-forward network, each after a norm; the residual stream is passed separately."""

    def __init__(self, options: argparse.Namespace, kernels: Kernels) -> None:
        super().__init__()
        self.heads, self.head, self.context = options.heads, options.head, options.context
        hidden = options.heads * options.head
        self.norm_linear, self.swiglu_linear = autograd_functions(kernels)
        make = {"device": options.device, "dtype": torch.bfloat16}
        self.scales = nn.ParameterList(
            [torch.rand(n, **make).add(0.5) for n in (hidden, options.head, options.head, hidden)]
        )
        shapes = {"qkv": (3 * hidden, hidden), "mix": (hidden, hidden), "up": (2 * options.width, hidden)}
        shapes["down"] = (hidden, options.width)
        self.weights = nn.ParameterDict(
            {name: torch.randn(shape, **make) * shape[1] ** -0.5 for name, shape in shapes.items()}
        )
        self.quantized = {name: quantize_weight(weight.detach()) for name, weight in self.weights.items()}

    def forward(self, x: Tensor, stream: Tensor) -> tuple[Tensor, Tensor]:
        """Map the next addend and the residual stream, each (tokens, hidden), to the same pair after the block."""
        before, query_norm, key_norm, after = self.scales
        qkv, stream = self.norm_linear.apply(x, stream, before, self.weights["qkv"], *self.quantized["qkv"])
        x = self.attention(qkv, query_norm, key_norm) @ self.weights["mix"].t()
        up, stream = self.norm_linear.apply(x, stream, after, self.weights["up"], *self.quantized["up"])
        return self.swiglu_linear.apply(up, self.weights["down"], *self.quantized["down"]), stream

    def attention(self, qkv: Tensor, query_norm: Tensor, key_norm: Tensor) -> Tensor:
        """Compute causal self-attention of each sequence."""
        query, key, value = qkv.unflatten(-1, (3, self.heads, self.head)).unbind(1)
        query = functional.rms_norm(query, (self.head,), query_norm, EPS)
        key = functional.rms_norm(key, (self.head,), key_norm, EPS)
        shape = (-1, self.context, self.heads, self.head)
        parts = (part.reshape(shape).transpose(1, 2) for part in (query, key, value))
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return mixed.transpose(1, 2).reshape(-1, self.heads * self.head)


def reference(op: str) -> Callable[..., Any]:
    """Return the reference function of an operator's definition."""
    return definition_file.load_definition(choice.find_owning_project(op).definition_path(op)).reference


def best_version(op: str, device: str) -> BestFunction:
    """Return the best version for the device; the report names it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return best(op, device)


def random_arguments(options: argparse.Namespace) -> dict[str, tuple[object, ...]]:
    """Return random arguments for each kernel at the block's sizes."""
    tokens, hidden = options.batch * options.context, options.heads * options.head

    def random_tensor(*shape: int) -> Tensor:
        return torch.randn(shape, device=options.device, dtype=torch.bfloat16)

    rstd = torch.rand(tokens, device=options.device)
    rows = [random_tensor(tokens, hidden) for _ in range(3)]
    return {
        "rmsnorm_quant_fp8": (rows[0], rows[1], random_tensor(hidden), EPS),
        "rmsnorm_backward": (rows[0], rows[1], random_tensor(hidden), rstd, rows[2]),
        "swiglu_quant_fp8": (random_tensor(tokens, 2 * options.width),),
    }


def measure_seconds(calls: dict[str, Call], options: argparse.Namespace, count: int) -> dict[str, list[float]]:
    """Return seconds per call by way, in alternating order; `count` calls per timing hide launches on a GPU."""
    wait = torch.cuda.synchronize if options.device != "cpu" else lambda: None
    seconds: dict[str, list[float]] = {way: [] for way in calls}
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    for turn in range(options.repeats):
        for way, call in list(calls.items())[:: 1 if turn % 2 else -1]:  # the order may matter
            wait()
            start = time.perf_counter()
            for _ in range(count):
                call()
            wait()
            seconds[way].append((time.perf_counter() - start) / count)
    return seconds


def build_steps(options: argparse.Namespace, kernels: dict[str, Kernels]) -> dict[str, tuple[Block, Call]]:
    """Return each way's block and training step, with the same weights and inputs."""
    hidden = options.heads * options.head
    tensors = [torch.randn(options.batch * options.context, hidden, device=options.device) for _ in range(3)]
    x, stream, gradient = (tensor.to(torch.bfloat16) for tensor in tensors)
    first: Block | None = None
    steps: dict[str, tuple[Block, Call]] = {}
    for way, kernels_of_way in kernels.items():
        block = Block(options, kernels_of_way)
        if first is not None:
            block.load_state_dict(first.state_dict())
            block.quantized = first.quantized
        first = first or block
        run = block if way == "eager" else torch.compile(block, backend=options.backend, fullgraph=True)

        def step(block: Block = block, run: Callable[..., Any] = run) -> None:
            block.zero_grad()
            grown, stream_out = run(x.clone().requires_grad_(), stream)
            (grown + stream_out).backward(gradient)

        steps[way] = block, step
    return steps


def difference(block: Block, other: Block) -> float:
    """Return the largest difference between two blocks' gradients, relative to the gradient's norm."""
    pairs = zip(block.parameters(), other.parameters(), strict=True)
    return max(float((a.grad - b.grad).float().norm() / a.grad.float().norm()) for a, b in pairs)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure times and gains of the kernels and of the step."""
    references = Kernels(*map(reference, OPERATORS))
    best_versions = [best_version(op, options.device) for op in OPERATORS]
    inputs = random_arguments(options)
    sizes = {name: getattr(options, name) for name in SIZES["cpu"]}
    report: dict[str, Any] = {"device": device_name(options.device), "torch": torch.__version__, "sizes": sizes}
    report["kernels"] = {}
    report["fp8_products"] = can_multiply_fp8(options.device.partition(":")[0])
    for op, plain, own in zip(OPERATORS, references, best_versions, strict=True):
        kinds = (plain, torch.compile(plain, backend=options.backend), own)
        calls: dict[str, Call] = {
            way: lambda call=call, op=op: call(*inputs[op]) for way, call in zip(WAYS, kinds, strict=True)
        }
        times = measure_seconds(calls, options, KERNEL_CALLS)
        report["kernels"][op] = {"version": own.solution, **summarize_times(times)}
    built = build_steps(options, {"eager": references, "compiled": references, "best": Kernels(*best_versions)})
    times = measure_seconds({way: step for way, (_, step) in built.items()}, options, STEP_CALLS)
    report["step"] = summarize_times(times)
    report["difference"] = max(difference(built["eager"][0], built[way][0]) for way in ("compiled", "best"))
    return report


def device_name(device: str) -> str:
    """Return the name of the device."""
    return device if device == "cpu" else torch.cuda.get_device_name(device)


def summarize_times(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Return median seconds by way, and the speedup of `best` over each other way with its interval."""
    compared = {way: timing.compare_times(way, seconds["best"], seconds[way]) for way in WAYS[:-1]}
    return {
        "seconds": {way: statistics.median(values) for way, values in seconds.items()},
        "speedup": {way: row.speedup for way, row in compared.items()},
        "interval": {way: [row.interval.low, row.interval.high] for way, row in compared.items()},
    }


def table(report: dict[str, Any]) -> str:
    """Format microseconds and gains: first the kernels, then the step."""
    lines = [f"{'':20}{'eager us':>13}{'compiled us':>13}{'best us':>13}{'over eager':>12}{'over compiled':>24}"]
    for name, row in {**report["kernels"], "training step": report["step"]}.items():
        seconds, speedup = row["seconds"], row["speedup"]
        times = "".join(f"{seconds[way] * 1e6:>13.1f}" for way in WAYS)
        note = "  (no accepted version here: the reference)" if row.get("version") == "reference" else ""
        low, high = row["interval"]["compiled"]
        over = f"{speedup['compiled']:.3f} [{low:.3f}, {high:.3f}]"
        lines.append(f"{name:20}{times}{speedup['eager']:>12.2f}{over:>24}{note}")
    return "\n".join([*lines, f"largest difference between gradients: {report['difference']:.2%}"])


def parse_options(words: list[str] | None) -> argparse.Namespace:
    """Parse the command line; sizes that are not given depend on the device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--backend", default="inductor", help="backend of torch.compile")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(words)
    for name, size in SIZES["cpu" if options.device == "cpu" else "cuda"].items():
        if getattr(options, name) is None:
            setattr(options, name, size)
    if options.heads * options.head % GROUP or options.width % GROUP:
        parser.error(f"heads x head and width must be multiples of {GROUP}, the group size of the scales")
    return options


def main(words: list[str] | None = None) -> int:
    """Measure and print; return 1 if the results of the ways differ."""
    options = parse_options(words)
    torch.manual_seed(0)
    report = measure(options)
    print(json.dumps(report, indent=2) if options.json else table(report))  # noqa: T201
    return int(report["difference"] > FARTHEST)


if __name__ == "__main__":
    sys.exit(main())
