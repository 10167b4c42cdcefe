"""How long commands that read records take in a project of 10,000 rounds.

The project has 100 campaigns of 100 rounds on ten operators, made from two real records: an accepted round and a
rolled back one. It is built in a temporary folder, with a key and a state folder of its own. Each command is timed
as a user waits for it, start of the process included, the median of several; the first call of each is reported
apart, since it may build the index of rounds. What the rounds add to `best()` is the difference from a project of
20 rounds.

    python benchmarks/records_scale.py --out benchmarks/records/records_scale-cpu.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith.campaign.history import records
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import RoundRecord
from warpsmith.lab.machine import provenance, system
from warpsmith.lab.operator import definition_file
from warpsmith.project import SHIPPED

SOURCE = SHIPPED / "devlog" / "softmax" / "softmax-triton-h200-20261121-2"
"""Campaign of the two records."""
OPERATORS, ACCEPTED_EVERY = 10, 10
"""Number of operators, and the distance between accepted rounds of a campaign."""
CHOICE = """
import sys, time
from warpsmith.project import find_project
from warpsmith.use import choice
started = time.perf_counter(), time.process_time()
versions = choice.rank_versions(find_project(), sys.argv[1])
print(time.perf_counter() - started[0], time.process_time() - started[1], versions["h200"][0].solution)
"""
"""Program that chooses the best version as `best(op)` does; it prints seconds and CPU seconds."""
LEARN = """
import sys, time
from warpsmith.campaign.history import store
from warpsmith.project import find_project
from warpsmith.reporting import pages
campaign = store.find_campaign(find_project(), sys.argv[1])
last = campaign.closed_rounds()[-1]
record = last.record.model_copy(update={"round": last.number + 1, "previous_sha256": last.sha256})
files = {record.snapshot: (last.folder / record.snapshot).read_bytes()}
campaign.ledger.publish(record.round, record, files)
started = time.perf_counter(), time.process_time()
changed = pages.render_campaign(campaign)
print(time.perf_counter() - started[0], time.process_time() - started[1], len(changed))
"""
"""Program that closes one more round and renders the pages as `learn` does; it prints the times of the pages."""


def main() -> None:
    """Build the project, time the commands in it, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--no-pages", action="store_true", help="leave out the pages, and what reads them")
    parser.add_argument("--keep", type=Path, help="build the project in this folder, and leave it there")
    parser.add_argument("--out", type=Path, default=Path("records_scale.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warpsmith-scale-") as temporary:
        folder = options.keep or Path(temporary)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        root = folder / "project"
        if not root.exists():
            build_project(root, options.campaigns, options.rounds)
        few = folder / "few"
        if not few.exists():
            build_project(few, OPERATORS, 2)
        time.sleep(3)  # files that changed within the last two seconds are read anew by each call
        record = _measure(root, options.calls, pages=not options.no_pages)
        choice = [sys.executable, "-P", "-c", CHOICE, f"softmax_{OPERATORS - 1}"]
        record["commands"]["best, 20 rounds"] = _time_calls(choice, few, options.calls)
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    for name, timing in record["commands"].items():
        print(
            f"{name}: {timing['seconds']:.3f} s, first {timing['first']:.3f} s, CPU {timing['cpu_seconds']:.3f} s,"
            f" least {timing['least_cpu_seconds']:.3f} s,"
            f" {timing['memory_mb']:.0f} MB"
        )


def build_project(root: Path, campaigns: int, rounds: int) -> None:
    """Write a project with these many campaigns, each with these many rounds; no page is rendered."""
    templates = [
        json.loads((SOURCE / "rounds" / number / "record.json").read_bytes()) for number in ("001", "002")
    ]
    definition = (SHIPPED / "kernels" / "softmax" / "definition.py").read_text()
    source = (SHIPPED / "kernels" / "softmax" / "triton" / "v1.py").read_text()
    root.mkdir(parents=True)
    (root / "warpsmith.toml").write_text("")
    used = dict.fromkeys(range(OPERATORS), 0)
    with _no_waits():
        for index in range(campaigns):
            number = index % OPERATORS
            op = f"softmax_{number}"
            path = root / "kernels" / op / "definition.py"
            if not path.exists():
                (path.parent / "triton").mkdir(parents=True)
                path.write_text(definition.replace('"softmax"', f'"{op}"'))
            name = f"{op}-triton-h200-{index:03d}"
            folder = root / "devlog" / op / name
            folder.mkdir(parents=True)
            manifest = (SOURCE / "manifest.yaml").read_text()
            manifest = manifest.replace(SOURCE.name, name).replace("target_op: softmax", f"target_op: {op}")
            if index == campaigns - 1:  # the one that goes on
                manifest = manifest.replace("max_iterations: 2\n", "max_iterations: null\n")
            (folder / "manifest.yaml").write_text(manifest)
            versions = _Versions(root, op, source, used[number])
            used[number] += rounds
            _write_rounds(folder, versions, templates, rounds)


class _Versions:
    """The versions of a campaign: each file is written once, and differs from all others."""

    def __init__(self, root: Path, op: str, source: str, before: int) -> None:
        self.op, self.definition = op, root / "kernels" / op / "definition.py"
        self._source, self._before = source, before

    def name(self, number: int) -> str:
        """Return the name of a round's version."""
        return f"v{self._before + number}"

    def write(self, number: int) -> bytes:
        """Write a round's version, and return it."""
        content = f"{self._source}\n\n_ROUND = {self._before + number}\n".encode()
        (self.definition.parent / "triton" / f"{self.name(number)}.py").write_bytes(content)
        return content


def _write_rounds(folder: Path, versions: _Versions, templates: list[Any], count: int) -> None:
    ledger = records.round_ledger(folder / "rounds", folder.name)
    definition_sha256 = definition_file.definition_sha256(versions.definition)
    previous, best, best_sha256 = None, None, None
    for number in range(1, count + 1):
        accepted = number % ACCEPTED_EVERY == 1
        data = json.loads(json.dumps(templates[0 if accepted and number == 1 else 1]))
        content = versions.write(number)
        sha256, name = hashlib.sha256(content).hexdigest(), versions.name(number)
        evaluation = data["evaluation"]
        evaluation |= {"definition": versions.op, "version": name}
        evaluation["provenance"] |= {
            "solution": f"kernels/{versions.op}/triton/{name}.py",
            "solution_sha256": sha256,
            "definition_sha256": definition_sha256,
            "seed": evaluation["provenance"]["seed"] + number,
        }
        if best:
            evaluation["provenance"] |= {"best": f"kernels/{versions.op}/{best}.py", "best_sha256": best_sha256}
        verdict = "ACCEPT" if accepted else "ROLLBACK"
        evaluation["decision"]["verdict"] = data["outcome"]["verdict"] = verdict
        parent = best
        if accepted:
            best, best_sha256 = f"triton/{name}", sha256
        data["outcome"] |= {"best": best, "stop": None}
        data |= {
            "campaign": folder.name,
            "round": number,
            "solution": f"triton/{name}",
            "parent": parent,
            "snapshot": f"triton-{name}.py",
            "snapshot_sha256": sha256,
            "previous_sha256": previous,
        }
        record = RoundRecord.model_validate(data)
        previous = ledger.publish(number, record, {record.snapshot: content}).sha256


@contextmanager
def _no_waits() -> Iterator[None]:
    """Leave out the waits for the disk while the project is built."""
    waits = os.fsync
    os.fsync = os.fstat  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync = waits


def _measure(root: Path, calls: int, *, pages: bool) -> dict[str, Any]:
    last = sorted((root / "devlog").glob("*/*/manifest.yaml"), key=lambda path: path.parent.name[-3:])[-1].parent
    op = last.parent.name
    command = [sys.executable, "-P", "-m", "warpsmith"]
    if pages and not any(root.glob("devlog/*/*/report.md")):
        _call([*command, "report", "--all"], root)
    commands = {
        "best": [sys.executable, "-P", "-c", CHOICE, op],
        "use": [*command, "use", op],
        "status": [*command, "status"],
        "status --campaign": [*command, "status", "--campaign", last.name],
        "next": [*command, "next"],
        "next --campaign": [*command, "next", "--campaign", last.name],
        "knowledge search": [*command, "knowledge", "search", "softmax"],
    }
    if pages:
        commands["report --campaign"] = [*command, "report", "--campaign", last.name]
        commands["evidence check"] = [*command, "evidence", "check"]
        commands["learn, its pages"] = [sys.executable, "-P", "-c", LEARN, last.name]
    return {
        "measured": this_minute(),
        "load": os.getloadavg()[1],
        "processor": f"{system.processor_model()}, {system.usable_cores()} cores",
        "lab_sha256": provenance.lab_sha256(),
        "campaigns": sum(1 for _ in (root / "devlog").glob("*/*/manifest.yaml")),
        "rounds": sum(1 for _ in (root / "devlog").glob("*/*/rounds/*/record.json")),
        "commands": {name: _time_calls(words, root, calls) for name, words in commands.items()},
    }


def _time_calls(words: list[str], root: Path, calls: int) -> dict[str, float]:
    first = _call(words, root)
    later = [_call(words, root) for _ in range(calls)]
    return {
        "first": first.seconds,
        "seconds": statistics.median(call.seconds for call in later),
        "cpu_seconds": statistics.median(call.cpu_seconds for call in later),
        "least_cpu_seconds": min(call.cpu_seconds for call in later),
        "memory_mb": max(call.memory_mb for call in (first, *later)),
    }


class _Call(NamedTuple):
    """Cost of one command; on a busy machine the CPU's seconds say more than those of the clock."""

    seconds: float
    cpu_seconds: float
    memory_mb: float


def _call(words: list[str], root: Path) -> _Call:
    """Run a command and return its cost; a program that prints its own times is taken at its word."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, cwd=root, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(words)} failed in {root}:\n{texts[0][-2000:]}{texts[1][-2000:]}")
    memory = usage.ru_maxrss / 1024
    if {CHOICE, LEARN} & set(words):
        wall, cpu, _ = texts[0].split()
        return _Call(float(wall), float(cpu), memory)
    return _Call(seconds, usage.ru_utime + usage.ru_stime, memory)


if __name__ == "__main__":
    main()
