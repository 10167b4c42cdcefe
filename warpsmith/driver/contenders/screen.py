"""Process of one screen: `python -m warpsmith.driver.contenders.screen FOLDER PARENT` times contenders.

It holds the lease of one device. Its times choose who is judged; they are in no verdict.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith import project
from warpsmith.campaign import lab_requests
from warpsmith.campaign.history import solutions
from warpsmith.core.base import Model
from warpsmith.core.campaign import ScreenedSpeedup
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.text import Tell
from warpsmith.lab.machine import device_lease, hardware
from warpsmith.lab.machine.processes import run_in_folder
from warpsmith.lab.operator import definition_file
from warpsmith.lab.tuning.variants import Variant
from warpsmith.lab.tuning.workbench import Bench, Workbench
from warpsmith.ledger.store import write_model
from warpsmith.project import Project

ORDER, RESULTS = "order.json", "results.json"
"""Files of a screen's folder."""


class ScreenOrder(Model):
    """Contenders to time beside the best version."""

    root: str
    """Root of the project."""
    op: str
    """The operator."""
    target: str
    """The target."""
    best: str
    """Name of the best version, such as `cpp/v3`."""
    language: str
    """Language of the contenders."""
    sets: tuple[WorkloadSet, ...]
    """Workload sets that are timed."""
    seconds: float
    """Wall time of the screen."""
    paths: dict[int, str]
    """Contender to its file."""


class ScreenResult(Model):
    """Result of one contender in a screen."""

    failure: str = ""
    """Reason why it was not timed; empty if it was, or if its language is not timed on this device."""
    equal: bool = False
    """True if it is not timed because an earlier one has the same machine code."""
    times: ScreenedSpeedup | None = None
    """Its speedup over the best version."""


class ScreenResults(Model):
    """Results of a screen."""

    results: dict[int, ScreenResult]
    """Contender to its result."""


def main() -> None:
    """Run the screen of the folder that the command line names."""
    run_in_folder(_screen_in_folder)


def _screen_in_folder(folder: Path, tell: Tell) -> None:
    order = ScreenOrder.model_validate_json((folder / ORDER).read_bytes())
    results = screen_contenders(project.find_project(Path(order.root)), order, tell)
    write_model(folder / RESULTS, results)


def screen_contenders(owner: Project, order: ScreenOrder, tell: Tell) -> ScreenResults:
    """Time contenders beside the best version on a device that nobody else times on meanwhile.

    Raises:
        MachineLacks: there is no such device, or the language cannot run here.
        MachineFailed: the best version fails.
    """
    target = hardware.read_target_page(owner, order.target).target
    file = definition_file.load_definition(owner.definition_path(order.op))
    variants = [
        Variant(str(number), Path(path), order.language, {}, Path(path).read_text(encoding="utf-8"))
        for number, path in sorted(order.paths.items())
    ]
    best = lab_requests.lab_candidate(solutions.find_solution(owner, order.op, order.best))
    hidden = (owner.kernels, owner.devlog, owner.root / ".warpsmith")
    workloads = file.definition.select(*order.sets)
    bench = Bench(file, target.kind, variants, workloads, hidden, best, order.seconds)
    with device_lease.lease_device(target, tell):
        workbench = Workbench(bench)
        for result in workbench.run():
            speedup = f"{result.speedup:.2f}x" if result.speedup else ""
            tell(f"screen: contender {result.variant}: {result.state} {speedup or result.message}".rstrip())
    return ScreenResults(
        results={
            int(result.variant): ScreenResult(
                failure="" if result.state in ("timed", "correct") else result.message or result.state,
                equal=result.state == "same code",
                times=ScreenedSpeedup(speedup=result.speedup, interval=result.interval)
                if result.speedup and result.interval
                else None,
            )
            for result in workbench.results.values()
        }
    )


if __name__ == "__main__":
    main()
