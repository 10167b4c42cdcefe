"""A judgement: tests first, then base and candidate benchmarked in turns, and the lab's decision on the pairs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from warpsmith import languages
from warpsmith.core.base import this_minute
from warpsmith.core.evaluation import BEST, Aggregate, Comparison, Decision, Verdict
from warpsmith.core.hardware import Machine
from warpsmith.core.repo import Level, RepoBaseline, RepoEvaluation, RowResult, Side
from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.lab.gate import decision, lint
from warpsmith.lab.machine import contention, hardware, identity, provenance
from warpsmith.lab.timing import statistics
from warpsmith.repo import benchmark, representative, settings
from warpsmith.repo.benchmark import BadTable, BenchmarkRow
from warpsmith.repo.side_runner import FAILURES, SideRunner, row_keys
from warpsmith.repo.worktrees import BASE, CANDIDATE, Repository

Pairs = dict[tuple[str, str], tuple[list[float], list[float]]]
"""Row and metric to what the candidate cost, and the base, run by run."""


class BaseFailed(WarpsmithError):
    """The base fails too: the machine or the commands are to blame, not the candidate."""


def judge_baseline(yard: SideRunner, commit: str) -> tuple[RepoEvaluation, RepoBaseline]:
    """The first round: the commit against itself, in full; what the machine's noise and the rows are.

    Raises:
        Misuse: the test or the benchmark fails, its table is wrong, or neither depends on the kernel's files.
        TimedOut: one of them never ends.
    """
    yard.bring(commit, commit)
    require_kernel_use(yard)
    for side in (BASE, CANDIDATE):
        yard.rebuild(side)
    yard.test(BASE, "full")
    rows = yard.benchmark(BASE, "full", {})
    try:
        pairs = _pairs(yard, "full", tuple(rows), {})
    except BaseFailed as error:
        raise (error.__cause__ or error) from None
    aggregate = statistics.geometric_mean(_named(pairs), BASE)
    chosen = _chosen(yard, rows, pairs)
    few = {key: both for key, both in pairs.items() if key[0] in chosen}
    found = RepoBaseline(
        representative=row_keys(rows, chosen),
        floor=statistics.self_comparison_floor(aggregate),
        quick_floor=statistics.self_comparison_floor(statistics.geometric_mean(_named(few), BASE)),
    )
    decided = decision.accept_baseline()
    return _judgement(yard, "full", (commit, commit), decided, pairs, aggregate, None), found


def judge_commit(
    yard: SideRunner,
    sides: tuple[str, str],
    level: Level,
    baseline: RepoBaseline,
    rows: Sequence[str],
    than: str = "the best version",
) -> RepoEvaluation:
    """Judge a commit against another one.

    Args:
        yard: where.
        sides: the commit that it is judged against, and the candidate.
        level: at which rows.
        baseline: what the campaign's first round fixed.
        rows: every row of the baseline.
        than: what the reason calls the commit that it is judged against.
    """
    yard.bring(*sides)
    floor = baseline.quick_floor if level == "quick" else baseline.floor
    wanted = tuple(baseline.representative) if level == "quick" else tuple(rows)
    try:
        failure = _candidate_fails(yard, level)
        if failure:
            return _judgement(yard, level, sides, _rollback(failure), floor=floor)
        yard.rebuild(BASE)
        pairs: Pairs = {}
        standing, repeats = None, 0
        while standing is None or not standing.settled:
            repeats += standing is not None
            for key, both in _pairs(yard, level, wanted, baseline.representative).items():
                for ours, more in zip(pairs.setdefault(key, ([], [])), both, strict=True):
                    ours += more
            aggregate = statistics.geometric_mean(_named(pairs), BEST)
            standing = decision.decide_verdict(
                aggregate, _comparisons(pairs), floor, yard.contract.thresholds, repeats, than=than
            )  # fmt: skip
    except BaseFailed as error:
        invalid = Decision(verdict=Verdict.INVALID, reason=str(error), against=BEST)
        return _judgement(yard, level, sides, invalid, floor=floor)
    except FAILURES as error:
        return _judgement(yard, level, sides, _rollback(str(error)), floor=floor)
    return _judgement(yard, level, sides, standing.decision, pairs, aggregate, floor)


def require_kernel_use(yard: SideRunner) -> None:
    """Make sure that the commands use the worktree's own kernel: without it, each must fail.

    Raises:
        Misuse: one of them does not; else an installed copy would be measured, whatever a round changes.
    """
    yard.empty(CANDIDATE)
    try:
        yard.rebuild(CANDIDATE)
    except FAILURES:
        pass
    else:
        for what, run in (
            ("test", lambda: yard.test(CANDIDATE, "full")),
            ("benchmark", lambda: yard.benchmark(CANDIDATE, "full", {})),
        ):
            try:
                run()
            except FAILURES:
                continue
            raise Misuse(
                f"`{what}` passes with {' and '.join(yard.contract.kernel)} emptied, so it does not use the kernel"
                " of the folder that it runs in (an installed package?); set PYTHONPATH in it, or give `rebuild`."
            )
    finally:
        yard.restore(CANDIDATE)
    yard.runs.clear()


def _candidate_fails(yard: SideRunner, level: Level) -> str | None:
    """Why the candidate is wrong, None: it is right; raises BaseFailed where the base is no better."""
    try:
        yard.rebuild(CANDIDATE)
        yard.test(CANDIDATE, level)
    except FAILURES as error:
        _prove_base(yard, level, {}, benchmark_too=False)
        return str(error)
    return None


def _prove_base(
    yard: SideRunner, level: Level, chosen: Mapping[str, Mapping[str, str]], *, benchmark_too: bool = True
) -> None:
    try:
        yard.rebuild(BASE)
        yard.test(BASE, level)
        if benchmark_too:
            yard.benchmark(BASE, level, chosen)
    except FAILURES as error:
        raise BaseFailed(f"the best version fails too, so nothing is said of the change: {error}") from error


def _pairs(
    yard: SideRunner, level: Level, wanted: Sequence[str], chosen: Mapping[str, Mapping[str, str]]
) -> Pairs:
    """One batch: as many runs of either side as the contract says, in turns, the first one changing.

    Raises:
        BaseFailed: the base's run fails, or the candidate's and then the base's.
        BadTable, CommandFailed, CommandTimedOut: the candidate's run fails.
    """
    found: Pairs = {}
    for number in range(yard.contract.repeats):
        order = (BASE, CANDIDATE) if number % 2 == 0 else (CANDIDATE, BASE)
        both = {side: _costs(yard, side, level, wanted, chosen) for side in order}
        for key, cost in both[CANDIDATE].items():
            ours, theirs = found.setdefault(key, ([], []))
            ours.append(cost)
            theirs.append(both[BASE][key])
    return found


def _costs(
    yard: SideRunner, side: Side, level: Level, wanted: Sequence[str], chosen: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], float]:
    try:
        rows = yard.benchmark(side, level, chosen)
        return benchmark.row_costs(yard.contract, benchmark.require_rows(rows, wanted, f"`benchmark` in {side}"))
    except FAILURES as error:
        if side == BASE:
            raise BaseFailed(f"the best version fails, so nothing is said of the change: {error}") from error
        _prove_base(yard, level, chosen)
        raise


def _chosen(yard: SideRunner, rows: Mapping[str, BenchmarkRow], pairs: Pairs) -> tuple[str, ...]:
    """The representative rows: chosen here, or those that the quick benchmark prints."""
    quick, spent = yard.contract.quick, dict.fromkeys(rows, 0.0)
    for (name, _), (_, theirs) in pairs.items():
        spent[name] += statistics.median(theirs)
    chosen = representative.choose_representative_rows(rows, spent, yard.contract.representative)
    if quick is None:
        return chosen
    printed = yard.benchmark(BASE, "quick", row_keys(rows, chosen))
    if quick.benchmark:
        benchmark.require_rows(rows, tuple(printed), "`benchmark`, against `quick.benchmark`,")
        return tuple(printed)
    if set(printed) != set(chosen):
        raise BadTable(
            f"`benchmark` with {quick.environment} set to {len(chosen)} rows prints {len(printed)}, or others;"
            " make it run the rows in that variable, a JSON list of objects with the key columns."
        )
    return chosen


def _named(pairs: Pairs) -> dict[str, tuple[list[float], list[float]]]:
    several = len({metric for _, metric in pairs}) > 1
    return {f"{row} [{metric}]" if several else row: both for (row, metric), both in pairs.items()}


def _comparisons(pairs: Pairs) -> dict[str, Comparison]:
    found = {}
    for name, (ours, theirs) in _named(pairs).items():
        speedup, interval = statistics.paired_speedup(ours, theirs)
        found[name] = Comparison(
            against=BEST,
            other_seconds=statistics.median(theirs),
            speedup=speedup,
            interval=interval,
            pairs=len(ours),
        )
    return found


def _rollback(reason: str) -> Decision:
    return Decision(verdict=Verdict.ROLLBACK, reason=reason, against=BEST)


def _judgement(
    yard: SideRunner,
    level: Level,
    sides: tuple[str, str],
    decided: Decision,
    pairs: Pairs | None = None,
    aggregate: Aggregate | None = None,
    floor: float | None = None,
) -> RepoEvaluation:
    git, (base, commit) = yard.repository, sides
    return RepoEvaluation(
        level=level,
        base=base,
        commit=commit,
        tree=git.tree_of(commit),
        diff_sha256=hashlib.sha256(git.difference(base, commit)).hexdigest(),
        contract_sha256=settings.settings_sha256(yard.contract),
        lab_sha256=provenance.lab_sha256(),
        machine=_machine(git),
        runs=tuple(yard.runs),
        findings=(*_findings(yard, base, commit), *_load()),
        rows=tuple(_rows(yard, pairs or {})),
        aggregate=aggregate,
        floor=floor,
        decision=decided,
        measured=this_minute(),
    )


def _rows(yard: SideRunner, pairs: Pairs) -> Iterable[RowResult]:
    for (row, metric), (ours, theirs) in pairs.items():
        speedup, interval = statistics.paired_speedup(ours, theirs)
        better = yard.contract.metrics.get(metric, "lower")
        after, before = (statistics.median(costs) for costs in (ours, theirs))
        yield RowResult(
            row=row,
            metric=metric,
            better=better,
            before=before if better == "lower" else 1 / before,
            after=after if better == "lower" else 1 / after,
            speedup=speedup,
            interval=interval,
            pairs=len(ours),
        )


def _findings(yard: SideRunner, base: str, commit: str) -> Iterable[str]:
    """What the lint finds in the candidate's kernel and did not find in the base's."""
    for path in yard.contract.kernel:
        before = {_placeless(text) for text in _linted(yard.repository, base, path)}
        for text in _linted(yard.repository, commit, path):
            if _placeless(text) not in before:
                yield f"{path}, {text}"


def _load() -> Iterable[str]:
    """Who else uses the machine, now that no command of the contract runs."""
    others = contention.describe_cpu_load()
    return (f"the machine: {others}, so times are noisy",) if others else ()


def _linted(git: Repository, commit: str, path: str) -> list[str]:
    source = git.contents(commit, path).decode(errors="replace")
    language = languages.choose_linter(path, source)
    try:
        return lint.list_lint_notes(language, source) if language else []
    except (SyntaxError, ValueError):
        return []  # the test says it better


def _placeless(text: str) -> str:
    return re.sub(r"^line \d+: ", "", text)


def _machine(git: Repository) -> Machine | None:
    target = hardware.find_local_target(git.project)
    return identity.identify_machine(target) if target else None
