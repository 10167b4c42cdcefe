"""SASS is read as it was written: every count here was made by eye from the listing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from warpsmith.profiling.assembly import sass as assembly_sass
from warpsmith.profiling.assembly.code import Instruction, find_loops

LISTING = (Path(__file__).parents[2] / "data" / "assembly" / "shares.sm_90a.sass").read_text()

CALLED = """
.text.chunks:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E.LTC128B.128.CONSTANT R4, [R2.64] ;
        /*0020*/              @!PT LDS RZ, [RZ] ;
        /*0030*/               @P0 CALL.REL.NOINC `(.L_x_0) ;
        /*0040*/                   BRA `(.L_x_1) ;
.L_x_0:
        /*0050*/                   BRA.U !UP0, `(.L_x_2) ;
        /*0060*/                   STL.64 [R1], R4 ;
.L_x_2:
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   BRA `(.L_x_3);
        /*0090*/                   NOP;
.L_x_4:
.text.other:
        /*0000*/                   EXIT ;
"""

WAITING = """
.text.tiles:
.L_x_0:
        /*0000*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0010*/              @!P0 BRA `(.L_x_0) ;
        /*0020*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;
.L_x_1:
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0040*/              @!P0 BRA `(.L_x_1) ;
        /*0050*/               @P1 BRA `(.L_x_0) ;
        /*0060*/                   EXIT ;
"""


def read(listing: str) -> list[list[Instruction]]:
    return [routine.code for routine in assembly_sass.parse_sass(listing, lambda file, line, ptx: line or None)]


def test_everything_but_the_padding():
    (code,) = read(LISTING)
    assert (len(code), hex(code[-1].address), code[-1].opcode) == (153, "0x980", "EXIT")


def test_counts():
    (code,) = read(LISTING)
    counts = Counter(found for instruction in code if (found := assembly_sass.classify_sass(instruction)))
    assert counts == {
        ("global loads", "LDG.E.128"): 7,
        ("global loads", "LDG.E.EL.128"): 1,
        ("global stores", "STG.E.128"): 7,
        ("shared memory", "LDS"): 2,
        ("shared memory", "STS"): 2,
        ("barriers", "BAR.SYNC.DEFER_BLOCKING"): 3,
        ("shuffles", "SHFL.BFLY"): 6,
        ("special functions", "MUFU.RCP"): 1,
        ("fp32", "FMUL"): 32,
        ("fp32", "FADD"): 10,
        ("branches", "BRA"): 4,
    }
    assert sum(map(assembly_sass.is_sass_memory, code)) == 19


def test_loops():
    (code,) = read(LISTING)
    bodies = [(hex(body.code[0].address), len(body.code)) for body in find_loops(code, assembly_sass.is_sass_wait)]
    assert bodies == [("0x220", 29), ("0x520", 38)]


def test_a_call_may_be_a_jump_and_what_never_runs_is_left_out():
    first, other = read(CALLED)
    assert [instruction.address for instruction in first] == [0x0, 0x10, 0x30, 0x40, 0x50, 0x60, 0x70]
    assert [instruction.opcode for instruction in other] == ["EXIT"]
    (body,) = find_loops(first, assembly_sass.is_sass_wait)
    assert [instruction.address for instruction in body.code] == [0x10, 0x30, 0x40]
    assert first[4].falls
    assert first[4].target == 0x70


def test_a_wait_is_no_loop_and_hides_none():
    (code,) = read(WAITING)
    (body,) = find_loops(code, assembly_sass.is_sass_wait)
    assert (len(body.code), body.innermost) == (6, True)


@pytest.mark.parametrize(
    ("opcode", "group", "kind"),
    [
        ("LDGSTS.E.BYPASS.128", "async copies", "LDGSTS.E.BYPASS.128"),
        ("UTMALDG.2D", "async copies", "UTMALDG.2D"),
        ("UBLKCP.S.G", "async copies", "UBLKCP.S.G"),
        ("HMMA.16816.F32.BF16", "tensor cores", "HMMA.16816.F32.BF16"),
        ("HGMMA.64x256x16.F32", "tensor cores", "HGMMA.64x256x16.F32"),
        ("IMMA.16832.S8.S8", "tensor cores", "IMMA.16832.S8.S8"),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", "tensor cores", "QGMMA.64x128x32.F32.E4M3.E4M3"),
        ("UTCHMMA.2CTA", "tensor cores", "UTCHMMA.2CTA"),
        ("LDTM.x64", "tensor memory", "LDTM.x64"),
        ("LDSM.16.MT88.4", "shared memory", "LDSM.16.MT88.4"),
        ("SYNCS.ARRIVE.TRANS64", "barriers", "SYNCS.ARRIVE.TRANS64"),
        ("SHFL.IDX.PT", "shuffles", "SHFL.IDX"),
        ("MUFU.EX2.F16", "special functions", "MUFU.EX2"),
        ("F2FP.BF16.F32.PACK_AB", "conversions", "F2FP.BF16.F32.PACK_AB"),
        ("F2F.F64.F32", "conversions", "F2F.F64.F32"),
        ("DFMA.RM", "fp64", "DFMA.RM"),
        ("REDG.E.ADD.STRONG.GPU", "atomics", "REDG.E.ADD.STRONG.GPU"),
        ("ATOMS.ADD", "atomics", "ATOMS.ADD"),
        ("LDL.LU.64", "local memory", "LDL.LU.64"),
        ("FFMA2.FTZ", "fp32", "FFMA2"),
        ("BRA.U", "branches", "BRA"),
    ],
)
def test_groups(opcode, group, kind):
    assert assembly_sass.classify_sass(Instruction(0, opcode, "")) == (group, kind)


@pytest.mark.parametrize(
    "opcode", ["HFMA2.MMA", "LDC.64", "ULDC", "LDGDEP", "BSSY", "IMAD.WIDE", "EXIT", "DEPBARX"]
)
def test_what_is_not_counted(opcode):
    assert assembly_sass.classify_sass(Instruction(0, opcode, "")) is None


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [
        ("LDG.E", 32),
        ("LDG.E.U16", 16),
        ("STG.E.S8", 8),
        ("LDG.E.64.STRONG.GPU", 64),
        ("LDGSTS.E.LTC128B", 32),
        ("LDG.E.EL.128", 128),
        ("LDG.E.ENL2.256", 256),
    ],
)
def test_width(opcode, bits):
    assert assembly_sass.access_bits(opcode) == bits
