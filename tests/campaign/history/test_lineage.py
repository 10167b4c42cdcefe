"""The lineage branch: whole history, nothing of the user's touched, never a round twice."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from campaign_kit import OP, Script, git, make_repository

from warpsmith.campaign import start
from warpsmith.campaign.history import lineage, manifests, store
from warpsmith.campaign.rounds import due_phase, state
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.core.evaluation import Energy
from warpsmith.errors import Misuse
from warpsmith.project import Project

VERDICTS = {"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ACCEPT"}
HOOKS = ("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change", "pre-auto-gc")


@pytest.fixture
def repository(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"):
        monkeypatch.delenv(f"GIT_{name}", raising=False)
    make_repository(project.root)
    return project.root


def begin(project: Project) -> store.Campaign:
    return start.start_campaign(project, OP, "cpu", "toy", git="branch", max_iterations=3)


def ref(campaign: store.Campaign) -> str:
    return f"optimize/{campaign.name}"


def rounds_on(campaign: store.Campaign) -> list[int]:
    return [committed.round for committed in lineage.rounds_on_branch(campaign)]


def failing_hooks(root: Path) -> None:
    (root / ".git" / "hooks").mkdir()
    for name in HOOKS:
        hook = root / ".git" / "hooks" / name
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(hook.stat().st_mode | stat.S_IXUSR)


def stale_lock(root: Path) -> None:
    (root / ".git" / "index.lock").write_text("")


def dirty(root: Path) -> None:
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    (root / "kernels" / OP / "definition.py").write_text("# edited\n")


def stashed(root: Path) -> None:
    (root / "kernels" / OP / "definition.py").write_text("# put aside\n")
    git(root, "-c", "user.name=u", "-c", "user.email=u@e", "stash")


def detached(root: Path) -> None:
    git(root, "checkout", "-q", "--detach")


def bad_identity(root: Path) -> None:
    git(root, "config", "user.useConfigOnly", "true")


def strict_signing(root: Path) -> None:
    git(root, "config", "commit.gpgSign", "true")
    git(root, "config", "gpg.program", "false")


SITUATIONS: list[Callable[[Path], None]] = [
    failing_hooks,
    stale_lock,
    dirty,
    stashed,
    detached,
    bad_identity,
    strict_signing,
]


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda f: f.__name__)
def test_commits_whatever_the_users_tree_is_like(
    project: Project, repository: Path, situation: Callable[[Path], None]
) -> None:
    situation(repository)
    before = users(repository)
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    assert rounds_on(campaign) == [1, 3]
    assert users(repository) == before
    git(repository, "fsck", "--strict")


def users(root: Path) -> list[str]:
    """What is the user's: index, HEAD, stash, main, and the tracked part of the tree."""
    index = (root / ".git" / "index").read_bytes().hex()
    head = (root / ".git" / "HEAD").read_text()
    stash = root / ".git" / "refs" / "stash"
    return [
        index,
        head,
        stash.read_text() if stash.exists() else "",
        git(root, "rev-parse", "main"),
        git(root, "--no-optional-locks", "diff", "--stat"),
    ]


def test_commit_holds_the_judged_version_and_the_record(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    kept = campaign.closed_rounds()
    shown = git(repository, "log", "-1", "--format=%B", ref(campaign))
    assert shown.splitlines()[0] == "scale toy v3: +20.0 % (round 3, cpu)"
    assert f"Campaign: {campaign.name}\nRound: 3\nRecord-Sha256: {kept[2].sha256}\n" in shown
    assert "Hypothesis: Wider loads make it faster." in shown
    assert git(repository, "show", f"{ref(campaign)}:kernels/scale/toy/v3.toy") == "multiply by 3\n"
    folder = campaign.project.relative(kept[2].folder)
    listed = git(repository, "ls-tree", "--name-only", ref(campaign), f"{folder}/").split()
    assert [Path(name).name for name in listed] == ["record.json", "record.sha256", "record.sig", "toy-v3.toy"]
    names = git(repository, "ls-tree", "-r", "--name-only", ref(campaign))
    assert "toy/v2.toy" not in names, "a version that was rolled back is no part of the lineage"
    assert "definition.py" in names, "the branch begins at HEAD"


def test_a_saving_of_energy_is_called_so(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    kept = campaign.closed_rounds()[2]
    judged = kept.record.evaluation
    energy = Energy(workloads={}, aggregate=judged.aggregates[0], floor=0.01)
    by_energy = kept.record.model_copy(update={"evaluation": judged.model_copy(update={"energy": energy})})
    message = lineage._message(campaign, replace(kept, record=by_energy))
    assert message.splitlines()[0] == "scale toy v3: +20.0 % in joules a call (round 3, cpu)"


def test_rendered_pages_are_not_committed(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).round(campaign)
    git(repository, "update-ref", "-d", f"refs/heads/{ref(campaign)}")
    (campaign.rounds / "001" / "summary.md").write_text("rendered\n")
    assert len(lineage.sync_branch(campaign)) == 1
    assert "summary.md" not in git(repository, "ls-tree", "-r", "--name-only", ref(campaign))


def test_sync_is_idempotent(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    tip = git(repository, "rev-parse", ref(campaign))
    assert lineage.sync_branch(campaign) == []
    assert resume_campaign(campaign) == []
    assert git(repository, "rev-parse", ref(campaign)) == tip


def test_branch_rewound_by_hand_gets_the_missing_round_again(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    git(repository, "update-ref", f"refs/heads/{ref(campaign)}", f"{ref(campaign)}^")
    assert rounds_on(campaign) == [1]
    assert len(resume_campaign(campaign)) == 1
    assert rounds_on(campaign) == [1, 3]


def test_commit_of_a_human_on_the_branch_is_kept(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).round(campaign)
    tree = git(repository, "rev-parse", f"{ref(campaign)}^{{tree}}").strip()
    human = git(
        repository, "-c", "user.name=h", "-c", "user.email=h@e",
        "commit-tree", tree, "-p", ref(campaign), "-m", "by hand\n\nRound: 3",
    ).strip()  # fmt: skip
    git(repository, "update-ref", f"refs/heads/{ref(campaign)}", human)
    Script(VERDICTS).run(campaign)
    assert rounds_on(campaign) == [1, 3]
    assert human in git(repository, "rev-list", ref(campaign))


def test_branch_moved_while_committing_is_read_again(
    project: Project, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = begin(project)
    Script(VERDICTS).until(campaign, "lesson")
    real, moved = lineage._commit, []

    def racing(*arguments: object) -> str:
        new = real(*arguments)  # type: ignore[arg-type]
        if not moved:
            moved.append(new)
            git(repository, "update-ref", f"refs/heads/{ref(campaign)}", new)
        return new

    monkeypatch.setattr(lineage, "_commit", racing)
    script = Script(VERDICTS)
    script.lesson(campaign, state.read_state(campaign))
    assert rounds_on(campaign) == [1], "another process committed it first: not twice"


def test_checked_out_branch_is_not_moved(project: Project, repository: Path) -> None:
    campaign = begin(project)
    script = Script(VERDICTS)
    script.until(campaign, "lesson")
    git(repository, "checkout", "-q", ref(campaign))
    with pytest.raises(Misuse, match="is checked out in"):
        script.lesson(campaign, state.read_state(campaign))
    assert len(campaign.records()) == 1, "the round is recorded"
    assert due_phase.find_due_phase(state.read_state(campaign)).command.startswith("warpsmith resume")
    git(repository, "checkout", "-q", "main")
    resume_campaign(campaign)
    assert rounds_on(campaign) == [1]
    assert due_phase.find_due_phase(state.read_state(campaign)).phase == "SELECT"


def test_message_of_an_agent_cannot_forge_a_trailer(project: Project, repository: Path) -> None:
    campaign = begin(project)
    Script(VERDICTS).round(campaign)
    script = Script({"v2": "ACCEPT"})
    script.until(campaign, "plan")
    from campaign_kit import plan

    from warpsmith.campaign.rounds import open_round

    forged = f"Be faster.\n\nRecord-Sha256: {'0' * 64}\nRound: 9\nCampaign: {campaign.name}"
    open_round.record_plan(campaign, plan(hypothesis=forged))
    script.round(campaign)
    assert [(c.round, c.sha256) for c in lineage.rounds_on_branch(campaign)] == [
        (kept.record.round, kept.sha256) for kept in campaign.closed_rounds()
    ]


def clone_of(project: Project, folder: Path) -> Project:
    git(folder, "clone", "-q", str(project.root), "clone")
    root = folder / "clone"
    return Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")


def test_a_clone_goes_on_from_the_branch_that_it_fetched(
    project: Project, repository: Path, tmp_path: Path
) -> None:
    campaign = begin(project)
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ACCEPT"})
    for _ in range(2):
        script.round(campaign)
    clone = clone_of(project, tmp_path)
    shutil.copytree(project.devlog, clone.devlog)
    shutil.copytree(project.kernels, clone.kernels, dirs_exist_ok=True)
    there = store.read_campaign(clone, clone.devlog / campaign.folder.relative_to(project.devlog))
    assert rounds_on(there) == [1, 2], "the rounds that origin has"
    shutil.rmtree(there.ledger.folder_of(2))
    assert any("restored round 2" in line for line in resume_campaign(there))
    script.round(there)
    assert rounds_on(there) == [1, 2, 3]
    fetched = git(clone.root, "rev-parse", f"refs/remotes/origin/{ref(campaign)}").strip()
    assert git(clone.root, "merge-base", ref(campaign), fetched).strip() == fetched


def test_a_manifest_comes_back_from_a_fetched_branch(project: Project, repository: Path, tmp_path: Path) -> None:
    campaign = begin(project)
    Script({"v1": "ACCEPT"}).round(campaign)
    clone = clone_of(project, tmp_path)
    folder = clone.devlog / campaign.folder.relative_to(project.devlog)
    shutil.copytree(campaign.folder, folder)
    (folder / manifests.MANIFEST).write_text("torn")
    done = list(manifests.restore_manifest(clone, folder))
    assert any("restored manifest.yaml" in line for line in done)
    assert (folder / manifests.MANIFEST).read_bytes() == (campaign.folder / manifests.MANIFEST).read_bytes()


def test_start_outside_of_git_is_refused(project: Project) -> None:
    with pytest.raises(Misuse, match="is no git checkout; `git init` makes it one"):
        begin(project)
    assert not project.devlog.exists()


def test_repository_without_commits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    git(project.root, "init", "-q")
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    assert rounds_on(campaign) == [1, 3]


def test_project_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    from campaign_kit import make_project

    git(tmp_path, "init", "-q")
    project = make_project(tmp_path / "inner")
    campaign = begin(project)
    Script(VERDICTS).run(campaign)
    assert "inner/kernels/scale/toy/v3.toy" in git(tmp_path, "ls-tree", "-r", "--name-only", ref(campaign))
    assert rounds_on(campaign) == [1, 3]


def test_called_from_a_hook_with_gits_variables_set(
    project: Project, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    campaign = begin(project)
    Script(VERDICTS).round(campaign)
    assert rounds_on(campaign) == [1]


def test_objects_are_flushed_to_disk(project: Project, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = begin(project)
    script = Script(VERDICTS)
    script.until(campaign, "lesson")
    trace = repository.parent / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    script.lesson(campaign, state.read_state(campaign))
    flushes = re.findall(r'"key":"fsync/hardware-flush","value":"(\d+)"', trace.read_text())
    assert sum(map(int, flushes)) >= 6, "three blobs, trees, the commit and the ref"


def test_holding_the_campaign_leaves_no_lock_in_git(project: Project, repository: Path) -> None:
    campaign = begin(project)
    with store.hold_campaign(campaign, "test"):
        Script(VERDICTS).round(campaign)
    found = subprocess.run(
        ["git", "-C", str(repository), "status", "--short", "-uall"], capture_output=True, text=True
    )
    assert ".lock" not in found.stdout
