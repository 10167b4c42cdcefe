"""What a cuTile solution launches is compiled for Hopper on a machine without a GPU."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.languages.base import BuildFailed
from warpsmith.languages.cutile import compile as cutile_compile
from warpsmith.languages.cutile import cubin as cutile_cubin
from warpsmith.languages.cutile import language as cutile
from warpsmith.languages.cutile.language import LANGUAGE
from warpsmith.languages.shared import disassembly

pytestmark = pytest.mark.usefixtures("forked_compilers")

lacks = cutile.missing_tileiras() or disassembly.missing_disassembler()
needs_compiler = pytest.mark.skipif(lacks is not None, reason=str(lacks))
EXAMPLE = Path(__file__).parents[3] / "skills" / "design-cutile-kernel" / "references" / "example.md"
SOFTMAX = Definition(
    name="softmax",
    description="Rows scaled and normalised.",
    axes={"rows": "rows", "cols": "row length"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=1.0)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="5 * rows * cols",
    workloads=(
        Workload(name="wide", axes={"rows": 8192, "cols": 8192}, dtype="bfloat16"),
        Workload(name="again", axes={"rows": 64, "cols": 8192}, dtype="bfloat16"),
        Workload(name="odd", axes={"rows": 7, "cols": 1001}, dtype="float16"),
    ),
)


@pytest.fixture(scope="module")
def softmax(tmp_path_factory):
    """The skill's example compiled for Hopper: listings by the first workload that launches each."""
    folder = tmp_path_factory.mktemp("softmax")
    example = re.search(r"```python\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)
    assert example
    source = folder / "v1.py"
    source.write_text(example[1])
    listings = LANGUAGE.assembly(source, SOFTMAX, SOFTMAX.workloads, "sm_90a", folder)
    return {listing.workloads[0]: listing for listing in listings}


@needs_compiler
def test_the_skills_example_keeps_a_row_in_registers(softmax):
    assert list(softmax) == ["wide", "odd"]
    wide = softmax["wide"]
    assert wide.workloads == ("wide", "again")
    assert wide.variant.startswith(
        "x bfloat16[2]/16, y bfloat16[2]/16, scale float32, TILE=8192, num_worker_warps 8"
    )
    assert wide.unaligned == ()
    report = wide.resources
    assert (report.kernel, report.spill_bytes) == ("row_kernel", 0)
    assert report.registers is not None
    assert report.registers <= 96
    assert report.notes[0] == "LDG.E.128 x4, STG.E.128 x4, HGMMA x0, UTMALDG x0, LDL x0"
    assert report.notes[1].startswith("256 threads a block, num_worker_warps 8")
    sass = wide.assembly.read_text()
    assert ".target\tsm_90a" in sass
    assert "v1.py" in sass


@needs_compiler
def test_odd_rows_are_told_as_unaligned(softmax):
    odd = softmax["odd"]
    assert odd.unaligned == ("x", "y")
    assert "LDG.E.U16" in odd.resources.notes[0]
    assert odd.resources.notes[1].startswith("128 threads a block, num_worker_warps auto")


@needs_compiler
def test_what_does_not_compile_is_told_by_its_line(write):
    source = (
        "import cuda.tile as ct\nimport torch\n@ct.kernel\ndef k(x, y):\n"
        "    ct.store(y, (0, 0), ct.load(x, (0, 0), (1, 3000)))\n"
        "def run(x, scale):\n    y = torch.empty_like(x)\n    ct.launch(0, (1,), k, (x, y))\n    return y\n"
    )
    with pytest.raises(BuildFailed) as caught:
        LANGUAGE.inspect(write(source, "v1.py"), SOFTMAX, "sm_90a")
    message = str(caught.value)
    assert message.startswith("v1.py does not compile for sm_90a.")
    assert "(1, 3000) is not a power of two" in message
    assert len(message.splitlines()) <= 11


def test_return_code_5_comes_with_what_is_known_of_it(capsys):
    cutile_compile._print_tile_error(
        Path("v1.py"), RuntimeError("Return code 5\nfailed to compile Tile IR program")
    )
    assert "libnvvm of its own release" in capsys.readouterr().out
    cutile_compile._print_tile_error(Path("v1.py"), RuntimeError("Return code 1"))
    assert "libnvvm" not in capsys.readouterr().out


def test_arguments_are_described():
    def product(a, n, flag):
        return ct.mma(a, a)  # noqa: F821 - a kernel's text, never run

    half = SimpleNamespace(name="float16", bitwidth=16)
    array = SimpleNamespace(
        ndim=2, dtype=half, base_addr_divisible_by=16, stride_constant=(None, 1), stride_divisible_by=(4, 1)
    )
    told = [array, SimpleNamespace(dtype=SimpleNamespace(name="int32")), SimpleNamespace(value=True)]
    hints = SimpleNamespace(num_worker_warps=None, occupancy=2, num_ctas=None)
    kernel = SimpleNamespace(_pyfunc=product, _compiler_options=hints)
    launch = cutile_compile.TileLaunch(kernel, SimpleNamespace(parameters=told))
    found = cutile_compile.describe_launch(cutile_compile.LaunchedKernel(launch, ["w"]), "product.sm_90a")
    assert (
        found["variant"] == "a float16[2], n int32, flag=True, num_worker_warps auto, occupancy 2, num_ctas auto"
    )
    assert (found["unaligned"], found["matrix_product"]) == (["a"], True)


def test_a_cubins_report(monkeypatch, tmp_path):
    said = {
        "-res-usage": " Function k:\n  REG:44 STACK:8 SHARED:1056 LOCAL:16 CONSTANT[0]:704",
        "-elf": "\tAttribute:\tEIATTR_REQNTID\n\tFormat:\tEIFMT_SVAL\n\tValue:\t0x180 0x1 0x1",
        "-c": "/*0010*/ LDG.E.128 R4, desc[UR4][R2.64] ;",
    }
    monkeypatch.setattr(disassembly, "_run", lambda name, option, *_: said[option])
    report = cutile_cubin.cubin_report(tmp_path / "k.cubin", "k", "occupancy 2")
    assert (report.registers, report.shared_bytes, report.spill_bytes) == (44, 1056, 24)
    assert report.notes == ("LDG.E.128 x1, HGMMA x0, UTMALDG x0, LDL x0", "384 threads a block, occupancy 2")
