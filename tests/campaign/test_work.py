"""What the lab does for a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from campaign_kit import OP, Script, profile

from warpsmith.campaign import lab_requests, start
from warpsmith.campaign.history import store
from warpsmith.campaign.jobs.send import Conditions
from warpsmith.campaign.rounds import open_round, state
from warpsmith.core.profile import Profile
from warpsmith.project import Project


class Counted(Script):
    """Profiles new versions by hardware counters."""

    def profile_after(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        found = profile(open_round.version_to_profile(campaign)[1].path, dram_pct=50)
        open_round.record_profile(campaign, found.model_copy(update={"evidence": "counters"}))


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The workloads that a profile was made anew for."""
    asked: list[str | None] = []

    def explain(request: Any, folder: object, workload: str | None, *, full: bool) -> Profile:
        asked.append(workload)
        return profile(request.path, dram_pct=45)

    monkeypatch.setattr(lab_requests.explain, "explain_version", explain)
    page = SimpleNamespace(target=SimpleNamespace(id="cpu", kind="cpu"))
    monkeypatch.setattr(lab_requests.hardware, "read_target_page", lambda project, target: page)
    monkeypatch.setattr(lab_requests, "lab_request", lambda project, manifest, solution, tell: solution)
    return asked


def due(project: Project, script: Script) -> store.Campaign:
    """A campaign whose second round is to be profiled."""
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    script.round(campaign)
    script.until(campaign, "selection")
    return campaign


def test_counters_of_the_best_version_are_read_once(project: Project, explained: list[str | None]) -> None:
    campaign, said = due(project, Counted({"v1": "ACCEPT"})), list[str]()
    found = lab_requests.profile_due_version(campaign, said.append)
    assert explained == []
    assert said == ["toy/v1 has not changed: its profile of 2026-11-21 10:00 is used again"]
    assert state.read_state(campaign).open.profile == found == state.read_state(campaign).records[0].profile_after


def test_another_workload_is_profiled_anew(project: Project, explained: list[str | None]) -> None:
    lab_requests.profile_due_version(due(project, Counted({"v1": "ACCEPT"})), workload="large")
    assert explained == ["large"]


def test_timings_of_the_last_round_are_used_again(project: Project, explained: list[str | None]) -> None:
    lab_requests.profile_due_version(due(project, Script({"v1": "ACCEPT"})))
    assert explained == []


def test_a_profile_is_made_on_the_machine_of_the_campaign(
    project: Project, explained: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[str | None] = []

    def profile_there(campaign: Any, solution: Any, tell: Any, workload: str | None, *, full: bool) -> Profile:
        there.append(workload)
        return profile(solution.path, dram_pct=45)

    monkeypatch.setattr(lab_requests.send, "profile_in_context", profile_there)
    campaign = start.start_campaign(project, OP, "cpu", "toy", context="lab")
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "selection")
    lab_requests.profile_due_version(campaign, workload="large")
    assert (there, explained) == (["large"], [])


def test_the_lab_is_told_the_objective(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_requests.measurement, "ensure_measurement", lambda *_: None)
    monkeypatch.setattr(lab_requests.hardware, "read_target_page", lambda *_: SimpleNamespace(target=None))
    monkeypatch.setattr(lab_requests.definition_file, "load_definition", lambda _: None)
    campaign = start.start_campaign(project, OP, "cpu", "toy", objective="energy")
    solution = state.read_state(campaign).solution
    assert solution is not None
    assert lab_requests.lab_request(project, campaign.manifest, solution, print).objective == "energy"


@pytest.mark.parametrize("timed", [True, False])
def test_a_judgement_holds_its_device_alone_and_a_check_shares_it(
    project: Project, explained: list[str | None], monkeypatch: pytest.MonkeyPatch, timed: bool
) -> None:
    leases: list[bool] = []

    @contextmanager
    def lease(target: Any, tell: Any, *, shared: bool) -> Iterator[str]:
        leases.append(shared)
        yield "cpu"
        leases.append(shared)

    monkeypatch.setattr(lab_requests.device_lease, "lease_device", lease)
    monkeypatch.setattr(lab_requests, "lab_request", lambda *_, **conditions: leases.append(conditions["timed"]))
    monkeypatch.setattr(lab_requests, "judge_request", lambda request: "judged")
    manifest = start.start_campaign(project, OP, "cpu", "toy").manifest
    solution: Any = None
    judged = lab_requests.judge_solution(project, manifest, solution, print, Conditions(timed=timed))
    assert (judged, leases) == ("judged", [not timed, timed, not timed])


def test_the_worker_host_starts_between_the_measurement_and_the_definition(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It imports PyTorch while the definition does, and never while the machine is measured."""
    events: list[Any] = []
    page = SimpleNamespace(target=SimpleNamespace(id="cpu", kind="cpu"))

    @contextmanager
    def host(_: Any, page: Any, language: str) -> Iterator[str]:
        events.append((page.target.id, language))
        yield "host"
        events.append("host ends")

    monkeypatch.setattr(lab_requests, "start_judgement_host", host)
    monkeypatch.setattr(lab_requests.measurement, "ensure_measurement", lambda *_: events.append("measured"))
    monkeypatch.setattr(lab_requests.definition_file, "load_definition", lambda _: events.append("loaded"))
    monkeypatch.setattr(lab_requests.hardware, "read_target_page", lambda project, target: page)
    monkeypatch.setattr(lab_requests, "judge_request", lambda request, host: events.append(host))
    manifest = start.start_campaign(project, OP, "cpu", "toy").manifest
    version: Any = SimpleNamespace(path=project.root, language="toy", version=1)
    events.clear()
    lab_requests.judge_here(project, manifest, version, print, Conditions())
    assert events == ["measured", ("cpu", "toy"), "loaded", "host", "host ends"]
