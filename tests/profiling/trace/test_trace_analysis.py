"""Where the time goes, in small traces whose answers are computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_kit import DATA, Raw, device, host, save

from warpsmith.profiling.trace import script as trace
from warpsmith.profiling.trace.models import Trace

US = 1e-6


def us(microseconds: float) -> Any:
    """Seconds, as the model has them."""
    return pytest.approx(microseconds * US, abs=1e-12)


def parts(found: Trace) -> dict[str, Any]:
    return {name.removesuffix("_seconds"): value for name, value in found.parts}


def test_streams_that_overlap_count_once():
    found = trace.analyze_trace_file(DATA / "overlap.json")
    # 0 to 250 on two streams, nothing to 400, then 50.
    assert found.region.seconds == us(450)
    assert found.busy_seconds == us(300)
    assert found.idle_share == pytest.approx(150 / 450)
    assert parts(found) == {
        "kernels": us(300), "communication": 0, "copies": 0, "launches": 0, "host": us(150),
    }  # fmt: skip
    assert (found.bound, found.evidence, found.device, found.launches) == ("kernel-bound", "gpu", "NVIDIA H200", 4)
    assert found.median_kernel_seconds == us(90)


def test_a_kernel_can_save_no_more_than_the_time_in_which_it_runs_alone():
    gemm, add = trace.analyze_trace_file(DATA / "overlap.json").kernels
    assert (gemm.name, gemm.calls, gemm.seconds, gemm.alone_seconds) == ("ampere_sgemm", 2, us(200), us(170))
    assert (add.name, add.calls, add.seconds, add.alone_seconds) == (
        "elementwise CUDAFunctor_add", 2, us(130), us(100),
    )  # fmt: skip
    assert (gemm.mean_seconds, add.mean_seconds) == (us(100), us(65))
    row = next(row for row in trace.analyze_trace_file(DATA / "overlap.json").ranking if row.name == gemm.name)
    assert row.share == pytest.approx(170 / 450)
    assert row.ceiling == pytest.approx(450 / 280)


def test_a_gap_says_what_is_around_it_and_what_the_cpu_did():
    gaps = trace.analyze_trace_file(DATA / "overlap.json").gaps
    assert (gaps.count, gaps.seconds) == (1, us(150))
    (gap,) = gaps.largest
    assert (gap.at_seconds, gap.seconds) == (us(250), us(150))
    assert (gap.after, gap.before) == ("ampere_sgemm", "elementwise CUDAFunctor_add")
    # aten::item is around it for 130 us; 100 of them are the inner operator's own.
    assert gap.host == "aten::_local_scalar_dense"


def test_a_gap_without_anything_on_the_cpu_says_so(tmp_path: Path):
    found = trace.analyze_trace_file(
        save(tmp_path, [device("a", 0, 10), device("b", 100, 110), host("aten::add", 20, 30)])
    )
    assert found.gaps.largest[0].host is None


def test_collectives_are_exposed_where_no_other_kernel_runs():
    found = trace.analyze_trace_file(DATA / "communication.json")
    talk = found.communication
    assert talk is not None
    assert (talk.count, talk.seconds) == (1, us(200))
    assert (talk.hidden_seconds, talk.exposed_seconds) == (us(100), us(100))
    assert found.rank == 3
    assert parts(found) == {
        "kernels": us(226), "communication": us(100), "copies": us(130), "launches": us(34), "host": 0,
    }  # fmt: skip


def test_copies_by_kind_and_by_the_hosts_memory():
    copies = trace.analyze_trace_file(DATA / "communication.json").copies
    assert [(c.kind, c.pageable, c.count, c.seconds, c.bytes) for c in copies] == [
        ("HtoD", True, 1, us(100), 1_000_000),
        ("DtoH", False, 1, us(20), None),
        ("HtoD", False, 1, us(20), 2_000_000),
    ]


def test_gaps_of_the_device_itself_are_not_counted():
    gaps = trace.analyze_trace_file(DATA / "communication.json").gaps
    assert (gaps.count, gaps.seconds) == (1, us(30))


def test_synchronisations_count_up_to_the_regions_end():
    waits = trace.analyze_trace_file(DATA / "communication.json").waits
    assert (waits.count, waits.seconds) == (2, us(140 + 10))


def test_copies_and_collectives_are_ranked_once_by_what_is_exposed():
    rows = {row.name: row for row in trace.analyze_trace_file(DATA / "communication.json").ranking}
    assert rows["exposed copies"].share == pytest.approx(130 / 490)
    assert "pin" in rows["exposed copies"].attack
    assert rows["exposed communication"].share == pytest.approx(100 / 490)
    assert not [name for name in rows if "nccl" in name or "Memcpy" in name]


def kernels(count: int, length: float, gap: float) -> list[Raw]:
    return [device("k", i * (length + gap), i * (length + gap) + length) for i in range(count)]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (kernels(50, 3, 100), "launch-bound"),
        (kernels(50, 3, 101), "host-bound"),
        (kernels(50, 30, 20), "kernel-bound"),
        ([device("k", 0, 10), device("Memcpy HtoD (Pageable -> Device)", 0, 50, cat="gpu_memcpy")], "copy-bound"),
        ([device("k", 0, 10), device("ncclKernel_AllGather", 5, 50, 20)], "communication-bound"),
        # Idle time of both sorts is one part: 40 us of kernels against 30 of one sort and 101 of the other.
        ([device("k", 0, 40), device("k", 70, 71), device("k", 172, 173)], "host-bound"),
    ],
)
def test_the_largest_part_is_the_class(tmp_path: Path, events: list[Raw], expected: str):
    assert trace.analyze_trace_file(save(tmp_path, events)).bound == expected


def test_elementwise_kernels_in_a_row_could_take_as_long_as_the_longest(tmp_path: Path):
    events = [
        device("elementwise_a", 0, 10), device("elementwise_b", 10, 40), device("elementwise_c", 40, 60),
        device("gemm", 60, 80), device("elementwise_d", 80, 100), device("elementwise_e", 70, 75, 20),
    ]  # fmt: skip
    (row,) = (row for row in trace.analyze_trace_file(save(tmp_path, events)).ranking if row.kind == "fusable")
    assert row.seconds == us(10 + 20)
    assert "1 runs (up to 3)" in row.attack


def test_work_that_is_everything_has_no_ceiling(tmp_path: Path):
    (row,) = trace.analyze_trace_file(save(tmp_path, [device("k", 0, 10)])).ranking
    assert (row.share, row.ceiling) == (1.0, None)


def test_the_busiest_device_stands_for_a_process_with_several(tmp_path: Path):
    events = [device("a", 0, 10), device("b", 0, 90, device=1), device("b", 95, 100, device=1)]
    found = trace.analyze_trace_file(
        save(tmp_path, events, deviceProperties=[{"id": 0, "name": "no"}, {"id": 1, "name": "yes"}])
    )
    assert (found.device, found.busy_seconds, found.launches) == ("yes", us(95), 2)
    assert "device 1" in found.notes[0]


def test_on_a_cpu_operators_own_time_stands_for_kernels():
    found = trace.analyze_trace_file(DATA / "cpu.json")
    assert found.evidence == "cpu"
    assert (found.region.seconds, found.busy_seconds) == (us(210), us(160))
    assert {k.name: (k.calls, k.seconds, k.alone_seconds) for k in found.kernels} == {
        "aten::sum": (1, us(100), us(50)),
        "aten::addmm": (1, us(80), us(40)),
        "aten::linear": (1, us(20), us(10)),
        "aten::relu": (1, us(10), us(10)),
    }
    assert found.gaps.largest[0].host == "load a batch"
    assert parts(found)["launches"] == 0
    assert "CPU operators" in found.notes[-1]


def test_an_operator_without_time_of_its_own_still_counts(tmp_path: Path):
    events = [host("aten::to", 0, 10), host("aten::copy_", 0, 10), host("aten::copy_", 20, 25)]
    found = {k.name: (k.calls, k.seconds) for k in trace.analyze_trace_file(save(tmp_path, events)).kernels}
    assert found == {"aten::to": (1, 0), "aten::copy_": (2, us(15))}


NAMES = ("gemm", "elementwise_a", "elementwise_b", "nccl_all_reduce", "Memcpy HtoD", "Memset", "Memcpy DtoD")


@st.composite
def works(draw: st.DrawFn) -> list[Raw]:
    made = []
    for _ in range(draw(st.integers(1, 15))):
        name, begin = draw(st.sampled_from(NAMES)), draw(st.integers(0, 1000))
        cat = {"Memc": "gpu_memcpy", "Mems": "gpu_memset"}.get(name[:4], "kernel")
        made.append(device(name, begin, begin + draw(st.integers(1, 300)), draw(st.integers(1, 3)), cat=cat))
    return made


@given(works())
def test_the_parts_sum_to_the_wall_time(tmp_path_factory: pytest.TempPathFactory, events: list[Raw]):
    found = trace.analyze_trace_file(save(tmp_path_factory.getbasetemp(), events))
    wall = found.region.seconds
    assert sum(parts(found).values()) == pytest.approx(wall)
    assert found.busy_seconds + found.idle_share * wall == pytest.approx(wall)
    assert sum(kernel.alone_seconds for kernel in found.kernels) <= found.busy_seconds + 1e-12
    talk = found.communication
    if talk:
        assert talk.exposed_seconds + talk.hidden_seconds == pytest.approx(talk.seconds)
        assert talk.exposed_seconds == pytest.approx(found.parts.communication_seconds)
