"""Sides of a comparison: they load concurrently, and again in fresh processes."""

from __future__ import annotations

import pytest
from lab_samples import HONEST, SQUARE, kernel, workers

from warpsmith import languages
from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import system
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.sides import Sides, SideSource
from warpsmith.lab.workers import process
from warpsmith.lab.workers.side import Limits, Side, SideFailed


@pytest.fixture
def square(workshop, host, tmp_path):
    """`square(source)`: the sides solution and reference, not started."""

    def make(source=None):
        file = workshop.load("square", SQUARE)
        build = languages.get("cpp").build(
            workshop.solution(source or kernel(HONEST)).path, file.definition, tmp_path
        )
        sources = {
            SOLUTION: SideSource(build, "cpp", Limits(seconds=20)),
            REFERENCE: SideSource((file.path, REFERENCE), limits=Limits(seconds=30)),
        }
        arenas = allocate_arenas(file, [], file.definition.workloads, sources, "cpu")
        return Sides(file, host, arenas, sources, "cpu")

    return make


pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")


def test_sides_start_together_and_end_together(square, workshop, host):
    with square() as bench:
        bench.start()
        trusted = {name: side.trusted for name, side in bench.running.items()}
        assert trusted == {SOLUTION: False, REFERENCE: True}
        opened = bench.open_session(workshop.load("square", SQUARE).definition.workloads[0], 7)
        opened.fill_inputs(quick=True)
        assert {name: opened.time_block(name).seconds > 0 for name in opened.shuffled_sides()} == {
            SOLUTION: True,
            REFERENCE: True,
        }
    assert workers(host) == []


def test_a_loaded_side_is_stopped_until_it_is_asked(square):
    with square() as bench:
        bench.start()
        assert {process.read_stat(str(side.pid)).state for side in bench.running.values()} == {"T"}


def test_no_side_finds_what_another_one_left_beyond_the_tensors(square, workshop):
    """Where a session has one side, that is certain from its start to its end."""
    workload = workshop.load("square", SQUARE).definition.workloads[0]

    def left_behind(opened, name):
        memory = bench.arenas.inputs.memory[opened._input_layout.size :]
        memory.fill_(7)
        opened.ask(name, {"do": "no_op"})
        return bool(memory.any())

    with square() as bench:
        bench.start()
        both = bench.open_session(workload, 7)
        assert not any(left_behind(both, name) for name in both.sides)
        bench.arenas.inputs.memory.fill_(7)
        bench.arenas.outputs[SOLUTION].memory.fill_(7)
        alone = bench.open_session(workload, 8, (SOLUTION,))
        assert not bench.arenas.inputs.memory[alone._input_layout.size :].any()
        assert not bench.arenas.outputs[SOLUTION].memory[alone._output_layout.size :].any()
        assert left_behind(alone, SOLUTION)  # nobody else was there to leave it


def test_fresh_processes_take_the_place_of_some(square, workshop, host):
    with square() as bench:
        bench.start()
        before = {name: side.pid for name, side in bench.running.items()}
        bench.start((SOLUTION,))
        after = {name: side.pid for name, side in bench.running.items()}
        assert after[SOLUTION] != before[SOLUTION]
        assert after[REFERENCE] == before[REFERENCE]
        assert sorted(one.pid for one in workers(host)) == sorted(after.values())
        workload = workshop.load("square", SQUARE).definition.workloads[0]
        assert list(bench.open_session(workload, 7, (SOLUTION,)).sides) == [SOLUTION]


def test_what_gives_way_dies_while_the_fresh_one_loads(square, monkeypatch):
    did = []

    def hear(name):
        real = getattr(Side, name)

        def heard(side, *arguments, **options):
            did.append((name, side.pid))
            return real(side, *arguments, **options)

        monkeypatch.setattr(Side, name, heard)

    with square() as bench:
        bench.start()
        old = bench.running[SOLUTION].pid
        for name in ("kill", "load", "close"):
            hear(name)
        bench.start((SOLUTION,))
        assert did == [("kill", old), ("load", bench.running[SOLUTION].pid), ("close", old)]


@pytest.mark.parametrize(
    "error", [SideFailed(Status.RUNTIME_ERROR, "it does not stop"), MachineFailed("it never came up")]
)
def test_sides_that_cannot_be_stopped_end_all_the_same(square, host, monkeypatch, error):
    def pause(side):
        raise error

    with square() as bench:
        bench.start()
        monkeypatch.setattr(Side, "pause", pause)
    assert workers(host) == []


def test_a_side_that_cannot_be_loaded(square, host):
    with square(kernel(HONEST) + "\n__attribute__((constructor)) void now() { std::abort(); }\n") as bench:
        with pytest.raises(SideFailed) as failed:
            bench.start()
        assert (failed.value.status, failed.value.side) == (Status.RUNTIME_ERROR, SOLUTION)
    assert workers(host) == []
