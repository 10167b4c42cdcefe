"""Eleven ordinary operators: from a newcomer's PyTorch file to a C++ version that the gate accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from workshop import Workshop

from warpsmith.core.evaluation import Verdict
from warpsmith.interchange.pytorch.definition_text import definition_draft
from warpsmith.interchange.pytorch.example_flags import parse_example_flag
from warpsmith.interchange.pytorch.inspection import inspect_operator
from warpsmith.lab.gate.judge import judge_version
from warpsmith.lab.machine import system
from warpsmith.lab.operator import definition_file
from warpsmith.lab.proof import definition_proof
from warpsmith.lab.workers.worker_host import WorkerHost

FOLDER = Path(__file__).parents[2] / "data" / "ordinary_operators"
FLAGS = {"layernorm_gelu": ("x=256,256:float32", "weight=256:float32", "bias=256:float32", "eps=1e-5")}


@pytest.mark.timeout(600)  # a whole judgement
@pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_from_a_file_to_an_accepted_version(workshop: Workshop, host: WorkerHost, name: str) -> None:
    source = FOLDER / f"{name}.py"
    examples = [parse_example_flag(flag) for flag in FLAGS.get(name, ())]
    path = workshop.project.definition_path(name)  # `new` does the same in a process of its own
    definition_draft(inspect_operator(name, source, "", examples), source).write(path)
    file = definition_file.load_definition(path)
    assert definition_proof.prove_definition(file).counterexamples == ()
    kernel = source.with_suffix(".cpp").read_text(encoding="utf-8")
    evaluation = judge_version(workshop.request(file, workshop.solution(kernel)), host)
    assert evaluation.decision is not None
    assert evaluation.decision.verdict is Verdict.ACCEPT, evaluation.decision.reason
