"""Proof of a definition before it is frozen: its reference holds its bound, and wrong implementations do not.

Every output is graded as the gate grades it. A mutation whose exact answer is the reference's, or as near as
honest rounding is, proves nothing and is left out: no tolerance that the reference holds could refuse it. Yet a
constant must fail somewhere at every output that depends on an input: else a kernel that reads nothing would pass.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import psutil
from pydantic import Field

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.base import Model, Sha256
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.core.text import Tell
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness, free_axes, odd
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.operator import scalar_values
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import FINITE
from warpsmith.lab.proof import mend
from warpsmith.lab.proof.mutations import CONSTANT, Mutation, list_mutations
from warpsmith.lab.proof.wrong_outputs import (
    error_share,
    exact_answer,
    largest_share,
    output_passes,
    wrong_outputs,
)

if TYPE_CHECKING:
    import torch

DRAWS = 3
"""Draws of inputs of a workload. The gate grades at least as many calls, so a mutation that fails one fails."""

SUSPECT_DRAWS = 10
"""Draws of a workload at which a mutation still passes, because a scalar may be near the reference by chance. The
gate grades more calls than that, the timed ones included."""

CONSTANT_DRAWS = 4
"""Draws whose mean is the constant output."""

HONEST_NOISE = 4.0
"""Honest kernels may be off by this many times the error of the reference in its worst order of summation. Chosen:
the orders are few, and a serial sum is the worst of them."""

SECONDS = 20.0
"""Time after which no larger workload is begun. The smallest that rounds time is always begun; after twice the
time its remaining mutations are left out, the slight ones first."""

_BYTES_PER_ELEMENT = 120
"""Memory of a proof for each element of inputs and outputs: some fifteen copies in float64."""

_FEW_ELEMENTS = 1 << 18
"""Elements up to which the time of a proof does not depend on their number."""


class Counterexample(Model):
    """A wrong implementation that the gate would accept."""

    mutation: str
    """Description of the wrong implementation."""
    workload: str
    """Workload at which it passes."""
    output: str
    """Output that is wrong, although it passes."""
    error: float = Field(ge=0)
    """Largest error of its exact answer, as a share of the bound."""
    reference_error: float = Field(ge=0)
    """Largest error of the reference in any order of summation, as a share of the bound."""


class DefinitionProof(Model):
    """Result of a proof."""

    definition: str
    """Name of the operator."""
    definition_sha256: Sha256
    """Hash of the definition that was proven."""
    workloads: tuple[str, ...]
    """Workloads that were run, the smallest first."""
    skipped: dict[str, str]
    """Workload that was not run to the reason."""
    mutations: int
    """Number of wrong implementations that failed at some workload."""
    hidden: tuple[str, ...]
    """Wrong implementations that change no answer by more than rounding does, at any workload that was run."""
    reference_error: float = Field(ge=0)
    """Largest error of the reference in any order of summation, as a share of its bound."""
    counterexamples: tuple[Counterexample, ...]
    """Wrong implementations that the gate would accept, the gross ones first, and of those the least wrong."""
    mend: str
    """Change of the definition that refuses the first of them; empty if it is proven."""
    integers: dict[str, str] = {}
    """Input of integers to the least and the largest one in a draw of most of them."""
    fixed: dict[str, str] = {}
    """Axis that keeps its declared sizes in judgements to the reason."""
    constants: dict[str, int] = {}
    """Integer of a call to the only value that it has in judgements."""


@dataclass
class _Trial:
    """A mutation's fate at one output of one workload."""

    mutation: Mutation
    output: str
    caught: bool = False
    changes: bool = False
    """True if its exact answer differs from the reference's by more than rounding."""
    error: float = 0.0
    """Largest error of its exact answer, as a share of the bound."""


_Passing = tuple[Workload, _Trial, float]


@dataclass
class _Fate:
    """A mutation's fate at one output of all workloads."""

    caught: bool = False
    passing: list[_Passing] = field(default_factory=list)
    """Workloads at which it passes and is wrong, with the reference's error there."""


def prove_definition(
    file: DefinitionFile, tell: Tell = lambda _: None, seconds: float = SECONDS
) -> DefinitionProof:
    """Run the reference and its mutations at every workload that fits this machine's memory and the time.

    Args:
        file: the definition.
        tell: takes a line about each workload.
        seconds: time after which no larger workload is begun.

    Raises:
        BadDefinition: the reference fails, or misses its own bound.
    """
    return _Proof(file, tell, seconds).run()


def describe_refusal(file: DefinitionFile, proof: DefinitionProof) -> str:
    """Describe why a definition is refused; empty if it is proven."""
    if not proof.counterexamples:
        return ""
    first = proof.counterexamples[0]
    others = "".join(f"; {example.mutation}, at {example.workload}" for example in proof.counterexamples[1:4])
    more = f" These would pass too: {others[2:]}." if others else ""
    return (
        f"{file.path}: a wrong kernel would pass at {first.workload}: {first.mutation}, and {first.output} is off"
        f" by only {first.error:.2g} of its bound; {proof.mend}.{more}"
    )


class _Proof:
    """One proof in progress."""

    def __init__(self, file: DefinitionFile, tell: Tell, seconds: float) -> None:
        self._file, self._tell, self._seconds = file, tell, seconds
        self._fates: dict[tuple[str, str], _Fate] = {}
        """Name of a mutation and of an output to its fate."""
        self._worst = 0.0
        self._begun = time.monotonic()
        self._untried: dict[str, set[str]] = {}
        self._constant_fails: set[str] = set()
        self._constant_passes: dict[str, _Passing] = {}
        self._dependent: set[str] = set()
        self._integers: dict[str, tuple[int, str]] = {}
        """Input to the most integers that a workload drew, and their range."""

    def run(self) -> DefinitionProof:
        """Prove the workloads, the smallest first."""
        definition, proven, skipped = self._file.definition, [], {}
        workloads = sorted(self._workloads(), key=definition.elements)
        required = next(workload for workload in workloads if workload.set == "representative")
        latest, latest_elements = 0.0, _FEW_ELEMENTS
        for workload in workloads:
            elements = max(definition.elements(workload), _FEW_ELEMENTS)
            expected = latest * elements / latest_elements if workload is not required else 0.0
            left = self._seconds - (time.monotonic() - self._begun)
            if reason := self._skip_reason(elements, expected, left):
                skipped[workload.name] = reason
                continue
            self._tell(f"proof: {workload.name}")
            started = time.monotonic()
            self._prove_workload(workload)
            latest, latest_elements = time.monotonic() - started, elements
            proven.append(workload)
        self._try_adversarial(proven)
        names = dict.fromkeys(name for name, _ in self._fates)
        failing = {name for (name, _), fate in self._fates.items() if fate.caught}
        counterexamples, mended = self._counterexamples()
        passing = {example.mutation for example in counterexamples}
        return DefinitionProof(
            definition=definition.name,
            definition_sha256=self._file.sha256,
            workloads=tuple(workload.name for workload in proven),
            skipped=skipped | {name: self._untried_reason(names) for name, names in self._untried.items()},
            mutations=len(failing - passing),
            hidden=tuple(name for name in names if name not in failing and name not in passing),
            reference_error=self._worst,
            counterexamples=counterexamples,
            mend=mended,
            integers={name: drawn for name, (_, drawn) in self._integers.items()},
            fixed=free_axes.fixed_axes(self._file),
            constants=scalar_values.list_constant_integers(definition),
        )

    def _workloads(self) -> list[Workload]:
        definition = self._file.definition
        odd_workloads = definition.select("odd") or odd.derive_odd_workloads(self._file)
        return [*odd_workloads, *definition.select("representative", "full")]

    def _skip_reason(self, elements: int, expected: float, left: float) -> str:
        size = elements * _BYTES_PER_ELEMENT
        if size > psutil.virtual_memory().available:
            return f"it needs about {size / 2**30:.0f} GiB of memory"
        return f"it would take longer than the {self._seconds:.0f} s of a proof" if expected > left else ""

    def _untried_reason(self, mutations: set[str]) -> str:
        return f"{len(mutations)} mutations were not tried within {2 * self._seconds:.0f} s"

    @property
    def _late(self) -> bool:
        """True after twice the time of the proof."""
        return time.monotonic() - self._begun > 2 * self._seconds

    @property
    def _most_draws(self) -> int:
        """Return the draws of a workload at which a mutation still passes; fewer where time is short."""
        return DRAWS if self._late else SUSPECT_DRAWS

    def _note_integers(self, workload: Workload, inputs: dict[str, torch.Tensor]) -> None:
        for name, tensor in inputs.items():
            if not tensor.is_floating_point() and tensor.numel() > self._integers.get(name, (0, ""))[0]:
                drawn = f"{int(tensor.min())} to {int(tensor.max())} at {workload.name}"
                self._integers[name] = tensor.numel(), drawn

    def _prove_workload(self, workload: Workload) -> None:
        source = Inputs(self._file, workload, secrets.randbits(62), "cpu")
        constants = self._constants(workload, source)
        trials = [
            _Trial(mutation, output)
            for mutation in list_mutations(self._file, workload, constants)
            for output in self._file.definition.outputs
        ]
        noise: dict[str, float] = {}
        for draw in range(SUSPECT_DRAWS):
            suspected = any(trial.changes and not trial.caught for trial in trials)
            if (draw >= DRAWS or self._late) and draw and not (suspected and draw < self._most_draws):
                break
            inputs = source.draw()
            self._note_integers(workload, inputs)
            truth = correctness.compute_truth(self._file, workload, inputs)
            if draw >= DRAWS:
                suspects = [trial for trial in trials if trial.changes]
                self._try_mutations(workload, inputs, truth, suspects, noise)
                continue
            references = correctness.reference_orders(self._file, workload, inputs)
            if draw == 0:
                with _single_thread():
                    outputs = correctness.reference_outputs(self._file, workload, inputs)
                references["on a single thread"] = outputs
                if relaid := self._transposed(inputs):
                    outputs = correctness.reference_outputs(self._file, workload, relaid)
                    references["its inputs transposed in memory"] = outputs
            self._refuse_infinite_bounds(workload, truth)
            self._grade_reference(workload, truth, references)
            for name, share in self._honest_shares(workload, truth, references).items():
                noise[name] = max(noise.get(name, 0.0), share)
            self._try_mutations(workload, inputs, truth, trials, noise)
        for trial in trials:
            fate = self._fates.setdefault((trial.mutation.name, trial.output), _Fate())
            fate.caught = fate.caught or trial.caught
            if trial.changes and not trial.caught:
                fate.passing.append((workload, trial, noise[trial.output]))
            if trial.mutation.name == CONSTANT:
                if trial.caught:
                    self._constant_fails.add(trial.output)
                else:
                    self._constant_passes[trial.output] = workload, trial, noise[trial.output]
            elif not trial.mutation.outputs and (trial.caught or trial.error > 0):
                self._dependent.add(trial.output)

    def _transposed(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the inputs with another layout where callers may choose it; empty if they may not."""
        specs = self._file.definition.tensor_inputs
        free = [name for name, tensor in inputs.items() if specs[name].layout == "any" and tensor.ndim > 1]
        relaid = {name: inputs[name].mT.contiguous().mT for name in free}
        return {**inputs, **relaid} if relaid else {}

    def _constants(self, workload: Workload, source: Inputs) -> dict[str, torch.Tensor]:
        import torch

        draws = [correctness.reference_outputs(self._file, workload, source.draw()) for _ in range(CONSTANT_DRAWS)]
        return {
            name: torch.stack([draw[name].double() for draw in draws]).mean(0).to(first.dtype)
            if first.is_floating_point()
            else first
            for name, first in draws[0].items()
        }

    def _grade_reference(
        self, workload: Workload, truth: Truth, references: dict[str, dict[str, torch.Tensor]]
    ) -> None:
        grades = [
            replace(grade, detail=grade.detail and f"{grade.detail}{order and ', '}{order}")
            for order, outputs in references.items()
            for grade in [correctness.grade_outputs(truth, outputs)]
        ]
        total = correctness.merge_grades(grades)
        if total.status is not Status.PASSED:
            raise BadDefinition(
                f"{self._file.path}: the reference misses its own bound at {workload.name} ({total.detail});"
                " correct the tolerance, its reduction length above all."
            )
        self._worst = max(self._worst, total.worst)

    def _refuse_infinite_bounds(self, workload: Workload, truth: Truth) -> None:
        for name, bound in truth.bounds.items():
            if bound is not None and bool((bound.isinf() & truth.values[name].isfinite()).any()):
                raise BadDefinition(
                    f"{self._file.path}: the bound of {name} is infinite at {workload.name} where its answer is "
                    "finite, so any answer would pass there; correct its `magnitude` or `extra`."
                )

    def _honest_shares(
        self, workload: Workload, truth: Truth, references: dict[str, dict[str, torch.Tensor]]
    ) -> dict[str, float]:
        """Return by output how far honest kernels may be off, as a share of the bound."""
        definition, shares = self._file.definition, {}
        for name, value in truth.values.items():
            bound = truth.bounds[name]
            if bound is None:
                shares[name] = 0.0
                continue
            worst = max(error_share(truth, name, outputs[name]) for outputs in references.values())
            out = DTYPES[definition.dtype(definition.outputs[name], workload)]
            steps = DTYPES[definition.tolerance_of(name).accumulate].unit_roundoff * gate_rules.ROUNDING_STEPS
            rounding = largest_share(value.abs() * (out.unit_roundoff + steps) / bound)
            shares[name] = max(HONEST_NOISE * worst, rounding)
        return shares

    def _try_mutations(
        self,
        workload: Workload,
        inputs: dict[str, torch.Tensor],
        truth: Truth,
        trials: list[_Trial],
        noise: dict[str, float],
    ) -> None:
        """Grade each mutation that no earlier draw has caught."""
        by_mutation: dict[str, list[_Trial]] = {}
        for trial in trials:
            if not trial.caught:
                by_mutation.setdefault(trial.mutation.name, []).append(trial)
        for open_trials in by_mutation.values():
            mutation = open_trials[0].mutation
            if self._late and not any(trial.changes for trial in open_trials):
                self._untried.setdefault(workload.name, set()).add(mutation.name)
                continue
            wrong = wrong_outputs(self._file, workload, inputs, mutation)
            if wrong is None:
                continue
            for trial in open_trials:
                trial.caught = not output_passes(truth, trial.output, wrong)
            passing = [trial for trial in open_trials if not trial.caught]
            exact = exact_answer(self._file, workload, inputs, mutation) if passing else None
            if exact is not None:
                for trial in passing:
                    error = error_share(truth, trial.output, exact[trial.output])
                    trial.error = max(trial.error, error)
                    trial.changes = trial.changes or error > noise[trial.output]

    def _try_adversarial(self, workloads: list[Workload]) -> None:
        """Try slight mutations that nothing has caught on the further distributions, as the gate draws them."""
        for workload in (workload for workload in workloads if workload.set == "odd"):
            source = Inputs(self._file, workload, secrets.randbits(62), "cpu")
            for distribution in source.adversarial_distributions:
                suspects = [fate for fate in self._fates.values() if _is_slight(fate) and not fate.caught]
                if not suspects:
                    return
                inputs = source.draw(distribution)
                at = workload.model_copy(update={"distribution": distribution})
                truth = correctness.compute_truth(self._file, at, inputs)
                if distribution in FINITE and not truth.is_finite:
                    continue
                if correctness.grade_reference(self._file, at, inputs, truth).status is not Status.PASSED:
                    continue
                for fate in suspects:
                    trial = fate.passing[0][1]
                    wrong = wrong_outputs(self._file, workload, inputs, trial.mutation)
                    fate.caught = wrong is not None and not output_passes(truth, trial.output, wrong)

    def _constant_answers(self) -> list[_Passing]:
        """Return the outputs at which a constant passes at every workload, although they depend on an input.

        An output may be independent of the inputs, such as positions, if another one is not.
        """
        passing = {name: part for name, part in self._constant_passes.items() if name not in self._constant_fails}
        return [part for name, part in passing.items() if name in self._dependent or not self._constant_fails]

    def _counterexamples(self) -> tuple[tuple[Counterexample, ...], str]:
        """Return the mutations that pass, the gross and least wrong first, and the mend of the first."""
        fates = [fate for fate in self._fates.values() if not (_is_slight(fate) and fate.caught)]
        passing = [min(fate.passing, key=lambda part: part[1].error) for fate in fates if fate.passing]
        if not any(trial.mutation.name == CONSTANT for _, trial, _ in passing):
            passing += self._constant_answers()
        passing.sort(key=lambda part: (not part[1].mutation.gross, part[1].error))
        passing = list({part[1].mutation.name: part for part in reversed(passing)}.values())[::-1]
        examples = tuple(
            Counterexample(
                mutation=trial.mutation.name,
                workload=workload.name,
                output=trial.output,
                error=trial.error,
                reference_error=noise / HONEST_NOISE,
            )
            for workload, trial, noise in passing
        )
        if not passing:
            return (), ""
        workload, trial, _ = passing[0]
        return examples, mend.find_mend(self._file, workload, trial.mutation, trial.output)


def _is_slight(fate: _Fate) -> bool:
    return bool(fate.passing) and not fate.passing[0][1].mutation.gross


@contextmanager
def _single_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
