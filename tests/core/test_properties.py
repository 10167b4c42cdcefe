"""What must hold of records and parsers whatever they are given."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.evaluation import Evaluation, Status, Verdict, WorkloadResult
from warpsmith.lab.gate_tests import models as redteam

repeatable = settings(derandomize=True, deadline=None, max_examples=150)

text = st.text(min_size=1, max_size=20)
number = st.floats(0, 1e12, allow_nan=False)
positive = st.floats(1e-12, 1e12)
interval = st.fixed_dictionaries({"low": positive, "high": positive})
correctness = st.fixed_dictionaries(
    {"calls": st.integers(1, 10**6), "worst": number, "relative_error": number},
    optional={"norm_worst": st.none() | number, "reordered": st.none() | number, "repeat": number, "detail": text},
)
comparison = st.fixed_dictionaries(
    {
        "against": text,
        "other_seconds": positive,
        "speedup": positive,
        "interval": interval,
        "pairs": st.integers(2, 10**6),
    }
)
telemetry = st.fixed_dictionaries(
    {
        "reads": st.integers(1, 9),
        "sm_clock": st.tuples(*[st.integers(0, 4000)] * 3),
        "memory_clock": st.tuples(*[st.integers(0, 4000)] * 3),
        "temperature": st.integers(-20, 120),
        "power": number,
    },
    optional={"limited": st.lists(text, max_size=2), "dropped": st.integers(0, 9)},
)
timing = st.fixed_dictionaries(
    {
        "seconds": positive,
        "samples": st.integers(2, 10**6),
        "spread": number,
        "clock": st.sampled_from(["parent", "events", "graph"]),
        "parent_seconds": positive,
        "floor_seconds": positive,
        "ceiling_share": positive,
        "bandwidth": number,
        "rate": number,
    },
    optional={
        "clock_slack": st.none() | number,
        "cold": st.none() | st.booleans(),
        "telemetry": st.none() | telemetry,
        "comparisons": st.lists(comparison, max_size=2),
    },
)
result = st.fixed_dictionaries(
    {"workload": text, "status": st.one_of(st.just("PASSED"), st.sampled_from([*Status]))},
    optional={
        "message": st.sampled_from(["", "why"]),
        "correctness": st.none() | correctness,
        "timing": st.none() | timing,
    },
)
aggregate = st.fixed_dictionaries(
    {"against": text, "speedup": positive, "interval": interval, "worst_workload": text, "worst": positive}
)
check = st.fixed_dictionaries({"name": text, "ran": st.booleans(), "how": text})
evaluation = st.fixed_dictionaries(
    {
        "definition": text,
        "language": text,
        "version": text,
        "target": text,
        "provenance": st.fixed_dictionaries(
            {
                "solution": text,
                "solution_sha256": st.just("a" * 64),
                "definition_sha256": st.just("b" * 64),
                "lab_sha256": st.just("c" * 64),
                "gate_version": st.integers(1, 9),
                "seed": st.integers(0, 2**62),
                "machine": st.just(
                    {"id": "m-0", "target": "cpu", "device": "d", "processor": "p", "libraries": {"torch": "2"}}
                ),
                "measured": st.just("2026-11-21 10:00"),
            },
            optional={"best": st.none() | text, "best_sha256": st.just("d" * 64)},
        ),
        "steps": st.lists(
            st.fixed_dictionaries({"name": st.just("lint"), "state": st.just("noted"), "seconds": number}),
            max_size=2,
        ),
        "results": st.lists(result, max_size=3),
        "decision": st.fixed_dictionaries(
            {"verdict": st.sampled_from([*Verdict]), "reason": text}, optional={"ambiguous": st.booleans()}
        ),
    },
    optional={
        "aggregates": st.lists(aggregate, max_size=1),
        "trust": st.lists(check, max_size=2),
        "port": st.none() | st.just({"arch": "gfx942"}),
    },
)


def result_is_legal(data: dict[str, Any]) -> bool:
    """The rules once more, from the words of docs/records.md rather than from the code."""
    graded, timed = data.get("correctness") is not None, data.get("timing") is not None
    if data["status"] == Status.PASSED:
        return graded
    return not timed and bool(data.get("message")) and (graded or data["status"] != Status.INCORRECT_NUMERICAL)


def evaluation_is_legal(data: dict[str, Any]) -> bool:
    results = data["results"]
    passed = bool(results) and all(one["status"] == Status.PASSED for one in results)
    timed = any(one.get("timing") is not None for one in results)
    if not all(map(result_is_legal, results)) or (data.get("aggregates") and not passed):
        return False
    verdict = Verdict(data["decision"]["verdict"])
    if verdict is Verdict.UNTIMED:
        return passed and not timed and data.get("port") is not None
    if data.get("port") is not None and (timed or verdict.accepted):
        return False
    return not verdict.accepted or (passed and timed)


@settings(repeatable, max_examples=300)
@given(evaluation)
def test_a_legal_evaluation_travels_through_json_and_an_illegal_one_is_refused(data: dict[str, Any]) -> None:
    if not evaluation_is_legal(data):
        with pytest.raises(ValidationError):
            Evaluation.model_validate(data)
        return
    found = Evaluation.model_validate(data)
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


GRADED = {"calls": 3, "worst": 0.4, "relative_error": 1e-6}
TIMED = {
    "seconds": 1.0, "samples": 9, "spread": 0.01, "clock": "parent", "parent_seconds": 1.1, "floor_seconds": 0.5,
    "ceiling_share": 0.5, "bandwidth": 1e9, "rate": 1e9,
}  # fmt: skip


def test_every_combination_of_status_and_parts_is_legal_or_refused() -> None:
    for status, graded, timed, message in product(Status, (GRADED, None), (TIMED, None), ("", "why")):
        data = {"workload": "a", "status": status, "message": message, "correctness": graded, "timing": timed}
        if result_is_legal(data):
            WorkloadResult.model_validate(data)
        else:
            with pytest.raises(ValidationError):
                WorkloadResult.model_validate(data)


keys = st.sampled_from(["class", "how", "caught", "status", "needs", "against", "family", "sources"])
values = st.sampled_from(["attack", "control", "probes, timing", "TIMEOUT", "gpu", "gpu,", ", ", "a: b"])
sensible = st.sampled_from(["caught: probes, timing", "status: TIMEOUT", "needs: gpu"])
line = sensible | st.builds(lambda key, value: f"{key}: {value}", keys, values | st.text(max_size=6))
usual = st.sampled_from(["kind: attack", "kind: control"]).map(lambda kind: [kind, "class: c", "how: it waits"])
headers = st.builds(
    lambda first, more, mark, end: "".join(f"{mark}{one}{end}" for one in (*first, *more)),
    usual | st.just([]),
    st.lists(line | st.text(max_size=6), max_size=4),
    st.sampled_from(["# ", "// ", "#"]),
    st.sampled_from(["\n", "\r\n", "\x0b"]),
)


@settings(repeatable, max_examples=300)
@given(headers)
def test_whatever_a_candidate_says_of_itself_is_a_header_or_refused(source: str) -> None:
    try:
        found = redteam.parse_header(source)
    except ValueError:
        return
    assert (found.kind == "attack") == bool(found.caught)
    assert found.kind == "attack" or not found.status
    assert found.family
    assert found.how


parts = st.sampled_from([*"0123456789nm+-*/%() .", "**", "//", "1e9", "rows"])
expressions = st.lists(parts, max_size=14).map("".join) | st.text(max_size=20)


@settings(repeatable, max_examples=400)
@given(expressions)
def test_whatever_is_evaluated_is_a_number_or_refused(expression: str) -> None:
    with suppress(ValueError):
        assert isinstance(evaluate(expression, {"n": 3, "m": 0, "rows": 4096}), int | float)


@pytest.mark.parametrize(
    "expression", ["((0 - 8) ** 0.5) % 2", "-" * 3000 + "1", "1+" * 5000 + "1", "-" * 100_000]
)
def test_arithmetic_that_python_gives_up_on_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"arithmetic|real number|no value"):
        evaluate(expression, {})
