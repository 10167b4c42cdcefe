"""Symptoms of arithmetic: the wrong pipe, a saturated pipe, and idle lanes."""

from __future__ import annotations

from warpsmith.profiling.diagnosis.latency import MATRIX
from warpsmith.profiling.diagnosis.symptom import BUSY, LOW_USE, SATURATED, Facts, Symptom

FP64 = 5.0
"""Percent of floating-point operations in fp64 that is reported for an operator without float64."""

WARP = 32
"""Lanes of a warp."""

LANES = 0.75
"""Share of active lanes below which ncu reports divergence: 24 of 32."""

DIVISION = (50.0, 80.0)
"""Percent of conversions among special-function instructions in integer division: two of three."""

TENSOR_GAIN = 0.93
"""Share of the time that tensor cores save on FMA-bound products: 67 against 989 TFLOP/s on an H200."""

_DATA = ("long-scoreboard", "short-scoreboard", "narrow-accesses", "narrow-loads", "barrier-stalls", "l2-thrash")
_ISSUE = ("instruction-bound", "pipeline-bubbles", "instruction-cache-misses")
_FEW_WARPS = ("occupancy-registers", "occupancy-shared-memory", "occupancy-blocks")


def _active_lanes(f: Facts) -> float:
    """Return the active lanes over the lanes that a warp of this block has."""
    return f["threads_per_instruction"] / min(WARP, f.get("block_threads", WARP))


def _diverges(f: Facts) -> bool:
    return "threads_per_instruction" in f.values and _active_lanes(f) < LANES


def _uses_fp64_by_accident(f: Facts) -> bool:
    """Return whether the kernel does fp64 arithmetic that the operator does not ask for."""
    return not f.float64 and f.get("fp64_share_pct") >= FP64


def _misses_tensor_cores(f: Facts) -> bool:
    """Return whether a product that tensor cores would do faster runs without them."""
    leads = f["fma_pct"] >= max(f.get("alu_pct"), f.get("xu_pct")) and f["fma_pct"] / 100 > f.dram_share
    asks = bool(f.asks_for_tensor_cores) or (f.half_product and leads)
    return asks and f.get("tensor_pct") < MATRIX


def _special_functions_lead(f: Facts) -> bool:
    return f["xu_pct"] >= max(LOW_USE, f["fma_pct"], f["alu_pct"], f.get("tensor_pct"))


def _saved_special_functions(f: Facts) -> float:
    """Return the share of the time in which the special-function pipe is busy and nothing else is."""
    others = max(f.dram_share, f["fma_pct"] / 100, f["alu_pct"] / 100, f.get("tensor_pct") / 100)
    return f["xu_pct"] / 100 * (1 - others)


def _operator_pipe(f: Facts) -> float:
    """Return the use in percent of the busiest pipe that does the operator's own arithmetic."""
    return max(f["fma_pct"], f["tensor_pct"], f.get("fp64_pct") if f.float64 else 0.0)


SYMPTOMS = (
    Symptom(
        id="arithmetic-saturated",
        title="The arithmetic pipe is saturated",
        bottleneck="at-the-limit",
        metric="sm_busy_pct",
        threshold=f"the pipe of the operator's own arithmetic at {SATURATED:g} % of its peak or more",
        needs=("fma_pct", "tensor_pct"),
        holds=lambda f: (
            _operator_pipe(f) >= SATURATED
            and not (_diverges(f) or _uses_fp64_by_accident(f) or _misses_tensor_cores(f))
        ),
        saves=lambda f: 0.0,
        entries=("low-precision-io-fp32-accumulate", "tensor-core-use"),
        action="do less arithmetic, or the same in a narrower type",
        mechanism="The pipe that does the operator's arithmetic is busy nearly all the time.",
        conclusive=True,
    ),
    Symptom(
        id="no-tensor-cores",
        title="Tensor cores are not used",
        bottleneck="compute",
        metric="tensor_pct",
        threshold=f"tensor-core use below {MATRIX:g} % where the operator's arithmetic belongs on tensor cores, "
        "or where a product in half precision keeps the FMA pipe busier than anything else",
        needs=("asks_for_tensor_cores", "fma_pct", "dram_busy_pct"),
        holds=_misses_tensor_cores,
        saves=lambda f: TENSOR_GAIN * (1 - f.dram_share),
        entries=("tensor-core-use", "low-precision-io-fp32-accumulate", "software-pipelining-async-copy"),
        action="run the inner product on tensor cores",
        mechanism="The products run on the vector pipes, which have a small part of the tensor cores' rate.",
        explains=(*_DATA, *_ISSUE, *_FEW_WARPS),
    ),
    Symptom(
        id="fp64-slip",
        title="Arithmetic is in double precision",
        bottleneck="compute",
        metric="fp64_share_pct",
        threshold=f"{FP64:g} % or more of floating-point operations in fp64, in an operator without float64",
        needs=("fp64_pct", "sm_busy_pct"),
        holds=_uses_fp64_by_accident,
        saves=lambda f: f["fp64_share_pct"] / 100 * max(f["fp64_pct"], f["sm_busy_pct"]) / 100,
        entries=("fp64-by-accident",),
        action="write float literals and float functions, and look for F64 in the assembly",
        mechanism="Nothing in the operator's types is fp64, whose pipe has at most half of the rate.",
        explains=(*_ISSUE, "special-functions", "short-scoreboard", "occupancy-registers"),
    ),
    Symptom(
        id="divergence",
        title="Lanes of a warp go different ways",
        bottleneck="compute",
        metric="threads_per_instruction",
        threshold=(
            f"fewer than {LANES * WARP:g} of {WARP} threads active in an instruction, "
            "or that share of a smaller block"
        ),
        needs=("dram_busy_pct",),
        holds=_diverges,
        saves=lambda f: (1 - _active_lanes(f)) * (1 - f.dram_share),
        entries=("divergent-branches", "one-thread-per-row"),
        action="give the lanes of a warp equal work: sort, compact, or share a row among them",
        mechanism="A warp runs each of its lanes' paths in turn, and the lanes that are not on it idle.",
        explains=(*_ISSUE, "long-scoreboard", "short-scoreboard"),
    ),
    Symptom(
        id="special-functions",
        title="The special-function pipe is saturated",
        bottleneck="compute",
        metric="xu_pct",
        threshold=f"{LOW_USE:g} % or more use of the special-function pipe, the busiest of all pipes",
        needs=("fma_pct", "alu_pct", "dram_busy_pct"),
        holds=_special_functions_lead,
        saves=_saved_special_functions,
        entries=("cheaper-special-functions", "triton-exp2-instead-of-exp"),
        action="compute fewer of them, or a part of them as polynomials on the FMA pipe",
        mechanism="Exponentials, logarithms, roots and conversions run at an eighth of the FMA rate.",
        explains=(*_ISSUE, "short-scoreboard"),
    ),
    Symptom(
        id="integer-division",
        title="Integer divisions fill the special-function pipe",
        bottleneck="compute",
        metric="conversion_pct",
        threshold=(
            f"{DIVISION[0]:g} to {DIVISION[1]:g} % of special-function instructions are conversions, "
            f"where that pipe is in use {LOW_USE:g} % or more, the busiest of all pipes"
        ),
        needs=("xu_pct", "fma_pct", "alu_pct", "dram_busy_pct"),
        holds=lambda f: _special_functions_lead(f) and DIVISION[0] <= f["conversion_pct"] <= DIVISION[1],
        saves=lambda f: f["xu_pct"] / 100 * (1 - max(f.dram_share, f["fma_pct"] / 100)),
        entries=("fewer-instructions-per-element",),
        action="divide by constants or powers of two, or step through indices without a division",
        mechanism="Each divides through a conversion to float, a reciprocal and a conversion back.",
        explains=(*_ISSUE, "special-functions", "short-scoreboard"),
    ),
    Symptom(
        id="instruction-bound",
        title="Instructions around the arithmetic fill the issue slots",
        bottleneck="compute",
        metric="issue_active_pct",
        threshold=f"issue slots or the integer pipe at {SATURATED:g} % or more, with the FMA pipe below",
        needs=("alu_pct", "fma_pct", *BUSY),
        holds=lambda f: (
            max(f["issue_active_pct"], f["alu_pct"]) >= SATURATED
            and f["sm_busy_pct"] >= SATURATED
            and f["fma_pct"] < SATURATED
        ),
        saves=lambda f: min(0.5, 1 - f.dram_share) * f["alu_pct"] / max(1.0, f["alu_pct"] + f["fma_pct"]),
        entries=("fewer-instructions-per-element", "vectorized-memory-access"),
        action="hoist and simplify index arithmetic, and do more work with each instruction",
        mechanism="Addresses, comparisons and conversions take the slots that arithmetic needs.",
    ),
)
"""Order does not matter: the classifier ranks symptoms by what each could save."""
