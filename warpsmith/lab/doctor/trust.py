"""The doctor's checks of what a verdict made here could not hold: the walls and the sanitizers."""

from __future__ import annotations

import json
import sys
import tempfile
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

_SECONDS = 20.0
_REDUCED = "verdicts say `trust reduced`"
_CHECKS = TypeAdapter(tuple[trust.Check, ...])


def check_walls(here: Survey) -> Iterator[DoctorRow]:
    """The sandbox's walls, each tried in a process that is shut in and ends."""
    found = _test_walls()
    if held := ", ".join(check.name for check in found if check.ran):
        yield DoctorRow(name="sandbox", state="ok", found=held)
    for check in trust.missing(found):
        means = f"{_REDUCED}: judge only what you would run"
        yield DoctorRow(name=f"sandbox, {check.name}", state="missing", found=check.how, means=means)


def check_sanitizer(here: Survey) -> Iterator[DoctorRow]:
    """compute-sanitizer, which runs what would be accepted on a GPU once more."""
    path = sanitizers.find_compute_sanitizer()
    means = f"{_REDUCED}: nothing looks for races and for reads of memory that nobody wrote"
    if here.gpu is None:
        yield DoctorRow(name="sanitizers", state="gap", found="they need an NVIDIA GPU", means=means)
    elif path is None:
        fix = "Install the CUDA toolkit's compute-sanitizer; it belongs on PATH."
        yield DoctorRow(name="sanitizers", state="missing", found="no compute-sanitizer", means=means, fix=fix)
    else:
        told = ask_version("compute-sanitizer", path)
        state = "ok" if told.works else "missing"
        yield DoctorRow(name="sanitizers", state=state, found=told.says, means="" if told.works else means)


def _test_walls() -> tuple[trust.Check, ...]:
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        done = tool.run_tool([sys.executable, "-P", "-m", __name__, scratch], _SECONDS)
    if done.code:
        raise ValueError(f"the process that tries the walls ended with {done.code}: {done.output[-200:]}")
    return _CHECKS.validate_json(done.output)


if __name__ == "__main__":
    print(json.dumps([check.model_dump() for check in sandbox.enter_sandbox(Path(sys.argv[1]))]))  # noqa: T201
