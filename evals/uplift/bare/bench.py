"""Check and time kernels against the reference: python3 bench.py kernel.py [more.py] [--fast] [--workload NAME]

Each result is printed at once. On a GPU the times are medians of CUDA graphs of 8 calls over 4 sets of inputs.
`--fast` leaves out eager PyTorch and torch.compile.
"""

import argparse
import importlib.util
import statistics
import time
from pathlib import Path

import torch

import reference as operator

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDOFF = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
SETS, CALLS, ROUNDS = 4, 8, 30


def value(expression, workload):
    return eval(str(expression), {}, dict(workload.axes))


def shape_of(spec, workload):
    return tuple(int(value(size, workload)) for size in spec["shape"])


def dtype_of(spec, workload):
    return workload.dtype if spec["dtype"] == "workload" else spec["dtype"]


def draw(workload, seed):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    if hasattr(operator, "inputs"):
        return operator.inputs(workload, generator, DEVICE)
    drawn = {}
    for name, spec in operator.INPUTS.items():
        kind, *numbers = ("normal" if spec["distribution"] == "workload" else spec["distribution"]).split(":")
        first, second = (value(number, workload) for number in numbers or (0, 1))
        options = {"generator": generator, "device": DEVICE}
        shape, dtype = shape_of(spec, workload), getattr(torch, dtype_of(spec, workload))
        if kind == "integers":
            drawn[name] = torch.randint(int(first), int(second), shape, **options).to(dtype)
        elif kind == "uniform":
            drawn[name] = (first + (second - first) * torch.rand(shape, **options)).to(dtype)
        else:
            drawn[name] = (first + second * torch.randn(shape, **options)).to(dtype)
    return drawn


def arguments(drawn, workload):
    return [drawn[name] if name in drawn else workload.scalars[name] for name in operator.PARAMETERS]


def as_tuple(result):
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def errors(function, workload, seed):
    """Largest share of the allowed error over all outputs; above 1 is wrong."""
    given = arguments(draw(workload, seed), workload)
    wide = [each.double() if torch.is_tensor(each) and each.is_floating_point() else each for each in given]
    truth = as_tuple(operator.reference(*wide))
    magnitude = as_tuple(operator.magnitude(*wide)) if hasattr(operator, "magnitude") else truth
    extra = as_tuple(operator.extra(*wide)) if hasattr(operator, "extra") else (0.0,) * len(truth)
    worst = 0.0
    for got, exact, scale, steps, (name, spec) in zip(
        as_tuple(function(*given)), truth, magnitude, extra, operator.OUTPUTS.items(), strict=True
    ):
        rule, dtype = operator.TOLERANCE[name], dtype_of(spec, workload)
        if (
            tuple(got.shape) != shape_of(spec, workload)
            or got.dtype != getattr(torch, dtype)
            or not got.is_contiguous()
        ):
            return f"{name} must be a contiguous {dtype} tensor of shape {shape_of(spec, workload)}"
        if not got.is_floating_point():
            worst = max(worst, 0.0 if torch.equal(got, exact.to(got.dtype)) else float("inf"))
            continue
        constant = 16 + value(rule["reduction"], workload) ** 0.5 / 2
        rounding = scale.abs() * (constant + steps) * ROUNDOFF[rule["accumulate"]]
        bound = (exact.abs() * ROUNDOFF[dtype] + rounding) * rule["slack"] + 1e-38
        share = ((got.double() - exact).abs() / bound).nan_to_num(nan=float("inf"))
        worst = max(worst, float(share.max()) if share.numel() else 0.0)
    return worst


def seconds(function, workload):
    """Median seconds of a call."""
    sets = [arguments(draw(workload, 100 + index), workload) for index in range(SETS)]
    for given in sets:
        function(*given)
    if DEVICE == "cpu":
        times = []
        for index in range(7):
            started = time.perf_counter()
            function(*sets[index % SETS])
            times.append(time.perf_counter() - started)
        return statistics.median(times)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [function(*sets[index % SETS]) for index in range(CALLS)]
    times = []
    for _ in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / CALLS)
    del results
    return statistics.median(times)


def load(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="+")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--workload", action="append")
    options = parser.parse_args()
    sides = {path: load(path) for path in options.kernels}
    for workload in operator.WORKLOADS:
        if options.workload and workload.name not in options.workload:
            continue
        line = [workload.name]
        timed = dict(sides)
        if workload.timed and not options.fast:
            timed |= {
                "eager": operator.reference,
                "torch.compile": torch.compile(operator.reference, dynamic=False),
            }
        for name, function in timed.items():
            try:
                worst = errors(function, workload, 7) if name in sides else 0.0
                wrong = isinstance(worst, str) or worst > 1
                text = str(worst) if isinstance(worst, str) else f"error {worst:.2g} of the bound"
                took = f"{seconds(function, workload) * 1e6:.2f} us" if workload.timed and not wrong else ""
                line.append(f"{name}: {'WRONG, ' if wrong else ''}{text if name in sides else ''} {took}".rstrip())
            except Exception as error:
                line.append(f"{name}: FAILED {type(error).__name__}: {str(error)[:600]}")
        print("; ".join(line), flush=True)


if __name__ == "__main__":
    main()
