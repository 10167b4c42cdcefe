"""Versions that are really compiled: what is counted, what is kept, and what two versions differ in."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from warpsmith import languages, project
from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import Misuse
from warpsmith.languages.base import BuildFailed
from warpsmith.profiling.assembly import inspect as assembly
from warpsmith.profiling.assembly.models import Assembly, kernel_occupancy

pytestmark = pytest.mark.usefixtures("forked_compilers")

SAMPLES = Path(__file__).parents[2] / "data" / "assembly"
CPP, TRITON = ((SAMPLES / name).read_text() for name in ("shares.cpp.txt", "shares.py.txt"))
ARCH = "x86-64-v3"

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")


def at(name: str, cols: int, set: str = "representative") -> Workload:
    return Workload(name=name, axes={"rows": 64, "cols": cols}, set=set)


SHARES = Definition(
    name="shares",
    description="Every element's share of its row.",
    axes={"rows": "rows", "cols": "row length"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(at("long", 4096), at("short", 256), at("odd", 257, "odd")),
)


@pytest.fixture
def here(tmp_path: Path) -> project.Project:
    (tmp_path / "warpsmith.toml").write_text("")
    return project.find_project(tmp_path)


def write(here: project.Project, text: str, name: str = "v1.cpp", language: str = "cpp") -> Path:
    path = here.kernels / "shares" / language / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def examine(here: project.Project, path: Path, **options) -> Assembly:
    return assembly.inspect_assembly(here, path, path.parent.name, SHARES, **options)


def test_a_version_on_the_cpu(here):
    found = examine(here, write(here, CPP), arch=ARCH)
    (kernel,) = found.kernels
    assert (found.op, found.version, found.arch, found.workloads) == ("shares", "cpp/v1", ARCH, ("long", "short"))
    assert kernel.assembly == f".warpsmith/assembly/shares/cpp/v1/run.{ARCH}.asm"
    assert "vmovntps" in (here.root / kernel.assembly).read_text()
    assert kernel.total("streaming stores") == 1
    assert kernel.total("calls") >= 1
    lines = {line.line: line for line in kernel.lines}
    assert lines[14].text.startswith("for (int64_t i = 0; i + 8 <= n; i += 8) _mm256_stream_ps")
    assert 0 < lines[14].memory < lines[14].instructions
    assert len(lines) <= 10
    assert sum(line.instructions for line in kernel.lines) <= kernel.instructions
    assert "simd-vectorization" in {notice.entry for notice in found.notices}
    streaming = [loop for loop in kernel.loops if any(count.kind == "vmovntps" for count in loop.counts)]
    assert [loop.line for loop in streaming if loop.innermost] == [14]


@needs_triton
def test_specialisations_of_a_triton_version(here):
    path = write(here, TRITON, "v1.py", "triton")
    found = examine(here, path, arch="sm_90", workloads=("long", "short", "odd"))
    assert found.arch == "sm_90a"
    aligned, odd = found.kernels
    assert (aligned.workloads, odd.workloads) == (("long", "short"), ("odd",))
    assert "cols i32/16, BLOCK=256, num_warps 2" in aligned.variant
    assert "cols i32, BLOCK=256" in odd.variant
    assert {count.kind for count in aligned.counts if count.group == "global stores"} == {"STG.E.128"}
    lines = {line.line: line for line in aligned.lines}
    assert lines.keys() >= {10, 11, 12, 13}
    assert lines[11].memory > 1  # `tl.sum` through shared memory is library code that was called here
    barriers = [loop for loop in aligned.loops if any(count.group == "barriers" for count in loop.counts)]
    assert [(loop.line, loop.innermost) for loop in barriers] == [(10, True)]
    folder = here.root / found.folder
    assert {path.name for path in folder.iterdir()} == {
        f"shares{number}.sm_90a.{suffix}" for number in ("", "-2") for suffix in ("ptx", "sass")
    }
    entries = {notice.entry: notice.kernels for notice in found.notices}
    assert entries["triton-accumulators-per-thread"] == (1, 2)
    assert entries["triton-constexpr-specialisation-of-strides"] == (2,)
    examine(here, path, arch="sm_90", workloads=("short",))
    assert {path.name for path in folder.iterdir()} == {"shares.sm_90a.ptx", "shares.sm_90a.sass"}


@needs_triton
def test_a_triton_version_for_amd(here):
    path = write(here, TRITON, "v1.py", "triton")
    found = examine(here, path, arch="gfx942", workloads=("long",))
    (kernel,) = found.kernels
    assert (found.arch, kernel.isa, kernel.ptx) == ("gfx942", "amdgcn", None)
    assert kernel.assembly.endswith("shares.gfx942.amdgcn")
    stores = {count.kind.split("_", 1)[1] for count in kernel.counts if count.group == "global stores"}
    assert stores == {"store_dwordx2"}
    lines = {line.line: line for line in kernel.lines}
    assert lines[11].memory >= 1
    assert 10 in [loop.line for loop in kernel.loops if loop.innermost]
    limits = MultiprocessorLimits(64, 32, 32, 16, 131072, 65536, 65536, 512)
    occupancy = kernel_occupancy(kernel, limits)
    assert occupancy
    assert 0 < occupancy.warps <= 32
    examine(here, path, arch="gfx950", workloads=("long",))
    assert {path.name for path in (here.root / found.folder).iterdir()} == {
        "shares.gfx942.amdgcn",
        "shares.gfx950.amdgcn",
    }


def test_two_versions(here):
    before = examine(here, write(here, CPP), arch=ARCH)
    plain = CPP.replace("_mm256_stream_ps", "_mm256_storeu_ps").replace("std::exp(in[i])", "in[i]")
    after = examine(here, write(here, plain, "v2.cpp"), arch=ARCH)
    (pair,) = assembly.compare_assemblies(before, after).pairs
    assert (pair.workloads, pair.before, pair.after) == (("long", "short"), (1,), (1,))
    rows = {(row.group, row.kind): (row.before, row.after) for row in pair.rows}
    assert rows["streaming stores", "vmovntps"] == (1, 0)
    assert rows["calls", "expf"] == (1, 0)
    assert rows["in innermost loops", "calls"] == (1, 0)
    assert ("calls", "__assert_fail") not in rows
    assert all(row.before != row.after for row in pair.rows)
    groups = [row.group for row in pair.rows]
    assert groups == sorted(groups, key=groups.index)
    (same,) = assembly.compare_assemblies(after, after).pairs
    assert same.rows == ()


def test_what_is_unknown_is_refused_before_anything_is_written(here, monkeypatch):
    path = write(here, CPP)
    with pytest.raises(Misuse, match=r"no workload `wide`; it has: long, short, odd"):
        examine(here, path, workloads=("wide",))
    with pytest.raises(Misuse, match="-march=nonsuch"):
        examine(here, path, arch="nonsuch")
    with pytest.raises(BuildFailed, match="does not compile"):
        examine(here, write(here, "int x = y;", "v2.cpp"), arch=ARCH)
    monkeypatch.setattr(languages, "get", lambda name: object())
    with pytest.raises(Misuse, match="the language `cpp` shows no assembly"):
        examine(here, path)
    assert not (here.root / ".warpsmith").exists()
