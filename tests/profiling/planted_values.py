"""What the counters of an H200 read for kernels with one planted fault, and for kernels without one.

SOFTMAX is a real report. The others follow from arithmetic on the kernels of benchmarks/symptoms: sectors a
request, blocks a multiprocessor, bytes over bandwidth, latency over loads in flight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from warpsmith.profiling.counters import Advice, Counters, Launch

SOFTMAX = {
    "registers_per_thread": 32, "shared_bytes": 64, "tensor_pct": 0, "occupancy_pct": 93.219,
    "occupancy_limit_pct": 100, "limit_registers": 4, "limit_shared": 14, "limit_warps": 4, "limit_blocks": 32,
    "blocks": 8192, "block_threads": 512, "waves": 15.515, "dram_busy_pct": 81.383, "sm_busy_pct": 61.323,
    "l2_busy_pct": 91.333, "l2_hit_pct": 50.585, "l1_hit_pct": 0, "dram_bytes": 244225536,
    "sectors_per_request": 16, "store_sectors_per_request": 16, "excess_sectors_pct": 0, "bank_conflicts": 0.025,
    "shared_excess_pct": 0, "local_sectors_pct": 0, "issue_active_pct": 62.982, "eligible_warps": 2.834,
    "long_scoreboard_pct": 39.006, "short_scoreboard_pct": 11.401, "barrier_stall_pct": 17.246,
    "lg_throttle_pct": 0, "mio_throttle_pct": 2.156, "math_throttle_pct": 2.585, "wait_pct": 5.231,
    "no_instruction_pct": 0.268, "membar_pct": 0, "gmma_pct": 0, "fp64_pct": 0, "fp64_share_pct": 0,
    "fma_pct": 30.446, "alu_pct": 38.315, "xu_pct": 27.426, "flops_counted": 301989888,
    "threads_per_instruction": 32, "atomics_per_request": 0, "atomic_conflict_pct": 0, "instructions": 39845888,
}  # fmt: skip
"""A softmax of 8192 rows of 8192 in bfloat16 on an H200, by ncu: 134 MB in, 134 MB out, 62.4 us."""

QUIET = SOFTMAX | {
    "dram_busy_pct": 20, "sm_busy_pct": 30, "l2_busy_pct": 25, "issue_active_pct": 30, "eligible_warps": 1.5,
    "long_scoreboard_pct": 15, "short_scoreboard_pct": 3, "mio_throttle_pct": 1, "barrier_stall_pct": 2,
    "wait_pct": 12, "no_instruction_pct": 1, "fma_pct": 20, "alu_pct": 15, "xu_pct": 2, "l1_hit_pct": 20,
    "sectors_per_request": 4, "store_sectors_per_request": 4, "blocks": 2112, "waves": 2, "block_threads": 256,
    "limit_registers": 8, "limit_warps": 8, "limit_shared": 14, "dram_bytes": 5e7, "active_share_pct": 97,
    "conversion_pct": 5,
}  # fmt: skip
"""A kernel in the middle of everything: no rule has anything to say of it."""


class Plant(NamedTuple):
    """One kernel."""

    expected: str | None
    """The symptom that must come first; None where there must be none."""
    changes: dict[str, float]
    """Values that differ from QUIET."""
    seconds: float = 1e-4
    """Its time on the device."""
    known: dict[str, Any] = {}
    """What the caller of `counters.profile_from_counters` knows."""

    @property
    def values(self) -> dict[str, float]:
        """All of its values."""
        return QUIET | self.changes


PLANTED: dict[str, Plant] = {
    "uncoalesced_transpose": Plant("uncoalesced-loads", {
        "sectors_per_request": 32, "excess_sectors_pct": 77.8, "l2_busy_pct": 88, "dram_busy_pct": 40,
        "l2_hit_pct": 82, "long_scoreboard_pct": 58, "lg_throttle_pct": 24, "issue_active_pct": 6,
        "sm_busy_pct": 26, "eligible_warps": 0.07, "dram_bytes": 5.5e8,
    }, known={"algorithmic_bytes": 5.37e8}),
    "uncoalesced_without_bytes": Plant("uncoalesced-loads", {
        "sectors_per_request": 32, "excess_sectors_pct": 77.8, "l2_busy_pct": 88, "dram_busy_pct": 40,
        "long_scoreboard_pct": 70, "issue_active_pct": 6, "sm_busy_pct": 26,
    }),
    "strided_store": Plant("sparse-stores", {
        "store_sectors_per_request": 32, "excess_sectors_pct": 77.8, "l2_busy_pct": 85, "dram_busy_pct": 86,
        "l2_hit_pct": 45, "long_scoreboard_pct": 40, "issue_active_pct": 5, "sm_busy_pct": 12, "dram_bytes": 6.1e8,
    }, known={"algorithmic_bytes": 1.34e8}),
    "wide_loads_strided_store": Plant("sparse-stores", {
        "sectors_per_request": 16, "store_sectors_per_request": 32, "excess_sectors_pct": 60, "l2_busy_pct": 80,
    }),
    "strided_on_both_sides": Plant("uncoalesced-loads", {
        "sectors_per_request": 32, "store_sectors_per_request": 32, "excess_sectors_pct": 87.5, "l2_busy_pct": 90,
    }),
    "narrow_copy": Plant("narrow-accesses", {
        "lg_throttle_pct": 48, "long_scoreboard_pct": 30, "dram_busy_pct": 50, "sm_busy_pct": 45,
        "issue_active_pct": 40, "sectors_per_request": 2, "store_sectors_per_request": 2,
    }),
    "long_scoreboard": Plant("long-scoreboard", {
        "long_scoreboard_pct": 94, "dram_busy_pct": 28, "sm_busy_pct": 4, "issue_active_pct": 2,
        "eligible_warps": 0.02, "wait_pct": 2, "fma_pct": 0.5, "l2_hit_pct": 3, "dram_bytes": 1.38e8,
    }, known={"algorithmic_bytes": 1.38e8}),
    "pointer_chase_of_one_warp": Plant("long-scoreboard", {
        "long_scoreboard_pct": 96, "dram_busy_pct": 1, "sm_busy_pct": 0.5, "issue_active_pct": 0.6,
        "eligible_warps": 0.01, "wait_pct": 1, "blocks": 264, "block_threads": 32, "waves": 264 / (132 * 32),
        "limit_blocks": 32, "limit_registers": 64, "limit_warps": 64, "limit_shared": 32,
        "occupancy_limit_pct": 50, "occupancy_pct": 3.1, "sectors_per_request": 32, "excess_sectors_pct": 87.5,
        "l2_busy_pct": 2,
    }),
    "pointer_chase_of_one_thread": Plant("long-scoreboard", {
        "long_scoreboard_pct": 96, "dram_busy_pct": 0.3, "sm_busy_pct": 0.5, "issue_active_pct": 0.6,
        "eligible_warps": 0.01, "wait_pct": 1, "blocks": 132, "block_threads": 1, "threads_per_instruction": 1,
        "waves": 132 / (132 * 32), "limit_blocks": 32, "limit_registers": 64, "limit_warps": 64,
        "limit_shared": 32, "occupancy_limit_pct": 50, "occupancy_pct": 1.6, "sectors_per_request": 1,
        "l2_busy_pct": 1,
    }),
    "bank_conflicts": Plant("bank-conflicts", {
        "shared_excess_pct": 96.5, "bank_conflicts": 30.5, "short_scoreboard_pct": 78, "mio_throttle_pct": 15,
        "dram_busy_pct": 0.5, "sm_busy_pct": 55, "issue_active_pct": 5, "long_scoreboard_pct": 1,
        "eligible_warps": 0.06, "wait_pct": 2,
    }),
    "conflicted_transpose_tile": Plant("bank-conflicts", {
        "shared_excess_pct": 93.9, "bank_conflicts": 15.5, "short_scoreboard_pct": 45, "mio_throttle_pct": 8,
        "long_scoreboard_pct": 25, "barrier_stall_pct": 10, "dram_busy_pct": 44, "sm_busy_pct": 30,
        "issue_active_pct": 8, "eligible_warps": 0.1,
    }),
    "short_scoreboard": Plant("short-scoreboard", {
        "short_scoreboard_pct": 55, "dram_busy_pct": 5, "sm_busy_pct": 35, "issue_active_pct": 30,
    }),
    "barrier_bound": Plant("barrier-stalls", {
        "barrier_stall_pct": 88, "wait_pct": 5, "dram_busy_pct": 0, "sm_busy_pct": 12, "issue_active_pct": 12,
        "eligible_warps": 0.12, "long_scoreboard_pct": 0, "threads_per_instruction": 31.5, "blocks": 1056,
        "block_threads": 1024, "waves": 4, "limit_registers": 2, "limit_warps": 2, "limit_shared": 2,
    }),
    "barrier_above_memory": Plant("barrier-stalls", {
        "barrier_stall_pct": 45, "long_scoreboard_pct": 32, "issue_active_pct": 25,
    }),
    "spilling": Plant("local-memory-spills", {
        "local_sectors_pct": 97, "long_scoreboard_pct": 45, "lg_throttle_pct": 25, "l1_hit_pct": 60,
        "l2_busy_pct": 55, "sm_busy_pct": 40, "issue_active_pct": 38, "dram_busy_pct": 6,
    }),
    "spilling_at_255_registers": Plant("local-memory-spills", {
        "local_sectors_pct": 60, "long_scoreboard_pct": 72, "lg_throttle_pct": 3, "l2_busy_pct": 40,
        "sm_busy_pct": 20, "issue_active_pct": 18, "registers_per_thread": 255, "limit_registers": 1,
        "limit_warps": 8, "occupancy_limit_pct": 12.5, "occupancy_pct": 12.2, "waves": 16, "dram_busy_pct": 30,
    }),
    "spilling_through_dram": Plant("local-memory-spills", {
        "local_sectors_pct": 70, "dram_busy_pct": 86, "l2_busy_pct": 80, "long_scoreboard_pct": 60,
        "dram_bytes": 4e8, "l2_hit_pct": 40,
    }, known={"algorithmic_bytes": 1e8}),
    "occupancy_registers": Plant("occupancy-registers", {
        "registers_per_thread": 224, "limit_registers": 2, "limit_warps": 16, "limit_shared": 32, "blocks": 1056,
        "block_threads": 128, "waves": 4, "occupancy_limit_pct": 12.5, "occupancy_pct": 12.3,
        "long_scoreboard_pct": 74, "wait_pct": 14, "dram_busy_pct": 3.5, "sm_busy_pct": 12, "issue_active_pct": 12,
        "eligible_warps": 0.15,
    }),
    "occupancy_shared": Plant("occupancy-shared-memory", {
        "shared_bytes": 98304, "limit_registers": 16, "limit_warps": 16, "limit_shared": 2, "blocks": 528,
        "block_threads": 128, "waves": 2, "occupancy_limit_pct": 12.5, "occupancy_pct": 12.4,
        "long_scoreboard_pct": 85, "dram_busy_pct": 3.5, "sm_busy_pct": 6, "issue_active_pct": 6,
        "eligible_warps": 0.08, "wait_pct": 5,
    }),
    "occupancy_blocks": Plant("occupancy-blocks", {
        "limit_registers": 64, "limit_warps": 64, "limit_shared": 32, "limit_blocks": 32, "blocks": 16896,
        "block_threads": 32, "waves": 4, "occupancy_limit_pct": 50, "occupancy_pct": 46,
        "long_scoreboard_pct": 90, "dram_busy_pct": 15, "sm_busy_pct": 5, "issue_active_pct": 4,
        "eligible_warps": 0.05, "wait_pct": 3,
    }),
    "tiny_grid": Plant("grid-too-small", {
        "blocks": 8, "waves": 8 / 1056, "occupancy_pct": 12.5, "long_scoreboard_pct": 92, "dram_busy_pct": 2.5,
        "sm_busy_pct": 0.4, "issue_active_pct": 6, "eligible_warps": 0.07, "no_instruction_pct": 3,
    }),
    "half_of_the_multiprocessors": Plant("grid-too-small", {
        "blocks": 64, "waves": 64 / 1056, "occupancy_pct": 12.5, "long_scoreboard_pct": 92, "dram_busy_pct": 12,
        "sm_busy_pct": 3, "issue_active_pct": 6,
    }),
    "tail_wave": Plant("tail-wave", {
        "blocks": 278, "waves": 278 / 264, "block_threads": 1024, "limit_registers": 2, "limit_warps": 2,
        "limit_shared": 2, "sm_busy_pct": 68, "fma_pct": 67, "issue_active_pct": 96, "wait_pct": 22,
        "dram_busy_pct": 0.5, "occupancy_pct": 97, "eligible_warps": 9, "long_scoreboard_pct": 0,
    }),
    "tail_wave_of_waiting_warps": Plant("tail-wave", {
        "blocks": 278, "waves": 278 / 264, "block_threads": 1024, "limit_registers": 2, "limit_warps": 2,
        "limit_shared": 2, "sm_busy_pct": 30, "issue_active_pct": 45, "long_scoreboard_pct": 60,
        "dram_busy_pct": 20,
    }),
    "one_long_block": Plant("serial-tail", {
        "active_share_pct": 29, "waves": 3.88, "blocks": 4096, "long_scoreboard_pct": 85, "sm_busy_pct": 4,
        "dram_busy_pct": 25, "issue_active_pct": 14, "eligible_warps": 0.2, "occupancy_pct": 87,
    }),
    "byte_loads": Plant("narrow-loads", {
        "sectors_per_request": 1, "store_sectors_per_request": 1, "long_scoreboard_pct": 93, "dram_busy_pct": 31,
        "issue_active_pct": 33, "sm_busy_pct": 32, "l2_busy_pct": 42,
    }),
    "half_loads": Plant("narrow-loads", {
        "sectors_per_request": 2, "store_sectors_per_request": 2, "long_scoreboard_pct": 80, "dram_busy_pct": 50,
        "issue_active_pct": 30,
    }),
    "integer_division": Plant("integer-division", {
        "xu_pct": 75, "conversion_pct": 66.7, "fma_pct": 35, "alu_pct": 63, "sm_busy_pct": 75,
        "issue_active_pct": 73, "mio_throttle_pct": 36, "dram_busy_pct": 0,
    }),
    "small_product_in_half_precision": Plant("no-tensor-cores", {
        "fma_pct": 45, "alu_pct": 20, "sm_busy_pct": 50, "issue_active_pct": 55, "dram_busy_pct": 20,
    }, known={"asks_for_tensor_cores": False, "half_product": True}),
    "half_product_that_waits_for_memory": Plant("long-scoreboard", {
        "fma_pct": 30, "sm_busy_pct": 35, "issue_active_pct": 30, "dram_busy_pct": 60, "long_scoreboard_pct": 60,
    }, known={"asks_for_tensor_cores": False, "half_product": True}),
    "no_tensor_cores": Plant("no-tensor-cores", {
        "fma_pct": 62, "alu_pct": 20, "sm_busy_pct": 66, "issue_active_pct": 70, "dram_busy_pct": 3,
        "short_scoreboard_pct": 14, "mio_throttle_pct": 9, "barrier_stall_pct": 12, "shared_excess_pct": 12,
    }, known={"asks_for_tensor_cores": True}),
    "naive_matmul": Plant("no-tensor-cores", {
        "fma_pct": 17, "sm_busy_pct": 48, "issue_active_pct": 45, "dram_busy_pct": 8, "lg_throttle_pct": 50,
        "long_scoreboard_pct": 33, "l1_hit_pct": 87,
    }, known={"asks_for_tensor_cores": True}),
    "matmul_at_the_fma_peak": Plant("no-tensor-cores", {
        "fma_pct": 90, "sm_busy_pct": 91, "issue_active_pct": 92, "dram_busy_pct": 3,
    }, known={"asks_for_tensor_cores": True}),
    "fp64_slip": Plant("fp64-slip", {
        "fp64_share_pct": 99.5, "fp64_pct": 94, "sm_busy_pct": 94, "math_throttle_pct": 60, "issue_active_pct": 48,
        "fma_pct": 0.5, "dram_busy_pct": 9, "wait_pct": 15,
    }),
    "fp64_among_floats": Plant("fp64-slip", {
        "fp64_share_pct": 40, "fp64_pct": 55, "sm_busy_pct": 62, "fma_pct": 40, "xu_pct": 61, "alu_pct": 30,
        "issue_active_pct": 45, "short_scoreboard_pct": 35,
    }),
    "pipeline_bubbles": Plant("pipeline-bubbles", {
        "tensor_pct": 27, "sm_busy_pct": 38, "issue_active_pct": 26, "eligible_warps": 0.4, "wait_pct": 12,
        "long_scoreboard_pct": 34, "barrier_stall_pct": 22, "short_scoreboard_pct": 12, "dram_busy_pct": 8,
        "registers_per_thread": 128, "limit_registers": 2, "limit_warps": 8, "limit_shared": 11, "blocks": 1024,
        "waves": 3.88, "occupancy_limit_pct": 25, "occupancy_pct": 23.5, "shared_excess_pct": 12,
    }, known={"asks_for_tensor_cores": True}),
    "waits_for_wgmma": Plant("pipeline-bubbles", {
        "tensor_pct": 42, "sm_busy_pct": 42, "issue_active_pct": 12, "eligible_warps": 0.13, "gmma_pct": 48,
        "wait_pct": 14, "long_scoreboard_pct": 10, "dram_busy_pct": 10,
    }, known={"asks_for_tensor_cores": True}),
    "dependent_chain": Plant("pipeline-bubbles", {
        "wait_pct": 62, "issue_active_pct": 35, "eligible_warps": 0.4, "sm_busy_pct": 35, "fma_pct": 33,
        "dram_busy_pct": 1, "long_scoreboard_pct": 2,
    }),
    "divergence": Plant("divergence", {
        "threads_per_instruction": 2.1, "sm_busy_pct": 72, "issue_active_pct": 74, "fma_pct": 55,
        "dram_busy_pct": 2, "wait_pct": 25, "eligible_warps": 3,
    }),
    "divergence_that_fills_the_pipe": Plant("divergence", {
        "threads_per_instruction": 4, "sm_busy_pct": 92, "issue_active_pct": 94, "fma_pct": 88, "dram_busy_pct": 2,
    }),
    "atomics": Plant("atomics-contention", {
        "atomics_per_request": 0.5, "atomic_conflict_pct": 1.1, "dram_busy_pct": 0.3, "sm_busy_pct": 2,
        "l2_busy_pct": 3, "issue_active_pct": 1.5, "eligible_warps": 0.02, "lg_throttle_pct": 45,
        "long_scoreboard_pct": 35, "blocks": 8192, "waves": 7.76,
    }),
    "l2_thrash": Plant("l2-thrash", {
        "dram_busy_pct": 78, "l2_hit_pct": 12, "l2_busy_pct": 60, "long_scoreboard_pct": 88, "sm_busy_pct": 12,
        "issue_active_pct": 11, "eligible_warps": 0.2, "store_sectors_per_request": 4, "dram_bytes": 7.6e8,
    }, known={"algorithmic_bytes": 1.02e8}),
    "l2_thrash_below_saturation": Plant("l2-thrash", {
        "dram_busy_pct": 55, "l2_hit_pct": 35, "long_scoreboard_pct": 80, "sm_busy_pct": 15,
        "issue_active_pct": 12, "dram_bytes": 4e8,
    }, known={"algorithmic_bytes": 1e8}),
    "instruction_cache": Plant("instruction-cache-misses", {
        "no_instruction_pct": 68, "wait_pct": 14, "sm_busy_pct": 24, "issue_active_pct": 24, "fma_pct": 23,
        "eligible_warps": 0.3, "dram_busy_pct": 0.5, "long_scoreboard_pct": 0, "blocks": 1056, "waves": 1,
    }),
    "special_functions": Plant("special-functions", {
        "xu_pct": 93, "fma_pct": 18, "alu_pct": 14, "sm_busy_pct": 93, "issue_active_pct": 48,
        "short_scoreboard_pct": 30, "mio_throttle_pct": 30, "dram_busy_pct": 3, "long_scoreboard_pct": 1,
    }),
    "index_arithmetic": Plant("instruction-bound", {
        "alu_pct": 86, "fma_pct": 25, "sm_busy_pct": 88, "issue_active_pct": 88, "dram_busy_pct": 30,
    }),
    "launch_bound": Plant("launch-bound", {
        "dram_busy_pct": 4, "sm_busy_pct": 3, "long_scoreboard_pct": 45, "no_instruction_pct": 32,
        "issue_active_pct": 8, "blocks": 256, "waves": 0.24, "occupancy_pct": 20,
    }, seconds=2.4e-6),
    "launch_bound_as_measured": Plant("launch-bound", {
        "blocks": 4, "waves": 4 / 1056, "long_scoreboard_pct": 60, "issue_active_pct": 8, "dram_busy_pct": 2,
    }, seconds=7e-6, known={"host_seconds": 9e-6}),
    "vectorised_copy": Plant("dram-saturated", {
        "dram_busy_pct": 91, "l2_busy_pct": 75, "long_scoreboard_pct": 70, "sm_busy_pct": 12,
        "issue_active_pct": 9, "sectors_per_request": 16, "store_sectors_per_request": 16, "dram_bytes": 5.3e8,
        "blocks": 65536, "waves": 62.06,
    }, known={"algorithmic_bytes": 5.37e8}),
    "softmax": Plant("dram-saturated", SOFTMAX, seconds=62.4e-6, known={"algorithmic_bytes": 268435456}),
    "fma_peak": Plant("arithmetic-saturated", {
        "fma_pct": 97, "sm_busy_pct": 98, "issue_active_pct": 98, "dram_busy_pct": 0.5, "long_scoreboard_pct": 0,
        "wait_pct": 20,
    }),
    "cublas_matmul": Plant("arithmetic-saturated", {
        "tensor_pct": 91, "sm_busy_pct": 91, "issue_active_pct": 14, "eligible_warps": 0.15, "gmma_pct": 40,
        "barrier_stall_pct": 34, "wait_pct": 10, "dram_busy_pct": 14, "l2_hit_pct": 84, "dram_bytes": 7e8,
        "registers_per_thread": 168, "limit_registers": 1, "limit_shared": 1, "limit_warps": 5, "blocks": 132,
        "block_threads": 384, "waves": 1, "occupancy_limit_pct": 18.75, "occupancy_pct": 18.1,
        "threads_per_instruction": 30.5, "shared_excess_pct": 6,
    }, known={"asks_for_tensor_cores": True, "algorithmic_bytes": 4.03e8}),
    "cublas_matmul_that_is_small": Plant(None, {
        "tensor_pct": 68, "sm_busy_pct": 68, "issue_active_pct": 12, "eligible_warps": 0.15, "gmma_pct": 45,
        "barrier_stall_pct": 34, "wait_pct": 10, "dram_busy_pct": 20, "l2_hit_pct": 80, "dram_bytes": 1.1e8,
        "registers_per_thread": 168, "limit_registers": 1, "limit_shared": 1, "limit_warps": 5, "blocks": 512,
        "block_threads": 384, "waves": 3.88, "occupancy_limit_pct": 18.75, "occupancy_pct": 18.1,
        "threads_per_instruction": 30.5,
    }, known={"asks_for_tensor_cores": True, "algorithmic_bytes": 1e8}),
    "quiet": Plant(None, {}),
}  # fmt: skip
"""By name, most of them that of a program in benchmarks/symptoms."""


def launch(plant: Plant, kernel: str = "kernel", index: int = 0, advice: tuple[Advice, ...] = ()) -> Launch:
    """The launch that a reader would give."""
    blocks, threads = int(plant.values.get("blocks", 1)), int(plant.values.get("block_threads", 256))
    return Launch(
        index=index,
        kernel=kernel,
        device="NVIDIA H200",
        architecture="sm_90",
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        seconds=plant.seconds,
        values=plant.values,
        advice=advice,
    )


def report(*launches: Launch) -> Counters:
    """The report of a call."""
    return Counters(tool="ncu", report="profile.ncu-rep", sha256="b" * 64, launches=launches)
