"""Wall clock of a campaign that plays drafts one by one, and of the same with several contenders a round.

Both campaigns run in new projects with a copy of the definition, one after the other on this machine: from the
first draft, which is the baseline, to the last round. The record has the seconds of both, their best drafts and
the gains that the gate measured. The machine is measured before, and its time does not count. Where it fails, a
campaign goes on a few times. `--parallel 1` only plays one by one, and `--serial` takes that campaign from such
a record of the same drafts on the same GPU; the record is written before the second campaign begins. Drafts are
a folder of them, or the versions of recorded campaigns with their plans.

    python benchmarks/parallel_campaign.py softmax --target h200 --parallel 4 \
        --recording devlog/softmax/softmax-triton-h200-20261121 devlog/softmax/softmax-triton-h200-20261121-2 \
        --definition benchmarks/short/softmax/definition.py --most 5 --no-peers
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import yaml

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign import define
from warpsmith.campaign.history import records
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Plan
from warpsmith.driver.drafts_designer import DraftsDesigner
from warpsmith.driver.optimize import LoopProgress, run_loop
from warpsmith.driver.recorded_designer import drop_plan_figures
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import device_lease, hardware, identity

GOAL = 0.6
"""Share of the serial time that several contenders may take on two GPUs."""

TRIES = 5
"""Runs of the loop until a machine that fails ends the benchmark."""


def main() -> None:
    """Run both campaigns and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--drafts", type=Path, help="folder of drafts, named after their language")
    source.add_argument("--recording", type=Path, nargs="+", help="folders of campaigns in one language")
    parser.add_argument("--most", type=int, help="versions of the recordings that are played; by default all")
    parser.add_argument("--no-peers", action="store_true", help="time no baseline beside torch.compile")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--parallel", type=int, default=4, help="contenders of a round")
    parser.add_argument("--serial", type=Path, help="record whose campaign one by one is compared with")
    parser.add_argument("--definition", type=Path, help="by default the project's own")
    parser.add_argument("--out", type=Path, default=Path("parallel_campaign.json"))
    options = parser.parse_args()
    here = projects.find_project()
    definition = options.definition or here.definition_path(options.op)
    target = hardware.read_target_page(here, options.target).target
    with tempfile.TemporaryDirectory(prefix="warpsmith-parallel-") as folder:
        root = Path(folder)
        options.drafts = options.drafts or _write_drafts(options, here.kernels / options.op, root)
        names = [path.name for path in DraftsDesigner(options.drafts.resolve()).drafts]
        machine = identity.identify_machine(target).model_dump(mode="json")
        if options.serial:
            serial = _recorded_serial(options.serial, names, machine["uuid"])
        else:
            serial = _play(root / "serial", definition, options, 1)
            first = projects.find_project(root / "serial")
            if first.measurements.is_dir():  # else the one that ships is of this machine
                shutil.copytree(first.measurements, root / "several" / first.measurements.relative_to(first.root))
        record = {
            "measured": this_minute(),
            "machine": machine,
            "devices": device_lease.count_devices(target),
            "operator": options.op,
            "drafts": names,
            "serial": serial,
        }
        _write_record(options.out, record)  # --serial goes on from it if the machine does not last
        print(f"one by one {serial['seconds']:.0f} s, best {serial['best']}")
        if options.parallel > 1:
            several = _play(root / "several", definition, options, options.parallel)
            record |= {
                "contenders": options.parallel,
                "several": several,
                "share": several["seconds"] / serial["seconds"],
                "same_winner": several["best"] == serial["best"],
                "goal": GOAL,
            }
            _write_record(options.out, record)
            print(
                f"{options.parallel} at once {several['seconds']:.0f} s, best {several['best']};"
                f" share {record['share']:.2f} on {record['devices']} devices"
            )


def _write_record(path: Path, record: dict) -> None:
    files.write_file(path, json.dumps(record, indent=2) + "\n")


def _recorded_serial(path: Path, names: list[str], uuid: str) -> dict:
    """Return the campaign one by one of a record; exit with a sentence if it is of other drafts or another GPU."""
    record = json.loads(path.read_text())
    if record["drafts"] != names or record["machine"]["uuid"] != uuid:
        sys.exit(f"{path} is of other drafts or of another GPU; run without --serial.")
    return record["serial"]


def _write_drafts(options: argparse.Namespace, versions: Path, root: Path) -> Path:
    """Write each version of the recordings once, with its plan, to a folder named after their language."""
    sources: dict[bytes, Plan] = {}
    suffix = language = ""
    for recording in options.recording:
        for turn in records.round_ledger(recording.resolve() / "rounds", recording.name).read_all():
            path = records.judged_file(turn, versions)
            suffix, language = path.suffix, turn.record.selection.language
            sources.setdefault(path.read_bytes(), drop_plan_figures(turn.record.plan))
    folder = root / language
    for number, (source, plan) in enumerate(list(sources.items())[: options.most], start=1):
        files.write_file(folder / f"{number:02}{suffix}", source)
        page = {"plan": plan.model_dump(mode="json", exclude_defaults=True)}
        files.write_file(folder / f"{number:02}.yaml", yaml.safe_dump(page, sort_keys=False))
    return folder


def _play(root: Path, definition: Path, options: argparse.Namespace, count: int) -> dict:
    """Play all drafts in a new project; return the seconds of its rounds, the best draft and the rounds."""
    folder = root / "kernels" / options.op
    folder.mkdir(parents=True)
    for path in definition.parent.glob("*.py"):
        shutil.copy(path, folder)
    shutil.copy(definition, folder / "definition.py")
    project = projects.find_project(_marked(root))
    designer = DraftsDesigner(options.drafts.resolve())
    names = {path.read_bytes(): path.name for path in designer.drafts}
    settings = {"git": "none", **({"peers": ()} if options.no_peers else {})}
    campaign = define.define(project, options.op, options.target, designer.language, print, **settings)
    started = time.monotonic()
    progress = LoopProgress(end=lambda step, text: print(f"{time.monotonic() - started:.0f} s", step.phase, text))
    for attempt in range(1, TRIES + 1):
        try:
            state = run_loop(campaign, designer, progress, count)
            break
        except MachineFailed as error:
            print(error)
            if attempt == TRIES:
                raise
    seconds = time.monotonic() - started
    rounds = [
        {
            "draft": names.get((stored.folder / stored.record.snapshot).read_bytes()),
            "verdict": stored.record.verdict,
            "gain": stored.record.outcome.gain,
            "contenders": [
                {"end": each.end, "speedup": each.screen.speedup if each.screen else None}
                for each in stored.record.contenders
            ],
        }
        for stored in state.rounds
    ]
    best = next((each["draft"] for each in reversed(rounds) if each["verdict"].accepted), None)
    return {"seconds": seconds, "best": best, "rounds": rounds}


def _marked(root: Path) -> Path:
    (root / projects.MARKER).touch()
    return root


if __name__ == "__main__":
    main()
