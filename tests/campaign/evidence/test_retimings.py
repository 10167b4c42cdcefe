"""A best version accepted under load is timed again; one that sandbags is not believed.

The sessions of the lab are scripted. Load makes the version and the reference slower, and the reference
more, as it does to code with more threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from campaign_kit import OP, Script, evaluation

from warpsmith.campaign import lab_requests, start
from warpsmith.campaign.evidence import retimings
from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import due_phase, resume, state
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import BEST, REFERENCE, Evaluation
from warpsmith.core.trust import MACHINE_IDLE
from warpsmith.errors import CorruptRecord, MachineFailed
from warpsmith.lab.gate import incumbent
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing.samples import Samples
from warpsmith.ledger import signing
from warpsmith.project import Project

QUIET, LOADED = (1.0, 2.0), (1.1, 4.4)
"""Seconds of the best version and of the reference: on an idle machine, and beside another program."""


class ScriptedLab:
    """The lab: `sessions` gives the times of each judgement that follows, and the last of them repeats."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.sessions: list[tuple[float, float]] = [QUIET]
        self.alone: tuple[float, float] | None = None
        self.idle, self.seeds = True, iter(range(100, 200))
        self.judged: list[str] = []

    def judge(self, project: Project, manifest: Any, solution: Any, tell: Any, conditions: Any) -> Evaluation:
        by_itself = conditions.best is None
        times = self.sessions.pop(0) if len(self.sessions) > 1 else self.sessions[0]
        if by_itself and self.alone:
            times = self.alone
        self.judged.append(f"{solution.name}{' by itself' if by_itself else ''}")
        made = self.evaluation(solution.path, times, None if by_itself else 1.2)
        samples = {"small": Samples({BEST: [times[0]] * 4, REFERENCE: [times[1]] * 4})}
        try:
            incumbent.require_accepted_speed(conditions.accepted, samples, SimpleNamespace(id="cpu-0"))
        except MachineFailed as error:
            decision = {"verdict": "INVALID", "reason": str(error)}
            nothing: dict[str, Any] = {"results": [], "aggregates": [], "decision": decision}
            return Evaluation.model_validate(made.model_dump() | nothing)
        return made

    def evaluation(self, path: Any, times: tuple[float, float], speedup: float | None) -> Evaluation:
        found = evaluation(path, "ACCEPT", speedup).model_dump()
        timing = found["results"][0]["timing"]
        timing["seconds"] = times[0]
        timing["comparisons"] = [*timing["comparisons"], {
            "against": REFERENCE, "other_seconds": times[1], "speedup": times[1] / times[0],
            "interval": {"low": 0.9, "high": 9.0}, "pairs": 10,
        }]  # fmt: skip
        load = "idle" if self.idle else "other processes keep 1.0 cores busy"
        found["trust"] = [{"name": MACHINE_IDLE, "ran": self.idle, "how": load}]
        found["provenance"] |= {
            "seed": next(self.seeds),
            "definition_sha256": definition_file.definition_sha256(self.project.definition_path(OP)),
        }
        return Evaluation.model_validate(found)


class Player(Script):
    """A script whose verdicts come from the scripted lab."""

    def verdict(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        lab_requests.judge_due_version(campaign)


@pytest.fixture
def lab(project: Project, monkeypatch: pytest.MonkeyPatch) -> ScriptedLab:
    made = ScriptedLab(project)
    monkeypatch.setattr(lab_requests, "judge_solution", made.judge)
    workload = SimpleNamespace(name="small", set="representative")
    file = SimpleNamespace(definition=SimpleNamespace(workloads=[workload]))
    monkeypatch.setattr(definition_file, "load_definition", lambda path: file)
    return made


@pytest.fixture
def begun(project: Project, lab: ScriptedLab) -> Iterator[store.Campaign]:
    """A campaign whose baseline was judged beside another program, with a second version that is due."""
    lab.sessions = [LOADED]
    campaign = start.start_campaign(project, OP, "cpu", "toy")
    script = Player({})
    script.round(campaign)
    script.until(campaign, "verdict")
    lab.judged.clear()
    lab.sessions = [QUIET]
    return campaign


def judge(campaign: store.Campaign, times: int) -> list[str]:
    return [lab_requests.judge_due_version(campaign).decision.verdict.value for _ in range(times)]


def only_retiming(campaign: store.Campaign) -> Any:
    ((path, retiming),) = retimings.read_retimings(campaign, state.read_state(campaign).rounds[0])
    return path, retiming


def test_a_time_taken_under_load_is_renewed_after_two_disagreements(begun, lab):
    assert judge(begun, 3) == ["INVALID", "INVALID", "ACCEPT"]
    assert lab.judged == ["toy/v2", "toy/v2", "toy/v1 by itself", "toy/v2"]
    path, retiming = only_retiming(begun)
    opened = state.read_state(begun).open
    assert retiming.taken
    assert retiming.answers == tuple(each.provenance.seed for each in opened.invalid)
    assert opened.verdict is not None
    assert opened.verdict.provenance.retiming == begun.project.relative(path)


def test_a_retiming_holds_in_later_rounds(begun, lab):
    judge(begun, 3)
    Player({}).round(begun)
    assert state.read_state(begun).best_name == "toy/v2"
    record = state.read_state(begun).rounds[-1].record
    assert isinstance(record, RoundRecord)
    assert record.evaluation.provenance.retiming


@pytest.mark.parametrize(
    ("alone", "fault"),
    [
        ((1.5, 2.0), "1.36 times the seconds"),  # slows down by the date, whatever its role
        ((0.45, 2.0), "accepted time is right"),  # slows down only beside a candidate
    ],
)
def test_a_version_that_sandbags_keeps_its_accepted_time(begun, lab, alone, fault):
    lab.sessions, lab.alone = [(1.5, 2.0)], alone
    assert judge(begun, 4) == ["INVALID"] * 4
    _, retiming = only_retiming(begun)
    assert not retiming.taken
    assert fault in retiming.reason
    notes = " ".join(due_phase.find_due_phase(state.read_state(begun)).notes)
    assert "timed again by itself" in notes
    assert "warpsmith strike 1" in notes


def test_slowness_cannot_be_raised_step_by_step(begun, lab):
    best, own = state.read_state(begun).rounds[0], LOADED[0]
    for seconds in (1.05 * own, 1.15 * own, 1.25 * own):
        lab.sessions = [(seconds, 2.0)]
        lab_requests._time_again(begun, best, (), print)
    taken = [retiming.taken for _, retiming in retimings.read_retimings(begun, best)]
    assert taken == [True, False, False]
    assert retimings.held_time(begun, best)[0].timed["small"].seconds == pytest.approx(1.05 * own)


def test_a_busy_machine_answers_nothing(begun, lab):
    judge(begun, 2)
    lab.idle = False
    assert judge(begun, 1) == ["INVALID"]
    _, retiming = only_retiming(begun)
    assert (retiming.taken, retiming.answers) == (False, ())
    lab.idle = True
    assert judge(begun, 1) == ["ACCEPT"]


@pytest.mark.parametrize("loss", ["signature", "edit", "log"])
def test_a_retiming_that_was_not_signed_here_counts_for_nothing(begun, lab, loss, monkeypatch):
    judge(begun, 2)
    best = state.read_state(begun).rounds[0]
    lab_requests._time_again(begun, best, (), print)
    path, retiming = only_retiming(begun)
    assert retimings.held_time(begun, best)[1] == begun.project.relative(path)
    assert retimings.list_retiming_faults(begun, [best]) == []
    if loss == "signature":
        path.with_suffix(".sig").unlink()
    elif loss == "edit":
        path.write_text(retiming.model_copy(update={"reason": "It was edited."}).model_dump_json())
    else:
        monkeypatch.setattr(signing, "logged_hashes", dict)
    assert retimings.held_time(begun, best) == (best.record.evaluation, None)
    assert bool(retimings.list_retiming_faults(begun, [best])) == (loss != "log")


def test_a_retiming_of_another_record_is_corrupt(begun, lab):
    judge(begun, 3)
    path, _ = only_retiming(begun)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"record_sha256": "0" * 64}))
    rounds = list(state.read_state(begun).rounds)
    with pytest.raises(CorruptRecord, match="another record"):
        retimings.held_time(begun, rounds[0])
    (finding,) = retimings.list_retiming_faults(begun, rounds)
    assert "another record" in finding.message


def test_resume_sweeps_unfinished_retimings(begun, lab):
    judge(begun, 3)
    (begun.folder / retimings.RETIMINGS / ".tmp-001-2.json-x").write_text("half")
    resume.resume_campaign(begun)
    assert not list((begun.folder / retimings.RETIMINGS).glob(".tmp-*"))
