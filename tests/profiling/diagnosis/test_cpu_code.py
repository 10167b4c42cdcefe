"""Advice on a CPU reads the code: each kernel here gets the opportunities that apply to it, and no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_timings import point, seen

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.core.profile import Profile
from warpsmith.profiling.assembly.inspect import inspect_assembly
from warpsmith.profiling.diagnosis.cpu_code import CodeFacts, read_code, read_source
from warpsmith.profiling.diagnosis.cpu_rules import DataSizes
from warpsmith.profiling.diagnosis.from_timings import profile_from_timings
from warpsmith.project import find_project

KERNELS = Path(__file__).parents[2] / "data" / "cpu"
IN_CACHE = DataSizes(row=4096, inputs=2**26, outputs=2**26, core_cache=2**20, all_caches=2**25)
LONG_ROWS = DataSizes(row=2**24, inputs=2**26, outputs=2**26, core_cache=2**20, all_caches=2**25)

pytestmark = pytest.mark.skipif(not shutil.which("objdump"), reason="objdump reads the assembly")


def definition(name: str) -> Definition:
    shape = ("rows", "cols")
    inputs: dict[str, TensorSpec | ScalarSpec] = {"x": TensorSpec(shape=shape)}
    if name == "softmax":
        inputs["scale"] = ScalarSpec(type="float", value=1.0)
    return Definition(
        name=name,
        description="An operator on rows.",
        axes={"rows": "rows", "cols": "columns"},
        inputs=inputs,
        outputs={"y": TensorSpec(shape=("rows",) if name == "squares" else shape)},
        flops="rows * cols",
        workloads=(Workload(name="a", axes={"rows": 4, "cols": 1024}, dtype="float32"),),
    )


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory):
    """A function from a kernel's name to the facts of its code, with AVX2 whatever this machine has."""
    read: dict[tuple[str, tuple[str, ...]], CodeFacts] = {}

    def facts(name: str, *dtypes: str) -> CodeFacts:
        dtypes = dtypes or ("float32",)
        if (name, dtypes) not in read:
            source = KERNELS / f"{name}.cpp"
            project = find_project(tmp_path_factory.mktemp("kernel"))
            assembly = inspect_assembly(project, source, "cpp", definition(name.split("_")[0]), arch="x86-64-v3")
            read[name, dtypes] = read_code(assembly, source.read_text(), dtypes)
        return read[name, dtypes]

    return facts


def profile(facts: CodeFacts | None, sizes: DataSizes = IN_CACHE, memory: float = 0.01, **changes) -> Profile:
    """A profile of timings far below the ceiling, unless `memory` says otherwise."""
    observed = seen(point(memory=memory), kind="cpu", **changes)
    return profile_from_timings(observed, facts, sizes)


def entries(found: Profile) -> list[str | None]:
    return [one.entry for one in found.opportunities]


def test_scalar_calls_are_named_with_function_count_and_lines(code):
    found = profile(code("softmax_v1"))
    first, second = found.opportunities
    assert first.name.endswith("scalar calls in the innermost loops: expf x2, lines 14 and 15")
    assert (first.trigger.name, first.trigger.value) == ("scalar_calls", 2)
    assert second.entry == "cpp-omp-simd-reduction"
    assert second.name.endswith("in the reduction at line 13")
    assert first.gain_pct > 80
    assert second.gain_pct < 20
    assert "expf x2" in found.root_cause


def test_calls_that_the_compiler_says_it_vectorised_are_named(code):
    facts = code("softmax_v2")
    assert (facts.calls, facts.call_lines) == ({"expf": 2}, (16, 18))
    assert [one.trigger.name for one in profile(facts).opportunities] == ["scalar_calls"]


def test_vectorised_loops_over_short_rows_leave_nothing_to_name(code):
    facts = code("softmax_v3")
    assert (facts.calls, facts.serial_lines, facts.scan_lines, facts.passes) == ({}, (), (), 3)
    assert facts.missed == {}, "the copy for bfloat16 serves no workload"
    found = profile(facts)
    assert found.opportunities == ()
    assert "work waits on itself" in found.root_cause


def test_a_type_that_no_workload_has_is_left_out_and_another_is_named(code):
    facts = code("softmax_v3", "float32", "bfloat16")
    assert list(facts.missed) == [26], "rounding to bfloat16 looks at NaN"
    (only,) = profile(facts).opportunities
    assert "the compiler did not vectorise line 26 (" in only.name
    assert (only.trigger.name, only.trigger.value) == ("missed_loops", 1)


def test_a_scan_is_no_reduction(code):
    facts = code("cumsum_v1")
    assert (facts.scan_lines, facts.serial_lines, facts.missed) == ((12,), (), {})
    (only,) = profile(facts).opportunities
    assert only.trigger.name == "scan_loops"
    assert "a scan at line 12: each result needs the one before" in only.name


def test_a_scan_inside_registers_leaves_nothing_to_name(code):
    facts = code("cumsum_v2")
    assert (facts.scan_lines, facts.serial_lines, facts.missed, facts.passes) == ((), (), {}, 1)
    assert profile(facts, LONG_ROWS).opportunities == ()


def test_a_reduction_that_gcc_calls_vectorised_is_still_in_order(code):
    facts = code("squares")
    assert facts.serial_lines == (11,)
    assert entries(profile(facts)) == ["cpp-omp-simd-reduction"]


def test_a_loop_that_was_missed_has_its_line_and_reason(code):
    facts = code("sweeps")
    assert facts.missed == {10: "control flow in loop"}
    found = profile(facts, DataSizes(), cores=1)
    (opportunity,) = found.opportunities
    assert opportunity.name.startswith("rewrite the loop:")
    assert "line 10 (control flow in loop)" in opportunity.name


def test_sweeps_over_more_than_the_caches_count_and_passes_over_a_short_row_do_not(code):
    facts = code("sweeps")
    assert facts.sweeps == 2
    assert "cpp-two-rows-or-fused-pass-in-cache" in entries(profile(facts, cores=1, memory=0.4))
    small = DataSizes(row=4096, inputs=2**20, outputs=2**20, core_cache=2**20, all_caches=2**25)
    assert "cpp-two-rows-or-fused-pass-in-cache" not in entries(profile(facts, small, cores=1, memory=0.4))


def test_passes_count_only_where_a_row_is_longer_than_the_cache(code):
    facts = code("softmax_v3")
    long = profile(facts, LONG_ROWS, memory=0.4)
    (only,) = long.opportunities
    assert (only.entry, only.trigger.name, only.trigger.value) == ("single-pass-online-reduction", "row_passes", 3)
    assert "3 passes over rows of 16384 KiB" in only.name
    assert "1024 KiB" in only.name
    assert only.gain_pct == pytest.approx(40, abs=0.1), "two more readings of half of the bytes, 40 % of the time"
    assert profile(facts, memory=0.4).opportunities == ()


def test_threads_that_are_there_are_not_proposed(code):
    assert code("softmax_v1").parallel_regions == 1
    alone = code("sweeps")
    assert alone.parallel_regions == 0
    assert "openmp-row-parallelism" in entries(profile(alone))
    assert "openmp-row-parallelism" not in entries(profile(alone, cores=1))
    library = profile(alone, one_thread_seconds=4.0)
    assert "openmp-row-parallelism" not in entries(library), "a library that it calls has threads"
    uneven = profile(code("softmax_v3"), one_thread_seconds=1.5).opportunities
    assert [one.name.partition(": ")[2] for one in uneven] == ["the threads on 8 cores do the work of 1.5"]
    assert "openmp-row-parallelism" not in entries(profile(code("softmax_v3"), one_thread_seconds=4.1))


def test_streaming_stores_are_for_results_larger_than_the_caches(code):
    facts = code("softmax_v3")
    (only,) = profile(facts, memory=0.6).opportunities
    assert (only.entry, only.gain_pct) == ("cpp-streaming-stores", pytest.approx(33.3, abs=0.1))
    small = DataSizes(row=4096, inputs=2**20, outputs=2**20, core_cache=2**20, all_caches=2**25)
    assert profile(facts, small, memory=0.6).opportunities == ()
    few = DataSizes(row=4096, inputs=2**30, outputs=2**26, core_cache=2**20, all_caches=2**25)
    assert profile(facts, few, memory=0.6).opportunities[0].gain_pct < 6


@pytest.mark.parametrize("memory", [0.01, 0.5, 0.85, 0.95, 1.2])
def test_no_estimate_is_larger_than_the_gap(code, memory):
    for name in ("softmax_v1", "cumsum_v1", "squares", "sweeps"):
        for one in profile(code(name), LONG_ROWS, memory=memory).opportunities:
            assert one.gain_pct <= max(0, 100 - 100 * memory) + 0.05


def test_without_assembly_the_compilers_report_speaks(code):
    notes = ["line 14: not vectorized: it calls expf", "line 15: not vectorized: control flow in loop", "else"]
    facts = read_source("// #pragma omp parallel for\n#pragma omp  parallel\n", notes)
    assert (facts.calls, facts.call_lines, facts.missed) == ({"expf": 1}, (14,), {15: "control flow in loop"})
    assert facts.parallel_regions == 1, "a comment starts no thread"
    found = profile(facts)
    assert {one.trigger.name for one in found.opportunities} == {"scalar_calls", "missed_loops"}
    assert profile(None).opportunities == (), "nothing is known of this code"


def test_a_busy_machine_is_named_and_tells_nothing_of_threads(code):
    busy = profile(code("softmax_v3"), load="other processes keep 1.9 cores busy")
    assert busy.load == "other processes keep 1.9 cores busy"
    assert busy.value("thread_scaling") is None
    assert "neither ceiling is near, other processes used the cores" in busy.root_cause
    assert busy.opportunities == ()
