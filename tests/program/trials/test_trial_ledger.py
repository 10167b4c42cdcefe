"""Trials are sealed and chained; older ones without a digest still read; kill -9 at any call loses no verdict."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kill_kit import Trigger, in_child
from typer.testing import CliRunner

from warpsmith import files
from warpsmith import project as projects
from warpsmith.cli.main import load_app
from warpsmith.core.trial import TrialPlan, TrialRecord
from warpsmith.errors import CorruptRecord
from warpsmith.ledger import signing
from warpsmith.ledger.lock import HOLDER, LOCK
from warpsmith.ledger.store import DIGEST, RECORD, digest_line, write_model
from warpsmith.program.trials import trial_store
from warpsmith.program.trials.trial_store import PLAN, TOTAL, Trials
from warpsmith.project import Project

ENTRIES = ("first", "second", "third")
TIMING = {"seconds": 1, "spread": 0, "batches": 1, "steps": 1, "first_seconds": 1, "warm_up": 0}
SPOILED: dict[str, Callable[[Path], object]] = {
    "edited": lambda path: path.write_text(path.read_text().replace('"reason": "-"', '"reason": "kept"')),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "digest removed": lambda path: path.with_name(DIGEST).unlink(),
    "removed": Path.unlink,
}


def plan(entry: str) -> TrialPlan:
    return TrialPlan.model_validate(
        {
            "entry": entry,
            "rules": {},
            "subject": {"name": "train", "path": "train.py", "step": "train_step"},
            "files": [{"path": "train.py", "before": "0" * 64}],
            "others": {},
            "prerequisites": {"entry": entry, "checks": []},
            "baseline": TIMING,
            "device": "a cpu",
            "opened": "2026-11-21 12:00",
        }
    )


def record(entry: str) -> TrialRecord:
    return TrialRecord.model_validate(
        {
            "plan": plan(entry).model_dump(),
            "decision": {"verdict": "RESTORED", "reason": "-"},
            "closed": "2026-11-21 12:00",
        }
    )


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return make(tmp_path)


def make(root: Path) -> Trials:
    (root / "warpsmith.toml").write_text("")
    return Trials(projects.find_project(root), "train")


def play(trials: Trials, say: Callable[[str], None] = lambda _: None) -> None:
    """Run the trials that are still to be run, from whatever is on disk."""
    with trial_store.lock_programs(trials.project):
        while (done := len(trials.records())) < len(ENTRIES):
            if trials.plan() is None:
                trials.publish(plan(ENTRIES[done]), {"before-0": b"code"})
            if trials.verdict() is None:
                trials.seal(record(ENTRIES[done]))
                say(f"verdict {ENTRIES[done]}")
            trials.close()


def write_old(trials: Trials, number: int) -> Path:
    """Write a trial as versions did whose trials had neither digest nor link."""
    folder = trials.ledger.folder_of(number)
    old = record("old").model_dump_json(indent=2, exclude={"record_version", "previous_sha256"})
    files.publish_folder({PLAN: "{}", RECORD: old + "\n"}, folder)
    return folder / RECORD


def test_trials_are_sealed_and_chained(trials: Trials) -> None:
    play(trials)
    stored = trials.ledger.read_all()
    assert [item.record.plan.entry for item in stored] == list(ENTRIES)
    assert [item.sealed for item in stored] == [True] * 3
    assert [item.record.previous_sha256 for item in stored] == [None, stored[0].sha256, stored[1].sha256]
    assert (stored[0].folder / DIGEST).read_text() == digest_line(stored[0].sha256, RECORD)


@pytest.mark.parametrize("name", SPOILED)
def test_a_sealed_trial_that_was_edited_is_refused_until_it_is_repaired(trials: Trials, name: str) -> None:
    play(trials)
    SPOILED[name](trials.ledger.folder_of(2) / RECORD)
    with pytest.raises(CorruptRecord, match=r"002/record\.json .*; run `warpsmith program resume train`\."):
        trials.records()
    with pytest.raises(CorruptRecord):
        trials.seal(record("fourth"))
    (action,) = trial_store.resume_trials(trials)
    assert action.startswith("trial 2 is corrupt (")
    assert action.endswith("moved to trials/quarantine/002-1")
    assert list(trials.records()) == [1, 3]
    assert trial_store.resume_trials(trials) == []


def test_an_edit_with_a_new_digest_breaks_the_chain(trials: Trials) -> None:
    play(trials)
    path = trials.ledger.folder_of(2) / RECORD
    SPOILED["edited"](path)
    path.with_name(DIGEST).write_text(digest_line(files.file_sha256(path), RECORD))
    with pytest.raises(CorruptRecord, match="is not the record that the next one follows"):
        trials.records()


def test_older_trials_read_and_the_next_one_is_chained_to_them(trials: Trials) -> None:
    old = write_old(trials, 1)
    assert [item.sealed for item in trials.ledger.read_all()] == [False]
    play(trials)
    stored = trials.ledger.read_all()
    assert [item.sealed for item in stored] == [False, True, True]
    assert stored[1].record.previous_sha256 == stored[0].sha256
    old.write_text(old.read_text().replace('"-"', '"edited"'))
    with pytest.raises(CorruptRecord, match=r"001/record.json is not the record"):
        trials.records()


def test_a_verdict_of_an_older_version_is_closed(trials: Trials) -> None:
    trials.publish(plan("old"), {})
    write_model(trials.open / RECORD, record("old"))
    assert trials.verdict() is not None
    trials.close()
    assert [item.sealed for item in trials.ledger.read_all()] == [False]


@pytest.mark.parametrize("broken", [PLAN, RECORD])
def test_a_corrupt_open_trial_moves_to_the_quarantine(trials: Trials, broken: str) -> None:
    trials.publish(plan("first"), {"before-0": b"code"})
    trials.seal(record("first"))
    (trials.open / broken).write_text("{")
    assert len(trial_store.resume_trials(trials)) == 1
    assert trials.verdict() is None
    assert (trials.plan() is None) == (broken == PLAN)
    assert trial_store.resume_trials(trials) == []
    play(trials)


def test_a_corrupt_total_moves_to_the_quarantine(trials: Trials) -> None:
    play(trials)
    (trials.folder / TOTAL).write_text("{")
    with pytest.raises(CorruptRecord, match=r"total\.json does not read: .*`warpsmith program resume train`"):
        trials.total()
    assert len(trial_store.resume_trials(trials)) == 1
    assert trials.total() is None


def test_the_command_repairs(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    play(trials)
    monkeypatch.chdir(trials.project.root)
    SPOILED["edited"](trials.ledger.folder_of(3) / RECORD)
    with pytest.raises(CorruptRecord, match="program resume train"):
        CliRunner().invoke(load_app(), ["program", "next", "train"], catch_exceptions=False)
    for output in ("trial 3 is corrupt", "Nothing to repair."):
        result = CliRunner().invoke(load_app(), ["program", "resume", "train"], catch_exceptions=False)
        assert (result.exit_code, output in result.output) == (0, True)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


def killed(trials: Trials, n: int, after: bool, say: Callable[[str], None]) -> None:
    trigger = Trigger(n, after)
    trigger.arm()
    play(trials, say)
    say(f"calls {trigger.calls}")


def mended(trials: Trials) -> None:
    trial_store.resume_trials(trials)
    play(trials)
    assert trial_store.resume_trials(trials) == []


def written(project: Project) -> set[str]:
    ignored = {
        "program.lock",
        "program" + HOLDER,
    }  # the holder's text outlives a killed process, the lock does not
    paths = {path.relative_to(project.root).as_posix() for path in project.root.rglob("*") if path.is_file()}
    return {path for path in paths if Path(path).name not in ignored}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_every_kill_is_mended(scratch: Path, after: bool) -> None:
    assert LOCK == ".lock"
    root = scratch / f"whole-{after}"
    root.mkdir()
    whole = make(root)
    signing.sign_record("0" * 64)  # makes the user's key, which only a first run writes
    code, lines = in_child(lambda say: killed(whole, 0, False, say))
    assert code == 0, lines
    calls = int(lines[-1].removeprefix("calls "))
    assert calls > 30
    for n in range(1, calls + 1):
        root = scratch / f"{after}-{n}"
        root.mkdir()
        trials = make(root)
        code, said = in_child(lambda say, n=n, trials=trials: killed(trials, n, after, say))  # type: ignore[misc]
        assert code == -signal.SIGKILL, (n, code, said)
        accepted = [line.removeprefix("verdict ") for line in said]
        opened = trials.verdict()
        before = [item.plan.entry for item in trials.records().values()] + ([opened.plan.entry] if opened else [])
        assert before[: len(accepted)] == accepted, n
        code, more = in_child(lambda say, trials=trials: mended(trials))  # type: ignore[misc]
        assert code == 0, (n, "\n".join(more))
        assert [item.plan.entry for item in trials.records().values()] == list(ENTRIES), n
        assert written(trials.project) == written(whole.project), n
        shutil.rmtree(root)
