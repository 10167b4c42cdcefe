"""Kill a whole campaign between two system calls; resume must lose and double nothing.

Each commit has its places, one in six of all.

`tests/faults` kills commands from outside, at places that it samples.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontmatter
import pytest
from campaign_kit import OP, Script, git, make_project, make_repository, use_toys
from commit_draw import draw_number
from kill_kit import Snapshots, Trigger, in_child

from warpsmith.campaign import start
from warpsmith.campaign.history import lineage, store
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.core.evaluation import Evaluation
from warpsmith.ledger.lock import HOLDER, LOCK
from warpsmith.project import Project

pytestmark = pytest.mark.slow

VERDICTS = {"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "INVALID"}
CHUNKS = 3
ONE_IN = 6


State = tuple[int, store.Campaign, list[str]]
"""Number of the call, the campaign as the kill left it, and what the run said before."""


@dataclass
class Template:
    """A project with a started campaign, and what its undisturbed run leaves behind."""

    root: Path
    name: str
    essence: list[dict[str, Any]]
    files: set[str]
    calls: int

    def copy(self, place: Path) -> store.Campaign:
        shutil.copytree(self.root, place, symlinks=True)
        return opened(place, self.name)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def template(scratch: Path) -> Template:
    with pytest.MonkeyPatch.context() as patch:
        use_toys(patch)
        project = make_project(scratch / "template")
        make_repository(project.root)
        campaign = start.start_campaign(project, OP, "cpu", "toy", git="branch", max_iterations=3)
        found = Template(project.root, campaign.name, [], set(), 0)
        done = found.copy(scratch / "undisturbed")
        code, lines = in_child(lambda said: count(done, said))
    assert code == 0, lines
    found.calls = int(lines[-1])
    found.essence = essence(done)
    found.files = files_of(done)
    return found


def opened(root: Path, name: str) -> store.Campaign:
    project = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    return store.read_campaign(project, root / "devlog" / OP / name)


def play(campaign: store.Campaign, said: Callable[[str], None]) -> None:
    with store.hold_campaign(campaign, "play"):
        resume_campaign(campaign)
        Script(VERDICTS, said, teaches="v3").run(campaign)


def count(campaign: store.Campaign, said: Callable[[str], None]) -> None:
    trigger = Trigger(0, False)
    trigger.arm()
    play(campaign, said)
    said(str(trigger.calls))


def killed(campaign: store.Campaign, n: int, after: bool, said: Callable[[str], None]) -> None:
    Trigger(n, after).arm()
    play(campaign, said)


def mended(campaign: store.Campaign, said: Callable[[str], None]) -> None:
    play(campaign, said)
    assert resume_campaign(campaign) == [], "a second resume had something left to do"


def essence(campaign: store.Campaign) -> list[dict[str, Any]]:
    """The records without times, hashes that times enter, and places."""
    dumped = []
    for record in campaign.records():
        data = record.model_dump(mode="json", exclude={"opened", "closed", "previous_sha256"})
        data["evaluation"]["provenance"].pop("solution")
        dumped.append(data)
    return dumped


def files_of(campaign: store.Campaign) -> set[str]:
    root = campaign.project.root
    every = {path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts}
    return {path.relative_to(root).as_posix() for path in every} - {
        # The holder's text outlives a killed process; the lock does not.
        campaign.project.relative(campaign.folder / name)
        for name in (LOCK, HOLDER)
    }


def judged(campaign: store.Campaign) -> set[str]:
    """Every verdict on disk, as the script says them."""
    found = [record.evaluation for record in campaign.records()]
    invalid = campaign.rounds.glob("*/invalid-*.json")
    found += [Evaluation.model_validate_json(path.read_bytes()) for path in invalid]
    return {f"{evaluation.version} {evaluation.decision.verdict}" for evaluation in found}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_kill_is_mended(scratch: Path, template: Template, chunk: int, after: bool) -> None:
    assert template.calls > 100
    assert [record["evaluation"]["decision"]["verdict"] for record in template.essence] == [
        "ACCEPT",
        "ROLLBACK",
        "ACCEPT",
    ]
    # Before n is after n - 1, so the two sides take turns, and no place between two calls is met twice.
    first = 2 + draw_number("kill", ONE_IN) + ONE_IN * (2 * chunk + after)
    numbers = range(first, template.calls + 1, 2 * ONE_IN * CHUNKS)
    states = killed_after(template, numbers, scratch) if after else killed_before(template, numbers, scratch)
    for n, campaign, said in states:
        code, more = in_child(lambda say, c=campaign: mended(c, say))  # type: ignore[misc]
        assert code == 0, (n, "\n".join(more))
        check(template, campaign, [*said, *more], f"killed {'after' if after else 'before'} call {n}")
        shutil.rmtree(campaign.project.root)


def killed_after(template: Template, numbers: range, scratch: Path) -> Iterator[State]:
    """Kill a run after each of these calls."""
    for n in numbers:
        campaign = template.copy(scratch / f"after-{n}")
        code, said = in_child(lambda say, n=n, c=campaign: killed(c, n, True, say))  # type: ignore[misc]
        assert code == -signal.SIGKILL, (n, code, said)
        yield n, campaign, said


def killed_before(template: Template, numbers: range, scratch: Path) -> Iterator[State]:
    """Copy the files of one run before each of these calls: nothing else of it outlives a kill there."""
    source = template.copy(scratch / f"before-{numbers.start}-run")

    def run(say: Callable[[str], None]) -> None:
        lines: list[str] = []

        def save(n: int) -> None:
            if n in numbers:
                place = scratch / f"before-{n}"
                shutil.copytree(source.project.root, place, symlinks=True)
                place.with_suffix(".said").write_text("\n".join(lines))

        Snapshots(save).arm()
        play(source, lines.append)

    code, lines = in_child(run)
    assert code == 0, lines
    shutil.rmtree(source.project.root)
    for n in numbers:
        place = scratch / f"before-{n}"
        yield n, opened(place, template.name), place.with_suffix(".said").read_text().splitlines()


def check(template: Template, campaign: store.Campaign, said: list[str], where: str) -> None:
    assert essence(campaign) == template.essence, where
    assert files_of(campaign) == template.files, where
    accepted = [(k.record.round, k.sha256) for k in campaign.closed_rounds() if k.record.outcome.verdict.accepted]
    on_branch = [(c.round, c.sha256) for c in lineage.rounds_on_branch(campaign)]
    assert on_branch == accepted, where
    verdicts = {line for line in said if line.startswith("v")}
    assert verdicts <= judged(campaign), where
    closed = [line for line in said if line.startswith("round")]
    assert len(closed) == len(set(closed)), where
    last = campaign.closed_rounds()[-1]
    entry = frontmatter.load(str(campaign.project.knowledge / "optimizations" / "wider-loads.md"))
    cited = [(item["record"], item["sha256"]) for item in entry["evidence"]]
    assert cited == [(campaign.project.relative(last.folder / "record.json"), last.sha256)], where
    git(campaign.project.root, "fsck", "--strict")
