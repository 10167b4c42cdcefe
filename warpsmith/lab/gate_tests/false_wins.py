"""False wins: how often the gate accepts a version that has the same code as the best one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from warpsmith.core.base import this_minute
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.hardware import Machine, Target
from warpsmith.core.text import ProgressLine, Tell
from warpsmith.errors import Misuse
from warpsmith.lab.calibration import noise
from warpsmith.lab.gate_tests import identical_judgements, identical_process, unfinished
from warpsmith.lab.gate_tests.false_win_models import (
    RATE,
    DeviceCounts,
    FalseWins,
    IdenticalJudgement,
    Outcome,
)
from warpsmith.lab.gate_tests.identical_judgements import DeviceJudgement
from warpsmith.lab.machine import device_lease, identity, measurement_store, provenance
from warpsmith.project import Project

_CPU = "cpu"


def choose_devices(target: Target, parallel: int) -> list[str]:
    """Choose the first devices of a target, each for one A/A judgement at a time.

    Returns:
        UUIDs of GPUs, or `cpu`.

    Raises:
        Misuse: this machine has fewer than `parallel`.
        MachineLacks: it has none.
    """
    devices = device_lease.list_devices(target)
    if parallel > len(devices):
        reason = ", since a judgement times all cores" if target.kind == "cpu" else ""
        raise Misuse(
            f"--parallel {parallel} needs as many devices of `{target.id}`, and this machine has"
            f" {len(devices)}{reason}; give at most that."
        )
    return devices[:parallel]


def count_false_wins(
    project: Project,
    target: Target,
    devices: Sequence[str],
    runs: int,
    tell: Tell = lambda _: None,
    earlier: FalseWins | None = None,
) -> Iterator[FalseWins]:
    """Judge an operator against itself `runs` times, by the rules and repeats of a judgement.

    Args:
        project: the project, which has or gets the measurements of the devices.
        target: the device kind.
        devices: devices that judge at once, by `choose_devices`; each is held meanwhile.
        runs: number of judgements, including those of `earlier`.
        tell: takes lines of progress.
        earlier: unfinished record to continue.

    Yields:
        The record after each judgement; the last one is finished. If `earlier` has all of them, only that one.

    Raises:
        MachineFailed: judgements are missing at the end, because the machine failed.
    """
    if earlier and earlier.runs == runs:
        yield earlier.model_copy(update={"finished": True})
        return
    machine = _identify_device(target, devices[0])
    judgements = list(earlier.judgements) if earlier else []
    machines = {_device_of(each.machine): each.machine for each in earlier.devices} if earlier else {}
    floors = {_device_of(each.machine): each.floor for each in earlier.devices} if earlier else {}
    with closing(_judge(project, target, _share_out(devices, judgements, runs), tell)) as fresh:
        while len(judgements) < runs:
            accepted = sum(each.outcome == "accepted" for each in judgements)
            line = f"A/A judgement {len(judgements) + 1} of {runs}: {accepted} accepted so far"
            tell(ProgressLine(line, len(judgements) / runs))
            latest = next(fresh)
            device = _device_of(latest.machine)
            machines[device], floors[device] = latest.machine, latest.floor
            judgements.append(IdenticalJudgement(device=device, outcome=latest.outcome, gain=latest.gain))
            yield FalseWins(
                **_count(judgements, floors),
                machine=machine,
                gate_version=GATE_VERSION,
                lab_sha256=provenance.lab_sha256(),
                measured=this_minute(),
                stated=RATE,
                how=latest.how,
                devices=_count_by_device(judgements, machines, floors),
                judgements=tuple(judgements),
                finished=len(judgements) == runs,
            )


def read_earlier_false_wins(
    path: Path, target: Target, devices: Sequence[str], runs: int
) -> tuple[FalseWins | None, str]:
    """Read the unfinished record at `path` that `count_false_wins` can continue on these devices.

    Returns:
        The record, or None with the reason in a few words.
    """

    def find_difference(record: FalseWins) -> str:
        if record.runs > runs:
            return f"it holds {record.runs} judgements, more than the {runs} that are asked for"
        for each in record.devices:
            device = _device_of(each.machine)
            if device not in devices:
                return f"it has judgements on {device}, which is not among the devices of this run"
            if each.floor != _floor_in_force(target, device):
                return f"the A/A floor of {device} was measured again since, or will be"
        return ""

    return unfinished.read_unfinished(path, FalseWins, _identify_device(target, devices[0]), find_difference)


def _judge(project: Project, target: Target, shares: Mapping[str, int], tell: Tell) -> Generator[DeviceJudgement]:
    """Yield new judgements; one device's are made in this process."""
    if len(shares) > 1:
        yield from identical_process.judge_on_devices(project, target, shares, tell)
        return
    for device, runs in shares.items():
        yield from identical_judgements.judge_on_device(project, target, device, runs, tell)


def _share_out(devices: Sequence[str], judgements: Sequence[IdenticalJudgement], runs: int) -> dict[str, int]:
    """Return the missing judgements of each device, so that all have as many in the end; none has 0."""
    before = Counter(each.device for each in judgements)
    shares: Counter[str] = Counter()
    for _ in range(len(judgements), runs):
        shares[min(devices, key=lambda device: before[device] + shares[device])] += 1
    return {device: shares[device] for device in devices if shares[device]}


def _count_by_device(
    judgements: Sequence[IdenticalJudgement], machines: Mapping[str, Machine], floors: Mapping[str, float | None]
) -> tuple[DeviceCounts, ...]:
    return tuple(
        DeviceCounts(
            **_count([each for each in judgements if each.device == device], {device: floors[device]}),
            machine=machines[device],
        )
        for device in sorted(machines)
    )


def _count(judgements: Sequence[IdenticalJudgement], floors: Mapping[str, float | None]) -> dict[str, Any]:
    """Return the fields of `OutcomeCounts`."""
    outcomes = Counter(each.outcome for each in judgements)
    measured = [floor for floor in floors.values() if floor is not None]
    return {
        "runs": len(judgements),
        **{name: outcomes[name] for name in get_args(Outcome)},
        "upper": _upper_limit(outcomes["accepted"], len(judgements)),
        "floor": max(measured, default=None),
        "largest_gain": max(each.gain for each in judgements),
    }


def _upper_limit(accepted: int, runs: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(accepted, runs).proportion_ci(method="exact").high)


def _device_of(machine: Machine) -> str:
    return machine.uuid or _CPU


def _identify_device(target: Target, device: str) -> Machine:
    with device_lease.show_device(device):
        return identity.identify_machine(target)


def _floor_in_force(target: Target, device: str) -> float | None:
    """Return the A/A floor that the next judgement on a device goes by; None if it will be measured first."""
    with device_lease.show_device(device):
        floor = measurement_store.load_noise(identity.identify_machine(target))
        return floor.floor if floor and noise.outdated_reason(floor, target) is None else None
