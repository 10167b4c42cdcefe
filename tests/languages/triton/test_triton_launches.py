"""Launches that the interpreter saw are compiled as they were; a kernel that can tell the two apart is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

from warpsmith import languages
from warpsmith.core.definition import Definition
from warpsmith.core.port.check import KernelLaunch
from warpsmith.languages.base import BuildFailed, ReplaysLaunches
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import launch_recorder
from warpsmith.languages.triton.launch_recorder import TellingKernel, kernel_code

PLAIN = """
import os, math
import triton
import triton.language as tl
FAST = tl.constexpr(True)
TABLE = {}

def twice(x):
    return 2 * x

def kernel(x_ptr, BLOCK: tl.constexpr):
    BODY
"""


def code(tmp_path, body: str, change: tuple[str, str] = ("", "")) -> str:
    """The hash of a kernel with a body, in a file with one change."""
    path = tmp_path / f"v{len(list(tmp_path.iterdir()))}.py"
    path.write_text(PLAIN.replace("BODY", body).replace(*change))
    return kernel_code(execute_file(path).kernel)


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ("return FAST", ("tl.constexpr(True)", "tl.constexpr(False)")),
        ("return twice(x_ptr)", ("2 * x", "3 * x")),
        ("return tl.load(x_ptr)", ("tl.load(x_ptr)", "tl.load(x_ptr + 1)")),
    ],
)
def test_a_kernel_is_another_one_by_its_source_its_functions_and_its_constants(tmp_path, body, change):
    assert code(tmp_path, body) == code(tmp_path, body)
    assert code(tmp_path, body) != code(tmp_path, body, change)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("return os.environ", "environ"),
        ("return tl.target_info.is_hip()", "is_hip"),
        ("return triton.knobs.runtime.interpret", "knobs"),
        ("return TABLE", "TABLE"),
        ("return open(x_ptr)", "open"),
        ("import sys", "sys"),
    ],
)
def test_a_kernel_that_can_tell_interpreter_and_compiler_apart_is_refused(tmp_path, body, name):
    with pytest.raises(TellingKernel, match=f"`kernel` reads `{name}`"):
        code(tmp_path, body)


def test_triton_and_math_are_no_way_to_tell(tmp_path):
    assert code(tmp_path, "return tl.exp(math.pi * x_ptr) + max(1, len((1, 2)))")


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
    return launch_recorder._describe_launch(
        module.double.fn, (x, x, n, 2.0), lambda meta: (-(-n // meta["BLOCK"]),), arguments
    ).model_copy(update=changes)


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
@pytest.mark.parametrize(
    ("changes", "words"),
    [({"kernel": "other"}, "no kernel of the file"), ({"code": "0" * 64}, "is another one when it is compiled")],
)
def test_another_kernel_than_the_interpreter_ran_does_not_compile(version, tmp_path, changes, words):
    launches = {"a": (launch(version, **changes),)}
    with pytest.raises(BuildFailed, match=words):
        languages.get("triton").assemble_launches(version, DEFINITION, launches, "gfx942", tmp_path / "out")


def test_numbers_of_which_the_compiler_learns_the_same_are_one_launch(version):
    def call(n):
        described = launch_recorder._describe_launch(
            execute_file(version).double.fn, (1.5, None, n, 2.0, 16, 4), (1,), {"num_warps": 2}
        )
        return json.loads(described.call)

    assert call(4096) == call(32)
    assert len({json.dumps(call(n)) for n in (1, 16, 17, 2**40, 2**63)}) == 5
    assert call(16)["options"] == {"num_warps": 2}
    assert call(16)["arguments"]["BLOCK"] == 16


def test_an_argument_that_only_host_code_can_make_is_refused(version):
    with pytest.raises(TellingKernel, match="gets a SimpleNamespace as `n`"):
        launch_recorder._describe_launch(
            execute_file(version).double.fn, (None, None, SimpleNamespace(), 2.0, 16, 4), (1,), {}
        )
