"""The whole way: baseline, an accepted change, rollbacks, a kill, and nothing of the user's touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import repo_kit
from repo_kit import faster, git

from warpsmith import project as projects
from warpsmith.core.campaign import Plan
from warpsmith.core.evaluation import Verdict
from warpsmith.core.repo import RepoLesson, RepoRecord
from warpsmith.errors import Busy, CorruptRecord, LeftOut, MachineLacks, MissingInput, Misuse, TimedOut
from warpsmith.project import Project
from warpsmith.repo import due_phase, rounds, store
from warpsmith.repo.store import RepoCampaign

LESSON = RepoLesson(learned=True, text="Fewer steps are fewer steps.")
HANG = "import time\ntime.sleep(300)\n"


def quiet(_: str) -> None:
    pass


def plan(**changes: object) -> Plan:
    base = {"hypothesis": "Fewer steps cost less time.", "category": "compute", "predicted_gain": 0.3,
            "metric": "time_us", "expected_change": 0}  # fmt: skip
    return Plan.model_validate(base | changes)


def kernel(campaign: RepoCampaign) -> Path:
    return campaign.state / "edit" / repo_kit.KERNEL


def play(campaign: RepoCampaign, source: str) -> RepoRecord:
    """One whole round with this kernel."""
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(source)
    rounds.judge_round(campaign, None, quiet)
    return rounds.close_repo_round(campaign, LESSON)


def configured(root: Path, *changes: tuple[str, str]) -> Project:
    """A repository whose contract differs from the kit's."""
    text = repo_kit.CONTRACT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return projects.find_project(repo_kit.make(root.resolve(), text))


def users(root: Path) -> dict[str, str]:
    """What is the user's: checkout, index, HEAD, stash, and every branch but the campaigns'."""
    return {
        "status": git(root, "status", "--porcelain", "--untracked-files=no"),
        "index": (root / ".git" / "index").read_bytes().hex(),
        "head": (root / ".git" / "HEAD").read_text(),
        "refs": git(root, "for-each-ref", "refs/heads/main", "refs/stash", "refs/tags"),
        "kernel": (root / repo_kit.KERNEL).read_text(),
    }


def test_the_whole_way(project: Project):
    before = users(project.root)
    campaign = rounds.start_repo_campaign(project, "one", quiet)
    first = rounds.read_repo_state(campaign).rounds[0].record
    assert first.baseline is not None
    assert len(first.judgement.rows) == 6
    assert len(first.baseline.representative) == 3
    assert due_phase.find_due_repo_phase(rounds.read_repo_state(campaign)).step == "plan"

    accepted = play(campaign, faster(3))
    assert accepted.verdict is Verdict.ACCEPT
    assert accepted.judgement.level == "quick"
    assert accepted.judgement.aggregate is not None
    assert accepted.judgement.aggregate.speedup == pytest.approx(4 / 3)
    tip = git(project.root, "rev-parse", "optimize/one")
    assert tip == accepted.commit
    assert git(project.root, "diff", "--name-only", "main", tip) == repo_kit.KERNEL
    message = git(project.root, "log", "-1", "--format=%B", tip)
    assert re.search(r"^Hypothesis: Fewer steps cost less time\.$", message, re.MULTILINE)
    assert re.search(r"^Result: ACCEPT: \+33\.3%", message, re.MULTILINE)
    assert re.search(r"n=10 kind=a \[forward \+ backward\]: 120 -> 90, 1\.333x", message)
    assert kernel(campaign).read_text() == faster(3)

    slower = play(campaign, faster(5))
    assert (slower.verdict, slower.commit) == (Verdict.ROLLBACK, None)
    assert git(project.root, "rev-parse", "optimize/one") == tip
    assert kernel(campaign).read_text() == faster(3)
    change = campaign.rounds / "003" / "change.diff"
    git(campaign.state / "edit", "apply", "--check", str(change))
    assert "+STEPS = 5" in change.read_text()

    assert not rounds.read_repo_state(campaign).validated
    final = rounds.validate_best(campaign, quiet)
    assert "over the campaign's start" in final.decision.reason
    assert (final.level, final.base, final.commit, len(final.rows)) == ("full", first.commit, tip, 6)
    assert rounds.read_repo_state(campaign).validated
    assert users(project.root) == before


def test_every_third_acceptance_is_validated_in_full(campaign: RepoCampaign):
    assert play(campaign, faster(3)).judgement.level == "quick"
    assert play(campaign, faster(2)).judgement.level == "quick"
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(1))
    assert "--full" in due_phase.find_due_repo_phase(rounds.read_repo_state(campaign)).command
    with pytest.raises(Misuse, match="validated in full, as every third"):
        rounds.judge_round(campaign, "quick", quiet)
    judged = rounds.judge_round(campaign, None, quiet)
    assert (judged.level, len(judged.rows)) == ("full", 6)


def wrong(source: str) -> str:
    return source.replace("range(n + 1)", "range(n)")


REJECTED = {
    "wrong": (wrong(faster(1)), "`test` .* fails in the worktree candidate: exit code 1: AssertionError: it is"),
    "wrong where only the benchmark looks": (
        faster(1).replace("return result\n", "return result + (n > 10)\n", 1),
        "row n=1000 kind=a: `check` is `FAIL`",
    ),
    "one row slower": (faster(3).replace("STEPS * n", "STEPS * n if n < 999 else 8 * n"), "n=1000 kind=a -50.0%"),
    "no faster": (faster(4) + "# changed\n", "no gain beyond the noise floor"),
    "broken": ("def total(:\n", "SyntaxError"),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_rolled_back(campaign: RepoCampaign, name: str):
    source, words = REJECTED[name]
    record = play(campaign, source)
    assert record.verdict is Verdict.ROLLBACK
    assert re.search(words, record.judgement.decision.reason), record.judgement.decision.reason
    assert str(campaign.project.root) not in record.model_dump_json()


def test_a_kernel_that_never_ends_is_rolled_back(tmp_path: Path):
    campaign = rounds.start_repo_campaign(configured(tmp_path / "repo", ("test = 20", "test = 2")), "one", quiet)
    record = play(campaign, HANG)
    assert record.verdict is Verdict.ROLLBACK
    assert "stopped after its limit of 2 s" in record.judgement.decision.reason


def test_a_benchmark_that_fails_for_both_is_invalid(tmp_path: Path):
    flag = tmp_path / "broken"
    project = configured(tmp_path / "repo", ('bench.py"', f'bench.py && test ! -e {flag}"'))
    campaign = rounds.start_repo_campaign(project, "one", quiet)
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(2))
    flag.touch()
    judged = rounds.judge_round(campaign, None, quiet)
    assert judged.decision.verdict is Verdict.INVALID
    assert "1 evaluations were INVALID" in due_phase.find_due_repo_phase(rounds.read_repo_state(campaign)).notes[0]
    flag.unlink()
    assert rounds.judge_round(campaign, None, quiet).decision.verdict is Verdict.ACCEPT


def test_runs_are_interleaved(campaign: RepoCampaign):
    sides = [run.side for run in play(campaign, faster(3)).judgement.runs if run.what == "benchmark"]
    assert sides == ["base", "candidate", "candidate", "base"]


def test_two_rollbacks_ask_for_a_review(campaign: RepoCampaign):
    play(campaign, faster(5))
    play(campaign, faster(6))
    due = due_phase.find_due_repo_phase(rounds.read_repo_state(campaign))
    assert "2 rollbacks in a row" in " ".join(due.notes)
    assert due.command.count('--direction "NAME|CATEGORY|EXPECTED"') == 3
    with pytest.raises(Misuse, match="at least 3 different directions"):
        rounds.plan_round(campaign, plan())
    review = [
        {"name": f"way {i}", "category": c, "expected": "more"}
        for i, c in enumerate(("compute", "memory", "fusion"))
    ]
    rounds.plan_round(campaign, plan(review=review))


def test_killed_in_judge_and_taken_up(campaign: RepoCampaign):
    before = users(campaign.project.root)
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(2))
    ours = subprocess.Popen((sys.executable, "-m", "warpsmith", "repo", "judge"), cwd=campaign.project.root)
    log = campaign.state / "logs" / "test-candidate.out"
    log.unlink(missing_ok=True)
    deadline = time.monotonic() + 30
    while not log.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(ours.pid, signal.SIGKILL)
    ours.wait()
    (campaign.state / "candidate" / "left.txt").write_text("by a killed command")
    (campaign.state / "candidate" / "README.md").write_text("by a killed command")
    lock = git(campaign.state / "candidate", "rev-parse", "--absolute-git-dir")
    Path(lock, "index.lock").touch()
    assert campaign.verdict() is None
    assert rounds.judge_round(campaign, None, quiet).decision.verdict is Verdict.ACCEPT
    assert not (campaign.state / "candidate" / "left.txt").exists()
    assert rounds.close_repo_round(campaign, LESSON).commit == git(
        campaign.project.root, "rev-parse", "optimize/one"
    )
    assert users(campaign.project.root) == before


def test_killed_between_record_and_branch(campaign: RepoCampaign, monkeypatch: pytest.MonkeyPatch):
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(2))
    rounds.judge_round(campaign, None, quiet)
    with monkeypatch.context() as patch:
        patch.setattr(rounds, "_settle", killed_after(2, rounds._settle))
        with pytest.raises(KeyboardInterrupt):
            rounds.close_repo_round(campaign, LESSON)
    assert git(campaign.project.root, "rev-parse", "optimize/one") == campaign.manifest.start
    assert due_phase.find_due_repo_phase(rounds.read_repo_state(campaign)).step == "plan"
    rounds.plan_round(campaign, plan())
    record = rounds.read_repo_state(campaign).rounds[-1].record
    assert git(campaign.project.root, "rev-parse", "optimize/one") == record.commit
    assert rounds.read_repo_state(campaign).number == 3


def killed_after(calls: int, real):
    left = [calls]

    def wrapped(campaign):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return real(campaign)

    return wrapped


def test_a_change_after_the_judgement_is_not_lost(campaign: RepoCampaign):
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(3))
    rounds.judge_round(campaign, None, quiet)
    kernel(campaign).write_text(faster(2))
    record = rounds.close_repo_round(campaign, LESSON)
    assert git(campaign.project.root, "show", f"{record.commit}:{repo_kit.KERNEL}") == faster(3).strip()
    assert kernel(campaign).read_text() == faster(2)


def test_texts_state_figures_of_records_only(campaign: RepoCampaign):
    with pytest.raises(Misuse, match="The hypothesis states `9x`"):
        rounds.plan_round(campaign, plan().model_copy(update={"hypothesis": "It makes it 9x faster."}))
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(3))
    rounds.judge_round(campaign, None, quiet)
    invented = LESSON.model_copy(update={"text": "It took 9.7 us less."})
    with pytest.raises(Misuse, match=r"The lesson states `9\.7 us`"):
        rounds.close_repo_round(campaign, invented)
    assert rounds.close_repo_round(campaign, LESSON).commit


def test_a_branch_that_something_else_moved_is_left(campaign: RepoCampaign):
    rounds.plan_round(campaign, plan())
    repo_kit.commit_file(campaign.project.root, "README.md", "more\n")
    git(campaign.project.root, "branch", "-f", "optimize/one", "main")
    with pytest.raises(Misuse, match="moved it; put it back with `git update-ref"):
        rounds.judge_round(campaign, None, quiet)


def test_a_branch_that_is_checked_out_is_not_moved(campaign: RepoCampaign):
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(3))
    rounds.judge_round(campaign, None, quiet)
    git(campaign.project.root, "checkout", "-q", "optimize/one")
    with pytest.raises(Misuse, match="checked out in"):
        rounds.close_repo_round(campaign, LESSON)
    git(campaign.project.root, "checkout", "-q", "main")
    assert rounds.close_repo_round(campaign, LESSON).commit


def test_what_judge_refuses(campaign: RepoCampaign):
    with pytest.raises(Misuse, match="run `warpsmith repo plan`"):
        rounds.judge_round(campaign, None, quiet)
    rounds.plan_round(campaign, plan())
    with pytest.raises(Misuse, match="is the unchanged best one"):
        rounds.judge_round(campaign, None, quiet)
    readme = campaign.state / "edit" / "README.md"
    readme.write_text("other\n")
    with pytest.raises(Misuse, match=r"changes other than the kernel \(README\.md\)"):
        rounds.judge_round(campaign, None, quiet)
    git(campaign.state / "edit", "checkout", "--", "README.md")
    kernel(campaign).write_text(faster(5))
    rounds.judge_round(campaign, None, quiet)
    with pytest.raises(Misuse, match="run `warpsmith repo close`"):
        rounds.judge_round(campaign, None, quiet)
    with pytest.raises(Misuse, match="was judged; close it first"):
        rounds.plan_round(campaign, plan())
    rounds.close_repo_round(campaign, LESSON)
    rounds.plan_round(campaign, plan())
    kernel(campaign).write_text(faster(5))
    with pytest.raises(Misuse, match="rolled back in round 2"):
        rounds.judge_round(campaign, None, quiet)
    with pytest.raises(MissingInput, match="no accepted round"):
        rounds.validate_best(campaign, quiet)
    (campaign.project.root / "warpsmith.toml").write_text(
        f"[project]\n{repo_kit.CONTRACT}".replace("repeats = 2", "repeats = 3")
    )
    with pytest.raises(Misuse, match="settings have changed since one began"):
        rounds.judge_round(campaign, None, quiet)


def test_a_record_that_was_edited_is_named(campaign: RepoCampaign):
    record = campaign.rounds / "001" / "record.json"
    record.write_text(record.read_text().replace("full", "quick"))
    with pytest.raises(CorruptRecord, match=r"record\.json is torn or was edited"):
        rounds.plan_round(campaign, plan())


def test_what_a_killed_process_had_started_is_waited_for(campaign: RepoCampaign, dying):
    dying(campaign.state / ".lock")
    rounds.plan_round(campaign, plan())


def test_one_writer_at_a_time(campaign: RepoCampaign):
    held = rf"one is held by process {os.getpid()} on .* \(`warpsmith repo judge`"
    with store.hold_repo_campaign(campaign.project, "one", "judge"), pytest.raises(Busy, match=held):
        rounds.plan_round(campaign, plan())


BASELINES: dict[str, tuple[tuple[tuple[str, str], ...], type[Exception], str]] = {
    "a red test": ((("tests/test_kernel.py", "-c 'assert 0'"),), Misuse, "`test` .* fails in the worktree base"),
    "a benchmark that fails": ((("bench.py", "none.py"),), Misuse, "`benchmark` .* No such file"),
    "a missing column": (((", backward =", ", time ="),), Misuse, "lacks the column `time`; its header has"),
    "a column that is no key": ((('"n", "kind"', '"kind"'),), Misuse, "two rows `kind=a`"),
    "a test that never ends": (
        (("-S tests/test_kernel.py", "-S tests/test_kernel.py && sleep 300"), ("test = 20", "test = 2")),
        TimedOut, "stopped after its limit of 2 s",
    ),
    "an installed kernel": (
        (("-S tests/test_kernel.py", "-c '1'"),), Misuse, r"`test` passes with pkg/kernel\.py emptied",
    ),
    "a quick benchmark that is not": ((("BENCH_ROWS", "OTHER"),), Misuse, "with OTHER set to 3 rows prints 6"),
    "a file that is not written": (
        (("keys =", 'csv = "out.csv"\nkeys ='),), Misuse, r"did not write out\.csv",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_that_does_not_hold(tmp_path: Path, name: str):
    changes, error, words = BASELINES[name]
    project = configured(tmp_path / "repo", *changes)
    before = users(project.root)
    with pytest.raises(error, match=words) as raised:
        rounds.check_settings(project, quiet)
    assert "\n" not in str(raised.value)
    assert users(project.root) == before
    assert git(project.root, "worktree", "list").count("\n") == 0
    assert not project.devlog.exists()


def test_the_log_of_a_failed_rebuild_outlives_the_check(tmp_path: Path):
    code = 'echo building; printf "k.cpp:3:5: error: expected a semicolon\\nmore\\n" >&2; exit 1\n'
    root = repo_kit.make(
        tmp_path.resolve() / "repo", f'{repo_kit.CONTRACT}rebuild = "sh build.sh"\n', {"build.sh": code}
    )
    project = projects.find_project(root)
    with pytest.raises(Misuse, match=r"exit code 1: k\.cpp:3:5: error: expected") as raised:
        rounds.check_settings(project, quiet)
    log = re.search(r"(\S+\.log) has its output", str(raised.value))
    assert log is not None
    text = (project.root / log[1]).read_text()
    assert "building" in text
    assert "k.cpp:3:5: error" in text
    assert git(root, "worktree", "list").count("\n") == 0


def test_a_start_that_fails_leaves_no_campaign(tmp_path: Path):
    project = configured(tmp_path / "repo", ("bench.py", "none.py"))
    with pytest.raises(Misuse):
        rounds.start_repo_campaign(project, "one", quiet)
    assert git(project.root, "branch", "--format=%(refname:short)") == "main"
    with pytest.raises(Misuse, match="No repo campaign `one`; start one"):
        store.find_repo_campaign(project, "one")


def test_a_killed_start_is_started_again(project: Project, monkeypatch: pytest.MonkeyPatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rounds, "write_model", killed)
        with pytest.raises(KeyboardInterrupt):
            rounds.start_repo_campaign(project, "one", quiet)
    assert git(project.root, "rev-parse", "optimize/one") == git(project.root, "rev-parse", "main")
    with pytest.raises(Misuse, match="No repo campaign"):
        store.find_repo_campaign(project, "one")
    assert len(rounds.read_repo_state(rounds.start_repo_campaign(project, "one", quiet)).rounds) == 1


def test_a_dirty_tree(project: Project):
    (project.root / repo_kit.KERNEL).write_text(faster(1))
    with pytest.raises(Misuse, match=r"not committed \(pkg/kernel\.py\); commit or stash"):
        rounds.start_repo_campaign(project, "one", quiet)
    assert (project.root / repo_kit.KERNEL).read_text() == faster(1)
    assert not project.devlog.exists()


def test_no_repository_and_no_commit(project: Project):
    shutil.rmtree(project.root / ".git")
    with pytest.raises(Misuse, match="is no git checkout; `git init` makes it one"):
        rounds.start_repo_campaign(project, "one", quiet)
    git(project.root, "init", "-q")
    with pytest.raises(Misuse, match="has no commit yet"):
        rounds.start_repo_campaign(project, "one", quiet)


def test_a_kernel_that_is_not_committed(project: Project):
    git(project.root, "rm", "-q", "--cached", repo_kit.KERNEL)
    git(project.root, "commit", "-q", "-m", "without")
    with pytest.raises(Misuse, match=r"pkg/kernel\.py is not in commit"):
        rounds.check_settings(project, quiet)


def test_a_devlog_that_cannot_be_written(tmp_path: Path):
    root = repo_kit.make(tmp_path.resolve() / "repo")
    (root / "warpsmith.toml").write_text(f'devlog = "README.md"\n[project]\n{repo_kit.CONTRACT}')
    with pytest.raises(MachineLacks, match=r"README\.md.*; nothing was lost: move what lies"):
        rounds.start_repo_campaign(projects.find_project(root), "one", quiet)
    assert (root / "README.md").read_text() == repo_kit.FILES["README.md"]


def test_a_manifest_that_does_not_read_stops_no_other_campaign(campaign: RepoCampaign):
    other = campaign.folder.with_name("other")
    other.mkdir()
    (other / store.MANIFEST).write_text("{")
    with pytest.warns(LeftOut, match=r"other/campaign\.json does not read"):
        assert store.find_repo_campaign(campaign.project, "one").name == "one"


def test_names_that_are_taken_or_none(project: Project):
    rounds.start_repo_campaign(project, "one", quiet)
    with pytest.raises(Misuse, match="exists already; choose another name"):
        rounds.start_repo_campaign(project, "one", quiet)
    with pytest.raises(Misuse, match="is no name for a campaign"):
        rounds.start_repo_campaign(project, "../one", quiet)
    repo_kit.commit_file(project.root, "README.md", "more\n")
    git(project.root, "branch", "optimize/two")
    repo_kit.commit_file(project.root, "README.md", "and more\n")
    with pytest.raises(Misuse, match="optimize/two exists already, at another commit"):
        rounds.start_repo_campaign(project, "two", quiet)


def test_a_project_below_the_top_with_a_rebuild(tmp_path: Path):
    """What is built from the kernel is what runs: nothing changes without the rebuild."""
    top = tmp_path.resolve() / "repo"
    text = repo_kit.CONTRACT.replace('quick = { environment = "BENCH_ROWS" }\n', 'rebuild = "sh build.sh"\n')
    files = {
        "build.sh": "set -e\necho built >> builds.log\nrm -rf built\nmkdir built\ncp -r pkg built/pkg\n",
        ".gitignore": "built/\nbuilds.log\n",
    }
    text = text.replace("PYTHONPATH=. ", "PYTHONPATH=built ").replace(
        'benchmark = "', 'benchmark = "PYTHONPATH=built '
    )
    text = text.replace("-S bench.py", "-S -P bench.py")
    repo_kit.make(top, files={"sub/README.md": "below\n"})
    (top / "pyproject.toml").unlink()
    for name in repo_kit.FILES:
        (top / name).unlink()
    root = top / "sub"
    pyproject = f"[tool.warpsmith.project]\n{text}"
    for name, content in {**repo_kit.FILES, **files, "pyproject.toml": pyproject}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    repo_kit.commit(top)
    campaign = rounds.start_repo_campaign(projects.find_project(root), "one", quiet)
    assert rounds.read_repo_state(campaign).full_due
    rounds.plan_round(campaign, plan())
    (campaign.state / "edit" / "sub" / repo_kit.KERNEL).write_text(faster(2))
    judged = rounds.judge_round(campaign, None, quiet)
    assert (judged.decision.verdict, judged.level) == (Verdict.ACCEPT, "full"), judged.decision.reason
    assert [run.side for run in judged.runs if run.what == "rebuild"] == ["candidate"]
    assert rounds.close_repo_round(campaign, LESSON).commit


def test_a_copied_repository_does_not_work_in_the_first_one_s_worktrees(campaign: RepoCampaign, tmp_path: Path):
    copy = tmp_path.resolve() / "copy"
    shutil.copytree(campaign.project.root, copy, symlinks=True)
    other = store.find_repo_campaign(projects.find_project(copy), "one")
    rounds.plan_round(campaign, plan())
    with pytest.raises(Misuse, match="exists and is not a worktree of"):
        rounds.plan_round(other, plan())
