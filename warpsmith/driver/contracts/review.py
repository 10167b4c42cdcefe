"""The form `review`: reviewer to orchestrator, whether a version's gain is real."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warpsmith.driver.contracts import text as markdown
from warpsmith.driver.contracts.document import Document, Form
from warpsmith.driver.contracts.version import choice, named

if TYPE_CHECKING:
    from warpsmith.driver.contracts.models import ReviewContract

CHEATS, TRANSFER, VERDICT = "Cheats", "Transfer", "Verdict"
CLEAN, SUSPECT = "CLEAN", "SUSPECT"
NOTHING = "None found."

_CHEAT = re.compile(r"`?(?P<file>[^\s:`]+):(?P<line>[1-9][0-9]{0,8})`?: (?P<what>.+)")

EXAMPLE = """\
## Review: softmax triton/v4
### Cheats
- None found.
### Transfer
- Rows longer than the registers hold take the old path: no gain there.
### Verdict: CLEAN
The gain comes from the kernel, and real rows have the judged lengths.
"""


def read(document: Document) -> dict[str, Any]:
    """The fields of a `ReviewContract`."""
    texts = document.items(CHEATS)
    cheats = [] if _is_nothing(texts) else [_cheat(document, text) for text in texts]
    verdict, because = choice(document, VERDICT, (CLEAN, SUSPECT)), document.paragraph(VERDICT)
    if verdict == CLEAN and cheats:
        document.problem(VERDICT, "CLEAN, but cheats are listed", f"write {SUSPECT}, or list what is harmless"
                         f" under {TRANSFER}")  # fmt: skip
    if verdict == SUSPECT and texts and not cheats:
        document.problem(VERDICT, "SUSPECT, but no cheat is listed", f"list it under {CHEATS}, or write {CLEAN}")
    if markdown.sentences(because) > 2:
        document.problem(VERDICT, "the reason has more than two sentences", "write one or two")
    return {
        **named(document),
        "cheats": cheats,
        "transfer": document.items(TRANSFER),
        "verdict": verdict,
        "because": because,
    }


def write(contract: ReviewContract) -> str:
    """The text of a review."""
    cheats = [f"{cheat.file}:{cheat.line}: {cheat.what}" for cheat in contract.cheats]
    return "\n".join(
        (
            f"## Review: {contract.op} {contract.version}",
            f"### {CHEATS}",
            markdown.items(cheats or [NOTHING]),
            f"### {TRANSFER}",
            markdown.items(contract.transfer),
            f"### {VERDICT}: {contract.verdict}",
            markdown.block(contract.because),
            "",
        )
    )


def _is_nothing(texts: list[str]) -> bool:
    return [text.rstrip(".").casefold() for text in texts] == [NOTHING.rstrip(".").casefold()]


def _cheat(document: Document, text: str) -> dict[str, Any]:
    found = _CHEAT.fullmatch(text)
    if not found:
        fix = f"write `- FILE:LINE: what it does, and why that is no speed-up in use`, or `- {NOTHING}`"
        document.problem(CHEATS, f"`{text}` names no place", fix)
        return {}
    return found.groupdict()


FORM = Form(
    kind="review",
    label="Review",
    between="reviewer to orchestrator",
    sections={
        CHEATS: f"a list of `- FILE:LINE: what it does, and why that is no speed-up in use`, or `- {NOTHING}`",
        TRANSFER: "a list: will the gain be there in use, which cases are not covered",
        VERDICT: f"`### Verdict: {CLEAN}` or `### Verdict: {SUSPECT}`; below it one or two sentences",
    },
    example=EXAMPLE,
    read=read,
    write=write,
)
"""The form."""
