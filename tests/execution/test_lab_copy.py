"""Copy of the lab: the same hash on both sides, and all that it needs to run without this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from warpsmith.execution import station
from warpsmith.execution.lab_copy import LabCopy
from warpsmith.lab.machine import provenance

PROBE = """
from warpsmith import project
from warpsmith.campaign.jobs import perform
from warpsmith.lab.machine import hardware, provenance
from warpsmith.packages import list_requirements
assert list_requirements("lab")
assert hardware.read_target_page(project.find_project(), "cpu").target.id == "cpu"
print(perform.__file__, provenance.lab_sha256())
"""


def test_the_copy_is_whole_and_runs_alone(tmp_path: Path) -> None:
    lab = LabCopy()
    assert len(lab.pack()) < 4e6
    folder = station._unpack(tmp_path / "lab", lab.pack())
    assert station._lab_sha256(folder) == lab.sha256
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "HOME": str(tmp_path)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # as a job has it
    command = [sys.executable, "-P", "-c", PROBE]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    path, judges = run.stdout.split()
    assert Path(path).is_relative_to(folder)
    assert judges == provenance.lab_sha256()
    assert station._lab_sha256(folder) == lab.sha256
    (folder / "warpsmith" / "extra.py").write_text("")
    assert station._lab_sha256(folder) != lab.sha256
