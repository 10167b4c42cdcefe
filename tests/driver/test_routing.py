"""Routes: the agent for each task and language, and every way in which users ask."""

from __future__ import annotations

import pytest

from warpsmith import languages
from warpsmith.driver import routing
from warpsmith.driver.routing import UNKNOWN_KERNEL, Route, RouteRequest
from warpsmith.errors import Misuse
from warpsmith.knowledge.catalog import Catalog
from warpsmith.project import find_project

LANGUAGES = languages.by_preference()
PROGRAM, GRAPH, RANKS = "program-specialist", "cuda-graph-specialist", "distributed-specialist"
EVERYONE = {*languages.agent_names(), "profiler", "reviewer", PROGRAM, GRAPH, RANKS}
FEW = {"cpp-specialist", "triton-specialist", "profiler", "reviewer"}

CPP, TRITON, CUTE, CUDA, CUTILE = (f"{name}-specialist" for name in ("cpp", "triton", "cutedsl", "cuda", "cutile"))


def route(agents: set[str] = EVERYONE, **asked: str | None) -> Route:
    """A route for words as a user writes them."""
    words = dict(asked)
    if words.get("language"):
        words["language"] = routing.parse_language(words["language"], LANGUAGES)
    if words.get("task"):
        words["task"] = routing.parse_task(words["task"])
    if words.get("architecture"):
        words["architecture"] = routing.parse_architecture(words["architecture"], LANGUAGES)
    return routing.plan_route(RouteRequest(**words), agents, LANGUAGES)


def agents_of(plan: Route) -> list[str]:
    return [step.agent for step in plan.steps]


ASKED = [
    ({"language": "CuTe DSL", "task": "write"}, CUTE),
    ({"language": "cute", "kernel": "triton"}, CUTE),
    ({"language": "CuTe DSL", "architecture": "Blackwell"}, CUTE),
    ({"language": "cute-dsl", "architecture": "sm_90a"}, CUTE),
    ({"language": "Triton", "task": "write"}, TRITON),
    ({"language": "Triton", "architecture": "sm_100"}, TRITON),
    ({"language": "triton", "kernel": "cutedsl"}, TRITON),
    # No preference: by architecture.
    ({"architecture": "cpu"}, CPP),
    ({"architecture": "sm_100"}, TRITON),
    ({"architecture": "sm_100+"}, TRITON),
    ({"architecture": "sm_120"}, TRITON),
    ({"architecture": "Blackwell", "kernel": "triton"}, TRITON),
    ({"architecture": "sm_100", "task": "baseline"}, TRITON),
    ({"architecture": "sm_80"}, TRITON),
    ({"architecture": "Ampere"}, TRITON),
    ({"architecture": "sm_89"}, TRITON),
    ({"architecture": "Hopper", "kernel": "triton"}, TRITON),
    ({"architecture": "gfx942"}, TRITON),
    ({"architecture": "CDNA4"}, TRITON),
    # No preference, a kernel: in its language, if that runs.
    ({"kernel": "cutedsl"}, CUTE),
    ({"kernel": "cutedsl", "architecture": "sm_90"}, CUTE),
    ({"kernel": "cuda", "architecture": "sm_90"}, CUDA),
    ({"kernel": "triton"}, TRITON),
    ({"kernel": "triton", "architecture": "gfx942"}, TRITON),
    ({"kernel": "cuda", "architecture": "gfx942"}, TRITON),
    ({"kernel": "triton", "architecture": "cpu"}, CPP),
    # Each other language goes to its own specialist.
    ({"language": "CUDA C++"}, CUDA),
    ({"language": "cuda"}, CUDA),
    ({"language": "cuTile"}, CUTILE),
    ({"language": "cutile-dsl"}, CUTILE),
    ({"language": "C++"}, CPP),
    ({"language": "cpp", "kernel": UNKNOWN_KERNEL}, CPP),
    # Tasks of one agent.
    ({"task": "profile"}, "profiler"),
    ({"task": "profile", "language": "CuTe DSL"}, "profiler"),
    ({"task": "review"}, "reviewer"),
    # Whole programs: CUDA graphs have a specialist of their own.
    ({"task": "program"}, PROGRAM),
    ({"task": "cuda_graph"}, GRAPH),
    ({"task": "CUDA Graph", "language": "triton"}, GRAPH),
    ({"task": "distributed"}, RANKS),
    ({"task": "parallelism"}, RANKS),
]


@pytest.mark.parametrize(
    ("asked", "agent"), ASKED, ids=lambda value: "-".join(map(str, getattr(value, "values", list)()))
)
def test_who_does_it(asked: dict[str, str], agent: str):
    plan = route(**asked)
    assert agents_of(plan) == [agent]
    assert all(step.available for step in plan.steps)


def test_a_missing_agent_is_named_with_what_to_do_instead():
    (step,) = route(FEW, language="CuTe DSL").steps
    assert (step.agent, step.available) == (CUTE, False)  # it never goes to the Triton specialist unasked
    assert "--language triton" in step.fallback


def test_among_equals_the_first_available_is_taken_and_the_others_are_named():
    assert agents_of(route(architecture="sm_90")) == [TRITON]
    assert any("CuTe DSL" in note and "`--language cutedsl`" in note for note in route(architecture="sm_90").notes)
    assert agents_of(route(EVERYONE - {TRITON}, architecture="sm_90")) == [CUTE]
    assert any("not there yet" in note for note in route(FEW, architecture="sm_90").notes)


def test_amd_devices_are_warned_of():
    plan = route(FEW, architecture="gfx942")
    assert agents_of(plan) == [TRITON]
    assert any("`warpsmith port OP --to gfx942`" in note for note in plan.notes)


def test_a_language_that_does_not_run_there_gives_way_to_the_nearest():
    plan = route(language="triton", architecture="cpu")
    assert agents_of(plan) == [CPP]
    assert "take C++" in plan.notes[0]
    assert "without tiles that a compiler maps to threads" in plan.notes[0]
    plan = route(language="cuda", architecture="gfx950", kernel=UNKNOWN_KERNEL)
    assert agents_of(plan) == [TRITON]
    assert plan.steps[0].todo == "write a Triton kernel, from the existing one in CUDA C++"
    assert "does not run on gfx950: take Triton" in plan.notes[0]


@pytest.mark.parametrize(
    ("asked", "todo"),
    [
        ({"language": "triton"}, "write a Triton kernel"),
        ({"language": "triton", "kernel": "triton"}, "improve the existing kernel, a Triton kernel"),
        ({"language": "triton", "kernel": "cuda"}, "write a Triton kernel, from the existing one in CUDA C++"),
        (
            {"language": "cpp", "task": "baseline"},
            "write a C++ kernel with OpenMP and intrinsics: correct first, sim",
        ),
    ],
)
def test_the_work_of_each_step(asked: dict[str, str], todo: str):
    assert route(**asked).steps[-1].todo.startswith(todo)


@pytest.mark.parametrize(
    ("entry", "task"),
    [
        ("mixed-precision-bf16", "program"),
        ("pinned-memory-prefetch", "program"),
        ("Pinned memory prefetch", "program"),
        ("gradient-bucketing-overlap", "distributed"),
        ("sharded-parallelism", "parallelism"),
        ("cuda-graphs-for-launch-bound", "cuda_graph"),
    ],
)
def test_the_task_of_an_entry_on_whole_programs(entry: str, task: str):
    entries = Catalog.load(find_project()).entries.values()
    tasks = {entry.id: entry.matter.program.specialist for entry in entries if entry.matter.program}
    assert set(tasks.values()) <= set(routing.PROGRAM_TASKS)
    assert routing.parse_task(entry, tasks) == task


@pytest.mark.parametrize("task", list(routing.PROGRAM_TASKS))
def test_programs_are_edited_within_a_trial(task: str):
    plan = route(task=task)
    assert plan.steps[0].available
    assert "`warpsmith program apply" in plan.notes[0]
    assert not route(FEW, task=task).steps[0].available


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "--language, --target, --arch and --kernel FILE"),
        ({"kernel": UNKNOWN_KERNEL, "architecture": "sm_100"}, "--kernel exists.*--language"),
        ({"language": "Fortran"}, r"`Fortran`; known: cpp \(C\+\+\), cuda.*triton \(Triton\)"),
        ({"task": "deploy"}, "`deploy`; known: write, optimize, baseline, profile, review, program, cuda_graph"),
        ({"architecture": "sm_70"}, "`sm_70`; known: cpu, gfx942, gfx950, sm_80 and newer, ampere"),
        ({"architecture": "gfx90a"}, "`gfx90a`"),
    ],
)
def test_what_cannot_be_routed(asked: dict[str, str], said: str):
    with pytest.raises(Misuse, match=said):
        route(**asked)


def test_no_two_languages_share_a_name():
    for language in LANGUAGES:
        names = (language.name, language.title, *language.aliases)
        assert {routing.parse_language(name, LANGUAGES) for name in names} == {language.name}
    aliases = [alias for language in LANGUAGES for alias in language.aliases]
    assert aliases == [routing._key(alias) for alias in aliases]
