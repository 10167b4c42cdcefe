"""Red team of ranks on GPUs: every attack must be caught and every control accepted; one record, a line for each.

    python benchmarks/ranks_redteam.py --target h200 --ranks 2 --out benchmarks/records/ranks_redteam-h200.json

Exit code 1: a case went wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate_tests.models import CaseHeader, parse_header
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.ranks.judge import RankRequest, judge_ranks
from warpsmith.lab.ranks.models import RankEvaluation
from warpsmith.lab.ranks.rank_host import open_rank_host
from warpsmith.lab.ranks.shards import change_ranks
from warpsmith.lab.workers.side import Limits
from warpsmith.project import find_project

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "lab" / "ranks" / "redteam" / "gpu"
DEFINITION = ROOT / "examples" / "ranks" / "all_reduce_rmsnorm" / "definition.py"
SIZES = {"32x1024": "representative", "3x17": "odd"}
HANG_SECONDS, SECONDS = 3.0, 30.0


def main() -> None:
    """Judge all cases; write the record after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="by default this machine's GPU")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", action="append", help="name of a case, such as attack_deadlock")
    parser.add_argument("--out", type=Path, default=Path("ranks_redteam.json"))
    options = parser.parse_args()
    project, file = find_project(), small_definition(options.ranks)
    target = hardware.choose_target(project, options.target)
    paths = [path for path in sorted(CASES.glob("*.py")) if not options.only or path.stem in options.only]
    cases: list[dict[str, Any]] = []
    with open_rank_host(target, options.ranks) as host:
        record = {
            "measured": this_minute(),
            "machine": identity.identify_machine(target).model_dump(mode="json"),
            "ranks": options.ranks,
        }
        for path in paths:
            header, started = parse_header(path.read_text()), time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                tempfile.tempdir = folder  # an attack leaves a file beside the ranks' folder
                limits = Limits(seconds=HANG_SECONDS if Status.TIMEOUT in header.status else SECONDS)
                timed = "timing" in header.caught
                request = RankRequest(project, file, path, target=target.id, timed=timed, limits=limits)
                evaluation = judge_ranks(request, host)
                tempfile.tempdir = None
            cases.append(describe_case(path.stem, header, evaluation, time.monotonic() - started))
            print(
                "{name:28} {expected:9} {outcome:22} {right!s:6} {seconds:5.1f} s  {message}".format(**cases[-1]),
                flush=True,
            )
            record |= {
                "devices": evaluation.devices,
                "nccl": evaluation.nccl,
                "link": evaluation.link,
                "finished": len(cases) == len(paths),
                "wrong": [case["name"] for case in cases if not case["right"]],
                "cases": cases,
            }
            files.write_file(options.out, json.dumps(record, indent=2, default=str) + "\n")
    right = sum(case["right"] for case in cases)
    print(f"{right} of {len(cases)} right; recorded in {options.out}")
    sys.exit(right < len(cases))


def small_definition(ranks: int) -> DefinitionFile:
    """Return the example's operator for so many ranks at two small sizes."""
    file = definition_file.load_definition(DEFINITION, over_ranks=True)
    workloads = tuple(
        Workload(name=name, axes=dict(zip(("rows", "cols"), map(int, name.split("x")), strict=True)), set=set_)
        for name, set_ in SIZES.items()
    )
    definition = file.definition.model_copy(update={"workloads": workloads})
    return replace(file, definition=change_ranks(definition, ranks))


def describe_case(name: str, header: CaseHeader, evaluation: RankEvaluation, seconds: float) -> dict[str, Any]:
    """Return a case's row: it is right if an attack is caught as its header says, and a control is correct."""
    failed = next((result for result in evaluation.results if result.status is not Status.PASSED), None)
    if header.kind == "control":
        right = evaluation.correct
    else:
        decision = evaluation.decision
        right = failed is not None and decision is not None and decision.verdict == "ROLLBACK"
        right = right and (not header.status or failed.status in header.status)
    return {
        "name": name,
        "family": header.family,
        "kind": header.kind,
        "expected": "correct" if header.kind == "control" else "caught",
        "outcome": failed.status.value if failed else "correct",
        "caught_in": (failed.workload if failed else ""),
        "right": right,
        "seconds": round(seconds, 1),
        "message": failed.message[:90] if failed else "",
    }


if __name__ == "__main__":
    main()
