"""Two different compilations never share a key; the same one, described in another process, has the same."""

from __future__ import annotations

import importlib
import itertools
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cutedsl import needs_cutedsl

from warpsmith.languages.cutedsl import cache_key
from warpsmith.languages.cutedsl.cache_key import NoKey
from warpsmith.languages.shared import python_file

pytestmark = needs_cutedsl

OPTIONS = "--enable-tvm-ffi"
SOURCE = """
from __future__ import annotations
import functools
import torch
from typing import Optional
TILE = {torch.float32: (4, 1.0), None: [8]}

class Shape:
    ROWS = 4

def plain(x, n=2):
    return x

@functools.cache
def compiled(cols):
    return cols

def made(tile):
    return lambda x: x * tile

def launch(x):
    return x
"""


@pytest.fixture(scope="module")
def dsl():
    """CuTe DSL, imported once it is known to be there."""
    cutlass, runtime, typing = map(
        importlib.import_module, ("cutlass", "cutlass.cute.runtime", "cutlass.cute.typing")
    )
    return SimpleNamespace(cutlass=cutlass, runtime=runtime, typing=typing)


@pytest.fixture
def module(write):
    return python_file.execute_file(write(SOURCE, "v1.py"))


@pytest.fixture
def key(dsl, module):
    """`key(*arguments)`: of the file's function for them."""

    def make(*arguments, of=module, source="digest", options=OPTIONS):
        return cache_key.function_key(source, of, of.launch, arguments, options)

    return make


@pytest.fixture(scope="module")
def told(dsl, tmp_path_factory):
    """`told(*arguments)`: how they are told."""
    path = tmp_path_factory.mktemp("key") / "v1.py"
    path.write_text(SOURCE)
    module = python_file.execute_file(path)

    def tell(*arguments):
        describer = cache_key._Describer(module)
        return repr(tuple(map(describer.describe, arguments)))

    return tell


texts = st.text("'\"\\(,0", max_size=3)
leaves = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | texts | st.binary(max_size=2)
)


def nested(inner):
    """Containers of what `inner` makes."""
    lists = st.lists(inner, max_size=3)
    return lists | lists.map(tuple) | st.dictionaries(st.integers(0, 1), inner)


plain = st.recursive(leaves, nested, max_leaves=6)


@given(plain, plain)
def test_plain_values_are_told_exactly(told, one, other):
    assert (told(one) == told(other)) == (repr(one) == repr(other))
    assert told(one, other) != told((one, other))


SYMBOLS = ("a", "b", "c")
sizes = st.integers(1, 2) | st.sampled_from(SYMBOLS)
symbols = st.fixed_dictionaries(
    {name: st.tuples(st.sampled_from([32, 64]), st.sampled_from([1, 4])) for name in SYMBOLS}
)


@st.composite
def tensors(draw):
    rank = draw(st.integers(1, 2))
    return (
        draw(st.sampled_from(["Float32", "Int32"])),
        tuple(draw(sizes) for _ in range(rank)),
        tuple(draw(sizes) for _ in range(rank)),
        draw(st.sampled_from(["gmem", "generic"])),
        draw(st.sampled_from([None, 4, 16])),
    )


def canonical(symbols, tensors):
    """What decides of tensors: symbols are told by where they appear, not by their names."""
    numbers = {}

    def size(given):
        return (numbers.setdefault(given, len(numbers)), *symbols[given]) if given in symbols else given

    return [
        (element, tuple(map(size, shape)), tuple(map(size, stride)), space, 4 if align is None else align)
        for element, shape, stride, space, align in tensors
    ]


def built(dsl, symbols, tensors):
    """The fake tensors themselves, with symbols of their own."""
    made = {name: dsl.typing.SymInt(width, divisibility=by) for name, (width, by) in symbols.items()}
    return [
        dsl.runtime.make_fake_tensor(
            getattr(dsl.cutlass, element), tuple(made.get(one, one) for one in shape),
            tuple(made.get(one, one) for one in stride), memspace=getattr(dsl.cutlass.AddressSpace, space),
            assumed_align=align,
        )
        for element, shape, stride, space, align in tensors
    ]  # fmt: skip


@given(st.data(), symbols, st.lists(tensors(), min_size=1, max_size=2))
def test_tensors_share_what_is_told_of_them_where_they_compile_to_the_same(
    dsl, told, data, symbols, given_tensors
):
    renamed = data.draw(st.permutations(SYMBOLS))
    names = dict(zip(SYMBOLS, renamed, strict=True))
    other_symbols = {names[name]: known for name, known in symbols.items()}
    others = [
        (element, *(tuple(names.get(one, one) for one in sizes) for sizes in (shape, stride)), space, align)
        for element, shape, stride, space, align in given_tensors
    ]
    assert told(*built(dsl, symbols, given_tensors)) == told(*built(dsl, other_symbols, others))
    at = data.draw(st.integers(0, len(others) - 1))
    others[at] = data.draw(tensors())
    same = canonical(symbols, given_tensors) == canonical(other_symbols, others)
    assert (told(*built(dsl, symbols, given_tensors)) == told(*built(dsl, other_symbols, others))) == same


def test_a_symbol_ties_the_tensors_that_it_is_in(dsl, key):
    def shared(one, other):
        return key(
            *built(dsl, dict.fromkeys("ab", (32, 1)), [("Float32", (s,), (1,), "gmem", 4) for s in (one, other)])
        )

    assert shared("a", "a") == shared("b", "b") != shared("a", "b") == shared("b", "a")


def test_arguments_of_every_kind_have_keys_of_their_own(dsl, key):
    cutlass, runtime = dsl.cutlass, dsl.runtime
    torch = importlib.import_module("torch")
    arguments = [
        cutlass.Float32(0), cutlass.Float32(1), cutlass.Int32(0), cutlass.Int64(0), cutlass.Float32,
        cutlass.BFloat16, torch.float32, torch.bfloat16, 0, False, 0.0, -0.0, None, "0", (0,), [0],
        dsl.typing.SymInt(32), dsl.typing.SymInt(64), cutlass.AddressSpace.gmem, cutlass.AddressSpace.smem,
        runtime.make_fake_stream(), runtime.make_fake_stream(use_tvm_ffi_env_stream=True),
        runtime.make_fake_compact_tensor(cutlass.Float32, (4, 8)),
        runtime.make_fake_compact_tensor(cutlass.Float32, (4, 8), stride_order=(1, 0)),
    ]  # fmt: skip
    keys = [key(argument) for argument in arguments]
    assert len(set(keys)) == len(keys)
    assert keys == [key(argument) for argument in arguments]
    assert key(0, 1) != key(1, 0) != key((1, 0))


def test_what_cannot_be_told_has_no_key(dsl, key, module):
    torch = importlib.import_module("torch")
    loose = python_file.execute_file  # of a module that is no library
    array = importlib.import_module("cutlass.runtime")._fake_array_cls()(dsl.cutlass.Float32, (4,), stride=(1,))
    for argument in (
        object(),
        lambda x: x,
        torch.ones(1),
        {1},
        module.made(3),
        itertools.count(),
        loose,
        [[].append],
        array,
    ):
        with pytest.raises(NoKey):
            key(argument)
    endless = []
    endless.append(endless)
    with pytest.raises(NoKey):
        key(endless)
    with pytest.raises(NoKey):
        cache_key.function_key("digest", module, module.made(3), (), OPTIONS)


def test_what_a_function_sees_is_part_of_its_key(key, module, write):
    before = key()
    again = python_file.execute_file(write(SOURCE, "v1.py"))
    assert key(of=again) == before  # under another name
    for change in (
        lambda: module.TILE.update({None: [9]}),
        lambda: setattr(module, "TILE", 4),
        lambda: setattr(module.Shape, "ROWS", 8),
        lambda: setattr(module.plain, "__defaults__", (3,)),
        lambda: setattr(module, "more", None),
    ):
        change()
        assert key() != before
        before = key()
    module.scale = module.made(3)
    with pytest.raises(NoKey):
        key()
    module.scale = sys.modules["warpsmith"]
    with pytest.raises(NoKey, match="warpsmith"):
        key()


def test_what_surrounds_the_compiler_is_part_of_the_key(key, monkeypatch, dsl):
    settings = importlib.import_module("cutlass.cutlass_dsl").CuTeDSL._get_dsl().envar
    before = key()
    assert key(source="another") != before
    assert key(options=f"{OPTIONS} --opt-level 2") != key(options=f"{OPTIONS} --opt-level 3")
    for owner, name, other in (
        (cache_key, "cpu_features", lambda: "flags: fpu"),
        (cache_key, "_installation", lambda: ("4.9.0",)),
        (cache_key, "_device", lambda: ("NVIDIA H200", "9", "0", "132", "1")),
        (settings, "_arch", "sm_80"),
        (settings, "lineinfo", True),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(owner, name, other)
            assert key() != before, name
    for name in ("CUTE_DSL_ARCH", "CUTE_DSL_LINEINFO", "CUTE_DSL_NEW"):
        with monkeypatch.context() as changed:
            changed.setenv(name, "sm_120a")
            assert key() != before, name
    assert key() == before


@pytest.mark.parametrize(
    "variable", ["CUTE_DSL_KEEP", "CUTE_DSL_PRINT_IR", "CUTE_DSL_COMPILER_OPT", "CUTE_DSL_DUMP_DIR"]
)
def test_who_looks_at_the_compiler_gets_it_to_run(key, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(NoKey):
        key()


@pytest.mark.parametrize(
    "options", ["--keep-ptx", "--host-target linux-aarch64", "--dump-dir=/tmp", "--device-target"]
)
def test_options_with_effects_of_their_own_have_no_key(key, options):
    with pytest.raises(NoKey, match=options):
        key(options=f"{OPTIONS} {options}")


def test_another_release_of_the_dsl_goes_without(key, monkeypatch, dsl):
    monkeypatch.delattr(importlib.import_module("cutlass.base_dsl").BaseDSL, "_get_dsl")
    with pytest.raises(NoKey):
        key()
