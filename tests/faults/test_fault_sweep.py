"""Kill commands, or fail their calls, at places all over their range, from outside; what a user does next works.

Other sweeps kill inside of one feature at more places. This one samples whole commands, with errors of the disk.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from campaign_kit import ENTRY, OP, Script, make_project, make_repository, use_toys
from fault_host import KILL, FaultHost

from warpsmith import backups, files
from warpsmith.campaign import start
from warpsmith.campaign.history import store
from warpsmith.ledger import signing
from warpsmith.ledger.store import RECORD
from warpsmith.project import Project

pytestmark = pytest.mark.slow

SAMPLES = 5
"""Places of each command that are tried; the faults take turns."""
FAULTS = (KILL, errno.EIO, KILL, errno.ENOSPC, errno.EDQUOT)
FOLDER = Path(__file__).parent

Prepare = Callable[[store.Campaign], None]


def until(step: str, rounds: int = 1) -> Prepare:
    """Play a campaign until a step is due in the round after these."""

    def prepare(campaign: store.Campaign) -> None:
        script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK", "v4": "ACCEPT"})
        for _ in range(rounds):
            script.round(campaign)
        if step:
            script.until(campaign, step)

    return prepare


def damaged(campaign: store.Campaign) -> None:
    """A round that git still has is edited, and so is the manifest."""
    until("plan", 2)(campaign)
    (campaign.ledger.folder_of(1) / RECORD).write_text("{")
    (campaign.folder / store.MANIFEST).write_text("")


def edited(campaign: store.Campaign) -> None:
    """A user's file is edited after its backup."""
    path = campaign.project.root / "train.py"
    path.write_text("before\n")
    backups.open_backups(campaign.project, [path])
    path.write_text("after\n")
    backups.seal_backups(campaign.project, [path])


PLAN = (
    "--hypothesis", "Wider loads make it faster.", "--category", "memory", "--predict", "0.25",
    "--metric", "dram_pct", "--change", "15",
)  # fmt: skip
COMMANDS: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    "select": (until("selection"), ("select", "--language", "toy", "--because", "It is simple.")),
    "plan": (until("plan"), ("plan", *PLAN)),
    "evaluate": (until("outcome"), ("evaluate",)),
    "learn": (until("lesson"), ("learn", "--add", "entry.md", "--reason", "It was not written down.")),
    "resume": (damaged, ("resume",)),
    "restart": (until("plan", 3), ("restart", "--mask-round", "3")),
    "strike": (until("", 2), ("strike", "2", "--reason", "It keeps results of earlier calls.")),
    "abandon": (until("plan"), ("abandon", "{campaign}", "--reason", "Nobody needs it any more.")),
    "report": (until("plan"), ("report", "--all")),
    "site": (until("plan"), ("site", "--out", "site")),
    "backup": (until(""), ("backup", "entry.md")),
    "restore": (edited, ("restore", "train.py")),
    "keep": (edited, ("keep", "train.py")),
}


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def host(scratch: Path) -> Iterator[FaultHost]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler builds the library that makes calls fail")
    library = scratch / "fault.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, FOLDER / "fault.c", "-ldl"], check=True)
    with pytest.MonkeyPatch.context() as patch:
        use_toys(patch)
        (scratch / "tmp").mkdir()
        for name, path in (("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("TMPDIR", "tmp")):
            patch.setenv(name, str(scratch / path))
        signing.sign_record("0" * 64)  # makes the user's key
        host = FaultHost(library, [FOLDER, FOLDER.parent / "campaign"])
        yield host
        host.close()


def made(root: Path, prepare: Prepare) -> str:
    """Make a project with a prepared campaign; return the campaign's name."""
    project = make_project(root)
    (root / "warpsmith.toml").write_text("")
    (root / "entry.md").write_text(ENTRY)
    make_repository(root)
    campaign = start.start_campaign(project, OP, "cpu", "toy", git="branch", max_iterations=9)
    prepare(campaign)
    return campaign.name


def essence(root: Path, name: str) -> dict[str, Any]:
    """What a user has: rounds, parts of the open round, masks, an end, knowledge, backups and their file."""
    project = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    campaign = store.read_campaign(project, project.devlog / OP / name)
    entries = sorted(path.name for path in project.knowledge.rglob("wider-loads.md"))
    user_file = root / "train.py"
    return {
        "rounds": [
            (record.round, record.solution, record.verdict, record.lesson.action, record.struck is not None)
            for record in campaign.records()
        ],
        "open": sorted(path.name for path in campaign.open.glob("*.json")),
        "masks": campaign.masks() is not None,
        "closed": campaign.closure() is not None,
        "entries": entries,
        "backups": {backup.path for backup in backups.standing_backups(project)},
        "file": user_file.read_text() if user_file.exists() else "",
        "site": (root / "site" / "index.html").is_file(),
        "unfinished": sorted(path.name for path in root.rglob(f"{files.TEMPORARY_PREFIX}*")),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_user_goes_on_after_any_fault(host: FaultHost, scratch: Path, command: str) -> None:
    prepare, arguments = COMMANDS[command]
    template = scratch / command
    name = made(template, prepare)
    arguments = tuple(argument.format(campaign=name) for argument in arguments)
    whole = scratch / f"{command}-whole"
    shutil.copytree(template, whole, symlinks=True)
    undisturbed = host.run(whole, *arguments)
    assert undisturbed.status == 0, undisturbed.output
    assert undisturbed.calls > SAMPLES
    expected = essence(whole, name)
    places = sorted({1 + (undisturbed.calls - 1) * k // (SAMPLES - 1) for k in range(SAMPLES)})
    for n, fault in zip(places, FAULTS, strict=True):
        root = scratch / f"{command}-{n}"
        shutil.copytree(template, root, symlinks=True)
        where = f"{command}: {errno.errorcode.get(fault, 'killed')} at call {n} of {undisturbed.calls}"
        struck = host.run(root, *arguments, n=n, action=fault)
        assert (struck.status == -9) == (fault == KILL), (where, struck)
        said = [struck, *(host.run(root, *words.split()) for words in ("status", "evidence check"))]
        again = host.run(root, *arguments)
        if again.status and "warpsmith resume" in "".join(ending.output for ending in (*said, again)):
            said += [again, host.run(root, "resume", "--campaign", name)]
            again = host.run(root, *arguments)
        for ending in (*said, again):
            assert "Traceback" not in ending.output, (where, ending.output)
        assert essence(root, name) == expected, (where, said, again)
        shutil.rmtree(root)
