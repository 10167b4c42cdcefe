"""Judgements over ranks: the decision against another version, failures of one rank, and the command."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from lab_samples import workers

from warpsmith import files
from warpsmith.cli import main
from warpsmith.core.evaluation import Status, Verdict
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.ranks import correctness_check
from warpsmith.lab.ranks.group import SLOTS, RankGroup
from warpsmith.lab.workers.side import Limits

GATHER = Path(__file__).parent / "redteam" / "control_gather.py"


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch):
    """The red team needs all blocks; these tests do not."""
    monkeypatch.setattr(correctness_check, "JOLTED_BLOCKS", (0, 0))
    monkeypatch.setattr(correctness_check, "BLOCKS", 1)


@pytest.fixture
def write_version(tmp_path):
    """`write_version(first lines of run)`: a right version that begins with these lines."""

    def write(lines: str, name: str = "version.py") -> Path:
        path = tmp_path / name
        head, body = GATHER.read_text().split("def run(partial, residual, weight, eps):\n")
        path.write_text(f"{head}def run(partial, residual, weight, eps):\n{lines}{body}")
        return path

    return write


def test_the_slowest_rank_decides(judge_file, write_version):
    slow = write_version("    if dist.get_rank() == 1:\n        import time\n        time.sleep(0.01)\n")
    evaluation = judge_file(GATHER, against=slow, timed=True)
    assert evaluation.decision.verdict.accepted, evaluation.decision
    assert evaluation.aggregate.speedup > 1.5
    assert evaluation.times["32x1024"].comparison.other_seconds > 0.01
    assert evaluation.decision.again is not None, "a gain is confirmed in fresh processes"


def test_a_rank_that_raises_ends_all_at_once(judge_file, write_version, host):
    path = write_version("    if dist.get_rank() == 1:\n        raise ValueError('no such luck')\n")
    started = time.monotonic()
    evaluation = judge_file(path, seconds=60)
    assert time.monotonic() - started < 30, "rank 0 waits for rank 1, and nobody may wait for rank 0"
    assert evaluation.results[-1].status is Status.RUNTIME_ERROR
    assert evaluation.results[-1].message.startswith("rank 1: ")
    assert "no such luck" in evaluation.results[-1].message
    assert workers(host) == []


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("    residual += 1\n", Status.INPUT_MUTATED),
        ("    return residual.double(), residual\n", Status.INCORRECT_DTYPE),
        ("    return residual[:-1], residual\n", Status.INCORRECT_SHAPE),
        ("    partial = partial * (1 + 1e-3 * dist.get_rank())\n", Status.INCORRECT_NUMERICAL),
    ],
)
def test_a_wrong_rank_fails_all(judge_file, write_version, lines, status):
    evaluation = judge_file(write_version(lines))
    assert evaluation.results[-1].status is status
    assert evaluation.decision.verdict is Verdict.ROLLBACK


def test_a_failure_of_the_version_to_beat_is_no_verdict(judge_file, write_version):
    evaluation = judge_file(GATHER, against=write_version("    raise ValueError\n"), timed=True)
    assert evaluation.correct
    assert evaluation.decision.verdict is Verdict.INVALID


LEAVES = """
    if not Path("{ticks}").exists() and dist.get_rank() == 0:
        Path("{ticks}").touch()
        ticker = "import time\\nwhile True: open('{ticks}', 'a').write('x'); time.sleep(0.001)"
        subprocess.Popen([sys.executable, "-c", ticker], start_new_session=True)
        time.sleep(0.3)
"""


def test_a_process_that_left_the_group_is_stopped_with_the_rank(host, file, write_version, tmp_path):
    ticks = tmp_path / "ticks"
    lines = "    import subprocess, sys, time\n    from pathlib import Path" + LEAVES.format(ticks=ticks)
    content, workload = write_version(lines).read_bytes(), file.definition.workloads[0]
    with RankGroup("v1", file.definition, [workload], Path("v1.py"), content, host, Limits(seconds=20)) as group:
        group.open_workload(workload)
        group.fill([Inputs(file, workload, 1, "cpu").draw()] * SLOTS)
        group.call_slots([[0.0] * SLOTS] * 2)
        size = ticks.stat().st_size
        assert size > 0
        time.sleep(0.1)
        assert ticks.stat().st_size == size


CONTINUED = """
    import os, signal, time
    if not hasattr(signal, "continued"):
        signal.continued = []
        signal.signal(signal.SIGCONT, lambda *_: signal.continued.append(1))
    before, end = len(signal.continued), time.monotonic() + 0.1
    while time.monotonic() < end: pass
    with open(f"{folder}/continued-{{dist.get_rank()}}", "a") as file:
        file.write(f"{{len(signal.continued) - before}} ")
"""


def test_a_jolted_rank_is_stopped_within_its_calls(host, file, write_version, tmp_path):
    content, workload = write_version(CONTINUED.format(folder=tmp_path)).read_bytes(), file.definition.workloads[0]
    with RankGroup("v1", file.definition, [workload], Path("v1.py"), content, host, Limits(seconds=20)) as group:
        group.open_workload(workload)
        group.fill([Inputs(file, workload, 1, "cpu").draw()] * SLOTS)
        group.call_slots([[0.0] * SLOTS] * 2, jolted=0)
    jolted, other = (sum(map(int, (tmp_path / f"continued-{rank}").read_text().split())) for rank in (0, 1))
    assert jolted >= 3
    assert other <= 1, "the start of the block continues it too"


def test_all_processes_get_the_file_as_it_was_at_the_start(judge_file, write_version):
    path = write_version("    open({path!r}, 'a').write('# more')\n")
    path.write_text(path.read_text().replace("{path!r}", repr(str(path))))
    before = files.file_sha256(path)
    assert judge_file(path).provenance.solution_sha256 == before != files.file_sha256(path)


def run_command(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["warpsmith", "ranks", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


def test_the_command_refuses_what_it_cannot_do(monkeypatch, capsys, file, tmp_path):
    monkeypatch.setattr("warpsmith.lab.machine.identity.list_gpus", lambda: [("0", "GPU-a", "NVIDIA H200")])
    assert run_command(monkeypatch, file.path, GATHER, "--target", "h200") == 4
    assert "2 GPUs of `h200` are needed, and 1" in capsys.readouterr().err
    assert run_command(monkeypatch, file.path, GATHER, "--ranks", "1") == 2
    assert "at least 2" in capsys.readouterr().err
    assert run_command(monkeypatch, file.path, GATHER, "--workload", "7x7") == 2
    assert "no timed workload `7x7`" in capsys.readouterr().err
    assert run_command(monkeypatch, file.path, tmp_path / "none.py") == 3
    assert run_command(monkeypatch, file.path, GATHER, "--check", "--against", GATHER) == 2
    assert "--check" in capsys.readouterr().err


def test_the_command_chooses_ranks_and_timed_workloads(monkeypatch, file, judge_file):
    evaluation, requests = judge_file(GATHER, timed=True), []
    monkeypatch.setattr(
        "warpsmith.lab.ranks.judge.judge_ranks", lambda request, _: requests.append(request) or evaluation
    )
    options = ("--ranks", "3", "--workload", "16x4096", "--workload", "16x4096", "--check")
    assert run_command(monkeypatch, file.path, GATHER, *options) == 0
    definition = requests[0].file.definition
    assert (definition.ranks, definition.axes["parts"]) == (3, 3)
    assert [each.name for each in definition.select("representative")] == ["16x4096"]
    assert len(definition.select("odd")) == 3


def test_the_command_keeps_a_record(monkeypatch, capsys, tmp_path, file, judge_file):
    evaluation = judge_file(GATHER, timed=True)
    monkeypatch.setattr("warpsmith.lab.ranks.judge.judge_ranks", lambda *_: evaluation)
    assert run_command(monkeypatch, file.path, GATHER, "--out", tmp_path / "record.json") == 0
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["decision"]["verdict"] == "ACCEPT"
    assert [check["name"] for check in record["trust"] if not check["ran"]] == ["isolation"]
    assert "not in force: isolation" in capsys.readouterr().out


def test_rounds_must_beat_the_best_one_before_them(monkeypatch, capsys, tmp_path, file, judge_file, write_version):
    evaluation, requests = judge_file(GATHER, timed=True), []

    def judge_it(request, _):
        requests.append(request)
        judged = {"solution_sha256": files.file_sha256(request.source), "definition_sha256": request.file.sha256}
        provenance = evaluation.provenance.model_copy(update=judged)
        return evaluation.model_copy(update={"provenance": provenance})

    monkeypatch.setattr("warpsmith.lab.ranks.judge.judge_ranks", judge_it)
    (tmp_path / "warpsmith.toml").touch()
    monkeypatch.chdir(tmp_path)
    why = ("--round", "One exchange instead of two.")
    assert run_command(monkeypatch, file.path) == 3
    assert run_command(monkeypatch, file.path, GATHER, *why) == 0
    assert run_command(monkeypatch, file.path, GATHER, *why) == 2, "the same version again"
    assert run_command(monkeypatch, file.path, write_version("    eps = eps + 0\n"), *why) == 0
    first = tmp_path / "devlog" / "all_reduce_rmsnorm" / "ranks" / "cpu-2" / "rounds" / "001"
    assert [(each.against, each.judgement) for each in requests] == [(None, 1), (first / "version.py", 1)]
    assert requests[1].against.read_text() == GATHER.read_text()
    capsys.readouterr()
    assert run_command(monkeypatch, file.path, "--json") == 0
    standing = json.loads(capsys.readouterr().out)
    assert (standing["best_round"], [each["best_round"] for each in standing["rounds"]]) == (2, [None, 1])
    assert run_command(monkeypatch, file.path, "--ranks", "3") == 3, "rounds on other ranks are others"
    assert run_command(monkeypatch, file.path, GATHER, *why, "--against", GATHER) == 2
    assert run_command(monkeypatch, file.path, "--repair") == 0
    assert "Nothing to repair" in capsys.readouterr().out


def test_a_failure_of_the_machine_is_no_round(monkeypatch, capsys, tmp_path, file, judge_file, write_version):
    invalid = judge_file(GATHER, against=write_version("    raise ValueError\n"), timed=True)
    monkeypatch.setattr("warpsmith.lab.ranks.judge.judge_ranks", lambda *_: invalid)
    (tmp_path / "warpsmith.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert run_command(monkeypatch, file.path, GATHER, "--round", "One exchange instead of two.") == 4
    assert "no round" in capsys.readouterr().out
    assert not (tmp_path / "devlog").exists()
