"""DEFINE: check the definition, measure the machine, source the figures, and only then start the campaign."""

from __future__ import annotations

import secrets
from math import prod

from warpsmith import languages
from warpsmith.campaign import start
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.evaluation import COMPILED, Status
from warpsmith.core.progress import Tell
from warpsmith.errors import BadDefinition, MachineLacks, Misuse
from warpsmith.interchange.create import check_operator_name
from warpsmith.lab.calibration import measurement
from warpsmith.lab.grading import correctness
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.timing import energy
from warpsmith.project import Project


def define(
    project: Project,
    op: str,
    target: str,
    language: str,
    tell: Tell = lambda _: None,
    **settings: object,
) -> Campaign:
    """Start a campaign on a definition that holds, with this machine's ceilings and the target's figures.

    Args:
        project: where.
        op: the operator.
        target: a hardware page's id.
        language: the language that it starts in.
        tell: takes one line about what is going on.
        settings: further fields of the manifest.

    Raises:
        BadDefinition: it does not import, its reference fails, or misses its own tolerance.
        Misuse: no operator's name, an unknown target, language or setting, or a language that can do nothing on
            such a target.
        MachineLacks: the machine at hand is not such a device, lacks a compiler, or does not count the energy that
            is the objective.
    """
    check_operator_name(op)
    page = hardware.read_hardware_page(project, target)
    _runs(language, page)
    if settings.get("objective") == "energy" and (lacks := energy.missing_energy_counter(page.target)):
        raise MachineLacks(lacks)
    tell("the definition and its reference")
    file = definition_file.load_definition(project.definition_path(op))
    _fitting_peers(file, settings.get("peers", ()))
    check_reference(file)
    measurement.ensure_measurement(project, page.target, tell)
    return start.start_campaign(project, op, target, language, figures=manifest_figures(page), **settings)


def check_reference(file: DefinitionFile) -> None:
    """Run the reference at the smallest workload: it must hold its own bound in its own precision.

    Raises:
        BadDefinition: it fails, or it does not.
    """
    workload = min(file.definition.workloads, key=lambda w: prod(file.definition.sizes(w).values()))
    inputs = Inputs(file, workload, secrets.randbits(62), "cpu").draw()
    try:
        grade = correctness.grade_reference(
            file, workload, inputs, correctness.compute_truth(file, workload, inputs)
        )
    except BadDefinition:
        raise
    except Exception as error:
        what = " ".join(str(error).split())[:300]
        raise BadDefinition(
            f"{file.path}: reference() fails at {workload.name}: {type(error).__name__}: {what}; mend it."
        ) from error
    if grade.status is not Status.PASSED:
        raise BadDefinition(
            f"{file.path}: the reference misses its own bound at {workload.name} ({grade.detail});"
            " correct the tolerance, its reduction length above all."
        )


def _runs(language: str, page: HardwarePage) -> None:
    found, kind = languages.get(language), page.target.kind
    lacks = found.missing(kind) if kind not in found.targets else None  # what a GPU lacks comes later
    if lacks:
        raise Misuse(f"{language} cannot run on `{page.target.id}`: {lacks}")


def _fitting_peers(file: DefinitionFile, names: object) -> None:
    """Peers that are there and that a judgement can hold; a setting of another type the manifest refuses."""
    known, wanted = (COMPILED, *file.peers), names if isinstance(names, list | tuple) else ()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise Misuse(f"{file.path} has no peer `{unknown[0]}`; there are: {', '.join(known)}, none.")
    peers.refuse_consuming_peers(file, wanted)


def manifest_figures(page: HardwarePage) -> dict[str, str]:
    """Every known figure of a target with its source, as manifests keep them."""
    known = [name for name, figure in page.target.figures.items() if figure.value != "UNKNOWN"]
    return {name: hardware.sourced_figure(page, name).text for name in known}
