"""A/A judgements on several devices at once, each device in a process of its own.

`python -m warpsmith.lab.gate_tests.identical_process FOLDER PARENT` is one of these processes. It prints a line
of JSON for each judgement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue

from warpsmith import files
from warpsmith import project as projects
from warpsmith.core.base import Model
from warpsmith.core.hardware import Target
from warpsmith.core.text import NoticeLine, Tell
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate_tests import identical_judgements
from warpsmith.lab.gate_tests.identical_judgements import DeviceJudgement
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.processes import Processes, read_error, run_in_folder
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder

_ORDER = "order.json"
_POLL_SECONDS = 0.2
_NOTICE = "! "
"""Start of a line that is shown without a terminal too."""


class _Order(Model):
    """Order of a process."""

    root: str
    """Root of the project."""
    target: str
    """The target."""
    device: str
    """UUID of the GPU that is leased."""
    runs: int
    """Number of judgements."""


def judge_on_devices(
    project: Project, target: Target, shares: Mapping[str, int], tell: Tell = lambda _: None
) -> Iterator[DeviceJudgement]:
    """Judge an operator against itself on several devices at once.

    Args:
        project: the project.
        target: the device kind.
        shares: device to its number of judgements.
        tell: takes lines of progress, each with its device.

    Yields:
        Each judgement when it ends; those of the other devices too if one device fails.

    Raises:
        MachineFailed: judgements are missing at the end, because a device failed.
    """
    lines: SimpleQueue[str] = SimpleQueue()
    counts: Counter[str] = Counter()
    with TemporaryFolder("aa") as temporary, Processes(lines.put) as processes:
        folders = {device: Path(temporary) / device for device in shares}
        for device, folder in folders.items():
            folder.mkdir()
            order = _Order(root=str(project.root), target=target.id, device=device, runs=shares[device])
            files.write_file(folder / _ORDER, order.model_dump_json())
            processes.start(device, __name__, folder)
        is_running = True
        while is_running:
            is_running = processes.is_running()
            if not is_running:
                processes.wait()  # their last lines too
            for device, judgement in _take_judgements(lines, tell):
                counts[device] += 1
                yield judgement
        failed = [device for device in shares if counts[device] < shares[device]]
        if failed:
            reasons = "; ".join(f"{device}: {read_error(folders[device])}" for device in failed)
            missing = sum(shares[device] - counts[device] for device in failed)
            raise MachineFailed(f"{missing} A/A judgements were not made: {reasons}")


def _take_judgements(lines: SimpleQueue[str], tell: Tell) -> Iterator[tuple[str, DeviceJudgement]]:
    """Yield the devices and judgements among the lines so far, after a short wait; tell the other lines."""
    while True:
        try:
            line = lines.get(timeout=_POLL_SECONDS)
        except Empty:
            return
        device, _, text = line.partition("  ")
        if text.startswith("{"):
            yield device, DeviceJudgement.model_validate_json(text)
        elif text.startswith(_NOTICE):
            tell(NoticeLine(f"{device}: {text.removeprefix(_NOTICE)}"))
        else:
            tell(f"{device}: {text}")


def main() -> None:
    """Judge as the folder's order says, which the command line names."""
    run_in_folder(_judge_in_folder)


def _judge_in_folder(folder: Path, tell: Tell) -> None:
    order = _Order.model_validate_json((folder / _ORDER).read_bytes())
    project = projects.find_project(Path(order.root))
    target = hardware.read_target_page(project, order.target).target

    def tell_parent(text: str) -> None:
        tell(f"{_NOTICE}{text}" if isinstance(text, NoticeLine) else text)

    for judgement in identical_judgements.judge_on_device(project, target, order.device, order.runs, tell_parent):
        tell(judgement.model_dump_json())


if __name__ == "__main__":
    main()
