"""A campaign is read again only if a file behind its check has other contents, whatever the file's times say."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_kit import OP, make_project, use_toys
from test_evidence import Lab, check, messages

from warpsmith import derived_rows
from warpsmith.campaign import start, texts
from warpsmith.campaign.evidence import campaign_check, contents
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import open_round
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.core.campaign import Lesson
from warpsmith.ledger import signing
from warpsmith.ledger.store import DIGEST, RECORD, digest_line


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the campaigns that were read and checked."""
    names: list[str] = []
    real = campaign_check.check_campaign

    def counted(campaign: store.Campaign) -> campaign_check.CampaignCheck:
        names.append(campaign.name)
        return real(campaign)

    monkeypatch.setattr(campaign_check, "check_campaign", counted)
    return names


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> store.Campaign:
    """A baseline, and a version that was rolled back; the lesson of the last round cites a file."""
    use_toys(monkeypatch)
    project = make_project(tmp_path / "project")
    (project.root / "notes").mkdir()
    (project.root / "notes" / "one.md").write_text("It took 41.5 us.\n")
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    script = Lab({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(campaign)
    script.until(campaign, "lesson")
    lesson = Lesson(action="nothing", reason="A call takes 41.5 us by notes/one.md.")
    assert list(texts.text_faults(project, texts.lesson_texts(lesson), texts.quantities_of())) == []
    open_round.close_round(campaign, PreparedLesson(lesson=lesson))
    return campaign


def edit_unseen(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Edit a file in place, so that its size and its time stay."""
    before = path.stat()
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_nothing_is_read_where_nothing_changed(campaign: store.Campaign, reads: list[str]) -> None:
    first = check(campaign.project)
    assert (first.rounds, first.stale, len(first.older)) == (2, (), 2)
    assert check(campaign.project) == first
    assert reads == [campaign.name]


def test_a_figure_that_was_raised_with_its_digest_and_time_is_stale(
    campaign: store.Campaign, reads: list[str]
) -> None:
    check(campaign.project)
    path = campaign.ledger.folder_of(2) / RECORD
    edit_unseen(path, lambda data: data.replace(b"0.2", b"0.9", 1))
    digest = digest_line(hashlib.sha256(path.read_bytes()).hexdigest(), RECORD)
    edit_unseen(path.with_name(DIGEST), lambda _: digest.encode())
    said = messages(campaign.project)
    assert any("is not the record that record.sig signs" in message for message in said)
    assert len(reads) == 2


@pytest.mark.parametrize("part", ["version", "definition", "snapshot", "citation", "journal"])
def test_other_files_are_behind_a_check_too(campaign: store.Campaign, reads: list[str], part: str) -> None:
    project = campaign.project
    check(project)
    path, old, new = {
        "version": (project.kernels / OP / "toy" / "v2.toy", b"2", b"3"),
        "definition": (project.definition_path(OP), b"e", b"3"),
        "snapshot": (campaign.ledger.folder_of(1) / "toy-v1.toy", b"1", b"3"),
        "citation": (project.root / "notes" / "one.md", b"41.5", b"51.5"),
        "journal": (campaign.folder / "journal.jsonl", b"{", b"("),
    }[part]
    edit_unseen(path, lambda data: data.replace(old, new))
    assert len(reads) == 1
    assert messages(project) != []
    assert len(reads) == 2


def test_a_deleted_signature_shows(campaign: store.Campaign) -> None:
    check(campaign.project)
    (campaign.ledger.folder_of(2) / "record.sig").unlink()
    (message,) = messages(campaign.project)
    assert "has no record.sig" in message


def test_a_record_that_another_one_replaced_shows_without_reading(
    campaign: store.Campaign, reads: list[str]
) -> None:
    """The log of what was signed is read at each check, and is no part of what is kept."""
    check(campaign.project)
    last = campaign.closed_rounds()[-1]
    signing.log_record(last.path, "0" * 64)
    (message,) = messages(campaign.project)
    assert "signed last on this machine" in message
    assert len(reads) == 1


def test_without_an_index_everything_is_read(campaign: store.Campaign, reads: list[str]) -> None:
    first = check(campaign.project)
    shutil.rmtree(derived_rows.rows_path(campaign.project.root).parent)
    assert check(campaign.project) == first
    assert len(reads) == 2


def test_rendered_files_are_no_part_of_the_contents(campaign: store.Campaign) -> None:
    before = contents.hash_contents(campaign.project)
    (campaign.folder / "report.md").write_text("rendered")
    assert contents.hash_contents(campaign.project).campaigns == before.campaigns
    (campaign.folder / "final.json").write_text("{}")
    assert contents.hash_contents(campaign.project).campaigns != before.campaigns


def test_what_lies_behind_a_link_is_checked(campaign: store.Campaign, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    campaign.rounds.rename(elsewhere)
    campaign.rounds.symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(elsewhere)
    check(campaign.project)
    edit_unseen(elsewhere / "002" / RECORD, lambda data: data.replace(b"0.2", b"0.9", 1))
    assert messages(campaign.project) != []
