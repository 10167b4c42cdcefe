"""History of a version: its first calls at a few sizes, which must have the same bits after larger ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch


class FirstCall(NamedTuple):
    """A call with its inputs and results."""

    session: Session
    """Session of the call: its tensors lie at the same addresses again."""
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]


class FirstCalls:
    """First calls of one version at a few small odd sizes, where the definition is deterministic."""

    def __init__(self, file: DefinitionFile) -> None:
        self._file = file
        self._calls: dict[str, FirstCall] = {}

    def take_last(self, session: Session) -> None:
        """Take the last call of a session, which is the first one at its size, if there is room for it."""
        first, most = input_rules.FIRST_CALLS
        least_elements, most_elements = input_rules.FIRST_CALL_ELEMENTS
        workload, count = session.workload, len(self._calls)
        elements = self._file.definition.elements(workload)
        is_small = workload.set == "odd" and least_elements <= elements <= most_elements
        is_drawn = count < first or random.SystemRandom().random() < input_rules.FIRST_CALL_SHARE
        if self._file.definition.deterministic and is_small and is_drawn and count < most:
            outputs = {name: tensor.clone() for name, tensor in session.fetch_outputs(SOLUTION, 0).items()}
            self._calls[workload.name] = FirstCall(session, dict(session.drawn[0]), outputs)

    def repeat(self, workload: Workload) -> None:
        """Call again on the same inputs at the same addresses, if the first call at a workload was taken.

        Raises:
            SideFailed: a bit differs.
        """
        if (call := self._calls.pop(workload.name, None)) is None:
            return
        session = call.session
        session.sides = {SOLUTION: session.sides[SOLUTION]}  # a build that counts lines may have ended
        session.prepare()
        session.write_inputs(0, call.inputs)
        session.call_side(SOLUTION, fresh="poison", deliver=True)
        outputs = session.fetch_outputs(SOLUTION, 0)
        if correctness.differing_output(call.outputs, outputs):  # else no reference is needed
            _, failure = correctness.compare_calls(call.outputs, outputs, session.truth(0), deterministic=True)
            if failure:
                raise SideFailed(Status.NOT_REPRODUCIBLE, f"{failure}: other bits after larger sizes")
