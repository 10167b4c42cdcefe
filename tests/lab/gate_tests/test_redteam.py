"""The red team against the gate: how candidates are found and judged, and then all that ship, on the CPU.

An attack that gets through, or is caught at another step than its header says, fails here; so does a control
that is refused.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.evaluation import Correctness, Decision, Evaluation, Status, Step, Verdict, WorkloadResult
from warpsmith.core.hardware import Ceiling, Measurement, Noise, Target
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed, MissingInput, Misuse
from warpsmith.lab.gate_tests import cases as redteam_cases
from warpsmith.lab.gate_tests import redteam, unfinished
from warpsmith.lab.gate_tests.cases import CORPUS, RedTeamCase
from warpsmith.lab.gate_tests.models import CaseHeader, CaseOutcome, RedTeamResult
from warpsmith.lab.gate_tests.redteam import RedTeam
from warpsmith.lab.machine import hardware, identity, system
from warpsmith.project import Project
from warpsmith.reporting import redteam as tables

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
SHIPPED = redteam_cases.load_cases(CORPUS)

SOURCE = """\
// class: {family}
// kind: {kind}
// how: made up
{more}
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x_, Tensor& y_) {{
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  const int64_t n = x_.size(0);
  {body}
}}
"""
HONEST = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];"


def measured(target: Target) -> Measurement:
    """A made-up measurement: ceilings that nothing here exceeds, and a floor that hides no attack on time."""
    ceiling = Ceiling(value=100.0, unit="GB/s", best=110.0, spread=0.01, how="made up")
    return Measurement(
        machine=identity.identify_machine(target),
        measured="2026-01-01 00:00",
        ceilings={"copy": ceiling, "read": ceiling},
        noise=Noise(floor=0.5, trials=2, how="made up"),
    )


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedTeam]:
    """A red team on this machine's CPU, in a project of its own; its worker hosts serve all tests."""
    root = tmp_path_factory.mktemp("project")
    here = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    with RedTeam(here, hardware.read_target_page(here, "cpu").target, measured) as found:
        yield found


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[..., Path]:
    """`corpus(name, body, *header)`: write a candidate for `square` and return the folder of candidates."""

    def write(name: str, body: str = HONEST, *lines: str, language: str = "cpp") -> Path:
        folder = tmp_path / "corpus"
        path = folder / "square" / language / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (folder / "square" / "definition.py").write_text(SQUARE)
        more = "\n".join(f"// {line}" for line in lines)
        path.write_text(SOURCE.format(family=path.stem, kind=name.partition("_")[0], more=more or "//", body=body))
        return folder

    return write


def test_candidates_are_found_and_filtered(corpus):
    corpus("attack_nothing.cpp", "", "caught: correctness")
    folder = corpus("control_plain.cpp")
    corpus("notes.txt")
    names = [case.name for case in redteam_cases.load_cases(folder)]
    assert names == ["square/cpp/attack_nothing.cpp", "square/cpp/control_plain.cpp"]
    for pattern in ("attack_*", "attack_nothing", "square/cpp/attack_nothing.cpp"):
        assert [case.name for case in redteam_cases.load_cases(folder, [pattern])] == names[:1]
    assert len(redteam_cases.load_cases(folder, ["square"])) == 2
    with pytest.raises(MissingInput, match="matches `argmax`"):
        redteam_cases.load_cases(folder, ["square", "argmax"])
    with pytest.raises(MissingInput, match="is no folder"):
        redteam_cases.load_cases(folder / "nowhere")


@pytest.mark.parametrize(
    ("name", "lines", "why"),
    [
        ("attack_x.cpp", (), "has no valid header: an attack must name"),
        ("honest_x.cpp", (), "`kind`"),
        ("control_x.cpp", ("against: control_y.cpp",), "control_y.cpp, which does not exist"),
    ],
)
def test_a_candidate_that_is_none(corpus, name: str, lines: tuple[str, ...], why: str):
    with pytest.raises(Misuse, match=why):
        redteam_cases.load_cases(corpus(name, HONEST, *lines))


def test_a_name_that_contradicts_the_header(corpus):
    folder = corpus("control_plain.cpp")
    (folder / "square" / "cpp" / "control_plain.cpp").rename(folder / "square" / "cpp" / "plain.cpp")
    with pytest.raises(Misuse, match="name must start with that"):
        redteam_cases.load_cases(folder)


@needs_compiler
def test_the_gate_against_a_few(corpus, team: RedTeam):
    slow = "for (int again = 0; again < 40; ++again) " + HONEST.replace("x[i] * x[i]", "x[i] * x[i] + 0 * again")
    corpus("control_plain.cpp")
    corpus("attack_constant.cpp", "for (int64_t i = 0; i < n; ++i) y[i] = 0;", "caught: correctness")
    corpus("attack_misplaced.cpp", "for (int64_t i = 0; i < n; ++i) y[i] = 0;", "caught: timing")
    corpus("attack_none.cpp", HONEST, "caught: correctness")
    corpus("attack_slow.cpp", slow, "caught: decision", "against: control_plain.cpp")
    corpus("attack_gpu.cpp", HONEST, "caught: timing", "needs: gpu")
    corpus("attack_broken_best.cpp", HONEST, "caught: decision", "against: control_wrong.cpp")
    folder = corpus("control_wrong.cpp", "undeclared = 1;")
    found = {Path(result.file).stem: result for result in team.run(redteam_cases.load_cases(folder))}
    assert {name: (result.outcome.value, result.step) for name, result in found.items()} == {
        "attack_broken_best": ("machine failed", None),
        "attack_constant": ("caught", "correctness"),
        "attack_gpu": ("not run", None),
        "attack_misplaced": ("caught", "correctness"),
        "attack_none": ("got through", None),
        "attack_slow": ("caught", "decision"),
        "control_plain": ("accepted", None),
        "control_wrong": ("refused", "build"),
    }, {name: result.message for name, result in found.items()}
    assert found["attack_constant"].status is Status.INCORRECT_NUMERICAL
    report = team.report(found.values())
    assert [result.file.rpartition("_")[2] for result in report.deviations] == ["misplaced.cpp"]
    assert {result.file.rpartition("/")[2] for result in report.wrong} == {"attack_none.cpp", "control_wrong.cpp"}
    told = tables.redteam_summary(report, "there.json").splitlines()
    assert told[0] == "6 attacks: 3 caught, 1 got through, 1 machine failed, 1 not run (1: no GPU)"
    assert told[1] == "2 honest controls: 1 accepted, 1 refused"
    assert told[-1] == "record: there.json"


def test_what_relies_on_isolation_is_not_let_in_without_it(corpus, team: RedTeam, monkeypatch):
    folder = corpus("attack_network.cpp", HONEST, "caught: correctness", "needs: isolation")
    lacking = tuple(Check(name=name, ran=name != "network", how="made up") for name in ("network", "files"))
    monkeypatch.setattr(team, "_isolation", lambda _: lacking)
    monkeypatch.setattr(redteam, "judge_version", None)
    (found,) = team.run(redteam_cases.load_cases(folder))
    assert (found.outcome, found.message) == (CaseOutcome.NOT_RUN, "no isolation (network)")


@pytest.mark.parametrize(
    ("kind", "capability", "said"),
    [
        ("cpu", (9, 0), "no GPU"),
        ("gpu", (8, 9), "no kernel starts early on this GPU"),
        ("gpu", (9, 0), "C++ runs"),
    ],
)
def test_what_starts_early_needs_a_gpu_that_can(corpus, team: RedTeam, monkeypatch, kind, capability, said):
    (case,) = redteam_cases.load_cases(
        corpus("attack_early.cpp", HONEST, "caught: correctness", "needs: early start")
    )
    monkeypatch.setattr(redteam.late_inputs, "compute_capability", lambda: capability)
    monkeypatch.setattr(redteam.languages, "get", lambda _: SimpleNamespace(missing=lambda _: "C++ runs"))
    assert team._lacks(case, SimpleNamespace(target=SimpleNamespace(kind=kind))) == said


@needs_compiler
def test_a_message_does_not_tell_where_the_project_lies(corpus, team: RedTeam, monkeypatch):
    told = f"no access to {team._project.root}/kernels/x.py, nor to /etc/x"
    monkeypatch.setattr(redteam, "classify_outcome", lambda *_: (redteam.CaseOutcome.CAUGHT, told))
    folder = corpus("attack_constant.cpp", "for (int64_t i = 0; i < n; ++i) y[i] = 0;", "caught: correctness")
    (result,) = team.run(redteam_cases.load_cases(folder))
    assert result.message == "no access to kernels/x.py, nor to /etc/x"


def test_a_candidate_that_breaks_the_grader_does_not_end_the_run(corpus, team: RedTeam, monkeypatch):
    def broken(*_: object) -> None:
        raise TypeError("oops")

    corpus("attack_one.cpp", HONEST, "caught: correctness")
    monkeypatch.setattr(redteam, "judge_version", broken)
    found = list(team.run(redteam_cases.load_cases(corpus("control_two.cpp"))))
    assert [result.outcome for result in found] == [CaseOutcome.MACHINE_FAILED] * 2
    assert found[0].message == "the gate itself broke: TypeError: oops"


def test_a_run_ends_where_its_process_has_lost_the_gpu(corpus, team: RedTeam, monkeypatch):
    def lose_gpu(*_: object) -> None:
        raise RuntimeError("CUDA error: device-side assert triggered\nCompile with DSA.")

    venue = redteam._Venue(hardware.read_target_page(team._project, "h200").target, interpreted=False)
    monkeypatch.setattr(team, "_venue", lambda _: venue)
    monkeypatch.setattr(team, "_lacks", lambda *_: "")
    monkeypatch.setattr(team, "_evaluate", lambda *_: lose_gpu())
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lose_gpu)
    cases = redteam_cases.load_cases(corpus("attack_one.cpp", HONEST, "caught: correctness"))
    with pytest.raises(MachineFailed, match=r"lost the GPU: CUDA error: device-side assert triggered\. Run"):
        list(team.run(cases))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert [result.outcome for result in team.run(cases)] == [CaseOutcome.MACHINE_FAILED]


def test_what_an_unfinished_record_knows(corpus, team: RedTeam, tmp_path: Path):
    corpus("attack_failed.cpp", HONEST, "caught: correctness")
    corpus("attack_slow.cpp", HONEST, "caught: decision", "against: control_plain.cpp")
    cases = redteam_cases.load_cases(corpus("control_plain.cpp"))
    outcomes = (CaseOutcome.MACHINE_FAILED, CaseOutcome.CAUGHT, CaseOutcome.ACCEPTED)
    made = [
        RedTeamResult.model_validate({**team._identity(c), "outcome": o})
        for c, o in zip(cases, outcomes, strict=True)
    ]
    path = tmp_path / "out.json"

    def known(*results: RedTeamResult) -> tuple[list[str], str]:
        unfinished.save_record(path, team.report(results, finished=False))
        found, why = team.earlier_results(path, cases)
        return [Path(result.file).stem for result in found], why

    assert team.earlier_results(path, cases) == ((), "")
    assert known(*made) == (
        ["attack_slow", "control_plain"],
        "",
    )  # results at which the machine failed are left out
    assert known() == ([], "")
    other = made[2].model_copy(update={"file": "square/cpp/control_gone.cpp"})
    assert known(made[1], other) == ([], "square/cpp/control_gone.cpp is not among the candidates")
    corpus("control_plain.cpp", HONEST + " ")
    changed = "its definition or the version that it is compared with has changed"
    assert known(made[1]) == ([], f"square/cpp/attack_slow.cpp, {changed}")


@needs_compiler
def test_nothing_outlives_a_run_that_is_killed(corpus, team: RedTeam):
    """Processes that outlive the run would load the machine during the run that resumes it."""
    corpus("attack_one.cpp", HONEST, "caught: correctness")
    folder = corpus("attack_two.cpp", HONEST, "caught: correctness")
    script = f"""
import sys
from pathlib import Path
from warpsmith.lab.machine import hardware
from warpsmith.lab.gate_tests import cases as redteam_cases
from warpsmith.lab.gate_tests.redteam import RedTeam
from warpsmith.project import Project
if __name__ == "__main__":
    root = Path({str(team._project.root)!r})
    here = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    team = RedTeam(here, hardware.read_target_page(here, "cpu").target, measure=lambda _: None)
    list(team.run(redteam_cases.load_cases(Path({str(folder)!r})), jobs=2))
"""
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        family = psutil.Process(parent.pid)
        deadline = time.monotonic() + 20
        while len(found := pool(family)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        parent.send_signal(signal.SIGKILL)
    assert len(found) == 2
    assert psutil.wait_procs(found, timeout=10)[1] == []


def test_a_judging_process_that_is_killed_is_the_machines_failure(corpus, team: RedTeam, monkeypatch):
    """For want of memory the system ends one of them."""
    corpus("attack_one.cpp", HONEST, "caught: correctness")
    cases = redteam_cases.load_cases(corpus("attack_two.cpp", HONEST, "caught: correctness"))
    monkeypatch.setattr(redteam, "_end_with_parent", os.abort)
    with pytest.raises(MachineFailed, match="want of memory; the same command with `--jobs 1`"):
        list(team.run(cases, jobs=2))


def pool(family: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [child for child in family.children() if "--multiprocessing-fork" in child.cmdline()]
    return []


def evaluated(verdict: Verdict, *steps: Step, trust: tuple[Check, ...] = (), correct: bool = True) -> Evaluation:
    graded = Correctness(calls=1, worst=0, relative_error=0)
    passed = WorkloadResult(workload="w", status=Status.PASSED, correctness=graded)
    decision = Decision(verdict=verdict, reason="why")
    results = (passed,) if correct else ()
    return Evaluation.model_construct(steps=steps, trust=trust, results=results, decision=decision)


def without_memory() -> Evaluation:
    refused = evaluated(Verdict.ROLLBACK, FAILED)
    failed = WorkloadResult(workload="*", status=Status.OUT_OF_MEMORY, message="none left")
    return refused.model_copy(update={"results": (failed,)})


UNTIMED = Step(name="timing", state="skipped", seconds=0)
FAILED = Step(name="probes", state="failed", seconds=0)


@pytest.mark.parametrize(
    ("said", "found", "expected"),
    [
        ({"kind": "control"}, evaluated(Verdict.ACCEPT_WITH_NOTE), CaseOutcome.ACCEPTED),
        ({"kind": "control"}, evaluated(Verdict.ROLLBACK, FAILED), CaseOutcome.REFUSED),
        ({"kind": "control"}, evaluated(Verdict.INVALID, UNTIMED), CaseOutcome.CORRECT),
        ({"kind": "control"}, evaluated(Verdict.INVALID, correct=False), CaseOutcome.MACHINE_FAILED),
        ({"caught": ("probes",)}, evaluated(Verdict.ROLLBACK, FAILED), CaseOutcome.CAUGHT),
        ({"caught": ("probes",)}, evaluated(Verdict.ROLLBACK), CaseOutcome.REFUSED_FOR_NOISE),
        ({"caught": ("probes", "decision")}, evaluated(Verdict.ROLLBACK), CaseOutcome.CAUGHT),
        ({"caught": ("probes",)}, evaluated(Verdict.ACCEPT), CaseOutcome.GOT_THROUGH),
        ({"caught": ("probes",)}, evaluated(Verdict.INVALID, UNTIMED), CaseOutcome.GOT_THROUGH),
        ({"caught": ("probes", "timing")}, evaluated(Verdict.INVALID, UNTIMED), CaseOutcome.NOT_RUN),
        ({"caught": ("probes",)}, evaluated(Verdict.INVALID, correct=False), CaseOutcome.MACHINE_FAILED),
        (
            {"caught": ("probes",), "status": ("MACHINE_FAILED",)},
            evaluated(Verdict.INVALID, correct=False),
            CaseOutcome.CAUGHT,
        ),
        ({"caught": ("probes",)}, without_memory(), CaseOutcome.MACHINE_FAILED),
        ({"caught": ("probes",), "status": ("OUT_OF_MEMORY",)}, without_memory(), CaseOutcome.CAUGHT),
        (
            {"caught": ("sanitizers",), "needs": ("sanitizer",)},
            evaluated(Verdict.ACCEPT, trust=(Check(name="memcheck", ran=False, how="no tool"),)),
            CaseOutcome.NOT_RUN,
        ),
        (
            {"caught": ("sanitizers",), "needs": ("sanitizer",)},
            evaluated(Verdict.ACCEPT, trust=(Check(name="memcheck", ran=True, how="0 errors"),)),
            CaseOutcome.GOT_THROUGH,
        ),
    ],
)
def test_when_the_gate_was_right(said: dict[str, object], found: Evaluation, expected: CaseOutcome):
    header = CaseHeader.model_validate({"family": "f", "how": "h", "kind": "attack", **said})
    assert redteam.classify_outcome(header, found)[0] is expected


def test_what_ships_is_broad_enough():
    kinds = [case.header.kind for case in SHIPPED]
    assert len({case.definition for case in SHIPPED}) >= 5
    assert len(SHIPPED) >= 60
    assert kinds.count("control") >= 18
    assert all(case.header.defence or case.header.source for case in SHIPPED if case.header.kind == "attack")


def test_every_candidate_is_named_once():
    # A header says `against` by name alone; and who reads a verdict should not have to guess.
    names = [(case.definition, case.language, case.path.stem) for case in SHIPPED]
    assert len(names) == len(set(names))


def wrong(result: RedTeamResult) -> str:
    """Describe how the outcome differs from the header; empty if it does not."""
    if result.outcome.wrong or result.outcome is CaseOutcome.MACHINE_FAILED:
        return f"{result.file}: {result.outcome}: {result.message}"
    if result.deviates:
        said = ", ".join((*result.header.caught, *result.header.status))
        return f"{result.file}: {result.status} at {result.step}, not {said}"
    return ""


@pytest.mark.timeout(600)  # a whole judgement
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("case", SHIPPED, ids=lambda case: case.name)
def test_the_gate_holds(case: RedTeamCase, team: RedTeam):
    (result,) = team.run([case])
    assert not wrong(result)
