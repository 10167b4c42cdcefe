"""AMD's assembly as its compilers print it: a part for each kernel, its figures, lines of the source."""

from __future__ import annotations

from warpsmith.languages.shared.amd_metadata import argument_sizes, read_register_use, split_assembly
from warpsmith.profiling.assembly import amdgcn, ptx

ENTRY = """  - .agpr_count:     {agpr}
    .args:
      - .offset:         0
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: {lds}
    .name:           {name}
    .private_segment_fixed_size: 0
{block}    .sgpr_count:     26
    .sgpr_spill_count: 0
    .symbol:         {name}.kd
    .vgpr_count:     {vgpr}
    .vgpr_spill_count: 0
"""
BLOCK = "    .reqd_workgroup_size:\n      - 128\n      - 2\n      - 1\n"
TEXT = (
    """	.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx942"
	.text
	.globl	first_0
	.type	first_0,@function
first_0:
.Lfunc_begin0:
	.file	1 "/src/op" "v1.py"
	.loc	1 87 4 prologue_end
	s_load_dwordx2 s[4:5], s[0:1], 0x8
.Ltmp0:
	.file	2 "/usr/lib" "functools.py"
	.loc	2 388 19
	v_add_f32_e32 v1, v2, v3
	.loc	1 88 0
	s_endpgm
.Lfunc_end0:
	.size	first_0, .Lfunc_end0-first_0
	.globl	second_1
	.type	second_1,@function
second_1:
	.loc	1 90 4
	s_barrier
	s_endpgm
.Lfunc_end1:
	.amdgpu_metadata
---
amdhsa.kernels:
"""
    + ENTRY.format(agpr=0, lds=64, name="first_0", vgpr=16, block=BLOCK)
    + ENTRY.format(agpr=4, lds=0, name="second_1", vgpr=8, block="")
    + "amdhsa.target:   amdgcn-amd-amdhsa-unknown-gfx942\namdhsa.version:\n  - 1\n  - 2\n...\n"
)
# As clang prints it: comments of its own, sections for debuggers behind the last kernel, a hidden argument.
CLANG = """	.protected	only                    ; -- Begin function only
	.globl	only
	.type	only,@function
only:                                   ; @only
	.loc	0 12 4                          ; v1.py:12:4
	s_endpgm
.Lfunc_end0:
	.section	.debug_abbrev,"",@progbits
	.byte	1                               ; Abbreviation Code
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
      - .offset:         16
        .size:           4
        .value_kind:     hidden_block_count_x
    .name:           only
    .sgpr_count:     26
    .symbol:         only.kd
amdhsa.target:   amdgcn-amd-amdhsa--gfx950
...
"""


def test_each_kernel_has_its_own_text_figures_and_block():
    first, second = split_assembly(TEXT)
    assert [(kernel.symbol, kernel.threads) for kernel in (first, second)] == [
        ("first_0", 256),
        ("second_1", None),
    ]
    uses = [read_register_use(kernel.text) for kernel in (first, second)]
    assert [(use.vector, use.accumulator, use.lds_bytes) for use in uses] == [(16, 0, 64), (8, 4, 0)]
    assert "s_barrier" not in first.text
    assert "v_add_f32" not in second.text


def test_the_reader_of_amds_assembly_takes_it_with_lines_of_the_version_alone():
    first, second = (
        amdgcn.parse_amdgcn(kernel.text, ptx.source_lines(kernel.text, lambda file: file == "/src/op/v1.py"))
        for kernel in split_assembly(TEXT)
    )
    (routine,) = first
    assert routine.name == "first_0"
    assert [(each.opcode, each.line) for each in routine.code] == [
        ("s_load_dwordx2", 87),
        ("v_add_f32_e32", None),
        ("s_endpgm", 88),
    ]
    assert [each.line for each in second[0].code] == [90, 90]  # its file is named in the kernel before


def test_clangs_own_comments_stay_and_its_debug_sections_go():
    (kernel,) = split_assembly(CLANG)
    assert kernel.symbol == "only"
    assert kernel.text.count("; @only") == kernel.text.count("v1.py") == 1
    assert "Abbreviation" not in kernel.text
    (routine,) = amdgcn.parse_amdgcn(kernel.text, ptx.source_lines(kernel.text, lambda file: file == "v1.py"))
    assert [(each.opcode, each.line) for each in routine.code] == [("s_endpgm", 12)]


def test_arguments_that_the_launch_adds_are_not_counted():
    (kernel,) = split_assembly(CLANG)
    assert argument_sizes(kernel.text) == [8, 4]
