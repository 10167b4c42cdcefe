"""Routes, starts, skills, agents and knowledge say the same of every language on every kind of device."""

from __future__ import annotations

import itertools
import re

import pytest

from warpsmith import languages
from warpsmith.campaign import define
from warpsmith.driver import routing
from warpsmith.driver.routing import RouteRequest
from warpsmith.errors import Misuse
from warpsmith.knowledge.catalog import Catalog
from warpsmith.lab.machine import hardware
from warpsmith.languages import support
from warpsmith.languages.base import Relaunches, ReplaysLaunches
from warpsmith.port.obstacle import port_obstacle
from warpsmith.project import SHIPPED, find_project

LANGUAGES = languages.by_preference()
NAMES = languages.names()
AGENTS = {path.stem for path in (SHIPPED / "agents").glob("*.md")}
PAGES = {name: hardware.read_target_page(find_project(), name) for name in hardware.list_targets(find_project())}
TARGETS = {name: support.architecture_of(page.target) for name, page in PAGES.items()}


def is_interpreted(name: str, target: str) -> bool:
    return PAGES[target].target.kind == "cpu" and languages.get(name).missing("cpu") is None


@pytest.mark.parametrize("target", PAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_route_leads_to_a_language_that_runs_there(name: str, target: str) -> None:
    asked, architecture = languages.get(name), TARGETS[target]
    for task in routing.KERNEL_TASKS:
        plan = routing.plan_route(RouteRequest(task, name, architecture, None), AGENTS, LANGUAGES)
        *earlier, step = plan.steps
        assert [each.language for each in earlier] == [
            each for each in [languages.get(step.language or "").written_in] if each
        ]
        assert all(each.available for each in plan.steps)
        assert support.runs_on(languages.get(step.language or ""), architecture)
        assert (step.language == name) is support.runs_on(asked, architecture)
        assert (support.describe_nearest(asked, architecture, LANGUAGES) in plan.notes) is (step.language != name)


@pytest.mark.parametrize("target", PAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_start_refuses_what_a_route_leads_elsewhere(name: str, target: str) -> None:
    language, page = languages.get(name), PAGES[target]
    if is_interpreted(name, target) or support.runs_on(language, TARGETS[target]):
        define.require_machine(name, page, "time")
        return
    with pytest.raises(Misuse) as refused:
        define.require_machine(name, page, "time")
    assert str(refused.value) == f"`{target}`: {support.describe_nearest(language, TARGETS[target], LANGUAGES)}"


@pytest.mark.parametrize("name", NAMES)
def test_a_language_has_an_agent_a_skill_and_knowledge(name: str) -> None:
    skill = f"design-{name}-kernel"
    page = (SHIPPED / "agents" / f"{languages.get(name).agent}.md").read_text()
    assert skill in page.split("---")[1]
    assert (SHIPPED / "skills" / skill / "SKILL.md").is_file()
    assert any(entry.matter.language == name for entry in Catalog.load(find_project()).entries.values())
    assert languages.get(name).control


def test_entries_name_devices_on_which_their_language_runs() -> None:
    wrong = [
        f"{entry.id}: {entry.matter.language} on {target}"
        for entry in Catalog.load(find_project()).entries.values()
        for target in entry.matter.applies_to.targets
        if entry.matter.language and target in TARGETS and not is_interpreted(entry.matter.language, target)
        if not support.runs_on(languages.get(entry.matter.language), TARGETS[target])
    ]
    assert wrong == []


def test_what_runs_on_an_amd_device_is_compiled_for_it() -> None:
    architectures = {name for name in TARGETS.values() if name.startswith(support.AMD_PREFIX)}
    assert architectures
    for language, architecture in itertools.product(LANGUAGES, architectures):
        if support.runs_on(language, architecture):
            assert isinstance(language, Relaunches)
            assert architecture in language.port_architectures()


@pytest.mark.parametrize("task", [*routing.AGENT_TASKS, *routing.PROGRAM_TASKS])
def test_every_other_task_has_an_agent(task: str) -> None:
    assert all(step.available for step in routing.plan_route(RouteRequest(task), AGENTS, LANGUAGES).steps)


def test_every_task_of_an_entry_on_programs_has_a_route() -> None:
    for entry in Catalog.load(find_project()).entries.values():
        if entry.matter.program:
            assert entry.matter.program.specialist in routing.PROGRAM_TASKS


@pytest.mark.parametrize("target", PAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_in_any_language_is_improved_or_written_anew_from_it(name: str, target: str) -> None:
    architecture = TARGETS[target]
    for kernel, task in itertools.product(NAMES, routing.KERNEL_TASKS):
        for asked in (name, None):
            request = RouteRequest(task, asked, architecture, kernel)
            *earlier, step = routing.plan_route(request, AGENTS, LANGUAGES).steps
            runs = [each for each in (asked, None if asked else kernel) if each]
            kept = next((each for each in runs if support.runs_on(languages.get(each), architecture)), None)
            assert step.language == kept or (kept is None and step.language)
            for each, source in itertools.pairwise([kernel, *(each.language for each in earlier), step.language]):
                (todo,) = (part.todo for part in (*earlier, step) if part.language == source)
                assert (f"from the existing one in {languages.get(each or '').title}" in todo) is (source != each)


def test_a_remark_names_languages_that_are_written_here() -> None:
    for language in LANGUAGES:
        assert set(re.findall(r"--language (\w+)", language.remark() or "")) <= set(NAMES) - {language.name}


@pytest.mark.parametrize("target", PAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_port_campaign_opens_where_its_advice_leads(name: str, target: str) -> None:
    obstacle, page = port_obstacle(name, PAGES[target]), PAGES[target]
    if isinstance(languages.get(name), ReplaysLaunches):
        assert (obstacle is None) is (page.target.isa in languages.get(name).port_architectures())
    else:
        others = [each for each in LANGUAGES if isinstance(each, ReplaysLaunches)]
        assert all(each.title in (obstacle or "") for each in others)
    if TARGETS[target].startswith(support.AMD_PREFIX):
        [advised] = re.findall(r"--language (\w+)", support.amd_advice(target))
        assert port_obstacle(advised, page) is None
