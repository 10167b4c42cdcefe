"""Ranking: what is due for a program, from its last analysis and its trials alone; nothing is run or written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpsmith import files
from warpsmith.core.trial import (
    NextAction,
    ProgramReference,
    ProgramRules,
    RankedRecommendation,
    RecommendationState,
    TrialPlan,
    TrialRecord,
    TrialVerdict,
)
from warpsmith.errors import MissingInput
from warpsmith.program.analysis import analysis_store, prerequisites
from warpsmith.program.analysis.models import Analysis, Recommendation
from warpsmith.program.trials import trial_store
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

_LEVELS = ("Low", "Medium", "High")


@dataclass(frozen=True)
class ProgramState:
    """What is on disk of one program."""

    name: str
    """The program's name."""
    analysis: Analysis | None
    """The last analysis; None: there is none."""
    changed: bool
    """Whether the program's file has changed since that."""
    plan: TrialPlan | None
    """The open trial; None: there is none."""
    records: Sequence[TrialRecord]
    """The closed trials in order."""
    rules: Mapping[str, ProgramRules]
    """What the entries for whole programs declare, by id."""
    asked: str | None = None
    """The program as it was named, where it was."""


def read_program_state(project: Project, text: str | None = None) -> ProgramState:
    """What is on disk of the program that a name, an analysis's file or nothing means.

    Raises:
        Misuse: several programs could be meant.
        MissingInput: no program has an analysis or a trial, or there is no such file.
        CorruptRecord, BadEntry: a record or an entry does not read.
    """
    trials, path = _find_program(project, text)
    analysis = analysis_store.read_analysis(path) if path else None
    return ProgramState(
        name=trials.name,
        analysis=analysis,
        changed=analysis is not None and _has_changed(project, analysis),
        plan=trials.plan(),
        records=[record for _, record in sorted(trials.records().items())],
        rules=prerequisites.list_program_rules(project),
        asked=text,
    )


def choose_action(state: ProgramState) -> NextAction:
    """What is due, why, and the exact command."""
    if state.plan:
        return NextAction(
            program=state.name,
            action="verify",
            why=f"the trial of {state.plan.entry} is open: edit {_format_files(state.plan)}, then judge it",
            command=f"warpsmith program verify {state.name}",
        )
    if state.analysis is None:
        return _analyze_action(state, "it was never analysed")
    if _is_outdated(state, state.analysis):
        return _analyze_action(state, "it has changed since its last analysis")
    if state.analysis.broken:
        why = "a step returns NaN or infinity: nothing can be compared with it before that is mended"
        return NextAction(program=state.name, action="mend", why=why, command="")
    candidates = rank_recommendations(state, state.analysis)
    first = next((one for one in candidates if one.standing == "due"), None)
    if first:
        command = f"warpsmith program apply {first.entry} {_analysis_arguments(state.analysis)}"
        return _build_action(state, "apply", f"{first.title}: {first.why}", command, candidates)
    by_hand = next((one for one in candidates if one.standing == "by hand" and one.impact != "Low"), None)
    if by_hand:
        return _build_action(state, "work", f"{by_hand.title}: {by_hand.why}", "", candidates)
    return _build_action(state, "finished", "no recommendation is left to try", "", candidates)


def rank_recommendations(state: ProgramState, analysis: Analysis) -> tuple[RankedRecommendation, ...]:
    """Every recommendation in the order in which they are tried: impact, then gain, effort and risk.

    What must come first does so, whatever its own rank; what was tried or cannot be comes last.
    """
    given = sorted(analysis.recommendations, key=_sort_key)
    waiting = {one.entry for one in given if one.entry and _recommendation_state(state, one, ())[0] == "due"}
    rows = []
    for one in given:
        standing, why = _recommendation_state(state, one, waiting)
        rows.append(
            RankedRecommendation(title=one.title, entry=one.entry, impact=one.impact, standing=standing, why=why)
        )  # fmt: skip
    order: tuple[RecommendationState, ...] = ("due", "waits", "by hand", "excluded", "kept", "restored")
    return tuple(sorted(rows, key=lambda row: order.index(row.standing)))


def _find_program(project: Project, text: str | None) -> tuple[Trials, Path | None]:
    """The program's trials, and its last analysis if there is one."""
    if text and text.endswith(".json"):
        path = Path(text).absolute()
        return Trials(project, path.parent.parent.name), path
    at_work = [one for one in trial_store.list_trials(project) if one.plan()]
    name = trial_store.name_of(text) if text else at_work[0].name if len(at_work) == 1 else None
    try:
        path = analysis_store.latest_analysis(project, name)
    except MissingInput:
        if text and text.endswith(".py") and not Path(text).is_file():
            raise
        if name is None and not trial_store.list_trials(project):
            raise
        return (Trials(project, name) if name else trial_store.find_trials(project)), None
    return Trials(project, path.parent.parent.name), path


def _has_changed(project: Project, analysis: Analysis) -> bool:
    path = project.root / analysis.subject.path
    return bool(analysis.subject.sha256) and (not path.is_file() or files.sha256(path) != analysis.subject.sha256)


def _recommendation_state(
    state: ProgramState, one: Recommendation, waiting: Collection[str]
) -> tuple[RecommendationState, str]:
    rules = state.rules.get(one.entry or "")
    if one.entry is None or rules is None:
        return "by hand", f"{one.evidence}. {one.task}"
    tried = [record for record in state.records if record.plan.entry == one.entry]
    kept = {record.plan.entry for record in state.records if _is_kept(record)}
    if one.entry in kept:
        return "kept", next(record.decision.reason for record in reversed(tried) if _is_kept(record))
    against = [entry for entry in kept if entry in rules.excludes or _excludes(state, entry, one.entry)]
    if against:
        return "excluded", f"it does not go with {against[0]}, which was kept"
    if tried and not _is_worth_retrying(state, one.entry, rules):
        return "restored", tried[-1].decision.reason
    if one.lacks:
        return "excluded", one.lacks
    first = [entry for entry in rules.after if entry in waiting]
    if first:
        return "waits", f"{first[0]} comes first"
    again = f" (again, since {tried[-1].decision.reason})" if tried else ""
    return "due", f"{one.evidence}{again}"


def _is_worth_retrying(state: ProgramState, entry: str, rules: ProgramRules) -> bool:
    """Whether something that it builds on was kept since it was restored: then it may gain now."""
    last = max(place for place, record in enumerate(state.records) if record.plan.entry == entry)
    numerics = state.records[last].numerics
    right = numerics is not None and numerics.passed
    return right and any(
        _is_kept(record) and record.plan.entry in rules.after for record in state.records[last + 1 :]
    )


def _excludes(state: ProgramState, entry: str, other: str) -> bool:
    rules = state.rules.get(entry)
    return rules is not None and other in rules.excludes


def _sort_key(one: Recommendation) -> tuple[int, float, int, int]:
    return -_LEVELS.index(one.impact), -one.share, _LEVELS.index(one.effort), _LEVELS.index(one.risk)


def _is_outdated(state: ProgramState, analysis: Analysis) -> bool:
    return state.changed or any(_is_kept(record) and record.closed > analysis.made for record in state.records)


def _is_kept(record: TrialRecord) -> bool:
    return record.decision.verdict is TrialVerdict.KEPT


def _analyze_action(state: ProgramState, why: str) -> NextAction:
    if state.analysis and state.analysis.subject.command is None:
        where = _analysis_arguments(state.analysis)
    elif state.records:
        where = command_arguments(state.records[-1].plan.subject)
    else:
        where = f"{state.asked or 'PROGRAM'} --step STEP"
    command = f"warpsmith program analyze {where}"
    return NextAction(program=state.name, action="analyze", why=why, command=command)


def _build_action(
    state: ProgramState, action: str, why: str, command: str, candidates: tuple[RankedRecommendation, ...]
) -> NextAction:
    return NextAction.model_validate(
        {"program": state.name, "action": action, "why": why, "command": command, "candidates": candidates}
    )


def _analysis_arguments(analysis: Analysis) -> str:
    subject = analysis.subject
    if subject.command is not None:
        return "FILE --step STEP"
    return command_arguments(
        ProgramReference(
            name=subject.label, path=subject.path, module=subject.module, step=subject.step, setup=subject.setup,
            args=subject.args,
        )
    )  # fmt: skip


def command_arguments(subject: ProgramReference) -> str:
    """A program as the arguments of a command."""
    words = [subject.module or subject.path, "--step", subject.step]
    words += ["--setup", subject.setup] if subject.setup else []
    words += ["--", *subject.args] if subject.args else []
    return " ".join(words)


def _format_files(plan: TrialPlan) -> str:
    return ", ".join(file.path for file in plan.files)
