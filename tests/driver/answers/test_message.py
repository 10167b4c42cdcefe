"""Answers: a valid one is read, every fault of another is named by its field, and a hook loads little."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.driver.answers import message
from warpsmith.driver.answers.kinds import ANSWERS
from warpsmith.driver.answers.models import EXAMPLES, MODELS, ProfileAnswer, ReviewAnswer, count_sentences
from warpsmith.errors import Misuse

KINDS = tuple(MODELS)


def block(data: object) -> str:
    return f"```json\n{json.dumps(data)}\n```\n"


def changed(kind: str, **fields: Any) -> str:
    return block(EXAMPLES[kind] | fields)


def without(kind: str, field: str) -> str:
    return block({name: value for name, value in EXAMPLES[kind].items() if name != field})


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_valid_and_is_read_as_it_was_written(kind: str):
    answer = message.read_answer(kind, block(EXAMPLES[kind]))
    assert type(answer) is MODELS[kind]
    assert message.read_answer(kind, message.render_answer(answer)) == answer


@pytest.mark.parametrize("kind", KINDS)
def test_the_description_holds_the_schema_and_a_valid_example(kind: str):
    text = message.describe_answer(kind)
    assert message.list_faults(kind, text) == []
    for name in MODELS[kind].model_fields:
        assert f'"{name}"' in text
    assert json.loads(text[text.index("{") : text.index("Example:")])["title"] == MODELS[kind].__name__


@pytest.mark.parametrize("kind", KINDS)
def test_text_around_the_last_block_is_ignored(kind: str):
    text = f"I am done.\n```json\n{{}}\n```\n```python\nx = {{}}\n```\n{block(EXAMPLES[kind])}\nThat is all."
    assert message.list_faults(kind, text) == []
    assert message.list_faults(kind, text.replace("\n", "\r\n")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is memory bound.", "no ```json block"),
        ("```\n{}\n```", "no ```json block"),
        ("```json\n{'op': 1}\n```", "is not JSON"),
        ("```json\n" + "[" * 100_000 + "\n```", "is not JSON"),
        ("```json\n[1]\n```", "`answer`: "),
    ],
)
def test_a_message_without_a_json_object(text: str, words: str):
    (fault,) = message.list_faults("version", text)
    assert words in fault


STAGE = EXAMPLES["profile"]["stages"][0]  # type: ignore[index]
CHANCE = EXAMPLES["profile"]["opportunities"][0]  # type: ignore[index]
WORSE = CHANCE | {"gain_pct": 5}
CHEAT = {"file": "v4.py", "line": 3, "reason": "It caches by id."}

WRONG = [
    ("profile", {"op": "Soft Max"}, "op"),
    ("profile", {"version": "triton/v04"}, "version"),
    ("profile", {"stages": []}, "stages"),
    ("profile", {"stages": [STAGE | {"seconds": 0}]}, "stages.0.seconds"),
    ("profile", {"stages": [STAGE | {"seconds": "41.2 us"}]}, "stages.0.seconds"),
    ("profile", {"stages": [STAGE | {"bottleneck": "slow"}]}, "stages.0.bottleneck"),
    ("profile", {"bottleneck": "slow"}, "bottleneck"),
    ("profile", {"root_cause": "One. Two. Three."}, "root_cause"),
    ("profile", {"root_cause": " "}, "root_cause"),
    ("profile", {"opportunities": [CHANCE] * 4}, "opportunities"),
    ("profile", {"opportunities": [WORSE, CHANCE]}, "opportunities"),
    ("profile", {"opportunities": [CHANCE | {"gain_pct": 220}]}, "opportunities"),
    ("profile", {"opportunities": [CHANCE | {"trigger": {"name": "speed", "value": 61}}]}, "opportunities"),
    ("profile", {"opportunities": [CHANCE | {"trigger": "dram_pct=61"}]}, "opportunities.0.trigger"),
    ("profile", {"changes": [{"metric": "speed", "before": 1, "after": 2}]}, "changes.0.metric"),
    ("profile", {"changes": [{"metric": "waves", "before": "some", "after": 2}]}, "changes.0.before"),
    ("version", {"correctness": "GOOD"}, "correctness"),
    ("version", {"changes": []}, "changes"),
    ("version", {"files": []}, "files"),
    ("version", {"workloads": [{"name": "4096x8192-bf16"}]}, "workloads.0.reason"),
    ("version", {"notes": "more"}, "notes"),
    ("review", {"cheats": ["It is odd."]}, "cheats.0"),
    ("review", {"cheats": [CHEAT | {"line": 0}]}, "cheats.0.line"),
    ("review", {"cheats": [CHEAT]}, "verdict"),
    ("review", {"verdict": "SUSPECT"}, "verdict"),
    ("review", {"verdict": "FINE"}, "verdict"),
    ("review", {"reason": "Yes. So. The gain is real."}, "reason"),
    ("review", {"transfer": []}, "transfer"),
]


@pytest.mark.parametrize(("kind", "fields", "field"), WRONG, ids=lambda value: str(value)[:40])
def test_a_fault_is_one_sentence_that_names_its_field(kind: str, fields: dict[str, Any], field: str):
    (fault,) = message.list_faults(kind, changed(kind, **fields))
    assert fault.startswith(f"`{field}`")
    assert fault.endswith(".")
    assert "\n" not in fault
    with pytest.raises(Misuse) as refused:
        message.read_answer(kind, changed(kind, **fields))
    assert str(refused.value).splitlines()[1:] == [fault]


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind in KINDS for field in EXAMPLES[kind] if field != "changes"]
)
def test_a_missing_field_is_named(kind: str, field: str):
    assert message.list_faults(kind, without(kind, field)) == [f"`{field}` is missing."]


def test_every_fault_is_found_at_once():
    stages = [STAGE | {"seconds": "fast"}]
    faults = message.list_faults("profile", changed("profile", stages=stages, bottleneck="x", opportunities=[1]))
    assert [fault.split("`")[1] for fault in faults] == ["stages.0.seconds", "bottleneck", "opportunities.0"]


def test_at_the_limit_there_may_be_nothing_to_try():
    text = changed("profile", opportunities=[], bottleneck="at-the-limit")
    assert message.list_faults("profile", text) == []


def test_a_failed_version_needs_no_file():
    assert message.list_faults("version", changed("version", files=[], correctness="FAIL")) == []


def test_a_suspect_review_and_lines_that_were_broken():
    text = changed("review", cheats=[CHEAT], verdict="SUSPECT", reason="It would be\n wrong in use.")
    review = message.read_answer("review", text)
    assert isinstance(review, ReviewAnswer)
    assert (review.reason, review.cheats[0].line) == ("It would be wrong in use.", 3)


@given(st.text(max_size=200))
def test_any_text_in_a_field_is_read_as_it_was_rendered(text: str):
    faults = message.list_faults("profile", changed("profile", root_cause=text))
    if not faults:
        answer = message.read_answer("profile", changed("profile", root_cause=text))
        assert isinstance(answer, ProfileAnswer)
        assert message.read_answer("profile", message.render_answer(answer)) == answer


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One.", 1),
        ("One without an end", 1),
        ("One. Two", 2),
        ("Bandwidth is 61.5 % of it, e.g. at 4096x8192, vs. 43 before. The rest waits!", 2),
        ("Is it? It is. So.", 3),
        ("`a.b. c` is read (twice.) Then again.", 3),
    ],
)
def test_sentences_are_counted(text: str, count: int):
    assert count_sentences(text) == count


def test_every_agent_owes_a_kind_that_exists():
    assert {kind for kind in ANSWERS.values() if kind} == set(MODELS)


def test_an_unknown_kind():
    with pytest.raises(Misuse, match="`plan`; known: profile, version, review"):
        message.list_faults("plan", "")


@pytest.mark.parametrize(
    ("code", "excluded"),
    [
        ("import warpsmith.driver.answers.kinds", {"pydantic", "typer", "rich"}),
        ("import warpsmith.driver.answers.message", {"pydantic", "typer", "rich"}),
        ("from warpsmith.driver.answers.message import list_faults; list_faults('review', '')", {"typer", "rich"}),
    ],
)
def test_a_hook_loads_little(code: str, excluded: set[str]):
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}\n{code}\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) & excluded == set()
