"""Ranks in small traces whose answers are computed by hand: all times in microseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_kit import Raw, device, host, save, step

from warpsmith.profiling.trace.collectives import Collective, collective_kind, read_collective
from warpsmith.profiling.trace.rank_models import RanksReport
from warpsmith.profiling.trace.ranks import report_ranks
from warpsmith.profiling.trace.read import load_trace

US = 1e-6


def us(microseconds: float) -> Any:
    return pytest.approx(microseconds * US, abs=1e-12)


def gloo(name: str, begin: float, end: float, elements: int = 1000, dtype: str = "float") -> Raw:
    event = host(
        f"gloo:{name}", begin, end, cat="user_annotation", **{"Input Dims": [[elements]], "Input type": [dtype]}
    )
    return event | {"tid": 2}


def nccl(begin: float, end: float, group: str, size: int, name: str = "allreduce") -> Raw:
    args = {"Collective name": name, "In msg nelems": 500, "Out msg nelems": 1000, "dtype": "BFloat16"}
    more = {"Group size": size, "Process Group Ranks": group}
    return device("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin, end, 20, **args, **more)


def report(folder: Path, *ranks: list[Raw], steps: int | None = None) -> RanksReport:
    traces = []
    for number, events in enumerate(ranks):
        path = folder / str(number)
        path.mkdir(parents=True)
        info = {"rank": number, "world_size": len(ranks), "backend": "gloo"}
        # Each trace counts from a time of its own: rank 1's begins 500 us later on the host's clock.
        events = [event | {"ts": event["ts"] - 500 * number} for event in events]
        origin = 500_000 * number
        traces.append(load_trace(save(path, events, distributedInfo=info, baseTimeNanoseconds=origin)))
    return report_ranks(traces, steps)


def cpu_rank(compute: float, end: float = 200) -> list[Raw]:
    """Two steps of 200 us: compute up to a time, then an all-reduce of 4 kB, behind which 20 us are computed."""
    return [
        event
        for begin in (1000, 1000 + 200)
        for event in (
            step(begin, begin + 200),
            host("aten::mm", begin, begin + compute),
            gloo("all_reduce", begin + compute, begin + end),
            host("aten::add", begin + end - 20, begin + end),
        )
    ]


def test_a_rank_that_comes_late_is_the_slowest_and_the_others_wait_for_it(tmp_path: Path) -> None:
    found = report(tmp_path, cpu_rank(50), cpu_rank(150))
    first, second = found.ranks
    assert (found.world, found.backend, found.slowest.rank, found.fastest.rank) == (2, "gloo", 1, 0)
    assert (first.wait_seconds, second.wait_seconds) == (us(100), us(0))
    assert (first.own_seconds, second.own_seconds) == (us(100), us(200))
    assert (first.collective_seconds, first.exposed_seconds) == (us(150), us(130))
    assert found.excess == pytest.approx(100 / 200)
    assert found.imbalance == pytest.approx(50 / 200), "the average over the ranks"
    assert found.exposed_transfer == pytest.approx(30 / 200), "without the wait, and without what add hides"
    assert found.overlap == pytest.approx(40 / 200)


def test_bytes_and_the_time_after_the_last_arrival_give_the_rate_of_the_bus(tmp_path: Path) -> None:
    (item,) = report(tmp_path, cpu_rank(50), cpu_rank(150)).collectives
    assert (item.kind, item.calls, item.bytes) == ("all_reduce", 1, 4000)
    assert (item.seconds, item.exposed_seconds, item.transfer_seconds) == (us(100), us(80), us(50))
    assert item.bus_rate == pytest.approx(4000 / (50 * US)), "two ranks: 2 (n - 1) / n is 1"


def test_groups_of_ranks_are_matched_apart(tmp_path: Path) -> None:
    def rank(group: str, begin: float) -> list[Raw]:
        return [
            step(0, 100), host("aten::mm", 0, 1), device("gemm", 0, 10),
            nccl(begin, 60, group, 2), nccl(80, 100, "[0, 1, 2, 3]", 4),
        ]  # fmt: skip

    found = report(tmp_path, rank("[0, 1]", 20), rank("[0, 1]", 30), rank("[2, 3]", 55), rank("[2, 3]", 50))
    assert [one.wait_seconds for one in found.ranks] == [us(10), us(0), us(0), us(5)]
    (item,) = found.collectives
    assert (item.calls, item.bytes) == (2, 2 * 2000), "the larger of input and output, 2 bytes each"


def test_calls_that_not_every_rank_makes_are_named_and_nothing_is_said_to_wait(tmp_path: Path) -> None:
    found = report(tmp_path, cpu_rank(50), [*cpu_rank(150), gloo("all_reduce", 1390, 1399)])
    assert found.unmatched == ("all_reduce",)
    assert [one.wait_seconds for one in found.ranks] == [0, 0]
    (item,) = found.collectives
    assert (item.transfer_seconds, item.bus_rate) == (None, None)


def test_a_run_without_marks_is_divided_by_its_steps(tmp_path: Path) -> None:
    unmarked = [[event for event in cpu_rank(50) if event["name"] != "step"] for _ in range(2)]
    found = report(tmp_path, *unmarked, steps=4)
    assert found.ranks[0].step_seconds == us(400 / 4)
    assert found.collectives[0].calls == 2 / 4


def test_the_search_for_unused_parameters_counts_with_the_map_that_it_sends(tmp_path: Path) -> None:
    reducer = "torch.distributed.ddp.reducer::"
    events = [
        *cpu_rank(50),
        host(f"{reducer}search_unused_parameters", 1201, 1203),
        host(f"{reducer}copy_bucket_to_grad", 1203, 1209),
        gloo("all_reduce", 1340, 1380, 12, "int"),
    ]
    alone = [event for event in events if event["name"] != "gloo:all_reduce" or event["ts"] != 1250]
    found = report(tmp_path, events, events)
    assert (found.search_seconds, found.copy_seconds) == (us(2), us(6)), "the map runs behind another collective"
    assert report(tmp_path / "alone", alone, alone).search_seconds == us(42)


def nccl_rank(begin: float) -> list[Raw]:
    """A step of DistributedDataParallel on a GPU, with the names that PyTorch 2.11's profiler gives: a bucket of
    gradients from `begin` on, behind which a product runs to 60, and the map of used parameters at 80."""
    group = {"Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
    group |= {"Process Group Description": "default_pg", "Collective name": "allreduce"}
    bucket = {**group, "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"}
    map_ = {**group, "In msg nelems": 24, "Out msg nelems": 24, "dtype": "Int"}
    kernel = "ncclDevKernel_AllReduce_Sum_{}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return [
        step(0, 120),
        host("aten::mm", 0, 1),
        host("record_param_comms", 2, 3, **bucket),
        host("nccl:all_reduce", 2, 4, cat="user_annotation"),
        device("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", 0, 60, 7),
        device(kernel.format("f32"), begin, 70, 20, **bucket),
        device(kernel.format("u32"), 80, 90, 20, **map_),
        device("void at::native::vectorized_elementwise_kernel<4>(int)", 100, 120, 7),
    ]


def test_collectives_of_nccl_on_the_gpus_of_two_ranks(tmp_path: Path) -> None:
    found = report(tmp_path, nccl_rank(20), nccl_rank(40))
    (item,) = found.collectives
    assert (item.kind, item.calls, item.bytes) == ("all_reduce", 2, 4000 + 4 * 24)
    first, second = found.ranks
    assert (first.collective_seconds, second.collective_seconds) == (us(60), us(40))
    assert (first.exposed_seconds, first.wait_seconds) == (us(20), us(0)), "from 60 to 70, and the map"
    assert found.search_seconds == us(10), "the map alone tells of parameters that were not used"
    assert item.bus_rate == pytest.approx((4000 + 96) / ((30 + 10) * US))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gloo:all_reduce", "all_reduce"), ("_allgather_base", "all_gather"), ("ncclDevKernel_SendRecv", "send"),
        ("_reduce_scatter_base", "reduce_scatter"), ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("all_to_allv", "all_to_all"), ("gloo:reduce", "reduce"), ("rcclGenericKernel", "other"),
    ],
)  # fmt: skip
def test_names_of_every_backend_give_one_kind(name: str, kind: str) -> None:
    assert collective_kind(name) == kind


def test_sizes_come_from_shapes_or_from_counts() -> None:
    scalar = read_collective("gloo:all_reduce", {"Input Dims": [[]], "Input type": ["float"]}, 2)
    gathered = read_collective("gloo:all_gather", {"Input Dims": [[[3, 4]]], "Input type": ["double"]}, 4)
    unknown = read_collective("gloo:all_reduce", {"Input Dims": [[8]], "Input type": ["mystery"]}, 2)
    assert (scalar and scalar.bytes, gathered and gathered.bytes, unknown and unknown.bytes) == (4, 384, None)
    assert read_collective("sgemm", {}, 2) is None
    assert [Collective(kind, 1, "", 4).bus_factor for kind in ("all_reduce", "all_gather", "broadcast")] == [
        1.5, 0.75, 1.0
    ]  # fmt: skip


def test_a_rank_that_is_later_only_at_times_is_no_slow_rank(tmp_path: Path) -> None:
    def rank(*computes: float) -> list[Raw]:
        return [
            event
            for number, compute in enumerate(computes)
            for event in (
                step(200 * number, 200 * number + 200),
                host("aten::mm", 200 * number, 200 * number + compute),
                gloo("all_reduce", 200 * number + compute, 200 * number + 200),
            )
        ]

    assert report(tmp_path / "a", rank(9, 50, 50, 50), rank(9, 150, 150, 150)).excess == pytest.approx(0.5)
    assert report(tmp_path / "b", rank(9, 50, 150, 50), rank(9, 150, 50, 150)).excess == 0
