"""Red team models: rules for headers, and totals of a report that match its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.core.hardware import Machine
from warpsmith.lab.gate_tests.false_win_models import FalseWins
from warpsmith.lab.gate_tests.models import (
    CaseHeader,
    CaseOutcome,
    RedTeamReport,
    RedTeamResult,
    count_outcomes,
    parse_header,
)

ATTACK = """\
// class: pointer cache
// kind: attack
// how: keeps the result of the first call
//   and returns it again
// caught: correctness, probes
// status: INCORRECT_NUMERICAL, CACHED_RESULT
// needs: gpu, isolation
// source: KernelBench: outputs zeroed in place
#include <cmath>
// class: not in the header
"""
HERE = Machine(id="cpu-0", target="cpu", device="a", processor="a", libraries={})


def result(outcome: CaseOutcome, kind: str = "attack", **changes: object) -> RedTeamResult:
    steps = {"caught": ("probes",)} if kind == "attack" else {}
    said = CaseHeader.model_validate({"family": "f", "kind": kind, "how": "h", **steps})
    about = {"definition": "d", "file": "d/cpp/x.cpp", "sha256": "0" * 64, "definition_sha256": "1" * 64}
    return RedTeamResult.model_validate({**about, "header": said, "outcome": outcome, **changes})


def report(*results: RedTeamResult, **changes: object) -> RedTeamReport:
    totals = {"attacks": count_outcomes(results, "attack"), "controls": count_outcomes(results, "control")}
    about = {"gate_version": 2, "lab_sha256": "2" * 64, "measured": "2026-01-01 00:00", "machine": HERE}
    return RedTeamReport.model_validate({**about, "results": results, **totals, **changes})


def test_a_header_is_the_leading_comment():
    found = parse_header(ATTACK)
    assert (found.family, found.kind, found.source) == (
        "pointer cache",
        "attack",
        "KernelBench: outputs zeroed in place",
    )
    assert found.how.startswith("keeps the result of the first call")
    assert found.caught == ("correctness", "probes")
    assert found.status == ("INCORRECT_NUMERICAL", "CACHED_RESULT")
    assert found.needs == ("gpu", "isolation")
    assert parse_header(ATTACK.replace("// ", "# ").replace("#include", "import x")) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("int x;", "does not start"),
        ("// Softmax, as it is", "does not start"),
        (ATTACK.replace("// caught: correctness, probes\n", ""), "must name in `caught`"),
        (ATTACK.replace("correctness, probes", "correctness, luck"), "caught"),
        (ATTACK.replace("attack", "control"), "neither `caught` nor `status`"),
        (ATTACK.replace("// kind", "// class"), "`class` is repeated"),
        (ATTACK.replace("source", "origin"), "origin"),
        (ATTACK.replace("gpu", "luck"), "needs"),
    ],
)
def test_a_wrong_header_is_refused(text: str, why: str):
    with pytest.raises(ValueError, match=why):
        parse_header(text)


ENDED_EARLY = "redteam-h200.json"
"""Record of a run that ended before its last eleven controls, as docs/redteam.md says."""


def test_what_was_wrong():
    good, bad = result(CaseOutcome.CAUGHT, step="probes"), result(CaseOutcome.GOT_THROUGH)
    refused, failed = result(CaseOutcome.REFUSED, "control"), result(CaseOutcome.MACHINE_FAILED)
    found = report(good, bad, refused, failed)
    assert found.wrong == (bad, refused)
    assert found.failed == (failed,)
    assert (found.attacks, found.controls) == (
        {CaseOutcome.CAUGHT: 1, CaseOutcome.GOT_THROUGH: 1, CaseOutcome.MACHINE_FAILED: 1},
        {CaseOutcome.REFUSED: 1},
    )
    assert RedTeamReport.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(("model", "name"), [(RedTeamReport, "redteam-*.json"), (FalseWins, "aa-*.json")])
def test_the_records_that_pages_cite_are_finished(model: type[RedTeamReport | FalseWins], name: str):
    paths = sorted((Path(__file__).parents[3] / "benchmarks" / "records").glob(name))
    assert paths
    for path in paths:
        assert model.model_validate_json(path.read_text()).finished or path.name == ENDED_EARLY, path


def test_the_run_that_ended_early_was_made_whole_by_another():
    folder = Path(__file__).parents[3] / "benchmarks" / "records"
    early, rest = (
        RedTeamReport.model_validate_json((folder / name).read_text())
        for name in (ENDED_EARLY, "redteam-h200-controls.json")
    )
    assert (early.attacks, early.controls) == ({CaseOutcome.CAUGHT: 239}, {CaseOutcome.ACCEPTED: 36})
    later = {case.file for case in rest.results if case.header.kind == "control"} - {
        case.file for case in early.results
    }
    assert len(later) == 11
    assert not rest.wrong


def test_caught_otherwise_than_expected():
    as_said = result(CaseOutcome.CAUGHT, step="probes")
    elsewhere = result(CaseOutcome.CAUGHT, step="correctness")
    said = as_said.header.model_copy(update={"status": ("CACHED_RESULT",)})
    otherwise = as_said.model_copy(update={"header": said, "status": "LEFT_BEHIND"})
    assert report(as_said, elsewhere, otherwise).deviations == (elsewhere, otherwise)


def test_totals_that_do_not_add_up():
    with pytest.raises(ValueError, match="totals"):
        report(result(CaseOutcome.CAUGHT), attacks={CaseOutcome.CAUGHT: 2})


def test_a_wrong_result_by_another_name_is_as_expected():
    found = result(CaseOutcome.CAUGHT, step="probes")
    said = found.header.model_copy(update={"status": ("INCORRECT_NUMERICAL",)})
    assert not found.model_copy(update={"header": said, "status": "CACHED_RESULT"}).deviates
    assert found.model_copy(update={"header": said, "status": "TIMEOUT"}).deviates
    ended = {"header": said, "status": "RUNTIME_ERROR"}
    assert found.model_copy(update=ended).deviates
    assert not found.model_copy(update={**ended, "message": "the worker was killed by SIGSEGV"}).deviates
