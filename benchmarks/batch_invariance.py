"""Batch invariance of the best softmax, RMSNorm and routing: do a row's bits depend on who else is in the batch?

The definitions do not promise it. Here they do, for the axis of the batch, and the gate's correctness says which
version keeps the promise.

    python benchmarks/batch_invariance.py --target h200 --out benchmarks/records/batch_invariance-h200.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from warpsmith import languages, project
from warpsmith.core.base import this_minute
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.hardware import Measurement
from warpsmith.lab.gate.judge import judge_version
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.use import choice

AXES = {"softmax": "rows", "rmsnorm": "rows", "moe_route": "tokens", "rmsnorm_quant_fp8_token": "tokens"}
"""Operator to the axis of its batch."""


def main() -> None:
    """Check the best version of each campaign and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", type=Path, default=Path("batch_invariance.json"))
    options = parser.parse_args()
    here = project.find_project()
    page = hardware.read_target_page(here, options.target)
    machine = identity.identify_machine(page.target)
    empty = Measurement(machine=machine, measured=this_minute(), ceilings={})
    record: dict[str, Any] = {
        "measured": this_minute(),
        "machine": machine.model_dump(mode="json"),
        "gate_version": GATE_VERSION,
        "versions": {},
    }
    for op, axis in AXES.items():
        file = definition_file.load_definition(here.definition_path(op))
        invariant = replace(file, definition=_promise(file.definition, axis))
        for version in choice.rank_versions(here, op).get(options.target, []):
            if languages.get(version.language).missing(page.target.kind):
                continue
            candidate = Candidate(here.root / version.file, version.language, version.solution.partition("/")[2])
            request = Request(here, invariant, candidate, page, empty, timed=False, sanitized=False)
            evaluation = judge_version(request)
            holds, reason = evaluation.correct, "" if evaluation.correct else evaluation.decision.reason
            record["versions"][f"{op}/{version.solution}"] = {"invariant": holds, "reason": reason}
            print(f"{op}/{version.solution}: {'invariant' if holds else reason}", flush=True)
            options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _promise(definition: Any, axis: str) -> Any:  # noqa: ANN401
    """Return the definition with the promise, on the outputs that have the axis."""
    return definition.model_validate(definition.model_dump() | {"batch_invariant": axis})


if __name__ == "__main__":
    main()
