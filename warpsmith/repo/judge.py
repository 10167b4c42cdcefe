"""Evaluation of a commit: run the tests, benchmark base and candidate in turns, decide on the paired costs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from warpsmith import languages
from warpsmith.core.base import this_minute
from warpsmith.core.evaluation import BEST, Aggregate, Decision, Verdict
from warpsmith.core.hardware import Machine
from warpsmith.core.repo import Level, RepoBaseline, RepoEvaluation, Side
from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.lab.gate import decision, lint
from warpsmith.lab.machine import contention, hardware, identity, provenance
from warpsmith.lab.timing import statistics
from warpsmith.repo import benchmark, representative, row_results, settings
from warpsmith.repo.benchmark import BadTable, BenchmarkRow
from warpsmith.repo.row_results import Pairs
from warpsmith.repo.side_runner import FAILURES, SideRunner, row_keys
from warpsmith.repo.transfer import measurement
from warpsmith.repo.worktrees import BASE, CANDIDATE, Repository


class _Batch(NamedTuple):
    """Rows to measure together."""

    level: Level
    """Form of the benchmark: of all rows, or of chosen ones."""
    rows: Sequence[str]
    """Names of the rows that it must print."""
    keys: Mapping[str, Mapping[str, str]]
    """Key columns of the chosen rows."""


class BaseFailed(WarpsmithError):
    """The base fails too, so the machine or the commands are to blame, not the candidate."""


def judge_baseline(runner: SideRunner, commit: str) -> tuple[RepoEvaluation, RepoBaseline]:
    """Judge a commit against itself, in full; measure the noise floors and choose the representative rows.

    Raises:
        Misuse: the test or the benchmark fails, its table is wrong, or neither depends on the kernel's files.
        TimedOut: one of them never ends.
    """
    runner.bring(commit, commit)
    require_kernel_use(runner)
    for side in (BASE, CANDIDATE):
        runner.rebuild(side)
    runner.test(BASE, "full")
    rows = runner.benchmark(BASE, "full", {})
    if runner.settings.program:
        runner.program(BASE, runner.settings.program)
    try:
        pairs = _measure_pairs(runner, "full", tuple(rows), {})
    except BaseFailed as error:
        raise (error.__cause__ or error) from None
    aggregate = statistics.geometric_mean(row_results.name_pairs(pairs), BASE)
    chosen = _choose_rows(runner, rows, pairs)
    few = {key: both for key, both in pairs.items() if key[0] in chosen}
    baseline = RepoBaseline(
        representative=row_keys(rows, chosen),
        floor=statistics.self_comparison_floor(aggregate),
        quick_floor=statistics.self_comparison_floor(statistics.geometric_mean(row_results.name_pairs(few), BASE)),
    )
    decided = decision.accept_without_rival()
    return _evaluation(runner, "full", (commit, commit), decided, pairs, aggregate, None), baseline


def judge_commit(
    runner: SideRunner,
    sides: tuple[str, str],
    level: Level,
    baseline: RepoBaseline,
    rows: Sequence[str],
    than: str = "the best version",
) -> RepoEvaluation:
    """Judge a candidate's commit against another one.

    Args:
        runner: the worktrees and commands.
        sides: commits of the base and of the candidate.
        level: the rows to judge at: all, or the representative ones.
        baseline: measurements of the campaign's first round.
        rows: names of all rows of the baseline.
        than: name of the base in the decision's reason.
    """
    runner.bring(*sides)
    floor = baseline.quick_floor if level == "quick" else baseline.floor
    names = tuple(baseline.representative) if level == "quick" else tuple(rows)
    try:
        failure = _candidate_failure(runner, level)
        if failure:
            return _evaluation(runner, level, sides, _rollback(failure), floor=floor)
        runner.rebuild(BASE)
        pairs, decided = _measure_until_settled(runner, level, baseline, (names, floor, than))
        aggregate = statistics.geometric_mean(row_results.name_pairs(pairs), BEST)
        transfer = measurement.measure_transfer(runner, aggregate) if decided.verdict.accepted else None
    except BaseFailed as error:
        invalid = Decision(verdict=Verdict.INVALID, reason=str(error), against=BEST)
        return _evaluation(runner, level, sides, invalid, floor=floor)
    except FAILURES as error:
        return _evaluation(runner, level, sides, _rollback(str(error)), floor=floor)
    judged = _evaluation(runner, level, sides, decided, pairs, aggregate, floor)
    return judged.model_copy(update={"transfer": transfer})


def require_kernel_use(runner: SideRunner) -> None:
    """Check that the commands use the worktree's own kernel: with an empty kernel, each must fail.

    Raises:
        Misuse: a command passes, so it would measure an installed copy, whatever a round changes.
    """
    runner.empty(CANDIDATE)
    try:
        runner.rebuild(CANDIDATE)
    except FAILURES:
        pass
    else:
        for name, run in (
            ("test", lambda: runner.test(CANDIDATE, "full")),
            ("benchmark", lambda: runner.benchmark(CANDIDATE, "full", {})),
        ):
            try:
                run()
            except FAILURES:
                continue
            raise Misuse(
                f"`{name}` passes with {' and '.join(runner.settings.kernel)} emptied, so it does not use the "
                "kernel of the folder that it runs in (an installed package?); set PYTHONPATH, or add `rebuild`."
            )
    finally:
        runner.restore(CANDIDATE)
    runner.runs.clear()


def _candidate_failure(runner: SideRunner, level: Level) -> str | None:
    """Describe why the candidate is wrong, None if it is right; raises BaseFailed if the base fails too."""
    try:
        runner.rebuild(CANDIDATE)
        runner.test(CANDIDATE, level)
    except FAILURES as error:
        _require_base(runner, level, {}, benchmark_too=False)
        return str(error)
    return None


def _require_base(
    runner: SideRunner, level: Level, chosen: Mapping[str, Mapping[str, str]], *, benchmark_too: bool = True
) -> None:
    try:
        runner.rebuild(BASE)
        runner.test(BASE, level)
        if benchmark_too:
            runner.benchmark(BASE, level, chosen)
    except FAILURES as error:
        raise BaseFailed(f"the best version fails too, so this says nothing about the change: {error}") from error


def _measure_until_settled(
    runner: SideRunner, level: Level, baseline: RepoBaseline, question: tuple[Sequence[str], float, str]
) -> tuple[Pairs, Decision]:
    """Measure batches until the decision is settled and clear of doubt, `max_repeats` times more at most.

    A row is in doubt if it may be slower by the regression limit, in an acceptance, or in a rollback for a loss
    that is not beyond the noise floor. Where the benchmark can be asked for rows, such rows are measured one by
    one, so that the two runs of a pair are close in time.

    Args:
        runner: the worktrees and commands.
        level: the rows to judge at.
        baseline: measurements of the campaign's first round.
        question: names of the rows, noise floor, and name of the base in the decision's reason.
    """
    names, floor, than = question
    thresholds, whole = runner.settings.thresholds, [_Batch(level, names, baseline.representative)]
    batches = whole
    pairs: Pairs = {}
    repeats = 0
    while True:
        for batch in batches:
            for key, both in _measure_pairs(runner, *batch).items():
                for costs, more in zip(pairs.setdefault(key, ([], [])), both, strict=True):
                    costs += more
        mean = statistics.geometric_mean(row_results.name_pairs(pairs), BEST)
        compared = row_results.compare_rows(pairs)
        provisional = decision.decide_verdict(mean, compared, floor, thresholds, repeats, than=than)
        losses = row_results.possible_losses(compared, thresholds.regression)
        unsure = provisional.decision.ambiguous or (provisional.decision.verdict.accepted and losses)
        doubt = unsure and repeats < thresholds.max_repeats
        if provisional.settled and not doubt:
            return pairs, row_results.note_possible_losses(provisional, losses, than)
        repeats += 1
        batches = (provisional.settled and _batches_of_doubt(runner, pairs, losses)) or whole


def _batches_of_doubt(runner: SideRunner, pairs: Pairs, losses: Mapping[str, float]) -> list[_Batch]:
    """Return a batch for each row that may be slower; none where the benchmark cannot be asked for rows."""
    if not (runner.settings.quick and runner.settings.quick.environment):
        return []
    by_name = zip(row_results.name_pairs(pairs), pairs, strict=True)
    rows = dict.fromkeys(row for name, (row, _) in by_name if name in losses)
    return [_Batch("quick", (row,), {row: runner.keys[row]}) for row in rows]


def _measure_pairs(
    runner: SideRunner, level: Level, names: Sequence[str], chosen: Mapping[str, Mapping[str, str]]
) -> Pairs:
    """Measure one batch: `repeats` runs of either side, in turns; the side that begins alternates.

    Raises:
        BaseFailed: a run of the base fails, on its own or after a run of the candidate did.
        BadTable, CommandFailed, CommandTimedOut: only a run of the candidate fails.
    """
    pairs: Pairs = {}
    for number in range(runner.settings.repeats):
        order = (BASE, CANDIDATE) if number % 2 == 0 else (CANDIDATE, BASE)
        both = {side: _costs(runner, side, level, names, chosen) for side in order}
        for key, cost in both[CANDIDATE].items():
            candidate, base = pairs.setdefault(key, ([], []))
            candidate.append(cost)
            base.append(both[BASE][key])
    return pairs


def _costs(
    runner: SideRunner, side: Side, level: Level, names: Sequence[str], chosen: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], float]:
    try:
        rows = runner.benchmark(side, level, chosen)
        return benchmark.row_costs(runner.settings, benchmark.require_rows(rows, names, f"`benchmark` in {side}"))
    except FAILURES as error:
        if side == BASE:
            raise BaseFailed(f"the best version fails, so this says nothing about the change: {error}") from error
        _require_base(runner, level, chosen)
        raise


def _choose_rows(runner: SideRunner, rows: Mapping[str, BenchmarkRow], pairs: Pairs) -> tuple[str, ...]:
    """Choose the representative rows, or take those that the quick benchmark prints."""
    quick, spent = runner.settings.quick, dict.fromkeys(rows, 0.0)
    for (name, _), (_, base) in pairs.items():
        spent[name] += statistics.median(base)
    chosen = representative.choose_representative_rows(rows, spent, runner.settings.representative)
    if quick is None:
        return chosen
    printed = runner.benchmark(BASE, "quick", row_keys(rows, chosen))
    if quick.benchmark:
        benchmark.require_rows(rows, tuple(printed), "`benchmark`, against `quick.benchmark`,")
        return tuple(printed)
    if set(printed) != set(chosen):
        raise BadTable(
            f"`benchmark` with {quick.environment} set to {len(chosen)} rows prints {len(printed)}, or others;"
            " make it run the rows in that variable, a JSON list of objects with the key columns."
        )
    return chosen


def _rollback(reason: str) -> Decision:
    return Decision(verdict=Verdict.ROLLBACK, reason=reason, against=BEST)


def _evaluation(
    runner: SideRunner,
    level: Level,
    sides: tuple[str, str],
    decided: Decision,
    pairs: Pairs | None = None,
    aggregate: Aggregate | None = None,
    floor: float | None = None,
) -> RepoEvaluation:
    git, (base, commit) = runner.repository, sides
    return RepoEvaluation(
        level=level,
        base=base,
        commit=commit,
        tree=git.tree_of(commit),
        diff_sha256=hashlib.sha256(git.difference(base, commit)).hexdigest(),
        contract_sha256=settings.settings_sha256(runner.settings),
        lab_sha256=provenance.lab_sha256(),
        machine=_machine(git),
        runs=tuple(runner.runs),
        findings=(*_findings(runner, base, commit), *_load()),
        rows=tuple(row_results.list_row_results(runner.settings, pairs or {})),
        aggregate=aggregate,
        floor=floor,
        decision=decided,
        measured=this_minute(),
    )


def _findings(runner: SideRunner, base: str, commit: str) -> Iterable[str]:
    """List the lint notes on the candidate's kernel that the base's kernel does not have."""
    for path in runner.settings.kernel:
        before = {_without_line(text) for text in _lint_notes(runner.repository, base, path)}
        for text in _lint_notes(runner.repository, commit, path):
            if _without_line(text) not in before:
                yield f"{path}, {text}"


def _load() -> Iterable[str]:
    """Describe other load on the machine, while no command of the settings runs."""
    load = contention.describe_cpu_load()
    return (f"the machine: {load}, so times are noisy",) if load else ()


def _lint_notes(git: Repository, commit: str, path: str) -> list[str]:
    source = git.contents(commit, path).decode(errors="replace")
    language = languages.choose_linter(path, source)
    try:
        return lint.list_lint_notes(language, source) if language else []
    except (SyntaxError, ValueError):
        return []  # the test reports it better


def _without_line(text: str) -> str:
    return re.sub(r"^line \d+: ", "", text)


def _machine(git: Repository) -> Machine | None:
    target = hardware.find_local_target(git.project)
    return identity.identify_machine(target) if target else None
