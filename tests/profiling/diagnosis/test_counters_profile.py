"""A profile from counters: stages by kernel, one root cause with its numbers, at most three things to try."""

from __future__ import annotations

import re

import pytest
from planted_values import PLANTED, Plant, launch, report

from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Observations, Profile
from warpsmith.profiling.counters import Advice, Counters
from warpsmith.profiling.diagnosis import from_counters as counters
from warpsmith.profiling.diagnosis import from_timings as timings
from warpsmith.profiling.diagnosis.classifier import SYMPTOMS

ISSUE = {symptom.id: symptom.title for symptom in SYMPTOMS}
QUIET = PLANTED["quiet"]


def profiled(given: Counters, **known: object) -> Profile:
    return counters.profile_from_counters(given, version="v3", language="cuda", sha256="a" * 64, **known)  # type: ignore[arg-type]


def of(plant: Plant, **known: object) -> Profile:
    return profiled(report(launch(plant)), **(plant.known | known))


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_symptom_comes_first(name: str):
    plant = PLANTED[name]
    found = of(plant)
    assert found.stages[0].issue == (ISSUE[plant.expected] if plant.expected else "no symptom")
    if plant.expected is None:
        assert found.opportunities == ()


@pytest.mark.parametrize("name", PLANTED)
def test_the_contract_holds(name: str):
    found = of(PLANTED[name])
    assert found.evidence == "counters"
    assert len(re.findall(r"[.!?](?= |$)", found.root_cause)) <= 2
    assert found.root_cause.endswith(".")
    gains = [one.gain_pct for one in found.opportunities]
    assert gains == sorted(gains, reverse=True)
    assert all(0 < gain <= 100 for gain in gains)
    assert len(gains) <= 3
    assert {metric.name for metric in found.metrics} <= set(METRICS)
    assert Profile.model_validate_json(found.model_dump_json()) == found


def test_a_real_softmax_is_at_the_limit_and_nothing_is_wrong_with_it():
    found = of(PLANTED["softmax"])
    assert found.bottleneck == "at-the-limit"
    assert found.opportunities == ()
    assert found.root_cause.startswith("DRAM is saturated in kernel (dram_busy_pct=81.38).")
    assert found.value("traffic_amplification") == pytest.approx(0.91)


def test_the_root_cause_has_the_numbers_behind_it():
    found = of(PLANTED["bank_conflicts"])
    figures = "(shared_excess_pct=96.5, short_scoreboard_pct=78, mio_throttle_pct=15)"
    assert found.root_cause.startswith(f"Shared memory has bank conflicts in kernel {figures}.")
    first = found.opportunities[0]
    assert (first.trigger.name, first.trigger.value) == ("shared_excess_pct", 96.5)
    assert first.entry == "bank-conflict-padding-swizzle"
    assert first.gain_pct == pytest.approx(89.7, abs=0.1)


def test_the_root_cause_without_a_symptom_says_how_busy_it_is():
    assert of(QUIET).root_cause == (
        "No symptom passes its threshold in kernel (dram_busy_pct=20, sm_busy_pct=30, l2_busy_pct=25)."
    )


def test_the_longest_names_still_fit():
    name = "void cutlass::device_kernel<" + "x" * 500
    for plant in PLANTED.values():
        found = profiled(report(*[launch(plant, name, k) for k in range(12)]), **plant.known)
        assert len(found.root_cause) <= 400


@pytest.mark.parametrize(
    ("dram", "sm", "expected"), [(59, 59, "latency"), (65, 40, "memory"), (40, 65, "compute"), (70, 65, "memory")]
)
def test_without_a_symptom_the_busier_side_is_the_class(dram: float, sm: float, expected: str):
    found = of(Plant(None, {"dram_busy_pct": dram, "sm_busy_pct": sm}))
    assert found.stages[0].issue == "no symptom"
    assert found.bottleneck == expected


def test_stages_are_kernels_the_one_that_takes_the_most_time_first():
    long, short = Plant(None, {}, seconds=3e-4), PLANTED["barrier_bound"]
    found = profiled(report(launch(short, "combine", 0), launch(long, "main", 1)))
    assert [(stage.name, stage.bottleneck) for stage in found.stages] == [
        ("main", "latency"),
        ("combine", "latency"),
    ]
    assert [stage.issue for stage in found.stages] == ["no symptom", ISSUE["barrier-stalls"]]
    assert found.root_cause.startswith("No symptom passes its threshold in main")
    assert (found.stages[0].dram_pct, found.stages[0].occupancy_pct) == (20, 93.219)
    assert found.value("launch_count") == 2


def test_what_a_cure_saves_counts_by_the_kernels_share_of_the_call():
    main, slow = Plant(None, {}, seconds=3e-4), PLANTED["barrier_bound"]
    alone = of(slow).opportunities[0]
    found = profiled(report(launch(slow, "combine", 0), launch(main, "main", 1))).opportunities[0]
    assert found.gain_pct == pytest.approx(alone.gain_pct / 4, abs=0.1)
    assert found.name == f"{alone.name} (combine)"


def test_one_cure_for_two_kernels_is_one_opportunity():
    slow = PLANTED["barrier_bound"]
    alone = of(slow).opportunities
    found = profiled(report(launch(slow, "one", 0), launch(slow, "two", 1))).opportunities
    assert [(one.name, one.gain_pct) for one in found] == [(one.name, one.gain_pct) for one in alone]


def test_two_symptoms_of_one_kernel_with_one_cure_are_not_added_up():
    found = of(PLANTED["strided_on_both_sides"]).opportunities
    assert [one.entry for one in found] == ["coalesced-access"]
    assert found[0].gain_pct == pytest.approx(78.8, abs=0.1)


def test_launches_of_one_kernel_are_one_stage_that_the_median_speaks_for():
    seconds_and_dram = [(5e-5, 10), (9e-5, 90), (6e-5, 20)]
    launches = [
        launch(Plant(None, {"dram_busy_pct": dram}, seconds), "step", index)
        for index, (seconds, dram) in enumerate(seconds_and_dram)
    ]
    found = profiled(report(*launches))
    assert [(stage.name, stage.dram_pct) for stage in found.stages] == [("step x3", 20)]
    assert found.stages[0].seconds == pytest.approx(2e-4)
    assert found.value("dram_busy_pct") == 20
    assert found.value("launch_count") == 3


def test_one_kernel_in_two_configurations_is_two_stages():
    small = Plant(None, {"blocks": 1056, "waves": 1})
    found = profiled(report(launch(small, "step", 0), launch(QUIET, "step", 1)))
    assert len(found.stages) == 2


def test_traffic_is_amplified_over_the_whole_call():
    two = report(launch(QUIET, "a", 0), launch(QUIET, "b", 1))
    assert profiled(two, algorithmic_bytes=5e7).value("traffic_amplification") == 2
    assert profiled(two).value("traffic_amplification") is None
    uncounted = launch(QUIET).model_copy(update={"values": {"sm_busy_pct": 30.0}})
    assert profiled(report(uncounted), algorithmic_bytes=5e7).value("traffic_amplification") is None


def test_short_launches_are_launch_bound_by_their_mean():
    tiny = PLANTED["launch_bound"]
    many = [launch(tiny, "step", k) for k in range(16)]
    found = profiled(report(*many))
    assert found.bottleneck == "launch"
    assert found.opportunities[0].trigger.value == pytest.approx(38.4)
    assert found.opportunities[0].entry == "cuda-graphs-for-launch-bound"
    assert profiled(report(*many, launch(Plant(None, {}, 1e-3), "main", 16))).bottleneck != "launch"


def test_the_measured_cost_of_the_host_goes_before_the_assumed_one():
    plant = Plant(None, {}, seconds=7e-6)
    assert of(plant).bottleneck != "launch"
    assert of(plant, host_seconds=9e-6).bottleneck == "launch"
    assert of(Plant(None, {}, seconds=3e-6), host_seconds=1e-6).bottleneck != "launch"


OBSERVED = Observations.model_validate(
    {
        "version": "v3",
        "language": "cuda",
        "solution_sha256": "a" * 64,
        "kind": "gpu",
        "points": [
            {
                "workload": "w",
                "seconds": 1e-4,
                "floor_seconds": 6e-5,
                "memory_seconds": 6e-5,
                "compute_seconds": 0,
                "bytes": 2.5e8,
            }
        ],
        "cores": 8,
        "host_seconds": 2e-4,
        "resources": [{"kernel": "k", "registers": 200, "spill_bytes": 8}],
        "measured": "2026-11-21 10:00",
    }
)


def test_what_was_timed_stays_beside_what_was_counted():
    found = of(QUIET, observations=OBSERVED)
    timed = timings.profile_from_timings(OBSERVED)
    for name in ("dram_pct", "ceiling_pct", "time_us", "spill_bytes"):
        assert found.value(name) == timed.value(name) is not None
    assert found.value("registers_per_thread") == QUIET.values["registers_per_thread"], "the counter goes first"
    assert found.value("issue_active_pct") == 30
    assert found.bottleneck == "launch", "the observed cost of the host counts"


def test_time_under_a_profiler_is_no_time_of_a_call():
    assert of(QUIET).value("time_us") is None


def test_what_was_not_evaluated_is_said():
    found = of(QUIET)
    assert "not evaluated: l2-thrash (needs traffic_amplification)" in found.without
    assert "no-tensor-cores (needs asks_for_tensor_cores)" in found.without
    everything = of(QUIET, algorithmic_bytes=5e7, asks_for_tensor_cores=False)
    assert everything.without == ""


def test_what_the_tools_own_rules_say_is_quoted():
    said = (
        Advice(rule="SOLBottleneck", title="High Throughput"),
        Advice(rule="CPIStall", title="Long Scoreboard Stalls", speedup_pct=39.02),
        Advice(rule="CPIStall", title="Long Scoreboard Stalls", speedup_pct=39.02),
        Advice(rule="Empty", title=""),
    )
    found = profiled(report(launch(QUIET, advice=said)), details="profiles/v3.json")
    assert found.advice == (
        "ncu CPIStall: Long Scoreboard Stalls, est. 39 %",
        "ncu SOLBottleneck: High Throughput",
    )
    assert found.details == "profiles/v3.json"
    many = tuple(Advice(rule=f"r{k}", title="t") for k in range(9))
    assert len(profiled(report(launch(QUIET, advice=many))).advice) == 5


def test_the_operator_can_be_float64():
    slip = PLANTED["fp64_slip"]
    assert of(slip).bottleneck == "compute"
    assert of(slip, float64=True).bottleneck == "at-the-limit"
