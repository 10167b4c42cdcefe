"""What a CUDA C++ solution launches is compiled for devices that are not there, and nothing stays patched."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from test_cuda import needs_nvrtc

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.cuda import fake_device as cuda_fake_device
from warpsmith.languages.cuda.language import LANGUAGE
from warpsmith.languages.shared.disassembly import NEVER_WAITS

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
    pytest.mark.usefixtures("forked_compilers"),
]
EXAMPLE = Path(__file__).parents[3] / "skills/design-cuda-kernel/references/example.md"

COPY = '''"""A copy."""
import functools

import numpy
import torch
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = r"""
__device__ __forceinline__ float4 twice(float4 v) {
  return make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}
template <int B>
__global__ void copy(const float4* __restrict__ x, float4* __restrict__ y, int n, float a) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) y[i] = twice(x[i]);
}
extern "C" __global__ void other(float* y) {
  extern __shared__ float s[];
  s[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""
SMS = torch.cuda.get_device_properties("cuda").multi_processor_count

@functools.cache
def code(arch: str):
    return Program(SOURCE, "c++", ProgramOptions(arch=arch)).compile("cubin", name_expressions=("copy<256>",))

def run(x):
    capability = Device().compute_capability
    arch = f"sm_{capability.major}{capability.minor}" + ("a" if capability.major == 9 else "")
    assert x.is_cuda and SMS > 100
    y = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    n = x.numel() // 4
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    config = LaunchConfig(grid=((n + 255) // 256,), block=(256,))
    launch(stream, config, code(arch).get_kernel("copy<256>"), x.data_ptr(), y.data_ptr(), n, numpy.float32(2))
    return y
'''


@pytest.fixture
def compiled(write, tmp_path):
    """Compiles in this process: gives the exit status and what was found."""

    def make(source, definition, arch, workloads=None):
        path = write(source, "v1.py")
        request = {"source": str(path), "definition": definition.model_dump(mode="json"), "arch": arch}
        write(json.dumps(request | ({"workloads": workloads} if workloads else {})), "request.json")
        status = cuda_compile.main(tmp_path)
        found = json.loads((tmp_path / "resources.json").read_text()) if status == 0 else []
        return status, [Resources.model_validate(resource) for resource in found]

    return make


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_compile_only(compiled, vector, arch):
    from cuda import core

    before = (torch.cuda.is_available, core.Program, core.launch)
    status, (report,) = compiled(COPY, vector, arch)
    assert status == 0
    assert report.kernel == "copy"
    assert report.registers is not None
    assert 0 < report.registers < 40
    assert (report.spill_bytes, report.shared_bytes) == (0, 0)
    assert report.notes[0] == "LDG.E.128 x1, STG.E.128 x1, HGMMA x0, UTMALDG x0, LDL x0"
    assert report.notes[1] == "256, block 256"
    assert (torch.cuda.is_available, core.Program, core.launch) == before
    assert torch.empty(1).device.type == "cpu"


def test_assembly_of_one_kernel_with_lines_of_the_file(compiled, vector, tmp_path):
    compiled(COPY, vector, "sm_90a")
    sass = (tmp_path / "copy.sm_90a.sass").read_text()
    assert ".text._Z4copyILi256EE" in sass
    assert ".text.other" not in sass
    lines = COPY.splitlines()
    places = {int(line) for line in re.findall(r'File "[^"]*v1.py", line (\d+)', sass)}
    assert "LDG.E.128" in sass
    assert next(n for n, text in enumerate(lines, 1) if "y[i] = twice" in text) in places
    assert next(n for n, text in enumerate(lines, 1) if "make_float4" in text) in places  # the inlined one
    assert not re.search(r"## File.*\n.*## File", sass)


def test_launches_by_workload_and_configuration(compiled, vector, tmp_path):
    source = COPY.replace(
        "    return y",
        "    wide = LaunchConfig(grid=1, block=(32, 4), shmem_size=60000, cluster=2)\n"
        '    launch(stream, wide, code(arch).get_kernel("other"), y.data_ptr())\n    return y',
    )
    sizes = {"million": 1 << 20, "again": 1 << 12}
    workloads = tuple(Workload(name=name, axes={"n": n}) for name, n in sizes.items())
    definition = vector.model_copy(update={"workloads": workloads})
    _, (_, other) = compiled(source, definition, "sm_90a", list(sizes))
    assert (other.kernel, other.shared_bytes) == ("other", 60000)
    assert other.notes[1] == "block 32x4, cluster 2, 2 blocks, dynamic shared 60000"
    first, second = json.loads((tmp_path / "launches.json").read_text())
    assert (first["stem"], first["workloads"]) == ("copy.sm_90a", ["million", "again"])
    assert (second["stem"], second["matrix_product"]) == ("other.sm_90a", False)


def test_a_kernel_that_cannot_launch_is_noted(compiled, vector, monkeypatch):
    monkeypatch.setitem(cuda_compile.DEVICES["sm_90a"], "shared", 100)
    source = COPY.replace("block=(256,)", "block=(256,), shmem_size=2000")
    _, (report,) = compiled(source, vector, "sm_90a")
    assert report.notes[2].startswith("needs 2000 bytes of shared memory, sm_90a has 100")


WAITS = 'asm volatile("griddepcontrol.wait;" ::: "memory");'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WAITS, "starts early"),
        ("", NEVER_WAITS),
        (f"auto later = [&] {{ return 1; {WAITS} }}; n += later() - 1;", NEVER_WAITS),
    ],
    ids=["waits", "does not", "waits behind a return"],
)
def test_a_kernel_that_starts_early_must_wait(compiled, vector, tmp_path, body, said):
    source = COPY.replace("block=(256,)", "block=(256,), programmatic_stream_serialization=True")
    _, (report,) = compiled(source.replace("  int i = ", f"  {body}\n  int i = "), vector, "sm_90a")
    assert report.notes[1] == f"256, block 256, {said}"
    (described,) = json.loads((tmp_path / "launches.json").read_text())
    assert described["variant"] == report.notes[1]


def test_local_memory_is_reported(compiled, vector):
    source = COPY.replace(
        "if (i < n) y[i] = twice(x[i]);",
        "float4 kept[40]; for (int k = 0; k < 40; ++k) kept[k] = x[i + k * n];\n"
        "  for (int k = 0; k < 40; ++k) y[i + k] = kept[int(kept[k].x) & 31];",
    )
    _, (report,) = compiled(source, vector, "sm_90a")
    assert report.spill_bytes >= 640
    assert "LDL x0" not in report.notes[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("twice(x[i])", "thrice(x[i])"), r'v1.py\(15\): error: identifier "thrice" is undefined'),
        (("if (i < n)", "if (i < n"), r'v1.py\(15\): error: expected a "\)"'),
        (
            ('get_kernel("copy<256>")', 'get_kernel("copy<128>")'),
            r"line 38: SolutionFailed: .*no kernel `copy<128>`",
        ),
        (("numpy.float32(2)", "2.0"), "argument 4 of `copy<256>` is a `float` of 8 bytes; the kernel reads 4"),
        (("numpy.float32(2)", "numpy.int64(2)"), "is a `int64` of 8 bytes; the kernel reads 4"),
        ((", numpy.float32(2)", ""), "`copy<256>` takes 4 arguments, the launch gives 3"),
        (("ProgramOptions(arch=arch)", 'ProgramOptions(arch="sm_80")'), "it compiles for sm_80, not for sm_90a"),
        (('compile("cubin"', 'compile("ptx"'), "only a cubin can be inspected"),
        (
            ('SOURCE = r"""', 'SOURCE = r"""#include <nowhere.h>'),
            r"v1.py\(8\): .*\n(.*\n)*NVIDIA's headers: cudart in",
        ),
        (("    launch(", "    print("), "launched no kernel"),
        (("    n = x.numel() // 4", "    n = x.numel() // 0"), "line 35: ZeroDivisionError"),
    ],
)
def test_what_fails_is_told_by_its_place(compiled, vector, capsys, change, said):
    assert compiled(COPY.replace(*change), vector, "sm_90a")[0] == 1
    assert re.search(said, capsys.readouterr().out)


def test_driver_calls_beside_cuda_core(compiled, vector):
    source = COPY.replace("import numpy\n", "import numpy\nfrom cuda.bindings import driver\n").replace(
        "    return y",
        "    kernel = code(arch).get_kernel('other')\n"
        "    driver.cuKernelSetAttribute(8, 90000, kernel.handle, 0)\n"
        "    kernel.attributes.max_dynamic_shared_size_bytes = 90000\n"
        "    config = driver.CUlaunchConfig()\n    config.sharedMemBytes = 512\n"
        "    config.gridDimX, config.gridDimY, config.gridDimZ = 8, 1, 1\n"
        "    config.blockDimX, config.blockDimY, config.blockDimZ = 64, 1, 1\n"
        "    driver.cuLaunchKernelEx(config, kernel.handle, (), 0)\n    return y",
    )
    _, (_, other) = compiled(source, vector, "sm_90a")
    assert other.notes[1] == "block 64, dynamic shared 512"
    early = (
        "    attribute = driver.CUlaunchAttribute()\n"
        "    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION\n"
        "    config.attrs = [attribute]\n    config.numAttrs = 1\n    driver.cuLaunchKernelEx"
    )
    _, (_, other) = compiled(source.replace("    driver.cuLaunchKernelEx", early), vector, "sm_90a")
    assert other.notes[1] == f"block 64, dynamic shared 512, {NEVER_WAITS}"
    cluster = (
        "    attribute = driver.CUlaunchAttribute()\n"
        "    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION\n"
        "    of, attribute.value.clusterDim.z = attribute.value.clusterDim, 1\n    of.x, of.y = 4, 1\n"
        "    config.attrs = [attribute]\n    config.numAttrs = 1\n"
        "    assert driver.cuOccupancyMaxActiveClusters(kernel.handle, config)[1] == 33\n"
        "    driver.cuLaunchKernelEx"
    )
    _, (_, other) = compiled(source.replace("    driver.cuLaunchKernelEx", cluster), vector, "sm_90a")
    assert other.notes[1] == "block 64, cluster 4, 8 blocks, dynamic shared 512"


def test_a_child_compiles_it_too(write, vector):
    (report,) = LANGUAGE.inspect(write(COPY, "v1.py"), vector, "sm_90a")
    assert report.notes[0].startswith("LDG.E.128 x1, STG.E.128 x1")


def test_bundled_device_answers_what_host_code_asks():
    device = cuda_fake_device._device("sm_90a")
    assert (device.arch, device.properties.multiprocessor_count) == ("90", 132)


@pytest.mark.parametrize(("dtype", "loads"), [("float32", 3), ("bfloat16", 3)])
def test_the_skills_example_compiles_without_spills(compiled, dtype, loads):
    (source,) = re.findall(r"```python\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)
    softmax = Definition(
        name="softmax",
        description="Softmax of scaled rows.",
        axes={"rows": "rows", "cols": "row length"},
        inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=0.5)},
        outputs={"y": TensorSpec(shape=("rows", "cols"))},
        flops="5 * rows * cols",
        workloads=(Workload(name="a", axes={"rows": 64, "cols": 4096}, dtype=dtype),),
    )
    assert LANGUAGE.findings(source) == []
    _, (report,) = compiled(source, softmax, "sm_90a")
    assert report.kernel == "softmax"
    assert report.registers <= 128
    assert report.spill_bytes == 0
    found = re.match(r"LDG\.E\.128 x(\d+)", report.notes[0])
    assert found is not None
    assert int(found[1]) >= loads
    assert "LDG.E.U16" not in report.notes[0]
