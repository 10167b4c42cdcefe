"""Launches that the interpreter saw are compiled as they were; a kernel that can tell the two apart is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy
import pytest

pytest.importorskip("triton")

from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.core.port.check import KernelLaunch
from warpsmith.languages.base import BuildFailed, ReplaysLaunches
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import launch_recorder
from warpsmith.languages.triton.kernel_rules import TellingKernel

SOURCE = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr, KIND: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n).to(KIND)
    tl.store(y_ptr + o, scale * x, mask=o < n)

def run(x):
    raise SystemExit("run is not called")
"""
DEFINITION = Definition.model_validate(
    {
        "name": "double", "description": "Twice x.", "axes": {"n": "length"}, "inputs": {"x": {"shape": ("n",)}},
        "outputs": {"y": {"shape": ("n",)}}, "flops": "n",
        "workloads": ({"name": "a", "axes": {"n": 4096}}, {"name": "b", "axes": {"n": 64}}),
    }
)  # fmt: skip


@pytest.fixture
def version(tmp_path):
    path = tmp_path / "v1.py"
    path.write_text(SOURCE)
    return path


def launch(version, n: int = 4096, warps: int = 4, **changes) -> KernelLaunch:
    """The launch as the recorder describes it."""
    import torch
    import triton.language as tl

    module = execute_file(version)
    x = torch.zeros(n)
    arguments = {"BLOCK": 1024, "KIND": tl.float32, "num_warps": warps}
    blocks = launch_recorder._ask_for_blocks(
        module.double, (x, x, n, 2.0), lambda meta: (-(-n // meta["BLOCK"]),), arguments
    )
    described = launch_recorder._describe_launch(module.double, (x, x, n, 2.0), blocks, arguments)
    return described.model_copy(update=changes)


def other_program(version) -> str:
    """The program of the version's kernel with another factor."""
    return launch(version).program.replace("scale * x", "2 * scale * x")


@pytest.mark.usefixtures("forked_compilers")
def test_recorded_launches_are_compiled_without_run(version, tmp_path):
    language = languages.get("triton")
    assert isinstance(language, ReplaysLaunches)
    launches = {"a": (launch(version), launch(version, 2048)), "b": (launch(version, 64, warps=8),)}
    listings = language.assemble_launches(version, DEFINITION, launches, "gfx942", tmp_path / "out")
    assert [dict(listing.blocks) for listing in listings] == [{"a": 4}, {"b": 1}]
    assert [listing.block_warps for listing in listings] == [4, 8]
    assert "n i32/16" in listings[0].variant
    assert all(listing.resources.registers for listing in listings)


@pytest.mark.usefixtures("forked_compilers")
def test_another_kernel_than_the_interpreter_ran_does_not_compile(version, tmp_path):
    language, out = languages.get("triton"), tmp_path / "out"
    with pytest.raises(BuildFailed, match="no kernel of the file"):
        language.assemble_launches(version, DEFINITION, {"a": (launch(version, kernel="other"),)}, "gfx942", out)
    changed = launch(version, program=other_program(version))
    with pytest.raises(BuildFailed, match="is not where `double` is defined"):
        language.assemble_launches(version, DEFINITION, {"a": (changed,)}, "gfx942", out)


def test_numbers_of_which_the_compiler_learns_the_same_are_one_launch(version):
    def call(n):
        described = launch_recorder._describe_launch(
            execute_file(version).double, (1.5, None, n, 2.0, 16, 4), (1,), {"num_warps": 2}
        )
        return json.loads(described.call)

    assert call(4096) == call(32)
    assert len({json.dumps(call(n)) for n in (1, 16, 17, 2**40, 2**63)}) == 5
    assert call(16)["options"] == {"num_warps": 2}
    assert call(16)["arguments"]["BLOCK"] == {"constant": 16}


def test_an_argument_that_only_host_code_can_make_is_refused(version):
    with pytest.raises(TellingKernel, match="gets a SimpleNamespace as `n`"):
        launch_recorder._describe_launch(
            execute_file(version).double, (None, None, SimpleNamespace(), 2.0, 16, 4), (1,), {}
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [({"num_warps": numpy.int64(4)}, "num_warps as a int64"), ({"num_warps": 4}, "gets a float64 as `scale`")],
)
def test_what_no_record_holds_exactly_is_refused(version, options, words):
    scale = 2.0 if "num_warps as" in words else numpy.float64(2.0)
    with pytest.raises(TellingKernel, match=words):
        launch_recorder._describe_launch(
            execute_file(version).double, (None, None, 5, scale, 16, 4), (1,), options
        )


def test_each_1_is_a_constant_unless_the_kernel_says_otherwise():
    arguments = {"a": {"constant": 1}, "b": {"constant": True}, "c": {"constant": 1}, "d": {"constant": 1}}
    kernel = {"options": {"do_not_specialize": ["c", 3]}}
    assert list(launch_recorder._specialised_arguments(kernel, arguments)) == ["a"]
