"""`warpsmith assembly` as a user calls it, on versions that are really compiled."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.cli.profiling import assembly_text
from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits
from warpsmith.core.evaluation import Resources
from warpsmith.profiling.assembly.models import (
    Assembly,
    AssemblyDiff,
    CompiledKernel,
    Count,
    LoadWait,
    Loop,
    Notice,
    SourceLine,
)

pytestmark = pytest.mark.usefixtures("forked_compilers")

SAMPLES = Path(__file__).parents[2] / "data" / "assembly"

DEFINITION = """
import torch
from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="shares",
    description="Every element's share of its row.",
    axes={"rows": "rows", "cols": "row length"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(Workload(name="long", axes={"rows": 64, "cols": 4096}),),
)


def reference(x):
    return x / x.sum(-1, keepdim=True)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "warpsmith.toml").write_text("")
    for name in ("cpp/v1.cpp", "triton/v1.py"):
        path = tmp_path / "kernels" / "shares" / name
        path.parent.mkdir(parents=True)
        shutil.copy(SAMPLES / f"shares{path.suffix}.txt", path)
    (tmp_path / "kernels" / "shares" / "definition.py").write_text(DEFINITION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "assembly", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        said = capsys.readouterr()
        return int(exit_.value.code or 0), said.out, said.err

    return call


def test_text_is_short_and_names_the_folder(run):
    code, out, err = run("kernels/shares/cpp/v1.cpp", "--arch", "x86-64-v3")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "shares cpp/v1 for x86-64-v3, in .warpsmith/assembly/shares/cpp/v1"
    assert len(lines) < 60
    assert not any(line.endswith(" ") for line in lines)
    assert any(line.startswith("streaming stores") and line.endswith(" 1") for line in lines)
    assert lines[-1].startswith("look: calls of expf in the innermost loop at line 15 (")


def test_triton_text(run):
    pytest.importorskip("triton")
    code, out, err = run("kernels/shares/triton/v1.py", "--arch", "sm_80")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) < 60
    assert "STG.E.128" in out
    assert "cache hints (PTX)" in out
    assert "look: 3 block barriers in the loop at line 10" in out


def test_the_target_sets_the_architecture(run):
    version = "kernels/shares/triton/v1.py"
    code, out, _ = run(version, "--target", "h200")
    assert (code, out.splitlines()[0]) == (
        0,
        "shares triton/v1 for sm_90a, in .warpsmith/assembly/shares/triton/v1",
    )
    code, out, _ = run(version, "--target", "gfx942")
    assert (code, out.splitlines()[0].partition(",")[0]) == (0, "shares triton/v1 for gfx942")
    code, _, err = run(version, "--target", "sm_99")
    assert (code, "Unknown target `sm_99`" in err) == (2, True)
    code, _, err = run(version, "--target", "h200", "--arch", "sm_80")
    assert (code, err) == (2, "warpsmith: --target sets the architecture; omit --arch or --target.\n")


def test_keep_and_model(run, here):
    code, out, _ = run("kernels/shares/cpp/v1.cpp", "--json", "--keep", "kept", "--workload", "long")
    model = Assembly.model_validate_json(out)
    assert code == 0
    assert model.arch == "native"
    assert [path.name for path in (here / "kept" / "shares" / "cpp" / "v1").iterdir()] == ["run.native.asm"]
    assert not (here / ".warpsmith").exists()


def test_diff(run, here):
    path = here / "kernels" / "shares" / "cpp" / "v2.cpp"
    path.write_text((SAMPLES / "shares.cpp.txt").read_text().replace("_mm256_stream_ps", "_mm256_storeu_ps"))
    code, out, _ = run(str(path), "--diff", "kernels/shares/cpp/v1.cpp", "--arch", "x86-64-v3")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "shares cpp/v1 -> cpp/v2 for x86-64-v3"
    (row,) = (line for line in lines if line.startswith("streaming stores"))
    assert row.split()[-4:] == ["vmovntps", "1", "->", "0"]
    assert not any(line.startswith("calls") for line in lines)
    assert run(str(path), "--diff", str(path))[1].splitlines()[-1] == "no count differs"
    found = AssemblyDiff.model_validate(
        json.loads(run(str(path), "--diff", "kernels/shares/cpp/v1.cpp", "--json")[1])
    )
    assert (found.before.version, found.after.version) == ("cpp/v1", "cpp/v2")


def test_faults_have_their_exit_codes(run, here, monkeypatch):
    version = "kernels/shares/cpp/v1.cpp"
    assert run("kernels/shares/cpp/v7.cpp")[0] == 3
    code, out, err = run(version, "--workload", "wide")
    assert (code, out, err) == (2, "", "warpsmith: shares has no workload `wide`; it has: long.\n")
    assert run(version, "--diff", "kernels/shares/triton/v1.py")[0] == 2
    (here / "kernels" / "shares" / "cpp" / "v1.cpp").write_text("int x = y;\n")
    code, _, err = run(version)
    assert code == 1
    assert "v1.cpp does not compile." in err
    monkeypatch.setenv("PATH", "")
    assert run(version)[0] == 4
    assert not (here / ".warpsmith").exists()


def test_a_long_table_sums_up_what_matters_least(capsys):
    kinds = [("global loads", f"LDG.{number}", 1) for number in range(5)]
    kinds += [("barriers", f"SYNCS.{number}", 1 + number) for number in range(20)]
    kinds += [("shuffles", f"SHFL.{number}", 3) for number in range(20)]
    kinds += [("conversions", f"F2F.{number}", 2) for number in range(20)]
    counts = tuple(Count(group=group, kind=kind, count=count) for group, kind, count in kinds)
    loop = Loop(line=1, innermost=True, instructions=9, counts=counts)
    kernel = CompiledKernel(
        name="k",
        workloads=("a", "b"),
        variant="",
        isa="sass",
        assembly="k.sass",
        resources=Resources(kernel="k", registers=32, shared_bytes=0, spill_bytes=0),
        instructions=900,
        counts=counts,
        loops=(loop,) * 20,
        lines=tuple(SourceLine(line=number, text="x", instructions=1, memory=0) for number in range(1, 11)),
    )
    assembly_text.print_assembly(
        Assembly(
            op="copy",
            version="triton/v1",
            solution_sha256="0" * 64,
            arch="sm_90a",
            workloads=("a", "b", "idle"),
            folder=".",
            kernels=(kernel,),
            notices=(Notice(kernels=(1,), text="spills", entry="register-spills"),),
        )
    )
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert len(lines) < 60
    assert sum(cells[-2:-1] != [] and cells[-2].startswith("LDG.") for cells in lines[:20]) == 5
    assert ["barriers", "SYNCS.19", "20"] in lines
    assert ["18", "other", "kinds", str(sum(range(1, 19)))] in lines
    assert ["18", "other", "kinds", "36"] in lines
    assert "launches no kernel of its own at: idle" in out
    assert "and 14 more: --json" in out
    assert lines[-1][:2] == ["look:", "spills"]


def test_amds_code_shows_resident_warps_registers_and_waits(capsys):
    kernel = CompiledKernel(
        name="k",
        workloads=("a",),
        variant="x *fp32, num_warps 4",
        isa="amdgcn",
        assembly="k.amdgcn",
        resources=Resources(kernel="k", registers=100, notes=("100 VGPRs", "num_warps 4", "will not launch")),
        instructions=90,
        counts=(Count(group="matrix cores", kind="v_mfma_f32_32x32x8_bf16", count=24),),
        loops=(),
        lines=(),
        block_warps=4,
        waits=(
            LoadWait(line=7, pending=0, distance=3),
            LoadWait(line=9, pending=2, distance=20, in_loop=True),
        ),
    )
    assembly = Assembly(
        op="copy",
        version="triton/v1",
        solution_sha256="0" * 64,
        arch="gfx942",
        workloads=("a",),
        folder=".",
        kernels=(kernel,),
        notices=(),
    )
    limits = MultiprocessorLimits(64, 32, 32, 16, 131072, 65536, 65536, 512)
    assembly_text.print_assembly(assembly, limits)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "resident warps of 32 16, by registers" in lines
    assert "matrix cores v_mfma_f32_32x32x8_bf16 24" in lines
    assert lines.index("100 VGPRs") + 1 == lines.index("will not launch")
    assert lines.index("line 9, in a loop 2 20") + 1 == lines.index("line 7 none 3")
    assembly_text.print_assembly(assembly)
    assert "resident" not in capsys.readouterr().out
