"""`warpsmith race`: what it races, where it keeps the record, and what it refuses."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.campaign import lab_requests
from warpsmith.campaign.history import store
from warpsmith.cli import main as entry
from warpsmith.core.evaluation import Verdict
from warpsmith.lab.race import peer_race as contest
from warpsmith.reporting import race as pages


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`called(*arguments)`: the exit code, and what was asked of the lab, with the race itself left out."""
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    asked: list[object] = []

    def request(project, manifest, solution, tell, *, sets, peers, **others):
        asked.append((project, manifest, solution, sets, peers))
        return "a request"

    monkeypatch.setattr(lab_requests, "lab_request", request)

    def race(request, only, keep):
        asked.append((request, only))
        keep(PART)
        return RECORD

    def write(project, record, folder):
        expected = project.devlog / "rmsnorm" / "races" / "001-cpu"
        assert folder == (expected if record is RECORD else None)
        return expected

    monkeypatch.setattr(contest, "run_race", race)
    monkeypatch.setattr(pages, "write_race", write)
    monkeypatch.setattr(pages, "race_table", lambda record, path: f"the table of {path}")

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["warpsmith", "race", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0), asked

    return run


PART = SimpleNamespace(results=("a",), unraced=("b", "c"))
RECORD = SimpleNamespace(model_dump_json=lambda indent: json.dumps({"definition": "rmsnorm"}))


def test_the_best_version_is_raced_at_every_timed_workload(called, capsys, tmp_path):
    code, ((project, manifest, solution, sets, peers), held) = called("rmsnorm", "--target", "cpu")
    assert code == 0
    assert (manifest.target_op, manifest.target, solution.language) == ("rmsnorm", "cpu", "cpp")
    assert (sets, peers, held) == (lab_requests.EVERYTHING, (), ("a request", ()))
    assert (project.root, project.devlog) == (tmp_path, tmp_path / "devlog")
    assert solution.path.is_relative_to(project.kernels)
    assert capsys.readouterr().out == "the table of devlog/rmsnorm/races/001-cpu\n"


def test_each_workload_is_written_as_it_ends(called, capsys):
    called("rmsnorm", "--target", "cpu")
    assert "1 of 3 workloads: devlog/rmsnorm/races/001-cpu" in capsys.readouterr().err


def test_some_peers_and_workloads(called, capsys):
    _, asked = called("rmsnorm", "--target", "cpu", "--peer", "torch.compile", "--workload", "4096x4096", "--json")
    assert asked[0][4] == ("torch.compile",)
    assert asked[1][1] == ["4096x4096"]
    assert json.loads(capsys.readouterr().out) == {"definition": "rmsnorm"}


def test_all_is_every_peer(called):
    assert called("rmsnorm", "--target", "cpu", "--peers", "all")[1][0][4] == ()


def test_without_an_accepted_version_there_is_nothing_to_race(called, capsys):
    code, asked = called("rmsnorm", "--target", "h200")
    assert (code, asked) == (3, [])
    assert "No version of rmsnorm was accepted on `h200` yet" in capsys.readouterr().err


def evaluation(verdict: Verdict, *, ambiguous: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        decision=SimpleNamespace(verdict=verdict, ambiguous=ambiguous), model_dump_json=lambda indent: "{}"
    )


CODES = [
    (evaluation(Verdict.ACCEPT), 0),
    (evaluation(Verdict.ROLLBACK), 1),
    (evaluation(Verdict.INVALID), 4),
    (evaluation(Verdict.ROLLBACK, ambiguous=True), 6),
]


@pytest.mark.parametrize(("judged", "code"), CODES)
def test_a_version_is_judged_on_every_timed_workload(called, capsys, monkeypatch, tmp_path, judged, code):
    monkeypatch.setattr(lab_requests, "judge_request", lambda request: judged)
    monkeypatch.setattr(lab_requests, "write_verdict", lambda project, evaluation: project.root / "verdict.json")
    path = tmp_path / "kernels" / "rmsnorm" / "cpp" / "v1.cpp"
    path.parent.mkdir(parents=True)
    path.write_text("")
    (path.parents[1] / "definition.py").write_text("")
    ended, asked = called(str(path.relative_to(tmp_path)), "--target", "cpu", "--peer", "mine", "--json")
    assert (ended, capsys.readouterr().out) == (code, "{}\n")
    (_, manifest, solution, sets, peers) = asked[0]
    assert (manifest.target, solution.name) == ("cpu", "cpp/v1")
    assert (sets, peers) == (lab_requests.EVERYTHING, ("mine",))


@pytest.mark.parametrize(("judged", "code"), CODES)
def test_the_final_race_of_a_campaign(called, capsys, monkeypatch, tmp_path, judged, code):
    manifest = SimpleNamespace(target_op="rmsnorm")
    campaign = SimpleNamespace(folder=tmp_path / "devlog" / "rmsnorm" / "one", manifest=manifest)
    held: list[str] = []

    @contextmanager
    def hold(campaign, command):
        held.append(command)
        yield

    monkeypatch.setattr(store, "find_campaign", lambda project, name: campaign if name == "one" else None)
    monkeypatch.setattr(store, "hold_campaign", hold)
    monkeypatch.setattr(lab_requests, "run_final_race", lambda campaign, tell: judged)
    ended, asked = called("--final", "--campaign", "one", "--json")
    assert (ended, asked, held) == (code, [], ["warpsmith race --final"])
    assert capsys.readouterr().out == "{}\n"
