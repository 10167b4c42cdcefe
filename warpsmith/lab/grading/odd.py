"""Odd shapes that a definition does not declare: sizes that no tile divides, and near misses of declared ones."""

from __future__ import annotations

import random
import secrets

from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs

_SIZES = {"ones": 1, "primes": 67, "uneven": 129}
_MOST_NEAR, _MOST_INTERPRETED = 4, 1
_NEAR_ELEMENTS, _NEAR_INTERPRETED = 1 << 20, 1 << 14
"""Elements of all tensors of a near miss together: every distribution is judged at it, in float64; and by an
interpreter, a thousand times slower."""
_JITTER = 7
_TILE = 8
"""No size near a declared one is a multiple of it."""


def derived(file: DefinitionFile) -> list[Workload]:
    """Odd shapes for a definition that declares none and binds its callers to nothing: each size along every
    variable axis, and no elements at all where the reference can do that."""
    variable = _variable(file)
    if not variable:
        return []
    smallest = min(file.definition.select("representative"), key=file.definition.elements)
    found = [_at(smallest, f"odd-{name}", dict.fromkeys(variable, size)) for name, size in _SIZES.items()]
    empty = _at(smallest, "odd-empty", {**dict.fromkeys(variable, 67), variable[0]: 0})
    return [*found, empty] if _holds(file, empty) else found


def around(
    file: DefinitionFile,
    workload_set: WorkloadSet = "representative",
    *,
    interpreted: bool = False,
    seed: int | None = None,
) -> list[Workload]:
    """Shapes that nobody saw before, near those of a set and with no size a multiple of eight: a kernel that is
    right at declared shapes only is wrong there.

    Large workloads are scaled down first, along their longest axis. Shapes that the reference cannot do, because
    axes depend on each other, are left out.
    """
    variable, chance = _variable(file), random.Random(secrets.randbits(62) if seed is None else seed)
    if not variable:
        return []
    declared = file.definition.select(workload_set)
    found: list[Workload] = []
    for workload in chance.sample(declared, len(declared)):
        small = _scaled_down(file, workload, variable, _NEAR_INTERPRETED if interpreted else _NEAR_ELEMENTS)
        axes = {name: _near(small.axes[name], chance) for name in variable}
        near = _at(small, f"near-{workload.name}"[:80], axes)
        if len(found) < (_MOST_INTERPRETED if interpreted else _MOST_NEAR) and _holds(file, near):
            found.append(near)
    return found


def _variable(file: DefinitionFile) -> list[str]:
    """Axes that callers may give any size."""
    if file.definition.constraints or file.inputs is not None:
        return []
    return [name for name, size in file.definition.axes.items() if isinstance(size, str)]


def _at(workload: Workload, name: str, axes: dict[str, int]) -> Workload:
    return workload.model_copy(update={"name": name, "set": "odd", "axes": {**workload.axes, **axes}})


def _scaled_down(file: DefinitionFile, workload: Workload, variable: list[str], most: int) -> Workload:
    """The longest axis halved until the tensors are small enough."""
    while file.definition.elements(workload) > most:
        longest = max(variable, key=lambda name: workload.axes[name])
        if workload.axes[longest] <= _TILE:
            break
        workload = _at(workload, workload.name, {longest: workload.axes[longest] // 2})
    return workload


def _near(size: int, chance: random.Random) -> int:
    sizes = range(max(1, size - _JITTER), size + _JITTER + 1)
    return chance.choice([other for other in sizes if other != size and other % _TILE])


def _holds(file: DefinitionFile, workload: Workload) -> bool:
    """Whether the reference itself can do it, within its bound."""
    try:
        drawn = Inputs(file, workload, secrets.randbits(62), "cpu").draw()
        truth = correctness.truth(file, workload, drawn)
        return correctness.holds_itself(file, workload, drawn, truth).status is Status.PASSED
    except (BadDefinition, ValueError):
        return False
