"""The reader of rocprofv3's files, on samples written by hand in the documented formats."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from warpsmith.core.metrics import COUNTED, METRICS
from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.formula import derive_values
from warpsmith.profiling.report_file import select_launches
from warpsmith.profiling.rocprof import report as rocprof
from warpsmith.profiling.rocprof import thread_trace as rocprof_att
from warpsmith.profiling.rocprof.metrics import TABLE
from warpsmith.profiling.rocprof.shares import SHARES
from warpsmith.profiling.rocprof.thread_trace import ThreadTrace, TracedInstruction

DATA = Path(__file__).parents[2] / "data" / "rocprof"
PASSES, TRACE = DATA / "passes", DATA / "trace"
STATS = "stats_ui_output_agent_4_dispatch_2.csv"
FIRST = "pmc_1/218_counter_collection.csv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both samples, to change."""
    for sample in (PASSES, TRACE):
        shutil.copytree(sample, tmp_path / sample.name)
    return tmp_path


@pytest.fixture(scope="module")
def counters() -> Counters:
    return rocprof.read_rocprof_report(PASSES, DATA.parents[2])


@pytest.fixture(scope="module")
def gemm(counters: Counters) -> Launch:
    return select_launches(counters, "gemm_kernel").launches[0]


BY_HAND = {
    "registers_per_thread": 96 + 128,
    "shared_bytes": 32768,
    "spill_bytes": 16,
    "tensor_pct": 55.5,
    "occupancy_pct": 25.0,
    "blocks": 32 * 32,
    "block_threads": 256,
    "sm_busy_pct": 55.5,
    "l2_hit_pct": 90.0,
    "dram_bytes": (65536.5 + 32768) * 1024,
    "bank_conflicts": 6000 / (24000 - 6000),
    "shared_excess_pct": 25.0,
    "mio_throttle_pct": 10.0,
    "flops_counted": 64 * (500 + 2 * 100 + 50),
    "fp64_share_pct": 100 * 50 / 750,
    "threads_per_instruction": 32,
    "atomics_per_request": 0.0,
    "instructions": 9e6,
    "mfma_pct": 55.5,
    "resident_pct": 25.0,
    "blocks_per_unit": 32 * 32 / 304,
    "valu_pct": 30.0,
}


def test_the_values_are_those_of_both_passes(gemm: Launch):
    assert gemm.values == pytest.approx(BY_HAND)


def test_every_other_name_is_absent(gemm: Launch):
    counted = set(COUNTED) - {"traffic_amplification", "launch_count"}
    assert set(gemm.absent) == (counted | set(SHARES)) - set(BY_HAND)
    assert set(TABLE) == counted | {"registers_per_thread", "shared_bytes", "spill_bytes"} <= set(METRICS)


def test_launches_have_their_place_time_and_device(counters: Counters, gemm: Launch):
    assert [(launch.index, launch.kernel[:4]) for launch in counters.launches] == [
        (0, "void"),
        (1, "gemm"),
        (2, "void"),
    ]
    assert [launch.seconds for launch in counters.launches] == pytest.approx([50e-6, 400e-6, 52e-6])
    assert (gemm.device, gemm.architecture) == ("AMD Instinct MI300X", "gfx942")
    assert (gemm.grid, gemm.block) == ((32, 32, 1), (256, 1, 1))
    assert (counters.tool, counters.report) == ("rocprofv3", "tests/data/rocprof/passes")


def test_one_file_is_read_with_those_of_its_prefix():
    (softmax, *_) = rocprof.read_rocprof_report(PASSES / FIRST).launches
    assert (softmax.architecture, softmax.grid, softmax.seconds) == ("gfx942", (4096, 1, 1), 50e-6)
    assert "bank_conflicts" in softmax.absent  # of the other pass
    alone = rocprof.read_rocprof_report(PASSES / "pmc_2" / "231_counter_collection.csv").launches[1]
    assert (alone.architecture, alone.grid, alone.seconds) == ("", (1024, 1, 1), 401e-6)


@pytest.mark.parametrize(
    "changed", ["passes/pmc_1/218_kernel_trace.csv", "passes/pmc_2/231_counter_collection.csv", f"trace/{STATS}"]
)
def test_the_hash_changes_with_any_file(folder: Path, changed: str):
    part, file = folder / changed.split("/")[0], folder / changed
    before = rocprof.read_rocprof_report(part).sha256
    file.write_text(file.read_text().rstrip())
    assert rocprof.read_rocprof_report(part).sha256 != before


def test_a_counter_of_two_passes_is_the_first_passes(folder: Path):
    second = folder / "passes" / "pmc_2" / "231_counter_collection.csv"
    second.write_text(second.read_text().replace('"SQ_LDS_BANK_CONFLICT",', '"OccupancyPercent",'))
    assert rocprof.read_rocprof_report(folder / "passes").launches[1].values["occupancy_pct"] == 25.0


def test_a_counter_that_is_no_number_is_absent(folder: Path):
    first = folder / "passes" / FIRST
    first.write_text(first.read_text().replace('"OccupancyPercent",25.000000', '"OccupancyPercent",nan'))
    assert "occupancy_pct" in rocprof.read_rocprof_report(folder / "passes").launches[1].absent


@pytest.mark.parametrize(
    ("name", "reading", "value"),
    [
        ("l2_hit_pct", {"L2CacheHit": 40.0}, 40),
        ("l2_hit_pct", {"TCC_HIT": 30.0, "TCC_MISS": 10.0}, 75),
        ("dram_bytes", {"FetchSize": 2.0, "WriteSize": 1.0}, 3072),
        # 10 reads: 1 of 32 bytes, 2 of 128, 7 of 64; 6 writes: 4 of 64 bytes, 2 of 32.
        (
            "dram_bytes",
            {
                "TCC_EA0_RDREQ_sum": 10, "TCC_EA0_RDREQ_32B_sum": 1, "TCC_BUBBLE_sum": 2,
                "TCC_EA0_WRREQ_sum": 6, "TCC_EA0_WRREQ_64B_sum": 4,
            },
            32 + 2 * 128 + 7 * 64 + 4 * 64 + 2 * 32,
        ),
        (
            "dram_bytes",
            {"TCC_EA_RDREQ": 10, "TCC_EA_RDREQ_32B": 1, "TCC_EA_WRREQ": 6, "TCC_EA_WRREQ_64B": 4},
            32 + 9 * 64 + 4 * 64 + 2 * 32,
        ),
        (
            "l1_hit_pct",
            {
                "TCP_TOTAL_CACHE_ACCESSES_sum": 100, "TCP_TCC_READ_REQ_sum": 20, "TCP_TCC_WRITE_REQ_sum": 5,
                "TCP_TCC_ATOMIC_WITH_RET_REQ_sum": 3, "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum": 2,
            },
            70,
        ),
        ("threads_per_instruction", {"SQ_THREAD_CYCLES_VALU": 480, "SQ_ACTIVE_INST_VALU": 10}, 24),
        ("sm_busy_pct", {"VALUBusy": 20, "MfmaUtil": 30, "SALUBusy": 40}, 40),
        ("atomics_per_request", {"TCC_ATOMIC": 5, "TCC_REQ": 20}, 0.25),
    ],
)  # fmt: skip
def test_other_counters_give_the_same_names(name: str, reading: dict[str, float], value: float):
    assert derive_values(TABLE, reading)[0][name] == pytest.approx(value)


def test_vector_units_alone_do_not_say_how_busy_the_unit_is():
    assert "sm_busy_pct" not in derive_values(TABLE, {"VALUBusy": 20})[0]


def test_a_thread_trace_gives_stalls_of_its_dispatch():
    (launch,) = rocprof.read_rocprof_report(TRACE).launches
    assert launch.kernel.startswith("gemm_kernel")
    cycles = 98_000  # Latency and Idle of all instructions
    of_warps = {name for name, meaning in COUNTED.items() if "warp cycles" in meaning}
    assert {name: launch.values[name] for name in of_warps & set(launch.values)} == pytest.approx(
        {
            "long_scoreboard_pct": 100 * 30_000 / cycles,  # s_waitcnt vmcnt
            "short_scoreboard_pct": 100 * 10_000 / cycles,  # s_waitcnt lgkmcnt after LDS; not the one after s_load
            "barrier_stall_pct": 100 * 8_000 / cycles,
            "lg_throttle_pct": 100 * 2_000 / cycles,
            "mio_throttle_pct": 100 * 2_000 / cycles,
            "math_throttle_pct": 100 * 10_000 / cycles,
        }
    )


def test_the_json_of_a_thread_trace_says_the_same(folder: Path):
    path = folder / "trace"
    (of_csv,) = rocprof_att.trace_files(path)
    of_csv_trace = rocprof_att.read_thread_trace(of_csv)
    of_csv.unlink()
    (of_json,) = rocprof_att.trace_files(path)
    assert of_json.name == "code.json"
    assert rocprof_att.read_thread_trace(of_json) == of_csv_trace


def test_counters_of_the_whole_device_come_before_a_thread_trace(folder: Path):
    shutil.copy(folder / "trace" / STATS, folder / "passes" / STATS)
    launch = rocprof.read_rocprof_report(folder / "passes").launches[1]
    assert launch.values["mio_throttle_pct"] == 10.0
    assert launch.values["barrier_stall_pct"] == pytest.approx(100 * 8 / 98)
    assert "barrier_stall_pct" in rocprof.read_rocprof_report(folder / "passes").launches[0].absent


def stalls(*lines: tuple[str, int]) -> dict[str, float]:
    """Of instructions with these latencies, filled up to 1,000 cycles."""
    rest = 1000 - sum(latency for _, latency in lines)
    return ThreadTrace(
        1,
        frozenset(),
        (
            *(TracedInstruction(text, 1, latency, 0, 0) for text, latency in lines),
            TracedInstruction("s_nop 0", 1, 0, 0, rest),
        ),
    ).stalls


@pytest.mark.parametrize(
    ("lines", "long", "short"),
    [
        ([("s_waitcnt vmcnt(3)", 500)], 50, 0),
        ([("s_waitcnt_vscnt null, 0x0", 500)], 50, 0),
        ([("s_wait_loadcnt 0x0", 500)], 50, 0),
        ([("s_wait_dscnt 0x0", 500)], 0, 50),
        ([("s_wait_kmcnt 0x0", 500)], 0, 0),
        ([("ds_read_b32 v0, v1", 0), ("s_waitcnt lgkmcnt(0)", 500)], 0, 50),
        ([("s_load_dword s0, s[2:3], 0x0", 0), ("s_waitcnt lgkmcnt(0)", 500)], 0, 0),
        ([("s_waitcnt_depctr 0xfff", 500)], 0, 0),
    ],
)
def test_a_wait_is_for_what_its_counter_counts(lines: list[tuple[str, int]], long: float, short: float):
    found = stalls(*lines)
    assert (found["long_scoreboard_pct"], found["short_scoreboard_pct"]) == (long, short)


@pytest.mark.parametrize(
    "lines",
    [
        [("s_waitcnt vmcnt(0) lgkmcnt(0)", 500)],
        [("s_wait_loadcnt_dscnt 0x0", 500)],
        [("s_waitcnt 0", 500)],
        [("s_waitcnt lgkmcnt(0)", 500)],
        [("ds_read_b32 v0, v1", 0), ("s_load_dword s0, s[2:3], 0x0", 0), ("s_waitcnt lgkmcnt(0)", 500)],
        [("s_waitcnt vmcnt(0)", 100), ("flat_load_dword v0, v[2:3]", 0), ("s_waitcnt lgkmcnt(0)", 500)],
    ],
)
def test_where_waits_may_be_for_either_neither_is_told(lines: list[tuple[str, int]]):
    assert not {"long_scoreboard_pct", "short_scoreboard_pct"} & set(stalls(*lines))


def test_an_empty_thread_trace_is_of_no_wave(folder: Path):
    (folder / "trace" / STATS).write_text("")
    (launch,) = rocprof.read_rocprof_report(folder / "trace").launches
    assert "barrier_stall_pct" in launch.absent


def test_a_thread_trace_without_times_says_what_to_add(folder: Path):
    (folder / "trace" / "305_kernel_trace.csv").unlink()
    with pytest.raises(Misuse, match="--kernel-trace"):
        rocprof.read_rocprof_report(folder / "trace")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n", "lacks the columns instruction"),
        ("Instruction,Hitcount,Latency,Stall,Idle,Source\nv_nop,1,2\n", "after 0 instructions"),
        (
            "Instruction,Hitcount,Latency,Stall,Idle,Source\nv_nop,1,2,3,4,k\nv_nop,1,x,3,4,k\n",
            "after 1 instructions",
        ),
    ],
)
def test_a_damaged_thread_trace(folder: Path, content: str, words: str):
    (folder / "trace" / STATS).write_text(content)
    with pytest.raises(Misuse, match=words):
        rocprof.read_rocprof_report(folder / "trace")


@pytest.mark.parametrize("content", ["", "[]", '{"code": []}', '{"header": 1, "code": []}', '{"header": "ISA, _'])
def test_a_damaged_json_of_a_thread_trace(folder: Path, content: str):
    (folder / "trace" / STATS).unlink()
    (code,) = rocprof_att.trace_files(folder / "trace")
    code.write_text(content)
    with pytest.raises(Misuse, match="not a rocprofv3 thread trace"):
        rocprof.read_rocprof_report(folder / "trace")


def test_what_is_not_there(tmp_path: Path):
    with pytest.raises(MissingInput, match="does not exist"):
        rocprof.read_rocprof_report(tmp_path / "none")
    with pytest.raises(MissingInput, match="contains no times of kernels: collect them with `rocprofv3"):
        rocprof.read_rocprof_report(tmp_path)
    (tmp_path / "notes.txt").write_text("{}")
    with pytest.raises(Misuse, match=r"give a \*counter_collection.csv"):
        rocprof.read_rocprof_report(tmp_path / "notes.txt")


@pytest.mark.parametrize("place", ["219_counter_collection.csv", "other/219_counter_collection.csv"])
def test_several_runs_in_a_folder_are_told_apart(folder: Path, place: str):
    other = folder / "passes" / "pmc_1" / place if "/" not in place else folder / "passes" / place
    other.parent.mkdir(exist_ok=True)
    shutil.copy(folder / "passes" / FIRST, other)
    with pytest.raises(Misuse, match=r"several runs or processes: name one of .*219_counter"):
        rocprof.read_rocprof_report(folder / "passes")


def test_a_csv_without_times_or_with_old_columns(folder: Path):
    path = folder / "passes" / "pmc_2" / "231_counter_collection.csv"
    rows = [line.rsplit(",", 2)[0] for line in path.read_text().splitlines()]
    path.write_text("\n".join(rows))
    with pytest.raises(Misuse, match=r"no times for `void row_softmax.*--kernel-trace"):
        rocprof.read_rocprof_report(path)
    assert (
        rocprof.read_rocprof_report(folder / "passes").launches[0].values["instructions"] == 3e6
    )  # the other pass has times


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"Counter_Value"', '"Value"', "lacks the columns Counter_Value"),
        (",16384.000000,", ",many,", "damaged at line 2"),
        (",1048576,10,", ",,10,", "damaged at line 2"),
        (",256,1024,", ",0,1024,", "damaged at line 2"),
    ],
)
def test_a_damaged_csv_names_the_line(folder: Path, old: str, new: str, words: str):
    path = folder / "passes" / FIRST
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(Misuse, match=words):
        rocprof.read_rocprof_report(path)


@pytest.mark.parametrize("length", [0, 10, 400, 1000, 2500])
def test_a_csv_that_is_cut_short(folder: Path, length: int):
    path = folder / "passes" / FIRST
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(Misuse, match=r"lacks the columns|damaged at line"):
        rocprof.read_rocprof_report(path)


def test_times_that_run_backwards(folder: Path):
    path = folder / "passes" / "pmc_1" / "218_kernel_trace.csv"
    path.write_text(path.read_text().replace(",1000050000,", ",999,"))
    with pytest.raises(Misuse, match="took -"):
        rocprof.read_rocprof_report(folder / "passes")


def test_with_several_kinds_of_devices_the_agents_number_tells(folder: Path):
    path = folder / "passes" / "pmc_1" / "218_agent_info.csv"
    header, _, gpu = path.read_text().splitlines()
    other = gpu.replace("4,4,", "5,5,", 1).replace("gfx942", "gfx90a").replace("MI300X", "MI210")
    path.write_text("\n".join([header, other, gpu]))
    assert {launch.architecture for launch in rocprof.read_rocprof_report(folder / "passes").launches} == {
        "gfx942"
    }
    for name in ("218_counter_collection.csv", "218_kernel_trace.csv"):
        file = folder / "passes" / "pmc_1" / name
        file.write_text(file.read_text().replace("Agent 4", "GPU 0"))
    assert {launch.architecture for launch in rocprof.read_rocprof_report(folder / "passes").launches} == {""}
