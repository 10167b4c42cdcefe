"""Programs of kernels: what describes them, what they are made of again, and what a kernel may read."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("triton")

import triton

from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import kernel_program, kernel_rules
from warpsmith.languages.triton.kernel_rules import TellingKernel

FILE = """
import os, math
import torch, triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait
FAST = tl.constexpr(True)
SIZES = (2, 4)
TABLE = {}

@triton.jit
def twice(x, factor: tl.constexpr = FAST):
    return 2 * x * factor

def make(width):
    @triton.jit
    def inner(x_ptr):
        return tl.load(x_ptr + width)
    return inner

inner = make(tl.constexpr(3))

@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    BODY
"""


@pytest.fixture
def module(tmp_path):
    """`module(body, change)`: the file with a kernel's body and a change, executed."""

    def make(body: str = "pass", change: tuple[str, str] = ("", "")):
        path = tmp_path / f"v{len(list(tmp_path.iterdir()))}.py"
        path.write_text(FILE.replace("BODY", body).replace(*change))
        return execute_file(path)

    return make


def describe(module, body: str, change: tuple[str, str] = ("", "")) -> str:
    return kernel_program.describe_program(module(body, change).kernel)


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ("return FAST", ("tl.constexpr(True)", "tl.constexpr(False)")),
        ("return SIZES[0]", ("(2, 4)", "(3, 4)")),
        ("return twice(x_ptr)", ("2 * x", "3 * x")),
        ("return twice(x_ptr)", ("tl.constexpr(True)", "tl.constexpr(False)")),
        ("return tl.load(x_ptr)", ("tl.load(x_ptr)", "tl.load(x_ptr + 1)")),
        ("return twice(x_ptr)", ("@triton.jit\ndef twice", "@triton.jit(noinline=True)\ndef twice")),
    ],
)
def test_a_kernel_is_another_one_by_its_text_its_functions_and_what_they_read(module, body, change):
    assert describe(module, body) == describe(module, body)
    assert describe(module, body) != describe(module, body, change)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("return os.environ", "os"),
        ("return tl.target_info.is_hip()", "target_info"),
        ("return tl.core.knobs.runtime.interpret", "knobs"),
        ("return triton.knobs.runtime.interpret", "knobs"),
        ("return TABLE", "TABLE"),
        ("return torch.cuda", "cuda"),
        ("return open(x_ptr)", "open"),
        ("return isinstance(x_ptr, tl.tensor)", "isinstance"),
        ("return getattr(x_ptr, 'handle')", "getattr"),
        ("return x_ptr.handle", "handle"),
        ("return (x_ptr + 1).__class__", "__class__"),
        ("return tl.load._fields", "_fields"),
        ("import sys", "import"),
        ("return x_ptr is BLOCK", "is"),
        ("return f'{x_ptr}' == 'x'", "a formatted string"),
        ("try:\n        pass\n    except ValueError:\n        pass", "try"),
    ],
)
def test_a_kernel_that_can_tell_interpreter_and_compiler_apart_is_refused(module, body, name):
    with pytest.raises(TellingKernel, match=f"`kernel` reads `{name}`"):
        describe(module, body)


@pytest.mark.parametrize(
    "body",
    [
        "return tl.exp(math.pi * x_ptr) + max(1, len((1, 2))) + tl.math.exp2(1.0)",
        "return x_ptr.dtype.element_ty, x_ptr.type.element_ty, x_ptr.shape[0], (x_ptr + 1).to(tl.int64)",
        "return triton.cdiv(BLOCK, 2) if x_ptr is not None else gdc_wait()",
        "tl.static_assert(BLOCK > 1, f'{BLOCK} is too few')",
        "return tl.make_tensor_descriptor(x_ptr, [4], [1], [4]).load([0])",
    ],
)
def test_what_the_language_has_may_be_read(module, body):
    assert describe(module, body)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('def kernel(x):\n    """\n    def kernel(x):\n    """\n    return x\n', "begins with `def`"),
        ("kernel = eval('lambda x: x')\n", "not defined by a `def`"),
    ],
)
def test_a_kernel_whose_text_is_not_one_definition_is_refused(tmp_path, text, words):
    path = tmp_path / "v1.py"
    path.write_text(text)
    with pytest.raises(TellingKernel, match=words):
        kernel_rules.read_definition(execute_file(path).kernel)


def test_a_text_that_was_replaced_is_refused(module):
    changed = module("return 2 * x_ptr")
    if not hasattr(changed.kernel, "src"):
        pytest.skip("an interpreted kernel has no text of its own")
    changed.kernel._unsafe_update_src(changed.kernel.src.replace("2", "3"))
    with pytest.raises(TellingKernel, match="was replaced"):
        kernel_program.describe_program(changed.kernel)


def test_kernels_are_made_again_with_their_lines_their_functions_and_their_closures(module):
    first = module("return twice(inner(x_ptr)) + FAST.value")
    program = kernel_program.describe_program(first.kernel)
    made = kernel_program.build_kernel(program, first.__file__, lambda function, options: triton.jit(function))
    assert made is not first.kernel
    assert made.fn.__code__.co_firstlineno == first.kernel.fn.__code__.co_firstlineno + 1  # without the decorator
    names = made.fn.__globals__
    assert (names["FAST"].value, names["inner"].fn.__globals__["width"].value) == (True, 3)
    assert names["twice"].fn.__defaults__[0].value is True
    assert "os" not in names


class Sly(int):
    """A number that is equal to all others."""

    __eq__ = lambda *_: True  # noqa: E731
    __hash__ = int.__hash__


@pytest.mark.parametrize("value", [1, 2.5, float("inf"), True, None, "text", (1, (2.0, None)), ()])
def test_constants_are_the_same_after_the_record(value):
    encoded = json.loads(json.dumps(kernel_program.encode_value(value)))
    assert kernel_program.decode_value(encoded) == value
    assert type(kernel_program.decode_value(encoded)) is type(value)


@pytest.mark.parametrize("value", [Sly(1), (Sly(1),), [1], {}, object()])
def test_what_may_compute_otherwise_is_no_constant(value):
    assert kernel_program.encode_value(value) is None
