"""The output contracts: what fits, what is said of what does not, and that their form is stable."""

from __future__ import annotations

import string
import subprocess
import sys
from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.core.line import line
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck
from warpsmith.driver.contracts import registry as contracts
from warpsmith.driver.contracts import text as contract_text
from warpsmith.driver.contracts.answers import ANSWERS
from warpsmith.driver.contracts.models import (
    Chance,
    Cheat,
    Contract,
    Moved,
    Optimization,
    ProfileContract,
    ReviewContract,
    StageRow,
    TaskContract,
    Trial,
    VersionContract,
)
from warpsmith.errors import Misuse

KINDS = tuple(contracts.FORMS)
EXAMPLES = {kind: form.example for kind, form in contracts.FORMS.items()}
CLASSES = get_args(Bottleneck)

SPECIAL = "|`\\-*_#>[]()<&~=+.!:;,'\"/ 1)\t\u00a0\u200béµ"
lines = st.text(string.ascii_letters + SPECIAL, min_size=1, max_size=40).map(line).filter(bool)
names = lines.map(lambda text: text.replace(":", "").replace("`", "").strip()).filter(bool)
ops, slugs = (
    st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True),
    st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True),
)
versions = st.builds("{}/v{}".format, ops, st.integers(1, 99))
shares = st.none() | st.floats(0, 200)
numbers = st.decimals(-(10**6), 10**6, allow_nan=False, places=3)
many = {"min_size": 1, "max_size": 3}


def few(values: st.SearchStrategy, **size: int) -> st.SearchStrategy:
    return st.lists(values, **(many | size)).map(tuple)


stages = st.builds(
    StageRow, name=lines, seconds=st.floats(1e-9, 100), tensor_pct=shares, dram_pct=shares, occupancy_pct=shares,
    bottleneck=st.sampled_from(CLASSES), issue=lines,
)  # fmt: skip
chances = st.builds(
    Chance, name=names.map(lambda text: text.replace("-", "")).filter(str.strip).map(line),
    gain_pct=st.floats(0, 100), metric=st.sampled_from(sorted(METRICS)), value=numbers,
    entry=st.none() | slugs,
)  # fmt: skip
moved = st.builds(
    Moved, metric=st.sampled_from(sorted(METRICS)), before=st.none() | numbers, now=st.none() | numbers,
    change=st.none() | numbers,
)  # fmt: skip
sentence = lines.map(lambda text: text.translate(str.maketrans("", "", ".!?"))).filter(str.strip)
profiles = st.builds(
    ProfileContract, op=ops, version=versions, target=slugs, stages=few(stages),
    bottleneck=st.sampled_from(CLASSES), root_cause=sentence.map(line),
    opportunities=few(chances).map(lambda found: tuple(sorted(found, key=lambda chance: -chance.gain_pct))),
    compared=few(moved, min_size=0),
)  # fmt: skip
tasks = st.builds(
    TaskContract, op=ops, current=st.none() | versions, due=versions,
    bottleneck=st.none() | st.sampled_from(CLASSES), root_cause=lines,
    optimizations=few(st.builds(Optimization, name=names, why=lines, entry=st.none() | slugs)),
    constraints=few(lines),
)  # fmt: skip
news = st.builds(
    VersionContract, op=ops, version=versions, changes=few(lines), files=few(lines),
    correctness=st.sampled_from(["PASS", "FAIL"]), checked=lines,
    trials=few(st.builds(Trial, name=names, why=lines)), devlog=lines,
)  # fmt: skip
cheats = few(st.builds(Cheat, file=ops, line=st.integers(1, 9999), what=lines))
reviews = st.builds(
    ReviewContract, op=ops, version=versions, cheats=st.just(()), transfer=few(lines), verdict=st.just("CLEAN"),
    because=sentence.map(line),
) | st.builds(
    ReviewContract, op=ops, version=versions, cheats=cheats, transfer=few(lines), verdict=st.just("SUSPECT"),
    because=sentence.map(line),
)  # fmt: skip
STRATEGIES = {"profile": profiles, "task": tasks, "version": news, "review": reviews}


def changed(kind: str, old: str, new: str) -> str:
    assert old in EXAMPLES[kind]
    return EXAMPLES[kind].replace(old, new)


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_fits_and_is_rendered_as_it_stands(kind: str):
    assert contracts.problems(kind, EXAMPLES[kind]) == []
    assert contracts.render(contracts.parse(kind, EXAMPLES[kind])) == EXAMPLES[kind]


@given(st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), STRATEGIES[kind])))
def test_what_is_rendered_fits_and_renders_the_same_again(pair: tuple[str, Contract]):
    kind, contract = pair
    text = contracts.render(contract)
    assert contracts.problems(kind, text) == [], text
    assert contracts.render(contracts.parse(kind, text)) == text


pieces = st.sampled_from(
    [line for text in EXAMPLES.values() for line in text.splitlines()]
    + ["", "```", "---", "- ", "1. x -- est. 5 %", "| a | b |", "None.", "> q", "    code", "x\\"]
)


@given(st.sampled_from(KINDS), st.lists(pieces, max_size=30))
def test_what_fits_is_a_contract_and_its_form_is_stable(kind: str, drawn: list[str]):
    for text in ("\n".join(drawn), "\n".join([EXAMPLES[kind], *drawn]), "\n".join([*drawn, EXAMPLES[kind]])):
        if not contracts.problems(kind, text):
            once = contracts.render(contracts.parse(kind, text))
            assert contracts.render(contracts.parse(kind, once)) == once


@pytest.mark.parametrize("kind", KINDS)
def test_every_missing_section_is_named_at_once_with_its_fix(kind: str):
    form = contracts.FORMS[kind]
    found = contracts.problems(kind, form.example.splitlines()[0])
    assert [problem.partition(":")[0] for problem in found] == list(form.sections)
    for problem, rule in zip(found, form.sections.values(), strict=True):
        assert problem.endswith(f". Fix: add `### {problem.partition(':')[0]}`: {rule}.")


@pytest.mark.parametrize("kind", KINDS)
def test_prose_before_the_heading_is_nobodys_business(kind: str):
    before = "I am done.\n\n## Notes\n- | x |\n### Stages\n\n"
    assert contracts.problems(kind, before + EXAMPLES[kind]) == []
    assert contracts.render(contracts.parse(kind, before + EXAMPLES[kind])) == EXAMPLES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_heading_ends_it(kind: str):
    assert contracts.render(contracts.parse(kind, EXAMPLES[kind] + "\n## Notes\n- more\n")) == EXAMPLES[kind]


@pytest.mark.parametrize("text", ["<div>fast</div>", "[a]: b", "loads are wide\n---", "wide\n==="])
def test_what_markdown_would_hide_or_make_a_heading_is_text(text: str):
    devlog = "devlog/softmax/softmax-triton-h200-20261121/rounds/open"
    contract = contracts.parse("version", changed("version", devlog, text) + "\n")
    assert isinstance(contract, VersionContract)
    assert contract.devlog == " ".join(text.removesuffix("\n---").split())


@pytest.mark.parametrize("kind", KINDS)
def test_case_rules_and_line_ends_do_not_matter(kind: str):
    lower = EXAMPLES[kind].replace("###", "\n---\n\n###").replace("\n", "\r\n")
    assert contracts.render(contracts.parse(kind, lower)) == EXAMPLES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_without_its_heading(kind: str):
    first = EXAMPLES[kind].splitlines()[0]
    (found,) = contracts.problems(kind, "Here it is.\n")
    assert found.startswith("heading: there is no `## ")
    assert first in found
    (fenced,) = contracts.problems(kind, f"```markdown\n{EXAMPLES[kind]}```\n")
    assert "inside a code block. Fix: write the contract without the fence." in fenced
    (twice,) = contracts.problems(kind, EXAMPLES[kind] * 2)
    assert "stands 2 times. Fix: keep one." in twice


TABLE = "| Stage | Duration | TC% | DRAM% | Occ% | Bottleneck | Key issue |"
ROW = "| 4096x8192-bf16 | 41.2 us | - | 61 | - | memory | two passes over the row |"
CHANCE = "1. Keep the row on chip -- est. 22 % -- trigger: dram_pct=61 -- entry: row-in-registers"

WRONG = [
    ("profile", "softmax triton/v3 on h200", "softmax v3", "heading: `softmax v3` is not an operator, a version"),
    ("profile", TABLE, TABLE.replace("TC% | DRAM%", "DRAM% | TC%"), "Stages: the columns are Stage, Duration"),
    ("profile", "41.2 us", "41.2", "Stages: `4096x8192-bf16`: the duration is `41.2`. Fix: write a time such as"),
    ("profile", "41.2 us", "0 us", "Stages: `4096x8192-bf16`: the duration is `0 us`"),
    ("profile", "| 61 | - | memory", "| most | - | memory", "Stages: `4096x8192-bf16`: DRAM% is `most`"),
    ("profile", "| memory |", "| slow |", "Stages: `4096x8192-bf16`: `slow` is no bottleneck. Fix: write one of"),
    ("profile", ROW, "", "Stages: the table has no row"),
    ("profile", f"{TABLE}\n| --- | --- | --- | --- | --- | --- | --- |\n{ROW}", "", "Stages: there is no table"),
    ("profile", "two passes over the row", "", "Stages: `4096x8192-bf16`: the stage or its key issue is empty"),
    ("profile", "Bottleneck: memory", "Bottleneck: slow", "Bottleneck: `slow` is no class"),
    ("profile", "Bottleneck: memory", "Bottleneck", "Bottleneck: the heading names no class"),
    ("profile", "Its second", "It does. Its second", "Bottleneck: the root cause has 3 sentences. Fix:"),
    ("profile", CHANCE, "None.", "Opportunities: it holds a paragraph, where a list of `- ` lines belongs"),
    ("profile", CHANCE, "\n".join([CHANCE] * 4), "Opportunities: there are 4. Fix: keep the 3 largest"),
    ("profile", CHANCE, f"{CHANCE}\n2. b -- est. 30 % -- trigger: waves=1", "Opportunities: they are not ranked"),
    ("profile", " -- est. 22 %", "", "Opportunities: `Keep the row on chip`: there is no estimate"),
    ("profile", "est. 22 %", "est. 220 %", "Opportunities: `Keep the row on chip`: there is no estimate"),
    ("profile", "trigger: dram_pct=61", "dram_pct 61", "`dram_pct 61` does not read. Fix: write `NAME"),
    ("profile", "trigger: dram_pct=61", "why: much", "Opportunities: `Keep the row on chip`: there is no trigger"),
    ("profile", "dram_pct=61", "speed=61", "Opportunities: `Keep the row on chip`: `speed` is no metric"),
    ("profile", "| dram_pct |", "| speed |", "Against the version before: `speed` is no metric"),
    ("profile", "| 43 |", "| some |", "Against the version before: `dram_pct`: Before is `some`"),
    ("task", "softmax triton/v3 -> triton/v4", "softmax", "heading: `softmax` is not an operator and two"),
    ("task", "Bottleneck: memory", "Bottleneck: slow", "Bottleneck: `slow` is no class"),
    ("task", "- hypothesis: The", "- The", "has no name with its reason. Fix: write `- ENTRY: rationale"),
    ("version", "softmax triton/v4", "triton/v4", "heading: `triton/v4` is not an operator and a version"),
    ("version", "triton/v4\n", "triton/v04\n", "heading: `softmax triton/v04` is not an operator and a version"),
    ("version", "- The row stays in registers between the two passes.", "", "Changes: it lists nothing"),
    ("version", "- kernels/softmax/triton/v4.py", "v4.py", "Files: it holds a paragraph, where a list"),
    ("version", "- kernels/softmax/triton/v4.py", "-\n", "Files: it holds an item that is empty"),
    ("version", ": PASS", ": GOOD", "Correctness: `GOOD` is not an outcome. Fix: write `### Corr"),
    ("version", "`warpsmith judge kernels/softmax/triton/v4.py --check`", "", "Correctness: it says nothing"),
    ("version", ": the longest row that still fits the registers", "", "Trial configurations: `4096x8192"),
    ("version", "### Devlog\n", "### Devlog\n```\nx\n```\n", "Devlog: it holds a code block, where a paragraph"),
    ("version", "### Files", "### Changes", "Changes: it stands twice. Fix: keep one."),
    ("version", "### Files", "### Filez", "Filez: it is no section of this contract. Fix: the sections are"),
    ("version", "### Changes", "So:\n### Changes", "heading: text stands between it and the first section"),
    ("review", "None found.", "It is odd.", "Cheats: `It is odd.` names no place. Fix: write `- FILE:LINE: what"),
    ("review", "None found.", "v4.py:3: caches by id", "Verdict: CLEAN, but cheats are listed"),
    ("review", "CLEAN", "SUSPECT", "Verdict: SUSPECT, but no cheat is listed"),
    ("review", "CLEAN", "FINE", "Verdict: `FINE` is not an outcome"),
    ("review", "The gain", "Yes. So. The gain", "Verdict: the reason has more than two sentences"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "old", "new", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_said_with_its_fix(kind: str, old: str, new: str, said: str):
    found = contracts.problems(kind, changed(kind, old, new))
    assert any(said in problem for problem in found), found
    assert all(problem.count("\n") == 0 and ". Fix: " in problem for problem in found)
    with pytest.raises(Misuse) as refused:
        contracts.parse(kind, changed(kind, old, new))
    assert str(refused.value).splitlines()[1:] == found


def test_sections_in_another_order():
    text = "## New version: a b/v1\n### Files\n- f\n### Changes\n- c\n### Correctness: PASS\nx\n"
    text += "### Trial configurations\n- a: b\n### Devlog\nd\n"
    (found,) = contracts.problems("version", text)
    assert found.startswith("sections: they stand in another order. Fix: put them in this one: Changes, Files,")


def test_at_the_limit_there_may_be_nothing_to_try():
    text = changed("profile", CHANCE, "None.").replace("Bottleneck: memory", "Bottleneck: at-the-limit")
    assert contracts.problems("profile", text) == []
    assert contracts.render(contracts.parse("profile", text)) == text


def test_every_problem_is_found_at_once():
    text = changed("profile", "41.2 us", "fast").replace("Bottleneck: memory", "Bottleneck: x").replace("22", "x")
    assert [problem.partition(":")[0] for problem in contracts.problems("profile", text)] == [
        "Stages",
        "Bottleneck",
        "Opportunities",
        "Opportunities",
    ]


def test_dashes_backticks_and_marks_that_people_write_are_read():
    text = (
        changed("profile", " -- ", " — ")
        .replace("dram_pct=61", "`dram_pct = 61`")
        .replace("| 61 | -", "| 61 % | -")
    )
    assert contracts.render(contracts.parse("profile", text)) == EXAMPLES["profile"]
    text = changed("version", "- kernels/softmax/triton/v4.py", "* `kernels/softmax/triton/v4.py`")
    assert contracts.render(contracts.parse("version", text.replace("PASS", "`pass`"))) == EXAMPLES["version"]


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
def test_sentences(text: str, count: int):
    assert contract_text.sentences(text) == count


def test_a_number_keeps_the_digits_that_were_printed():
    contract = contracts.parse("profile", changed("profile", "dram_pct=61", "dram_pct=61.0"))
    assert isinstance(contract, ProfileContract)
    assert str(contract.opportunities[0].value) == "61.0"
    assert contract.opportunities[0].value == Decimal(61)
    assert '"value":61.0' in contract.model_dump_json()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_says_the_rules_and_fits_itself(kind: str):
    shown = contracts.shown(kind)
    assert contracts.problems(kind, shown) == []
    for name, rule in contracts.FORMS[kind].sections.items():
        assert f"- {name}: {rule}.\n" in shown


def test_the_rules_name_every_class_and_every_agent_has_a_known_form():
    for kind in ("profile", "task"):
        assert ", ".join(CLASSES[:-1]) in contracts.FORMS[kind].sections["Bottleneck"]
        assert CLASSES[-1] in contracts.FORMS[kind].sections["Bottleneck"]
    assert {kind for kind in ANSWERS.values() if kind} == {"profile", "version", "review"}


def test_an_unknown_kind():
    with pytest.raises(Misuse, match="Unknown contract `plan`; known: profile, task, version, review"):
        contracts.problems("plan", "")


@pytest.mark.parametrize(
    ("code", "without"),
    [
        ("import warpsmith.driver.contracts.answers", {"pydantic", "markdown_it", "re"}),
        ("import warpsmith.driver.contracts.registry", {"pydantic", "markdown_it", "typer", "rich"}),
        ("from warpsmith.driver.contracts.registry import problems; problems('review', '')", {"pydantic", "rich"}),
    ],
)
def test_a_hook_loads_little(code: str, without: set[str]):
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path}\n{code}\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) & without == set()
