"""The doctor's checks of what a verdict made here could not hold: the walls and the sanitizers."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter

from warpsmith.core import trust
from warpsmith.lab.doctor.models import Row
from warpsmith.lab.doctor.survey import Here
from warpsmith.lab.doctor.tools import version
from warpsmith.lab.instrumented import sanitizers
from warpsmith.lab.sandbox import walls as sandbox
from warpsmith.languages.shared import tool

_SECONDS = 20.0
_REDUCED = "verdicts say `trust reduced`"
_CHECKS = TypeAdapter(tuple[trust.Check, ...])


def walls(here: Here) -> Iterator[Row]:
    """The sandbox's walls, each tried in a process that is shut in and ends."""
    found = _tried()
    if held := ", ".join(check.name for check in found if check.ran):
        yield Row(name="sandbox", state="ok", found=held)
    for check in trust.missing(found):
        means = f"{_REDUCED}: judge only what you would run"
        yield Row(name=f"sandbox, {check.name}", state="missing", found=check.how, means=means)


def sanitizer(here: Here) -> Iterator[Row]:
    """compute-sanitizer, which runs what would be accepted on a GPU once more."""
    path = sanitizers.find()
    means = f"{_REDUCED}: nothing looks for races and for reads of memory that nobody wrote"
    if here.gpu is None:
        yield Row(name="sanitizers", state="gap", found="they need an NVIDIA GPU", means=means)
    elif path is None:
        fix = "Install the CUDA toolkit's compute-sanitizer; it belongs on PATH."
        yield Row(name="sanitizers", state="missing", found="no compute-sanitizer", means=means, fix=fix)
    else:
        told = version("compute-sanitizer", path)
        state = "ok" if told.works else "missing"
        yield Row(name="sanitizers", state=state, found=told.says, means="" if told.works else means)


def _tried() -> tuple[trust.Check, ...]:
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        done = tool.run([sys.executable, "-P", "-m", __name__, scratch], _SECONDS)
    if done.code:
        raise ValueError(f"the process that tries the walls ended with {done.code}: {done.output[-200:]}")
    return _CHECKS.validate_json(done.output)


if __name__ == "__main__":
    print(json.dumps([check.model_dump() for check in sandbox.enter(Path(sys.argv[1]))]))  # noqa: T201
