"""The classifier: counted values of one kernel become symptoms, the one that costs the most first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warpsmith.profiling.diagnosis import (
    compute as symptoms_compute,
)
from warpsmith.profiling.diagnosis import (
    latency as symptoms_latency,
)
from warpsmith.profiling.diagnosis import (
    memory as symptoms_memory,
)
from warpsmith.profiling.diagnosis.symptom import Facts, Symptom

SYMPTOMS: tuple[Symptom, ...] = (
    *symptoms_latency.SYMPTOMS,
    *symptoms_memory.SYMPTOMS,
    *symptoms_compute.SYMPTOMS,
)
"""All of them; those that save the same are kept in this order."""

LEAST = 0.01
"""Share of the time below which a cure is not worth a word."""


class Found(NamedTuple):
    """A symptom that a kernel has."""

    symptom: Symptom
    """Which."""
    value: float
    """Its trigger's value."""
    saves: float
    """Share of the kernel's time that the cure could save at most."""


class Diagnosis(NamedTuple):
    """What is wrong with a kernel."""

    found: tuple[Found, ...]
    """The symptom that costs the most first."""
    not_evaluated: tuple[str, ...]
    """One line for each symptom whose facts are not all there."""


def diagnose(facts: Facts) -> Diagnosis:
    """Every rule over the facts.

    A conclusive symptom stands alone. Any other is left out where one that explains it could save at least half
    as much: the cure of the cause takes it along.
    """
    fired = [_found(symptom, facts) for symptom in SYMPTOMS if not _lacks(symptom, facts)]
    held = [found for found in fired if found]
    conclusive = [found for found in held if found.symptom.conclusive]
    left = conclusive[:1] or [found for found in held if found.saves >= LEAST and not _explained(found, held)]
    missing = [(symptom, _lacks(symptom, facts)) for symptom in SYMPTOMS]
    return Diagnosis(
        tuple(sorted(left, key=lambda found: -found.saves)),
        tuple(f"not evaluated: {symptom.id} (needs {', '.join(needs)})" for symptom, needs in missing if needs),
    )


def _lacks(symptom: Symptom, facts: Facts) -> tuple[str, ...]:
    return facts.lacks((symptom.metric, *symptom.needs))


def _found(symptom: Symptom, facts: Facts) -> Found | None:
    if not symptom.holds(facts):
        return None
    return Found(symptom, facts[symptom.metric], symptom.saves(facts))


def _explained(found: Found, held: Sequence[Found]) -> bool:
    causes = [other for other in held if found.symptom.id in other.symptom.explains]
    return any(cause.saves >= found.saves / 2 for cause in causes)
