"""The classifier against kernels with planted causes: counters that a GPU gave once, in tests/data/planted/."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.symptoms import run
from warpsmith.profiling.counters import Counters
from warpsmith.profiling.diagnosis.classifier import SYMPTOMS

KEPT = Path(__file__).parents[2] / "data" / "planted"
FOUND = {path.stem: path for path in sorted(KEPT.glob("*.json"))}
HELD_OUT = 0.8
"""Share of the held-out kernels that the rules, which were not made with them, must name right."""

measured = pytest.mark.skipif(
    not FOUND,
    reason="no counters in tests/data/planted: run benchmarks/symptoms/run.py on a GPU, copy its JSON files there",
)


def found(name: str) -> tuple[str, ...]:
    return run.symptoms(run.expected()[name], Counters.model_validate_json(FOUND[name].read_bytes()))


def names(*kinds: str) -> list[str]:
    return [name for name in FOUND if run.expected()[name].kind in kinds]


@measured
@pytest.mark.parametrize("name", names("planted"))
def test_the_planted_cause_comes_first(name):
    case = run.expected()[name]
    assert case.right(found(name)), f"{found(name)}, not {case.first}: {case.why}"


@measured
@pytest.mark.parametrize("name", names("control"))
def test_a_control_has_its_limit_and_no_symptom_beside(name):
    case = run.expected()[name]
    assert case.right(found(name)), f"{found(name)}, not {case.first} alone: {case.why}"


@measured
def test_most_of_the_held_out_kernels():
    wrong = {name: found(name) for name in names("held-out") if not run.expected()[name].right(found(name))}
    assert len(names("held-out")) - len(wrong) >= HELD_OUT * len(names("held-out")), wrong


@measured
def test_every_kernel_has_counters():
    assert set(FOUND) == set(run.expected())


@measured
def test_the_docs_have_the_confusion_table():
    table = "\n".join(run.confusion(run.again(list(run.expected()), KEPT)))
    assert table in (KEPT.parents[2] / "docs" / "profiling.md").read_text()


def test_every_symptom_is_planted_somewhere():
    known = [symptom.id for symptom in SYMPTOMS]
    cases = run.expected().values()
    assert {name for case in cases for name in (*case.first, *case.also)} <= set(known)
    assert {name for case in cases if case.kind != "held-out" for name in case.first} == set(known)


def test_every_kernel_has_a_source_with_a_function_of_its_name():
    sources = {path.stem: path.read_text() for path in run.HERE.glob("*.cu")}
    assert set(sources) == set(run.expected())
    assert not [name for name, text in sources.items() if f" {name}(" not in text or f" {name}<<<" not in text]


def test_the_page_has_the_table_of_predictions():
    assert run.predictions() in (run.HERE / "README.md").read_text()


def test_what_counts_as_right():
    planted = run.Case(kind="planted", first=("a", "b"), also=("c",), why="")
    assert planted.right(["b", "c", "d"])
    assert not planted.right(["b", "d"])
    assert not planted.right(["c", "a"])
    control = run.Case(kind="control", first=("a",), why="")
    assert control.right(["a"])
    assert not control.right(["a", "b"])


def test_a_run_without_counters_says_so(tmp_path):
    (row,) = run.again(["atomics"], tmp_path)
    assert not row.right
    assert "run with --out first" in run.shown([row])
