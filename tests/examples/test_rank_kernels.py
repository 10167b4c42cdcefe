"""Kernels over ranks as they are compiled for an H100: registers, and the order that their flags keep."""

from __future__ import annotations

import re

import pytest
from rank_play import EXAMPLES

from warpsmith.lab.operator.source_module import import_source
from warpsmith.languages.shared.disassembly import dump_cubin

COLS = 8192
LARGEST_REGISTERS = 65536

POINTERS = {
    "addresses": "*i64", "calls_ptr": "*i32", "q_ptr": "*fp8e4nv", "scales_ptr": "*fp32", "experts_ptr": "*i32",
    "weights_ptr": "*fp32",
}  # fmt: skip
"""Types of pointers other than to bfloat16."""

ALIGNED = {"rows", "cols", "stride", "hidden", "tokens", "set_bytes"}
"""Numbers that are multiples of 16 at the sizes that are timed."""


def compile_kernel(version, name, world, warps, tmp_path, monkeypatch, block=COLS, **more):
    """PTX, registers a thread, and bytes of local memory."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    kernel = getattr(import_source("compiled", EXAMPLES / version), name)
    constants = {
        "RANK": 1, "WORLD": world, "LANES": world, "FLAGS": 4224, "BLOCK": block, "OWN": 32, "TOP_K": 8,
        "HEAD": 64, "TARGET": 0, "SOURCE": 0,
    }  # fmt: skip
    names = kernel.arg_names
    types = {each: "fp32" if each == "eps" else "i32" for each in names}
    types |= {each: POINTERS.get(each, "*bf16") for each in names if each.endswith("_ptr") or each in POINTERS}
    types |= dict.fromkeys(constants.keys() & set(names), "constexpr")
    aligned = {each for each in names if types[each].startswith("*")} | ALIGNED
    source = ASTSource(
        fn=kernel,
        signature=types,
        constexprs={(names.index(each),): constants[each] for each in names if each in constants},
        attrs={(place,): [["tt.divisibility", 16]] for place, each in enumerate(names) if each in aligned},
    )
    options = {"num_warps": warps, "num_stages": 1, **more}
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(compiled.asm["cubin"])
    usage = re.search(r"REG:(\d+) STACK:(\d+) .*LOCAL:(\d+)", dump_cubin(cubin, "-res-usage"))
    return compiled.asm["ptx"], int(usage[1]), int(usage[2]) + int(usage[3])


@pytest.mark.parametrize(
    ("version", "name", "world", "warps"),
    [
        ("all_reduce_rmsnorm/v5.py", "one_shot_kernel", 2, 16),
        ("all_reduce_rmsnorm/v6.py", "two_shot_kernel", 4, 16),
        ("all_reduce_rmsnorm_fp8/v3.py", "one_shot_kernel", 4, 16),
        ("all_reduce_rmsnorm_fp8/v3.py", "two_shot_kernel", 4, 16),
        ("moe_dispatch_combine/v2.py", "exchange_kernel", 4, 16),
    ],
)
def test_flags_are_released_and_acquired_by_all_threads(version, name, world, warps, tmp_path, monkeypatch):
    ptx, registers, local = compile_kernel(version, name, world, warps, tmp_path, monkeypatch)
    assert local == 0
    assert registers * 32 * warps <= LARGEST_REGISTERS, "a block does not fit on a multiprocessor"
    steps = re.findall(r"bar\.sync|atom\.global\.sys\.release\.exch|atom\.global\.sys\.acquire\.add", ptx)
    assert {step.rpartition(".")[2] for step in steps} == {"sync", "exch", "add"}
    for before, step, after in zip(steps, steps[1:], steps[2:], strict=False):
        if step.startswith("atom"):
            assert before == "bar.sync", "all threads have written before the flag, or read the last one"
            if step.endswith("add"):
                assert after == "bar.sync", "no thread reads before the flag was seen"
    assert not re.search(r"\b(ld|st)\.global\.(b16|b8)\b", ptx), "an access is not vectorised"


def test_one_shot_on_two_ranks_fits_twice_on_a_multiprocessor(tmp_path, monkeypatch):
    for version in ("all_reduce_rmsnorm/v7.py", "all_reduce_rmsnorm_fp8/v3.py"):
        _, registers, local = compile_kernel(version, "one_shot_kernel", 2, 16, tmp_path, monkeypatch, maxnreg=64)
        assert local == 0
        assert 2 * registers * 32 * 16 <= LARGEST_REGISTERS


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("version", ["all_reduce_rmsnorm/v7.py", "all_reduce_rmsnorm_fp8/v3.py"])
def test_low_latency_writes_and_reads_whole_pairs_of_data_and_number(version, world, tmp_path, monkeypatch):
    ptx, registers, local = compile_kernel(version, "low_latency_kernel", world, 32, tmp_path, monkeypatch)
    assert local == 0
    assert registers <= 64
    assert "st.global.v2.b64" in ptx
    assert set(re.findall(r"ld\.volatile\.global\.[a-z0-9.]+", ptx)) == {"ld.volatile.global.v2.b64"}


@pytest.mark.parametrize(
    ("version", "name", "warps", "orders"),
    [
        ("all_gather_matmul/v3.py", "meet_kernel", 1, ["atom.global.sys.release", "ld.global.sys.acquire"]),
        ("matmul_reduce_scatter/v3.py", "raise_kernel", 1, ["atom.global.sys.release"]),
        ("matmul_reduce_scatter/v3.py", "add_kernel", 4, ["atom.global.sys.acquire"]),
    ],
)
def test_kernels_beside_products(version, name, warps, orders, tmp_path, monkeypatch):
    ptx, _, local = compile_kernel(version, name, 4, warps, tmp_path, monkeypatch, block=2048)
    assert re.findall(r"(?:atom|ld)\.global\.sys\.(?:release|acquire)", ptx) == orders
    assert local == 0
