"""Jobs of a campaign with a context: what is sent, and what becomes of the outcome."""

from __future__ import annotations

import io
import tarfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from campaign_kit import OP, evaluation

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign import lab_requests, start
from warpsmith.campaign.history import closing, solutions, store
from warpsmith.campaign.jobs import send
from warpsmith.campaign.jobs.send import FORKS, Conditions
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.hardware import Measurement
from warpsmith.errors import MachineFailed, Misuse
from warpsmith.execution import contexts
from warpsmith.execution.job import Outcome, ScreenResult, ScreenResults
from warpsmith.execution.remote import RemoteOutcome
from warpsmith.execution.slurm import SlurmConnection
from warpsmith.execution.slurm_client import Allocation
from warpsmith.lab.operator.definition_file import definition_sha256
from warpsmith.project import Project

MACHINE = {"id": "cpu-there", "target": "cpu", "device": "a cpu", "processor": "a cpu", "libraries": {}}
MEASUREMENT = Measurement.model_validate({"machine": MACHINE, "measured": "2026-01-01 00:00", "ceilings": {}})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = tmp_path / "project"
    (root / "kernels" / OP / "toy").mkdir(parents=True)
    (root / "warpsmith.toml").write_text('[contexts.lab]\nssh = "gpu01"\n')
    (root / "kernels" / OP / "definition.py").write_text("# the reference\n")
    for version in ("v1", "v2"):
        (root / "kernels" / OP / "toy" / f"{version}.toy").write_text(version)
    return projects.find_project(root)


@pytest.fixture
def campaign(project: Project) -> store.Campaign:
    return start.start_campaign(project, OP, "cpu", "toy", context="lab")


@pytest.fixture
def there(project: Project, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine that answers with `parts`, and keeps what it was sent."""
    answer = SimpleNamespace(sent=[], parts={}, skew=0.0, allocation=None)

    class Machine:
        def __init__(self, entry: Any, tell: Any, root: Any) -> None:
            self.entry = entry

        def run(self, bundle: Any) -> RemoteOutcome:
            answer.sent.append((self.entry, bundle))
            fixed = {"bundle_sha256": bundle.sha256, "lab_sha256": "1" * 64, "gate_version": GATE_VERSION}
            return RemoteOutcome(Outcome(**fixed, **answer.parts), answer.skew, answer.allocation)

    monkeypatch.setattr(send, "RemoteMachine", Machine)
    monkeypatch.setattr(send, "this_minute", lambda: "2026-11-21 10:00")
    return answer


def judged(project: Project, **provenance: object) -> Any:
    made = evaluation(project.kernels / OP / "toy" / "v2.toy", "ACCEPT")
    changes = {"definition_sha256": definition_sha256(project.definition_path(OP)), **provenance}
    return made.model_copy(update={"provenance": made.provenance.model_copy(update=changes)})


def judge(campaign: store.Campaign, tell: Any = lambda _: None) -> Any:
    versions = [solutions.find_solution(campaign.project, OP, f"toy/v{number}") for number in (1, 2)]
    conditions = Conditions(best=versions[0], sets=("full",), judgement=3)
    return lab_requests.judge_solution(campaign.project, campaign.manifest, versions[1], tell, conditions)


def test_a_judgement_goes_there_and_names_the_context(campaign: store.Campaign, there: SimpleNamespace) -> None:
    there.parts = {
        "evaluation": judged(campaign.project, machine=MEASUREMENT.machine),
        "measurement": MEASUREMENT,
    }
    found = judge(campaign)
    assert found.provenance.context == "lab"
    assert found.provenance.measured == "2026-11-21 10:00"
    ((entry, bundle),) = there.sent
    assert entry.context.ssh == "gpu01"
    job = bundle.job
    assert (job.kind, job.solution, job.best, job.sets, job.judgement) == (
        "judge",
        "toy/v2",
        "toy/v1",
        ("full",),
        3,
    )
    assert job.manifest.context is None, "there it is the machine itself"
    assert job.manifest.thresholds == campaign.manifest.thresholds
    kept = campaign.project.measurements / "cpu-there.json"
    assert Measurement.model_validate_json(kept.read_bytes()) == MEASUREMENT


@pytest.mark.parametrize(("devices", "noted"), [(1, None), (4, 4)])
def test_a_judgement_says_how_many_devices_are_there(
    campaign: store.Campaign, there: SimpleNamespace, devices: int, noted: int | None
) -> None:
    there.parts = {"evaluation": judged(campaign.project), "devices": devices}
    assert judge(campaign).provenance.context_devices == noted


def test_a_judgement_names_the_node_and_the_slurm_job(campaign: store.Campaign, there: SimpleNamespace) -> None:
    there.parts = {"evaluation": judged(campaign.project)}
    assert "node" not in judge(campaign).provenance.model_dump()
    there.allocation = Allocation("12", "RUNNING", node="n7")
    found = judge(campaign).provenance
    assert (found.context, found.node, found.slurm_job) == ("lab", "n7", "12")


def test_the_last_campaign_of_a_context_ends_its_allocation(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[str] = []
    monkeypatch.setattr(SlurmConnection, "release", lambda self: released.append(self.entry.name))
    (project.root / "warpsmith.toml").write_text(
        '[contexts.lab]\nssh = "gpu01"\n[contexts.cluster]\nslurm = true\n'
    )
    lines: list[str] = []
    first = start.start_campaign(project, OP, "cpu", "toy", context="cluster")
    second = start.start_campaign(project, OP, "h200", "toy", context="cluster")
    closing.close_campaign(first, "no longer of any use")
    send.release_allocation(first, lines.append)
    assert (released, lines) == ([], []), "the second campaign needs it"
    send.release_allocation(second, lines.append)
    assert "warpsmith context trust cluster" in lines[0], "nothing runs by a context that nobody trusts"
    contexts.trust_context(contexts.find_context(project, "cluster"))
    send.release_allocation(second, lines.append)
    assert released == ["cluster"]
    other = start.start_campaign(project, OP, "cpu", "toy", context="lab")
    send.release_allocation(other, lines.append)
    assert released == ["cluster"]


def test_a_time_by_another_clock_is_corrected(campaign: store.Campaign, there: SimpleNamespace) -> None:
    there.skew = 3600.0
    lines: list[str] = []
    for claimed in ("2026-11-21 11:00", "2099-01-01 00:00", "1999-01-01 00:00"):
        there.parts = {"evaluation": judged(campaign.project, measured=claimed)}
        assert judge(campaign, lines.append).provenance.measured == "2026-11-21 10:00"
    assert any("+3600 s off" in line for line in lines)


def test_a_measurement_of_another_machine_than_the_judge_is_not_kept(
    campaign: store.Campaign, there: SimpleNamespace
) -> None:
    there.parts = {"evaluation": judged(campaign.project), "measurement": MEASUREMENT}
    judge(campaign)
    assert not (campaign.project.measurements / "cpu-there.json").exists()


def test_an_outcome_under_another_definition_is_refused(campaign: store.Campaign, there: SimpleNamespace) -> None:
    there.parts = {"evaluation": judged(campaign.project, definition_sha256="0" * 64)}
    with pytest.raises(MachineFailed, match="no judgement of this version and definition"):
        judge(campaign)
    for field, other in (
        ("version", "v3"),
        ("language", "../../toy"),
        ("definition", "other"),
        ("target", "h200"),
    ):
        there.parts = {"evaluation": judged(campaign.project).model_copy(update={field: other})}
        with pytest.raises(MachineFailed, match="no judgement of this version and definition"):
            judge(campaign)
    there.parts = {}
    with pytest.raises(MachineFailed, match="no judgement"):
        judge(campaign)


def test_a_campaign_without_a_context_stays_here(
    project: Project, there: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_requests, "lease_target", lambda *_, **__: nullcontext())
    monkeypatch.setattr(lab_requests, "lab_request", lambda *_, **options: options)
    monkeypatch.setattr(lab_requests, "judge_request", lambda request: request["judgement"])
    assert judge(start.start_campaign(project, OP, "cpu", "toy")) == 3
    assert there.sent == []


def test_a_context_that_is_gone(campaign: store.Campaign, there: SimpleNamespace) -> None:
    (campaign.project.root / "warpsmith.toml").write_text("")
    with pytest.raises(Misuse, match="no context `lab`"):
        judge(campaign)


def test_reports_of_a_profile_come_to_the_campaign(campaign: store.Campaign, there: SimpleNamespace) -> None:
    version = solutions.find_solution(campaign.project, OP, "toy/v2")
    profile = SimpleNamespace(solution_sha256=files.file_sha256(version.path))
    outcome = SimpleNamespace(profile=profile, files={"toy-v2.ncu-rep": b"report"})
    found = []

    def run(*_: object) -> Any:
        found.append(_)
        return SimpleNamespace(outcome=outcome)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send, "_run", run)
        assert send.profile_in_context(campaign, version, print, "large") is profile
        for name in ("../outside", "..", ".hidden", "a/b"):
            outcome.files = {name: b"x"}
            with pytest.raises(MachineFailed, match="which is no name"):
                send.profile_in_context(campaign, version, print)
        profile.solution_sha256 = "0" * 64
        with pytest.raises(MachineFailed, match="no profile of this version"):
            send.profile_in_context(campaign, version, print)
    job = found[0][2]
    assert (job.kind, job.workload) == ("profile", "large")
    folder = campaign.folder / "profiles"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"toy-v2.ncu-rep": b"report"}


def in_a_fork(campaign: store.Campaign, text: str, number: int = 1) -> Path:
    """A contender's version, in the fork of a contender."""
    folder = campaign.project.root.joinpath(*FORKS, campaign.name, f"002-{number}")
    path = folder / "kernels" / OP / "toy" / "v2.toy"
    path.parent.mkdir(parents=True)
    (folder / "warpsmith.toml").touch()
    (path.parents[1] / "definition.py").write_text("# a copy\n")
    path.write_text(text)
    return path


def names_in(bundle: Any) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(bundle.data)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}


def test_a_check_in_a_fork_is_one_of_its_project(campaign: store.Campaign, there: SimpleNamespace) -> None:
    path = in_a_fork(campaign, "a contender's")
    fork = projects.find_project(path)
    assert fork.root != campaign.project.root
    there.parts = {"evaluation": judged(campaign.project)}
    solution = solutions.find_solution(fork, OP, "toy/v2")
    send.judge_in_context(fork, campaign.manifest, solution, Conditions(timed=False), lambda _: None)
    ((entry, bundle),) = there.sent
    assert entry.context.ssh == "gpu01", "the context is the project's"
    sent = names_in(bundle)
    assert sent[f"project/kernels/{OP}/toy/v2.toy"] == b"a contender's"
    assert sent[f"project/kernels/{OP}/definition.py"] == b"# the reference\n"


def test_contenders_are_screened_there(campaign: store.Campaign, there: SimpleNamespace) -> None:
    paths = {number: in_a_fork(campaign, f"number {number}", number) for number in (1, 3)}
    best = solutions.find_solution(campaign.project, OP, "toy/v1")
    times = ScreenResults(results={number: ScreenResult(failure="none") for number in paths})

    def screen() -> ScreenResults:
        return send.screen_in_context(
            campaign.project, campaign.manifest, best, paths, lambda _: None,
            language="toy", sets=("representative",), seconds=60.0,
        )  # fmt: skip

    there.parts = {"screen": times}
    assert screen() == times
    ((_, bundle),) = there.sent
    sent = names_in(bundle)
    assert (bundle.job.best, bundle.job.language) == ("toy/v1", "toy")
    assert {n: sent[f"project/{name}"] for n, name in bundle.job.contenders.items()} == {
        1: b"number 1", 3: b"number 3",
    }  # fmt: skip
    assert sent[f"project/kernels/{OP}/toy/v1.toy"] == b"v1"
    there.parts = {"screen": ScreenResults(results={1: times.results[1]})}
    with pytest.raises(MachineFailed, match="no screen of these"):
        screen()
