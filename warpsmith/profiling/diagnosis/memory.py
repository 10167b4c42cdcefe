"""Symptoms of memory: what moves, how it is asked for, and what it waits for."""

from __future__ import annotations

from warpsmith.profiling.diagnosis.from_timings import AT_THE_LIMIT
from warpsmith.profiling.diagnosis.symptom import BUSY, ISSUING, SATURATED, STALLED, WAITS, Facts, Symptom

EXCESS = 10.0
"""Percent of sectors or wavefronts beyond the need: the threshold that ncu has for bank conflicts."""

SPILLED = 5.0
"""Percent of L1 sectors that are local memory."""

AMPLIFIED = 1.2
"""Measured over algorithmic bytes from which data was moved again."""

STREAMING_HITS = 60.0
"""Percent of L2 hits; a copy has 50 without any reuse, since its writes count as hits."""

WIDEST = 16
"""Sectors of a request in which every lane asks for 16 neighbouring bytes: none needs more."""

_LOADS, _STORES = "sectors_per_request", "store_sectors_per_request"


def _excess(f: Facts) -> float:
    """Share of the time behind sectors that nobody asked for, at most what useful traffic leaves."""
    share = f["excess_sectors_pct"] / 100 * max(f["l2_busy_pct"] / 100, f.dram, f.get("lg_throttle_pct") / 100)
    if "traffic_amplification" not in f.values:
        return share
    return min(share, 1 - f.dram / max(1.0, f["traffic_amplification"]))


def _moves_only_what_it_must(f: Facts) -> bool:
    """Whether the DRAM's traffic is needed; where that was not counted, whether anything suggests otherwise."""
    if "traffic_amplification" in f.values:
        return f["traffic_amplification"] <= AMPLIFIED
    return f.get("excess_sectors_pct") < EXCESS and f.get("local_sectors_pct") < SPILLED


def _behind_shared(f: Facts) -> float:
    """Share of warp cycles that shared memory's answers or its queue took."""
    return (f["short_scoreboard_pct"] + f["mio_throttle_pct"]) / 100


def _behind_l1(f: Facts) -> float:
    """Share of the time behind L1's traffic: waiting for it, or for what it passes on."""
    waiting = (f["long_scoreboard_pct"] + f["lg_throttle_pct"]) / 100
    return min(1.0, max(waiting, f["l2_busy_pct"] / 100, f.dram))


_BEHIND_EXCESS = ("long-scoreboard", "narrow-accesses", "l2-thrash", "instruction-bound")

SYMPTOMS = (
    Symptom(
        id="dram-saturated",
        title="DRAM is saturated",
        bottleneck="at-the-limit",
        metric="dram_busy_pct",
        threshold=AT_THE_LIMIT,
        needs=(),
        holds=lambda f: 100 * f.dram >= AT_THE_LIMIT and _moves_only_what_it_must(f),
        saves=lambda f: 0.0,
        entry="operator-fusion",
        action="move fewer bytes: fuse with a neighbour, or narrow the types",
        mechanism="The memory moves what the operator needs as fast as a copy would.",
        conclusive=True,
    ),
    Symptom(
        id="uncoalesced-loads",
        title="Loads are not coalesced",
        bottleneck="memory",
        metric=_LOADS,
        threshold=WIDEST,
        needs=("excess_sectors_pct", "l2_busy_pct", "dram_busy_pct"),
        holds=lambda f: (
            f["excess_sectors_pct"] >= EXCESS
            and (f[_LOADS] > WIDEST or f[_LOADS] >= f.get(_STORES))
        ),
        saves=_excess,
        entry="coalesced-access",
        action="let neighbouring lanes load neighbouring addresses",
        mechanism="Lanes of one load lie in different 32-byte sectors, so most of what L2 delivers is not used.",
        explains=_BEHIND_EXCESS,
    ),
    Symptom(
        id="sparse-stores",
        title="Stores are not coalesced",
        bottleneck="memory",
        metric=_STORES,
        threshold=WIDEST,
        needs=("excess_sectors_pct", "l2_busy_pct", "dram_busy_pct"),
        holds=lambda f: (
            f["excess_sectors_pct"] >= EXCESS
            and (f[_STORES] > WIDEST or f[_STORES] > f.get(_LOADS))
        ),
        saves=_excess,
        entry="coalesced-access",
        action="let neighbouring lanes store neighbouring addresses, through shared memory where it must be",
        mechanism="Each lane writes a small part of a sector of its own, and L2 takes a whole sector for each.",
        explains=_BEHIND_EXCESS,
    ),
    Symptom(
        id="narrow-accesses",
        title="The queue for loads and stores is full",
        bottleneck="memory",
        metric="lg_throttle_pct",
        threshold=STALLED,
        needs=("issue_active_pct", "dram_busy_pct"),
        holds=lambda f: (
            f["lg_throttle_pct"] >= STALLED and f["issue_active_pct"] < ISSUING and f.dram < SATURATED / 100
        ),
        saves=lambda f: f["lg_throttle_pct"] / 100 * (1 - f.dram),
        entry="vectorized-memory-access",
        action="move 16 bytes a lane with one instruction",
        mechanism="Each access takes a place in the queue whatever its width, and narrow ones fill it.",
        explains=("long-scoreboard",),
    ),
    Symptom(
        id="long-scoreboard",
        title="Warps wait for global memory",
        bottleneck="latency",
        metric="long_scoreboard_pct",
        threshold=STALLED,
        needs=WAITS,
        holds=lambda f: f.waits("long_scoreboard_pct"),
        saves=lambda f: f["long_scoreboard_pct"] / 100 * f.room,
        entry="memory-level-parallelism",
        action="put more independent loads in flight",
        mechanism="Too few loads are in flight to hide the latency of global memory, and the DRAM has time left.",
    ),
    Symptom(
        id="short-scoreboard",
        title="Warps wait for shared memory",
        bottleneck="latency",
        metric="short_scoreboard_pct",
        threshold=STALLED,
        needs=WAITS,
        holds=lambda f: f.waits("short_scoreboard_pct"),
        saves=lambda f: f["short_scoreboard_pct"] / 100 * f.room,
        entry="register-tiling",
        action="use each value from shared memory for several results, from registers",
        mechanism="Each step begins with an answer from shared memory or a special function.",
    ),
    Symptom(
        id="bank-conflicts",
        title="Shared memory has bank conflicts",
        bottleneck="memory",
        metric="shared_excess_pct",
        threshold=EXCESS,
        needs=("short_scoreboard_pct", "mio_throttle_pct"),
        holds=lambda f: f["shared_excess_pct"] >= EXCESS and _behind_shared(f) >= EXCESS / 100,
        saves=lambda f: f["shared_excess_pct"] / 100 * _behind_shared(f),
        entry="bank-conflict-padding-swizzle",
        action="pad or swizzle the tile in shared memory",
        mechanism="Lanes of one request meet in the same bank and are served one after another.",
        explains=("short-scoreboard", "long-scoreboard", "barrier-stalls", "instruction-bound"),
    ),
    Symptom(
        id="local-memory-spills",
        title="Registers spill to local memory",
        bottleneck="memory",
        metric="local_sectors_pct",
        threshold=SPILLED,
        needs=("long_scoreboard_pct", "lg_throttle_pct", "l2_busy_pct", "dram_busy_pct"),
        holds=lambda f: f["local_sectors_pct"] >= SPILLED,
        saves=lambda f: f["local_sectors_pct"] / 100 * _behind_l1(f),
        entry="register-spills",
        action="hold fewer values a thread until nothing spills",
        mechanism="Values that find no register move to memory and back inside the loop.",
        explains=(*_BEHIND_EXCESS, "occupancy-registers", "special-functions", "short-scoreboard"),
    ),
    Symptom(
        id="l2-thrash",
        title="L2 loses data before it is used again",
        bottleneck="memory",
        metric="traffic_amplification",
        threshold=AMPLIFIED,
        needs=("l2_hit_pct", "dram_busy_pct"),
        holds=lambda f: (
            f["traffic_amplification"] > AMPLIFIED
            and (f["l2_hit_pct"] < STREAMING_HITS or f.dram >= SATURATED / 100)
        ),
        saves=lambda f: (1 - 1 / f["traffic_amplification"]) * f.dram,
        entry="l2-aware-rasterization",
        action="order the work so that data is used again while L2 still has it",
        mechanism="What is used again has left the cache by then and comes from DRAM another time.",
        explains=("long-scoreboard",),
    ),
    Symptom(
        id="atomics-contention",
        title="Atomics queue at few addresses",
        bottleneck="latency",
        metric="atomics_per_request",
        threshold=0.1,
        needs=BUSY,
        holds=lambda f: f["atomics_per_request"] >= 0.1 and f.idle,
        saves=lambda f: f.room * min(1.0, 2 * f["atomics_per_request"]),
        entry="atomics-contention-single-address",
        action="add up in registers and shared memory first, then one atomic a block",
        mechanism="Atomics on one address are served one after another in one slice of L2.",
        explains=("long-scoreboard", "narrow-accesses", "pipeline-bubbles", "occupancy-registers",
                  "occupancy-shared-memory", "occupancy-blocks"),
    ),
)  # fmt: skip
"""In no order: what counts is what each could save."""
