"""The classifier: each planted fault is named first, good kernels are left alone, pages and rules agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planted_values import PLANTED, QUIET

from warpsmith import project as projects
from warpsmith.core.metrics import METRICS
from warpsmith.knowledge import symptom_page
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.search import symptoms as told
from warpsmith.profiling.diagnosis.classifier import SYMPTOMS, DetectedSymptom, _explained, diagnose
from warpsmith.profiling.diagnosis.symptom import DRAM_CEILING, Facts, Symptom

SHIPPED = projects.find_project(projects.SHIPPED)
BY_ID = {symptom.id: symptom for symptom in SYMPTOMS}


def facts(values: dict[str, float], **known: object) -> Facts:
    """Values of one kernel that is a call by itself."""
    given = QUIET | {"launch_count": 1, "time_us": 100, "traffic_amplification": 1} | values
    return Facts(given, **known)  # type: ignore[arg-type]


def named(values: dict[str, float], **known: object) -> list[str]:
    return [found.symptom.id for found in diagnose(facts(values, **known)).symptoms]


def test_there_is_a_rule_for_each_common_fault():
    assert len(BY_ID) == len(SYMPTOMS) >= 18
    assert {plant.expected for plant in PLANTED.values()} - {None} == set(BY_ID)


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_a_rule_speaks_the_shared_vocabulary(symptom: Symptom):
    extra = {"asks_for_tensor_cores"}
    assert {symptom.metric, *symptom.needs} - extra <= set(METRICS)
    assert set(symptom.explains) <= set(BY_ID) - {symptom.id}
    assert not [id for id in symptom.explains if symptom.id in BY_ID[id].explains], "each would drop the other"
    assert symptom.mechanism.endswith(".")
    assert len(symptom.mechanism) <= 115
    assert len(symptom.title) <= 60


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.id)
def test_a_rule_needs_no_more_than_it_says(symptom: Symptom):
    full = facts({}).values
    given = {name: full[name] for name in (symptom.metric, *symptom.needs) if name in full}
    alone = Facts(given, asks_for_tensor_cores=True)
    assert isinstance(symptom.holds(alone), bool)
    assert isinstance(symptom.saves(alone), float)


@pytest.mark.parametrize("name", PLANTED)
def test_no_rule_saves_more_than_all_of_the_time(name: str):
    values = facts(PLANTED[name].values, asks_for_tensor_cores=True)
    for symptom in SYMPTOMS:
        if symptom.holds(values):
            assert 0 <= symptom.saves(values) <= 1, symptom.id


EDGES: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "launch-bound": ({"time_us": 4.9}, {"time_us": 5.1}),
    "grid-too-small": ({"blocks": 131, "waves": 131 / 1056}, {"blocks": 132, "waves": 132 / 1056}),
    "tail-wave": ({"blocks": 1800, "waves": 1800 / 1056}, {"blocks": 1950, "waves": 1950 / 1056}),
    "serial-tail": ({"active_share_pct": 74.9}, {"active_share_pct": 75.1}),
    "occupancy-registers": (
        {"occupancy_limit_pct": 79, "occupancy_pct": 70, "limit_registers": 5},
        {"occupancy_limit_pct": 81, "occupancy_pct": 70, "limit_registers": 5},
    ),
    "occupancy-shared-memory": (
        {"occupancy_limit_pct": 79, "occupancy_pct": 70, "limit_shared": 5},
        {"occupancy_limit_pct": 81, "occupancy_pct": 70, "limit_shared": 5},
    ),
    "occupancy-blocks": (
        {"occupancy_limit_pct": 79, "occupancy_pct": 70, "limit_blocks": 7},
        {"occupancy_limit_pct": 81, "occupancy_pct": 70, "limit_blocks": 7},
    ),
    "barrier-stalls": ({"barrier_stall_pct": 31}, {"barrier_stall_pct": 29}),
    "pipeline-bubbles": ({"eligible_warps": 0.9, "wait_pct": 40}, {"eligible_warps": 1.1, "wait_pct": 40}),
    "instruction-cache-misses": ({"no_instruction_pct": 31}, {"no_instruction_pct": 29}),
    "dram-saturated": ({"dram_busy_pct": 79.3}, {"dram_busy_pct": 79.1}),
    "uncoalesced-loads": (
        {"excess_sectors_pct": 20, "sectors_per_request": 17, "store_sectors_per_request": 30},
        {"excess_sectors_pct": 20, "sectors_per_request": 16, "store_sectors_per_request": 30},
    ),
    "sparse-stores": (
        {"excess_sectors_pct": 20, "store_sectors_per_request": 17, "sectors_per_request": 30},
        {"excess_sectors_pct": 20, "store_sectors_per_request": 16, "sectors_per_request": 30},
    ),
    "narrow-loads": (
        {"sectors_per_request": 2, "long_scoreboard_pct": 31},
        {"sectors_per_request": 2.1, "long_scoreboard_pct": 31},
    ),
    "narrow-accesses": ({"lg_throttle_pct": 31}, {"lg_throttle_pct": 29}),
    "long-scoreboard": ({"long_scoreboard_pct": 31}, {"long_scoreboard_pct": 29}),
    "short-scoreboard": ({"short_scoreboard_pct": 31}, {"short_scoreboard_pct": 29}),
    "bank-conflicts": (
        {"shared_excess_pct": 10.1, "mio_throttle_pct": 20},
        {"shared_excess_pct": 9.9, "mio_throttle_pct": 20},
    ),
    "local-memory-spills": ({"local_sectors_pct": 5.1}, {"local_sectors_pct": 4.9}),
    "l2-thrash": (
        {"traffic_amplification": 1.21, "l2_hit_pct": 50},
        {"traffic_amplification": 1.19, "l2_hit_pct": 50},
    ),
    "atomics-contention": ({"atomics_per_request": 0.11}, {"atomics_per_request": 0.09}),
    "arithmetic-saturated": (
        {"fma_pct": 80.1, "sm_busy_pct": 81, "issue_active_pct": 79},
        {"fma_pct": 79.9, "sm_busy_pct": 81, "issue_active_pct": 79},
    ),
    "no-tensor-cores": ({"tensor_pct": 4.9}, {"tensor_pct": 5.1}),
    "fp64-slip": ({"fp64_share_pct": 5.1}, {"fp64_share_pct": 4.9}),
    "divergence": ({"threads_per_instruction": 23.9}, {"threads_per_instruction": 24.1}),
    "special-functions": ({"xu_pct": 60.1}, {"xu_pct": 59.9}),
    "integer-division": ({"xu_pct": 61, "conversion_pct": 50.1}, {"xu_pct": 61, "conversion_pct": 49.9}),
    "instruction-bound": (
        {"issue_active_pct": 80.1, "sm_busy_pct": 81},
        {"issue_active_pct": 79.9, "sm_busy_pct": 81},
    ),
}
"""Values just past each threshold, and just before it."""


@pytest.mark.parametrize("id", BY_ID)
def test_a_rule_holds_just_past_its_threshold_and_not_just_before(id: str):
    asks = id == "no-tensor-cores"
    past, before = (facts(values, asks_for_tensor_cores=asks) for values in EDGES[id])
    assert BY_ID[id].holds(past)
    assert not BY_ID[id].holds(before)


@pytest.mark.parametrize(
    "name", ["barrier-stalls", "long-scoreboard", "instruction-cache-misses", "short-scoreboard"]
)
@pytest.mark.parametrize("busy", [{"issue_active_pct": 81}, {"sm_busy_pct": 61}, {"dram_busy_pct": 71}])
def test_a_stall_costs_nothing_where_something_is_busy(name: str, busy: dict[str, float]):
    stalled = {BY_ID[name].metric: 60.0}
    assert named(stalled) == [name]
    assert name not in named(stalled | busy)


def test_a_full_queue_costs_time_whatever_keeps_it_full():
    full = {"lg_throttle_pct": 60.0, "sm_busy_pct": 95}
    assert named(full) == ["narrow-accesses"]
    assert named(full | {"issue_active_pct": 81}) != ["narrow-accesses"]
    assert named(full | {"dram_busy_pct": 71}) == []


def test_what_was_not_measured_is_named():
    left = {name: value for name, value in facts({}).values.items() if name not in ("waves", "fp64_share_pct")}
    missing = diagnose(Facts(left)).not_evaluated
    assert "not evaluated: tail-wave (needs waves)" in missing
    assert "not evaluated: fp64-slip (needs fp64_share_pct)" in missing
    assert any("no-tensor-cores (needs asks_for_tensor_cores)" in line for line in missing)
    assert len(missing) == 5
    assert diagnose(facts({}, asks_for_tensor_cores=False)).not_evaluated == ()
    assert len(diagnose(Facts({})).not_evaluated) == len(SYMPTOMS)


def test_what_was_not_measured_does_not_fire():
    for name in QUIET:
        values = {key: value for key, value in facts(PLANTED["fp64_slip"].values).values.items() if key != name}
        for found in diagnose(Facts(values)).symptoms:
            assert name not in (found.symptom.metric, *found.symptom.needs)


def test_float64_that_was_asked_for_is_no_accident():
    values = PLANTED["fp64_slip"].values
    assert named(values)[0] == "fp64-slip"
    assert named(values, float64=True) == ["arithmetic-saturated"]


def test_tensor_cores_are_missed_only_where_they_are_asked_for():
    values = PLANTED["matmul_at_the_fma_peak"].values
    assert named(values, asks_for_tensor_cores=True)[0] == "no-tensor-cores"
    assert named(values, asks_for_tensor_cores=False) == ["arithmetic-saturated"]


def test_a_product_in_half_precision_belongs_on_tensor_cores_wherever_the_fma_pipe_leads():
    leads = {"fma_pct": 45.0, "dram_busy_pct": 20.0}
    small = {"asks_for_tensor_cores": False, "half_product": True}
    assert named(leads, **small) == ["no-tensor-cores"]
    assert named(leads, asks_for_tensor_cores=False) == []
    assert named(leads | {"tensor_pct": 6}, **small) == []
    assert "no-tensor-cores" not in named(leads | {"alu_pct": 50}, **small)
    assert "no-tensor-cores" not in named(leads | {"dram_busy_pct": 44}, **small)


@pytest.mark.parametrize(
    "other",
    [{"threads_per_instruction": 1}, {"l1_hit_pct": 60}, {"sectors_per_request": 4}],
    ids=["one lane", "one address for all lanes", "four bytes"],
)
def test_loads_that_wait_for_another_reason_are_not_called_narrow(other: dict[str, float]):
    narrow = {"sectors_per_request": 1.0, "long_scoreboard_pct": 80.0}
    assert named(narrow)[0] == "narrow-loads"
    assert "narrow-loads" not in named(narrow | other)


def test_a_nearly_empty_last_wave_is_no_serial_tail():
    tail = {"blocks": 278, "waves": 278 / 264, "active_share_pct": 70}
    assert not BY_ID["serial-tail"].holds(facts(tail))
    assert BY_ID["serial-tail"].holds(facts(tail | {"active_share_pct": 20}))
    assert not BY_ID["serial-tail"].holds(facts({"blocks": 8, "waves": 8 / 1056, "active_share_pct": 6}))


def test_conversions_alone_are_no_divisions():
    busy = {"xu_pct": 80.0}
    assert named(busy | {"conversion_pct": 67})[0] == "integer-division"
    assert named(busy | {"conversion_pct": 100})[0] == "special-functions"
    assert named(busy | {"conversion_pct": 0})[0] == "special-functions"


def test_the_measured_ceiling_decides_what_is_saturated():
    values = {"dram_busy_pct": 72.0}
    assert named(values) == []
    assert named(values, dram_ceiling_pct=79.0) == ["dram-saturated"]


def test_the_ceiling_that_is_taken_without_one_is_the_measured_copy():
    record = json.loads((SHIPPED.measurements / "h200-4fad90d5be.json").read_text())
    peak = 1504 * 3.2015  # bytes a cycle and GHz of the memory, as ncu gives them for an H200
    assert pytest.approx(100 * record["ceilings"]["copy"]["value"] / peak, abs=0.2) == DRAM_CEILING


@pytest.mark.parametrize(
    "excess", [{"excess_sectors_pct": 30}, {"local_sectors_pct": 20}, {"traffic_amplification": 2}]
)
def test_a_saturated_dram_is_no_limit_where_its_traffic_is_not_needed(excess: dict[str, float]):
    saturated = facts({"dram_busy_pct": 88.0, "l2_busy_pct": 80.0}).values
    unknown = {name: value for name, value in saturated.items() if name != "traffic_amplification"}
    assert [found.symptom.id for found in diagnose(Facts(unknown)).symptoms] == ["dram-saturated"]
    instead = [found.symptom.id for found in diagnose(Facts(unknown | excess)).symptoms]
    assert instead
    assert "dram-saturated" not in instead


def test_needed_traffic_at_the_limit_is_the_limit_whatever_l2_moves():
    assert named({"dram_busy_pct": 88, "l2_busy_pct": 90, "excess_sectors_pct": 50}) == ["dram-saturated"]


def test_a_conclusive_symptom_stands_alone():
    assert named({"dram_busy_pct": 88, "threads_per_instruction": 8}) == ["dram-saturated"]
    assert named({"time_us": 3, "long_scoreboard_pct": 70, "threads_per_instruction": 8}) == ["launch-bound"]


def test_a_cause_takes_its_consequence_along_unless_it_is_small():
    cause, consequence = BY_ID["uncoalesced-loads"], BY_ID["long-scoreboard"]
    assert consequence.id in cause.explains
    second = DetectedSymptom(consequence, 50, 0.6)
    assert _explained(second, [DetectedSymptom(cause, 32, 0.3), second])
    assert not _explained(second, [DetectedSymptom(cause, 32, 0.29), second])
    assert not _explained(DetectedSymptom(cause, 32, 0.1), [DetectedSymptom(cause, 32, 0.1), second])


def test_the_symptom_that_costs_the_most_comes_first():
    both = {"threads_per_instruction": 20.0, "barrier_stall_pct": 60.0}
    assert named(both) == ["barrier-stalls", "divergence"]
    assert named(both | {"threads_per_instruction": 4.0}) == ["divergence", "barrier-stalls"]


@pytest.mark.parametrize(
    ("name", "saves"),
    [
        ("tiny_grid", 124 / 132),
        ("tail_wave", 1 - 0.68),  # the empty part of the waves is 47 %, but the pipe was idle in 32 % only
        ("tail_wave_of_waiting_warps", 1 - 278 / 528),
        ("occupancy_registers", 1 - 0.125),
        ("occupancy_blocks", 0.5),
        ("long_scoreboard", 0.94 * (1 - 28 / 88)),
        ("barrier_bound", 0.88 * (1 - 0.12)),
        ("uncoalesced_without_bytes", 0.778 * 0.88),
        ("bank_conflicts", 0.965 * 0.93),
        ("spilling", 0.97 * 0.70),
        ("atomics", 1 - 0.02),
        ("no_tensor_cores", (1 - 67 / 989) * (1 - 3 / 88)),
        ("fp64_slip", 0.995 * 0.94),
        ("special_functions", 0.93 * (1 - 0.18)),
        ("divergence", (1 - 2.1 / 32) * (1 - 2 / 88)),
        ("launch_bound", 5 / 7.4),
    ],
)
def test_what_a_cure_saves_follows_from_the_counters(name: str, saves: float):
    plant = PLANTED[name]
    values = QUIET | {"launch_count": 1, "time_us": 1e6 * plant.seconds} | plant.values
    first = diagnose(Facts(values, asks_for_tensor_cores=plant.known.get("asks_for_tensor_cores"))).symptoms[0]
    assert (first.symptom.id, first.saves) == (plant.expected, pytest.approx(saves, abs=0.003))


PAGES = {
    page.stem: symptom_page.read_symptom_page(SHIPPED, page)
    for page in symptom_page.symptom_paths(SHIPPED.knowledge)
}


def test_every_rule_has_a_page_and_every_page_a_rule():
    assert set(PAGES) == set(BY_ID)


@pytest.mark.parametrize("id", BY_ID)
def test_a_page_gives_a_sourced_reason_for_its_threshold(id: str):
    why = PAGES[id].sections["Why this threshold"]
    assert "](https://" in why or "](../" in why


@pytest.mark.parametrize("id", BY_ID)
def test_a_search_for_a_symptom_leads_to_its_entries(id: str):
    led = [row for row, _ in told.match_symptoms(told.merge_symptom_tables(SHIPPED), BY_ID[id].title)]
    assert led, f"symptoms.yaml does not know `{BY_ID[id].title}`"
    assert set(PAGES[id].matter.entries) <= {entry for symptom in led for entry in symptom.entries}


def test_the_knowledge_is_large_enough_to_act_on():
    kinds = [entry.matter.kind for entry in Catalog.load(SHIPPED).entries.values()]
    assert kinds.count("optimization") >= 30
    assert kinds.count("anti-pattern") >= 16


def test_the_planted_kernels_have_their_programs():
    programs = {path.stem for path in (Path(__file__).parents[3] / "benchmarks" / "symptoms").glob("*.cu")}
    assert len(programs & set(PLANTED)) >= 12
