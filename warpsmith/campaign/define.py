"""Start of a campaign: check the definition, measure the machine, look up the target's figures."""

from __future__ import annotations

from warpsmith import languages
from warpsmith.campaign import experiment as experiments
from warpsmith.campaign import start
from warpsmith.campaign.earlier_work import EarlierWork
from warpsmith.campaign.history import closing
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.jobs import send
from warpsmith.core.evaluation import COMPILED
from warpsmith.core.text import Tell
from warpsmith.errors import BadDefinition, MachineLacks, Misuse
from warpsmith.interchange.create import check_operator_name
from warpsmith.lab.calibration import measurement
from warpsmith.lab.machine import device_lease, hardware, identity
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.proof import definition_proof
from warpsmith.lab.proof.definition_proof import DefinitionProof
from warpsmith.lab.timing import energy
from warpsmith.languages import support
from warpsmith.ledger.git import branch_obstacle
from warpsmith.port.obstacle import port_obstacle
from warpsmith.project import Project


def define(
    project: Project,
    op: str,
    target: str,
    language: str,
    tell: Tell = lambda _: None,
    *,
    again: bool = True,
    git: str | None = None,
    from_scratch: bool = False,
    experiment: bool = False,
    context: str | None = None,
    port: bool = False,
    **settings: object,
) -> Campaign:
    """Start a campaign on a checked definition, with the machine's ceilings and the target's figures.

    Args:
        project: the project.
        op: the operator.
        target: id of a hardware page.
        language: language of the first version.
        tell: takes one line about each phase.
        again: False to refuse while another campaign of the operator and target is open.
        git: `branch`, `none`, or None for a branch where the project is in a git checkout.
        from_scratch: True for a new version as the baseline, and earlier work hidden from agents.
        experiment: True to withhold half of the knowledge's entries, drawn at random, from the campaign's agents.
        context: machine that measures, by its name among the contexts; None for this one.
        port: True for a port campaign, which needs no device of the target. A campaign for AMD's devices is one in
            any case, since nothing is timed on them.
        settings: further fields of the manifest.

    Raises:
        BadDefinition: the definition does not import, its reference fails or misses its own tolerance, or a wrong
            kernel would pass.
        Misuse: the operator's name, target, language or a setting is not valid, or the language cannot run on such
            a target.
        MachineLacks: the machine is not such a device, cannot be reached, lacks a compiler, or cannot
            measure the energy that is the objective.
    """
    check_operator_name(op)
    page = hardware.read_target_page(project, target)
    port = port or (context is None and page.target.vendor == "AMD")
    if port:
        require_port(language, page, str(settings.get("objective")), context)
    elif context is None:
        require_machine(language, page, str(settings.get("objective")))
    if not again:
        _refuse_second(project, op, target)
    tell("the definition and its reference")
    file = definition_file.load_definition(project.definition_path(op))
    _require_peers(file, settings.get("peers", ()))
    if port:
        _require_interpreted(language, file, tell)
        settings["port"], settings["minimum_gain"] = True, None
    require_proven(file, tell)
    if context is None and not port:
        _measure_device(project, language, page, tell)
    elif context is not None:  # no port campaign has one
        settings["context"] = context
        manifest = start.campaign_manifest("none", op, target, language, {}, settings)
        send.measure_in_context(project, manifest, tell)
    settings["git"] = git or default_git(project, tell)
    builds_on = not from_scratch and EarlierWork.of_operator(project, op).has_language(language)
    settings["earlier_work"] = "visible" if builds_on else "hidden"
    if experiment:
        settings["withheld"] = experiments.draw_withheld(project, target)
    return start.start_campaign(project, op, target, language, figures=manifest_figures(page), **settings)


def require_port(language: str, page: HardwarePage, objective: str, context: str | None = None) -> None:
    """Check that a port campaign is possible, and needed.

    Raises:
        Misuse: there is a device to judge on, or energy is the objective.
        MachineLacks: no interpreter or compiler here judges the language's versions for the target.
    """
    target = page.target
    if target.kind == "cpu" or context is not None:
        where = "this machine is one" if target.kind == "cpu" else f"{context} has a device"
        raise Misuse(
            f"A port campaign is for a target that is not here, and `{target.id}` is: {where}; omit --port."
        )
    if _has_device(page):
        raise Misuse(f"This machine has a `{target.id}`, which times versions; omit --port.")
    if objective == "energy":
        raise Misuse("A port campaign measures no energy; omit --objective.")
    if obstacle := port_obstacle(language, page):
        raise MachineLacks(obstacle)


def _has_device(page: HardwarePage) -> bool:
    gpu = identity.visible_gpu()
    return gpu is not None and identity.matches_target(page.target, gpu.name)


def _require_interpreted(language: str, file: DefinitionFile, tell: Tell) -> None:
    """Tell at which representative workloads the interpreter proves nothing; raises MachineLacks if at all."""
    spec, chosen = languages.get(language), file.definition.select("representative")
    distrusted = [reason for workload in chosen if (reason := spec.distrust(file.definition, workload))]
    if len(distrusted) == len(chosen):
        raise MachineLacks(
            f"{distrusted[0]} That holds at each representative workload of {file.definition.name}, so a port"
            " campaign would check nothing; give the definition one of another type."
        )
    for reason in distrusted:
        tell(f"left out: {reason}")


def _measure_device(project: Project, language: str, page: HardwarePage, tell: Tell) -> None:
    """Measure this machine as a device of the target, if it was not measured yet.

    Raises:
        MachineLacks: it is no such device; the message names --port if a port campaign is possible.
    """
    try:
        with device_lease.lease_device(page.target, tell):
            measurement.ensure_measurement(project, page.target, tell)
    except MachineLacks as error:
        if _has_device(page) or page.target.kind == "cpu" or port_obstacle(language, page):
            raise
        raise MachineLacks(
            f"{error} Without one, --port opens a port campaign: versions are checked by interpreter and compiler,"
            " and speed is not judged."
        ) from error


def default_git(project: Project, tell: Tell = lambda _: None) -> str:
    """Return `branch` if git can keep the accepted rounds of this project, else `none`."""
    reason = branch_obstacle(project.root, (project.kernels, project.devlog))
    if reason:
        tell(f"accepted rounds are not committed: {reason}")
    return "none" if reason else "branch"


def _refuse_second(project: Project, op: str, target: str) -> None:
    if opened := closing.list_open_campaigns(project, op, target):
        name = opened[0].name
        raise Misuse(
            f"{name} is open already: go on with `warpsmith next --campaign {name}`, end it with"
            f' `warpsmith abandon {name} --reason "WHY"`, or start another one beside it with `--again`.'
        )


def check_definition(
    project: Project, op: str, tell: Tell = lambda _: None, seconds: float = definition_proof.SECONDS
) -> DefinitionProof:
    """Prove an operator's definition; `warpsmith check` prints the result.

    Raises:
        MissingInput: there is no definition.
        BadDefinition: it does not import, or its reference fails or misses its own bound.
    """
    check_operator_name(op)
    return definition_proof.prove_definition(
        definition_file.load_definition(project.definition_path(op)), tell, seconds
    )


def require_proven(file: DefinitionFile, tell: Tell = lambda _: None) -> None:
    """Raise BadDefinition if the reference misses its own bound, or if a wrong kernel would pass."""
    if refusal := definition_proof.describe_refusal(file, definition_proof.prove_definition(file, tell)):
        raise BadDefinition(refusal)


def require_machine(language: str, page: HardwarePage, objective: str) -> None:
    """Check that a language can run here on a target, and that the objective can be measured.

    Raises:
        Misuse: the language cannot run on such a target.
        MachineLacks: energy is the objective and cannot be read.
    """
    _require_language(language, page)
    if objective == "energy" and (lacks := energy.missing_energy_counter(page.target)):
        raise MachineLacks(lacks)


def _require_language(language: str, page: HardwarePage) -> None:
    spec, target = languages.get(language), page.target
    interpreted = target.kind not in spec.targets and spec.missing(target.kind) is None
    architecture = support.architecture_of(target)
    if not interpreted and not support.runs_on(spec, architecture):  # judging checks the rest
        nearest = support.describe_nearest(spec, architecture, languages.by_preference())
        raise Misuse(f"`{target.id}`: {nearest}")


def _require_peers(file: DefinitionFile, names: object) -> None:
    """Raise Misuse for peers that do not exist or that a judgement cannot run; the manifest checks the type."""
    available, peer_names = (COMPILED, *file.peers), names if isinstance(names, list | tuple) else ()
    unknown = [name for name in peer_names if name not in available]
    if unknown:
        raise Misuse(f"{file.path} has no peer `{unknown[0]}`; there are: {', '.join(available)}, none.")
    peers.refuse_race_peers(file, peer_names)


def manifest_figures(page: HardwarePage) -> dict[str, str]:
    """List every known figure of a target with its source, in the manifest's format."""
    names = [name for name, figure in page.target.figures.items() if figure.value != "UNKNOWN"]
    return {name: hardware.sourced_figure(page, name).text for name in names}
