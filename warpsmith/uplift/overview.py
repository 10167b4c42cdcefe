"""Overview of all judged cells: operators and arms side by side, and the gain of each arm over the bare one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, fsum, log

from warpsmith.uplift.models import ARMS, Arm, CellJudgement, CellRecord

_TITLE = "# Uplift: the same agent with and without Warpsmith\n"

_LEGEND = """\
*Speedup* is the geometric mean over public and hidden sizes, over the faster of eager PyTorch and `torch.compile`.
All kernels of an operator are timed in one run. *Usable* is what a user gains: a kernel that is wrong or slower
counts as 1, because PyTorch stays. *Score* is the mean of the speedups with a wrong kernel as 0. A *false claim*
is a wrong kernel that was claimed right, or a claimed speedup of more than 1.1 times the measured one.
"""


def render_overview(records: Sequence[CellRecord]) -> str:
    """Return the page: a table of arms, the gains by operator, a table of cells and the reasons of failures."""
    judged = [(record, record.judgement) for record in records if record.judgement]
    parts = [_TITLE, _conditions(records), _LEGEND, _arm_table(judged), _gain_table(judged), _cell_table(records)]
    wrong = [f"- {r.submission.cell.name}: {j.reason}" for r, j in judged if not j.correct]
    if wrong:
        parts.append("## Wrong kernels\n\n" + "\n".join(wrong) + "\n")
    return "\n".join(parts)


def usable_speedup(judgement: CellJudgement) -> float:
    """Return the speedup that a user gets: at least 1, since PyTorch stays where the kernel is wrong or slower."""
    return max(1.0, judgement.speedup)


def arm_gain(records: Iterable[CellRecord], arm: Arm) -> dict[str, float]:
    """Return for each operator the usable speedup of an arm over that of the bare one, by geometric means.

    An operator that lacks a judged cell of either arm is left out.
    """
    cells: dict[tuple[str, Arm], list[float]] = {}
    for record in records:
        if record.judgement:
            cell = record.submission.cell
            cells.setdefault((cell.operator, cell.arm), []).append(usable_speedup(record.judgement))
    return {
        operator: _mean(values) / _mean(cells[operator, "bare"])
        for (operator, cell_arm), values in sorted(cells.items())
        if cell_arm == arm and (operator, "bare") in cells
    }


_Judged = Sequence[tuple[CellRecord, CellJudgement]]


def _conditions(records: Sequence[CellRecord]) -> str:
    designers = ", ".join(sorted({record.submission.effort.designer for record in records}))
    machines = ", ".join(sorted({record.judgement.machine for record in records if record.judgement}))
    waiting = sum(record.judgement is None for record in records)
    rest = f" {waiting} are not judged yet." if waiting else ""
    return f"{len(records)} cells; designed by {designers}; judged on {machines or 'no machine'}.{rest}\n"


def _arm_table(judged: _Judged) -> str:
    header = "| arm | cells | right | speedup of the right | usable | score | false claims | device s | tokens |"
    lines = ["## Arms\n", header]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for arm in ARMS:
        rows = [(record, judgement) for record, judgement in judged if record.submission.cell.arm == arm]
        if not rows:
            continue
        right = [judgement.speedup for _, judgement in rows if judgement.correct]
        efforts = [record.submission.effort for record, _ in rows]
        tokens = [effort.tokens for effort in efforts if effort.tokens is not None]
        lines.append(
            f"| {arm} | {len(rows)} | {len(right)}/{len(rows)} | {f'{_mean(right):.2f}x' if right else '-'} "
            f"| {_mean([usable_speedup(judgement) for _, judgement in rows]):.2f}x "
            f"| {fsum(right) / len(rows):.2f} | {sum(record.false_claim for record, _ in rows)} "
            f"| {fsum(effort.device_seconds for effort in efforts) / len(rows):.0f} "
            f"| {f'{fsum(tokens) / len(tokens):,.0f}' if tokens else 'not counted'} |"
        )
    return "\n".join(lines) + "\n"


def _gain_table(judged: _Judged) -> str:
    records = [record for record, _ in judged]
    gains = {arm: gain for arm in ARMS[1:] if (gain := arm_gain(records, arm))}
    if not gains:
        return "## Gain over the bare arm\n\nNo operator has judged cells of two arms.\n"
    lines = ["## Gain over the bare arm\n", f"| operator | {' | '.join(gains)} |", "|---" * (len(gains) + 1) + "|"]
    for operator in sorted({operator for gain in gains.values() for operator in gain}):
        values = (f"{gain[operator]:.2f}x" if operator in gain else "-" for gain in gains.values())
        lines.append(f"| {operator} | {' | '.join(values)} |")
    means = " | ".join(f"**{_mean(list(gain.values())):.2f}x**" for gain in gains.values())
    lines.append(f"| geometric mean | {means} |")
    return "\n".join(lines) + "\n"


def _cell_table(records: Sequence[CellRecord]) -> str:
    lines = [
        "## Cells\n",
        "| cell | right | speedup | public sizes | worst workload | claimed | false claim | calls | device s "
        "| tokens | turns |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_cell_row(record) for record in records]
    return "\n".join(lines) + "\n"


def _cell_row(record: CellRecord) -> str:
    submission, judgement = record.submission, record.judgement
    effort, claim = submission.effort, submission.claim
    verdict = ["not judged", "", "", ""]
    if judgement:
        worst = min(judgement.workloads.items(), key=lambda item: item[1].speedup, default=None)
        verdict = [
            "yes" if judgement.correct else "no",
            f"{judgement.speedup:.2f}x",
            f"{judgement.public_speedup:.2f}x",
            f"{worst[0]}: {worst[1].speedup:.2f}x" if worst else "",
        ]
    claimed = f"{claim.speedup:.2f}x" if claim.correct else f"{claim.speedup:.2f}x, wrong"
    counts = [effort.device_calls, f"{effort.device_seconds:.0f}", effort.tokens, effort.turns]
    cells = [submission.cell.name, *verdict, claimed, "yes" if record.false_claim else "no"]
    return f"| {' | '.join([*cells, *('' if each is None else str(each) for each in counts)])} |"


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return exp(fsum(log(value) for value in values) / len(values))
