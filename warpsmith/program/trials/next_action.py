"""Next action for a program, chosen from its last analysis and its trials; nothing is run or written."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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
from warpsmith.program.analysis import analysis_store, program_rules, record_names
from warpsmith.program.analysis.models import Analysis, Recommendation
from warpsmith.program.trials import trial_store
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import Project

MOST_TRIES = 3
"""Trials of an optimization, at most, while each of them shows nothing. Chosen."""

COMPARABLE = 0.5
"""Share of the step that an entry attacks, over that of another that comes after it, from which on it goes first.
Chosen."""

_LEVELS = ("Low", "Medium", "High")


@dataclass(frozen=True)
class ProgramState:
    """State of one program, as read from disk."""

    name: str
    """Name of the program."""
    analysis: Analysis | None
    """The last analysis; None if there is none."""
    changed: bool
    """True if the file of the program has changed since that analysis."""
    plan: TrialPlan | None
    """The open trial; None if there is none."""
    records: Sequence[TrialRecord]
    """The closed trials, in order."""
    rules: Mapping[str, ProgramRules]
    """Rules that the entries for whole programs declare, by id."""
    requested: str | None = None
    """The program as the command named it; None if it named none."""


def read_program_state(project: Project, text: str | None = None) -> ProgramState:
    """Read the state of the program that a name, the file of an analysis, or nothing means.

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
        rules=program_rules.list_program_rules(project),
        requested=text,
    )


def choose_action(state: ProgramState) -> NextAction:
    """Return the next action with its reason and the exact command."""
    if state.plan:
        return NextAction(
            program=state.name,
            action="verify",
            why=f"the trial of {state.plan.entry} is open: edit {_format_files(state.plan)}, then judge it",
            command=f"warpsmith program verify {state.name}",
        )
    if state.analysis is None:
        return _analyze_action(state, "it was never analyzed")
    if _is_outdated(state, state.analysis):
        return _analyze_action(state, "it has changed since its last analysis")
    if state.analysis.broken:
        reason = "a step returns NaN or infinity: fix that first, because no edit can be compared with it"
        return NextAction(program=state.name, action="mend", why=reason, command="")
    candidates = rank_recommendations(state, state.analysis)
    due = next((candidate for candidate in candidates if candidate.standing == "due"), None)
    if due:
        command = f"warpsmith program apply {due.entry} {analysis_arguments(state.analysis)}"
        return _build_action(state, "apply", f"{due.title}: {due.why}", command, candidates)
    by_hand = next(
        (candidate for candidate in candidates if candidate.standing == "by hand" and candidate.impact != "Low"),
        None,
    )
    if by_hand:
        return _build_action(state, "work", f"{by_hand.title}: {by_hand.why}", "", candidates)
    return _build_action(state, "finished", "no recommendation is left to try", "", candidates)


def rank_recommendations(state: ProgramState, analysis: Analysis) -> tuple[RankedRecommendation, ...]:
    """List every recommendation in the order in which they are tried: by impact, then gain, effort and risk.

    An entry comes after another that its front matter names only if that one attacks at least `COMPARABLE` of its
    own share. Those that were tried or are excluded come last.
    """
    recommendations = sorted(analysis.recommendations, key=_sort_key)
    waiting = {
        recommendation.entry: recommendation.share
        for recommendation in recommendations
        if recommendation.entry and _recommendation_state(state, recommendation, {})[0] == "due"
    }
    rows = []
    for recommendation in recommendations:
        standing, reason = _recommendation_state(state, recommendation, waiting)
        rows.append(
            RankedRecommendation(
                title=recommendation.title,
                entry=recommendation.entry,
                impact=recommendation.impact,
                standing=standing,
                why=reason,
            )
        )
    order: tuple[RecommendationState, ...] = ("due", "waits", "by hand", "excluded", "kept", "restored")
    return tuple(sorted(rows, key=lambda row: order.index(row.standing)))


def _find_program(project: Project, text: str | None) -> tuple[Trials, Path | None]:
    """Return the program's trials, and the path of its last analysis if there is one."""
    if text and text.endswith(".json"):
        path = Path(text).absolute()
        return Trials(project, path.parent.parent.name), path
    open_trials = [trials for trials in trial_store.list_trials(project) if trials.plan()]
    name = text or (open_trials[0].name if len(open_trials) == 1 else None)
    try:
        path = analysis_store.latest_analysis(project, name)
    except MissingInput:
        if text and text.endswith(".py") and not Path(text).is_file():
            raise
        if name is None and not trial_store.list_trials(project):
            raise
        names = record_names.matching_names(project, text) if text else []
        if text and len(names) < 2:
            return Trials(project, names[0] if names else text), None
        return trial_store.find_trials(project, name), None
    return Trials(project, path.parent.parent.name), path


def _has_changed(project: Project, analysis: Analysis) -> bool:
    path = project.root / analysis.subject.path
    return bool(analysis.subject.sha256) and (
        not path.is_file() or files.file_sha256(path) != analysis.subject.sha256
    )


def _recommendation_state(
    state: ProgramState, recommendation: Recommendation, waiting: Mapping[str, float]
) -> tuple[RecommendationState, str]:
    rules = state.rules.get(recommendation.entry or "")
    if recommendation.entry is None or rules is None:
        return "by hand", f"{recommendation.evidence}. {recommendation.task}"
    tried = [record for record in state.records if record.plan.entry == recommendation.entry]
    kept_entries = {record.plan.entry for record in state.records if _is_kept(record)}
    remains = bool(recommendation.lines) and _was_kept_before(state, tried)
    if recommendation.entry in kept_entries and not remains:
        return "kept", next(record.decision.reason for record in reversed(tried) if _is_kept(record))
    conflicts = [
        entry for entry in kept_entries if entry in rules.excludes or _excludes(state, entry, recommendation.entry)
    ]
    if conflicts:
        return "excluded", f"it cannot be combined with {conflicts[0]}, which was kept"
    if tried and not remains and not _is_worth_retrying(state, recommendation.entry, rules):
        return "restored", tried[-1].decision.reason
    if recommendation.lacks:
        return "excluded", recommendation.lacks
    least = COMPARABLE * recommendation.share
    earlier = [entry for entry in rules.after if entry in waiting and waiting[entry] >= least]
    if earlier:
        return "waits", f"{earlier[0]} comes first, with a comparable gain"
    reason = "these lines remain" if remains else f"since {tried[-1].decision.reason}" if tried else ""
    retry = f" (again, {reason})" if reason else ""
    return "due", f"{recommendation.evidence}{retry}"


def _was_kept_before(state: ProgramState, tried: Sequence[TrialRecord]) -> bool:
    """Return whether the last of these trials was kept, and closed before the program was analyzed."""
    last = tried[-1] if tried else None
    return bool(last and state.analysis and _is_kept(last) and last.closed < state.analysis.made)


def _is_worth_retrying(state: ProgramState, entry: str, rules: ProgramRules) -> bool:
    """Return whether nothing was shown the last time, or an entry that it builds on was kept since, so that it may
    gain now."""
    tried = [record for record in state.records if record.plan.entry == entry]
    if tried[-1].decision.verdict is TrialVerdict.INCONCLUSIVE:
        return len(tried) < MOST_TRIES
    last = max(index for index, record in enumerate(state.records) if record.plan.entry == entry)
    numerics = state.records[last].numerics
    right = numerics is not None and numerics.passed
    return right and any(
        _is_kept(record) and record.plan.entry in rules.after for record in state.records[last + 1 :]
    )


def _excludes(state: ProgramState, entry: str, other: str) -> bool:
    rules = state.rules.get(entry)
    return rules is not None and other in rules.excludes


def _sort_key(recommendation: Recommendation) -> tuple[int, float, int, int]:
    return (
        -_LEVELS.index(recommendation.impact),
        -recommendation.share,
        _LEVELS.index(recommendation.effort),
        _LEVELS.index(recommendation.risk),
    )


def _is_outdated(state: ProgramState, analysis: Analysis) -> bool:
    return state.changed or any(_is_kept(record) and record.closed > analysis.made for record in state.records)


def _is_kept(record: TrialRecord) -> bool:
    return record.decision.verdict is TrialVerdict.KEPT


def _analyze_action(state: ProgramState, reason: str) -> NextAction:
    if state.analysis:
        arguments = analysis_arguments(state.analysis)
    elif state.records:
        arguments = command_arguments(state.records[-1].plan.subject)
    else:
        arguments = f"{state.requested or 'PROGRAM'} --step STEP"
    command = f"warpsmith program analyze {arguments}"
    return NextAction(program=state.name, action="analyze", why=reason, command=command)


def _build_action(
    state: ProgramState, action: str, reason: str, command: str, candidates: tuple[RankedRecommendation, ...]
) -> NextAction:
    return NextAction.model_validate(
        {"program": state.name, "action": action, "why": reason, "command": command, "candidates": candidates}
    )


def analysis_arguments(analysis: Analysis) -> str:
    """Format the program of an analysis as the arguments of a command."""
    subject = analysis.subject
    return command_arguments(
        ProgramReference(
            name=subject.label, path=subject.path, module=subject.module, step=subject.step, setup=subject.setup,
            args=subject.args, command=subject.command, writes=subject.writes,
        )
    )  # fmt: skip


def command_arguments(subject: ProgramReference) -> str:
    """Format a program as the arguments of a command."""
    if subject.command is not None:
        return shlex.join(record_names.command_words(subject.command, subject.writes))
    words = [subject.module or subject.path, "--step", subject.step]
    words += ["--setup", subject.setup] if subject.setup else []
    words += ["--", *subject.args] if subject.args else []
    return " ".join(words)


def _format_files(plan: TrialPlan) -> str:
    return ", ".join(file.path for file in plan.files)
