"""What CuTe DSL compiled for a user is compiled once; in a judgement each candidate compiles for itself."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock, call

import pytest
from test_cutedsl import example, needs_cutedsl

from warpsmith.languages.cutedsl import function_cache

LOADS = """
import json, sys
from dataclasses import replace
from pathlib import Path
import torch
from warpsmith.languages.base import Build
from warpsmith.languages.cutedsl.language import LANGUAGE

import cutlass.cute as cute
path, kept = Path(sys.argv[1]), Path(sys.argv[2])
compiler, compilations = type(cute.compile), []
compile_ = compiler._compile

def counted(self, *args, **named):
    compilations.append(args[0].__name__)
    return compile_(self, *args, **named)

compiler._compile = counted

def load(kept=kept, path=path):
    return LANGUAGE.load(Build(path, path, (), cache=kept), None).__globals__

def loaded(kept=kept, path=path, cols=1024):
    before = len(compilations)
    function = load(kept, path)["compiled"](torch.float32, cols)
    return function, len(compilations) - before

def objects():
    return sorted((kept / "cutedsl").glob("*"))

def refused(function, *values, **named):
    try:
        function(*values, **named)
    except ValueError as error:
        return str(error)
    raise AssertionError("tensors of the CPU were taken")
"""

TWO_SHAPES = """
x = torch.randn(4, 1024)
one, two = (loaded(cols=cols)[0] for cols in (1024, 2048))
count = len(compilations)
said = [refused(one, x, x, 0.5), refused(two, x, x, 0.5)]
assert said[0] == refused(one, x, y=x, scale=0.5)
assert one.function_name.startswith("cutlass_launch")
print(json.dumps([count, said, len(compilations) - count]))
"""

SPOILT = """
import hashlib
assert loaded()[1] == 1
(good,) = objects()
content = good.read_bytes()
key = good.name.split(".")[0]
flipped = content[:-1] + bytes([content[-1] ^ 1])
for spoilt in (content[:-1], content[:100], flipped, b"", b"nonsense"):
    good.write_bytes(spoilt)
    assert loaded()[1] == 1
    assert objects() == [good]
    assert loaded()[1] == 0

good.unlink()
for nonsense in (b"whole", b""):  # whole, and no object of this function
    good.with_name(f"{key}.{hashlib.sha256(nonsense).hexdigest()}.o").write_bytes(nonsense)
    assert loaded()[1] == 1
    assert objects() == [good]
    good.unlink()
assert loaded()[1] == 1

from warpsmith.languages.shared import object_store
object_store.MAX_BYTES = 1
assert loaded(cols=512)[1] == 1
assert objects() == []
blocked = kept / "file"
blocked.write_text("")
for folder in (blocked, kept / ("x" * 300)):  # a file, and a name that no folder has
    assert [loaded(kept=folder)[1] for _ in "ab"] == [1, 1]
"""

UNWRITABLE = """
import os, pathlib
from unittest.mock import Mock, patch
full = OSError(28, "No space left on device")
with patch.object(os, "replace", Mock(side_effect=full)):
    assert loaded()[1] == 1
assert objects() == []
assert loaded()[1] == 1
(good,) = objects()
good.write_bytes(b"torn")
with patch.object(pathlib.Path, "unlink", Mock(side_effect=PermissionError(13, "read-only"))):
    with patch.object(os, "replace", Mock(side_effect=full)):
        assert loaded()[1] == 1
assert good.read_bytes() == b"torn"
assert loaded()[1] == 1
assert loaded()[1] == 0
"""

ELSEWHERE = """
from types import SimpleNamespace
from unittest.mock import patch
from warpsmith.languages.cutedsl import cache_key
import cutlass.base_dsl.runtime.cuda as runtime

def key(driver=13000, **gpu):
    device = dict(name="H200", major=9, minor=0, multi_processor_count=132, total_memory=1 << 37) | gpu
    version = driver if callable(driver) else lambda: driver
    with (
        patch.multiple(torch.cuda, is_available=lambda: True, current_device=lambda: 0,
                       get_device_properties=lambda _: SimpleNamespace(**device)),
        patch.object(runtime, "get_driver_version", version),
    ):
        return cache_key._surroundings("--enable-tvm-ffi")

keys = [key(), key(driver=13010), key(name="H100"), key(major=10), key(multi_processor_count=131)]
assert len(set(keys)) == len(keys)
assert key() == keys[0]

compiler = cache_key._installation()
cache_key._installation.cache_clear()
import cutlass._mlir._mlir_libs._cutlass_ir as library
other = path.with_name("another.so")
other.write_bytes(b"")
with patch.object(library, "__file__", str(other)):
    assert cache_key._installation() != compiler
cache_key._installation.cache_clear()

def silent():
    raise RuntimeError("the driver does not answer")

with patch.object(cache_key, "_device", silent):
    assert [loaded()[1] for _ in "ab"] == [1, 1]
assert objects() == []
"""

DECIDES = """
assert loaded()[1] == 1
changed = path.with_name("v2.py")
changed.write_text(path.read_text() + "# another\\n")
assert loaded(path=changed)[1] == 1
assert len(objects()) == 2

changed.write_text(path.read_text() + "# a third\\n")
module = load(path=changed)
changed.write_text(path.read_text())  # the compiler reads the file again
module["compiled"](torch.float32, 1024)
assert len(objects()) == 2

module = load()
module["VEC"] = 4  # a kernel may see it
before = len(compilations)
module["compiled"](torch.float32, 1024)
assert len(compilations) - before == 1 and len(objects()) == 3
module["compiled"].cache_clear()
module["VEC"] = torch.ones(1)
module["compiled"](torch.float32, 1024)
assert len(compilations) - before == 2 and len(objects()) == 3

import os
for name, count in {"CUTE_DSL_KEEP": 3, "CUTE_DSL_LINEINFO": 4}.items():
    os.environ[name] = ""
    assert loaded()[1] == 1
    assert len(objects()) == count, name
    del os.environ[name]
assert loaded()[1] == 0
"""

OTHERS = """
from warpsmith.languages.shared import python_file
mine = vars(python_file.execute_file(path))
assert loaded()[1] == 1
before = len(compilations)
mine["compiled"](torch.float32, 1024)  # the user's own, in the process where versions are kept
_, judged = loaded(kept=None)
assert len(compilations) - before == 2 and judged == 1
assert len(objects()) == 1
"""


@pytest.fixture
def process(write, tmp_path):
    """`process(code)`: what a process prints that runs it beside the skill's example and a folder."""
    path = write(example(), "v1.py")

    def run(code: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-c", LOADS + code, path, tmp_path / "kept"],
            capture_output=True, text=True, check=False, env=os.environ | {"CUTE_DSL_ARCH": "sm_90a"},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


@needs_cutedsl
def test_the_second_process_does_not_compile(process, tmp_path):
    compiled, said, after = json.loads(process(TWO_SHAPES))
    assert (compiled, after) == (2, 0)
    kept = sorted(Path(tmp_path, "kept", "cutedsl").iterdir())
    assert len(kept) == 2
    loaded, said_then, compiled_for_keywords = json.loads(process(TWO_SHAPES))
    assert (loaded, compiled_for_keywords) == (0, 1)
    assert said_then == said
    assert "[n0, 1024]" in said[0]
    assert "[n0, 2048]" in said[1]
    assert all("expected device_type=cuda" in line for line in said)
    assert sorted(Path(tmp_path, "kept", "cutedsl").iterdir()) == kept


@needs_cutedsl
@pytest.mark.parametrize("name", ["SPOILT", "UNWRITABLE", "DECIDES", "ELSEWHERE", "OTHERS"])
def test_in_one_process(process, name):
    process(globals()[name])


class Refused(Exception):
    """As CuTe DSL raises it where a call of a compiled function fails on the GPU."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"CUDA Error Code: {code}")
        self.error_code = code


@pytest.fixture
def kept():
    """`kept(code)`: a kept function that fails so on this GPU, and what is called in its place."""

    def make(code: int | None) -> tuple[function_cache.CachedFunction, Mock, Mock]:
        compiled = Mock(return_value="compiled here")
        compile_ = Mock(return_value=compiled)
        return function_cache.CachedFunction(Mock(side_effect=Refused(code)), compile_), compile_, compiled

    return make


@pytest.mark.parametrize("code", [200, 209, 218, 222])
def test_an_object_that_the_gpu_does_not_take_is_compiled(kept, code, caplog):
    function, compile_, compiled = kept(code)
    with caplog.at_level(logging.INFO, "warpsmith"):
        assert [function(1, 2), function(3, 4)] == ["compiled here"] * 2
    assert compile_.call_count == 1
    assert compiled.call_args_list == [call(1, 2), call(3, 4)]
    assert f"CUDA Error Code: {code}" in caplog.text


@pytest.mark.parametrize("code", [None, 1, 700, 719])
def test_what_failed_while_it_ran_is_not_run_again(kept, code):
    """It may have written already: an edit in place would be made twice."""
    function, compile_, _ = kept(code)
    with pytest.raises(Refused):
        function(1, 2)
    assert not compile_.called
