"""Judgements for a device that is not here."""

from __future__ import annotations

import pytest
from port_versions import DEFINITION

from warpsmith import project as projects
from warpsmith.core.port.check import PortCheck
from warpsmith.lab.gate.request import Candidate
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator import definition_file
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.port.judge import PortJudgement, judge_port


@pytest.fixture(scope="module")
def host():
    with WorkerHost("cpu", interpret=True) as host:
        yield host


@pytest.fixture
def ported_project(tmp_path):
    folders = (tmp_path / name for name in ("kernels", "devlog", "knowledge"))
    project = projects.Project(tmp_path, *folders)
    project.definition_path("double").parent.mkdir(parents=True)
    project.definition_path("double").write_text(DEFINITION)
    return project


@pytest.fixture
def judged(ported_project, host):
    """`judged(source, before)`: the verdict on a version for an MI300X."""

    def make(source: str, before: PortCheck | None = None):
        version = ported_project.kernels / "double" / "triton" / "v1.py"
        version.parent.mkdir(exist_ok=True)
        version.write_text(source.replace("WARPS", "4"))
        judgement = PortJudgement(
            project=ported_project,
            file=definition_file.load_definition(ported_project.definition_path("double")),
            candidate=Candidate(version, "triton", "v1"),
            page=hardware.read_target_page(ported_project, "mi300x"),
            before=before,
        )
        return judge_port(judgement, host)

    return make
