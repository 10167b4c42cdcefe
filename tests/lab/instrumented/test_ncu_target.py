from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from lab_samples import GIVEN, SQUARE

from warpsmith.lab.instrumented import ncu_target

SCALED = SQUARE.replace(
    'inputs={"x": TensorSpec(shape=("n",))}',
    'inputs={"a": ScalarSpec(value=3.0), "x": TensorSpec(shape=("n",)), "b": ScalarSpec(type="int", value=2)}',
)

KERNEL = """\
import torch
import triton
import triton.language as tl

@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * x, mask=at < n)

def run(x):
    y = torch.empty_like(x)
    square[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


@pytest.fixture
def line(workshop):
    """`line(source, **changes)`: the command for a Triton version of the operator."""

    def make(source: str = KERNEL, **changes: str) -> list[str]:
        usual = {"language": "triton", "version": "v1", "workload": "small"}
        file = workshop.load("square", SQUARE)
        return ncu_target.ncu_target_command(
            file.path, workshop.solution(source, "triton").path, **{**usual, **changes}
        )

    return make


def test_one_call_lies_between_start_and_stop_and_the_device_is_idle_there():
    seen = []
    marks = {name: lambda name=name: seen.append(name) for name in ("call", "settle", "start", "stop")}
    ncu_target.run_marked_call(**marks)
    assert seen == ["call"] * ncu_target.WARM_UPS + ["settle", "start", "call", "settle", "stop"]


def test_the_profiler_is_stopped_where_the_call_fails():
    seen = []
    calls = iter([None] * ncu_target.WARM_UPS)
    with pytest.raises(StopIteration):
        ncu_target.run_marked_call(
            lambda: next(calls), lambda: None, lambda: seen.append("on"), lambda: seen.append("off")
        )
    assert seen == ["on", "off"]


def test_arguments_in_the_definitions_order(workshop):
    file = workshop.load("square", SCALED)
    a, x, b = ncu_target.draw_arguments(file, file.definition.workloads[1], "cpu")
    assert (a, b) == (3.0, 2)
    assert x.shape == (5000,)
    assert x.unique().numel() > 4000
    assert torch.equal(x, ncu_target.draw_arguments(file, file.definition.workloads[1], "cpu")[1])


def test_outputs_are_given_where_the_definition_says_so(workshop):
    file = workshop.load("given", GIVEN)
    x, y = ncu_target.draw_arguments(file, file.definition.workloads[0], "cpu")
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)


def test_the_command_says_what_is_run(line):
    options = ncu_target._parser().parse_args(line(target="h200")[3:])
    assert (options.language, options.version, options.workload, options.target) == (
        "triton",
        "v1",
        "small",
        "h200",
    )
    assert options.definition.is_file()
    assert options.solution.is_file()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_without_a_device_it_says_so(line):
    ended = subprocess.run(line(), capture_output=True, text=True)
    assert ended.returncode == 4
    assert "no CUDA device" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.gpu
def test_a_version_runs(line):
    ended = subprocess.run(line(), capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("source", "changes", "code", "words"),
    [
        (KERNEL, {"workload": "none"}, 2, "has no workload `none`; it has small, large."),
        (KERNEL, {"language": "cpp"}, 4, "cpp"),
        (KERNEL.replace("x * x, mask", "x * z, mask"), {}, 1, "triton/v1 fails at small: "),
        (KERNEL.replace("def run", "def walk"), {}, 1, "has no `run`"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_a_code(line, source, changes, code, words):
    ended = subprocess.run(line(source, **changes), capture_output=True, text=True)
    assert ended.returncode == code
    assert words in ended.stderr
    assert sys.executable not in ended.stderr
