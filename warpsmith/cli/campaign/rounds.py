"""Commands of the loop, from `warpsmith start` to `learn`, and its repair: `resume`, `restart`, `strike`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from warpsmith.cli import console
from warpsmith.cli.options import (
    CampaignName,
    Context,
    Experiment,
    FromScratch,
    Json,
    MinimumGain,
    MinimumGainPer,
    Port,
)
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.campaign.history.store import Campaign
    from warpsmith.campaign.rounds.due_phase import DuePhase
    from warpsmith.campaign.status import CampaignStatus
    from warpsmith.core.base import Model
    from warpsmith.core.campaign import Manifest, Tip

M = TypeVar("M", bound="Model")


class LearnRequest(NamedTuple):
    """Change to the knowledge that the options of `learn` request."""

    action: str
    """`add`, `refine`, `refute` or `nothing`."""
    entry: str | None
    """Entry to refine or refute."""
    text: str
    """Page, note or reason."""


def start_command(
    op: Annotated[str, typer.Argument(help="Operator; its definition must exist.")],
    target: Annotated[str, typer.Option(help="Device kind: the id of a hardware page.")],
    language: Annotated[str, typer.Option(help="Language of the first version.")],
    context: Context = None,
    objective: Annotated[
        Literal["time", "energy"], typer.Option(help="Quantity to reduce: time, or energy in joules a call.")
    ] = "time",
    shapes: Annotated[
        Literal["representative", "full"], typer.Option(help="Workloads that each round times.")
    ] = "representative",
    git: Annotated[
        Literal["none", "branch"] | None,
        typer.Option(help="branch: commit each accepted round to a branch; the default in a git checkout."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Start although a campaign of the operator and target is open.")
    ] = False,
    performance_target: Annotated[
        float | None,
        typer.Option(min=0.01, max=1, help="Share of the ceiling at which the campaign stops; by default 0.9."),
    ] = None,
    max_iterations: Annotated[
        int | None, typer.Option(help="Number of rounds after which the campaign stops.")
    ] = None,
    minimum_gain: MinimumGain = None,
    minimum_gain_per: MinimumGainPer = "round",
    from_scratch: FromScratch = False,
    experiment: Experiment = False,
    port: Port = False,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="Peer that races at the baseline and at the end; repeatable. `none`: the reference only."
        ),
    ] = None,
    regression: Annotated[float, typer.Option(help="Slowdown of one workload that rolls a version back.")] = 0.05,
    small_gain: Annotated[float, typer.Option(help="Gain below which the timing is repeated.")] = 0.02,
    max_repeats: Annotated[int, typer.Option(help="Repetitions after which a small gain is ambiguous.")] = 3,
) -> None:
    """Start a campaign: one operator on one target. First the definition is proven, as `warpsmith check` does.

    Without a device of the target, --port opens a port campaign; for AMD's devices every campaign is one. Its
    versions are checked by interpreter and compiler, verdicts are UNTIMED, and nothing is accepted for speed. Exit
    code 4: there is no such device, or no compiler here makes code for it.
    """
    from warpsmith.campaign import define
    from warpsmith.campaign.history import forecast
    from warpsmith.execution import contexts
    from warpsmith.project import find_project

    project = find_project()
    settings: dict[str, Any] = {"peers": () if peer == ["none"] else peer} if peer else {}
    with console.progress() as tell:
        campaign = define.define(
            project,
            op,
            target,
            language,
            tell,
            again=again,
            objective=objective,
            shapes=shapes,
            git=git,
            performance_target=performance_target,
            max_iterations=max_iterations,
            minimum_gain=forecast.default_minimum_gain(minimum_gain, max_iterations, minimum_gain_per),
            minimum_gain_per=minimum_gain_per,
            from_scratch=from_scratch,
            experiment=experiment,
            context=contexts.chosen_context(project, context),
            port=port,
            thresholds={"regression": regression, "small_gain": small_gain, "max_repeats": max_repeats},
            **settings,
        )
    if campaign.manifest.port:
        console.tell(port_sentence(campaign.manifest))
    console.out(campaign.name)
    console.tell(f"Started {project.relative(campaign.folder)}.")
    tell_next(campaign)


def port_sentence(manifest: Manifest) -> str:
    """Return what a port campaign does and does not judge."""
    return (
        f"{manifest.target_op} on {manifest.target}: no such device here, so this is a port campaign: versions are"
        " checked by interpreter and compiler; speed is not judged."
    )


def campaign_next_command(name: CampaignName = None, as_json: Json = False) -> None:
    """Show the step that is due, its command, and the file that it must produce."""
    from warpsmith.campaign.history import index
    from warpsmith.campaign.rounds import due_phase, state

    with index.look_once():
        campaign = _find_campaign(name)
        current = state.read_state(campaign)
        step = due_phase.find_due_phase(current)
        step = step.model_copy(update={"notes": (*step.notes, *due_phase.forecast_notes(current, step))})
    console.out_json(step) if as_json else console.out(_step_text(step, campaign.project.root))


def status_command(name: CampaignName = None, as_json: Json = False) -> None:
    """Show the state of a campaign: its best version, its rounds, and the phase that is due."""
    from warpsmith.campaign.history import index
    from warpsmith.campaign.rounds import state
    from warpsmith.campaign.status import campaign_status

    with index.look_once():
        summary = campaign_status(state.read_state(_find_campaign(name)))
    console.out_json(summary) if as_json else _print_status(summary)


def select_command(
    language: Annotated[str, typer.Option(help="Language of the next version.")],
    because: Annotated[str, typer.Option(help="Reason for this level of control.")],
    name: CampaignName = None,
) -> None:
    """SELECT: choose the language of the next version."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round
    from warpsmith.core.campaign import Selection

    campaign = _find_campaign(name)
    selection = _validate(Selection, {"language": language, "because": because})
    with store.hold_campaign(campaign, "warpsmith select"):
        open_round.record_selection(campaign, selection)
    tell_next(campaign)


def plan_command(
    hypothesis: Annotated[str | None, typer.Option(help="The change, and why it should be faster.")] = None,
    category: Annotated[str | None, typer.Option(help="Kind of change: algorithm, memory, compute, ...")] = None,
    predict: Annotated[
        float | None, typer.Option(help="Predicted gain over the best version: 0.2 is 20 %.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Metric that should change.")] = None,
    change: Annotated[float | None, typer.Option(help="Predicted change of the metric, in its unit.")] = None,
    entry: Annotated[list[str] | None, typer.Option(help="Knowledge entry that it applies; repeatable.")] = None,
    searched: Annotated[list[str] | None, typer.Option(help="Source that was read; repeatable.")] = None,
    risk: Annotated[str, typer.Option(help="What could go wrong.")] = "",
    rollback: Annotated[str, typer.Option(help="What to do if it goes wrong.")] = "",
    direction: Annotated[
        list[str] | None,
        typer.Option(help="Direction at a review, as 'name|category|expected', the chosen one first; repeatable."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="YAML file with the plan, instead of options.")] = None,
    name: CampaignName = None,
) -> None:
    """STRATEGIZE: state one hypothesis with its predicted gain."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round
    from warpsmith.core.campaign import Plan

    options = {
        "hypothesis": hypothesis,
        "category": require_category(category) if category else None,
        "predicted_gain": predict,
        "metric": metric,
        "expected_change": change,
        "entries": entry,
        "search_log": searched,
        "risks": risk or None,
        "rollback": rollback or None,
        "review": [parse_direction(text) for text in direction] if direction else None,
    }
    values = {name: value for name, value in options.items() if value is not None}
    if file and values:
        raise Misuse(f"Give the plan by --file or by options, not both; omit {', '.join(values)}.")
    campaign = _find_campaign(name)
    proposal = _validate(Plan, _read_yaml(file) if file else values)
    with store.hold_campaign(campaign, "warpsmith plan"):
        open_round.record_plan(campaign, proposal)
    tell_next(campaign)


def evaluate_command(name: CampaignName = None, as_json: Json = False) -> None:
    """EVALUATE: record the outcome of the verdict for the campaign."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import open_round, state

    campaign = _find_campaign(name)
    with store.hold_campaign(campaign, "warpsmith evaluate"):
        outcome = open_round.record_outcome(campaign)
    verdict = state.read_state(campaign).open.verdict
    if as_json:
        console.out_json(outcome)
    else:
        unmeasured = (
            "no gain, for there was no version to gain over"
            if outcome.verdict.accepted
            else "no gain was measured"
        )
        gain = unmeasured if outcome.gain is None else f"gain {outcome.gain:+.1%}"
        if campaign.manifest.port and verdict:
            gain = "speed is not judged" if outcome.verdict == "UNTIMED" else verdict.decision.reason
        predicted = f", predicted {outcome.predicted_gain:+.1%}" if outcome.predicted_gain else ""
        console.out(f"{outcome.verdict}: {gain}{predicted}")
        best = "passed last" if campaign.manifest.port else "best"
        console.out(f"{best}: {outcome.best or 'none yet'}; stop: {outcome.stop or 'no'}")
        tell_next(campaign)


def learn_command(
    nothing: Annotated[str | None, typer.Option(help="Reason why nothing is new.")] = None,
    add: Annotated[Path | None, typer.Option(help="File of a new knowledge entry.")] = None,
    refine: Annotated[str | None, typer.Option(help="Id of an entry that the evidence refines.")] = None,
    file: Annotated[Path | None, typer.Option(help="With --refine: file with the note.")] = None,
    refute: Annotated[str | None, typer.Option(help="Id of an entry that the evidence refutes.")] = None,
    because: Annotated[str, typer.Option(help="With --refute: reason.")] = "",
    reason: Annotated[str, typer.Option(help="Reason for the change, for the record.")] = "",
    tip_context: Annotated[str | None, typer.Option(help="Tip: where it was observed.")] = None,
    tip_signal: Annotated[str | None, typer.Option(help="Tip: the signal that showed it.")] = None,
    tip_takeaway: Annotated[str | None, typer.Option(help="Tip: what to do.")] = None,
    tip_applicability: Annotated[str | None, typer.Option(help="Tip: when it applies.")] = None,
    name: CampaignName = None,
) -> None:
    """LEARN: change the knowledge by the round's evidence, or give the reason for no change; closes the round."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import lessons, open_round

    change = _learn_request(nothing, add, refine, file, refute, because)
    tip = _tip(tip_context, tip_signal, tip_takeaway, tip_applicability)
    campaign = _find_campaign(name)
    with store.hold_campaign(campaign, "warpsmith learn"):
        record = open_round.planned_record_path(campaign)
        learned = lessons.prepare_lesson(
            campaign, change.action, record=record, entry=change.entry, text=change.text, reason=reason, tip=tip
        )
        closed = open_round.close_round(campaign, learned)
        _render_pages(campaign)
    console.tell(f"Closed round {closed.record.round}: {campaign.project.relative(closed.folder)}")
    tell_next(campaign)


def resume_command(name: CampaignName = None) -> None:
    """Repair the campaign after a crash, and show the next step."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import resume
    from warpsmith.project import find_project

    restored = resume.restore_manifests(find_project(), name)
    campaign = _find_campaign(name)
    with store.hold_campaign(campaign, "warpsmith resume"):
        repairs = [*restored, *resume.resume_campaign(campaign)]
        if repairs:
            _render_pages(campaign)
    console.out("\n".join(repairs) if repairs else "Nothing to repair.")
    tell_next(campaign)


def restart_command(
    seed: Annotated[int, typer.Option(help="Seed of the random choice.")] = 0,
    mask_round: Annotated[
        list[int] | None, typer.Option(help="Mask this round, and no random ones; repeatable.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Unmask all rounds.")] = False,
    name: CampaignName = None,
) -> None:
    """Mask a random half of the rounds, or some by number, so that planning gets a fresh start; reversible."""
    from warpsmith.campaign.history import memory, store

    if undo and mask_round:
        raise Misuse("Give --mask-round or --undo, not both.")
    campaign = _find_campaign(name)
    with store.hold_campaign(campaign, "warpsmith restart"):
        if undo:
            console.out("Unmasked every round." if memory.unmask_rounds(campaign) else "No round was masked.")
        else:
            masks = (
                memory.mask_numbered_rounds(campaign, mask_round)
                if mask_round
                else memory.mask_rounds(campaign, seed)
            )
            masked = masks.masked
            console.out(f"Masked rounds {', '.join(map(str, masked))}; `warpsmith restart --undo` unmasks them.")


def strike_command(
    number: Annotated[int, typer.Argument(metavar="ROUND", help="Number of an accepted round.")],
    reason: Annotated[str, typer.Option(help="Finding of the review, in a sentence.")],
    name: CampaignName = None,
) -> None:
    """Strike an accepted version from the lineage; its record stays, and the version before it is best again."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.campaign.rounds import strike as strikes

    campaign = _find_campaign(name)
    with store.hold_campaign(campaign, "warpsmith strike"):
        record = strikes.strike_round(campaign, number, reason).record
        _render_pages(campaign)
    console.out(
        f"Struck round {number}, {record.solution}; best: {state.read_state(campaign).best_name or 'none yet'}."
    )
    for later in strikes.rounds_built_on(campaign, record):
        console.out(f"Round {later.round}, {later.solution}, builds on it and stays; review it too.")
    tell_next(campaign)


def amend_command(
    name: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Campaign, or operator with one open campaign.")],
    reason: Annotated[str, typer.Option(help="Fault of the definition, in a sentence.")],
    definition: Annotated[
        Path | None, typer.Option(help="File of the mended definition; by default it is in its place already.")
    ] = None,
) -> None:
    """Mend a definition that turned out wrong: a new campaign cites this one, which is closed and stays.

    The mended definition is proven first, as `warpsmith check` does. Then it
    takes the place of the old one. Finished campaigns that the old one judged
    are closed too.
    """
    from warpsmith.campaign import amend
    from warpsmith.project import find_project

    project = find_project()
    with console.progress() as tell:
        successor = amend.amend_campaign(project, name, definition, reason, tell)
    closed = amend.list_amended(successor)
    for campaign in (*closed, successor):
        _render_pages(campaign)
    console.out(successor.name)
    names = ", ".join(campaign.name for campaign in closed)
    console.tell(f"Closed: {names}. Records stay. Continue with `warpsmith next`.")


def abandon_campaign_command(
    name: Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Campaign to end.")],
    reason: Annotated[str, typer.Option(help="Reason in a sentence.")],
) -> None:
    """End a campaign for good; its records stay, and no command waits for it any more."""
    from warpsmith.campaign.history import closing, store
    from warpsmith.campaign.jobs import send

    campaign = _find_campaign(name)
    with store.hold_campaign(campaign, "warpsmith abandon"):
        closing.close_campaign(campaign, reason)
        _render_pages(campaign)
    send.release_allocation(campaign, console.tell)
    console.out(f"Abandoned {campaign.name}; its records stay in {campaign.project.relative(campaign.folder)}.")


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command("start")(start_command)
    app.command("next")(campaign_next_command)
    app.command("status")(status_command)
    app.command("select")(select_command)
    app.command("plan")(plan_command)
    app.command("evaluate")(evaluate_command)
    app.command("learn")(learn_command)
    app.command("resume")(resume_command)
    app.command("restart")(restart_command)
    app.command("strike")(strike_command)
    app.command("amend")(amend_command)
    app.command("abandon")(abandon_campaign_command)


def _find_campaign(name: str | None) -> Campaign:
    from warpsmith.campaign.history import store
    from warpsmith.project import find_project

    return store.find_campaign(find_project(), name)


def tell_next(campaign: Campaign) -> None:
    """Tell what is due, as `warpsmith next` prints it."""
    from warpsmith.campaign.rounds import due_phase, state

    step = due_phase.find_due_phase(state.read_state(campaign))
    console.tell(f"Next: {_step_text(step, campaign.project.root)}")


def _validate(model: type[M], data: object) -> M:
    from pydantic import ValidationError

    from warpsmith.core.text import describe_error

    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Misuse(f"The {model.__name__.lower()} does not validate: {describe_error(error)}.") from error


def _read_yaml(path: Path) -> object:
    import yaml

    try:
        return yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Misuse(f"{path} cannot be read: {' '.join(str(error).split())}; correct it.") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} cannot be read: {error}; name a text file.") from error


def require_category(text: str) -> str:
    """Return the category of a plan; raises Misuse if it is none."""
    from warpsmith.core.campaign import CHANGE_CATEGORIES

    if text not in (*CHANGE_CATEGORIES, "baseline"):
        raise Misuse(f"`{text}` is no category of change; choose one of {', '.join(CHANGE_CATEGORIES)}.")
    return text


def parse_direction(text: str) -> dict[str, str]:
    """Parse one `--direction` of a plan; raises Misuse unless it has three parts and a category."""
    parts = [part.strip() for part in text.split("|")]
    if len(parts) != 3:
        raise Misuse(f"The direction `{text}` has {len(parts)} parts; write it as 'name|category|expected'.")
    require_category(parts[1])
    return dict(zip(("name", "category", "expected"), parts, strict=True))


def _tip(*parts: str | None) -> Tip | None:
    if all(part is None for part in parts):
        return None
    from warpsmith.core.campaign import Tip

    names = ("context", "signal", "takeaway", "applicability")
    missing = [f"--tip-{name}" for name, part in zip(names, parts, strict=True) if not part]
    if missing:
        raise Misuse(f"A tip has four parts; {' and '.join(missing)} are missing.")
    return _validate(Tip, dict(zip(names, parts, strict=True)))


def _learn_request(
    nothing: str | None,
    add: Path | None,
    refine: str | None,
    file: Path | None,
    refute: str | None,
    because: str,
) -> LearnRequest:
    """Return the change that the options request; raises Misuse unless they request exactly one."""
    options = {"--nothing": nothing, "--add": add, "--refine": refine, "--refute": refute}
    chosen = [name for name, values in options.items() if values is not None]
    if len(chosen) != 1:
        raise Misuse(f"Give one of {', '.join(options)}, not {' and '.join(chosen) or 'none'}.")
    if nothing is not None:
        return LearnRequest("nothing", None, nothing)
    if add is not None:
        return LearnRequest("add", None, _read_text(add))
    if refine is not None:
        if file is None:
            raise Misuse("`--refine ID` needs the note: give its --file.")
        return LearnRequest("refine", refine, _read_text(file))
    if not because:
        raise Misuse("`--refute ID` needs the reason: give --because.")
    return LearnRequest("refute", refute, because)


def _render_pages(campaign: Campaign) -> None:
    """Render the pages. They are made from the records, so a failure here loses nothing."""
    from warpsmith.reporting import pages

    pages.render_campaign(campaign)


def _step_text(step: DuePhase, root: Path) -> str:
    brief = f"`warpsmith brief --campaign {step.campaign}`"
    rows = [
        (f"{step.campaign}", f"round {step.round}, {step.phase} ({step.agent or step.who})"),
        ("needs", step.needs),
        ("command", step.command or f"none: write the file below, or give an agent the text of {brief}"),
        ("produces", step.produces),
        *([] if root == Path.cwd() else [("folder", f"{root}, where these paths begin")]),
        *(("note", note) for note in step.notes),
    ]
    head, *rest = rows
    return "\n".join([": ".join(head), *(f"  {name:<9}{text}" for name, text in rest)])


def _print_status(campaign: CampaignStatus) -> None:
    share = ""
    if campaign.ceiling_share is not None:
        share = f", {campaign.ceiling_share:.1%} of the ceiling, measured {campaign.measured} UTC"
        share += f", trust {campaign.trust}" if campaign.trust != "full" else ""
    by = ", by energy" if campaign.objective == "energy" else ""
    console.out(f"{campaign.campaign}: {campaign.op} on {campaign.target}{by}, due: {campaign.phase}")
    if campaign.port:
        console.out(
            f"  a port campaign: passed last: {campaign.best or 'none yet'}; stop: {campaign.stop or 'no'}"
        )
    else:
        console.out(f"  best: {campaign.best or 'none yet'}{share}; stop: {campaign.stop or 'no'}")
    open_round = ", ".join(campaign.open) or "nothing yet"
    attempts = f"; attempts {campaign.attempts}, none built" if campaign.attempts else ""
    console.out(f"  open round: {open_round}; invalid attempts: {campaign.invalid}{attempts}")
    if campaign.contaminated:
        console.out(f"  contaminated: read what it hides: {', '.join(campaign.contaminated)}")
    if campaign.spent:
        console.out(f"  spent: {campaign.spent.text}")
    for line in campaign.rounds:
        gain = "" if line.gain is None else f" {line.gain:+.1%}"
        masked = " (masked)" if line.masked else ""
        attempts = f"; attempts {line.attempts}" if line.attempts > 1 else ""
        struck = f"; struck: {line.struck}" if line.struck else ""
        console.out(
            f"  round {line.round}: {line.solution} {line.category} {line.verdict}{gain}{masked}{attempts}{struck}"
        )
    calibration = campaign.calibration
    if calibration.median_error is not None:
        count, within = len(calibration.predictions), calibration.within_2x or 0
        console.out(
            f"  predictions: {count}, median error {calibration.median_error:.1%}, within 2x: {within:.0%}"
        )
