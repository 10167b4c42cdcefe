"""Wall clock of a campaign that plays drafts one by one, and of the same with several contenders a round.

Both campaigns run in new projects with a copy of the definition, one after the other on this machine: from
the first draft, which is the baseline, to the last round. The record has the seconds of both, their best
drafts and the gains that the gate measured. The machine is measured once for both. Where it fails, a
campaign goes on a few times.

    python benchmarks/parallel_campaign.py softmax --drafts kernels/softmax/drafts/cuda --target h200 --parallel 4
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from warpsmith import project as projects
from warpsmith.campaign import define
from warpsmith.core.base import this_minute
from warpsmith.driver.drafts_designer import DraftsDesigner
from warpsmith.driver.optimize import LoopProgress, run_loop
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
    parser.add_argument("--drafts", type=Path, required=True, help="folder of drafts, named after their language")
    parser.add_argument("--target", default="h200")
    parser.add_argument("--parallel", type=int, default=4, help="contenders of a round")
    parser.add_argument("--definition", type=Path, help="by default the project's own")
    parser.add_argument("--out", type=Path, default=Path("parallel_campaign.json"))
    options = parser.parse_args()
    here = projects.find_project()
    definition = options.definition or here.definition_path(options.op)
    target = hardware.read_target_page(here, options.target).target
    with tempfile.TemporaryDirectory(prefix="warpsmith-parallel-") as folder:
        root = Path(folder)
        serial = _play(root / "serial", definition, options, 1)
        several = _play(root / "several", definition, options, options.parallel)
    record = {
        "measured": this_minute(),
        "machine": identity.identify_machine(target).model_dump(mode="json"),
        "devices": device_lease.count_devices(target),
        "operator": options.op,
        "drafts": [path.name for path in DraftsDesigner(options.drafts.resolve()).drafts],
        "contenders": options.parallel,
        "serial": serial,
        "several": several,
        "share": several["seconds"] / serial["seconds"],
        "same_winner": several["best"] == serial["best"],
        "goal": GOAL,
    }
    options.out.write_text(json.dumps(record, indent=2) + "\n")
    print(
        f"one by one {serial['seconds']:.0f} s, best {serial['best']};"
        f" {options.parallel} at once {several['seconds']:.0f} s, best {several['best']};"
        f" share {record['share']:.2f} on {record['devices']} devices"
    )


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
    campaign = define.define(project, options.op, options.target, designer.language, print, git="none")
    started = time.monotonic()
    progress = LoopProgress(end=lambda step, text: print(step.phase, text))
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
