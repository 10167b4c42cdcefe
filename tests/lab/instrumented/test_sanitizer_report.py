"""Outputs as the tool's manual shows them (sections `Understanding ... Reports` and `Tool Examples`)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.lab.instrumented import sanitizer_report

CLEAN = """\
========= COMPUTE-SANITIZER
NONCE at small
NONCE done
========= ERROR SUMMARY: 0 errors
"""

OUT_OF_BOUNDS = """\
========= COMPUTE-SANITIZER
NONCE at small
NONCE at large
========= Invalid __global__ write of size 4 bytes
=========     at square+0x1f0 in v1.py:8
=========     by thread (65,0,0) in block (0,0,0)
=========     Access to 0x7bd889c03041 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7bd889c02000 of size 4,161 bytes
=========
NONCE done
========= ERROR SUMMARY: 1,769 errors
========= ERROR SUMMARY: 769 errors were not printed. Use --print-limit option to print more
"""

RACE = """\
========= COMPUTE-SANITIZER
NONCE at small
========= Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in block_error.cu:41
=========     and Read access at sumKernel(int *, int *)+0x100 in block_error.cu:51 [508 hazards]
=========
NONCE done
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""

WARNING = """\
========= COMPUTE-SANITIZER
NONCE at small
========= Warning: Race reported between Write access at sumKernel(int *, int *)+0x90 in warp_error.cu:44
=========     and Read access at sumKernel(int *, int *)+0x120 in warp_error.cu:56 [31 hazards]
NONCE done
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""

UNINITIALIZED = """\
========= COMPUTE-SANITIZER
NONCE at small
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, T2)+0x70
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
NONCE done
========= ERROR SUMMARY: 1 error
"""

BARRIER = """\
========= COMPUTE-SANITIZER
NONCE at small
========= Barrier error detected. Divergent thread(s) in block.
=========     at [clone myKernel(int *, int *)] outlineSync()+0x11f0 in test.cu:42
=========     by thread (32,0,0) in block (0,0,0)
=========         Device Frame: outer(int *)+0xa0 in test.cu:55
=========         Device Frame: myKernel(int *, int *)+0xe40 in test.cu:60
========= Target application returned an error
========= ERROR SUMMARY: 32 errors
"""


def read(text):
    return sanitizer_report.read_sanitizer_output(text.replace("NONCE", "abc"), "abc")


def test_a_clean_run():
    report = read(CLEAN)
    assert (report.findings, report.warnings, report.complaints) == ([], [], [])
    assert (report.errors, report.finished, report.failed) == (0, True, "")


PLACE = " in `square` (v1.py:8) by thread (65,0,0) in block (0,0,0) at large"


def test_an_access_out_of_bounds():
    report = read(OUT_OF_BOUNDS)
    assert [str(finding) for finding in report.findings] == [
        "Invalid __global__ write of size 4 bytes: out of bounds" + PLACE
    ]
    assert (report.errors, report.unprinted, report.finished) == (1769, 769, True)


def test_a_race_names_its_kernel_and_a_warning_is_no_finding():
    (finding,) = read(RACE).findings
    assert (finding.kind, finding.kernel) == ("Race reported between Write access", "sumKernel(int *, int *)")
    assert (finding.line, finding.workload) == ("block_error.cu:41", "small")
    report = read(WARNING)
    assert report.findings == []
    assert (len(report.warnings), report.errors) == (1, 0)


def test_of_device_frames_the_outermost_is_the_kernel():
    report = read(BARRIER)
    assert report.findings[0].kernel == "myKernel(int *, int *)"
    assert report.findings[0].line == "test.cu:60"
    assert not report.finished


@pytest.mark.parametrize(
    ("kernel", "library"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, T2, T3)", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(T1::Params)", True),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", True),
        ("void cub::DeviceScanKernel<int>(int *)", True),
        ("square", False),
        ("gemv_kernel", False),
        ("cutlass_style", False),
        ("void cutlass::device_kernel<Mine>(T1::Params)", False),
        ("void gemm<float>(float *)", False),
        ("", False),
    ],
)
def test_whose_a_kernel_is(kernel, library):
    assert sanitizer_report.SanitizerFinding("read", kernel).library is library
    if kernel:
        text = UNINITIALIZED.replace(
            UNINITIALIZED.splitlines()[3].split(" at ", 1)[1].rpartition("+0x")[0], kernel
        )
        (finding,) = read(text).findings
        assert (finding.kernel, finding.library) == (kernel, library)


@pytest.mark.parametrize(
    "line",
    [
        "========= Internal Sanitizer Error: The Sanitizer encountered an error while launching square and didn't "
        "track the launch. Errors might go undetected. (Unable to allocate enough memory to perform the requested "
        "operation)",
        "========= Error: No attachable process found. compute-sanitizer timed-out.",
        '========= Error: Device not supported. Please refer to the "Supported Devices" section of the sanitizer '
        "documentation",
        "========= Something that no manual tells of",
    ],
)
def test_what_the_tool_could_not_do_is_no_finding(line):
    report = read(CLEAN.replace("NONCE done\n", f"NONCE done\n{line}\n"))
    assert report.findings == []
    assert report.complaints == [line.removeprefix("========= ")[:300]]


def test_only_lines_with_the_nonce_are_the_programs_word():
    report = read(
        "other done\n==========\nother failed x: y\nat the end\x1b[0m\nNONCE failed small: ValueError: no\n"
    )
    assert (report.finished, report.failed, report.complaints) == (False, "small: ValueError: no", [])
    assert report.last_line == "at the end[0m"
    assert report.errors is None


fragments = st.sampled_from(
    [
        "=========", "========= ", "=========  ", "\n", "NONCE at ", "NONCE done", "NONCE failed ",
        "ERROR SUMMARY: ", "RACECHECK SUMMARY: 1 hazard displayed (1 error", "s", ",", "1,769 errors",
        " were not printed", "Invalid ", "    at f+0x10 in a.py:3", "Device Frame: ",
        "by thread (1,0,0) in block (0,0,0)", "Warning: ", "\r", "\0",
    ]
)  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.lists(fragments | st.text(max_size=12), max_size=30).map("".join), st.binary(max_size=40))
def test_whatever_is_printed_can_be_read(text, data):
    output = text + data.decode(errors="replace")
    found = sanitizer_report.read_sanitizer_output(output, "NONCE")
    assert all(len(str(one)) <= 400 for one in (*found.findings, *found.warnings))
    assert found.unprinted >= 0
    assert not found.finished or "NONCE done" in output
    assert sanitizer_report.read_sanitizer_output(output, "another").finished is False
