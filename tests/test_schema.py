"""Schemas: every model on disk exports one that says what each field is, and reads back what it writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from warpsmith.core.base import Model
from warpsmith.core.campaign import RoundRecord
from warpsmith.schemas import MODELS, json_schema


def objects(schema: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield name, schema
    yield from schema.get("$defs", {}).items()


def described(about: dict[str, Any], schema: dict[str, Any]) -> bool:
    """A reference whose target says the very same needs no words of its own: pydantic leaves them out."""
    target = schema.get("$defs", {}).get(about.get("$ref", "").removeprefix("#/$defs/"), {})
    return bool((about.get("description") or target.get("description", "")).strip())


@pytest.mark.parametrize("name", MODELS)
def test_every_property_is_described(name: str):
    schema = json_schema(name)
    bare = [
        f"{where}.{field}"
        for where, found in objects(schema, name)
        for field, about in found.get("properties", {}).items()
        if not described(about, schema)
    ]
    assert bare == []


@pytest.mark.parametrize("name", MODELS)
def test_every_object_is_closed_and_described(name: str):
    for where, found in objects(json_schema(name), name):
        assert found.get("description"), where
        if found.get("type") == "object":
            assert found.get("additionalProperties") is False, where


@pytest.mark.parametrize("name", MODELS)
def test_schemas_are_json_and_stable(name: str):
    assert json.loads(json.dumps(json_schema(name))) == json_schema(name)


class Sample(Model):
    """A model with one field."""

    size: int
    """Size of the sample."""


def test_the_description_is_the_attribute_docstring():
    assert Sample.model_json_schema()["properties"]["size"]["description"] == "Size of the sample."


def record() -> RoundRecord:
    machine = {"id": "m-0", "target": "cpu", "device": "d", "processor": "p", "libraries": {"python": "3.11"}}
    evaluation = {
        "definition": "norm", "language": "cpp", "version": "v1", "target": "cpu",
        "provenance": {
            "solution": "kernels/norm/cpp/v1.cpp", "solution_sha256": "a" * 64, "definition_sha256": "b" * 64,
            "lab_sha256": "c" * 64, "gate_version": 1, "seed": 2**63, "machine": machine,
            "measured": "2026-11-21 10:00",
        },
        "steps": [{"name": "build", "state": "failed", "notes": ["é \u202e"], "seconds": 0.1}],
        "results": [{"workload": "*", "status": "COMPILE_ERROR", "message": "error: no `;`"}],
        "decision": {"verdict": "ROLLBACK", "reason": "It does not build."},
    }  # fmt: skip
    stagnation = {"rollbacks_in_a_row": 1, "not_improving": 1, "review": False, "change_forced": False}
    return RoundRecord.model_validate(
        {
            "campaign": "norm-cpp-cpu-20261121", "round": 1, "solution": "cpp/v1", "parent": None,
            "snapshot": "cpp-v1.cpp", "snapshot_sha256": "a" * 64, "previous_sha256": None,
            "selection": {"language": "cpp", "because": "It is the only one."},
            "plan": {
                "hypothesis": "A first version that is right.", "category": "baseline", "predicted_gain": 0,
                "metric": "time_us", "expected_change": 0.1 + 0.2,
            },
            "evaluation": evaluation,
            "outcome": {
                "verdict": "ROLLBACK", "best": None, "gain": None, "predicted_gain": 0, "movement": None,
                "stop": None, "stagnation": stagnation,
            },
            "lesson": {"action": "nothing", "reason": "It did not build."},
            "opened": "2026-11-21 09:00", "closed": "2026-11-21 10:01",
        }
    )  # fmt: skip


def test_a_record_reads_back_what_it_writes():
    written = record()
    text = written.model_dump_json(indent=2)
    assert RoundRecord.model_validate_json(text) == written
    assert RoundRecord.model_validate_json(text).model_dump_json(indent=2) == text


def test_a_record_with_an_unknown_field_does_not_read():
    data = json.loads(record().model_dump_json()) | {"score": 1}
    with pytest.raises(ValueError, match="score"):
        RoundRecord.model_validate(data)
