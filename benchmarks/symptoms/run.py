"""Profiles kernels with planted causes, and compares what the classifier finds with expected.yaml.

python benchmarks/symptoms/run.py --out FOLDER [--only NAME ...]  compile, profile, classify: nvcc, ncu and a GPU
python benchmarks/symptoms/run.py --from FOLDER                   classify again what another run kept
python benchmarks/symptoms/run.py --table                         print the table of predictions
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import yaml

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.errors import MachineLacks, MissingInput, SolutionFailed, WarpsmithError
from warpsmith.languages.shared import tool
from warpsmith.profiling.counters import Counters
from warpsmith.profiling.diagnosis import from_counters as classifier
from warpsmith.profiling.diagnosis.symptom import Facts
from warpsmith.profiling.ncu import collect as ncu_collect
from warpsmith.profiling.ncu import report as ncu_report

HERE = Path(__file__).resolve().parent
NONE = "none"
"""What stands where no symptom was found."""

_COMPILER = ("nvcc", "-O3", "-std=c++17", "-lineinfo")
_COMPILE_SECONDS = 120.0
_PROFILE_SECONDS = 120.0
_OPTIONS = re.compile(r"^// nvcc: (.*)$", re.MULTILINE)


class Case(Model):
    """One kernel of expected.yaml."""

    kind: Literal["planted", "control", "held-out"]
    """Whether rules may be tuned on it, and how strictly it is judged."""
    first: tuple[str, ...]
    """Symptoms of which one must come first."""
    also: tuple[str, ...] = ()
    """Symptoms that must be among those that are found."""
    why: str
    """The cause, as it was planted."""
    bytes: float | None = None
    """What the operator must move at least."""
    tensor: bool | None = None
    """Whether its arithmetic belongs on tensor cores."""
    launches: int = 1
    """Launches of one call."""
    afterwards: str = ""
    """Where the prediction missed: why, by the counters. The prediction stays."""

    def right(self, found: Sequence[str]) -> bool:
        """Whether these symptoms, the first one first, are what was expected; a control has no second one."""
        alone = self.kind != "control" or len(found) == 1
        return found[0] in self.first and set(self.also) <= set(found) and alone


@dataclass(frozen=True)
class Row:
    """What became of one kernel."""

    name: str
    """The kernel."""
    case: Case
    """What was expected."""
    found: tuple[str, ...]
    """Symptoms, the first one first; empty where it was not profiled."""
    microseconds: float | None = None
    """Time of a call while it was profiled."""
    collected: float | None = None
    """Seconds that the profile took."""
    problem: str = ""
    """Why there is no profile."""

    @property
    def right(self) -> bool:
        """Whether it is as expected."""
        return bool(self.found) and self.case.right(self.found)


@cache
def expected() -> dict[str, Case]:
    """The kernels by name."""
    text = (HERE / "expected.yaml").read_text()
    return {name: Case.model_validate(case) for name, case in yaml.safe_load(text).items()}


def symptoms(case: Case, counted: Counters) -> tuple[str, ...]:
    """What the classifier finds in the hottest kernel of a call, on the way that a profile takes."""
    call = classifier.call_values(counted, case.bytes, None)
    hottest = classifier.diagnose_kernels(counted, call, Facts({}, asks_for_tensor_cores=case.tensor))[0]
    return tuple(found.symptom.id for found in hottest.diagnosis.symptoms) or (NONE,)


def reduced(name: str, counted: Counters) -> Counters:
    """The counters without what no rule reads, small enough to be kept."""
    launches = tuple(
        launch.model_copy(
            update={"values": {key: float(f"{value:.6g}") for key, value in launch.values.items()}, "advice": ()}
        )
        for launch in counted.launches
    )
    return counted.model_copy(update={"report": f"{name}{ncu_collect.SUFFIX}", "launches": launches})


def compile_one(name: str, folder: Path, arch: str) -> Path:
    """The kernel's program.

    Raises:
        SolutionFailed: it does not compile.
        MachineLacks: no nvcc.
    """
    source, program = HERE / f"{name}.cu", folder / name
    own = [word for options in _OPTIONS.findall(source.read_text()) for word in options.split()]
    if shutil.which(_COMPILER[0]) is None:
        raise MachineLacks("There is no nvcc on PATH: install the CUDA toolkit.")
    try:
        ended = tool.run_tool([*_COMPILER, f"-arch={arch}", *own, "-o", program, source], _COMPILE_SECONDS)
    except TimeoutError as error:
        raise SolutionFailed(f"{name} does not compile: {error}.") from error
    if ended.code != 0:
        raise SolutionFailed(f"{name} does not compile.\n{tool.fence_lines(ended.output.splitlines())}")
    return program


def profile_one(name: str, program: Path, out: Path) -> Row:
    """Profile the second call of a kernel and keep its counters."""
    case = expected()[name]
    launches = ncu_collect.LaunchSelection(kernel=name, skip=case.launches, most=case.launches, whole=True)
    report = out / "reports" / f"{name}{ncu_collect.SUFFIX}"
    started = time.perf_counter()
    ncu_collect.collect_report([program], report, launches=launches, timeout=_PROFILE_SECONDS)
    seconds = time.perf_counter() - started
    return _row(name, _kept(name, out), seconds)


def measure(names: Sequence[str], out: Path, arch: str) -> list[Row]:
    """Compile all at once, then profile one after the other."""
    build = out / "build"
    build.mkdir(parents=True, exist_ok=True)
    rows = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = {name: pool.submit(compile_one, name, build, arch) for name in names}
        for name, program in programs.items():
            try:
                rows.append(profile_one(name, program.result(), out))
            except WarpsmithError as error:
                rows.append(Row(name, expected()[name], (), problem=str(error)))
            print(
                f"{len(rows)}/{len(names)} {name}: {rows[-1].problem or ', '.join(rows[-1].found)}",
                file=sys.stderr,
            )
    return rows


def again(names: Sequence[str], folder: Path) -> list[Row]:
    """Classify what a run kept."""
    rows = []
    for name in names:
        try:
            rows.append(_row(name, _kept(name, folder)))
        except WarpsmithError as error:
            rows.append(Row(name, expected()[name], (), problem=str(error)))
    return rows


def predictions() -> str:
    """The table of predictions as Markdown."""
    lines = ["| kernel | kind | first symptom | why |", "| --- | --- | --- | --- |"]
    for name, case in expected().items():
        first = " or ".join(f"`{symptom}`" for symptom in case.first)
        lines.append(f"| [{name}]({name}.cu) | {case.kind} | {first} | {case.why} |")
    return "\n".join(lines)


def shown(rows: Sequence[Row]) -> str:
    """The result, kernel by kernel, and which symptom was taken for which."""
    table = [("", "kernel", "expected", "found first", "and", "us", "s")]
    for row in rows:
        first, others = (row.found[0], ", ".join(row.found[1:])) if row.found else ("not profiled", "")
        table.append(
            (
                "ok" if row.right else "WRONG",
                row.name,
                " or ".join(row.case.first),
                first,
                others,
                "-" if row.microseconds is None else f"{row.microseconds:.0f}",
                "-" if row.collected is None else f"{row.collected:.1f}",
            )
        )
    problems = [f"{row.name}: {row.problem}" for row in rows if row.problem]
    problems += [f"{row.name}: {row.case.afterwards}" for row in rows if row.case.afterwards and not row.right]
    return "\n".join([*_aligned(table), "", *confusion(rows), "", *_score(rows), *problems])


def main() -> int:
    """Do what the arguments say; 1 where a planted kernel or a control is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="where counters and reports go")
    what.add_argument("--from", type=Path, dest="kept", help="a folder that --out has filled")
    what.add_argument("--table", action="store_true", help="print the table of predictions")
    parser.add_argument(
        "--only", nargs="+", choices=sorted(expected()), metavar="NAME", help="these kernels alone"
    )
    parser.add_argument("--arch", default="sm_90", help="what nvcc compiles for")
    options = parser.parse_args()
    if options.table:
        print(predictions())
        return 0
    names = options.only or list(expected())
    started = time.perf_counter()
    rows = measure(names, options.out, options.arch) if options.out else again(names, options.kept)
    print(shown(rows))
    if options.out:
        print(f"{time.perf_counter() - started:.0f} s in all")
    return 0 if all(row.right for row in rows if row.case.kind != "held-out") else 1


def _kept(name: str, folder: Path) -> Counters:
    """The counters of a folder; a report that was not read yet, for want of its reader, is read now."""
    path, report = folder / f"{name}.json", folder / "reports" / f"{name}{ncu_collect.SUFFIX}"
    if report.is_file() and not (path.is_file() and path.stat().st_mtime >= report.stat().st_mtime):
        files.write_file(path, reduced(name, ncu_report.read_ncu_report(report)).model_dump_json(indent=1) + "\n")
    if not path.is_file():
        raise MissingInput(f"{path} is not there: run with --out first.")
    return Counters.model_validate_json(path.read_bytes())


def _row(name: str, counted: Counters, collected: float | None = None) -> Row:
    case = expected()[name]
    microseconds = 1e6 * sum(launch.seconds for launch in counted.launches)
    return Row(name, case, symptoms(case, counted), microseconds, collected)


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def confusion(rows: Iterable[Row]) -> list[str]:
    """Expected symptom, found symptom, how often."""
    pairs = Counter(
        (row.found[0] if row.found[0] in row.case.first else row.case.first[0], row.found[0])
        for row in rows
        if row.found
    )
    table = [("expected", "found first", "times", "")]
    for (wanted, found), times in sorted(pairs.items()):
        table.append((wanted, found, str(times), "" if wanted == found else "<- wrong"))
    return _aligned(table)


def _score(rows: Sequence[Row]) -> list[str]:
    kinds = dict.fromkeys(row.case.kind for row in rows)
    of = {kind: [row for row in rows if row.case.kind == kind] for kind in kinds}
    return [f"{kind}: {sum(row.right for row in some)} of {len(some)} as expected" for kind, some in of.items()]


if __name__ == "__main__":
    sys.exit(main())
