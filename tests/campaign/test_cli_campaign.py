"""The loop's commands, as agents call them."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from campaign_kit import ENTRY, OP, Script, change_manifest, evaluation, git, make_repository
from typer.testing import CliRunner, Result

from warpsmith.campaign import define, lab_requests
from warpsmith.campaign.history import solutions, store
from warpsmith.campaign.rounds import due_phase, state
from warpsmith.cli.campaign import rounds as group
from warpsmith.cli.campaign import version
from warpsmith.cli.lab import judge, race
from warpsmith.cli.profiling import profile
from warpsmith.errors import BadEntry, MachineLacks, MissingInput, Misuse, WarpsmithError
from warpsmith.lab.operator.peers import Peer
from warpsmith.project import Project

PAGE = """---
id: cpu
name: Host CPU
kind: cpu
vendor: any
architecture: any
isa: any
figures:
  memory_bandwidth: {value: 80, unit: GB/s, source: sheet}
  cores: {value: UNKNOWN, unit: cores, source: null}
sources:
  sheet: {title: A data sheet, url: "https://example.org/sheet"}
---

# Host CPU
"""


def call(*arguments: str) -> Result:
    app = typer.Typer()
    for commands in (group, judge, profile, race):
        commands.register(app)
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, WarpsmithError):
        raise result.exception
    return result


def done(*arguments: str) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.fixture
def started(project: Project, monkeypatch: pytest.MonkeyPatch) -> store.Campaign:
    (project.knowledge / "hardware").mkdir(parents=True)
    (project.knowledge / "hardware" / "cpu.md").write_text(PAGE)
    (project.root / "warpsmith.toml").write_text("")
    make_repository(project.root)
    # The definition and the machine have tests of their own.
    definition = SimpleNamespace(tensor_inputs={})
    file = SimpleNamespace(definition=definition, peers={"mine": print})
    monkeypatch.setattr(define.definition_file, "load_definition", lambda path: file)
    monkeypatch.setattr(define, "require_proven", lambda file, tell: None)
    monkeypatch.setattr(define.measurement, "ensure_measurement", lambda *arguments: None)
    monkeypatch.chdir(project.root)
    options = (
        "--target",
        "cpu",
        "--language",
        "toy",
        "--git",
        "branch",
        "--max-iterations",
        "2",
        "--peer",
        "mine",
    )
    name = done("start", OP, *options).strip()
    return store.find_campaign(project, name)


def test_a_campaign_by_its_commands(started: store.Campaign) -> None:
    assert started.manifest.figures["memory_bandwidth"].startswith("80 GB/s <- ")
    assert set(started.manifest.figures) == {"memory_bandwidth"}
    assert started.manifest.peers == ("mine",)
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.until(started, "outcome")
    assert done("evaluate") == "ACCEPT: no gain, for there was no version to gain over\nbest: toy/v1; stop: no\n"
    tip = ("--tip-context", "c", "--tip-signal", "s", "--tip-takeaway", "t", "--tip-applicability", "a")
    done("learn", "--nothing", "It was known already.", *tip)
    assert (started.rounds / "001" / "summary.md").exists(), "pages are rendered"
    script.until(started, "selection")
    done("select", "--language", "toy", "--because", "It is simple.")
    text = ("--hypothesis", "Wider loads make it faster.", "--category", "memory", "--predict", "0.25")
    done("plan", *text, "--metric", "dram_pct", "--change", "15", "--direction", "one|memory|some")
    script.until(started, "outcome")
    assert json.loads(done("evaluate", "--json"))["predicted_gain"] == 0.25
    Path("entry.md").write_text(ENTRY)
    done("learn", "--add", "entry.md", "--reason", "It was not written down.")
    record = started.records()[1]
    assert (record.lesson.action, record.lesson.entry) == ("add", "wider-loads")
    assert record.plan.review[0].name == "one"
    assert "003" not in done("next")
    assert json.loads(done("next", "--json"))["phase"] == "REPORT"
    assert "toy/v2 memory ACCEPT +20.0%" in done("status")
    assert "of the ceiling, measured 2026-" in done("status")
    assert json.loads(done("status", "--json"))["best"] == "toy/v2"
    assert done("resume") == "Nothing to repair.\n"
    assert "Record-Sha256" in git(Path.cwd(), "log", "-1", "--format=%B", f"optimize/{started.name}")


def test_a_new_campaign_has_a_minimum_gain_unless_its_rounds_are_counted(started: store.Campaign) -> None:
    assert started.manifest.minimum_gain is None
    new = ("start", OP, "--target", "cpu", "--language", "toy", "--again")
    cases = {(): (0.02, "round"), ("--minimum-gain", "0"): (0, "round")}
    cases[("--minimum-gain", "0.005", "--minimum-gain-per", "minute")] = (0.005, "minute")
    for options, expected in cases.items():
        manifest = store.find_campaign(started.project, done(*new, *options).strip()).manifest
        assert (manifest.minimum_gain, manifest.minimum_gain_per) == expected
    count = len(store.list_campaigns(started.project))
    with pytest.raises(Misuse, match="a minute has no default; add --minimum-gain"):
        call(*new, "--minimum-gain-per", "minute")
    assert call(*new, "--minimum-gain", "1").exit_code == 2
    assert len(store.list_campaigns(started.project)) == count


def test_next_shows_the_expected_gain(started: store.Campaign) -> None:
    Script({"v1": "ACCEPT", "v2": "ACCEPT"}).until(started, "selection")
    assert "note     Another round: expected gain 7.2%" in done("next")
    assert any("expected gain" in note for note in json.loads(done("next", "--json"))["notes"])


def test_a_step_is_done_for_the_version_that_is_named_or_not_at_all(started: store.Campaign) -> None:
    """A verdict stands: one that was meant for another version could not be taken back."""
    script = Script({"v1": "ACCEPT"})
    script.round(started)
    folder = started.project.kernels / OP / "toy"
    (folder / "v2.toy").write_text("multiply by 2\n")
    named = ("--campaign", started.name)
    with pytest.raises(Misuse, match=r"due for toy/v1, not for toy/v2; .*`--target cpu`"):
        call("profile", str(folder / "v2.toy"), *named)
    script.until(started, "verdict")
    with pytest.raises(Misuse, match="this step is due for toy/v2, not for toy/v1"):
        call("judge", str(folder / "v1.toy"), *named)
    assert not (started.open / "verdict.json").exists()


def test_a_step_without_a_version_is_done_for_the_due_one(
    started: store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Misuse, match=r"first write kernels/scale/toy/v1\.toy"):
        call("judge")
    script = Script({"v1": "ACCEPT"})
    script.until(started, "verdict")
    judged: list[str] = []

    def judge_solution(project: Project, manifest: Any, candidate: solutions.Solution, *_: object) -> Any:
        judged.append(candidate.name)
        return evaluation(candidate.path, "ACCEPT", None)

    monkeypatch.setattr(lab_requests, "judge_solution", judge_solution)
    assert call("judge", "--check", "--json").exit_code == 0
    assert judged == ["toy/v1"]
    with pytest.raises(Misuse, match="--target is for a version outside of a campaign"):
        call("judge", "--target", "cpu")
    with pytest.raises(Misuse, match="at VERIFY of round 1: first run `warpsmith judge"):
        call("profile")


def test_paths_of_versions_begin_here_or_at_the_root(
    started: store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = started.project.kernels / OP / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    (started.project.root / "below").mkdir()
    monkeypatch.chdir(started.project.root / "below")
    (folder / "v2.toy").touch()
    printed = Path("kernels") / OP / "toy"
    assert version.find_version(started.project, printed / "v2.toy")[1].name == "toy/v2"
    assert version.find_version(started.project, Path("..") / printed / "v2.toy")[1].name == "toy/v2"
    (folder / "v1_k2f9.toy").touch()
    (folder / "v1_draft.toy").touch()
    assert version.find_version(started.project, printed / "v1.toy")[1].name == "toy/v1_k2f9"
    (folder / "v1_m0q1.toy").touch()
    with pytest.raises(MissingInput, match=r"name one of v1_k2f9\.toy, v1_m0q1\.toy in full"):
        version.find_version(started.project, printed / "v1.toy")
    with pytest.raises(MissingInput, match="does not exist"):
        version.find_version(started.project, printed / "v3.toy")
    monkeypatch.chdir(folder)
    (folder / "v1.toy").touch()
    assert version.find_version(started.project, Path("v1.toy"))[1].name == "toy/v1"


def test_a_version_without_the_end_that_is_due_is_refused_with_the_command(started: store.Campaign) -> None:
    change_manifest(started.folder, "created:", "version_suffix: k2f9\ncreated:")
    campaign = store.find_campaign(started.project)
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "design")
    folder = started.project.kernels / OP / "toy"
    (folder / "v2.toy").write_text("multiply by 2\n")
    for named in ((), ("--campaign", campaign.name)):
        with pytest.raises(Misuse, match=r"run `mv \S+/v2.toy \S+/v2_k2f9.toy` and judge that"):
            call("judge", str(folder / "v2.toy"), *named)
    (folder / "v2.toy").rename(folder / "v2_k2f9.toy")
    assert due_phase.find_due_phase(state.read_state(campaign)).step == "verdict"


def test_a_version_of_several_campaigns_counts_in_none_and_that_is_said(
    started: store.Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    other = store.find_campaign(
        started.project, done("start", OP, "--again", "--target", "cpu", "--language", "toy").strip()
    )
    Script({"v1": "ACCEPT"}).until(started, "verdict")
    found = solutions.find_solution(started.project, OP, "toy/v1")
    assert version.find_campaign_of(started.project, OP, found, None) is None
    told = capsys.readouterr().err
    assert f"toy/v1 belongs to several campaigns ({started.name}, {other.name}) and counts in none" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("judge", "{v1}", "--against", "{v1}", "--campaign", "x"), "omit --against, or --campaign"),
        (("judge", "{v1}", "--target", "cpu", "--campaign", "x"), "omit --target, or --campaign"),
        (("judge", "{v1}", "--check", "--against", "{v1}"), "omit --against or --check"),
        (("profile", "{v1}", "--target", "cpu", "--campaign", "x"), "omit --target, or --campaign"),
        (("race", "--final", "--peer", "mine"), "name a version"),
        (("race", "{v1}", "--campaign", "x"), "give --final, or omit --campaign"),
        (("race", "{v1}", "--workload", "x"), "on every workload"),
        (("race", "{v1}", "--final"), "either an operator or a version, or --final"),
        (("race",), "either an operator or a version, or --final"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    started: store.Campaign, arguments: tuple[str, ...], told: str
) -> None:
    path = started.project.kernels / OP / "toy" / "v1.toy"
    with pytest.raises(Misuse, match=told):
        call(*(argument.format(v1=path) for argument in arguments))


@pytest.mark.parametrize("share", ["95", "1.01", "0"])
def test_a_target_that_is_no_share_is_refused(started: store.Campaign, share: str) -> None:
    """95 for 95 % would be a campaign that never ends."""
    before = sorted(started.project.root.rglob("*"))
    refused = call("start", OP, "--again", "--target", "cpu", "--language", "toy", "--performance-target", share)
    assert (refused.exit_code, "performance-target" in refused.stderr) == (2, True)
    assert sorted(started.project.root.rglob("*")) == before


def test_a_path_is_no_operators_name(started: store.Campaign) -> None:
    with pytest.raises(Misuse, match=f"`kernels/{OP}` is not a valid operator name"):
        call("start", f"kernels/{OP}", "--target", "cpu", "--language", "toy")


def test_a_campaign_by_energy(started: store.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    assert started.manifest.objective == "time"
    options = ("start", OP, "--again", "--target", "cpu", "--language", "toy", "--objective")
    before = sorted(started.project.root.rglob("*"))
    with pytest.raises(MachineLacks, match="no energy counter to read: no GPU") as caught:
        call(*options, "energy")
    assert caught.value.exit_code == 4
    assert sorted(started.project.root.rglob("*")) == before
    refused = call(*options, "power")
    assert (refused.exit_code, "objective" in refused.stderr) == (2, True)
    monkeypatch.setattr(define.energy, "missing_energy_counter", lambda target: None)
    made = store.find_campaign(started.project, done(*options, "energy").strip())
    assert made.manifest.objective == "energy"
    assert "joules a call" in made.manifest.primary_metric
    shown = done("status", "--campaign", made.name)
    assert shown.startswith(f"{made.name}: {OP} on cpu, by energy, due: ")
    assert done("status", "--campaign", started.name).startswith(f"{started.name}: {OP} on cpu, due: ")


def test_next_prints_command_and_files(started: store.Campaign) -> None:
    lines = done("next", "--campaign", started.name).splitlines()
    assert lines[0] == f"{started.name}: round 1, DESIGN (warpsmith:toy-specialist)"
    assert "  produces kernels/scale/toy/v1.toy" in lines


def test_plan_from_a_file(started: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(started)
    script.until(started, "plan")
    Path("plan.yaml").write_text(
        "hypothesis: Wider loads make it faster.\ncategory: memory\npredicted_gain: 0.1\n"
        "metric: dram_pct\nexpected_change: 5\n"
    )
    with pytest.raises(Misuse, match="not both; omit category"):
        call("plan", "--file", "plan.yaml", "--category", "memory")
    done("plan", "--file", "plan.yaml")
    assert due_phase.find_due_phase(state.read_state(started)).step == "design"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "--category", "memory"), "The plan does not validate: the key `hypothesis` is missing"),
        (("plan", "--file", "none.yaml"), "none.yaml cannot be read"),
        (("plan", "--direction", "one|memory"), "has 2 parts; write it as 'name|category|expected'"),
        (("select", "--language", "toy", "--because", "no"), "The selection does not validate: `because`"),
        (("learn",), "Give one of --nothing, --add, --refine, --refute, not none"),
        (("learn", "--nothing", "x", "--add", "f"), "not --nothing and --add"),
        (("learn", "--nothing", "It was known.", "--tip-signal", "s"), "--tip-context and --tip-takeaway"),
        (("next", "--campaign", "other"), "`other` is no campaign"),
        (("evaluate",), "at DESIGN of round 1"),
        (("restart",), "a restart needs two"),
    ],
)
def test_misuse_is_one_sentence(started: store.Campaign, arguments: tuple[str, ...], message: str) -> None:
    before = {path: path.read_bytes() for path in started.folder.rglob("*") if path.is_file()}
    with pytest.raises(Misuse) as caught:
        call(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    after = {path: path.read_bytes() for path in started.folder.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path.name != ".lock"} == before


def test_lesson_that_the_gate_refuses_leaves_learn_due(started: store.Campaign) -> None:
    Script({"v1": "ACCEPT"}).until(started, "lesson")
    Path("entry.md").write_text(ENTRY.replace("- dram_pct: up", ""))
    with pytest.raises(BadEntry):
        call("learn", "--add", "entry.md")
    with pytest.raises(Misuse, match="no knowledge entry `nothing-such`"):
        call("learn", "--refute", "nothing-such", "--because", "It was slower.")
    with pytest.raises(Misuse, match="needs the note"):
        call("learn", "--refine", "nothing-such")
    assert due_phase.find_due_phase(state.read_state(started)).step == "lesson"
    assert [path.name for path in started.rounds.iterdir()] == ["open"]


def test_invented_figure_in_a_lesson_is_refused(started: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(started)
    script.until(started, "lesson")
    with pytest.raises(BadEntry, match=r"`9\.7x`") as caught:
        call("learn", "--nothing", "The stores made it 9.7x faster on an H200, accepted.")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert due_phase.find_due_phase(state.read_state(started)).step == "lesson"


def test_unknown_entry_of_a_plan_is_refused(started: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(started)
    script.until(started, "plan")
    text = ("--hypothesis", "Wider loads make it faster.", "--category", "memory", "--predict", "0.25")
    with pytest.raises(Misuse, match="no knowledge entry `nothing-such`"):
        call("plan", *text, "--metric", "dram_pct", "--change", "15", "--entry", "nothing-such")


def test_restart_and_undo(started: store.Campaign) -> None:
    change_manifest(started.folder, "max_iterations: 2", "max_iterations: 9")
    campaign = store.find_campaign(started.project, started.name)
    script = Script({"v1": "ACCEPT"} | {f"v{n}": "ROLLBACK" for n in range(2, 5)})
    for _ in range(4):
        script.round(campaign)
    assert "Masked rounds" in done("restart", "--seed", "1")
    assert "(masked)" in done("status")
    assert done("restart", "--undo") == "Unmasked every round.\n"


def test_strike(started: store.Campaign) -> None:
    change_manifest(started.folder, "max_iterations: 2", "max_iterations: 9")
    campaign = store.find_campaign(started.project, started.name)
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ACCEPT"})
    for _ in range(3):
        script.round(campaign)
    reason = "It keeps results by address."
    assert done("strike", "3", "--reason", reason) == "Struck round 3, toy/v3; best: toy/v2.\n"
    assert f"ACCEPT +20.0%; struck: {reason}" in done("status")
    assert f"was struck; do not build on it: {reason}" in " ".join(done("next").split())
    assert "ACCEPT, struck" in (campaign.folder / "report.md").read_text()
    told = done("strike", "1", "--reason", reason)
    assert told.splitlines()[1].startswith("Round 2, toy/v2, builds on it")


def test_a_campaign_does_not_start_with_a_peer_that_no_judgement_can_hold(
    started: store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = SimpleNamespace(name=OP, tensor_inputs={"x": None})
    peers = {"adds": Peer(print, consumes=("x",))}
    file = SimpleNamespace(path="definition.py", definition=definition, peers=peers)
    monkeypatch.setattr(define.definition_file, "load_definition", lambda path: file)
    before = sorted(started.folder.parent.iterdir())
    for name, message in (("adds", "The peer adds writes over x; leave it out"), ("nope", "has no peer `nope`")):
        with pytest.raises(Misuse, match=message):
            done("start", OP, "--again", "--target", "cpu", "--language", "toy", "--peer", name)
    assert sorted(started.folder.parent.iterdir()) == before


def test_a_second_start_asks_and_an_abandoned_campaign_does_not_count(started: store.Campaign) -> None:
    options = ("start", OP, "--target", "cpu", "--language", "toy")
    with pytest.raises(Misuse, match=f"{started.name} is open already: .*`warpsmith abandon .*`--again`"):
        call(*options)
    assert len(list(started.folder.parent.iterdir())) == 1
    text = done("abandon", started.name, "--reason", "Nobody needs this operator.")
    assert text.startswith(f"Abandoned {started.name}; its records stay in devlog/scale/")
    assert "due: REPORT" in done("status", "--campaign", started.name)
    assert "abandoned: Nobody needs this operator." in done("status", "--campaign", started.name)
    second = done(*options).strip()
    assert second > started.name
    assert second in done("status")
    with pytest.raises(Misuse, match="was abandoned"):
        call("abandon", started.name, "--reason", "Nobody needs this operator.")


def test_an_attempt_is_told_counted_and_shown(
    started: store.Campaign, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.kernels / OP / "toy" / "v1.toy"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a typo")
    broken = {"workload": "*", "status": "COMPILE_ERROR", "message": "expected `;`"}
    monkeypatch.setattr(
        lab_requests, "judge_request", lambda request: evaluation(path, "ROLLBACK", None, results=[broken])
    )
    monkeypatch.setattr(lab_requests, "lease_target", lambda *_, **__: nullcontext())
    monkeypatch.setattr(lab_requests, "lab_request", lambda *_, **__: None)
    result = call("judge", str(path))
    assert result.exit_code == 1
    assert "Attempt 1 of 5 did not build" in result.stderr
    assert f"{project.relative(started.open)}/attempt-1.json" in result.stdout
    assert "attempts 1" in done("status")
    assert "fix the same version and judge it again" in done("next")
    with pytest.raises(Misuse, match="has not changed"):
        call("judge", str(path))
    path.write_text("multiply")
    monkeypatch.setattr(lab_requests, "judge_request", lambda request: evaluation(path, "ACCEPT", None))
    assert call("judge", str(path)).exit_code == 0
    Script({}).round(started)
    assert "baseline ACCEPT; attempts 2" in done("status")


def test_a_campaign_with_a_context_is_measured_there(
    started: store.Campaign, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    options = ("start", OP, "--again", "--target", "cpu", "--language", "toy", "--git", "none", "--context")
    before = sorted(started.folder.parent.iterdir())
    with pytest.raises(Misuse, match="no context `lab`; known: local"):
        call(*options, "lab")
    assert sorted(started.folder.parent.iterdir()) == before
    (started.project.root / "warpsmith.toml").write_text('[contexts.lab]\nssh = "gpu01"\n')
    measured: list[Any] = []
    monkeypatch.setattr(define.measurement, "ensure_measurement", lambda *_: pytest.fail("it is another machine"))
    monkeypatch.setattr(
        define.send, "measure_in_context", lambda project, manifest, tell: measured.append(manifest)
    )
    name = done(*options, "lab").strip()
    assert store.find_campaign(started.project, name).manifest.context == "lab"
    assert [(manifest.context, manifest.target_op, manifest.target) for manifest in measured] == [
        ("lab", OP, "cpu")
    ]


def test_restart_masks_rounds_by_number(started: store.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    name = done("start", OP, "--again", "--target", "cpu", "--language", "toy", "--git", "none").strip()
    monkeypatch.setenv(store.ENVIRONMENT, name)
    longer = store.find_campaign(started.project, name)
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ROLLBACK"})
    for _ in range(3):
        script.round(longer)
    assert done("restart", "--mask-round", "3").startswith("Masked rounds 3;")
    assert [r.round for r in state.read_state(longer).visible] == [1, 2]
    assert done("restart", "--mask-round", "2").startswith("Masked rounds 2, 3;")
    for number in ("1", "9"):  # the baseline, which is the best, and none
        with pytest.raises(Misuse, match=f"Round {number} of .* cannot be masked: .*; these can: 2, 3"):
            call("restart", "--mask-round", number)
    with pytest.raises(Misuse, match="not both"):
        call("restart", "--mask-round", "2", "--undo")
    assert done("restart", "--undo") == "Unmasked every round.\n"
    assert len(state.read_state(longer).visible) == 3


def test_a_checkout_gets_a_branch_unless_it_cannot(project: Project, started: store.Campaign) -> None:
    options = ("start", OP, "--again", "--target", "cpu", "--language", "toy")

    def begun(*more: str) -> str:
        return store.find_campaign(project, done(*options, *more).strip()).manifest.git

    before = git(project.root, "branch", "--list", "optimize/*").splitlines()
    assert begun() == "branch"
    assert begun("--git", "none") == "none"
    assert len(git(project.root, "branch", "--list", "optimize/*").splitlines()) == len(before) + 1
    assert git(project.root, "status", "--porcelain", "--untracked-files=no") == ""
    assert git(project.root, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    (project.root / ".gitignore").write_text("devlog/\n")
    assert begun() == "none"
    (project.root / ".gitignore").unlink()
    assert begun() == "branch"
    shutil.rmtree(project.root / ".git")
    assert begun() == "none"


def test_amend_mends_the_definition_and_renders_both_campaigns(
    started: store.Campaign, project: Project, tmp_path: Path
) -> None:
    Script({"v1": "ACCEPT"}).round(started)
    mended = tmp_path / "mended.py"
    mended.write_text("# another reference\n")
    options = ("--definition", str(mended), "--reason", "The reduction length was wrong.")
    name = done("amend", OP, *options).strip()
    assert name > started.name
    old, new = ((started.folder.parent / folder / "report.md").read_text() for folder in (started.name, name))
    assert f"amended by {name}: The reduction length was wrong." in old
    assert f"It amends `{started.name}`" in new
    assert project.definition_path(OP).read_text() == "# another reference\n"
    assert done("next").startswith(f"{name}: round 1, ")
