"""Mend of a definition that accepts a wrong kernel: the tolerance that refuses it and holds the reference."""

from __future__ import annotations

import secrets
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Tolerance, Workload
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import ADVERSARIAL
from warpsmith.lab.proof.mutations import Mutation
from warpsmith.lab.proof.wrong_outputs import output_passes, wrong_outputs

if TYPE_CHECKING:
    import torch

DRAWS = 3
"""Draws at which a mend must hold the reference; it refuses the wrong kernel at all but one."""

ROOM = 0.5
"""Share of a mended bound that the reference may fill in any order of summation."""

MARGIN = 8.0
"""Factor by which the wrong kernel should miss a mended bound: in another draw it may be less wrong by chance."""


class _Draw(NamedTuple):
    """One call: reference and mutation, with the bounds at the declared reduction length and at length 1."""

    truth: Truth
    narrow: Truth
    references: list[dict[str, torch.Tensor]]
    wrong: dict[str, torch.Tensor]


def find_mend(file: DefinitionFile, workload: Workload, mutation: Mutation, output: str) -> str:
    """Find the largest tolerance that refuses a mutation and holds the reference; describe it as an order."""
    tolerance = file.definition.tolerance_of(output)
    if tolerance.slack > gate_rules.DEFAULT_SLACK:
        slack = gate_rules.DEFAULT_SLACK
        mended = _with_tolerance(file, output, tolerance.model_copy(update={"slack": slack}))
        if _holds(_draws(mended, workload, mutation, output), output, 1.0):
            return f"set the slack of {output} to {slack:g}, which the reference holds"
    length = evaluate(tolerance.reduction, file.definition.sizes(workload))
    growth = (lambda n: n) if workload.distribution in ADVERSARIAL else sqrt
    draws = _draws(file, workload, mutation, output) if length > 1 else []
    for margin in (MARGIN, 1.0) if draws else ():
        shorter = length / 4
        while shorter >= 1:
            share = (growth(shorter) - 1) / (growth(length) - 1)
            if _holds(draws, output, share, margin):
                return (
                    f"set the reduction of {output} to at most {shorter:.0f} at this size (it is {length:.0f}),"
                    " which the reference holds"
                )
            shorter /= 4
    return (
        f"no reduction length of {output} refuses that and holds the reference: correct its `magnitude`, `extra`, "
        "`accumulate` or `slack`, or draw inputs whose answers differ more"
    )


def _draws(file: DefinitionFile, workload: Workload, mutation: Mutation, output: str) -> list[_Draw]:
    source, draws = Inputs(file, workload, secrets.randbits(62), "cpu"), []
    tolerance = file.definition.tolerance_of(output)
    narrow = _with_tolerance(file, output, tolerance.model_copy(update={"reduction": "1"}))
    for _ in range(DRAWS):
        inputs = source.draw()
        wrong = wrong_outputs(file, workload, inputs, mutation)
        if wrong is not None:
            truth = correctness.compute_truth(file, workload, inputs)
            references = list(correctness.reference_orders(file, workload, inputs).values())
            draws.append(_Draw(truth, correctness.compute_truth(narrow, workload, inputs), references, wrong))
    return draws


def _holds(draws: list[_Draw], output: str, share: float, margin: float = 1.0) -> bool:
    """Return True if a bound holds the reference, and the wrong kernel misses it even `margin` times as wide.

    The bound lies between those of a draw, `share` of the way up.
    """
    missed = 0
    for draw in draws:
        low, high = draw.narrow.bounds[output], draw.truth.bounds[output]
        if low is None or high is None:
            return False
        bound = low + share * (high - low)
        truth = replace(draw.truth, bounds={**draw.truth.bounds, output: bound})
        wider = replace(truth, bounds={**draw.truth.bounds, output: bound * margin})
        worst = max(
            correctness.grade_outputs(truth, {output: outputs[output]}).worst for outputs in draw.references
        )
        if worst > ROOM:
            return False
        missed += not output_passes(wider, output, draw.wrong)
    return missed >= max(len(draws) - 1, 1)


def _with_tolerance(file: DefinitionFile, output: str, tolerance: Tolerance) -> DefinitionFile:
    definition = file.definition
    tolerances = {name: definition.tolerance_of(name) for name in definition.outputs} | {output: tolerance}
    return replace(file, definition=definition.model_copy(update={"tolerance": tolerances}))
