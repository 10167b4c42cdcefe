"""The classifier: turns the measured values of one kernel into symptoms, ranked by what their cures could save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warpsmith.profiling.diagnosis import compute, latency, memory
from warpsmith.profiling.diagnosis.symptom import Facts, Symptom

SYMPTOMS: tuple[Symptom, ...] = (*latency.SYMPTOMS, *memory.SYMPTOMS, *compute.SYMPTOMS)
"""All symptoms; those that save the same keep this order."""

LEAST_SAVING = 0.01
"""Share of the kernel's time below which a cure is not worth reporting."""


class DetectedSymptom(NamedTuple):
    """A symptom that is present in a kernel."""

    symptom: Symptom
    """The symptom."""
    value: float
    """Value of the symptom's metric."""
    saves: float
    """Largest share of the kernel's time that the cure could save, 0 to 1."""


class Diagnosis(NamedTuple):
    """The symptoms of one kernel."""

    symptoms: tuple[DetectedSymptom, ...]
    """Symptoms that are present, the one that costs the most first."""
    not_evaluated: tuple[str, ...]
    """One line for each symptom that was not evaluated because facts are missing."""


def diagnose(facts: Facts) -> Diagnosis:
    """Apply every rule to the facts of one kernel.

    A conclusive symptom suppresses all others. Any other symptom is left out if a symptom that explains it could
    save at least half as much, because curing the cause also cures it.
    """
    results = [_detect(symptom, facts) for symptom in SYMPTOMS if not _missing(symptom, facts)]
    present = [item for item in results if item]
    conclusive = [item for item in present if item.symptom.conclusive]
    reported = conclusive[:1] or [
        item for item in present if item.saves >= LEAST_SAVING and not _explained(item, present)
    ]
    missing = [(symptom, _missing(symptom, facts)) for symptom in SYMPTOMS]
    return Diagnosis(
        tuple(sorted(reported, key=lambda item: -item.saves)),
        tuple(f"not evaluated: {symptom.id} (needs {', '.join(needs)})" for symptom, needs in missing if needs),
    )


def _missing(symptom: Symptom, facts: Facts) -> tuple[str, ...]:
    return facts.missing((symptom.metric, *symptom.needs))


def _detect(symptom: Symptom, facts: Facts) -> DetectedSymptom | None:
    if not symptom.holds(facts):
        return None
    return DetectedSymptom(symptom, facts[symptom.metric], symptom.saves(facts))


def _explained(item: DetectedSymptom, present: Sequence[DetectedSymptom]) -> bool:
    causes = [other for other in present if item.symptom.id in other.symptom.explains]
    return any(cause.saves >= item.saves / 2 for cause in causes)
