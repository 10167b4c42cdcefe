"""AMD's assembly: instructions with their lines, kinds, loops, and waits for loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.languages.shared.amd_metadata import RegisterUse, describe_registers, read_register_use
from warpsmith.profiling.assembly import amdgcn, ptx
from warpsmith.profiling.assembly.code import Instruction, find_loops

TEXT = (Path(__file__).parents[2] / "data" / "assembly" / "loop.gfx942.amdgcn").read_text()


@pytest.fixture
def code():
    lines = ptx.source_lines(TEXT, lambda file: file == "v1.py")
    (routine,) = amdgcn.parse_amdgcn(TEXT, lines)
    assert routine.name == "product"
    return routine.code


def test_instructions_have_the_lines_of_their_callers(code):
    by_opcode = {instruction.opcode: instruction for instruction in code}
    assert (code[0].opcode, code[0].line) == ("s_load_dwordx2", 5)
    assert by_opcode["v_mov_b32_dpp"].line == 9  # called from there
    assert by_opcode["global_store_dwordx2"].line == 12
    assert code[-1].opcode == "s_endpgm"
    assert not code[-1].falls
    assert by_opcode["buffer_load_dwordx4"].operands == "v[2:5], v1, s[8:11], 0 offen"


def test_every_kind_is_in_its_group(code):
    pairs = [amdgcn.classify_amdgcn(instruction) for instruction in code]
    assert [pair for pair in pairs if pair] == [
        ("scalar loads", "s_load_dwordx2"),
        ("waits", "lgkmcnt(0)"),
        ("lane moves", "v_mov_b32_dpp"),
        ("branches", "s_cbranch_execz"),
        ("global loads", "buffer_load_dwordx4"),
        ("copies to LDS", "buffer_load_dword"),
        ("global loads", "global_load_ushort"),
        ("fp32", "v_add_f32"),
        ("waits", "vmcnt(0)"),
        ("LDS", "ds_write_b128"),
        ("waits", "lgkmcnt(0)"),
        ("barriers", "s_barrier"),
        ("matrix cores", "v_mfma_f32_32x32x8_bf16"),
        ("scratch", "scratch_store_dword"),
        ("conversions", "v_cvt_f32_i32"),
        ("branches", "s_cbranch_scc1"),
        ("accumulator moves", "v_accvgpr_read_b32"),
        ("special functions", "v_exp_f32"),
        ("fp64", "v_fma_f64"),
        ("atomics", "global_atomic_add_f32"),
        ("global stores", "global_store_dwordx2"),
        ("waits", "vmcnt(1)"),
    ]


def test_the_loop_is_found_and_its_wait_is_measured(code):
    (loop,) = find_loops(code, amdgcn.is_amdgcn_wait)
    assert loop.innermost
    assert {instruction.line for instruction in loop.code} == {9, 10}
    waits = list(amdgcn.memory_waits(code))
    # Line 12 waits for scratch and an atomic alone.
    assert [(wait.line, wait.pending, wait.distance) for wait in waits] == [(10, 0, 1)]


def issue(*texts: str) -> list[Instruction]:
    """Return the instructions of `opcode operands`; the address is the position."""
    return [
        Instruction(place, opcode, operands)
        for place, text in enumerate(texts)
        for opcode, _, operands in [text.partition(" ")]
    ]


def test_a_wait_is_measured_from_the_youngest_operation_that_it_waits_for():
    load, store, add = "global_load_dwordx4 v[0:3]", "global_store_dword v0", "v_add_f32_e32 v0"
    code = issue(
        load, add, load, "global_atomic_add v1", "scratch_store_dword off", add, "ds_add_u32 v1",
        "s_waitcnt vmcnt(3) lgkmcnt(0)", "s_waitcnt vmcnt(4)", add, "s_waitcnt vmcnt(2)", store, load,
        "buffer_load_dword v6, v7, s[8:11], 0 offen lds", store, "s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(0)",
    )  # fmt: skip
    waits = [(wait.address, wait.pending, wait.distance, wait.youngest) for wait in amdgcn.memory_waits(code)]
    assert waits == [(7, 3, 6, "load"), (10, 2, 7, "load"), (15, 1, 1, "load")]
    both = issue(load, add, add, store, "s_waitcnt vmcnt(0)")
    assert [(wait.distance, wait.youngest) for wait in amdgcn.memory_waits(both)] == [(0, "store")]


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [
        ("buffer_load_dwordx4", 128),
        ("global_store_dwordx2", 64),
        ("global_load_dword", 32),
        ("global_load_ushort", 16),
        ("buffer_load_ubyte", 8),
        ("ds_read_b128", 128),
        ("global_load_short_d16_hi", 16),
    ],
)
def test_widths(opcode, bits):
    assert amdgcn.amdgcn_access_bits(opcode) == bits


def test_registers_come_from_the_metadata():
    use = read_register_use(TEXT)
    assert use == RegisterUse(100, 16, 26, 6, 2, 24, 0)
    assert describe_registers(use) == "100 VGPRs (16 of them AGPRs), 26 SGPRs, spilled 6 and 2"


def test_a_loop_that_polls_another_block_is_a_wait(code):
    (loop,) = find_loops(code, amdgcn.is_amdgcn_wait)
    assert not amdgcn.is_amdgcn_wait(loop.code)
    poll = [
        loop.code[0]._replace(opcode=opcode) for opcode in ("global_load_dword", "buffer_inv", "s_cbranch_vccz")
    ]
    assert amdgcn.is_amdgcn_wait(poll)
    assert not amdgcn.is_amdgcn_wait([*poll, loop.code[0]._replace(opcode="v_add_f32_e32")])
    assert not amdgcn.is_amdgcn_wait(poll[:1])
