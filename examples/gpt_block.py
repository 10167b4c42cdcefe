"""A GPT block's training step three ways: eager, torch.compile, and torch.compile with Warpsmith's kernels put in.

The block: norm, attention with normed queries and keys, norm, SwiGLU. Its linear layers take fp8 inputs, save
the one that follows attention. All three ways compute the same; they differ in `rmsnorm_quant_fp8`,
`rmsnorm_backward` and `swiglu_quant_fp8`. The norms of queries and keys are PyTorch's in all of them: their
inputs lie strided, the compiler's kernels read them so, and a kernel of ours would need copies, which cost more
than it gains.

The gains of kernels and step are printed apart, each the median of ratios in turns with its 95 % interval.

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
"""Elements that share a scale; weights have one for GROUP x GROUP."""
LARGEST = 448.0
"""The largest number of e4m3."""
OPERATORS = ("rmsnorm_quant_fp8", "rmsnorm_backward", "swiglu_quant_fp8")
WAYS = ("eager", "compiled", "best")
SIZES = {
    "cuda": {"batch": 4, "context": 2048, "heads": 32, "head": 128, "width": 14336},
    "cpu": {"batch": 1, "context": 8, "heads": 2, "head": 64, "width": 128},
}
KERNEL_CALLS = 20
"""Calls of a kernel that are timed together."""
STEP_CALLS = 3
"""Steps that are timed together."""
WARM_UP = 5
"""Calls before the first that counts: compiled code allocates and tunes in them."""
FARTHEST = 0.05
"""Largest difference between gradients, relative to the norm: where a compiler leaves out a rounding to bfloat16,
some values land on another number of fp8."""

Call = Callable[[], object]


class Kernels(NamedTuple):
    """What is exchanged, as functions of their definitions' inputs."""

    norm: Callable[..., Any]
    """`rmsnorm_quant_fp8`"""
    norm_backward: Callable[..., Any]
    """`rmsnorm_backward`"""
    swiglu: Callable[..., Any]
    """`swiglu_quant_fp8`"""


def dequantised(values: Tensor, scales: Tensor) -> Tensor:
    """(tokens, cols) of e4m3 with scales (cols / GROUP, padded tokens) as bfloat16."""
    rows = scales.t()[: values.shape[0]].repeat_interleave(GROUP, 1)
    return (values.float() * rows).to(torch.bfloat16)


def quantised_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A (out, in) weight as e4m3, and a scale for each block of it; once a step in training."""
    blocks = weight.float().unflatten(1, (-1, GROUP)).unflatten(0, (-1, GROUP))
    scales = blocks.abs().amax((1, 3)).clamp(min=1e-4) / LARGEST
    values = blocks / scales[:, None, :, None]
    return values.flatten(2).flatten(0, 1).to(torch.float8_e4m3fn), scales


@cache
def can_multiply_fp8(device: str) -> bool:
    """Whether PyTorch multiplies e4m3 with these scales there, and right."""
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
    """(tokens, in) times (out, in) transposed, both e4m3: in bfloat16 where the device cannot multiply fp8."""
    tokens, hidden = values.shape
    aligned = tokens % 4 == 0 and hidden % (4 * GROUP) == 0  # as cuBLAS takes the scales
    if aligned and can_multiply_fp8(values.device.type):
        return _scaled(values, scales, weight, blocks)
    wide = weight.float() * blocks.repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1)
    return dequantised(values, scales) @ wide.to(torch.bfloat16).t()


@linear.register_fake
def _(values: Tensor, scales: Tensor, weight: Tensor, blocks: Tensor) -> Tensor:
    return values.new_empty(values.shape[0], weight.shape[0], dtype=torch.bfloat16)


def functions(kernels: Kernels) -> tuple[type[Function], type[Function]]:
    """The parts of the block that the kernels are in, with their gradients."""

    class NormLinear(Function):
        """The stream grows by x; its norm goes through a linear layer in fp8."""

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
            return dx, dx, dscale, dy.t() @ dequantised(values, scales), None, None

    class SwigluLinear(Function):
        """SwiGLU, and a linear layer in fp8."""

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
            return dx.to(x.dtype), dy.t() @ dequantised(values, scales), None, None

    return NormLinear, SwigluLinear


class Block(nn.Module):
    """Attention and a feed-forward net, each behind a norm; the residual stream travels beside."""

    def __init__(self, given: argparse.Namespace, kernels: Kernels) -> None:
        super().__init__()
        self.heads, self.head, self.context = given.heads, given.head, given.context
        hidden = given.heads * given.head
        self.norm_linear, self.swiglu_linear = functions(kernels)
        make = {"device": given.device, "dtype": torch.bfloat16}
        self.scales = nn.ParameterList(
            [torch.rand(n, **make).add(0.5) for n in (hidden, given.head, given.head, hidden)]
        )
        shapes = {"qkv": (3 * hidden, hidden), "mix": (hidden, hidden), "up": (2 * given.width, hidden)}
        shapes["down"] = (hidden, given.width)
        self.weights = nn.ParameterDict(
            {name: torch.randn(shape, **make) * shape[1] ** -0.5 for name, shape in shapes.items()}
        )
        self.quantised = {name: quantised_weight(weight.detach()) for name, weight in self.weights.items()}

    def forward(self, x: Tensor, stream: Tensor) -> tuple[Tensor, Tensor]:
        """(tokens, hidden) twice to the same: what is added next, and the stream."""
        before, query_norm, key_norm, after = self.scales
        qkv, stream = self.norm_linear.apply(x, stream, before, self.weights["qkv"], *self.quantised["qkv"])
        x = self.attention(qkv, query_norm, key_norm) @ self.weights["mix"].t()
        up, stream = self.norm_linear.apply(x, stream, after, self.weights["up"], *self.quantised["up"])
        return self.swiglu_linear.apply(up, self.weights["down"], *self.quantised["down"]), stream

    def attention(self, qkv: Tensor, query_norm: Tensor, key_norm: Tensor) -> Tensor:
        """Causal attention of each sequence over itself."""
        query, key, value = qkv.unflatten(-1, (3, self.heads, self.head)).unbind(1)
        query = functional.rms_norm(query, (self.head,), query_norm, EPS)
        key = functional.rms_norm(key, (self.head,), key_norm, EPS)
        shape = (-1, self.context, self.heads, self.head)
        parts = (part.reshape(shape).transpose(1, 2) for part in (query, key, value))
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return mixed.transpose(1, 2).reshape(-1, self.heads * self.head)


def reference(op: str) -> Callable[..., Any]:
    """The definition's own."""
    return definition_file.load_definition(choice.find_owning_project(op).definition_path(op)).reference


def chosen(op: str, device: str) -> BestFunction:
    """The best version for the device; the report says which one runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return best(op, device)


def arguments(given: argparse.Namespace) -> dict[str, tuple[object, ...]]:
    """Each kernel's arguments at the block's sizes."""
    tokens, hidden = given.batch * given.context, given.heads * given.head

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, device=given.device, dtype=torch.bfloat16)

    rstd = torch.rand(tokens, device=given.device)
    rows = [drawn(tokens, hidden) for _ in range(3)]
    return {
        "rmsnorm_quant_fp8": (rows[0], rows[1], drawn(hidden), EPS),
        "rmsnorm_backward": (rows[0], rows[1], drawn(hidden), rstd, rows[2]),
        "swiglu_quant_fp8": (drawn(tokens, 2 * given.width),),
    }


def timed(calls: dict[str, Call], given: argparse.Namespace, count: int) -> dict[str, list[float]]:
    """Seconds of a call by way, in turns; `count` calls at a time, so that launches are hidden on a GPU."""
    wait = torch.cuda.synchronize if given.device != "cpu" else lambda: None
    seconds: dict[str, list[float]] = {way: [] for way in calls}
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    for turn in range(given.repeats):
        for way, call in list(calls.items())[:: 1 if turn % 2 else -1]:  # who goes first may matter
            wait()
            start = time.perf_counter()
            for _ in range(count):
                call()
            wait()
            seconds[way].append((time.perf_counter() - start) / count)
    return seconds


def steps(given: argparse.Namespace, kernels: dict[str, Kernels]) -> dict[str, tuple[Block, Call]]:
    """A training step of each way on the same weights and inputs."""
    hidden = given.heads * given.head
    made = [torch.randn(given.batch * given.context, hidden, device=given.device) for _ in range(3)]
    x, stream, gradient = (tensor.to(torch.bfloat16) for tensor in made)
    first: Block | None = None
    found: dict[str, tuple[Block, Call]] = {}
    for way, functions_of_way in kernels.items():
        block = Block(given, functions_of_way)
        if first is not None:
            block.load_state_dict(first.state_dict())
            block.quantised = first.quantised
        first = first or block
        run = block if way == "eager" else torch.compile(block, backend=given.backend, fullgraph=True)

        def step(block: Block = block, run: Callable[..., Any] = run) -> None:
            block.zero_grad()
            grown, stream_out = run(x.clone().requires_grad_(), stream)
            (grown + stream_out).backward(gradient)

        found[way] = block, step
    return found


def difference(block: Block, other: Block) -> float:
    """The largest difference between two blocks' gradients, relative to the gradient's norm."""
    pairs = zip(block.parameters(), other.parameters(), strict=True)
    return max(float((a.grad - b.grad).float().norm() / a.grad.float().norm()) for a, b in pairs)


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Times and gains of the kernels and of the step."""
    references = Kernels(*map(reference, OPERATORS))
    ours = [chosen(op, given.device) for op in OPERATORS]
    inputs = arguments(given)
    sizes = {name: getattr(given, name) for name in SIZES["cpu"]}
    report: dict[str, Any] = {"device": named(given.device), "torch": torch.__version__, "sizes": sizes}
    report["kernels"] = {}
    report["fp8_products"] = can_multiply_fp8(given.device.partition(":")[0])
    for op, plain, own in zip(OPERATORS, references, ours, strict=True):
        kinds = (plain, torch.compile(plain, backend=given.backend), own)
        calls: dict[str, Call] = {
            way: lambda call=call, op=op: call(*inputs[op]) for way, call in zip(WAYS, kinds, strict=True)
        }
        report["kernels"][op] = {"version": own.solution, **gains(timed(calls, given, KERNEL_CALLS))}
    made = steps(given, {"eager": references, "compiled": references, "best": Kernels(*ours)})
    report["step"] = gains(timed({way: step for way, (_, step) in made.items()}, given, STEP_CALLS))
    report["difference"] = max(difference(made["eager"][0], made[way][0]) for way in ("compiled", "best"))
    return report


def named(device: str) -> str:
    """What the device is called."""
    return device if device == "cpu" else torch.cuda.get_device_name(device)


def gains(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Median seconds by way, and the speedup of the last over each other with its interval."""
    compared = {way: timing.compare_times(way, seconds["best"], seconds[way]) for way in WAYS[:-1]}
    return {
        "seconds": {way: statistics.median(found) for way, found in seconds.items()},
        "speedup": {way: one.speedup for way, one in compared.items()},
        "interval": {way: [one.interval.low, one.interval.high] for way, one in compared.items()},
    }


def table(report: dict[str, Any]) -> str:
    """Microseconds and gains, the kernels above and the step below."""
    lines = [f"{'':20}{'eager us':>13}{'compiled us':>13}{'best us':>13}{'over eager':>12}{'over compiled':>24}"]
    for name, row in {**report["kernels"], "training step": report["step"]}.items():
        seconds, speedup = row["seconds"], row["speedup"]
        times = "".join(f"{seconds[way] * 1e6:>13.1f}" for way in WAYS)
        note = "  (no version accepted here: the reference)" if row.get("version") == "reference" else ""
        low, high = row["interval"]["compiled"]
        over = f"{speedup['compiled']:.3f} [{low:.3f}, {high:.3f}]"
        lines.append(f"{name:20}{times}{speedup['eager']:>12.2f}{over:>24}{note}")
    return "\n".join([*lines, f"largest difference between gradients: {report['difference']:.2%}"])


def options(words: list[str] | None) -> argparse.Namespace:
    """From the command line; sizes by the device where they are not given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--backend", default="inductor", help="torch.compile's")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args(words)
    for name, size in SIZES["cpu" if given.device == "cpu" else "cuda"].items():
        if getattr(given, name) is None:
            setattr(given, name, size)
    if given.heads * given.head % GROUP or given.width % GROUP:
        parser.error(f"heads x head and width must be multiples of {GROUP}, for scales in groups of it")
    return given


def main(words: list[str] | None = None) -> int:
    """Measure and print; 1 where the ways differ."""
    given = options(words)
    torch.manual_seed(0)
    report = measure(given)
    print(json.dumps(report, indent=2) if given.json else table(report))  # noqa: T201
    return int(report["difference"] > FARTHEST)


if __name__ == "__main__":
    sys.exit(main())
