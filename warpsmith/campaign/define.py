"""Start of a campaign: check the definition, measure the machine, look up the target's figures."""

from __future__ import annotations

import secrets
from math import prod

from warpsmith import languages
from warpsmith.campaign import start
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.evaluation import COMPILED, Status
from warpsmith.core.text import Tell
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
    """Start a campaign on a checked definition, with this machine's ceilings and the target's figures.

    Args:
        project: the project.
        op: the operator.
        target: id of a hardware page.
        language: language of the first version.
        tell: takes one line about each phase.
        settings: further fields of the manifest.

    Raises:
        BadDefinition: the definition does not import, or its reference fails or misses its own tolerance.
        Misuse: the operator's name, target, language or a setting is not valid, or the language cannot run on such
            a target.
        MachineLacks: this machine is not such a device, lacks a compiler, or cannot measure the energy that is the
            objective.
    """
    check_operator_name(op)
    page = hardware.read_target_page(project, target)
    _require_language(language, page)
    if settings.get("objective") == "energy" and (lacks := energy.missing_energy_counter(page.target)):
        raise MachineLacks(lacks)
    tell("the definition and its reference")
    file = definition_file.load_definition(project.definition_path(op))
    _require_peers(file, settings.get("peers", ()))
    check_reference(file)
    measurement.ensure_measurement(project, page.target, tell)
    return start.start_campaign(project, op, target, language, figures=manifest_figures(page), **settings)


def check_reference(file: DefinitionFile) -> None:
    """Run the reference at the smallest workload: it must stay within its own bound, in its own precision.

    Raises:
        BadDefinition: it fails, or exceeds the bound.
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
        message = " ".join(str(error).split())[:300]
        raise BadDefinition(
            f"{file.path}: reference() fails at {workload.name}: {type(error).__name__}: {message}; correct it."
        ) from error
    if grade.status is not Status.PASSED:
        raise BadDefinition(
            f"{file.path}: the reference misses its own bound at {workload.name} ({grade.detail});"
            " correct the tolerance, its reduction length above all."
        )


def _require_language(language: str, page: HardwarePage) -> None:
    spec, kind = languages.get(language), page.target.kind
    lacks = spec.missing(kind) if kind not in spec.targets else None  # judging checks the rest
    if lacks:
        raise Misuse(f"{language} cannot run on `{page.target.id}`: {lacks}")


def _require_peers(file: DefinitionFile, names: object) -> None:
    """Raise Misuse for peers that do not exist or that a judgement cannot run; the manifest checks the type."""
    available, peer_names = (COMPILED, *file.peers), names if isinstance(names, list | tuple) else ()
    unknown = [name for name in peer_names if name not in available]
    if unknown:
        raise Misuse(f"{file.path} has no peer `{unknown[0]}`; there are: {', '.join(available)}, none.")
    peers.refuse_consuming_peers(file, peer_names)


def manifest_figures(page: HardwarePage) -> dict[str, str]:
    """List every known figure of a target with its source, in the manifest's format."""
    names = [name for name, figure in page.target.figures.items() if figure.value != "UNKNOWN"]
    return {name: hardware.sourced_figure(page, name).text for name in names}
