"""The loop's commands, from `warpsmith start` to `learn`, and what mends it: `resume`, `restart`, `strike`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from warpsmith.cli import console
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.campaign.history.store import Campaign
    from warpsmith.campaign.rounds.steps import NextStep
    from warpsmith.campaign.status import Status
    from warpsmith.core.base import Model
    from warpsmith.core.campaign import Tip

M = TypeVar("M", bound="Model")


class Change(NamedTuple):
    """What `learn` is asked for."""

    action: str
    """`add`, `refine`, `refute` or `nothing`."""
    entry: str | None
    """The entry to refine or refute."""
    text: str
    """The page, the note or the reason."""


Named = Annotated[
    str | None,
    typer.Option("--campaign", help="Its name; by default $WARPSMITH_CAMPAIGN, else the only unfinished one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the model as it stands on disk.")]


def start(
    op: Annotated[str, typer.Argument(help="The operator; its definition must be there.")],
    target: Annotated[str, typer.Option(help="The device kind: a hardware page's id.")],
    language: Annotated[str, typer.Option(help="The language that it starts in.")],
    objective: Annotated[
        Literal["time", "energy"], typer.Option(help="What a version is to save; energy: joules a call.")
    ] = "time",
    shapes: Annotated[
        Literal["representative", "full"], typer.Option(help="The workloads of each round.")
    ] = "representative",
    git: Annotated[
        Literal["none", "branch"], typer.Option(help="branch: each accepted round is a commit.")
    ] = "none",
    performance_target: Annotated[
        float | None,
        typer.Option(min=0.01, max=1, help="Share of the ceiling at which it is done; by default 0.9."),
    ] = None,
    max_iterations: Annotated[int | None, typer.Option(help="Rounds after which it ends.")] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(help="A side raced at the baseline and the end, repeatable; none: the reference only."),
    ] = None,
    regression: Annotated[float, typer.Option(help="Share by which a slower workload rolls back.")] = 0.05,
    small_gain: Annotated[float, typer.Option(help="Gain below which timing is repeated.")] = 0.02,
    max_repeats: Annotated[int, typer.Option(help="Repetitions before a gain is ambiguous.")] = 3,
) -> None:
    """Start a campaign: one operator on one target."""
    from warpsmith import project
    from warpsmith.campaign import define

    here = project.find()
    settings: dict[str, Any] = {"peers": () if peer == ["none"] else peer} if peer else {}
    with console.progress() as tell:
        campaign = define.define(
            here,
            op,
            target,
            language,
            tell,
            objective=objective,
            shapes=shapes,
            git=git,
            performance_target=performance_target,
            max_iterations=max_iterations,
            thresholds={"regression": regression, "small_gain": small_gain, "max_repeats": max_repeats},
            **settings,
        )
    console.out(campaign.name)
    console.tell(f"Started {here.relative(campaign.folder)}; go on with `warpsmith next`.")


def next_(campaign: Named = None, as_json: Json = False) -> None:
    """Say what is due, the command for it, and what must exist afterwards."""
    from warpsmith.campaign.rounds import state, steps

    step = steps.next_step(state.read(_find(campaign)))
    console.out_json(step) if as_json else console.out(_step_text(step))


def status(campaign: Named = None, as_json: Json = False) -> None:
    """Show where a campaign stands."""
    from warpsmith.campaign.rounds import state
    from warpsmith.campaign.status import status as summary

    found = summary(state.read(_find(campaign)))
    console.out_json(found) if as_json else _show_status(found)


def select(
    language: Annotated[str, typer.Option(help="The language of the next version.")],
    because: Annotated[str, typer.Option(help="Why this control level.")],
    campaign: Named = None,
) -> None:
    """SELECT: choose the language of the next version."""
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds import rounds
    from warpsmith.core.campaign import Selection

    found = _find(campaign)
    selection = _made(Selection, {"language": language, "because": because})
    with lock.hold(found, "warpsmith select"):
        rounds.record_selection(found, selection)
    _go_on(found)


def plan(
    hypothesis: Annotated[str | None, typer.Option(help="What changes, and why it should be faster.")] = None,
    category: Annotated[str | None, typer.Option(help="The kind of change: memory, compute, ...")] = None,
    predict: Annotated[float | None, typer.Option(help="Gain over the best version: 0.2 is 20 %.")] = None,
    metric: Annotated[str | None, typer.Option(help="The metric that should move.")] = None,
    change: Annotated[float | None, typer.Option(help="By how much, in its unit.")] = None,
    entry: Annotated[list[str] | None, typer.Option(help="A knowledge entry; may be repeated.")] = None,
    searched: Annotated[list[str] | None, typer.Option(help="What was read; may be repeated.")] = None,
    risk: Annotated[str, typer.Option(help="What could go wrong.")] = "",
    rollback: Annotated[str, typer.Option(help="What is done if it does.")] = "",
    direction: Annotated[
        list[str] | None,
        typer.Option(help="At a review, as 'name|category|expected', the chosen one first; repeated."),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="The plan as YAML instead.")] = None,
    campaign: Named = None,
) -> None:
    """STRATEGIZE: state one hypothesis with its predicted gain."""
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds import rounds
    from warpsmith.core.campaign import Plan

    options = {
        "hypothesis": hypothesis,
        "category": category,
        "predicted_gain": predict,
        "metric": metric,
        "expected_change": change,
        "entries": entry,
        "search_log": searched,
        "risks": risk or None,
        "rollback": rollback or None,
        "review": [direction_of(text) for text in direction] if direction else None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if file and given:
        raise Misuse(f"Give the plan by --file or by options, not both; drop {', '.join(given)}.")
    found = _find(campaign)
    made = _made(Plan, _yaml(file) if file else given)
    _known_entries(found, made.entries)
    with lock.hold(found, "warpsmith plan"):
        rounds.record_plan(found, made)
    _go_on(found)


def evaluate(campaign: Named = None, as_json: Json = False) -> None:
    """EVALUATE: what the verdict means for the campaign."""
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds import rounds

    found = _find(campaign)
    with lock.hold(found, "warpsmith evaluate"):
        outcome = rounds.record_outcome(found)
    if as_json:
        console.out_json(outcome)
    else:
        gain = "no gain was measured" if outcome.gain is None else f"gain {outcome.gain:+.1%}"
        predicted = f", predicted {outcome.predicted_gain:+.1%}" if outcome.predicted_gain else ""
        console.out(f"{outcome.verdict}: {gain}{predicted}")
        console.out(f"best: {outcome.best or 'none yet'}; stop: {outcome.stop or 'no, go on'}")


def learn(
    nothing: Annotated[str | None, typer.Option(help="Why there is nothing new.")] = None,
    add: Annotated[Path | None, typer.Option(help="A new knowledge entry's file.")] = None,
    refine: Annotated[str | None, typer.Option(help="The id of an entry that the evidence refines.")] = None,
    file: Annotated[Path | None, typer.Option(help="With --refine: the note's file.")] = None,
    refute: Annotated[str | None, typer.Option(help="The id of an entry that the evidence refutes.")] = None,
    because: Annotated[str, typer.Option(help="With --refute: the reason.")] = "",
    reason: Annotated[str, typer.Option(help="What the evidence changed, for the record.")] = "",
    tip_context: Annotated[str | None, typer.Option(help="A tip: where it was seen.")] = None,
    tip_signal: Annotated[str | None, typer.Option(help="What showed it.")] = None,
    tip_takeaway: Annotated[str | None, typer.Option(help="What to do.")] = None,
    tip_applicability: Annotated[str | None, typer.Option(help="When it holds.")] = None,
    campaign: Named = None,
) -> None:
    """LEARN: change the knowledge by the round's evidence, or say why not; closes the round."""
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds import lessons, rounds

    change = _change(nothing, add, refine, file, refute, because)
    tip = _tip(tip_context, tip_signal, tip_takeaway, tip_applicability)
    found = _find(campaign)
    with lock.hold(found, "warpsmith learn"):
        place = rounds.to_learn(found)
        learned = lessons.prepare(
            found, change.action, record=place, entry=change.entry, text=change.text, reason=reason, tip=tip
        )
        kept = rounds.close(found, learned)
        _render(found)
    console.tell(f"Closed round {kept.record.round}: {found.project.relative(kept.folder)}")
    _go_on(found)


def resume(campaign: Named = None) -> None:
    """Mend what a crash left behind, and go on from there."""
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds.resume import resume as mend

    found = _find(campaign)
    with lock.hold(found, "warpsmith resume"):
        done = mend(found)
        if done:
            _render(found)
    console.out("\n".join(done) if done else "Nothing to mend.")
    _go_on(found)


def restart(
    seed: Annotated[int, typer.Option(help="What the choice is drawn from.")] = 0,
    undo: Annotated[bool, typer.Option("--undo", help="Bring every round back.")] = False,
    campaign: Named = None,
) -> None:
    """Mask half of the rounds, so that planning starts afresh; reversible."""
    from warpsmith.campaign.history import lock, memory

    found = _find(campaign)
    with lock.hold(found, "warpsmith restart"):
        if undo:
            console.out("Unmasked every round." if memory.undo(found) else "No round was masked.")
        else:
            masked = memory.restart(found, seed).masked
            console.out(
                f"Masked rounds {', '.join(map(str, masked))}; `warpsmith restart --undo` brings them back."
            )


def strike(
    number: Annotated[int, typer.Argument(metavar="ROUND", help="The number of an accepted round.")],
    reason: Annotated[str, typer.Option(help="What a review found, in a sentence.")],
    campaign: Named = None,
) -> None:
    """Take an accepted version out of the lineage; its record stays, and the one before it is best again."""
    from warpsmith.campaign.history import lock
    from warpsmith.campaign.rounds import state
    from warpsmith.campaign.rounds import strike as strikes

    found = _find(campaign)
    with lock.hold(found, "warpsmith strike"):
        record = strikes.strike(found, number, reason).record
        _render(found)
    console.out(f"Struck round {number}, {record.solution}; best: {state.read(found).best_name or 'none yet'}.")
    for later in strikes.built_on(found, record):
        console.out(f"Round {later.round}, {later.solution}, was built on it and stays: review it too.")
    _go_on(found)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command("next")(next_)
    for command in (start, status, select, plan, evaluate, learn, resume, restart, strike):
        app.command()(command)


def _find(name: str | None) -> Campaign:
    from warpsmith import project
    from warpsmith.campaign.history import store

    return store.find(project.find(), name)


def _go_on(campaign: Campaign) -> None:
    from warpsmith.campaign.rounds import state, steps

    step = steps.next_step(state.read(campaign))
    todo = step.command or f"write {step.produces}"
    console.tell(f"Next: {step.phase}: {todo}")


def _made(model: type[M], data: object) -> M:
    from pydantic import ValidationError

    from warpsmith.core.problem import problem

    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Misuse(f"The {model.__name__.lower()} does not validate: {problem(error)}.") from error


def _yaml(path: Path) -> object:
    import yaml

    try:
        return yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Misuse(f"{path} does not read: {' '.join(str(error).split())}; mend it.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path} does not read: {error}; name a text file.") from error


def direction_of(text: str) -> dict[str, str]:
    """One `--direction`, for the plan's model; raises Misuse where it has not three parts."""
    parts = [part.strip() for part in text.split("|")]
    if len(parts) != 3:
        raise Misuse(f"The direction `{text}` has {len(parts)} parts; write it as 'name|category|expected'.")
    return dict(zip(("name", "category", "expected"), parts, strict=True))


def _known_entries(campaign: Campaign, entries: Sequence[str]) -> None:
    if entries:
        from warpsmith.knowledge.catalog import Catalog

        catalog = Catalog.load(campaign.project)
        for entry in entries:
            catalog.get(entry)


def _tip(*parts: str | None) -> Tip | None:
    if all(part is None for part in parts):
        return None
    from warpsmith.core.campaign import Tip

    names = ("context", "signal", "takeaway", "applicability")
    lacking = [f"--tip-{name}" for name, part in zip(names, parts, strict=True) if not part]
    if lacking:
        raise Misuse(f"A tip has four parts; {' and '.join(lacking)} are missing.")
    return _made(Tip, dict(zip(names, parts, strict=True)))


def _change(
    nothing: str | None,
    add: Path | None,
    refine: str | None,
    file: Path | None,
    refute: str | None,
    because: str,
) -> Change:
    """The one change that the options name; raises Misuse where they name none, or several."""
    options = {"--nothing": nothing, "--add": add, "--refine": refine, "--refute": refute}
    chosen = [name for name, given in options.items() if given is not None]
    if len(chosen) != 1:
        raise Misuse(f"Give one of {', '.join(options)}, not {' and '.join(chosen) or 'none'}.")
    if nothing is not None:
        return Change("nothing", None, nothing)
    if add is not None:
        return Change("add", None, _text(add))
    if refine is not None:
        if file is None:
            raise Misuse("`--refine ID` needs the note: give its --file.")
        return Change("refine", refine, _text(file))
    if not because:
        raise Misuse("`--refute ID` needs the reason: give --because.")
    return Change("refute", refute, because)


def _render(campaign: Campaign) -> None:
    """Render the pages; they follow from the records, so a failure here loses nothing."""
    from warpsmith.reporting import pages

    pages.render(campaign)


def _step_text(step: NextStep) -> str:
    rows = [
        (f"{step.campaign}", f"round {step.round}, {step.phase} ({step.who})"),
        ("needs", step.needs),
        ("command", step.command or "none: write the file"),
        ("produces", step.produces),
        *(("note", note) for note in step.notes),
    ]
    head, *rest = rows
    return "\n".join([": ".join(head), *(f"  {name:<9}{text}" for name, text in rest)])


def _show_status(found: Status) -> None:
    share = "" if found.ceiling_share is None else f", {found.ceiling_share:.1%} of the ceiling"
    by = ", by energy" if found.objective == "energy" else ""
    console.out(f"{found.campaign}: {found.op} on {found.target}{by}, due: {found.phase}")
    console.out(f"  best: {found.best or 'none yet'}{share}; stop: {found.stop or 'no'}")
    open_round = ", ".join(found.open) or "nothing yet"
    console.out(f"  open round: {open_round}; invalid attempts: {found.invalid}")
    if found.spent:
        console.out(f"  spent: {found.spent.text}")
    for line in found.rounds:
        gain = "" if line.gain is None else f" {line.gain:+.1%}"
        masked = " (masked)" if line.masked else ""
        struck = f"; struck: {line.struck}" if line.struck else ""
        console.out(f"  round {line.round}: {line.solution} {line.category} {line.verdict}{gain}{masked}{struck}")
    calibration = found.calibration
    if calibration.median_error is not None:
        count, within = len(calibration.predictions), calibration.within_2x or 0
        console.out(
            f"  predictions: {count}, median error {calibration.median_error:.1%}, within 2x: {within:.0%}"
        )
