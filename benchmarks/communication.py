"""All versions of an operator over ranks side by side: errors, and times in the same rounds, by workload.

python benchmarks/communication.py all_reduce_rmsnorm --ranks 2 --target h200 --out
all_reduce_rmsnorm-h200x2.json

Times are those of the slowest rank's GPU. A version that fails is a row with its error, and the rest goes on.
Each version is graded in a block in which a rank is late, and in each timed block. `warpsmith ranks` grades
more.
"""

from __future__ import annotations

import argparse
import ast
import json
import secrets
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.lab.grading import correctness
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.ranks.correctness_check import LATE_SECONDS, grade_slot
from warpsmith.lab.ranks.group import SLOTS, RankGroup
from warpsmith.lab.ranks.rank_host import open_rank_host
from warpsmith.lab.ranks.shards import change_ranks
from warpsmith.lab.ranks.timing import time_groups
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.workers.side import Limits, SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import find_project

EXAMPLES = Path(__file__).parents[1] / "examples" / "ranks"
BASELINES = {"all_reduce_rmsnorm": "v3"}
"""Operator to its version with NCCL; `v1` of all others."""

FAILURES = 2
"""Failures after which a version is left out. Chosen: each costs the start of its processes, or a time limit."""


@dataclass
class Bench:
    """Versions of an operator, and their processes, which stay from one workload to the next."""

    file: DefinitionFile
    sources: dict[str, Path]
    workloads: list[Workload]
    host: WorkerHost
    stack: ExitStack
    groups: dict[str, RankGroup] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)

    def measure_workload(self, workload: Workload) -> dict[str, dict[str, Any]]:
        """Grade and time all versions at a workload; return a row for each, with `failed` or with times."""
        rows: dict[str, dict[str, Any]] = {}
        for name in self.sources:
            if self.failures.get(name, 0) >= FAILURES:
                rows[name] = {"failed": f"not started again after {FAILURES} failures"}
                continue
            try:
                rows[name] = {"error": self._largest_error(workload, self._group(name))}
            except SideFailed as failure:
                rows[name] = self._failed(name, failure)
        groups = {name: self.groups[name] for name in self.sources if "error" in rows[name]}
        times, failures = time_groups(self.file, workload, groups)
        rows |= {name: self._failed(name, failure) for name, failure in failures.items()}
        measured = times.seconds.get(workload.name, {})
        for name, seconds in measured.items():
            rows[name] |= {
                "us": statistics.median(seconds) * 1e6,
                "spread": statistics.spread(seconds),
                "samples": len(seconds),
                "issued_ahead": times.ahead.get(workload.name, {}).get(name),
            }
        _add_ratios(rows, measured, baseline_of(self.file))
        return rows

    def _group(self, name: str) -> RankGroup:
        """Return the processes of a version; those of one that failed were ended, so they are started anew."""
        if name not in self.groups:
            source = self.sources[name]
            content, limits = source.read_bytes(), Limits()
            group = RankGroup(name, self.file.definition, self.workloads, source, content, self.host, limits)
            self.groups[name] = group
            self.stack.callback(group.close)
        return self.groups[name]

    def _failed(self, name: str, failure: SideFailed) -> dict[str, Any]:
        self.failures[name] = self.failures.get(name, 0) + 1
        if name in self.groups:
            self.groups.pop(name).close()
        return {"failed": f"{failure.status}: {failure.message}"[:600]}

    def _largest_error(self, workload: Workload, group: RankGroup) -> float:
        """Return the largest error over its bound in a block of calls in which one rank after the other
        is late.
        """
        group.open_workload(workload)
        inputs = Inputs(self.file, workload, secrets.randbits(62), group.grading_device)
        slots = list(inputs.draw_several(SLOTS, quick=True))
        group.fill(slots)
        ranks = range(self.file.definition.ranks)
        late = [[LATE_SECONDS[0] * (slot % len(ranks) == rank) for slot in range(SLOTS)] for rank in ranks]
        group.call_slots(late)
        grades = []
        for slot, tensors in enumerate(slots):
            truth = correctness.compute_truth(self.file, workload, tensors)
            grades.append(grade_slot(self.file, group, slot, tensors, truth, f"call {slot + 1}"))
        return correctness.summarize_grades(grades).worst


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", choices=sorted(path.parent.name for path in EXAMPLES.glob("*/definition.py")))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--target", help="by default this machine's GPU; `cpu` runs what gloo can")
    parser.add_argument(
        "--workload", action="append", default=[], help="name of one; by default all but odd sizes"
    )
    parser.add_argument("--version", action="append", default=[], help="name of one, such as v3; by default all")
    parser.add_argument("--out", type=Path, default=Path("communication.json"))
    options = parser.parse_args()
    project = find_project()
    target = hardware.choose_target(project, options.target)
    file = definition_file.load_definition(EXAMPLES / options.op / "definition.py", over_ranks=True)
    if options.ranks != file.definition.ranks:
        file = replace(file, definition=change_ranks(file.definition, options.ranks))
    paths = sorted(file.path.parent.glob("v*.py"), key=lambda path: int(path.stem[1:]))
    if unknown := set(options.version) - {path.stem for path in paths}:
        names = ", ".join(path.stem for path in paths)
        raise Misuse(f"{options.op} has no version `{unknown.pop()}`; it has {names}.")
    sources = {path.stem: path for path in paths if not options.version or path.stem in options.version}
    workloads = choose_workloads(file, target.kind, options.workload)
    with ExitStack() as stack:
        host = stack.enter_context(open_rank_host(target, options.ranks, print))
        bench = Bench(file, sources, workloads, host, stack)
        record: dict[str, Any] = {
            "measured": this_minute(),
            "op": options.op,
            "ranks": options.ranks,
            "machine": identity.identify_machine(target).model_dump(mode="json"),
            "gate_version": GATE_VERSION,
            "definition_sha256": file.sha256,
            "torch": metadata.version("torch"),
            "triton": metadata.version("triton"),
            "baseline": baseline_of(file),
            "versions": {name: describe_version(path) for name, path in sources.items()},
            "workloads": {},
        }
        for workload in workloads:
            rows = record["workloads"][workload.name] = bench.measure_workload(workload)
            group = next(iter(bench.groups.values()), None)
            record |= {"devices": group.devices, "nccl": group.nccl} if group else {}
            files.write_file(options.out, json.dumps(record, indent=2, default=str) + "\n")
            print_rows(workload.name, rows, record["baseline"])
    print(f"recorded in {options.out}")


def baseline_of(file: DefinitionFile) -> str:
    """Return the name of an operator's version with NCCL."""
    return BASELINES.get(file.definition.name, "v1")


def choose_workloads(file: DefinitionFile, kind: str, names: list[str]) -> list[Workload]:
    """Return the named workloads, or those of a device: a processor leaves out the full set.

    Raises:
        Misuse: there is no such workload.
    """
    timed = file.definition.select("representative", *(["full"] if kind == "gpu" or names else []))
    chosen = [each for each in timed if not names or each.name in names]
    if unknown := set(names) - {each.name for each in chosen}:
        others = ", ".join(each.name for each in timed)
        raise Misuse(f"{file.definition.name} has no workload `{unknown.pop()}`; it has {others}.")
    return sorted(chosen, key=file.definition.elements)


def describe_version(path: Path) -> dict[str, str]:
    """Return what a version's first line says, and its hash."""
    content = path.read_bytes()
    about = (ast.get_docstring(ast.parse(content)) or "").partition("\n")[0]
    return {"about": about, "sha256": sha256(content).hexdigest()}


def print_rows(workload: str, rows: dict[str, dict[str, Any]], baseline: str) -> None:
    """Print the versions' rows of a workload, with how many times faster than the baseline each is."""
    print(workload)
    for name, row in rows.items():
        if "failed" in row:
            print(f"  {name:4} failed: {row['failed'][:150]}")
            continue
        ratio = f"{row['ratio']:.2f}x {baseline}" if "ratio" in row else ""
        late = "" if row["issued_ahead"] is not False else ", the host's time is in it"
        print(f"  {name:4} {row['us']:9.1f} us  {ratio:9} error/bound {row['error']:.2g}{late}", flush=True)


def _add_ratios(rows: dict[str, dict[str, Any]], times: dict[str, list[float]], baseline: str) -> None:
    """Add to each row how many times faster than the baseline it was, by paired rounds."""
    for name, seconds in times.items():
        if baseline in times:
            comparison = timing.compare_times(baseline, seconds, times[baseline])
            rows[name] |= {"ratio": comparison.speedup, "interval": comparison.interval.model_dump()}


if __name__ == "__main__":
    try:
        main()
    except WarpsmithError as error:
        print(f"communication: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
