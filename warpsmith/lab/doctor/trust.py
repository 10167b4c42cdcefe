"""Doctor's checks of the protections behind a verdict: the sandbox's walls and the sanitizers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter

from warpsmith.core import trust
from warpsmith.lab.doctor.models import DoctorRow
from warpsmith.lab.doctor.survey import Survey
from warpsmith.lab.doctor.tools import ask_version
from warpsmith.lab.instrumented import sanitizers
from warpsmith.lab.sandbox import walls as sandbox
from warpsmith.languages.shared import tool
from warpsmith.temporary import TemporaryFolder

_SECONDS = 20.0
_REDUCED = "verdicts say `trust reduced`"
_CHECKS = TypeAdapter(tuple[trust.Check, ...])


def check_walls(survey: Survey) -> Iterator[DoctorRow]:
    """Report the sandbox's walls, each tested in a process that enters the sandbox and ends."""
    checks = _test_walls()
    if holding := ", ".join(check.name for check in checks if check.ran):
        yield DoctorRow(name="sandbox", state="ok", found=holding)
    for check in trust.missing(checks):
        means = f"{_REDUCED}: judge only code that you would run yourself"
        yield DoctorRow(name=f"sandbox, {check.name}", state="missing", found=check.how, means=means)


def check_sanitizer(survey: Survey) -> Iterator[DoctorRow]:
    """Report compute-sanitizer, which runs once more every version that a GPU gate would accept."""
    path = sanitizers.find_compute_sanitizer()
    means = f"{_REDUCED}: nothing checks for races and for reads of unwritten memory"
    if survey.gpu is None:
        yield DoctorRow(name="sanitizers", state="gap", found="the sanitizers need an NVIDIA GPU", means=means)
    elif path is None:
        fix = "Install the CUDA toolkit's compute-sanitizer and put it on PATH."
        yield DoctorRow(name="sanitizers", state="missing", found="no compute-sanitizer", means=means, fix=fix)
    else:
        program = ask_version("compute-sanitizer", path)
        state = "ok" if program.works else "missing"
        yield DoctorRow(name="sanitizers", state=state, found=program.report, means="" if program.works else means)


def _test_walls() -> tuple[trust.Check, ...]:
    with TemporaryFolder() as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        result = tool.run_tool([sys.executable, "-P", "-m", __name__, scratch], _SECONDS)
    if result.code:
        raise ValueError(f"the process that tests the walls ended with code {result.code}: {result.output[-200:]}")
    return _CHECKS.validate_json(result.output)


if __name__ == "__main__":
    print(json.dumps([check.model_dump() for check in sandbox.enter_sandbox(Path(sys.argv[1]))]))  # noqa: T201
