"""Values that a loop carries on: a scan, a reduction in order, or none."""

from __future__ import annotations

import pytest

from warpsmith.profiling.assembly import x86
from warpsmith.profiling.assembly.carried import (
    CarriedValue,
    find_carried_value,
    reads_new_addresses,
    split_operands,
)
from warpsmith.profiling.assembly.code import Instruction


def loop(*texts: str) -> list[Instruction]:
    listing = "0000000000000000 <f>:\n" + "".join(f"  {n:2x}:\t{text}\n" for n, text in enumerate(texts))
    return x86.parse_x86(listing, lambda chain: None)[0].code


STEP = "add    $0x4,%rax"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["vaddss (%rax),%xmm0,%xmm0", STEP], CarriedValue(1, False)),
        (["addss (%rax),%xmm0", STEP], CarriedValue(1, False)),
        (["vaddss (%rax),%xmm0,%xmm0", "vmovss %xmm0,(%rax)", STEP], CarriedValue(1, True)),
        # unrolled by two, through another register
        (
            ["vaddss (%rax),%xmm0,%xmm1", "vmovss %xmm1,(%rax)", "vaddss 0x4(%rax),%xmm1,%xmm0", STEP],
            CarriedValue(2, True),
        ),
        # the lanes of a packed product, added in order
        (
            ["vmulps (%rax),%ymm1,%ymm2", "vaddss %xmm2,%xmm0,%xmm0", "vshufps $0x55,%xmm2,%xmm2,%xmm3",
             "vaddss %xmm3,%xmm0,%xmm0", STEP],
            CarriedValue(2, False),
        ),
        # kept on the stack, because a call clobbers the registers
        (
            ["call 5 <expf>", "vaddss 0x8(%rsp),%xmm0,%xmm0", "vmovss %xmm0,0x8(%rsp)", STEP],
            CarriedValue(1, False),
        ),
        (["vfmadd231ss (%rax),%xmm1,%xmm0", STEP], CarriedValue(1, False)),
        # packed accumulators, a new value in each step, a conversion that keeps old lanes, a compare
        (["vaddps (%rax),%ymm0,%ymm0", STEP], None),
        (["vmovss (%rax),%xmm0", "vaddss %xmm0,%xmm1,%xmm2", "vmovss %xmm2,(%rax)", STEP], None),
        (["vcvtsi2ss %ecx,%xmm0,%xmm0", "vaddss (%rax),%xmm0,%xmm1", STEP], None),
        (["vxorps %xmm0,%xmm0,%xmm0", "vaddss (%rax),%xmm0,%xmm0", STEP], None),
        (["vcomiss (%rax),%xmm0", STEP], None),
        (["call 5 <expf>", "vaddss (%rax),%xmm0,%xmm0", STEP], None),
    ],
)  # fmt: skip
def test_chains(texts: list[str], expected: CarriedValue | None):
    assert find_carried_value(loop(*texts)) == expected


def test_a_pass_reads_other_memory_in_each_step():
    assert reads_new_addresses(loop("vaddps (%rax),%ymm0,%ymm0", STEP))
    assert not reads_new_addresses(loop("vaddps 0x20(%rsp),%ymm0,%ymm0", STEP))
    assert not reads_new_addresses(loop("vmovups %ymm0,(%rax)", STEP))


def test_operands_are_split_outside_of_addresses():
    assert split_operands("(%rax,%rcx,4),%zmm1{%k1}{z},%zmm0") == ["(%rax,%rcx,4)", "%zmm1", "%zmm0"]
