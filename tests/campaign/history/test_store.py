"""Starting and finding campaigns, versions on disk, the lock, two writers, and a full disk."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from campaign_kit import OP, Script, git, make_project, make_repository

from warpsmith.campaign import lab_requests, start
from warpsmith.campaign.evidence import evidence_check
from warpsmith.campaign.history import solutions, store
from warpsmith.campaign.rounds import due_phase, state
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.core.campaign import Manifest
from warpsmith.errors import Busy, MachineLacks, MissingInput, Misuse
from warpsmith.hooks import open_work
from warpsmith.knowledge import hit_rates
from warpsmith.ledger.lock import LOCK
from warpsmith.project import Project
from warpsmith.reporting import pages

HOLD = """
import sys
from pathlib import Path
from warpsmith.campaign.history import store
from warpsmith.project import Project
root = Path(sys.argv[1])
project = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
try:
    with store.hold_campaign(store.read_campaign(project, Path(sys.argv[2])), "warpsmith judge"):
        print("held", flush=True)
        sys.stdin.read()
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def holder(campaign: store.Campaign) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", HOLD, str(campaign.project.root), str(campaign.folder)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_start_writes_the_manifest(project: Project) -> None:
    figures = {"memory_bandwidth": "4.8 TB/s <- docs/knowledge/hardware/h200.md:23"}
    campaign = start.start_campaign(project, OP, "h200", "toy", figures=figures, max_iterations=5)
    assert campaign.name.startswith("scale-toy-h200-20")
    assert campaign.folder == project.devlog / OP / campaign.name
    text = (campaign.folder / "manifest.yaml").read_text()
    assert Manifest.model_validate(yaml.safe_load(text)) == campaign.manifest
    assert text.startswith("campaign: scale-toy-h200-")
    assert campaign.manifest.figures == figures
    assert store.read_campaign(project, campaign.folder) == campaign


def test_names_sort_by_time_and_one_that_is_taken_is_left_out(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project.root)
    moments = itertools.chain([datetime(2026, 11, 26, 0, 0, 0, 60_000)] * 3, [datetime(2026, 11, 26, 23, 59, 59)])
    monkeypatch.setattr(start, "datetime", SimpleNamespace(now=lambda _: next(moments)))
    first = start.start_campaign(project, OP, "cpu", "toy", git="branch")
    second = start.start_campaign(project, OP, "cpu", "toy", git="branch")
    assert (first.name, second.name) == ("scale-toy-cpu-20261126-0001", "scale-toy-cpu-20261126-zzzg")
    git(project.root, "branch", "optimize/scale-toy-cpu-20261127-0000")
    moments = iter([datetime(2026, 11, 27), datetime(2026, 11, 27, 0, 0, 0, 60_000)])
    assert start.start_campaign(project, OP, "cpu", "toy", git="branch").name == "scale-toy-cpu-20261127-0001"


def test_line_endings_are_not_gits_to_change(project: Project) -> None:
    (project.kernels / ".gitattributes").write_text("# my own\n")
    make_repository(project.root)
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    assert (project.kernels / ".gitattributes").read_text() == "# my own\n"
    git(project.root, "add", "-A")
    git(project.root, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-m", "campaign")
    git(project.root, "config", "core.autocrlf", "true")
    manifest = campaign.folder / "manifest.yaml"
    text = manifest.read_bytes()
    manifest.unlink()
    git(project.root, "checkout", "--", ".")
    assert manifest.read_bytes() == text


def commit_all(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", message)


@pytest.mark.parametrize("languages", [("toy", "other"), ("toy", "toy")])
def test_two_clones_that_both_closed_rounds_merge(
    project: Project, tmp_path: Path, languages: tuple[str, str]
) -> None:
    make_repository(project.root)
    clones = []
    for number, language in enumerate(languages):
        root = tmp_path / f"clone{number}"
        git(tmp_path, "clone", "-q", str(project.root), root.name)
        clone = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
        campaign = start.start_campaign(clone, OP, "cpu", language)
        script = Script({"v1": "ACCEPT", "v2": "ACCEPT"})
        for _ in range(2):
            script.round(campaign)
        pages.render_campaign(campaign)
        commit_all(root, language)
        clones.append(clone)
    root = clones[0].root
    git(root, "fetch", "-q", str(clones[1].root))
    git(root, "-c", "user.name=a", "-c", "user.email=a@b.c", "merge", "-q", "--no-edit", "FETCH_HEAD")
    merged = store.list_campaigns(clones[0], OP)
    assert sorted(campaign.manifest.target_language for campaign in merged) == sorted(languages)
    assert [[record.round for record in campaign.records()] for campaign in merged] == [[1, 2], [1, 2]]
    judged = [record.solution for campaign in merged for record in campaign.records()]
    assert len(set(judged)) == 4
    versions = [solutions.find_solution(clones[0], OP, name) for name in judged]
    assert all(each.path.read_text() == f"multiply by {each.number}\n" for each in versions)
    pages.render_all(clones[0])
    page = (root / "devlog" / OP / f"{OP}.md").read_text()
    assert page.count(f"({merged[0].name}/report.md)") == page.count(f"({merged[1].name}/report.md)") == 1
    faults = evidence_check.check_evidence(clones[0], {}).stale  # the kit's verdicts are on no real definition
    assert all("definition.py" in fault.message for fault in faults)


def test_a_merge_keeps_the_name_of_the_version_that_is_designed(project: Project) -> None:
    make_repository(project.root)
    git(project.root, "remote", "add", "origin", "elsewhere")
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    suffix = campaign.manifest.version_suffix
    assert campaign.name.endswith(f"-{suffix}")
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "design")
    designed = state.read_state(campaign).solution
    assert designed is not None
    assert designed.name == f"toy/v2_{suffix}"
    designed.path.write_text("multiply by 2\n")
    other = start.start_campaign(project, OP, "cpu", "toy", git="none")
    foreign = other.rounds / "001"
    foreign.mkdir(parents=True)
    (foreign / "toy-v7_zzzz.toy").write_text("multiply by 7\n")
    assert state.read_state(campaign).solution == designed
    designed.path.unlink()
    assert state.read_state(campaign).solution.name == f"toy/v8_{suffix}"  # type: ignore[union-attr]


def test_versions_have_a_suffix_where_there_are_other_checkouts(project: Project) -> None:
    make_repository(project.root)
    assert start.start_campaign(project, OP, "cpu", "toy").manifest.version_suffix is None
    git(project.root, "worktree", "add", "-q", str(project.root.parent / "second"))
    assert start.start_campaign(project, OP, "cpu", "toy").manifest.version_suffix


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("softmax", "cpu", "toy"), MissingInput, "write the operator's definition first"),
        ((OP, "cpu", "cobol"), Misuse, "Unknown language `cobol`"),
        ((OP, "CPU!", "toy"), Misuse, "cannot start: `campaign`"),
    ],
)
def test_bad_start_changes_nothing(project: Project, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        start.start_campaign(project, *arguments)
    assert not project.devlog.exists()


def test_bad_setting_is_named(project: Project) -> None:
    with pytest.raises(Misuse, match="`max_iterations`"):
        start.start_campaign(project, OP, "cpu", "toy", max_iterations=500)


def test_find(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Misuse, match=r"no campaign in .*`warpsmith start OP"):
        store.find_campaign(project)
    first = start.start_campaign(project, OP, "cpu", "toy", max_iterations=1)
    assert store.find_campaign(project) == first
    second = start.start_campaign(project, OP, "h200", "toy")
    with pytest.raises(Misuse, match=f"{first.name}, {second.name}"):
        store.find_campaign(project)
    Script({"v1": "ACCEPT"}).run(first)
    assert store.find_campaign(project) == second, "the only unfinished one"
    monkeypatch.setenv("WARPSMITH_CAMPAIGN", first.name)
    assert store.find_campaign(project) == first
    assert store.find_campaign(project, second.name) == second
    with pytest.raises(Misuse, match="`other` is no campaign"):
        store.find_campaign(project, "other")
    assert store.list_campaigns(project) == [first, second]
    assert store.find_campaign(project, OP) == second, "the operator's only unfinished one"


def test_of_several_campaigns_the_one_that_was_started_here_is_meant(project: Project) -> None:
    foreign, own = (start.start_campaign(project, OP, target, "toy") for target in ("h200", "cpu"))
    with pytest.raises(Misuse, match=f"with --campaign; there are: {own.name}, {foreign.name}"):
        store.find_campaign(project)
    (project.root / ".warpsmith" / "started" / foreign.name).unlink()  # as it came by a clone
    assert store.find_campaign(project) == own
    with pytest.raises(Misuse, match=f"Which campaign of {OP}"):
        store.find_campaign(project, OP)
    (project.root / ".warpsmith" / "started" / own.name).unlink()
    with pytest.raises(Misuse, match=f"there are: {own.name}, {foreign.name}"):
        store.find_campaign(project)


def test_a_folder_is_not_said_to_be_missing(project: Project) -> None:
    with pytest.raises(Misuse, match="is a folder; name the file of a version"):
        lab_requests.locate_version(project, project.kernels / OP)


def test_versions_of_other_campaigns_are_not_taken_again(project: Project) -> None:
    first = start.start_campaign(project, OP, "cpu", "toy")
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"})
    script.round(first)
    script.round(first)
    second = start.start_campaign(project, OP, "h200", "toy")
    assert due_phase.find_due_phase(state.read_state(second)).step == "verdict", (
        "the latest version is the baseline"
    )
    solution = state.read_state(second).solution
    assert solution is not None
    assert solution.name == "toy/v2"
    assert solutions.next_version_number(project, OP, "toy") == 3
    assert solutions.next_version_number(project, OP, "other") == 1
    assert solutions.list_versions(project, OP, "toy") == ["v1", "v2"]


def test_a_later_campaign_begins_at_what_an_earlier_one_found_best(project: Project) -> None:
    first = start.start_campaign(project, OP, "cpu", "toy", max_iterations=3)
    Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"}).run(first)
    begun = {
        target: state.read_state(start.start_campaign(project, OP, target, "toy")).solution
        for target in ("cpu", "h200")
    }
    assert {target: found and found.name for target, found in begun.items()} == {
        "cpu": "toy/v2", "h200": "toy/v3",
    }  # fmt: skip
    by_energy = start.start_campaign(project, OP, "cpu", "toy", objective="energy")
    Script({"v2": "ACCEPT", "v4": "ACCEPT"}).round(by_energy)
    Script({"v4": "ACCEPT"}).round(by_energy)
    for objective, name in (("time", "toy/v2"), ("energy", "toy/v4")):
        solution = state.read_state(start.start_campaign(project, OP, "cpu", "toy", objective=objective)).solution
        assert solution is not None
        assert solution.name == name
    (project.kernels / OP / "toy" / "v5.toy").write_text("a version of the user's own")
    mine = state.read_state(start.start_campaign(project, OP, "cpu", "toy")).solution
    assert mine is not None
    assert mine.name == "toy/v5"


@pytest.mark.parametrize("name", ["toy", "toy/3", "toy/v0", "toy/v01", "../v1", "toy/v1/x"])
def test_bad_version_names(name: str) -> None:
    with pytest.raises(Misuse, match="write it as"):
        solutions.parse_version_name(name)


def test_second_writer_is_told_who_holds_it(campaign: store.Campaign) -> None:
    with holder(campaign) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        named = rf"process {first.pid} on .* \(`warpsmith judge`, since "
        with pytest.raises(Busy, match=named), store.hold_campaign(campaign, "warpsmith plan"):
            pass
        assert due_phase.find_due_phase(state.read_state(campaign)).step == "design", "readers need not wait"
        second, _ = holder(campaign).communicate()
        assert second.startswith("Busy: ")
        first.communicate()
    with store.hold_campaign(campaign, "warpsmith plan"):
        pass


def test_what_a_killed_process_had_started_is_waited_for(campaign: store.Campaign, dying) -> None:
    dying(campaign.folder / LOCK)
    with store.hold_campaign(campaign, "warpsmith plan"):
        pass


def test_lock_dies_with_its_process(campaign: store.Campaign) -> None:
    with holder(campaign) as first:
        assert first.stdout is not None
        first.stdout.readline()
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert first.stdin is not None
        first.stdin.close()
    with store.hold_campaign(campaign, "warpsmith resume"):
        pass


def fill(campaign: store.Campaign, room: int, code: int = errno.ENOSPC) -> bool:
    """Play the campaign on a disk that takes `room` writes more; whether it filled up."""
    real = os.write
    left = room

    def write(descriptor: int, data: Any) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            real(descriptor, bytes(data)[: len(data) // 2])  # a disk that fills up takes a part first
            raise OSError(code, os.strerror(code))
        return real(descriptor, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", write)
        try:
            with store.hold_campaign(campaign, "play"):
                Script({"v1": "ACCEPT"}).run(campaign)
        except MachineLacks:
            return True
    return False


def test_full_disk_at_every_write_loses_nothing(tmp_path: Path) -> None:
    room, full = 0, True
    while full:
        campaign = start.start_campaign(make_project(tmp_path / str(room)), OP, "cpu", "toy", max_iterations=1)
        full = fill(campaign, room)
        before = {path: path.read_bytes() for path in campaign.rounds.rglob("*.json")}
        assert not list(campaign.folder.rglob(".tmp-*"))
        now = state.read_state(campaign)
        with store.hold_campaign(campaign, "play"):
            resume_campaign(campaign)
            Script({"v1": "ACCEPT"}).run(campaign)
        record = campaign.records()[0]
        if now.open.verdict:
            assert record.evaluation == now.open.verdict
        assert all(path.read_bytes() == data for path, data in before.items() if path.exists())
        room += 1
    assert room > 8


@pytest.mark.parametrize("code", [errno.EDQUOT, errno.EROFS])
def test_what_stopped_it_is_said(campaign: store.Campaign, code: int) -> None:
    assert fill(campaign, 2, code)
    said = "nothing was lost: .*, then run `warpsmith resume"
    with pytest.raises(MachineLacks, match=said), store.hold_campaign(campaign, "play"):
        raise OSError(code, os.strerror(code))


def test_other_errors_pass_through(campaign: store.Campaign) -> None:
    with pytest.raises(FileNotFoundError), store.hold_campaign(campaign, "read"):
        Path("/nowhere/at/all").read_text()


def test_round_1000_is_a_round_like_any_other(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    script = Script({f"v{k}": "ACCEPT" for k in range(1, 4)})
    script.round(campaign)
    for number in range(2, 1000):  # acknowledged as lost, so that the test is short
        (campaign.rounds / "quarantine" / f"{number:03d}-1").mkdir(parents=True)
    script.round(campaign)
    assert [stored.folder.name for stored in campaign.closed_rounds()] == ["001", "1000"]
    assert due_phase.find_due_phase(state.read_state(campaign)).round == 1001
    assert solutions.next_version_number(project, OP, "toy") == 3
    view = open_work.CampaignView(campaign.folder)
    (campaign.rounds / "999").mkdir()
    assert [folder.name for folder in view.closed] == ["001", "999", "1000"]
    assert view.judged_versions() == {"toy-v1.toy", "toy-v2.toy"}
    (campaign.rounds / "999").rmdir()
    assert len(hit_rates.list_records(project)) == 2
    pages.render_campaign(campaign)
    assert (campaign.rounds / "1000" / "summary.md").is_file()
    assert evidence_check.check_evidence(project, pages.expected_pages(project)).rounds == 2
