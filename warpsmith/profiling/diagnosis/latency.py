"""Symptoms of waiting: the launch, the grid, what keeps warps out, and what those that are in wait for."""

from __future__ import annotations

import math

from warpsmith.profiling.diagnosis.symptom import BUSY, LATENCY, SATURATED, STALLED, WAITS, Facts, Symptom

LAUNCH_US = 5.0
"""Microseconds on the device below which a launch is taken to cost more than the kernel, unmeasured."""

TAIL = 10.0
"""Percent of the waves' time that the last, partial one wastes."""

OCCUPANCY = 80.0
"""Percent of the warps below which ncu's rules call the occupancy that resources allow low."""

BINDING = 0.75
"""Share of the allowed occupancy that is reached: below it, something else keeps warps out."""

MATRIX = 5.0
"""Percent of use from which a kernel counts as one that uses tensor cores."""

_LIMITS = ("limit_registers", "limit_shared", "limit_warps", "limit_blocks")
_OCCUPANCY = ("occupancy_pct", "issue_active_pct", *_LIMITS, *BUSY)


def _host_us(f: Facts) -> float:
    """What a call costs beside its kernels: measured, or a few microseconds for each launch."""
    return f.get("host_overhead_us", LAUNCH_US * f["launch_count"])


def _multiprocessors(f: Facts) -> float:
    """How many the device has: a wave is as many blocks as all of them hold."""
    return f["blocks"] / (f["waves"] * min(f[limit] for limit in _LIMITS))


def _tail(f: Facts) -> float:
    """Share of the waves that is empty; from whole blocks, since `waves` may be rounded."""
    wave = round(f["blocks"] / f["waves"])
    return 1 - f["blocks"] / (wave * math.ceil(f["blocks"] / wave))


def _limited(f: Facts) -> bool:
    """Whether resources keep out warps that the kernel could use; tensor-core kernels do with few."""
    return (
        f["occupancy_limit_pct"] < OCCUPANCY
        and f.get("tensor_pct") < MATRIX
        and f["occupancy_pct"] >= BINDING * f["occupancy_limit_pct"]
        and f["issue_active_pct"] < LATENCY
        and f.idle
    )


def _slots(f: Facts) -> float:
    """Blocks that a multiprocessor takes whatever they use."""
    return min(f["limit_warps"], f["limit_blocks"])


def _more_warps(f: Facts) -> float:
    """Time goes down with the warps that are in, until they are all in or a unit is busy."""
    return max(0.0, 1 - max(f["occupancy_limit_pct"] / 100, 1 - f.room))


def _bubbles(f: Facts) -> float:
    """Share of warp cycles in which a pipeline is empty; in a matmul its operands are part of it."""
    stalls = f["wait_pct"] + f.get("gmma_pct")
    if f.get("tensor_pct") >= MATRIX:
        stalls += sum(f.get(name) for name in ("long_scoreboard_pct", "short_scoreboard_pct", "barrier_stall_pct"))
    return stalls


_WAITING = ("long-scoreboard", "short-scoreboard", "barrier-stalls", "pipeline-bubbles", "narrow-accesses",
            "instruction-cache-misses")  # fmt: skip
_FEW_WARPS = ("occupancy-registers", "occupancy-shared-memory", "occupancy-blocks")

SYMPTOMS = (
    Symptom(
        id="launch-bound",
        title="Launching costs more than the kernels",
        bottleneck="launch",
        metric="time_us",
        threshold=LAUNCH_US,
        needs=("launch_count",),
        holds=lambda f: f["time_us"] < _host_us(f),
        saves=lambda f: _host_us(f) / (_host_us(f) + f["time_us"]),
        entry="cuda-graphs-for-launch-bound",
        action="capture the call as a graph, or fuse it with its neighbours",
        mechanism="The device has finished before the host can give it the next thing to do.",
        conclusive=True,
    ),
    Symptom(
        id="grid-too-small",
        title="The grid is too small",
        bottleneck="latency",
        metric="waves",
        threshold=1.0,
        needs=("blocks", *_LIMITS),
        holds=lambda f: f["waves"] < 1 and f["blocks"] < round(_multiprocessors(f)),
        saves=lambda f: 1 - f["blocks"] / _multiprocessors(f),
        entry="tiny-grid",
        action="split the work over more blocks",
        mechanism="There are fewer blocks than multiprocessors, and those without one do nothing.",
        explains=(*_WAITING, *_FEW_WARPS),
    ),
    Symptom(
        id="tail-wave",
        title="The last wave of blocks is nearly empty",
        bottleneck="latency",
        metric="waves",
        threshold=TAIL,
        needs=("blocks", *BUSY),
        holds=lambda f: f["waves"] > 1 and 100 * _tail(f) >= TAIL and f.room >= 1 - SATURATED / 100,
        saves=lambda f: min(_tail(f), f.room),
        entry="persistent-grid",
        action="fit the grid to whole waves, or loop over tiles in one wave",
        mechanism="The blocks left over from the full waves run by themselves while most of the device waits.",
    ),
    Symptom(
        id="occupancy-registers",
        title="Registers limit the occupancy",
        bottleneck="latency",
        metric="occupancy_limit_pct",
        threshold=OCCUPANCY,
        needs=_OCCUPANCY,
        holds=lambda f: (
            _limited(f) and f["limit_registers"] < _slots(f) and f["limit_registers"] <= f["limit_shared"]
        ),
        saves=_more_warps,
        entry="occupancy-by-resource-budget",
        action="use fewer registers a thread, down to the next step of resident blocks",
        mechanism="A block's registers leave room for too few warps to hide the latency of their instructions.",
        explains=("long-scoreboard", "short-scoreboard", "pipeline-bubbles"),
    ),
    Symptom(
        id="occupancy-shared-memory",
        title="Shared memory limits the occupancy",
        bottleneck="latency",
        metric="occupancy_limit_pct",
        threshold=OCCUPANCY,
        needs=_OCCUPANCY,
        holds=lambda f: (
            _limited(f) and f["limit_shared"] < _slots(f) and f["limit_shared"] <= f["limit_registers"]
        ),
        saves=_more_warps,
        entry="occupancy-by-resource-budget",
        action="use less shared memory a block, or more warps on the same tile",
        mechanism="A block's shared memory leaves room for too few warps to hide their latency.",
        explains=("long-scoreboard", "short-scoreboard", "pipeline-bubbles"),
    ),
    Symptom(
        id="occupancy-blocks",
        title="The size of the blocks limits the occupancy",
        bottleneck="latency",
        metric="occupancy_limit_pct",
        threshold=OCCUPANCY,
        needs=_OCCUPANCY,
        holds=lambda f: _limited(f) and _slots(f) <= min(f["limit_registers"], f["limit_shared"]),
        saves=_more_warps,
        entry="multiple-rows-per-block",
        action="choose blocks of 128 to 512 threads that divide a multiprocessor's warps",
        mechanism="A multiprocessor runs out of slots for blocks before it is full of warps.",
        explains=("long-scoreboard", "short-scoreboard", "pipeline-bubbles"),
    ),
    Symptom(
        id="barrier-stalls",
        title="Warps wait at barriers",
        bottleneck="latency",
        metric="barrier_stall_pct",
        threshold=STALLED,
        needs=WAITS,
        holds=lambda f: f.waits("barrier_stall_pct"),
        saves=lambda f: f["barrier_stall_pct"] / 100 * f.room,
        entry="excess-synchronization",
        action="meet less often, in smaller groups, with equal work before each barrier",
        mechanism="Most warps of a block have arrived and wait for the slowest.",
    ),
    Symptom(
        id="pipeline-bubbles",
        title="Load and compute take turns",
        bottleneck="latency",
        metric="eligible_warps",
        threshold=1.0,
        needs=("wait_pct", "issue_active_pct", *BUSY),
        holds=lambda f: (
            f["eligible_warps"] < 1
            and f["issue_active_pct"] < LATENCY
            and _bubbles(f) >= STALLED
            and f.room >= 1 - SATURATED / 100
            and f.get("tensor_pct") < LATENCY
        ),
        saves=lambda f: min(1.0, _bubbles(f) / 100) * f.room,
        entry="software-pipelining-async-copy",
        action="load the next tile while this one is computed",
        mechanism="Few warps are ready in a cycle: the pipes drain while operands arrive or results mature.",
        explains=("long-scoreboard", "short-scoreboard", "barrier-stalls"),
    ),
    Symptom(
        id="instruction-cache-misses",
        title="Warps wait for instructions",
        bottleneck="latency",
        metric="no_instruction_pct",
        threshold=STALLED,
        needs=WAITS,
        holds=lambda f: f.waits("no_instruction_pct"),
        saves=lambda f: f["no_instruction_pct"] / 100 * f.room,
        entry="oversized-unrolled-body",
        action="unroll less, so that the loop fits the instruction cache",
        mechanism="The code of the loop is larger than the instruction cache, and each pass fetches it anew.",
        explains=("pipeline-bubbles",),
    ),
)
"""In no order: what counts is what each could save."""
