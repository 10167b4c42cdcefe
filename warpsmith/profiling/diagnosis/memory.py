"""Symptoms of memory: needless traffic, access patterns, and waiting for memory."""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.profiling.diagnosis.from_timings import AT_THE_LIMIT
from warpsmith.profiling.diagnosis.symptom import (
    BUSY,
    ISSUING,
    LOW_USE,
    SATURATED,
    STALL_FACTS,
    STALLED,
    Facts,
    Symptom,
    stall_symptom,
    waiting,
)

EXCESS = 10.0
"""Percent of sectors or wavefronts in excess: ncu's threshold for bank conflicts."""

SPILLED = 5.0
"""Percent of L1 sectors that belong to local memory."""

AMPLIFIED = 1.2
"""Ratio of measured to algorithmic bytes above which data was moved more than once."""

STREAMING_HITS = 60.0
"""Percent of L2 hits below which little data is reused; a copy has 50 without any reuse, because writes count as
hits."""

ATOMICS = 0.1
"""Atomics a request above which they belong to the inner loop."""

WIDEST = 16
"""Sectors of a request in which every lane asks for 16 contiguous bytes: no request needs more."""

NARROW = 2
"""Sectors of a full warp's request up to which a lane asks for at most two bytes."""

FULL = 24
"""Active lanes of a warp from which its requests count as full."""

_LOADS, _STORES = "sectors_per_request", "store_sectors_per_request"


def _excess_share(f: Facts) -> float:
    """Return the share of the time spent on sectors that nobody asked for, at most what useful traffic leaves."""
    share = (
        f["excess_sectors_pct"] / 100 * max(f["l2_busy_pct"] / 100, f.dram_share, f.get("lg_throttle_pct") / 100)
    )
    if "traffic_amplification" not in f.values:
        return share
    return min(share, 1 - f.dram_share / max(1.0, f["traffic_amplification"]))


def _moves_only_needed_bytes(f: Facts) -> bool:
    """Return whether all DRAM traffic is needed; if that was not counted, whether no symptom suggests excess
    traffic."""
    if "traffic_amplification" in f.values:
        return f["traffic_amplification"] <= AMPLIFIED
    return f.get("excess_sectors_pct") < EXCESS and f.get("local_sectors_pct") < SPILLED


def _shared_memory_share(f: Facts) -> float:
    """Return the share of warp cycles spent waiting for shared memory or its queue."""
    return (f["short_scoreboard_pct"] + f["mio_throttle_pct"]) / 100


def _l1_share(f: Facts) -> float:
    """Return the share of the time spent on L1's traffic: waiting for it, or for what it passes on to L2 and
    DRAM."""
    waiting = (f["long_scoreboard_pct"] + f["lg_throttle_pct"]) / 100
    return min(1.0, max(waiting, f["l2_busy_pct"] / 100, f.dram_share))


def _scatter_symptom(
    symptom_id: str,
    title: str,
    metric: str,
    spread: str,
    is_wider: Callable[[Facts], bool],
    *,
    entries: tuple[str, ...],
    action: str,
    mechanism: str,
) -> Symptom:
    """Return the symptom of accesses that touch more sectors than their bytes fill."""
    return Symptom(
        id=symptom_id,
        title=title,
        bottleneck="memory",
        metric=metric,
        threshold=f"{EXCESS:g} % or more of the sectors in excess, and {spread}",
        needs=("excess_sectors_pct", "l2_busy_pct", "dram_busy_pct"),
        holds=lambda f: f["excess_sectors_pct"] >= EXCESS and (f[metric] > WIDEST or is_wider(f)),
        saves=_excess_share,
        entries=entries,
        action=action,
        mechanism=mechanism,
        explains=_CAUSED_BY_EXCESS,
    )


_CAUSED_BY_EXCESS = ("long-scoreboard", "narrow-accesses", "narrow-loads", "l2-thrash", "instruction-bound")

SYMPTOMS = (
    Symptom(
        id="dram-saturated",
        title="DRAM is saturated",
        bottleneck="at-the-limit",
        metric="dram_busy_pct",
        threshold=f"{AT_THE_LIMIT:g} % or more of the bandwidth that a copy reaches, with no traffic in excess",
        needs=(),
        holds=lambda f: 100 * f.dram_share >= AT_THE_LIMIT and _moves_only_needed_bytes(f),
        saves=lambda f: 0.0,
        entries=("operator-fusion", "low-precision-io-fp32-accumulate", "single-pass-online-reduction"),
        action="move fewer bytes: fuse with a neighbour, or narrow the types",
        mechanism="The memory moves what the operator needs as fast as a copy would.",
        conclusive=True,
    ),
    _scatter_symptom(
        "uncoalesced-loads",
        "Loads are not coalesced",
        _LOADS,
        f"a load over more than {WIDEST} sectors, or over no fewer than a store",
        lambda f: f[_LOADS] >= f.get(_STORES),
        entries=("coalesced-access", "shared-memory-tiling", "vectorized-memory-access", "one-thread-per-row"),
        action="let neighbouring lanes load neighbouring addresses",
        mechanism="Lanes of one load lie in different 32-byte sectors, so most of what L2 delivers is not used.",
    ),
    _scatter_symptom(
        "sparse-stores",
        "Stores are not coalesced",
        _STORES,
        f"a store over more than {WIDEST} sectors, or over more than a load",
        lambda f: f[_STORES] > f.get(_LOADS),
        entries=("coalesced-access", "shared-memory-tiling"),
        action="let neighbouring lanes store neighbouring addresses, through shared memory where it must be",
        mechanism="Each lane writes a small part of a sector of its own, and L2 takes a whole sector for each.",
    ),
    Symptom(
        id="narrow-loads",
        title="Loads are one or two bytes a lane",
        bottleneck="memory",
        metric=_LOADS,
        threshold=(
            f"full warps whose loads take at most {NARROW} sectors and miss L1 more often than not, "
            + waiting("for global or local memory")
        ),
        needs=("threads_per_instruction", "l1_hit_pct", "long_scoreboard_pct", *STALL_FACTS),
        holds=lambda f: (
            f[_LOADS] <= NARROW
            and f["threads_per_instruction"] >= FULL
            and f["l1_hit_pct"] < 50
            and f.stalls_on("long_scoreboard_pct")
        ),
        saves=lambda f: f["long_scoreboard_pct"] / 100 * f.idle_share,
        entries=("vectorized-memory-access", "triton-constexpr-specialisation-of-strides", "tma-bulk-copy"),
        action="load 16 bytes a lane with one instruction and unpack them in registers",
        mechanism="A request of 32 lanes brings one or two sectors, so a warp waits as long as for sixteen.",
        explains=("long-scoreboard",),
    ),
    Symptom(
        id="narrow-accesses",
        title="The queue for loads and stores is full",
        bottleneck="memory",
        metric="lg_throttle_pct",
        threshold=(
            f"{STALLED:g} % of warp cycles or more behind a full queue for loads and stores, "
            f"with fewer than {ISSUING:g} % of cycles issuing and the DRAM below {SATURATED:g} % of its ceiling"
        ),
        needs=("issue_active_pct", "dram_busy_pct"),
        holds=lambda f: (
            f["lg_throttle_pct"] >= STALLED and f["issue_active_pct"] < ISSUING and f.dram_share < SATURATED / 100
        ),
        saves=lambda f: f["lg_throttle_pct"] / 100 * (1 - f.dram_share),
        entries=("vectorized-memory-access", "triton-constexpr-specialisation-of-strides", "tma-bulk-copy"),
        action="move 16 bytes a lane with one instruction",
        mechanism="Each access takes a place in the queue whatever its width, and narrow ones fill it.",
        explains=("long-scoreboard",),
    ),
    stall_symptom(
        "long-scoreboard",
        "Warps wait for global memory",
        "long_scoreboard_pct",
        "for global or local memory",
        entries=(
            "memory-level-parallelism",
            "vectorized-memory-access",
            "software-pipelining-async-copy",
            "triton-num-stages-pipelining",
            "occupancy-by-resource-budget",
        ),
        action="put more independent loads in flight",
        mechanism="Too few loads are in flight to hide the latency of global memory, and the DRAM has time left.",
    ),
    stall_symptom(
        "short-scoreboard",
        "Warps wait for shared memory",
        "short_scoreboard_pct",
        "for shared memory or special functions",
        entries=("register-tiling", "bank-conflict-padding-swizzle"),
        action="use each value from shared memory for several results, from registers",
        mechanism="Each step begins with an answer from shared memory or a special function.",
    ),
    Symptom(
        id="bank-conflicts",
        title="Shared memory has bank conflicts",
        bottleneck="memory",
        metric="shared_excess_pct",
        threshold=(
            f"{EXCESS:g} % or more of shared-memory wavefronts in excess, "
            f"and {EXCESS:g} % or more of warp cycles waiting for shared memory"
        ),
        needs=("short_scoreboard_pct", "mio_throttle_pct"),
        holds=lambda f: f["shared_excess_pct"] >= EXCESS and _shared_memory_share(f) >= EXCESS / 100,
        saves=lambda f: f["shared_excess_pct"] / 100 * _shared_memory_share(f),
        entries=("bank-conflict-padding-swizzle", "tma-bulk-copy", "shared-memory-tiling"),
        action="pad or swizzle the tile in shared memory",
        mechanism="Lanes of one request meet in the same bank and are served one after another.",
        explains=("short-scoreboard", "long-scoreboard", "barrier-stalls", "instruction-bound"),
    ),
    Symptom(
        id="local-memory-spills",
        title="Registers spill to local memory",
        bottleneck="memory",
        metric="local_sectors_pct",
        threshold=f"{SPILLED:g} % or more of L1 sectors in local memory",
        needs=("long_scoreboard_pct", "lg_throttle_pct", "l2_busy_pct", "dram_busy_pct"),
        holds=lambda f: f["local_sectors_pct"] >= SPILLED,
        saves=lambda f: f["local_sectors_pct"] / 100 * _l1_share(f),
        entries=(
            "register-spills",
            "triton-oversized-block-spills",
            "occupancy-by-resource-budget",
            "triton-two-pass-online-softmax-chunked",
        ),
        action="hold fewer values a thread until nothing spills",
        mechanism="Values that find no register move to memory and back inside the loop.",
        explains=(*_CAUSED_BY_EXCESS, "occupancy-registers", "special-functions", "short-scoreboard"),
    ),
    Symptom(
        id="l2-thrash",
        title="L2 loses data before it is used again",
        bottleneck="memory",
        metric="traffic_amplification",
        threshold=(
            f"measured bytes above {AMPLIFIED:g} times the algorithmic bytes, "
            f"with L2 hits below {STREAMING_HITS:g} % or the DRAM at {SATURATED:g} % of its ceiling or more"
        ),
        needs=("l2_hit_pct", "dram_busy_pct"),
        holds=lambda f: (
            f["traffic_amplification"] > AMPLIFIED
            and (f["l2_hit_pct"] < STREAMING_HITS or f.dram_share >= SATURATED / 100)
        ),
        saves=lambda f: (1 - 1 / f["traffic_amplification"]) * f.dram_share,
        entries=(
            "l2-aware-rasterization",
            "streaming-cache-hints",
            "triton-eviction-policy-hints",
            "multi-pass-over-dram",
        ),
        action="order the work so that data is used again while L2 still has it",
        mechanism="What is used again has left the cache by then and comes from DRAM another time.",
        explains=("long-scoreboard",),
    ),
    Symptom(
        id="atomics-contention",
        title="Atomics queue at few addresses",
        bottleneck="latency",
        metric="atomics_per_request",
        threshold=(
            f"{ATOMICS:g} atomics a request or more, with the DRAM below {SATURATED:g} % of its ceiling "
            f"and the pipes below {LOW_USE:g} %"
        ),
        needs=BUSY,
        holds=lambda f: f["atomics_per_request"] >= ATOMICS and f.is_idle,
        saves=lambda f: f.idle_share * min(1.0, 2 * f["atomics_per_request"]),
        entries=("atomics-contention-single-address", "split-reduction", "triton-atomic-add-nondeterminism"),
        action="add up in registers and shared memory first, then one atomic a block",
        mechanism="Atomics on one address are served one after another in one slice of L2.",
        explains=(
            "long-scoreboard",
            "narrow-accesses",
            "pipeline-bubbles",
            "occupancy-registers",
            "occupancy-shared-memory",
            "occupancy-blocks",
        ),
    ),
)
"""Order does not matter: the classifier ranks symptoms by what each could save."""
