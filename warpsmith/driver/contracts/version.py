"""The form `version`: designer to orchestrator, the version that was written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warpsmith.driver.contracts import text as markdown
from warpsmith.driver.contracts.document import Document, Form
from warpsmith.driver.contracts.text import OP, VERSION

if TYPE_CHECKING:
    from warpsmith.driver.contracts.models import VersionContract

CHANGES, FILES, CORRECTNESS, TRIALS, DEVLOG = (
    "Changes",
    "Files",
    "Correctness",
    "Trial configurations",
    "Devlog",
)
OUTCOMES = ("PASS", "FAIL")

_HEADING = re.compile(rf"(?P<op>{OP}) (?P<version>{VERSION})")
_TRIAL = re.compile(r"(?P<name>[^:]+): (?P<why>.+)")

EXAMPLE = """\
## New version: softmax triton/v4
### Changes
- The row stays in registers between the two passes.
### Files
- kernels/softmax/triton/v4.py
### Correctness: PASS
`warpsmith judge kernels/softmax/triton/v4.py --check`
### Trial configurations
- 4096x8192-bf16: the longest row that still fits the registers
### Devlog
devlog/softmax/softmax-triton-h200-20261121/rounds/open
"""


def read(document: Document) -> dict[str, Any]:
    """The fields of a `VersionContract`."""
    return {
        **named(document),
        "changes": document.items(CHANGES),
        "files": [markdown.unquoted(text) for text in document.items(FILES)],
        "correctness": choice(document, CORRECTNESS, OUTCOMES),
        "checked": document.paragraph(CORRECTNESS),
        "trials": [_trial(document, text) for text in document.items(TRIALS)],
        "devlog": markdown.unquoted(document.paragraph(DEVLOG)),
    }


def write(contract: VersionContract) -> str:
    """The text of a version."""
    return "\n".join(
        (
            f"## New version: {contract.op} {contract.version}",
            f"### {CHANGES}",
            markdown.items(contract.changes),
            f"### {FILES}",
            markdown.items([markdown.unquoted(file) for file in contract.files]),
            f"### {CORRECTNESS}: {contract.correctness}",
            markdown.block(contract.checked),
            f"### {TRIALS}",
            markdown.items([f"{trial.name}: {trial.why}" for trial in contract.trials]),
            f"### {DEVLOG}",
            markdown.block(markdown.unquoted(contract.devlog)),
            "",
        )
    )


def named(document: Document) -> dict[str, Any]:
    """Operator and version of the heading."""
    heading = _HEADING.fullmatch(document.heading)
    if document.blocks and not heading:
        what = f"`{document.heading}` is not an operator and a version"
        document.problems.append(f"heading: {what}. Fix: write `## {document.form.label}: OP LANGUAGE/vN`.")
    return heading.groupdict() if heading else {}


def choice(document: Document, section: str, among: tuple[str, ...]) -> str:
    """The one of a few words that the section's heading must end with."""
    found = markdown.unquoted(document.rests.get(section, "")).upper()
    if section in document.blocks and found not in among:
        what = f"`{found}` is not an outcome" if found else "the heading names no outcome"
        fix = " or ".join(f"`### {section}: {word}`" for word in among)
        document.problem(section, what, f"write {fix}")
    return found


def _trial(document: Document, text: str) -> dict[str, Any]:
    found = _TRIAL.fullmatch(text)
    if not found:
        what = f"`{text}` has no reason"
        document.problem(TRIALS, what, "write `- WORKLOAD: why this point matters`")
        return {}
    return {"name": markdown.unquoted(found["name"]), "why": found["why"]}


FORM = Form(
    kind="version",
    label="New version",
    between="designer to orchestrator",
    sections={
        CHANGES: "a list, one change a line, at least one",
        FILES: "a list of the files written, as paths in the project",
        CORRECTNESS: "`### Correctness: PASS` or `### Correctness: FAIL`; below it the command that was run",
        TRIALS: "a list of `- WORKLOAD: why this point matters`, at least one",
        DEVLOG: "the folder of the open round",
    },
    example=EXAMPLE,
    read=read,
    write=write,
)
"""The form."""
