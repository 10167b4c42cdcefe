"""Who does what: every rule of the table, and every way in which users ask."""

from __future__ import annotations

import dataclasses

import pytest

from warpsmith.driver import routing
from warpsmith.driver.routing import BY_LANGUAGE, SPECIALISTS, UNKNOWN_KERNEL, Request, Route
from warpsmith.errors import Misuse

EVERYONE = {row.agent for row in SPECIALISTS} | {
    "profiler", "reviewer", "program-specialist", "cuda-graph-specialist",
}  # fmt: skip
EVERYTHING = set(BY_LANGUAGE)
NOW = ({"cpp-specialist", "triton-specialist", "profiler", "reviewer"}, {"cpp", "triton"})

CPP, TRITON, TILEIR, CUTE = "cpp-specialist", "triton-specialist", "tileir-specialist", "cutedsl-specialist"
CUDA, CUTILE, HIP, FLYDSL = "cuda-specialist", "cutile-specialist", "hip-specialist", "flydsl-specialist"
PROGRAM, GRAPH = "program-specialist", "cuda-graph-specialist"


def route(here: tuple[set[str], set[str]] = (EVERYONE, EVERYTHING), **asked: str | None) -> Route:
    """A route for words as a user writes them."""
    given = dict(asked)
    if given.get("language"):
        given["language"] = routing.language(given["language"])
    if given.get("task"):
        given["task"] = routing.task(given["task"])
    if given.get("architecture"):
        given["architecture"] = routing.architecture(given["architecture"])
    return routing.route(Request(**given), *here)


def agents(found: Route) -> list[str]:
    return [step.agent for step in found.steps]


ASKED = [
    # TileIR is Triton on another back end: two steps, and one where a Triton kernel is there.
    ({"language": "TileIR", "task": "write"}, [TRITON, TILEIR]),
    ({"language": "nvtriton"}, [TRITON, TILEIR]),
    ({"language": "ENABLE_TILE"}, [TRITON, TILEIR]),
    ({"language": "ENABLE_TILE=1"}, [TRITON, TILEIR]),
    ({"language": "TileIR", "task": "optimize"}, [TRITON, TILEIR]),
    ({"language": "TileIR", "task": "optimize", "kernel": "triton"}, [TILEIR]),
    ({"language": "TileIR", "kernel": UNKNOWN_KERNEL}, [TILEIR]),
    ({"language": "TileIR", "kernel": "tileir"}, [TILEIR]),
    ({"language": "TileIR", "kernel": "cuda"}, [TRITON, TILEIR]),
    ({"language": "TileIR", "architecture": "sm_100"}, [TRITON, TILEIR]),
    ({"language": "TileIR", "task": "baseline"}, [TRITON]),
    ({"language": "TileIR", "architecture": "sm_90"}, [TRITON]),
    # CuTe DSL is neither Triton nor TileIR.
    ({"language": "CuTe DSL", "task": "write"}, [CUTE]),
    ({"language": "cute", "kernel": "triton"}, [CUTE]),
    ({"language": "CuTe DSL", "architecture": "Blackwell"}, [CUTE]),
    ({"language": "cute-dsl", "architecture": "sm_90a"}, [CUTE]),
    # Triton without a word of TileIR stays Triton.
    ({"language": "Triton", "task": "write"}, [TRITON]),
    ({"language": "Triton", "architecture": "sm_100"}, [TRITON]),
    ({"language": "triton", "kernel": "triton", "architecture": "sm_100"}, [TRITON]),
    ({"language": "triton", "kernel": "cutedsl"}, [TRITON]),
    # No preference: by architecture.
    ({"architecture": "cpu"}, [CPP]),
    ({"architecture": "sm_100"}, [TRITON, TILEIR]),
    ({"architecture": "sm_100+"}, [TRITON, TILEIR]),
    ({"architecture": "sm_120"}, [TRITON, TILEIR]),
    ({"architecture": "Blackwell", "kernel": "triton"}, [TILEIR]),
    ({"architecture": "sm_100", "task": "baseline"}, [TRITON]),
    ({"architecture": "sm_80"}, [TRITON]),
    ({"architecture": "Ampere"}, [TRITON]),
    ({"architecture": "sm_89"}, [TRITON]),
    ({"architecture": "Hopper", "kernel": "triton"}, [TRITON]),
    ({"architecture": "gfx942"}, [HIP]),
    ({"architecture": "CDNA4"}, [HIP]),
    # No preference, a kernel: in its language, where that runs.
    ({"kernel": "cutedsl"}, [CUTE]),
    ({"kernel": "cutedsl", "architecture": "sm_90"}, [CUTE]),
    ({"kernel": "cutedsl", "architecture": "sm_100"}, [CUTE]),
    ({"kernel": "triton"}, [TRITON]),
    ({"kernel": "flydsl", "architecture": "gfx950"}, [FLYDSL]),
    ({"kernel": "triton", "architecture": "gfx942"}, [TRITON]),
    ({"kernel": "cuda", "architecture": "gfx942"}, [HIP]),
    ({"kernel": "triton", "architecture": "cpu"}, [CPP]),
    ({"kernel": "tileir"}, [TILEIR]),
    ({"kernel": "tileir", "architecture": "sm_90"}, [TRITON]),
    # Each other language goes to its own specialist.
    ({"language": "CUDA C++"}, [CUDA]),
    ({"language": "cuda"}, [CUDA]),
    ({"language": "cuTile"}, [CUTILE]),
    ({"language": "cutile-dsl"}, [CUTILE]),
    ({"language": "HIP"}, [HIP]),
    ({"language": "CK"}, [HIP]),
    ({"language": "FLYDSL"}, [FLYDSL]),
    ({"language": "C++"}, [CPP]),
    ({"language": "cpp", "kernel": UNKNOWN_KERNEL}, [CPP]),
    # Tasks of one agent.
    ({"task": "profile"}, ["profiler"]),
    ({"task": "profile", "language": "CuTe DSL"}, ["profiler"]),
    ({"task": "review"}, ["reviewer"]),
    # Whole programs: CUDA graphs have a specialist of their own.
    ({"task": "program"}, [PROGRAM]),
    ({"task": "cuda_graph"}, [GRAPH]),
    ({"task": "CUDA Graph", "language": "triton"}, [GRAPH]),
    ({"task": "distributed"}, [PROGRAM]),
    ({"task": "parallelism"}, [PROGRAM]),
]


@pytest.mark.parametrize(
    ("asked", "wanted"), ASKED, ids=lambda value: "-".join(map(str, getattr(value, "values", list)()))
)
def test_who_in_which_order(asked: dict[str, str], wanted: list[str]):
    found = route(**asked)
    assert agents(found) == wanted
    assert all(step.here for step in found.steps)
    assert found.steps or found.notes


def test_what_is_not_there_yet_is_said_with_what_to_use_instead():
    found = route(NOW, language="TileIR")
    assert [(step.agent, step.here) for step in found.steps] == [(TRITON, True), (TILEIR, False)]
    assert "stay on Triton's own back end" in found.steps[1].instead
    (cute,) = route(NOW, language="CuTe DSL").steps
    assert (cute.agent, cute.here) == (CUTE, False)  # it is never handed to the Triton specialist unasked
    assert "--language triton" in cute.instead


@pytest.mark.parametrize("lacking", ["agent", "language"])
def test_there_is_a_specialist_only_with_its_agent_and_its_language(lacking: str):
    whole = (EVERYONE - {CUTE}, EVERYTHING) if lacking == "agent" else (EVERYONE, EVERYTHING - {"cutedsl"})
    (step,) = route(whole, language="cute").steps
    assert not step.here


def test_among_equals_the_first_that_is_there_is_taken_and_the_others_are_named():
    assert agents(route(architecture="sm_90")) == [TRITON]
    assert "CuTe DSL would do as well: `--language cutedsl`." in route(architecture="sm_90").notes
    without = (EVERYONE - {TRITON}, EVERYTHING)
    assert agents(route(without, architecture="sm_90")) == [CUTE]
    found = route(NOW, architecture="gfx942")
    assert agents(found) == [TRITON]
    assert "HIP would do as well: not there yet." in found.notes
    assert any("does not run on AMD" in note for note in found.notes)


def test_a_language_that_does_not_run_there_is_warned_of():
    assert "Triton does not run on cpu; take C++ there." in route(language="triton", architecture="cpu").notes
    assert "CUDA C++ does not run on gfx950; take HIP or FlyDSL or Triton there." in (
        route(language="cuda", architecture="gfx950").notes
    )
    assert "TileIR needs sm_100 or newer, not sm_90" in route(language="tileir", architecture="sm_90").notes[0]


@pytest.mark.parametrize(
    ("asked", "todo"),
    [
        ({"language": "triton"}, "write a Triton kernel"),
        ({"language": "triton", "kernel": "triton"}, "improve the kernel that there is, a Triton kernel"),
        ({"language": "triton", "kernel": "hip"}, "write a Triton kernel, from the HIP one that there is"),
        ({"language": "tileir", "kernel": "triton"}, "take the Triton kernel to the TileIR back end"),
        (
            {"language": "cpp", "task": "baseline"},
            "write a C++ kernel with OpenMP and intrinsics: correct first, sim",
        ),
    ],
)
def test_what_each_step_is_to_do(asked: dict[str, str], todo: str):
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
    entries = (*routing.OWN_TASK, "mixed-precision-bf16", "pinned-memory-prefetch")
    assert routing.task(entry, entries) == task


@pytest.mark.parametrize("task", list(routing.PROGRAM_TASKS))
def test_programs_are_edited_within_a_trial(task: str):
    found = route(task=task)
    assert found.steps[0].here
    assert "`warpsmith program apply" in found.notes[0]
    assert not route(NOW, task=task).steps[0].here


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "Give one of --language, --target, --arch and --kernel FILE"),
        ({"kernel": UNKNOWN_KERNEL, "architecture": "sm_100"}, "does not say in which language it is"),
        ({"language": "Fortran"}, "Unknown language `Fortran`; known: cpp \\(C\\+\\+\\), triton"),
        (
            {"task": "deploy"},
            "Unknown task `deploy`; known: write, optimize, baseline, profile, review, program, cuda_graph",
        ),
        ({"architecture": "sm_70"}, "Unknown architecture `sm_70`; known: cpu, sm_80 and newer, gfx942"),
        ({"architecture": "gfx90a"}, "Unknown architecture `gfx90a`"),
    ],
)
def test_what_cannot_be_routed(asked: dict[str, str], said: str):
    with pytest.raises(Misuse, match=said):
        route(**asked)


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("/a/kernel.cu", "", "cuda"),
        ("a.cuh", "", "cuda"),
        ("a.hip", "", "hip"),
        ("a.cpp", "#include <hip/hip_runtime.h>\n__global__ void f();", "hip"),
        ("a.cpp", "__global__ void f();", "cuda"),
        ("a.cc", "int main() {}", "cpp"),
        ("a.py", "import torch\nimport triton\nimport triton.language as tl\n", "triton"),
        ("a.py", "def f():\n    from triton import jit\n", "triton"),
        ("a.py", 'import os\nimport triton\nos.environ["ENABLE_TILE"] = "1"\n', "tileir"),
        ("a.py", "import cutlass\nimport cutlass.cute as cute\n", "cutedsl"),
        ("a.py", "from cutlass import cute\n", "cutedsl"),
        ("a.py", "import cuda.tile as ct\n", "cutile"),
        ("a.py", "from cuda.core import Device, Program\n", "cuda"),
        ("a.py", "import flydsl\n", "flydsl"),
        ("/p/kernels/softmax/triton/v3.py", "", "triton"),
        ("kernels/softmax/tileir/v3.py", "import triton\n", "tileir"),
    ],
)
def test_the_language_of_a_file(path: str, text: str, language: str):
    assert routing.written_in(path, text) == language


@pytest.mark.parametrize(
    ("path", "text"), [("a.py", "import torch  # like triton\n"), ("notes.txt", ""), ("a", "")]
)
def test_a_file_that_does_not_say_its_language(path: str, text: str):
    with pytest.raises(Misuse, match=f"{path} does not say in which language its kernel is"):
        routing.written_in(path, text)


def test_the_table_is_whole():
    for row in SPECIALISTS:
        assert routing.language(row.language) == routing.language(row.called) == row.language
        assert all(routing.language(alias) == row.language for alias in row.aliases)
        assert all(dataclasses.astuple(row)[:4])
    keys = [routing.language(alias) for row in SPECIALISTS for alias in (row.called, *row.aliases)]
    assert len(keys) == sum(1 + len(row.aliases) for row in SPECIALISTS)
    assert {name for _, names in routing.PREFERRED for name in names} <= EVERYTHING
    assert {language for *_, language in routing._SOURCES} == EVERYTHING
