"""The form `task`: orchestrator to designer, the version to write. `warpsmith brief` prints it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

from warpsmith.driver.contracts import text as markdown
from warpsmith.driver.contracts.document import Document, Form
from warpsmith.driver.contracts.profile import BOTTLENECK, bottleneck
from warpsmith.driver.contracts.text import OP, SLUG, VERSION

if TYPE_CHECKING:
    from warpsmith.driver.contracts.models import Optimization, TaskContract

OPTIMIZATIONS, CONSTRAINTS = "Optimizations", "Constraints"

_NO_VERSION = "none"
_HEADING = re.compile(rf"(?P<op>{OP}) (?P<current>{VERSION}|{_NO_VERSION}) -> (?P<due>{VERSION})")
_OPTIMIZATION = re.compile(rf"(?P<name>[^:]+): (?P<why>.+?)(?: \(`warpsmith knowledge show (?P<entry>{SLUG})`\))?")

EXAMPLE = """\
## Task: softmax triton/v3 -> triton/v4
### Bottleneck: memory
The row is read twice. Its second reading misses the L2 cache.
### Optimizations
- hypothesis: The row stays on chip, so it is read once; predicted gain +20.0 %, dram_pct +15
- row-in-registers: Keep the row on chip between passes (`warpsmith knowledge show row-in-registers`)
### Constraints
- Write kernels/softmax/triton/v4.py and no other file; start from kernels/softmax/triton/v3.py.
"""


def read(document: Document) -> dict[str, Any]:
    """The fields of a `TaskContract`."""
    from warpsmith.core.profile import Bottleneck

    heading = _HEADING.fullmatch(document.heading)
    if document.blocks and not heading:
        what = f"`{document.heading}` is not an operator and two versions"
        fix = f"write `## Task: OP LANGUAGE/vN -> LANGUAGE/vM`, `{_NO_VERSION}` before the arrow at the baseline"
        document.problems.append(f"heading: {what}. Fix: {fix}.")
    fields: dict[str, Any] = heading.groupdict() if heading else {}
    fields["current"] = None if fields.get("current") == _NO_VERSION else fields.get("current")
    limit = bottleneck(document, (*get_args(Bottleneck), _NO_VERSION))
    fields["bottleneck"] = None if limit == _NO_VERSION else limit
    fields["root_cause"] = document.paragraph(BOTTLENECK)
    fields["optimizations"] = [_optimization(document, text) for text in document.items(OPTIMIZATIONS)]
    fields["constraints"] = document.items(CONSTRAINTS)
    return fields


def write(contract: TaskContract) -> str:
    """The text of a task."""
    return "\n".join(
        (
            f"## Task: {contract.op} {contract.current or _NO_VERSION} -> {contract.due}",
            f"### {BOTTLENECK}: {contract.bottleneck or _NO_VERSION}",
            markdown.block(contract.root_cause),
            f"### {OPTIMIZATIONS}",
            markdown.items([_text(optimization) for optimization in contract.optimizations]),
            f"### {CONSTRAINTS}",
            markdown.items(contract.constraints),
            "",
        )
    )


def _optimization(document: Document, text: str) -> dict[str, Any]:
    found = _OPTIMIZATION.fullmatch(text)
    if not found:
        fix = "write `- ENTRY: rationale (`warpsmith knowledge show ENTRY`)`"
        document.problem(OPTIMIZATIONS, f"`{text}` has no name with its reason", fix)
        return {}
    return {"name": markdown.unquoted(found["name"]), "why": found["why"], "entry": found["entry"]}


def _text(optimization: Optimization) -> str:
    read = f" (`warpsmith knowledge show {optimization.entry}`)" if optimization.entry else ""
    return f"{optimization.name}: {optimization.why}{read}"


FORM = Form(
    kind="task",
    label="Task",
    between="orchestrator to designer; `warpsmith brief` prints it",
    sections={
        BOTTLENECK: (
            "`### Bottleneck: CLASS` with one of memory, compute, latency, launch, at-the-limit, or"
            f" {_NO_VERSION} where nothing was measured; below it the root cause"
        ),
        OPTIMIZATIONS: "a list of `- ENTRY: rationale (`warpsmith knowledge show ENTRY`)`, at least one",
        CONSTRAINTS: "a list, one constraint a line: files, signature, the target's limits, what was rolled back",
    },
    example=EXAMPLE,
    read=read,
    write=write,
)
"""The form."""
