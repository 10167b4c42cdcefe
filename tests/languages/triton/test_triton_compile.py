"""What a solution launches is compiled for devices that are not there, and nothing stays patched."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.lab.operator import definition_file
from warpsmith.languages.base import BuildFailed
from warpsmith.languages.shared import compile_only
from warpsmith.languages.shared.compile_child import write_results, zero_arguments
from warpsmith.languages.shared.compile_only import read_listings
from warpsmith.languages.shared.disassembly import NEVER_WAITS, summarise_instructions
from warpsmith.languages.shared.fake_device import AMD_ARCHITECTURES, ARCHITECTURES, DEVICES
from warpsmith.languages.triton import compile as triton_compile
from warpsmith.languages.triton.language import LANGUAGE

pytestmark = pytest.mark.usefixtures("forked_compilers")

LISTING = """
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/              @UP1 LDG.E R4, desc[UR4][R2.64] ;
        /*0030*/                   LDGSTS.E.BYPASS.128 [R9], desc[UR6][R2.64] ;
        /*0040*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
        /*0050*/                   REDUX.SUM UR4, R2 ;
        /*0060*/                   STL.64 [R1], R4 ;
        /*0070*/                   STG.E.U16 desc[UR4][R2.64], R4 ;
"""

PRODUCT = """
import torch, triton
import triton.language as tl

@triton.autotune([triton.Config({"B": 64}, num_warps=4), triton.Config({"B": 128})], key=["n"])
@triton.jit
def product(a_ptr, c_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    at = o[:, None] * n + o[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(a_ptr + at)))

def run(a, c):
    product[(1,)](a, c, a.shape[0])
"""


@pytest.fixture
def compiled(write, tmp_path, monkeypatch):
    """Compiles in this process: gives the exit status and what was found."""
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))

    def make(source, definition, arch):
        path = write(source, "v1.py")
        request = {"source": str(path), "definition": definition.model_dump(mode="json"), "arch": arch}
        write(json.dumps(request), "request.json")
        status = triton_compile.main(tmp_path)
        found = json.loads((tmp_path / "resources.json").read_text()) if status == 0 else []
        return status, [Resources.model_validate(resource) for resource in found]

    return make


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_compile_only(compiled, vector, copy_source, arch):
    available = torch.cuda.is_available
    status, (report,) = compiled(copy_source, vector, arch)
    assert status == 0
    assert report.kernel == "copy"
    assert report.registers is not None
    assert report.registers > 0
    assert report.spill_bytes == 0
    assert report.notes[0] == "LDG.E.128 x2, STG.E.128 x2, HGMMA x0, UTMALDG x0, LDL x0"
    assert report.notes[1].startswith("num_warps 4, num_stages 3")
    assert torch.cuda.is_available is available
    assert torch.empty(1).device.type == "cpu"


@pytest.mark.parametrize("arch", AMD_ARCHITECTURES)
def test_compile_only_for_amd(compiled, vector, copy_source, tmp_path, arch):
    source = copy_source.replace(
        "    assert x", "    assert torch.version.hip and triton.runtime.driver.active\n    assert x"
    )
    status, (report,) = compiled(source, vector, arch)
    assert (status, report.kernel, report.spill_bytes) == (0, "copy", 0)
    assert f"{report.registers} VGPRs (0 of them AGPRs)" in report.notes[0]
    assert report.notes[1].startswith("num_warps 4, num_stages 2")
    text = (tmp_path / f"copy.{arch}.amdgcn").read_text()
    assert f"amdhsa--{arch}" in text
    assert text.count("_load_dwordx4") == 1  # four floats of each of 256 threads
    (launch,) = json.loads((tmp_path / "launches.json").read_text())
    assert (launch["isa"], launch["block_warps"]) == ("amdgcn", 4)
    assert torch.version.hip is None


def test_a_block_of_too_many_threads_is_noted(compiled, vector, copy_source):
    source = copy_source.replace("BLOCK=1024)", "BLOCK=1024, num_warps=32)")
    _, (there,) = compiled(source, vector, "sm_80")
    assert not any("will not launch" in note for note in there.notes)
    _, (report,) = compiled(source, vector, "gfx942")
    assert "2048 threads a block, gfx942 takes 1024: it will not launch" in report.notes[2]


def test_relaunches_change_warps_and_the_stages_of_products(write, tmp_path, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    request = {
        "source": str(write(PRODUCT, "v1.py")),
        "definition": SQUARE.model_dump(mode="json"),
        "arch": "gfx942",
        "relaunches": True,
    }
    write(json.dumps(request), "request.json")
    assert triton_compile.main(tmp_path) == 0
    folders = [tmp_path, *sorted(tmp_path.glob("change-*"))]
    options = [listing.resources.notes[1] for folder in folders for listing in read_listings(folder)]
    assert [note.split(", num_ctas")[0] for note in options] == [
        "num_warps 4, num_stages 3",
        "num_warps 2, num_stages 3",
        "num_warps 8, num_stages 3",
        "num_warps 4, num_stages 2",
        "num_warps 4, num_stages 4",
    ]


def test_a_change_that_takes_too_long_leaves_the_results_of_the_version(write, tmp_path, monkeypatch):
    pytest.importorskip("triton")
    source, folders = write(PRODUCT, "v1.py"), []
    launch = {
        "stem": "k",
        "isa": "amdgcn",
        "workloads": ["w"],
        "variant": "",
        "unaligned": [],
        "matrix_product": 0,
    }

    def run_out_of_time(command, *_, **__):
        folder = Path(command[-1])
        for done in folders:
            (folder / done).mkdir(exist_ok=True)
            write_results(folder / done, [Resources(kernel="k")], [{**launch, "block_warps": 4}])
        (folder / "change-2").mkdir()
        (folder / "change-2" / "resources.json").write_text("[")
        raise TimeoutError("python took more than 120 s")

    monkeypatch.setattr(compile_only, "tool", SimpleNamespace(run_tool=run_out_of_time))

    def listings(name: str):
        return LANGUAGE.assemble_relaunches(source, SQUARE, SQUARE.workloads, "gfx942", tmp_path / name)

    with pytest.raises(BuildFailed, match="more than 120 s"):
        listings("nothing")
    folders += ["."]
    assert [[listing.kernel for listing in setting] for setting in listings("own")] == [["k"]]
    folders += ["change-1"]
    assert len(listings("changed")) == 2


def test_every_specialisation_leaves_its_assembly(compiled, vector, copy_source, tmp_path):
    source = copy_source.replace("    return y", "    copy[(1,)](x, y, x.numel() - 1, BLOCK=1024)\n    return y")
    _, reports = compiled(source, vector, "sm_90a")
    assert [report.kernel for report in reports] == ["copy", "copy"]
    assert ".target sm_90a" in (tmp_path / "copy.sm_90a.ptx").read_text()
    assert "LDG.E.128" in (tmp_path / "copy.sm_90a.sass").read_text()
    assert "LDG.E.128" not in (tmp_path / "copy-2.sm_90a.sass").read_text()
    assert (tmp_path / "copy-2.sm_90a.ptx").is_file()


def test_launches_name_their_workloads_and_what_is_aligned(copy_source, tmp_path, write, vector, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    sizes = {"million": 1 << 20, "again": 1 << 10, "odd": 1001, "left": 7}
    workloads = tuple(Workload(name=name, axes={"n": n}) for name, n in sizes.items())
    definition = vector.model_copy(update={"workloads": workloads})
    request = {
        "source": str(write(copy_source, "v1.py")),
        "definition": definition.model_dump(mode="json"),
        "arch": "sm_80",
        "workloads": ["million", "again", "odd"],
    }
    write(json.dumps(request), "request.json")
    assert triton_compile.main(tmp_path) == 0
    first, second = json.loads((tmp_path / "launches.json").read_text())
    assert (first["stem"], first["workloads"], first["unaligned"]) == ("copy.sm_80", ["million", "again"], [])
    assert (second["stem"], second["workloads"], second["unaligned"]) == ("copy-2.sm_80", ["odd"], ["n"])
    assert first["variant"].startswith("x_ptr *fp32/16, y_ptr *fp32/16, n i32/16, BLOCK=1024, num_warps 4")
    assert "n i32, BLOCK" in second["variant"]
    assert not first["matrix_product"]


@pytest.mark.parametrize(("wait", "said"), [("    gdc_wait()\n", "starts early"), ("", NEVER_WAITS)])
def test_a_kernel_that_starts_early_must_wait(compiled, vector, copy_source, wait, said):
    source = copy_source.replace("BLOCK=1024)", "BLOCK=1024, launch_pdl=True)").replace(
        "import triton.language as tl\n",
        "import triton.language as tl\nfrom triton.language.extra.cuda import gdc_wait\n",
    )
    source = source.replace("    o = tl", f"{wait}    o = tl")
    status, (report,) = compiled(source, vector, "sm_90a")
    assert status == 0
    assert report.notes[2] == said


@pytest.mark.parametrize(
    ("name", "said"),
    [("attack_early_start", NEVER_WAITS), ("control_starts_early", "starts early")],
)
def test_the_red_teams_kernels_start_early_on_hopper(compiled, name, said):
    folder = Path(__file__).parents[2] / "redteam" / "softmax"
    definition = definition_file.load_definition(folder / "definition.py").definition
    status, reports = compiled((folder / "triton" / f"{name}.py").read_text(), definition, "sm_90a")
    assert status == 0
    assert {report.notes[2] for report in reports} == {said}


def test_a_disassembler_that_is_not_there_is_named(compiled, vector, copy_source, tmp_path, monkeypatch):
    knobs = pytest.importorskip("triton.knobs")
    found = knobs.NvidiaTool.from_path
    monkeypatch.setattr(knobs.NvidiaTool, "from_path", lambda path: None if "nvdisasm" in path else found(path))
    assert compiled("1 / 0\n" + copy_source, vector, "sm_80") == (1, [])
    assert (tmp_path / "lacks.txt").read_text().startswith("Triton's compiler has no `nvdisasm`")


SQUARE = Definition(
    name="square",
    description="A corner of a times a.",
    axes={"n": "size"},
    inputs={"a": TensorSpec(shape=("n", "n"))},
    outputs={"c": TensorSpec(shape=("n", "n"), dtype="float32")},
    outputs_are="given",
    flops="n",
    workloads=(Workload(name="a", axes={"n": 128}, dtype="bfloat16"),),
)


def test_given_outputs_and_an_autotuned_tensor_core_kernel(compiled, tmp_path):
    _, (report,) = compiled(PRODUCT, SQUARE, "sm_90a")
    assert "HGMMA x0" not in report.notes[0]
    assert report.shared_bytes
    assert report.notes[2:] == ("autotuned: the first of 2 configurations",)
    (launch,) = json.loads((tmp_path / "launches.json").read_text())
    assert launch["matrix_product"]


def test_a_kernel_that_cannot_launch_is_noted(compiled, monkeypatch):
    monkeypatch.setitem(DEVICES["sm_90a"], "shared", 100)
    _, (report,) = compiled(PRODUCT, SQUARE, "sm_90a")
    assert "sm_90a has 100: it will not launch" in report.notes[2]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def run(x):\n    y = 1\n    return x[0].item() / 0\n", "line 3: ZeroDivisionError"),
        ("import torch\ndef run(x):\n    return torch.empty_like(x)\n", "no Triton kernel"),
        ("1 / 0\ndef run(x): return x\n", "line 1: ZeroDivisionError"),
    ],
)
def test_host_code_that_fails_is_told_by_its_line(compiled, vector, capsys, source, said):
    assert compiled(source, vector, "sm_90a") == (1, [])
    assert said in capsys.readouterr().out


def test_arguments_are_the_representative_workload():
    definition = Definition(
        name="mixed",
        description="Types and scalars.",
        axes={"n": "length"},
        inputs={
            "x": TensorSpec(shape=("n", 2)),
            "flag": TensorSpec(shape=(), dtype="bool"),
            "eps": ScalarSpec(value=0.5),
            "q": TensorSpec(shape=("n",), dtype="float8_e4m3fn"),
        },
        outputs={"y": TensorSpec(shape=("2 * n",), dtype="int64")},
        outputs_are="given",
        flops="n",
        workloads=(
            Workload(name="odd", axes={"n": 3}, set="odd"),
            Workload(name="large", axes={"n": 1 << 30}, dtype="bfloat16", scalars={"eps": 0.25}),
        ),
    )
    x, flag, eps, q, y = zero_arguments(definition, definition.workloads[1])
    assert (x.shape, x.dtype) == ((1 << 30, 2), torch.bfloat16)
    assert (flag.shape, flag.dtype) == ((), torch.bool)
    assert eps == 0.25
    assert q.dtype == torch.float8_e4m3fn
    assert (y.shape, y.dtype) == ((1 << 31,), torch.int64)
    assert x[-1, 1].item() == 0


def test_kinds_worth_knowing_are_counted():
    expected = "LDG.E x1, LDG.E.128 x1, LDGSTS x1, STG.E.U16 x1, STL x1, HGMMA x1, UTMALDG x0, LDL x0"
    assert summarise_instructions(LISTING) == expected
