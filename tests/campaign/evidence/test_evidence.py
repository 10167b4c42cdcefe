"""What becomes stale and what says so; and a record's version judged again by a scripted lab."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from campaign_kit import INTERVAL, OP, Script, change_manifest, evaluation, make_project, sha256, use_toys
from test_store import HOLD

from warpsmith import derived_rows
from warpsmith import project as projects
from warpsmith.campaign import drift, lab_requests, rerun, start, texts
from warpsmith.campaign.evidence import agent_texts, evidence_check, toolchain
from warpsmith.campaign.history import closing, final_race, manifests, store
from warpsmith.campaign.rounds import open_round, state
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.core.base import Model, Sha256
from warpsmith.core.campaign import Lesson
from warpsmith.core.evaluation import GATE_VERSION, Aggregate, Energy, Evaluation, Verdict
from warpsmith.core.evidence import Claim, Rerun, Standing
from warpsmith.errors import Busy, CorruptRecord, MachineLacks, MissingInput, Misuse
from warpsmith.lab.gate.request import Request
from warpsmith.lab.operator import definition_file
from warpsmith.ledger import signing
from warpsmith.ledger.store import DIGEST, RECORD, Ledger, digest_line
from warpsmith.project import Project


class Lab(Script):
    """A script whose verdicts hold the definition's own hash."""

    def verdict(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        path = open_round.version_to_judge(campaign).path
        open_round.record_verdict(
            campaign, judged(campaign.project, path, self.verdicts[path.stem], bool(now.best))
        )


def judged(
    project: Project, path: Path, verdict: str = "ACCEPT", best: bool = True, gate: int = 1, **changes: Any
) -> Evaluation:
    found = evaluation(path, verdict, 1.2 if best else None, **changes)
    digest = definition_file.definition_sha256(project.definition_path(OP))
    return found.model_copy(
        update={
            "provenance": found.provenance.model_copy(
                update={"definition_sha256": digest, "solution": project.relative(path), "gate_version": gate}
            )
        }
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rounds: a baseline, a better version that teaches an entry, and one that was rolled back."""
    root = tmp_path_factory.mktemp("played") / "project"
    with pytest.MonkeyPatch.context() as patch:
        use_toys(patch)
        made = start.start_campaign(make_project(root), OP, "cpu", "toy", max_iterations=3)
        script = Lab({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"}, teaches="v2")
        for _ in range(3):
            script.round(made)
    return root


@pytest.fixture
def campaign(played: Path, tmp_path: Path) -> store.Campaign:
    """A copy of what was played."""
    root = tmp_path / "project"
    shutil.copytree(played, root)
    (found,) = store.list_campaigns(Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge"))
    return found


def check(project: Project, **pages: str) -> Standing:
    return evidence_check.check_evidence(project, {project.devlog / name: text for name, text in pages.items()})


def messages(project: Project) -> list[str]:
    return [finding.message for finding in check(project).stale]


def version(project: Project, number: int) -> Path:
    return project.kernels / OP / "toy" / f"v{number}.toy"


def test_all_is_well_and_older_gates_are_shown(campaign: store.Campaign) -> None:
    standing = check(campaign.project)
    assert standing.stale == ()
    assert (standing.rounds, standing.races, standing.verdicts) == (3, 0, 0)
    assert standing.citations == 1  # the entry of round 2
    assert [(older.gate_version, older.best, older.renewed) for older in standing.older] == [
        (1, False, None),
        (1, True, None),
        (1, False, None),
    ]
    assert standing.older[1].record == f"devlog/{OP}/{campaign.name}/rounds/002"
    assert standing.older[1].solution == f"kernels/{OP}/toy/v2.toy"


def test_checking_changes_nothing(campaign: store.Campaign) -> None:
    before = {p: p.stat().st_mtime_ns for p in campaign.project.root.rglob("*")}
    check(campaign.project)
    assert {p: p.stat().st_mtime_ns for p in campaign.project.root.rglob("*")} == before


def test_an_edited_version(campaign: store.Campaign) -> None:
    project = campaign.project
    (project.root / "README.md").write_text(f"[the report](devlog/{OP}/{campaign.name}/report.md)\n")
    (campaign.folder / "report.md").write_text("")
    version(project, 2).write_text("edited")
    record = f"devlog/{OP}/{campaign.name}/rounds/002"
    said = messages(project)
    assert f"README.md cites devlog/{OP}/{campaign.name}/report.md, and {record}/record.json is stale;" in said[0]
    assert said[1] == (
        f"{record}/record.json is stale: kernels/{OP}/toy/v2.toy has changed since it was judged;"
        f" put {record}/toy-v2.toy back in its place."
    )
    assert said[2].startswith("docs/knowledge/optimizations/wider-loads.md cites ")
    assert len(said) == 3
    version(project, 2).unlink()
    assert f"kernels/{OP}/toy/v2.toy is gone since it was judged" in messages(project)[1]


def test_an_invented_figure_in_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_toys(monkeypatch)
    campaign = start.start_campaign(make_project(tmp_path / "fresh"), OP, "cpu", "toy")
    refuse = texts.refuse_faults
    monkeypatch.setattr(texts, "refuse_faults", lambda *arguments: None)  # as if the hash chain had been forged
    script = Lab({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(campaign)
    script.until(campaign, "lesson")
    invented = Lesson(action="nothing", reason="The stores made it 9.7x faster, accepted.")
    open_round.close_round(campaign, PreparedLesson(lesson=invented))
    monkeypatch.setattr(texts, "refuse_faults", refuse)
    record = f"devlog/{OP}/{campaign.name}/rounds/002/record.json"
    said = messages(campaign.project)
    assert [message.split(";")[0] for message in said] == [
        f"{record}: The lesson says `accepted`, but the version was not accepted",
        f"{record}: The lesson states `9.7x`, which no record of this round supports",
    ]
    monkeypatch.setattr(agent_texts, "RECORD_VERSION", 3)  # a record from before the rule
    monkeypatch.setattr(derived_rows, "code_state", lambda: "changed with it")
    standing = check(campaign.project)
    assert standing.stale == ()
    assert [fault.record for fault in standing.unsupported] == [record, record]


def test_a_definition_that_was_amended_is_no_finding(campaign: store.Campaign) -> None:
    campaign.project.definition_path(OP).write_text("# another reference\n")
    closing.close_campaign(campaign, "The reduction length was wrong.", f"{campaign.name}-2")
    assert not [message for message in messages(campaign.project) if "definition.py" in message]


def test_an_edited_definition(campaign: store.Campaign) -> None:
    campaign.project.definition_path(OP).write_text("# another reference\n")
    said = [message for message in messages(campaign.project) if "cites" not in message]
    assert len(said) == 3
    assert all(
        f"kernels/{OP}/definition.py or a Python file next to it has changed" in message for message in said
    )


def test_a_truncated_record(campaign: store.Campaign) -> None:
    path = campaign.rounds / "003" / "record.json"
    path.write_bytes(path.read_bytes()[:-200])
    (message,) = messages(campaign.project)
    assert "rounds/003/record.json is torn or was edited" in message
    assert DIGEST in message
    assert "warpsmith resume" in message
    assert check(campaign.project).rounds == 2


def test_a_deleted_record_that_an_entry_cites(campaign: store.Campaign) -> None:
    folder = campaign.rounds / "002"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    entry, missing = sorted(messages(campaign.project), reverse=True)
    assert entry.startswith("docs/knowledge/optimizations/wider-loads.md cites ")
    assert "which does not exist" in entry
    assert "rounds/002 is missing" in missing


def test_a_broken_chain(campaign: store.Campaign) -> None:
    kept = campaign.closed_rounds()[0]
    edited = kept.record.model_copy(update={"closed": "2026-11-21 23:59"})
    data = campaign.ledger.encode(edited)
    kept.path.write_bytes(data)
    (kept.folder / DIGEST).write_text(digest_line(hashlib.sha256(data).hexdigest(), RECORD))
    chain, signature = sorted(messages(campaign.project), key=len, reverse=True)
    assert "rounds/001/record.json is not the record that the next" in chain
    assert "rounds/001/record.json is not the record that record.sig signs" in signature


@pytest.mark.parametrize("signed", ["kept", "removed", "by another key"])
def test_a_figure_that_was_raised_in_the_last_record(
    campaign: store.Campaign, signed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever renews the digest and the pages still lacks the key, or the log of what was signed here."""
    last = campaign.closed_rounds()[-1]
    signing.log_record(last.path, last.sha256)
    data = campaign.ledger.encode(last.record.model_copy(update={"closed": "2026-11-21 23:59"}))
    sha256 = hashlib.sha256(data).hexdigest()
    last.path.write_bytes(data)
    (last.folder / DIGEST).write_text(digest_line(sha256, RECORD))
    if signed == "removed":
        (last.folder / signing.SIGNATURE).unlink()
    if signed == "by another key":
        with monkeypatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
            (last.folder / signing.SIGNATURE).write_text(signing.sign_record(sha256))
    found = [message for message in messages(campaign.project) if "rounds/003/record.json" in message]
    words = {"kept": "record.sig signs", "removed": "has no record.sig", "by another key": "signed last on this"}
    assert any(words[signed] in message for message in found)


def test_a_figure_of_an_entry(campaign: store.Campaign) -> None:
    entry = campaign.project.knowledge / "optimizations" / "wider-loads.md"
    assert "1.2x \\[1, 1.3\\]" in entry.read_text()
    entry.write_text(entry.read_text().replace("1.2x \\[", "1.9x \\["))
    (message,) = messages(campaign.project)
    assert "wider-loads.md: the row `" in message
    assert "1.2x" in message.partition("write")[2]


def test_a_record_that_changed_since_it_was_cited(campaign: store.Campaign) -> None:
    entry = campaign.project.knowledge / "optimizations" / "wider-loads.md"
    sha256 = campaign.closed_rounds()[1].sha256
    entry.write_text(entry.read_text().replace(sha256, "a" * 64))
    (message,) = messages(campaign.project)
    assert "rounds/002/record.json has changed since it was cited" in message


def test_what_an_entry_has_from_elsewhere_is_not_held_to_this_project(
    campaign: store.Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "shipped" / "docs" / "knowledge"
    shipped.mkdir(parents=True)
    (shipped / "note.md").write_text("It is in devlog/norm/norm-1/final.json.\n")
    own = campaign.project.knowledge / "note.md"
    shutil.copy(shipped / "note.md", own)
    assert len(messages(campaign.project)) == 1
    monkeypatch.setattr(projects, "SHIPPED", tmp_path / "shipped")
    assert messages(campaign.project) == []


def test_a_rendered_page_and_a_quoted_figure(campaign: store.Campaign) -> None:
    project = campaign.project
    report = campaign.folder / "report.md"
    report.write_text("over PyTorch: 1.20x \\[1.10, 1.30\\]")
    readme = project.root / "README.md"
    readme.write_text(f"It is [fast]({project.relative(report)}): 1.20x [1.10, 1.30].\n")
    assert evidence_check.check_evidence(project, {report: report.read_text()}).stale == ()
    (finding,) = evidence_check.check_evidence(project, {report: report.read_text() + "!"}).stale
    assert finding.message.endswith(f"run `warpsmith report --campaign {campaign.name}`.")
    readme.write_text(readme.read_text().replace("1.20x", "1.50x"))
    (finding,) = evidence_check.check_evidence(project, {report: report.read_text()}).stale
    assert "README.md: `1.50x [1.10, 1.30]` is not in" in finding.message


def test_verdicts_outside_of_campaigns(project: Project) -> None:
    path = version(project, 1)
    path.parent.mkdir(parents=True)
    path.write_text("one")
    lab_requests.write_verdict(project, judged(project, path, best=False))
    assert check(project).stale == ()
    path.write_text("two")
    (message,) = messages(project)
    assert "has changed since it was judged" in message
    again = judged(project, path, best=False)
    again = again.model_copy(update={"provenance": again.provenance.model_copy(update={"seed": 7})})
    lab_requests.write_verdict(project, again)
    assert messages(project) == [], "a later verdict on the same version replaces it"
    (project.root / ".warpsmith" / "verdicts" / "torn.json").write_text("{")
    (message,) = messages(project)
    assert "torn.json does not validate" in message


# Judging again


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A lab that answers as `next` says, and keeps what it was asked."""
    asked = SimpleNamespace(requests=[], changes={}, verdict="ACCEPT", target="cpu")

    def request(project: Project, manifest: Any, solution: Any, tell: Any, **options: Any) -> Request:
        best, file = options.pop("best"), load(Path())
        options.pop("before_loading", None)
        return Request(
            project, file, lab_requests.lab_candidate(solution), manifest.target, SimpleNamespace(),  # type: ignore[arg-type]
            best=lab_requests.lab_candidate(best) if best else None, thresholds=manifest.thresholds, **options,
        )  # fmt: skip

    def load(path: Path) -> Any:
        workloads = tuple(SimpleNamespace(name=name, set=kind) for name, kind in asked.workloads)
        return SimpleNamespace(definition=SimpleNamespace(workloads=workloads))

    def judge(request: Request) -> Evaluation:
        asked.requests.append(request)
        found = judged(
            request.project, request.candidate.path, asked.verdict, request.best is not None, GATE_VERSION,
            **asked.changes,
        )  # fmt: skip
        machine = found.provenance.machine.model_copy(update={"target": asked.target})
        return found.model_copy(update={"provenance": found.provenance.model_copy(update={"machine": machine})})

    asked.workloads = [("small", "representative"), ("large", "full")]
    monkeypatch.setattr(rerun.definition_file, "load_definition", load)
    monkeypatch.setattr(lab_requests, "lease_target", lambda *_, **__: nullcontext())
    monkeypatch.setattr(lab_requests, "lab_request", request)
    monkeypatch.setattr(lab_requests, "judge_request", judge)
    return asked


def again(campaign: store.Campaign, number: int = 2) -> Rerun:
    return rerun.rerun_record(campaign.project, campaign.rounds / f"{number:03d}")[1]


def aggregate(speedup: float, low: float, high: float) -> list[dict[str, Any]]:
    interval = {"low": low, "high": high}
    return [{"against": "best", "speedup": speedup, "interval": interval, "worst_workload": "small", "worst": low}]


def test_drift_judges_best_versions_of_other_libraries_again(
    campaign: store.Campaign, lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = {"torch": ("2.11.0", "2.13.0")}
    monkeypatch.setattr(toolchain, "differing_packages", lambda libraries, names: differences)
    (found,) = drift.measure_drift(campaign.project, campaign.manifest.target)
    assert (found.claim, found.solution) == (Claim.HOLDS, "kernels/scale/toy/v2.toy")
    assert "torch 2.11.0 (here 2.13.0)" in found.differences
    assert (campaign.folder / "reruns" / "002-1.json").is_file()
    (other,) = check(campaign.project).toolchains
    assert other.records == (campaign.project.relative(campaign.rounds / "002"),)
    version(campaign.project, 2).write_text("changed", encoding="utf-8")
    (found,) = drift.measure_drift(campaign.project, campaign.manifest.target)
    assert found.claim is Claim.UNKNOWN
    differences.clear()
    assert list(drift.measure_drift(campaign.project, campaign.manifest.target)) == []


def test_a_claim_that_holds_is_kept_and_shown(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    before = (campaign.rounds / "002" / "record.json").read_bytes()
    judgement, made, path = rerun.rerun_record(campaign.project, campaign.rounds / "002" / "record.json")
    assert made.claim is Claim.HOLDS
    assert path == campaign.folder / "reruns" / "002-1.json"
    assert Rerun.model_validate_json(path.read_bytes()) == made
    assert (made.record, made.record_sha256) == (campaign.project.relative(judgement.path), judgement.sha256)
    assert (campaign.rounds / "002" / "record.json").read_bytes() == before
    (request,) = lab.requests
    assert request.candidate.path == version(campaign.project, 2)
    assert request.best.path == version(campaign.project, 1)
    assert request.sets == ("representative",)
    assert request.thresholds == campaign.manifest.thresholds
    assert again(campaign).claim is Claim.HOLDS
    assert (campaign.folder / "reruns" / "002-2.json").is_file()
    standing = check(campaign.project)
    assert standing.stale == ()
    renewed = standing.older[1].renewed
    assert renewed is not None
    assert renewed.evaluation.provenance.gate_version == GATE_VERSION
    campaign.closed_rounds()


@pytest.mark.parametrize(
    ("speedup", "low", "high", "claim"),
    [(1.1, 0.9, 1.05, "HOLDS"), (3.0, 2.9, 3.1, "HOLDS"), (0.95, 0.9, 0.99, "WEAKER")],
)
def test_intervals_decide(
    campaign: store.Campaign, lab: SimpleNamespace, speedup: float, low: float, high: float, claim: str
) -> None:
    assert INTERVAL["low"] == 1.0
    lab.changes = {"aggregates": aggregate(speedup, low, high)}
    made = again(campaign)
    assert made.claim == claim
    assert f"{speedup:.3g}x [{low:.3g}, {high:.3g}]" in made.reason


def test_joules_decide_where_they_did(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    before = campaign.records()[1].evaluation
    sides = [Aggregate.model_validate(aggregate(1.1, low, high)[0]) for low, high in ((1.0, 1.2), (1.3, 1.5))]
    read = [Energy(workloads={}, aggregate=one, floor=0.01) for one in sides]
    weak, strong = (before.model_copy(update={"energy": one}) for one in read)
    assert rerun.compare_evaluations(weak, strong)[0] is Claim.HOLDS
    assert rerun.compare_evaluations(strong, weak)[0] is Claim.WEAKER


def test_what_refutes(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    lab.verdict = "ROLLBACK"
    assert again(campaign).claim is Claim.REFUTED
    assert again(campaign, 3).claim is Claim.HOLDS, "it was rolled back then, too"
    wrong = {"workload": "small", "status": "OUT_OF_BOUNDS", "message": "It wrote past the end."}
    lab.changes = {"results": [wrong], "aggregates": []}
    made = again(campaign)
    assert made.claim is Claim.REFUTED
    assert made.reason.startswith("It was PASSED and is OUT_OF_BOUNDS now")
    assert again(campaign, 3).claim is Claim.REFUTED, "it was correct then"
    lab.verdict, lab.changes = "ACCEPT", {}
    assert again(campaign, 3).claim is Claim.REFUTED, "it is accepted now"


def test_another_processor_refutes_no_time(campaign: store.Campaign) -> None:
    before = campaign.records()[1].evaluation
    machine = before.provenance.machine.model_copy(update={"device": "a laptop"})
    origin = before.provenance.model_copy(update={"machine": machine})
    decision = before.decision.model_copy(update={"verdict": Verdict.ROLLBACK})
    after = before.model_copy(update={"provenance": origin, "decision": decision})
    claim, reason = rerun.compare_evaluations(before, after)
    assert claim is Claim.UNKNOWN
    assert "on a laptop now" in reason


def test_what_stays_unknown(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    lab.verdict = "ROLLBACK"
    lab.changes = {"decision": {"verdict": "ROLLBACK", "reason": "not clear of the floor", "ambiguous": True}}
    made = again(campaign)
    assert made.claim is Claim.UNKNOWN, "noise refutes nothing"
    assert "not clear of the floor" in made.reason
    lab.changes = {}
    lab.verdict = "INVALID"
    assert again(campaign).claim is Claim.UNKNOWN
    lab.verdict, lab.target = "ACCEPT", "h200"
    made = again(campaign)
    assert made.claim is Claim.UNKNOWN
    assert "on cpu then and on h200 now" in made.reason
    lab.target, lab.changes = "cpu", {"aggregates": []}
    assert again(campaign).claim is Claim.UNKNOWN, "no common side"
    assert check(campaign.project).older[1].renewed is None, "what could not say renews nothing"


def test_a_race_and_a_verdict(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    project = campaign.project
    best = version(project, 2)
    final_race.write_final_race(
        campaign, judged(project, best, best=False, absent={"torch.compile": "small: TypeError: why"})
    )
    _, _, path = rerun.rerun_record(project, campaign.folder / "final.json")
    assert "torch.compile" in lab.requests[-1].peers, "what failed then is tried again"
    assert path == campaign.folder / "reruns" / "final-1.json"
    assert lab.requests[-1].best is None
    verdict = lab_requests.write_verdict(project, judged(project, best, best=False))
    _, made, path = rerun.rerun_record(project, verdict, "gpu0")
    assert path == verdict.parent / "reruns" / f"{verdict.stem}-1.json"
    assert lab.requests[-1].page == "gpu0"
    assert made.claim is Claim.UNKNOWN
    raced = lab_requests.write_verdict(project, judged(project, best))
    with pytest.raises(Misuse, match="does not say which version it was timed against"):
        rerun.rerun_record(project, raced)


def test_a_verdict_names_what_it_was_raced_with(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    project, other = campaign.project, version(campaign.project, 1)
    found = judged(project, version(project, 2))
    named = {"best": project.relative(other), "best_sha256": sha256(other)}
    raced = lab_requests.write_verdict(
        project, found.model_copy(update={"provenance": found.provenance.model_copy(update=named)})
    )
    assert rerun.rerun_record(project, raced)[1].claim is Claim.HOLDS
    assert lab.requests[-1].best.path == other
    other.write_text("edited")
    with pytest.raises(Misuse, match=r"timed against toy/v1, .*v1\.toy has changed"):
        rerun.rerun_record(project, raced)
    other.unlink()
    with pytest.raises(MissingInput, match=r"v1\.toy does not exist"):
        rerun.rerun_record(project, raced)


def test_sets_are_those_that_were_timed(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    lab.workloads = [("large", "representative"), ("small", "full")]
    again(campaign)
    assert lab.requests[-1].sets == ("full",)


def test_changed_files_are_refused(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    project = campaign.project
    for number, what in ((2, "v2.toy has changed since it was judged"), (1, "v1.toy has changed since; put")):
        path = version(project, number)
        source = path.read_text()
        path.write_text("edited")
        with pytest.raises(Misuse, match=what):
            again(campaign)
        path.write_text(source)
    project.definition_path(OP).write_text("# another\n")
    with pytest.raises(Misuse, match=r"definition\.py or .* has changed"):
        again(campaign)
    assert lab.requests == []
    assert not (campaign.folder / "reruns").exists()


def test_bad_input(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    project = campaign.project
    with pytest.raises(MissingInput, match="nowhere does not exist"):
        rerun.rerun_record(project, project.root / "nowhere")
    with pytest.raises(Misuse, match="is no closed round"):
        rerun.rerun_record(project, campaign.folder / "manifest.yaml")
    with pytest.raises(Misuse, match="is no verdict"):
        rerun.rerun_record(project, project.definition_path(OP))
    path = campaign.rounds / "003" / "record.json"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CorruptRecord, match="torn"):
        again(campaign, 3)


def test_a_machine_that_lacks_the_language_keeps_nothing(
    campaign: store.Campaign, lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(request: Request) -> Evaluation:
        raise MachineLacks("no GPU")

    monkeypatch.setattr(lab_requests, "judge_request", judge)
    with pytest.raises(MachineLacks, match="no GPU"):
        again(campaign)
    assert not (campaign.folder / "reruns").exists()


def test_the_machine_of_the_campaign_judges_again_or_another(
    campaign: store.Campaign, lab: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = []

    def judge(project: Any, manifest: Any, *arguments: Any) -> Evaluation:
        chosen.append(manifest.context)
        return judged(project, version(project, 2), "ACCEPT", True, GATE_VERSION)

    monkeypatch.setattr(lab_requests, "judge_solution", judge)
    (campaign.project.root / "warpsmith.toml").write_text('[contexts.lab]\nssh = "gpu01"\n')
    for context in (None, "lab", "local"):
        rerun.rerun_record(campaign.project, campaign.rounds / "002", context=context)
    assert chosen == [None, "lab", None]
    monkeypatch.setattr(manifests, "_read_sha256", lambda _: (None, ""))
    change_manifest(campaign.folder, "shapes: ", "context: lab\nshapes: ")
    for context in (None, "local"):
        rerun.rerun_record(campaign.project, campaign.rounds / "002", context=context)
    assert chosen[3:] == ["lab", None]
    with pytest.raises(Misuse, match="no context `other`"):
        rerun.rerun_record(campaign.project, campaign.rounds / "002", context="other")


def test_a_campaign_that_another_process_holds(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    arguments = [sys.executable, "-c", HOLD, str(campaign.project.root), str(campaign.folder)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Busy, match="warpsmith judge"):
            again(campaign)
        holder.communicate("")
    assert lab.requests == []


def test_a_rerun_that_is_torn_or_of_another_record(campaign: store.Campaign, lab: SimpleNamespace) -> None:
    made = again(campaign)
    path = campaign.folder / "reruns" / "002-1.json"
    path.write_text(made.model_copy(update={"record_sha256": "0" * 64}).model_dump_json())
    (message,) = messages(campaign.project)
    assert "002-1.json belongs to another record" in message
    path.write_text("{")
    (message,) = messages(campaign.project)
    assert "002-1.json does not validate" in message


class Trial(Model):
    """Record of another feature."""

    gain: float
    previous_sha256: Sha256 | None = None


@pytest.mark.parametrize("edit", ["none", "rehashed", "torn"])
def test_records_of_other_features_are_whole_and_signed_too(campaign: store.Campaign, edit: str) -> None:
    trials = campaign.project.devlog / "programs" / "toy" / "trials"
    ledger = Ledger(trials, Trial, "trial", "git restore .")
    path = ledger.publish(1, Trial(gain=1.1), {}).path
    data = ledger.encode(Trial(gain=3.3))
    if edit != "none":
        path.write_bytes(data)
    if edit == "rehashed":
        path.with_name(DIGEST).write_text(digest_line(hashlib.sha256(data).hexdigest(), RECORD))
    stale = [found.message for found in evidence_check.check_evidence(campaign.project, {}, [ledger]).stale]
    fault = {"none": None, "rehashed": "is not the record that record.sig signs", "torn": "does not match"}[edit]
    shown = [message for message in stale if "toy/trials" in message]
    assert bool(shown) == (fault is not None)
    assert fault is None or fault in shown[0]
