"""Examination of the machine of a context: connection, Python, packages, lab, clock, and the doctor's checks."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from warpsmith import packages
from warpsmith.core.text import Tell
from warpsmith.errors import MachineFailed
from warpsmith.execution.bundle import pack_job
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.job import Job
from warpsmith.execution.remote import SKEW_SECONDS, Probe, RemoteMachine
from warpsmith.lab.doctor.models import KINDS, DoctorGroup, DoctorReport, DoctorRow
from warpsmith.project import Project


def examine_context(project: Project, entry: NamedContext, tell: Tell = lambda _: None) -> DoctorReport:
    """Examine a machine as `doctor` examines this one; the lab is brought there if it can run.

    Raises:
        MachineLacks: it cannot be reached, or has no Python that the lab runs on.
    """
    machine = RemoteMachine(entry, tell, root=project.root)
    required = [*packages.list_requirements(""), *packages.list_requirements("lab")]
    probe = machine.probe([requirement.package for requirement in required])
    rows = list(_connection_rows(entry, probe))
    groups = [DoctorGroup(name="context", rows=tuple(rows))]
    if not any(row.stops for row in rows):
        report = machine.run(pack_job(project, Job(kind="examine"))).outcome.doctor
        if report is None:
            raise MachineFailed(f"{entry.name}: the outcome is no examination; run the command again.")
        groups += report.groups
    return DoctorReport.of(groups)


def _connection_rows(entry: NamedContext, probe: Probe) -> Iterator[DoctorRow]:
    context = entry.context
    yield DoctorRow(name="host", state="ok", found=f"{probe.host} by {context.way}")
    yield DoctorRow(name="Python", state="ok", found=f"{probe.python} at {probe.executable}")
    missing = {extra: _missing_packages(probe, extra) for extra in ("", "lab")}
    if base := missing[""]:
        arguments = shlex.join(f"{package}{bounds}" for package, bounds in (base | missing["lab"]).items())
        yield DoctorRow(
            name="dependencies",
            state="missing",
            found=f"not installed: {', '.join(base)}",
            means="nothing of the lab runs there",
            fix=f"Run `{probe.executable} -m pip install {arguments}` on {probe.host}.",
            stops=KINDS,
        )
    if not probe.writable:
        yield DoctorRow(
            name="folder",
            state="missing",
            found=f"{probe.workdir} cannot be written",
            fix="Choose another folder with `warpsmith context add --workdir`.",
            stops=KINDS,
        )
    yield DoctorRow(
        name="lab", state="ok", found="there" if probe.lab else "not there yet; the first job brings it"
    )
    skew = probe.time - time.time()
    if abs(skew) > SKEW_SECONDS:
        means = "records have this machine's time"
        yield DoctorRow(name="clock", state="gap", found=f"{skew:+.0f} s off this machine's", means=means)


def _missing_packages(probe: Probe, extra: str) -> dict[str, str]:
    """Return the bounds of the packages of an extra that are not installed there, by name."""
    requirements = packages.list_requirements(extra)
    return {each.package: each.bounds for each in requirements if probe.packages.get(each.package) is None}
