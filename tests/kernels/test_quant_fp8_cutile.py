"""Quantising kernels in cuTile: their arithmetic by a stand-in for cuTile, and what the compiler makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tile_stand_in import stand_in

from warpsmith.core.definition import Workload
from warpsmith.errors import MachineLacks
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import ALONE
from warpsmith.languages.cutile.language import LANGUAGE
from warpsmith.languages.shared.python_file import execute_file

pytestmark = pytest.mark.usefixtures("forked_compilers")

KERNELS = Path(__file__).parents[2] / "kernels"
NORM = KERNELS / "rmsnorm_quant_fp8/drafts/cutile/01_rows.py"
ACTIVATION = KERNELS / "swiglu_quant_fp8/drafts/cutile/01_parts.py"
FILES = {
    draft: definition_file.load_definition(draft.parents[2] / "definition.py") for draft in (NORM, ACTIVATION)
}


def named(draft: Path, name: str) -> Workload:
    return next(workload for workload in FILES[draft].definition.workloads if workload.name == name)


def resized(draft: Path, name: str, **axes: int) -> Workload:
    """A declared workload at another size."""
    return named(draft, name).model_copy(update={"axes": {**named(draft, name).axes, **axes}})


CASES = [
    (draft, one)
    for draft, file in FILES.items()
    for one in file.definition.select("odd")
    if file.definition.elements(one) < 130_000
]
CASES += [
    (NORM, resized(NORM, "16384x4096-bf16", tokens=3)),
    (NORM, resized(NORM, "8192x7168-bf16", tokens=2)),
    (NORM, resized(NORM, "8192x7168-bf16", tokens=3, groups=130)),  # more than one tile
    (NORM, resized(NORM, "2x384-fp32", tokens=1, groups=257)),
    (ACTIVATION, resized(ACTIVATION, "65536x2048-bf16", tokens=109, groups=155)),
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Many small operations, on a machine that may be busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("draft", "workload"), CASES, ids=lambda one: one.parents[2].name if isinstance(one, Path) else one.name
)
def test_it_is_right(draft: Path, workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    file, run = FILES[draft], execute_file(draft).run
    drawn = Inputs(file, workload, 7, "cpu")
    for distribution in (None, *drawn.adversarial_distributions):
        inputs = drawn.draw(distribution)
        truth = correctness.compute_truth(file, workload, inputs, correlated=distribution is not None)
        outputs = file.outputs(run(*file.arguments(workload, inputs)))
        grade = correctness.grade_outputs(truth, outputs)
        assert grade.status == "PASSED" or distribution in ("huge", *ALONE), f"{distribution}: {grade.detail}"


@pytest.mark.parametrize("draft", FILES, ids=lambda draft: draft.parents[2].name)
def test_no_tokens_are_no_launch(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    x, weight = torch.empty(0, 256), torch.ones(256)
    args = (x, x, weight, 1e-6) if draft is NORM else (x,)
    assert [one.numel() for one in execute_file(draft).run(*args)] == [0] * (3 if draft is NORM else 2)


@pytest.mark.parametrize(
    ("draft", "name", "blocks"),
    [
        (NORM, "8192x7168-bf16", 3),
        (NORM, "16384x4096-bf16", 6),
        (ACTIVATION, "8192x14336-bf16", 9),
        (ACTIVATION, "5x640-fp32", 9),
    ],
)
def test_registers_hold_several_blocks_and_loads_are_whole(
    draft: Path, name: str, blocks: int, tmp_path: Path
) -> None:
    try:
        (found,) = LANGUAGE.assembly(draft, FILES[draft].definition, [named(draft, name)], "sm_90a", tmp_path)
    except MachineLacks as lacking:
        pytest.skip(str(lacking))
    instructions, launch = found.resources.notes
    assert (found.unaligned, found.resources.spill_bytes) == ((), 0)
    assert "LDG.E.128" in instructions
    assert "LDG.E.U16" not in instructions
    assert 65536 // (found.resources.registers * int(launch.split()[0])) >= blocks
