"""x86-64 code is read as objdump prints it: every count here was made by eye from the listing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from warpsmith.profiling.assembly import x86 as assembly_x86
from warpsmith.profiling.assembly.code import Instruction, find_loops

LISTING = (Path(__file__).parents[2] / "data" / "assembly" / "run.x86-64-v3.asm").read_text()


def own(chain):
    return next((line for file, line in chain if file == "/project/v1.cpp"), None)


@pytest.fixture
def code():
    (routine,) = assembly_x86.parse_x86(LISTING, own)
    assert routine.name == "run"
    return routine.code


def test_everything_but_the_padding(code):
    assert len(code) == 151
    assert {instruction.address for instruction in code}.isdisjoint({0x71, 0x18F, 0x1CB, 0x1FE})


def test_counts(code):
    counts = Counter(found for instruction in code if (found := assembly_x86.classify_x86(instruction)))
    assert counts == {
        ("multiply-add", "scalar"): 3,
        ("packed arithmetic", "ymm"): 2,
        ("packed arithmetic", "xmm"): 1,
        ("scalar arithmetic", "vaddss"): 12,
        ("divide and root", "scalar"): 2,
        ("vector load moves", "xmm"): 1,
        ("vector load moves", "ymm"): 1,
        ("scalar load moves", "vmovss"): 6,
        ("scalar store moves", "vmovss"): 1,
        ("streaming stores", "vmovntps"): 1,
        ("lane moves", "vshufps"): 6,
        ("lane moves", "vunpckhps"): 3,
        ("lane moves", "vbroadcastss"): 2,
        ("lane moves", "vextractf128"): 1,
        ("calls", "__assert_fail"): 2,
        ("calls", "expf"): 1,
        ("branches", "conditional"): 14,
        ("branches", "jmp"): 3,
    }


def test_loops_and_the_lines_of_inlined_code(code):
    bodies = [
        (body.line, [hex(body.code[0].address), hex(body.code[-1].address)])
        for body in find_loops(code, assembly_x86.is_x86_wait)
    ]
    assert bodies == [(12, ["0x78", "0xc9"]), (14, ["0x190", "0x1a6"]), (15, ["0x1d0", "0x1e9"])]
    lines = {instruction.address: instruction.line for instruction in code}
    assert (lines[0x78], lines[0x80], lines[0xB9]) == (5, 5, 12)  # `square` stands in the file, on line 5
    assert (lines[0x190], lines[0x19E], lines[0x1D6], lines[0x264 - 1]) == (14, 14, 15, 8)


def test_callers_are_named_again_where_the_place_is_the_same():
    listing = (
        "0000000000000000 <f>:\n/h.hpp:5\ninlined by /project/v1.cpp:8 (f)\n   0:\tmov    (%rdi),%rax\n"
        "inlined by /project/v1.cpp:9 (f)\n   3:\tmov    (%rsi),%rax\n/h.hpp:6\n   6:\tret\n"
    )
    (routine,) = assembly_x86.parse_x86(listing, own)
    assert [instruction.line for instruction in routine.code] == [8, 9, None]


@pytest.mark.parametrize(
    ("text", "group", "kind"),
    [
        ("vfmadd231ps (%rax),%zmm1,%zmm2", "multiply-add", "zmm"),
        ("vaddpd %ymm1,%ymm2,%ymm3", "packed arithmetic", "ymm"),
        ("addss 0x8(%rsp),%xmm0", "scalar arithmetic", "addss"),
        ("vrsqrt14ps %zmm1,%zmm2", "divide and root", "zmm"),
        ("vpaddd %ymm1,%ymm2,%ymm3", "packed integer", "ymm"),
        ("vmovups %zmm0,(%rax){%k1}", "vector store moves", "zmm"),
        ("vmovdqu64 (%rax),%zmm0{%k1}{z}", "vector load moves", "zmm"),
        ("vbroadcastss 0x4(%rax),%ymm1", "vector load moves", "ymm"),
        ("movss %xmm0,0x4(%rsp)", "scalar store moves", "movss"),
        ("vgatherdps %ymm1,(%rax,%ymm2,4),%ymm0", "gathers and scatters", "ymm"),
        ("vcvtss2sd %xmm0,%xmm0,%xmm1", "conversions", "vcvtss2sd"),
        ("lock cmpxchg %ecx,(%rdx)", "atomics", "lock cmpxchg"),
        ("tdpbf16ps %tmm0,%tmm1,%tmm2", "matrix tiles", "none"),
        ("call *%rax", "calls", "*%rax"),
    ],
)
def test_groups(text, group, kind):
    listing = f"0000000000000000 <f>:\n   0:\t{text}\n"
    (routine,) = assembly_x86.parse_x86(listing, own)
    assert assembly_x86.classify_x86(routine.code[0]) == (group, kind)


@pytest.mark.parametrize(
    ("opcode", "operands"),
    [
        ("vxorps", "%xmm1,%xmm1,%xmm1"),
        ("vpxor", "%xmm1,%xmm1,%xmm1"),
        ("mov", "(%rax),%rbx"),
        ("lea", "0x8(%rax),%rbx"),
        ("vmovaps", "%ymm1,%ymm2"),
        ("movsbl", "(%rax),%ebx"),
        ("vzeroupper", ""),
    ],
)
def test_what_is_not_counted(opcode, operands):
    assert assembly_x86.classify_x86(Instruction(0, opcode, operands)) is None


def test_memory():
    accesses = [("mov", "(%rax),%rbx"), ("vaddps", "(%rax),%ymm0,%ymm1"), ("push", "-0x8(%r10)")]
    others = [("lea", "0x8(%rax),%rbx"), ("call", "f(int)"), ("vaddps", "%ymm2,%ymm0,%ymm1")]
    assert all(assembly_x86.is_x86_memory(Instruction(0, *access)) for access in accesses)
    assert not any(assembly_x86.is_x86_memory(Instruction(0, *other)) for other in others)
