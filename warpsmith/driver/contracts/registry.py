"""The output contracts: what agents hand to each other, checked and rendered in one place.

Importing it, and `problems` for a version or a review, loads no model: a hook calls it after every agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.driver.contracts import (
    document as contract_document,
)
from warpsmith.driver.contracts import (
    profile as contract_profile,
)
from warpsmith.driver.contracts import (
    review as contract_review,
)
from warpsmith.driver.contracts import (
    task as contract_task,
)
from warpsmith.driver.contracts import (
    version as contract_version,
)
from warpsmith.driver.contracts.document import Form
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.driver.contracts.models import Contract

FORMS: dict[str, Form] = {
    module.FORM.kind: module.FORM
    for module in (contract_profile, contract_task, contract_version, contract_review)
}
"""Kind of contract to its form."""


def form(kind: str) -> Form:
    """The form of a kind; raises Misuse where there is none."""
    if kind not in FORMS:
        raise Misuse(f"Unknown contract `{kind}`; known: {', '.join(FORMS)}.")
    return FORMS[kind]


def problems(kind: str, text: str) -> list[str]:
    """What is missing or wrong in a text, one line each: `section: what. Fix: what to write.`

    Empty where it fits. Prose before the contract's heading is nobody's business. Raises Misuse for an
    unknown kind.
    """
    document = contract_document.read(form(kind), text)
    document.form.read(document)
    return document.problems


def parse(kind: str, text: str) -> Contract:
    """The contract in a text.

    Raises:
        Misuse: an unknown kind, or the text does not fit; the message holds every problem, a line each.
    """
    from warpsmith.driver.contracts.models import MODELS

    document = contract_document.read(form(kind), text)
    fields = document.form.read(document)
    if document.problems:
        raise Misuse("\n".join([f"The {kind} does not fit its contract:", *document.problems]))
    return MODELS[kind].model_validate(fields)


def render(contract: Contract) -> str:
    """A contract in its one form: reading it gives this contract again."""
    from warpsmith.driver.contracts.models import MODELS

    kind = next(kind for kind, model in MODELS.items() if type(contract) is model)
    return form(kind).write(contract)


def shown(kind: str) -> str:
    """How to write a contract: what each section must hold, and a valid example."""
    found = form(kind)
    rules = [f"- {name}: {rule}." for name, rule in found.sections.items()]
    first = f"`{kind}`: {found.between}. Prose may stand before the heading, nothing after the last section."
    return "\n".join([first, "", *rules, "", found.example])
