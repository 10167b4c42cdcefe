"""Symptoms of latency: launch overhead, the grid, limits of the occupancy, and stalls of resident warps."""

from __future__ import annotations

import math
from collections.abc import Callable

from warpsmith.profiling.diagnosis.symptom import (
    BUSY,
    LOW_USE,
    SATURATED,
    STALLED,
    Facts,
    Symptom,
    stall_symptom,
)

LAUNCH_US = 5.0
"""Time of a launch on the host, in microseconds, that is assumed where it was not measured."""

TAIL = 10.0
"""Percent of the waves that the last, partial wave leaves empty."""

BALANCED = 0.75
"""Share of the busiest multiprocessor's cycles below which the others are called idle; planted kernels that are
even have 0.96 and more."""

OCCUPANCY = 80.0
"""Percent of the warps below which ncu's rules call the occupancy that resources allow low."""

BINDING = 0.75
"""Share of the allowed occupancy that must be reached: below it, resources are not the limit."""

ELIGIBLE = 1.0
"""Eligible warps a cycle below which a scheduler has cycles with nothing to issue."""

MATRIX = 5.0
"""Percent of tensor-core use above which a kernel counts as one that uses tensor cores."""

_LIMITS = ("limit_registers", "limit_shared", "limit_warps", "limit_blocks")
_OCCUPANCY = ("occupancy_pct", "issue_active_pct", *_LIMITS, *BUSY)


def _host_us(f: Facts) -> float:
    """Return the host's part of a call in microseconds: measured, or `LAUNCH_US` for each launch."""
    return f.get("host_overhead_us", LAUNCH_US * f["launch_count"])


def _multiprocessors(f: Facts) -> float:
    """Return the device's number of multiprocessors: a wave is as many blocks as all of them hold."""
    return f["blocks"] / (f["waves"] * min(f[limit] for limit in _LIMITS))


def _empty_share(f: Facts) -> float:
    """Return the share of the waves that is empty. It uses whole blocks, because `waves` may be rounded."""
    wave = round(f["blocks"] / f["waves"])
    return 1 - f["blocks"] / (wave * math.ceil(f["blocks"] / wave))


def _active_share(f: Facts) -> float:
    """Return the active cycles of the average multiprocessor over the busiest's, as if the last wave were full."""
    return f["active_share_pct"] / 100 / (1 - _empty_share(f))


def _limited_by_resources(f: Facts) -> bool:
    """Return whether resources keep out warps that the kernel could use; tensor-core kernels need few warps."""
    return (
        f["occupancy_limit_pct"] < OCCUPANCY
        and f.get("tensor_pct") < MATRIX
        and f["occupancy_pct"] >= BINDING * f["occupancy_limit_pct"]
        and f["issue_active_pct"] < LOW_USE
        and f.is_idle
    )


def _block_slots(f: Facts) -> float:
    """Return the blocks that fit on a multiprocessor, regardless of their registers and shared memory."""
    return min(f["limit_warps"], f["limit_blocks"])


def _saved_by_more_warps(f: Facts) -> float:
    """Return the share of the time that more warps save, up to the point where a unit is busy."""
    return max(0.0, 1 - max(f["occupancy_limit_pct"] / 100, 1 - f.idle_share))


def _pipeline_waits(f: Facts) -> float:
    """Return the percent of warp cycles in pipeline waits; in a matmul, waits for operands count as well."""
    stalls = f["wait_pct"] + f.get("gmma_pct")
    if f.get("tensor_pct") >= MATRIX:
        stalls += sum(f.get(name) for name in ("long_scoreboard_pct", "short_scoreboard_pct", "barrier_stall_pct"))
    return stalls


def _occupancy_symptom(
    symptom_id: str,
    title: str,
    resource: str,
    is_tightest: Callable[[Facts], bool],
    *,
    entries: tuple[str, ...],
    action: str,
    mechanism: str,
) -> Symptom:
    """Return the symptom of an occupancy that `resource` limits the most."""
    return Symptom(
        id=symptom_id,
        title=title,
        bottleneck="latency",
        metric="occupancy_limit_pct",
        threshold=(
            f"resources limit the occupancy to less than {OCCUPANCY:g} %, {resource} most of all, "
            f"with fewer than {LOW_USE:g} % of cycles issuing"
        ),
        needs=_OCCUPANCY,
        holds=lambda f: _limited_by_resources(f) and is_tightest(f),
        saves=_saved_by_more_warps,
        entries=entries,
        action=action,
        mechanism=mechanism,
        explains=("long-scoreboard", "short-scoreboard", "pipeline-bubbles"),
    )


_WAITING = ("long-scoreboard", "short-scoreboard", "barrier-stalls", "pipeline-bubbles", "narrow-accesses",
            "instruction-cache-misses")  # fmt: skip
_FEW_WARPS = ("occupancy-registers", "occupancy-shared-memory", "occupancy-blocks")

SYMPTOMS = (
    Symptom(
        id="launch-bound",
        title="Launching costs more than the kernels",
        bottleneck="launch",
        metric="time_us",
        threshold=(
            f"time of the kernels below the host's part of the call; "
            f"where that was not measured, below {LAUNCH_US:g} us a launch"
        ),
        needs=("launch_count",),
        holds=lambda f: f["time_us"] < _host_us(f),
        saves=lambda f: _host_us(f) / (_host_us(f) + f["time_us"]),
        entries=("cuda-graphs-for-launch-bound", "operator-fusion", "triton-python-launch-overhead-tiny-kernels"),
        action="capture the call as a graph, or fuse it with its neighbours",
        mechanism="The device has finished before the host can give it the next thing to do.",
        conclusive=True,
    ),
    Symptom(
        id="grid-too-small",
        title="The grid is too small",
        bottleneck="latency",
        metric="waves",
        threshold="less than one wave, with fewer blocks than the device has multiprocessors",
        needs=("blocks", *_LIMITS),
        holds=lambda f: f["waves"] < 1 and f["blocks"] < round(_multiprocessors(f)),
        saves=lambda f: 1 - f["blocks"] / _multiprocessors(f),
        entries=("tiny-grid", "split-reduction", "split-k-stream-k"),
        action="split the work over more blocks",
        mechanism="There are fewer blocks than multiprocessors, and those without one do nothing.",
        explains=(*_WAITING, *_FEW_WARPS),
    ),
    Symptom(
        id="tail-wave",
        title="The last wave of blocks is nearly empty",
        bottleneck="latency",
        metric="waves",
        threshold=f"a last, partial wave that leaves {TAIL:g} % or more of the waves empty",
        needs=("blocks", *BUSY),
        holds=lambda f: f["waves"] > 1 and 100 * _empty_share(f) >= TAIL and f.idle_share >= 1 - SATURATED / 100,
        saves=lambda f: min(_empty_share(f), f.idle_share),
        entries=("persistent-grid", "triton-persistent-grid-loop", "split-k-stream-k"),
        action="fit the grid to whole waves, or loop over tiles in one wave",
        mechanism="The blocks left over from the full waves run by themselves while most of the device waits.",
    ),
    Symptom(
        id="serial-tail",
        title="A few long blocks run alone",
        bottleneck="latency",
        metric="active_share_pct",
        threshold=(
            f"the average multiprocessor active for less than {BALANCED:g} of the busiest's cycles, "
            "after the share that the last wave leaves empty, with one wave or more"
        ),
        needs=("waves", "blocks"),
        holds=lambda f: f["waves"] >= 1 and _active_share(f) < BALANCED,
        saves=lambda f: max(0.0, 1 - _active_share(f)),
        entries=("split-reduction", "persistent-grid", "split-k-stream-k"),
        action="split the work of the longest blocks, or start them first",
        mechanism="Most multiprocessors have finished their blocks and wait for the one that has not.",
        explains=(*_WAITING, *_FEW_WARPS),
    ),
    _occupancy_symptom(
        "occupancy-registers",
        "Registers limit the occupancy",
        "registers",
        lambda f: f["limit_registers"] < _block_slots(f) and f["limit_registers"] <= f["limit_shared"],
        entries=("occupancy-by-resource-budget", "triton-num-warps-by-row-length", "register-spills"),
        action="use fewer registers a thread, down to the next step of resident blocks",
        mechanism="A block's registers leave room for too few warps to hide the latency of their instructions.",
    ),
    _occupancy_symptom(
        "occupancy-shared-memory",
        "Shared memory limits the occupancy",
        "shared memory",
        lambda f: f["limit_shared"] < _block_slots(f) and f["limit_shared"] <= f["limit_registers"],
        entries=("occupancy-by-resource-budget", "triton-num-stages-pipelining", "multiple-rows-per-block"),
        action="use less shared memory a block, or more warps on the same tile",
        mechanism="A block's shared memory leaves room for too few warps to hide their latency.",
    ),
    _occupancy_symptom(
        "occupancy-blocks",
        "The size of the blocks limits the occupancy",
        "slots for blocks or warps",
        lambda f: _block_slots(f) <= min(f["limit_registers"], f["limit_shared"]),
        entries=("multiple-rows-per-block", "triton-num-warps-by-row-length", "occupancy-by-resource-budget"),
        action="choose blocks of 128 to 512 threads that divide a multiprocessor's warps",
        mechanism="A multiprocessor runs out of slots for blocks before it is full of warps.",
    ),
    stall_symptom(
        "barrier-stalls",
        "Warps wait at barriers",
        "barrier_stall_pct",
        "at barriers",
        entries=(
            "excess-synchronization",
            "multiple-rows-per-block",
            "triton-num-warps-by-row-length",
            "warp-specialization",
        ),
        action="meet less often, in smaller groups, with equal work before each barrier",
        mechanism="Most warps of a block have arrived and wait for the slowest.",
    ),
    Symptom(
        id="pipeline-bubbles",
        title="Load and compute take turns",
        bottleneck="latency",
        metric="eligible_warps",
        threshold=(
            f"fewer than {ELIGIBLE:g} warp eligible a cycle, with {STALLED:g} % of warp cycles or more "
            f"in waits of a pipeline and fewer than {LOW_USE:g} % of cycles issuing"
        ),
        needs=("wait_pct", "issue_active_pct", *BUSY),
        holds=lambda f: (
            f["eligible_warps"] < ELIGIBLE
            and f["issue_active_pct"] < LOW_USE
            and _pipeline_waits(f) >= STALLED
            and f.idle_share >= 1 - SATURATED / 100
            and f.get("tensor_pct") < LOW_USE
        ),
        saves=lambda f: min(1.0, _pipeline_waits(f) / 100) * f.idle_share,
        entries=(
            "software-pipelining-async-copy",
            "triton-num-stages-pipelining",
            "warp-specialization",
            "tma-bulk-copy",
            "triton-warp-specialize-hopper",
        ),
        action="load the next tile while this one is computed",
        mechanism="Few warps are ready in a cycle: the pipes drain while operands arrive or results mature.",
        explains=("long-scoreboard", "short-scoreboard", "barrier-stalls"),
    ),
    stall_symptom(
        "instruction-cache-misses",
        "Warps wait for instructions",
        "no_instruction_pct",
        "for an instruction",
        entries=("oversized-unrolled-body",),
        action="unroll less, so that the loop fits the instruction cache",
        mechanism="The code of the loop is larger than the instruction cache, and each pass fetches it anew.",
        explains=("pipeline-bubbles",),
    ),
)
"""Order does not matter: the classifier ranks symptoms by what each could save."""
