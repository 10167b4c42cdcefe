"""What FlyDSL versions launch is compiled for AMD's GPUs on a machine without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import BuildFailed
from warpsmith.languages.flydsl.language import LANGUAGE
from warpsmith.profiling.assembly import inspect

ROOT = Path(__file__).parents[3]
LACK = LANGUAGE.uninstalled()

pytestmark = [
    pytest.mark.usefixtures("forked_compilers"),
    pytest.mark.skipif(LACK is not None, reason=str(LACK)),
]

EXAMPLE = ROOT / "skills" / "design-flydsl-kernel" / "references" / "example.md"
TWO = """
import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

@flyc.kernel
def turned(x: fx.Tensor, y: fx.Tensor):
    shared = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(256, 1))
    shared[fx.thread_idx.x] = x[fx.thread_idx.x]
    fx.gpu.barrier()
    y[fx.thread_idx.x] = shared[255 - fx.thread_idx.x]

@flyc.kernel
def doubled(x: fx.Tensor, y: fx.Tensor, FACTOR: fx.Constexpr[int]):
    index = fx.block_idx.x * 64 + fx.thread_idx.x
    y[index] = x[index] * FACTOR

@flyc.jit
def launch(x: fx.Tensor, y: fx.Tensor, blocks: fx.Int32, FACTOR: fx.Constexpr[int], stream: fx.Stream):
    turned(x, y).launch(grid=(1,), block=(THREADS,), smem=SHARED, stream=stream)
    doubled(x, y, FACTOR).launch(grid=(blocks,), block=(64,), stream=stream)

def run(x):
    assert x.is_cuda and torch.version.hip
    y = torch.empty_like(x)
    launch(x, y, x.numel() // 64, 2, fx.Stream(torch.cuda.current_stream().cuda_stream))
    return y
"""


def compiled(source: Path, definition: Definition, arch: str, folder: Path):
    listings = LANGUAGE.assembly(source, definition, definition.workloads, arch, folder)
    return [(each, inspect.read_assembly(each, source, projects.find_project(ROOT))) for each in listings]


def test_two_kernels_of_one_function(vector, write, tmp_path):
    smaller = Workload(name="smaller", axes={"n": 1 << 10})
    definition = vector.model_copy(update={"workloads": (*vector.workloads, smaller)})
    source = write(TWO.replace("THREADS", "256").replace("SHARED", "1024"), "v1.py")
    (turned, code), (doubled, _) = compiled(source, definition, "gfx950", tmp_path / "out")
    assert (turned.kernel, doubled.kernel) == ("turned", "doubled")
    assert turned.workloads == doubled.workloads == ("million", "smaller")  # one kernel serves both
    assert (turned.block_warps, doubled.block_warps) == (4, 1)
    assert (turned.resources.shared_bytes, doubled.resources.shared_bytes) == (1024, 0)
    assert doubled.variant == "f32 ?:1, f32 ?:1, FACTOR=2"
    groups = {count.group for count in code.counts}
    assert {"global loads", "global stores", "LDS", "barriers"} <= groups
    assert {line.line for line in code.lines} <= set(range(6, 12))
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "turned.gfx950.amdgcn",
        "doubled.gfx950.amdgcn",
    }


def test_a_launch_that_asks_for_too_much_is_told(vector, write, tmp_path):
    source = write(TWO.replace("THREADS", "256").replace("SHARED", "70000"), "v1.py")
    (turned, _), _ = compiled(source, vector, "gfx942", tmp_path / "out")
    assert any("gfx942 has 65536: it will not launch" in note for note in turned.resources.notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("y[index] = x[index] * FACTOR", "y[index] = x[index] * FACTORS"), "FACTORS"),
        (("x[index] * FACTOR", "fx.exp2(x[index])"), "ROCm's device library"),
        (("    launch(x", "    (lambda *_: None)(x"), "called no function"),
    ],
)
def test_what_does_not_compile_is_said_in_few_lines(vector, write, tmp_path, change, words):
    source = write(TWO.replace("THREADS", "256").replace("SHARED", "1024").replace(*change), "v1.py")
    with pytest.raises(BuildFailed, match="does not compile for gfx942") as raised:
        compiled(source, vector, "gfx942", tmp_path / "out")
    assert re.search(words, str(raised.value))
    assert len(str(raised.value).splitlines()) < 12


def test_the_skills_example_compiles(write, tmp_path):
    softmax = Definition(
        name="softmax",
        description="Rows scaled and normalised.",
        axes={"rows": "rows", "cols": "row length"},
        inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=1.0)},
        outputs={"y": TensorSpec(shape=("rows", "cols"))},
        flops="5 * rows * cols",
        workloads=(
            Workload(name="short", axes={"rows": 64, "cols": 1000}, dtype="bfloat16"),
            Workload(name="long", axes={"rows": 64, "cols": 33000}),
        ),
    )
    source = write(EXAMPLE.read_text().split("```python\n")[1].split("```")[0], "v1.py")
    for listing, code in compiled(source, softmax, "gfx942", tmp_path / "out"):
        assert listing.resources.spill_bytes == 0
        assert "special functions" in {count.group for count in code.counts}


@pytest.mark.parametrize(
    ("op", "draft", "instruction"),
    [("rmsnorm", "01_rows", "buffer_load_dwordx4"), ("skinny_gemm", "01_mfma", "v_mfma_f32_16x16x16_bf16")],
)
def test_drafts_compile_at_their_first_workload(op, draft, instruction, tmp_path):
    file = definition_file.load_definition(ROOT / "kernels" / op / "definition.py")
    first = file.definition.model_copy(update={"workloads": file.definition.workloads[:1]})
    source = ROOT / "kernels" / op / "drafts" / "flydsl" / f"{draft}.py"
    ((listing, code),) = compiled(source, first, "gfx942", tmp_path / "out")
    assert listing.resources.spill_bytes == 0
    assert instruction in {count.kind for count in code.counts}
