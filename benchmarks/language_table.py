"""Table of docs/results.md that holds judged versions in one language against the best ones in Triton.

python benchmarks/language_table.py devlog/softmax/softmax-cutile-h200-20261122/rounds/001 ... --page

Each argument is a round's folder, a record or a final race, of one operator and target each; its representative
workloads are shown. If a judgement timed the Triton version itself, as the best version that was to be beaten, the
last column is that paired speedup. Otherwise it is the quotient of both speedups over the reference, each paired
in its own judgement. Without `--page` the table is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from warpsmith import files
from warpsmith.campaign.evidence.stored_evaluations import StoredEvaluation, find_evaluation
from warpsmith.core.evaluation import BEST, REFERENCE, Evaluation, Timing
from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.project import Project, find_project
from warpsmith.reporting import format
from warpsmith.use import choice

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
BEGIN, END = "<!-- judged beside Triton -->\n", "<!-- end -->\n"
"""Lines of the page around the table."""

_TITLE = ("operator", "workload", "time", "ceiling", "over the reference", "Triton", "over Triton")


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--page", action="store_true", help="write the table into docs/results.md")
    chosen = parser.parse_args()
    table = render_table(find_project(ROOT), chosen.records)
    if chosen.page:
        write_page(PAGE, table)
    else:
        print(table)


def render_table(project: Project, paths: list[Path]) -> str:
    """Return the table of these judgements.

    Raises:
        Misuse: one is of a version in Triton, or of an operator without one that stands on the target.
    """
    lines = [_TITLE, ("---",) * len(_TITLE)]
    for path in paths:
        lines += _rows(project, find_evaluation(project, path))
    return "".join("".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n" for cells in lines)


def write_page(page: Path, table: str) -> None:
    """Replace the table of the page.

    Raises:
        Misuse: the page has no place for it.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Misuse(f"{page} lacks the lines `{BEGIN.strip()}` and `{END.strip()}`; add them where it belongs.")
    files.write_file(page, f"{before}{begin}{table}{end}{after}".encode())


def find_triton(project: Project, evaluation: Evaluation) -> StoredEvaluation:
    """Return the judgement of the best version in Triton on the same operator and target; raises Misuse."""
    op, target = evaluation.definition, evaluation.target
    for version in choice.accepted_versions(project, op, target):
        if version.language == "triton":
            return find_evaluation(project, version.record)
    raise Misuse(f"No version of {op} in Triton stands on {target}; judge one first.")


def _rows(project: Project, stored: StoredEvaluation) -> Iterator[tuple[str, ...]]:
    evaluation = stored.evaluation
    if evaluation.language == "triton":
        raise Misuse(f"{stored.path} is of a version in Triton, which others are held against; give another one.")
    triton = find_triton(project, evaluation)
    others = _timings(triton.evaluation)
    links = [_link(stored), _link(triton)]
    for workload, timing in _timings(evaluation).items():
        other = others.get(workload)
        yield (
            links[0],
            workload,
            format.seconds(timing.seconds),
            f"{100 * timing.ceiling_share:.0f} %",
            format.factor(_over_reference(timing)),
            f"{links[1]} {format.seconds(other.seconds)}".strip() if other else "not timed",
            format.factor(_over_triton(evaluation, timing, other)),
        )
        links = ["", ""]


def _timings(evaluation: Evaluation) -> dict[str, Timing]:
    """Return the times of the representative workloads; all are, unless the judgement says which."""
    chosen = evaluation.representative
    return {
        result.workload: result.timing
        for result in evaluation.results
        if result.timing and (not chosen or result.workload in chosen)
    }


def _over_triton(evaluation: Evaluation, timing: Timing, other: Timing | None) -> float | None:
    """Return the paired speedup over the Triton version, else that by both references; None without either."""
    paired = timing.against(BEST)
    if paired is not None and "/triton/" in (evaluation.provenance.best or ""):
        return paired.speedup
    own, theirs = _over_reference(timing), _over_reference(other) if other else None
    return own / theirs if own and theirs else None


def _over_reference(timing: Timing) -> float | None:
    comparison = timing.against(REFERENCE)
    return comparison.speedup if comparison else None


def _link(stored: StoredEvaluation) -> str:
    evaluation = stored.evaluation
    name = f"{evaluation.definition}, {evaluation.language} {evaluation.version}"
    return f"[{name}]({os.path.relpath(stored.path, PAGE.parent)})"


if __name__ == "__main__":
    try:
        main()
    except WarpsmithError as error:
        print(f"language_table: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
