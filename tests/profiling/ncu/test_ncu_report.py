"""The reader of ncu's reports: the numbers of a real one, what older ones lack, and files that are no reports."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from warpsmith.core.metrics import COUNTED, METRICS
from warpsmith.errors import MachineLacks, MissingInput, Misuse, WarpsmithError
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.formula import derive_values
from warpsmith.profiling.ncu import dump as ncu_dump
from warpsmith.profiling.ncu import metrics as ncu_metrics
from warpsmith.profiling.ncu import report as ncu_report
from warpsmith.profiling.report_file import select_launches

pytest.importorskip("ncu_report", reason="needs ncu-report")

REPORT = Path(__file__).parents[2] / "data" / "ncu" / "softmax_h200.ncu-rep"


@pytest.fixture(scope="module")
def counters() -> Counters:
    return ncu_report.read_ncu_report(REPORT, REPORT.parents[3])


@pytest.fixture(scope="module")
def softmax(counters: Counters) -> Launch:
    return counters.launches[0]


class FakeMetric:
    def __init__(self, value: Any, unit: str):
        self.value = lambda: value
        self.unit = lambda: unit


class FakeAction:
    """A launch as ncu-report gives it, with the metrics that a test names: other chips, older versions."""

    def __init__(self, metrics: dict[str, Any], rules: tuple[dict[str, Any], ...]):
        given = {"gpu__time_duration.sum": 5000.0} | metrics
        self._metrics = {name: FakeMetric(value, "nsecond") for name, value in given.items()}
        self.metric_by_name = self._metrics.get
        self.metric_names = lambda: tuple(self._metrics)
        self.name = lambda: "gemm"
        self.rule_results_as_dicts = lambda: rules


def launch(metrics: dict[str, Any], *rules: dict[str, Any]) -> Launch:
    """What the reader makes of a report with these metrics and findings."""
    raw = ncu_dump.dump_launch(FakeAction(metrics, rules), list(ncu_metrics.readable_metrics()))
    return ncu_report._launch(0, raw, Path("old.ncu-rep"))


def finding(title: str = "", message: str = "", **more: Any) -> dict[str, Any]:
    return {"rule_identifier": "R", "rule_message": {"title": title, "message": message}, **more}


# Read off the report's own metrics by hand.
BY_HAND = {
    "registers_per_thread": 32,
    "shared_bytes": 64,  # 0 static, 64 dynamic; the driver's 1024 left out
    "tensor_pct": 0.0,
    "occupancy_pct": 93.219,
    "occupancy_limit_pct": 100,
    "limit_registers": 4,
    "limit_shared": 14,
    "limit_warps": 4,
    "limit_blocks": 32,
    "blocks": 8192,
    "block_threads": 512,
    "waves": 15.515,
    "dram_busy_pct": 81.383,
    "sm_busy_pct": 61.323,
    "l2_busy_pct": 91.333,
    "l2_hit_pct": 50.585,
    "l1_hit_pct": 0.0,
    "dram_bytes": 134231808 + 109993728,
    "sectors_per_request": 4194304 / 262144,
    "store_sectors_per_request": 4194304 / 262144,
    "excess_sectors_pct": 0.0,
    "bank_conflicts": (6073 + 7708) / (278528 + 278528),
    "shared_excess_pct": 0.0,
    "local_sectors_pct": 0.0,
    "issue_active_pct": 62.982,
    "eligible_warps": 2.8337,
    "long_scoreboard_pct": 39.006,  # 9.2459 of 23.7036; the tool's own rule says 39.0
    "short_scoreboard_pct": 11.401,
    "barrier_stall_pct": 17.246,
    "mio_throttle_pct": 2.1563,
    "math_throttle_pct": 2.5851,
    "wait_pct": 5.2313,
    "no_instruction_pct": 0.26756,
    "fma_pct": 30.446,
    "alu_pct": 38.315,
    "xu_pct": 27.426,
    "flops_counted": 123099.2879 * (1362.90114 + 1090.32091),  # adds and multiplies a cycle; nothing fused
    "threads_per_instruction": 32,
    "instructions": 39845888,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_values_are_those_of_the_report(softmax: Launch, name: str):
    assert softmax.values[name] == pytest.approx(BY_HAND[name], rel=1e-4)


def test_a_full_report_has_every_name_but_conversions(softmax: Launch):
    assert softmax.absent == ("conversion_pct",), "no section of ncu counts conversions; a collector asks for them"
    assert (
        {*softmax.values, *softmax.absent}
        == set(ncu_metrics.TABLE)
        == {"registers_per_thread", "shared_bytes"} | (set(COUNTED) - {"traffic_amplification", "launch_count"})
    )


def test_the_launch_and_where_it_ran(counters: Counters, softmax: Launch):
    assert (softmax.kernel, softmax.device, softmax.architecture) == ("sm", "NVIDIA H200", "sm_90")
    assert (softmax.grid, softmax.block) == ((8192, 1, 1), (512, 1, 1))
    assert softmax.seconds == pytest.approx(62.4e-6)
    assert counters.report == "tests/data/ncu/softmax_h200.ncu-rep"
    assert counters.hottest == softmax


def test_the_rules_findings_are_quoted_in_plain_words(softmax: Launch):
    found = {(advice.rule, advice.title): advice.speedup_pct for advice in softmax.advice}
    assert found["SOLBottleneck", "High Throughput"] is None
    assert found["FPInstructions", "FP32 Non-Fused Instructions"] == pytest.approx(15.223, abs=1e-3)
    assert found["CPIStall", "Long Scoreboard Stalls"] is None  # 39 % of one unit, not of the run
    assert any(heading.startswith("Check the Warp Stall Sampling (All Samples) table") for _, heading in found)
    assert not any("@" in heading for _, heading in found)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("See @section:MemoryChart:Memory Chart@ for 2.5 more. And more.", "See Memory Chart for 2.5 more."),
        ("Read the @url:Guide:https://docs.nvidia.com/a/b.html#c@ first.", "Read the Guide first."),
        ("Look at @source:k.py:5:k.py, line 6@ now.", "Look at k.py, line 6 now."),
        ("Without an end", "Without an end"),
    ],
)
def test_a_finding_without_a_title_gives_its_first_sentence(message: str, words: str):
    assert [advice.title for advice in launch({}, finding(message=message)).advice] == [words]


def test_findings_without_content_and_repeated_ones_are_left_out():
    rules = (finding("T"), {"rule_identifier": "E"}, finding(), finding("T"))
    assert [advice.title for advice in launch({}, *rules).advice] == ["T"]


@pytest.mark.parametrize("speedup", [math.nan, math.inf])
def test_an_estimate_that_is_no_number_is_none(speedup: float):
    rule = finding("T", speedup_estimation={"type": 2, "speedup": speedup})
    assert launch({}, rule).advice[0].speedup_pct is None


def test_what_a_report_lacks_is_absent_and_not_zero():
    seen = launch(
        {
            "lts__t_sector_hit_rate.pct": math.nan,
            "l1tex__t_sector_hit_rate.pct": None,
            "launch__waves_per_multiprocessor": math.inf,
            "launch__grid_size": 64,
            "smsp__inst_executed.sum": 1000,
        }
    )
    assert seen.values == {"blocks": 64, "instructions": 1000}
    assert {"l2_hit_pct", "l1_hit_pct", "waves", "occupancy_pct", "gmma_pct"} <= set(seen.absent)
    assert set(seen.absent) | set(seen.values) == set(ncu_metrics.TABLE)
    assert (seen.grid, seen.block, seen.device, seen.architecture) == ((64, 1, 1), (0, 0, 0), "", "")
    assert seen.seconds == pytest.approx(5e-6)


def test_a_share_of_nothing_is_absent_whatever_the_tool_makes_of_it():
    loads = "pipe_lsu_mem_global_op_ld"
    names = (f"t_sectors_{loads}.sum", f"t_requests_{loads}.sum", f"average_t_sectors_per_request_{loads}.ratio")
    assert "sectors_per_request" in launch({f"l1tex__{name}": 0.0 for name in names}).absent


@pytest.mark.parametrize(
    ("name", "metrics", "value"),
    [
        ("dram_bytes", {"dram__bytes_op_read.sum": 10, "dram__bytes_op_write.sum": 5}, 15),
        ("dram_busy_pct", {"dram__throughput.avg.pct_of_peak_sustained_elapsed": 70}, 70),
        ("tensor_pct", {"sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_elapsed": 41}, 41),
        ("tensor_pct", {"sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed": 42}, 42),
        ("fma_pct", {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": 33}, 33),
        ("long_scoreboard_pct", {"smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct": 12.5}, 12.5),
        (
            "no_instruction_pct",
            {"smsp__pcsamp_warps_issue_stalled_no_instructions": 14, "smsp__pcsamp_sample_count": 56},
            25,
        ),
        (
            "excess_sectors_pct",
            {"memory_l2_theoretical_sectors_global": 80, "memory_l2_theoretical_sectors_global_ideal": 20},
            75,
        ),
        (
            "shared_excess_pct",
            {"derived__memory_l1_wavefronts_shared_excessive": 30, "memory_l1_wavefronts_shared": 40},
            75,
        ),
    ],
)
def test_other_chips_and_versions_have_other_names(name: str, metrics: dict[str, float], value: float):
    assert derive_values(ncu_metrics.TABLE, metrics)[0][name] == value


def test_half_precision_counts_in_pairs_and_fused_ones_twice():
    ops = ("dadd", "dmul", "dfma", "fadd", "fmul", "ffma", "hadd", "hmul", "hfma")
    reading = {f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": 10.0**i for i, op in enumerate(ops)}
    values, _ = derive_values(ncu_metrics.TABLE, reading)
    assert values["flops_counted"] == 4_2_2_2_1_1_2_1_1
    assert values["fp64_share_pct"] == pytest.approx(100 * 211 / 422_211_211)


def test_local_sectors_and_atomics_are_shares_of_all_global_ones():
    sectors, requests = "l1tex__t_sectors_pipe_lsu_mem_{}.sum", "l1tex__t_requests_pipe_lsu_mem_{}.sum"
    kinds = ("local_op_ld", "local_op_st", "global_op_ld", "global_op_st", "global_op_atom", "global_op_red")
    reading = {sectors.format(kind): 10.0 for kind in kinds} | {requests.format(kind): 5.0 for kind in kinds}
    values, _ = derive_values(ncu_metrics.TABLE, reading)
    assert values["local_sectors_pct"] == pytest.approx(100 * 20 / 60)
    assert values["atomics_per_request"] == 0.5
    copy = "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_{}.sum"
    copies = {copy.format(way): 20.0 for way in ("access", "bypass")}
    assert derive_values(ncu_metrics.TABLE, reading | copies)[0]["local_sectors_pct"] == 20


def test_the_states_of_a_warp_add_up(softmax: Launch):
    named = sum(v for name, v in softmax.values.items() if name in COUNTED and "warp cycles" in COUNTED[name])
    others = (
        100 * (0.0267 + 0.2731 + 0.3922 + 0.0108 + 0.0 + 3.5409 + 1.0) / 23.7036
    )  # those without a name of ours
    assert named + others == pytest.approx(100, abs=0.1)


def test_a_collector_is_told_every_metric_that_it_needs():
    asked = ncu_metrics.requested_metrics()
    assert len(set(asked)) == len(asked)
    assert {ncu_metrics.DURATION, "dram__bytes_read.sum", "dram__bytes_op_read.sum"} <= set(asked)
    for name, formulas in ncu_metrics.TABLE.items():
        assert name in METRICS
        assert set(formulas[0].needs) <= set(asked)
    assert set(asked) < set(ncu_metrics.readable_metrics())


def test_launches_are_chosen_by_name(counters: Counters, softmax: Launch):
    two = counters.model_copy(
        update={"launches": (softmax, softmax.model_copy(update={"kernel": "gemm(float*)", "index": 1}))}
    )
    assert [x.index for x in select_launches(two, "gemm(float*)").launches] == [1]
    assert [x.index for x in select_launches(two, "^s|^g").launches] == [0, 1]
    with pytest.raises(Misuse, match=r"no kernel `softmax\(`; it has sm, gemm\(float"):
        select_launches(two, "softmax(")


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (None, MissingInput, "does not exist"),
        (b"", Misuse, "is empty"),
        (b"kernel,time\nsm,62\n", Misuse, "not an ncu report"),
        (b"NVR\0" + bytes(100), MissingInput, "contains no kernel"),
    ],
)
def test_files_that_are_no_reports(tmp_path: Path, content: bytes | None, kind: type[WarpsmithError], words: str):
    path = tmp_path / "a.ncu-rep"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(kind, match=words) as caught:
        ncu_report.read_ncu_report(path)
    assert str(path) in str(caught.value)


def test_a_folder_is_no_report(tmp_path: Path):
    with pytest.raises(Misuse, match="is a folder"):
        ncu_report.read_ncu_report(tmp_path)


@pytest.mark.parametrize(
    "length", [1, 4, 8, 16, 40, 1000, 100_000, 300_000, 900_000, 1_203_996, 1_302_996, 1_303_995]
)
def test_a_report_that_is_cut_short(tmp_path: Path, length: int):
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(REPORT.read_bytes()[:length])
    with pytest.raises((Misuse, MissingInput), match=r"truncated|not an ncu report|contains no kernel"):
        ncu_report.read_ncu_report(path)


def test_a_report_whose_reader_aborts_ends_nothing_here(tmp_path: Path):
    content = bytearray(REPORT.read_bytes())
    content[156] = 140  # a length that ncu-report checks by ending its process
    path = tmp_path / "bad.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(Misuse, match="damaged"):
        ncu_report.read_ncu_report(path)


@pytest.mark.parametrize("duration", [math.nan, math.inf, 0.0, None, "62 us"])
def test_a_report_without_times_says_what_to_collect(duration: Any):
    with pytest.raises(Misuse, match="--section SpeedOfLight"):
        launch({"gpu__time_duration.sum": duration})


def test_without_ncu_report_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(MachineLacks, match="pip install 'ncu-report>="):
        ncu_report.read_ncu_report(REPORT)
