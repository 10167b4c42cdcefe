"""What HIP C++ versions launch is compiled for AMD's GPUs on a machine without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import BuildFailed
from warpsmith.languages.hip.compiler import compile_hip
from warpsmith.languages.hip.language import LANGUAGE
from warpsmith.profiling.assembly import inspect

ROOT = Path(__file__).parents[3]
LACK = LANGUAGE.uninstalled()

pytestmark = [
    pytest.mark.usefixtures("forked_compilers"),
    pytest.mark.skipif(LACK is not None, reason=str(LACK)),
]

EXAMPLE = ROOT / "skills" / "design-hip-kernel" / "references" / "example.md"
TWO = """
import torch

SOURCE = r'''
#include <hip/hip_runtime.h>
HIP_DYNAMIC_SHARED(float, shared)
extern "C" __global__ __launch_bounds__(256) void turned(const float* x, float* y) {
  shared[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = shared[255 - threadIdx.x];
}
__global__ void doubled(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = FACTOR * x[i];
}
'''

def run(x):
    assert x.is_cuda and torch.version.hip
    y = torch.empty_like(x)
    options = ["-DFACTOR=2"]
    turned = torch.cuda._compile_kernel(SOURCE, "turned", nvcc_options=options)
    turned.set_shared_memory_config(LDS_BYTES)
    turned(block=(BLOCK, 1, 1), args=[x, y], shared_mem=LDS_BYTES)
    doubled = torch.cuda._compile_kernel(SOURCE, "doubled", nvcc_options=options)
    doubled(grid=(x.numel() // 64, 1, 1), block=(64, 1, 1), args=[x, y, x.numel()])
    return y
"""
OTHER = """__device__ float other(float);
extern "C" __global__ void calling(float* x) { *x = other(*x); }
__global__ void doubled"""
EVERYTHING = r"""
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
extern "C" __global__ __launch_bounds__(64, 2) void all(float4* x, __half* h, __hip_bfloat16* b, int* counts) {
  float4 v = x[(blockIdx.x + gridDim.x) * blockDim.x + threadIdx.x];
  v.x += __shfl(v.x, 3) + __shfl_xor(v.y, 16) + __shfl_down(v.z, 4, 16) + __shfl_up(v.w, 1);
  v.y = rsqrtf(v.x) + sqrtf(v.y) + expf(v.z) + logf(v.w) + fmaf(v.x, fabsf(v.y), fminf(v.z, fmaxf(v.w, 1.0f)));
  v.z = __int_as_float(__float_as_int(v.z) ^ 1) + __half2float(h[0]) + __bfloat162float(b[0]);
  __threadfence();
  atomicAdd(counts + min(1, max(0, (int)__lane_id())), 1);
  h[1] = __float2half(v.y);
  b[1] = __float2bfloat16(v.z);
  x[threadIdx.y * warpSize + threadIdx.x] = v;
}
"""


def compiled(source: Path, definition: Definition, arch: str, folder: Path):
    listings = LANGUAGE.assembly(source, definition, definition.workloads, arch, folder)
    return [(each, inspect.read_assembly(each, source, projects.find_project(ROOT))) for each in listings]


def two(threads: int = 256, shared: int = 1024) -> str:
    return TWO.replace("BLOCK", str(threads)).replace("LDS_BYTES", str(shared))


def test_two_kernels_of_one_program(vector, write, tmp_path):
    smaller = Workload(name="smaller", axes={"n": 1 << 10})
    definition = vector.model_copy(update={"workloads": (*vector.workloads, smaller)})
    source = write(two(), "v1.py")
    (turned, code), (doubled, _) = compiled(source, definition, "gfx950", tmp_path / "out")
    assert (turned.kernel, doubled.kernel) == ("turned", "doubled")
    assert turned.workloads == doubled.workloads == ("million", "smaller")  # one kernel serves both
    assert (turned.block_warps, doubled.block_warps) == (4, 1)
    assert (turned.resources.shared_bytes, doubled.resources.shared_bytes) == (1024, 0)
    assert re.fullmatch(r"FACTOR=2, (AMD )?clang version \d+[\w.]+", doubled.variant)
    assert {"global loads", "global stores", "LDS", "barriers"} <= {count.group for count in code.counts}
    first = two().splitlines().index("  shared[threadIdx.x] = x[threadIdx.x];") + 1
    assert {first, first + 2} <= {line.line for line in code.lines}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "turned.gfx950.amdgcn",
        "doubled.gfx950.amdgcn",
    }


@pytest.mark.parametrize(
    ("threads", "shared", "words"),
    [(256, 70000, "gfx942 has 65536: it will not launch"), (512, 1024, "__launch_bounds__ say 256: it will not")],
)
def test_a_launch_that_asks_for_too_much_is_told(vector, write, tmp_path, threads, shared, words):
    (turned, _), _ = compiled(write(two(threads, shared), "v1.py"), vector, "gfx942", tmp_path / "out")
    assert any(words in note for note in turned.resources.notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("FACTOR * x[i]", "FACTORS * x[i]"), r"v1\.py:14:\d+: error: use of undeclared identifier .FACTORS"),
        (("__global__ void doubled", OTHER), "calls `_Z5otherf`, which it does not define"),
        (("    y = torch", "    return torch"), "launched no kernel"),
    ],
)
def test_what_does_not_compile_is_said_in_few_lines(vector, write, tmp_path, change, words):
    source = write(two().replace(*change), "v1.py")
    with pytest.raises(BuildFailed, match="does not compile for gfx942") as raised:
        compiled(source, vector, "gfx942", tmp_path / "out")
    assert re.search(words, str(raised.value)), raised.value
    assert len(str(raised.value).splitlines()) < 12


def test_every_name_of_the_headers_compiles():
    text = compile_hip(EVERYTHING, (), "gfx942")
    assert "ds_bpermute_b32" in text
    assert "global_load_dwordx4" in text


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
    ("op", "draft", "arch", "instruction"),
    [
        ("rmsnorm", "01_rows", "gfx942", "v_add_f32_dpp"),
        ("skinny_gemm", "01_mfma", "gfx942", "v_mfma_f32_16x16x16_bf16"),
        ("skinny_gemm", "01_mfma", "gfx950", "v_mfma_f32_16x16x32_bf16"),
    ],
)
def test_drafts_compile_at_their_first_workload(op, draft, arch, instruction, tmp_path):
    file = definition_file.load_definition(ROOT / "kernels" / op / "definition.py")
    first = file.definition.model_copy(update={"workloads": file.definition.workloads[:1]})
    source = ROOT / "kernels" / op / "drafts" / "hip" / f"{draft}.py"
    ((listing, code),) = compiled(source, first, arch, tmp_path / "out")
    assert listing.resources.spill_bytes == 0
    assert instruction in {count.kind for count in code.counts}
