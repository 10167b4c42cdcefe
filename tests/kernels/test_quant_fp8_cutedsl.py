"""The CuTe DSL versions of both e4m3 operators: their own code thread by thread, and compiled.

The stand-in tells whether each thread reads and writes what it should; only a GPU tells the rest. What was rolled
back or is prepared is tested with `--drafts`.
"""

from __future__ import annotations

import math
from pathlib import Path

import cute_stand_in
import pytest
import torch
from cute_stand_in import Last, stand_in
from judged import rolled_back

from warpsmith.core.definition import Workload
from warpsmith.errors import MachineLacks
from warpsmith.files import file_sha256
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cutedsl.language import LANGUAGE
from warpsmith.languages.shared.python_file import execute_file

pytestmark = pytest.mark.usefixtures("forked_compilers")

KERNELS = Path(__file__).parents[2] / "kernels"
FILES = {
    name: definition_file.load_definition(KERNELS / name / "definition.py")
    for name in ("swiglu_quant_fp8", "rmsnorm_quant_fp8")
}
VERSIONS = sorted(path for name in FILES for path in (KERNELS / name / "cutedsl").glob("v*.py"))
DRAFTS = sorted(path for name in FILES for path in (KERNELS / name / "drafts/cutedsl").glob("*.py"))
SHAPES = [(1, 3, "bfloat16"), (3, 1, "bfloat16"), (6, 2, "float16"), (5, 9, "bfloat16"), (7, 3, "float32")]
"""Tokens, groups and type: blocks of one warp and of several, rows that no block divides."""
REGISTERS = 65536


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each accepted version, and for each draft where they are asked for."""
    if "path" not in metafunc.fixturenames:
        return
    drafts = metafunc.config.getoption("drafts")
    paths = [path for path in VERSIONS if drafts or file_sha256(path) not in rolled_back()]
    metafunc.parametrize("path", [*paths, *(DRAFTS if drafts else ())], ids=named)


@pytest.fixture(autouse=True)
def one_thread():
    """Many small operations, on a machine that may be busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def operator(path: Path) -> str:
    return path.relative_to(KERNELS).parts[0]


def named(path: Path) -> str:
    return f"{operator(path)}/{path.stem}"


def sized(path: Path, tokens: int, groups: int, dtype: str) -> tuple[definition_file.DefinitionFile, Workload]:
    file = FILES[operator(path)]
    axes = {"tokens": tokens, "groups": groups}
    return file, file.definition.workloads[0].model_copy(update={"axes": axes, "dtype": dtype})


@pytest.mark.parametrize(("tokens", "groups", "dtype"), SHAPES)
def test_it_is_right_and_writes_each_element_once(path, tokens, groups, dtype, monkeypatch):
    file, workload = sized(path, tokens, groups, dtype)
    drawn = Inputs(file, workload, 7, "cpu")
    for distribution in (None, "one_hot")[: 2 if tokens < 5 else 1]:
        inputs = drawn.draw(distribution)
        truth = correctness.compute_truth(file, workload, inputs, correlated=distribution is not None)
        before = {name: tensor.clone() for name, tensor in inputs.items()}
        with stand_in(monkeypatch):
            outputs = file.outputs(execute_file(path).run(*file.arguments(workload, inputs)))
        grade = correctness.grade_outputs(truth, outputs)
        assert grade.status == "PASSED", f"{distribution}: {grade.detail}"
        assert all(torch.equal(tensor, inputs[name]) for name, tensor in before.items())
        counts = {one.data.data_ptr(): one.written for one in Last.arguments}
        for name, tensor in outputs.items():
            assert (counts[tensor.data_ptr()] == 1).all(), f"{name} is not written exactly once"


@pytest.mark.parametrize(("tokens", "groups"), [(5, 9), (17, 1)])
def test_stages_are_filled_again(path, tokens, groups, monkeypatch):
    """One block that stays, with two stages; tiles of unequal width where there are nine groups."""
    if "ring_kernel" not in path.read_text():
        pytest.skip("it has no ring")
    file, workload = sized(path, tokens, groups, "float32")
    inputs = Inputs(file, workload, 7, "cpu").draw(None)
    truth = correctness.compute_truth(file, workload, inputs)
    with stand_in(monkeypatch, multiprocessors=1):
        module = execute_file(path)
        _, held, _ = module.fitted(4, groups) if hasattr(module, "fitted") else (0, groups, 0)
        stage = (8 if hasattr(module, "fitted") else 2) * 128 * held * 4
        module.RING, module.BESIDE = 2 * stage, 1
        grade = correctness.grade_outputs(truth, file.outputs(module.run(*file.arguments(workload, inputs))))
    assert grade.status == "PASSED", grade.detail


def test_what_is_no_number_stays_in_its_row_and_group(path, monkeypatch):
    file, workload = sized(path, 3, 3, "bfloat16")
    inputs = Inputs(file, workload, 7, "cpu").draw(None)
    inputs["x"][1, 130] = math.nan
    with stand_in(monkeypatch):
        found = file.outputs(execute_file(path).run(*file.arguments(workload, inputs)))
    expected = file.outputs(file.reference(*file.arguments(workload, inputs)))
    assert torch.equal(found["scales"].isnan(), expected["scales"].isnan())
    assert torch.equal(found["y_q"].float().isnan(), expected["y_q"].float().isnan())


@pytest.mark.slow
def test_it_compiles_to_16_byte_accesses_without_local_memory(path, tmp_path):
    file = FILES[operator(path)]
    try:
        found = LANGUAGE.assembly(
            path, file.definition, file.definition.select("representative"), "sm_90a", tmp_path
        )
    except MachineLacks as lacking:
        pytest.skip(str(lacking))
    for listing in found:
        kinds, variant, *more = listing.resources.notes
        assert (listing.resources.spill_bytes, more) == (0, [])
        assert "LDL x0" in kinds
        sass = listing.assembly.read_text()
        bulk = listing.kernel == "ring_kernel"
        assert ("UBLKCP" in sass) is bulk
        assert ("LDS.128" if bulk else "LDG.E.128") in sass
        meeting = "BAR.SYNC" if "BAR.SYNC" in sass else "SHFL"
        assert bulk or "LDG" not in sass[sass.index(meeting) :], "a load waits until others have met"
        assert "STG.E.64" in kinds
        assert "STG.E.128" in kinds
        assert "LDG.E.U16" not in kinds
        assert "STG.E.U8" not in kinds
        threads = int(variant.split()[0])
        blocks = 2 if bulk else 1
        assert listing.resources.registers * threads * blocks <= REGISTERS


def test_a_shuffle_in_a_branch_of_one_lane_hangs(monkeypatch):
    monkeypatch.setattr(cute_stand_in, "SECONDS", 0.5)
    source = KERNELS / "rmsnorm_quant_fp8" / "cutedsl" / "v1.py"
    file, workload = sized(source, 1, 3, "bfloat16")
    inputs = Inputs(file, workload, 7, "cpu").draw(None)
    with stand_in(monkeypatch), pytest.raises(AssertionError, match="waits for others in vain"):
        execute_file(source).run(*file.arguments(workload, inputs))
