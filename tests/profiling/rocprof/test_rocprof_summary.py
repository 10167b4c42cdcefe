"""Summaries of AMD profiles: of files that AMD published, and of values past each rule's threshold."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from warpsmith.errors import Misuse
from warpsmith.profiling.counters import Counters, Launch
from warpsmith.profiling.rocprof.report import read_rocprof_report
from warpsmith.profiling.rocprof.shares import share_values
from warpsmith.profiling.rocprof.summary import KernelSummary, summarize_report
from warpsmith.profiling.rocprof.symptoms import SYMPTOMS, AmdSymptom

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "rocprof"
COMPUTE = DATA / "compute"


def summarize_values(values: dict[str, float], peak: float | None = None) -> KernelSummary:
    launch = Launch(
        index=0,
        kernel="k",
        device="",
        architecture="",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        seconds=1e-3,
        values=values,
    )
    counters = Counters(tool="rocprofv3", report="r", sha256="0" * 64, launches=(launch,))
    return summarize_report(counters, peak).kernels[0]


def published(name: str) -> KernelSummary:
    return summarize_report(read_rocprof_report(COMPUTE / name)).kernels[0]


def test_a_copy_on_an_mi200_waits_for_memory_behind_its_l1():
    kernel = published("kernel_mi200")
    assert [finding.id for finding in kernel.findings] == ["l1-stall", "l2", "hbm", "memory-wait"]
    assert kernel.bottleneck == "memory: vL1D waits for L2"
    # The median launch's reads and writes of 64 bytes: a part of the results was still in the L2.
    assert kernel.values["dram_bytes"] == (131_083 + 91_112) * 64
    assert kernel.values["hbm_pct"] == pytest.approx(100 * (131_083 + 91_112) * 64 / 16_320 / 1638.4, abs=0.001)
    assert kernel.values["resident_pct"] == pytest.approx(54.7, abs=0.1)


def test_a_copy_on_an_mi300x_waits_for_memory():
    kernel = published("kernel_mi300x_a1")
    assert kernel.bottleneck == "latency: waves wait for memory"
    assert kernel.values["dram_bytes"] == pytest.approx(2 * 2**20 * 8, rel=0.01)
    assert (kernel.launches, kernel.values["blocks"]) == (3, 4096)


def test_cycles_of_more_than_the_kernel_give_no_share():
    kernel = published("kernel_mi300x_a1")  # 10 times the cycles that its time can have
    assert not {"resident_pct", "valu_pct", "mfma_pct", "l2_pct"} & set(kernel.values)
    assert "compute: MFMA" in {item.bottleneck for item in kernel.unknown}


def test_counters_of_two_passes_that_contradict_each_other_are_unknown():
    kernel = published("no_roof_mi300x_a1")  # waves waited for 151 % of their cycles
    assert "memory_wait_pct" not in kernel.values
    assert kernel.bottleneck == "none named"
    collect = {item.bottleneck: item.collect for item in kernel.unknown}
    assert collect["latency: waves wait for memory"] == "SQ_WAIT_ANY SQ_WAVE_CYCLES in one pass"


def test_a_copy_on_an_mi350_waits_for_memory():
    kernel = published("no_roof_mi350")
    assert kernel.bottleneck == "latency: waves wait for memory"
    collect = {item.bottleneck: item.collect for item in kernel.unknown}
    assert collect["memory: HBM bandwidth"].startswith("the peak bandwidth: no hardware page")


def test_published_files_of_the_documentation_have_times_and_nothing_else():
    summary = summarize_report(read_rocprof_report(DATA / "published"))
    assert [kernel.launches for kernel in summary.kernels] == [4, 2, 1]
    assert {kernel.bottleneck for kernel in summary.kernels} == {"UNKNOWN"}
    assert len(summary.kernels[0].unknown) == len(SYMPTOMS)


@pytest.mark.parametrize("name", ["sdk_kernel_trace.csv", "sdk_counter_collection.csv"])
def test_each_file_of_a_run_brings_the_other(name: str):
    assert len(read_rocprof_report(DATA / "published" / name).launches) == 7


def test_a_kernel_trace_alone_is_read(tmp_path: Path):
    shutil.copy(DATA / "published" / "sdk_kernel_trace.csv", tmp_path)
    assert len(read_rocprof_report(tmp_path).launches) == 7


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Arch_VGPR", "VGPR", "lacks the columns Arch_VGPR"),
        (",65536", ",many", "damaged at line 2"),
        (",256,", ",0,", "damaged at line 2"),
        (",256,", ",", "damaged at line 2"),
        (",256,", ",256,256,", "damaged at line 2"),
    ],
)
def test_a_damaged_file_of_rocprof_compute(tmp_path: Path, old: str, new: str, words: str):
    path = tmp_path / "pmc_perf.csv"
    path.write_text((COMPUTE / "kernel_mi200" / path.name).read_text().replace(old, new))
    with pytest.raises(Misuse, match=words):
        read_rocprof_report(path)


def value_past(symptom: AmdSymptom) -> dict[str, float]:
    """Values at which the rule just applies."""
    values = {symptom.metric: symptom.threshold - 0.5 if symptom.below else symptom.threshold}
    if symptom.guard:
        values[symptom.guard] = symptom.guard_threshold - 0.5 if symptom.guard_below else symptom.guard_threshold
    return values


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_each_rule_applies_from_its_threshold_on(symptom: AmdSymptom):
    assert symptom.id in {finding.id for finding in summarize_values(value_past(symptom)).findings}
    for metric, below in ((symptom.metric, symptom.below), (symptom.guard, symptom.guard_below)):
        if metric:
            other = value_past(symptom) | {metric: 99.0 if below else 0.0}
            assert symptom.id not in {finding.id for finding in summarize_values(other).findings}


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_a_rule_without_its_share_is_unknown(symptom: AmdSymptom):
    kernel = summarize_values({})
    assert kernel.bottleneck == "UNKNOWN"
    unknown = next(item for item in kernel.unknown if item.bottleneck == symptom.bottleneck)
    assert unknown.collect


@pytest.mark.parametrize(
    ("values", "bottleneck"),
    [
        ({"hbm_pct": 95, "lds_conflict_pct": 60, "memory_wait_pct": 99}, "memory: HBM bandwidth"),
        ({"hbm_pct": 55, "lds_conflict_pct": 60, "memory_wait_pct": 99}, "memory: LDS bank conflicts"),
        ({"mfma_pct": 91, "memory_wait_pct": 99}, "compute: MFMA"),
        ({"resident_pct": 20, "memory_wait_pct": 80}, "latency: too few waves"),
        ({"resident_pct": 20, "memory_wait_pct": 80, "long_scoreboard_pct": 40}, "latency: vector memory"),
        ({"resident_pct": 20, "memory_wait_pct": 10}, "none named"),
    ],
)
def test_a_cause_comes_before_general_waiting(values: dict[str, float], bottleneck: str):
    assert summarize_values(values).bottleneck == bottleneck


def test_the_peak_of_a_hardware_page_gives_the_share_of_hbm():
    kernel = summarize_values({"dram_bytes": 2.65e9}, peak=5300)
    assert kernel.values["hbm_pct"] == pytest.approx(50)
    assert kernel.bottleneck == "memory: HBM bandwidth"


def test_shares_are_of_one_compute_units_cycles():
    reading = {"GRBM_GUI_ACTIVE": 8000, "Num_Xcc": 8, "Cu_Count": 10}
    reading |= {"SQ_WAVE_CYCLES": 40_000, "SQ_ACTIVE_INST_VALU": 2500}  # the first in fours, for 32 slots
    assert share_values(reading) == pytest.approx({"resident_pct": 50, "valu_pct": 25})
    timed = reading | {"Seconds": 1e-6, "Max_Engine_Clk_Fcompute": 2100}
    assert "resident_pct" in share_values(timed | {"GRBM_GUI_ACTIVE": 8 * 3100})
    assert "resident_pct" not in share_values(timed | {"GRBM_GUI_ACTIVE": 8 * 3200})


def test_the_page_has_every_rule_with_its_threshold():
    page = (ROOT / "docs" / "profiling-amd.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| ([^|]+) \| \[([^]]+)\]\(([^)]+)\) \|$", page, re.MULTILINE)
    assert [(bottleneck, condition, source, entry) for bottleneck, condition, source, entry, _ in rows] == [
        (symptom.bottleneck, symptom.condition, symptom.source, symptom.entry) for symptom in SYMPTOMS
    ]
    assert all((ROOT / "docs" / link).is_file() for *_, link in rows)
