"""A manifest is sealed; a damaged one comes back from git, and never stops another campaign."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaign_kit import OP, Script, git, make_repository
from typer.testing import CliRunner

from warpsmith import files
from warpsmith.campaign import start
from warpsmith.campaign.evidence import evidence_check
from warpsmith.campaign.history import store
from warpsmith.campaign.history.manifests import MANIFEST, SEAL
from warpsmith.campaign.rounds.resume import restore_manifests
from warpsmith.cli.main import load_app
from warpsmith.errors import CorruptRecord, LeftOut
from warpsmith.ledger.store import digest_line
from warpsmith.project import Project
from warpsmith.reporting import pages

Spoil = Callable[[Path], Any]

SPOILED: dict[str, Spoil] = {
    "empty": lambda path: path.write_text(""),
    "a conflict": lambda path: path.write_text(f"<<<<<<< HEAD\n{path.read_text()}=======\n>>>>>>> theirs\n"),
    "another limit": lambda path: path.write_text(
        path.read_text().replace("max_iterations: 2", "max_iterations: 9")
    ),
    "binary": lambda path: path.write_bytes(b"\xff\x00"),
    "removed": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a circle": lambda path: (path.unlink(), path.symlink_to(path)),
}


@pytest.fixture
def campaigns(project: Project) -> tuple[store.Campaign, store.Campaign]:
    """A campaign with a round on its branch, and one beside it."""
    make_repository(project.root)
    first, second = (
        start.start_campaign(project, OP, target, "toy", git="branch", max_iterations=2)
        for target in ("cpu", "h200")
    )
    Script({"v1": "ACCEPT"}).round(first)
    pages.render_all(project)
    return first, second


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_damaged_manifest_is_one_finding_and_comes_back(
    campaigns: tuple[store.Campaign, store.Campaign], spoil: Spoil
) -> None:
    damaged, whole = campaigns
    project, path = damaged.project, damaged.folder / MANIFEST
    text = path.read_bytes()
    before = evidence_check.check_evidence(project, pages.expected_pages(project)).stale
    spoil(path)
    with pytest.warns(
        LeftOut, match=rf"manifest\.yaml .*run `warpsmith resume --campaign {damaged.name}`"
    ) as caught:
        assert [campaign.name for campaign in store.list_campaigns(project)] == [whole.name]
    assert len(caught) == 1
    with pytest.raises(CorruptRecord, match=r"manifest\.yaml"):
        store.find_campaign(project, damaged.name)
    with pytest.warns(LeftOut):
        assert store.find_campaign(project).name == whole.name
    standing = evidence_check.check_evidence(project, pages.expected_pages(project))
    assert [finding.path for finding in standing.stale] == [project.relative(path)], standing.stale
    done = restore_manifests(project, damaged.name)
    assert done[-1] == f"restored {MANIFEST} from refs/heads/optimize/{damaged.name}"
    assert path.read_bytes() == text
    assert restore_manifests(project, None) == []
    assert [campaign.name for campaign in store.list_campaigns(project)] == [damaged.name, whole.name]
    assert evidence_check.check_evidence(project, pages.expected_pages(project)).stale == before


def test_what_was_damaged_is_kept(campaigns: tuple[store.Campaign, store.Campaign]) -> None:
    (campaigns[0].folder / MANIFEST).write_text("mine")
    moved, _ = restore_manifests(campaigns[0].project, None)
    assert moved.endswith("moved to rounds/quarantine/manifest-1")
    assert (campaigns[0].rounds / "quarantine" / "manifest-1").read_text() == "mine"


@pytest.mark.parametrize("seal", ["", "no hash", f"{'0' * 64}  other.yaml\n"])
def test_a_damaged_seal_alone_stops_nothing(campaigns: tuple[store.Campaign, store.Campaign], seal: str) -> None:
    (campaigns[0].folder / SEAL).write_text(seal)
    assert len(store.list_campaigns(campaigns[0].project)) == 2


def test_a_manifest_edited_after_a_round_shows_whatever_its_seal_says(
    campaigns: tuple[store.Campaign, store.Campaign],
) -> None:
    edited, _ = campaigns
    path, seal = edited.folder / MANIFEST, edited.folder / SEAL
    text = path.read_text()
    path.write_text(text.replace("max_iterations: 2", "max_iterations: 9"))
    for resealed in (True, False):
        seal.write_text(digest_line(files.file_sha256(path), MANIFEST)) if resealed else seal.unlink()
        with pytest.raises(CorruptRecord, match=r"does not match rounds/001/record\.json"):
            store.read_campaign(edited.project, edited.folder)
    assert any(f"restored {MANIFEST}" in line for line in restore_manifests(edited.project, edited.name))
    assert (path.read_text(), seal.exists()) == (text, True)
    seal.unlink()
    assert store.read_campaign(edited.project, edited.folder).manifest == edited.manifest


def test_a_manifest_that_no_commit_holds_stays(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    (campaign.folder / MANIFEST).write_text("")
    with pytest.raises(CorruptRecord, match="no commit holds it; put a copy of it back"):
        restore_manifests(project, campaign.name)
    with pytest.warns(LeftOut):
        assert restore_manifests(project, None) == store.list_campaigns(project) == []
    assert (campaign.folder / MANIFEST).read_text() == ""


def test_a_commit_of_other_settings_is_not_taken(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    path, text = campaign.folder / MANIFEST, (campaign.folder / MANIFEST).read_text()
    path.write_text(text.replace("max_iterations: null", "max_iterations: 7"))
    make_repository(project.root)
    with pytest.raises(CorruptRecord, match="no commit holds it"):
        restore_manifests(project, campaign.name)
    path.write_text(text)
    git(project.root, "add", "-A")
    path.write_text("")
    assert restore_manifests(project, campaign.name)[-1].endswith("from the index")
    assert path.read_text() == text


def test_an_old_manifest_without_a_seal_reads(campaigns: tuple[store.Campaign, store.Campaign]) -> None:
    (campaigns[1].folder / SEAL).unlink()
    assert len(store.list_campaigns(campaigns[0].project)) == 2


def test_the_command_repairs(
    campaigns: tuple[store.Campaign, store.Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(campaigns[0].project.root)
    (campaigns[0].folder / MANIFEST).write_text("")
    for said in ("restored manifest.yaml", "Nothing to repair"):
        arguments = ["resume", "--campaign", campaigns[0].name]
        result = CliRunner().invoke(load_app(), arguments, catch_exceptions=False)
        assert said in result.output
