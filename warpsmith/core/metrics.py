"""Names of metrics in plans, profiles, counters and knowledge entries, with meaning and unit."""

from __future__ import annotations

TIMED: dict[str, str] = {
    "dram_pct": "achieved bandwidth over the measured copy ceiling, percent",
    "compute_pct": "achieved arithmetic rate over the measured ceiling, percent",
    "ceiling_pct": "roofline floor over measured time, percent",
    "worst_ceiling_pct": "the same at the workload that is furthest behind, percent",
    "small_ceiling_pct": "the same at the smallest workload, percent",
    "host_overhead_us": "time a call costs beyond the kernels, microseconds",
    "time_us": "time a call, microseconds",
    "thread_scaling": "time on one thread over time on all threads",
    "size_slope": "time a byte at the largest size over time a byte at the smallest",
    "accuracy": "largest error as a share of its bound",
}
"""Metrics from timings and arithmetic."""

COMPILED: dict[str, str] = {
    "registers_per_thread": "registers a thread",
    "shared_bytes": "shared memory a block, bytes",
    "spill_bytes": "local memory a thread used for spills, bytes",
    "vectorized_loops": "loops that the compiler vectorised",
    "missed_loops": "loops that the compiler could not vectorise",
    "scalar_calls": "calls of scalar math functions in innermost loops",
    "serial_loops": "loops that reduce one number after another, in order",
    "scan_loops": "loops in which each stored result needs the one before",
    "row_passes": "loops over the same data inside one loop",
    "data_sweeps": "loops over all of the data, one after another",
    "parallel_regions": "places in the source that start threads",
}
"""Metrics from the compiler's report, the assembly and the source."""

COUNTED: dict[str, str] = {
    "tensor_pct": "tensor-core pipe utilisation, percent",
    "occupancy_pct": "achieved occupancy, percent",
    "occupancy_limit_pct": "occupancy that registers, shared memory and block size allow, percent",
    "limit_registers": "blocks a multiprocessor that registers allow",
    "limit_shared": "blocks a multiprocessor that shared memory allows",
    "limit_warps": "blocks a multiprocessor that its warps allow",
    "limit_blocks": "blocks a multiprocessor that its block slots allow",
    "blocks": "blocks of the grid",
    "block_threads": "threads a block",
    "waves": "waves of blocks over the device",
    "active_share_pct": "active cycles of the average multiprocessor over those of the busiest, percent",
    "launch_count": "kernel launches a call",
    "dram_busy_pct": "counted DRAM traffic over its peak, percent",
    "sm_busy_pct": "the busiest pipe or issue slot of the multiprocessors over its peak, percent",
    "l2_busy_pct": "L2 throughput over its peak, percent",
    "l2_hit_pct": "L2 hit rate, percent",
    "l1_hit_pct": "L1 hit rate, percent",
    "dram_bytes": "bytes read from and written to DRAM",
    "traffic_amplification": "measured bytes over algorithmic bytes",
    "sectors_per_request": "32-byte sectors a global load request",
    "store_sectors_per_request": "32-byte sectors a global store request",
    "excess_sectors_pct": "L2 sectors of global accesses beyond what their bytes need, percent of all",
    "bank_conflicts": "shared-memory bank conflicts a request",
    "shared_excess_pct": "shared-memory wavefronts beyond what their bytes need, percent of all",
    "local_sectors_pct": "L1 sectors that are local memory, percent of all",
    "issue_active_pct": "cycles in which a scheduler issued, percent",
    "eligible_warps": "warps a scheduler could choose from, a cycle",
    "long_scoreboard_pct": "stalls on global or local memory, percent of warp cycles",
    "short_scoreboard_pct": "stalls on shared memory or special functions, percent of warp cycles",
    "barrier_stall_pct": "stalls at barriers, percent of warp cycles",
    "lg_throttle_pct": "stalls on a full queue for global and local memory, percent of warp cycles",
    "mio_throttle_pct": "stalls on a full queue for shared memory and special functions, percent of warp cycles",
    "math_throttle_pct": "stalls on a busy arithmetic pipe, percent of warp cycles",
    "wait_pct": "stalls of fixed latency, percent of warp cycles",
    "no_instruction_pct": "stalls on instruction fetch, percent of warp cycles",
    "membar_pct": "stalls on memory barriers, percent of warp cycles",
    "gmma_pct": "stalls on asynchronous tensor-core instructions, percent of warp cycles",
    "fp64_pct": "fp64 pipe utilisation, percent",
    "fp64_share_pct": "fp64 operations over all floating-point operations, percent",
    "fma_pct": "fp32 multiply-add pipe utilisation, percent",
    "alu_pct": "integer and logic pipe utilisation, percent",
    "xu_pct": "special-function pipe utilisation, percent",
    "conversion_pct": "conversions between integers and floats over special-function instructions, percent",
    "flops_counted": "floating-point operations that the kernel executed, tensor cores left out",
    "threads_per_instruction": "active threads a warp instruction, of 32",
    "atomics_per_request": "atomic and reduction requests over all global memory requests",
    "atomic_conflict_pct": "L2 atomic unit throughput over its peak, percent",
    "instructions": "warp instructions that were executed",
}
"""Metrics from hardware counters; a counter that the tool did not report is absent, never 0."""

METRICS: dict[str, str] = {**TIMED, **COMPILED, **COUNTED}
"""All metrics."""
