"""A lab of one module, whose performer does what a test says."""

from __future__ import annotations

from textwrap import dedent

from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.execution.lab_copy import LabCopy
from warpsmith.lab.machine import provenance

PERFORMER = f"""
import json, os, pathlib, subprocess, sys, time
folder = pathlib.Path(sys.argv[1])
outcome = {{
    "bundle_sha256": (folder / "bundle").read_text(),
    "lab_sha256": "{provenance.lab_sha256()}",
    "gate_version": {GATE_VERSION},
}}
def tell(text):
    with (folder / "progress").open("a") as file:
        file.write(json.dumps({{"text": text, "share": 0.5}}) + "\\n")
def finish(**parts):
    (folder / "new").write_text(json.dumps(outcome | parts))
    (folder / "new").rename(folder / "outcome.json")
"""


class SmallLab(LabCopy):
    """A lab that is one module."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def contents(self) -> dict[str, bytes]:  # type: ignore[override]
        return {"performer.py": (PERFORMER + dedent(self._text)).encode()}
