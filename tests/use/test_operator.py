"""The best version as a function: registered with PyTorch, its gradient where defined, else the reference."""

from __future__ import annotations

import errno
import inspect
import json
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from use_samples import BACKWARD

from warpsmith import best
from warpsmith.errors import BadDefinition, CorruptRecord, LeftOut, MachineLacks, MissingInput
from warpsmith.lab.machine import system
from warpsmith.languages.base import BuildFailed
from warpsmith.use import choice, operator
from warpsmith.use.choice import BestVersion

MOST_SECONDS = 0.5
"""From the first `best` to its first result, libraries built before."""

MOST_OVERHEAD = 100e-6
"""Seconds that a call through PyTorch's dispatcher may cost beyond the version's own; 20e-6 on a busy machine."""


def version(x, bias, scale):
    y = x * scale + bias
    sums = torch.zeros(4 * ((x.shape[0] + 3) // 4), dtype=torch.float64)
    sums[: x.shape[0]] = y.sum(-1).double()
    return y, sums


def given(x, bias, scale, y, sums):
    for place, value in zip((y, sums), version(x, bias, scale), strict=True):
        place.copy_(value)


def inputs(rows=3, cols=8, dtype=torch.float32, **options):
    return torch.randn(rows, cols, dtype=dtype, **options), torch.randn(cols, dtype=dtype, **options), 0.5


def same(found, *arguments):
    expected = version(*arguments)
    return all(torch.allclose(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(("outputs", "run"), [("returned", version), ("given", given)])
def test_the_version_runs_behind_the_definitions_signature(shop, outputs, run):
    shop.define(f"affine_{outputs}", outputs=outputs)
    shop.accept(f"affine_{outputs}", run)
    function = best(f"affine_{outputs}")
    arguments = inputs()
    assert same(function(*arguments), *arguments)
    x, bias, _ = arguments
    assert same(function(x, bias=bias), x, bias, 2.0)  # the definition's value
    assert len(shop.calls) == 2
    assert str(inspect.signature(function)) == "(x, bias, scale=2.0)"
    assert function.__name__ == f"affine_{outputs}"
    assert function.solution == "toy/v3"
    assert best(f"affine_{outputs}") is function


def test_pytorch_checks_schema_shapes_and_dispatch(shop):
    shop.define("affine_checked")
    shop.accept("affine_checked", version)
    best("affine_checked")
    (name,) = (name for name in dir(torch.ops.warpsmith) if name.startswith("affine_checked_toy_v3_"))
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(getattr(torch.ops.warpsmith, name).default, inputs(), test_utils=checks)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_whole_graph_compiles(shop, dynamic):
    shop.define(f"affine_compiled_{int(dynamic)}", more=BACKWARD)
    shop.accept(f"affine_compiled_{int(dynamic)}", version)
    function = best(f"affine_compiled_{int(dynamic)}")
    compiled = torch.compile(lambda *a: function(*a)[0] * 3, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for rows in (3, 6):
        arguments = inputs(rows)
        assert torch.allclose(compiled(*arguments), version(*arguments)[0] * 3)
    assert shop.calls


def test_gradients_are_the_definitions(shop):
    shop.define("affine_backward", more=BACKWARD)
    shop.accept("affine_backward", version)
    function = best("affine_backward")
    x, bias, scale = inputs(dtype=torch.float32, requires_grad=True)
    y, sums = function(x, bias, scale)
    (y.square().sum() + sums.sum().float()).backward()
    found, (x.grad, bias.grad) = (x.grad, bias.grad), (None, None)
    y, sums = version(x, bias, scale)
    (y.square().sum() + sums.sum().float()).backward()
    assert all(torch.allclose(one, other) for one, other in zip(found, (x.grad, bias.grad), strict=True))
    assert len(shop.calls) == 1


def test_a_backward_that_forgets_an_input(shop):
    shop.define("affine_short", more="def backward(x, bias, scale, dy, dsums):\n    return dy\n")
    shop.accept("affine_short", version)
    x, bias, scale = inputs(requires_grad=True)
    with pytest.raises(BadDefinition, match="backward returns 1 gradients, not 2"):
        best("affine_short")(x, bias, scale)[0].sum().backward()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (inputs(dtype=torch.float64), "`x` is torch.float64"),
        ((torch.randn(2, 3, 8), torch.randn(8), 2.0), "`x` has 3 axes, not 2"),
        ((torch.randn(2, 8), torch.randn(1), 2.0), "`bias` has 1 elements along an axis that must have 8"),
        ((torch.randn(2, 6), torch.randn(6), 2.0), "`x` has 6 elements along an axis that must have 4"),
        ((torch.randn(0, 8), torch.randn(8), 2.0), "`x` is empty"),
        ((torch.randn(2, 8), torch.randn(8), -2.0), "`scale` is -2.0, judged from 0.125 to 32"),
        (inputs(requires_grad=True), "a gradient is requested"),
    ],
)
def test_what_no_version_was_judged_at_goes_to_the_reference_with_one_warning(shop, arguments, why):
    shop.define("affine_other")
    shop.accept("affine_other", version)
    function = best("affine_other")
    with pytest.warns(UserWarning, match=why) as caught:
        found = function(*arguments)
    assert (len(caught), Path(caught[0].filename)) == (1, Path(__file__))
    assert found[0].shape == arguments[0].shape
    function(*arguments)  # a second warning would be an error
    assert shop.calls == []


def test_strided_tensors_are_copied_where_versions_were_judged_at_plain_ones(shop):
    shop.define("affine_strided")
    shop.accept("affine_strided", version)
    x = torch.randn(8, 3).t()
    assert same(best("affine_strided")(x, torch.ones(8), 2.0), x, torch.ones(8), 2.0)
    assert shop.calls[0][0].is_contiguous()


def test_parts_of_tensors_that_begin_anywhere_are_copied(shop):
    shop.define("affine_parts")
    shop.accept("affine_parts", version)
    whole = torch.randn(4 * 8 + 1)
    for first, copied in ((0, False), (1, True)):
        x = whole[first : first + 32].view(4, 8)
        assert same(best("affine_parts")(x, torch.ones(8), 2.0), x, torch.ones(8), 2.0)
        assert (shop.calls[-1][0].data_ptr() != x.data_ptr()) == copied
        assert shop.calls[-1][0].data_ptr() % 64 == 0


@pytest.mark.parametrize(
    ("target", "lacks", "why"),
    [
        ("h200", None, "no version was accepted for the CPU"),
        ("cpu", "No C++ compiler is on PATH.", "No C.. compiler is on PATH; its reference"),
    ],
)
def test_where_no_version_can_run_the_reference_does_with_one_warning(shop, target, lacks, why):
    shop.define("affine_elsewhere")
    shop.accept("affine_elsewhere", version, target)
    shop.lacks = lacks
    with pytest.warns(UserWarning, match=f"affine_elsewhere: {why}") as caught:
        function = best("affine_elsewhere")
    assert (len(caught), Path(caught[0].filename)) == (1, Path(__file__))
    assert function.solution == "reference"
    x, bias, _ = inputs(requires_grad=True)
    assert function(x, bias=bias)[0].requires_grad
    best("affine_elsewhere")
    assert shop.calls == []


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


BROKEN = {
    "a record": (choice, "rank_versions", CorruptRecord("record.json is torn; run `warpsmith resume`.")),
    "a folder": (choice, "rank_versions", PermissionError(errno.EACCES, "Permission denied", "devlog")),
    "a page": (choice, "target_of_device", UnicodeDecodeError("utf-8", b"x", 0, 1, "invalid start byte")),
    "a bug": (choice, "rank_versions", ZeroDivisionError()),
    "a full disk": (operator, "_load_version", OSError(errno.ENOSPC, "No space left on device")),
    "a failed build": (operator, "_load_version", BuildFailed("v3.toy does not compile")),
    "a source": (operator, "_load_version", SyntaxError("invalid syntax")),
    "no folder for temporary files": (
        operator,
        "_cache_folder",
        FileNotFoundError("No usable temporary directory"),
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_whatever_is_broken_the_reference_runs_with_one_warning(shop, broken, monkeypatch):
    name = f"affine_{broken.replace(' ', '_')}"
    shop.define(name)
    shop.accept(name, version)
    owner, attribute, error = BROKEN[broken]
    monkeypatch.setattr(owner, attribute, raising(error))
    reason = re.escape(str(error).rstrip(".") or "ZeroDivisionError")
    with pytest.warns(UserWarning, match=rf"{name}: {reason}; its reference runs") as caught:
        function = best(name)
    assert (len(caught), Path(caught[0].filename)) == (1, Path(__file__))
    assert same(function(*(arguments := inputs())), *arguments)
    assert shop.calls == []


def test_what_is_left_out_is_in_the_one_warning(shop, monkeypatch):
    def rank(*_: object) -> dict[str, list[BestVersion]]:
        for _ in range(2):
            warnings.warn("record.json is torn.", LeftOut, stacklevel=1)
        return ranked

    ranked: dict[str, list[BestVersion]] = {}
    monkeypatch.setattr(choice, "rank_versions", rank)
    shop.define("affine_left_out")
    with pytest.warns(
        UserWarning, match="record.json is torn. no version was accepted .*; its reference"
    ) as caught:
        best("affine_left_out")
    assert len(caught) == 1
    shop.define("affine_left_over")
    shop.accept("affine_left_over", version)
    ranked |= shop._chosen["affine_left_over"]
    with pytest.warns(LeftOut, match="record.json is torn") as caught:
        function = best("affine_left_over")
    assert (len(caught), function.solution) == (1, "toy/v3")


def test_a_version_that_fails_at_its_first_call_gives_way_to_the_reference(shop, monkeypatch):
    shop.define("affine_first")
    shop.accept("affine_first", raising(OSError(errno.ENOSPC, "No space left on device")))
    function, arguments = best("affine_first"), inputs()
    with pytest.warns(
        UserWarning, match=r"toy/v3 failed at its first call: .*No space left .*; its reference runs"
    ):
        assert same(function(*arguments), *arguments)
    assert same(function(*arguments), *arguments)
    assert len(shop.calls) == 1
    monkeypatch.setattr(operator, "RETRY_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="failed at its first call"):
        function(*arguments)
    assert len(shop.calls) == 2


def test_a_fault_that_passes_is_tried_again(shop, monkeypatch):
    shop.define("affine_passing")
    shop.accept("affine_passing", version)
    choose = operator.best_accepted

    def fail(*_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(operator, "best_accepted", fail)
    with pytest.warns(UserWarning, match="Stale file handle"):
        assert best("affine_passing").solution == "reference"
    monkeypatch.setattr(operator, "best_accepted", choose)
    assert best("affine_passing").solution == "reference"
    monkeypatch.setattr(operator, "RETRY_SECONDS", 0.0)
    assert best("affine_passing").solution == "toy/v3"


def test_what_is_measured_never_gives_way_to_the_reference(shop):
    shop.define("affine_measured")
    shop.accept("affine_measured", raising(OSError(errno.ENOSPC, "No space left on device")))
    file = operator.definition_file.load_definition(shop.project.definition_path("affine_measured"))
    function = operator.best_accepted(shop.project, file, "cpu")
    with pytest.raises(OSError, match="No space left"):
        function(*inputs())


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("out of memory"), RuntimeError("at the second call")])
def test_errors_that_the_reference_cannot_mend_reach_the_program(shop, error):
    def fail(*arguments: Any) -> Any:
        if isinstance(error, torch.OutOfMemoryError) or len(shop.calls) > 1:
            raise error
        return version(*arguments)

    name = f"affine_{type(error).__name__.lower()}"
    shop.define(name)
    shop.accept(name, fail)
    function, arguments = best(name), inputs()
    if type(error) is RuntimeError:
        assert same(function(*arguments), *arguments)
    with pytest.raises(type(error)):
        function(*arguments)


def test_the_next_best_version_runs_where_the_best_one_lacks_something(shop):
    shop.define("affine_spare")
    shop.accept("affine_spare", lambda *_: pytest.fail("it lacks its compiler"))
    shop.accept("affine_spare", version, language="spare")
    shop.lacks = "No C++ compiler is on PATH."
    why = r"affine_spare: toy/v3: No C\+\+ compiler is on PATH; spare/v3 runs instead\."
    with pytest.warns(UserWarning, match=why) as caught:
        function = best("affine_spare")
    assert (len(caught), Path(caught[0].filename)) == (1, Path(__file__))
    assert function.solution == "spare/v3"
    assert same(function(*(arguments := inputs())), *arguments)
    assert len(shop.calls) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(shop):
    shop.define("affine_nowhere")
    with pytest.warns(UserWarning, match="PyTorch has no GPU on this machine; its reference"):
        assert same(best("affine_nowhere", "cuda")(*(arguments := inputs())), *arguments)


def test_a_result_whose_size_is_in_no_input(shop):
    shop.define("affine_unsized")
    path = shop.project.definition_path("affine_unsized")
    text = (
        path.read_text().replace('"4 * ((rows + 3) // 4)"', '"more"').replace('"rows": 4', '"rows": 4, "more": 4')
    )
    path.write_text(text.replace('"rows": "rows"', '"rows": "rows", "more": "in no input"'))
    shop.accept("affine_unsized", version)
    with pytest.raises(BadDefinition, match="the size of an output: `more` uses `more`"):
        best("affine_unsized")


def test_an_axis_that_only_a_product_shows(shop):
    shop.define("affine_grouped")
    path = shop.project.definition_path("affine_grouped")
    text = path.read_text().replace('"rows": "rows"', '"heads": "heads", "group": "rows of a head"')
    text = text.replace('"rows": 4', '"heads": 2, "group": 2').replace('("rows", "4', '("heads * group", "4')
    text = text.replace('"scale": Sc', '"z": TensorSpec(shape=("heads",)), "scale": Sc')
    text = text.replace("((rows + 3) // 4)", "((heads * group + 3) // 4)").replace(
        "rows * groups", "heads * groups"
    )
    path.write_text(text.replace("reference(x, bias, scale)", "reference(x, bias, z, scale)"))
    shop.accept("affine_grouped", lambda x, bias, z, scale: version(x, bias, scale))
    function, (x, bias, scale) = best("affine_grouped"), inputs(rows=6)
    y, sums = function(x, bias, torch.zeros(3), scale)
    assert (y.shape, sums.shape) == (x.shape, (8,))
    with pytest.warns(UserWarning, match=r"`x` has 6 elements along an axis that must have heads \* group"):
        function(x, bias, torch.zeros(4), scale)
    with torch._subclasses.FakeTensorMode() as mode:
        fakes = [mode.from_tensor(x), mode.from_tensor(bias), mode.from_tensor(torch.zeros(3)), scale]
        assert function(*fakes)[1].shape[0] == 8


def test_wrong_arguments_are_a_type_error(shop):
    shop.define("affine_wrong")
    shop.accept("affine_wrong", version)
    x, bias, scale = inputs()
    for arguments, named in (((x,), {}), ((x, bias, scale, 1), {}), ((x, bias), {"alpha": 1})):
        with pytest.raises(TypeError, match="argument"):
            best("affine_wrong")(*arguments, **named)


def test_an_unknown_operator(shop, nothing_shipped):
    shop.define("affine")
    with pytest.raises(MissingInput, match="No operator `nope`; there are: affine"):
        best("nope")


def test_a_call_costs_little(shop):
    shop.define("affine_cheap")
    shop.accept("affine_cheap", lambda x, bias, scale: (x, bias.double()))
    function, (x, bias, scale) = best("affine_cheap"), inputs()
    fresh = torch.empty(3, 8)

    def least(call):
        times = []
        for _ in range(30):
            started = time.thread_time()
            for _ in range(30):
                call()
            times.append((time.thread_time() - started) / 30)
        return min(times)

    overhead = least(lambda: function(x, bias, scale)) - least(lambda: (fresh, bias.double()))
    assert overhead < MOST_OVERHEAD


@pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
def test_the_shipped_rmsnorm_is_ready_at_once(tmp_path):
    code = """
import json, os, sys, warnings
import warpsmith
light = not {"torch", "pydantic"} & set(sys.modules)
import torch
from warpsmith import best
x, weight = torch.randn(5, 1000), torch.randn(1000)
started = sum(os.times()[:4])
y = best("rmsnorm")(x, weight)
seconds = sum(os.times()[:4]) - started
right = torch.allclose(y, torch.nn.functional.rms_norm(x, (1000,), weight, 1e-6), atol=1e-5)
print(json.dumps([light, right, seconds]))
"""
    times = []
    for _ in range(3):
        command = [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        light, right, seconds = json.loads(done.stdout or "[0, 0, 0]")
        assert (light, right) == (True, True), done.stderr
        times.append(seconds)
        if seconds < MOST_SECONDS:
            return
    pytest.fail(f"best('rmsnorm') took {times} s")


def test_no_warning_where_the_best_version_runs(shop):
    shop.define("affine_quiet")
    shop.accept("affine_quiet", version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best("affine_quiet")(*inputs())
    assert choice.find_owning_project("affine_quiet").root == shop.project.root


BLOCKS = {
    "ScalarSpec(value=2.0)": 'ScalarSpec(value=2.0), "block_size": ScalarSpec(type="int", value=2)',
    '"rows": "rows"': '"rows": "rows", "block": "rows of a block"',
    '"4 * ((rows + 3) // 4)"': '"block * ((rows + block - 1) // block)"',
    'workloads=(Workload(name="small", axes={"rows": 4, "groups": 2}),)': "workloads=(WORKLOADS)",
    "reference(x, bias, scale)": "reference(x, bias, scale, block_size)",
    "-y.shape[0] % 4": "-y.shape[0] % block_size",
}
WORKLOADS = ", ".join(
    f'Workload(name="{size}", axes={{"rows": 4, "groups": 2, "block": {size}}}, scalars={{"block_size": {size}}})'
    for size in (2, 4)
)


def test_an_integer_that_equals_an_axis_at_every_workload_is_its_size(shop):
    shop.define("affine_blocks")
    path = shop.project.definition_path("affine_blocks")
    text = path.read_text()
    for old, new in BLOCKS.items():
        assert old in text
        text = text.replace(old, new.replace("WORKLOADS", WORKLOADS))
    path.write_text(text)
    shop.accept("affine_blocks", lambda x, bias, scale, block_size: (x, x.new_zeros(8, dtype=torch.float64)))
    function, (x, bias, scale) = best("affine_blocks"), inputs(rows=7)
    with torch._subclasses.FakeTensorMode() as mode:
        fakes = [mode.from_tensor(x), mode.from_tensor(bias), scale]
        assert [function(*fakes, block_size=size)[1].shape[0] for size in (2, 4, 5)] == [8, 8, 10]


def test_where_no_home_can_be_written_what_is_compiled_goes_with_the_process(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert operator._cache_folder() == tmp_path / "cache" / "warpsmith" / "built"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    own = operator._cache_folder()
    assert not own.is_relative_to(tmp_path)
    assert own.is_dir()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(
        operator.Path, "home", Mock(side_effect=RuntimeError("Could not determine home directory."))
    )
    assert operator._cache_folder() == own


def test_what_a_read_only_cache_has_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = operator._cache_folder()
    (kept / "cpp").mkdir()
    (kept / "cpp" / "affine.so").write_bytes(b"compiled")
    for path in (kept / "cpp" / "affine.so", kept / "cpp", kept):
        path.chmod(path.stat().st_mode & ~0o222)
    monkeypatch.setattr(operator.os, "access", lambda *_: False)  # root may write everywhere
    own = operator._cache_folder()
    assert not own.is_relative_to(tmp_path)
    assert (own / "cpp" / "affine.so").read_bytes() == b"compiled"
    (own / "cpp" / "affine.so").write_bytes(b"anew")
    assert operator._cache_folder() == own


def test_without_torch_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MachineLacks, match=r"needs PyTorch, which is not installed: run `.*torch>="):
        best("softmax")
