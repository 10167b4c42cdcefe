"""What CuTe DSL compiled for a user is compiled once; in a judgement each candidate compiles for itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_cutedsl import example, needs_cutedsl

pytestmark = needs_cutedsl

LOADS = """
import json, sys
from dataclasses import replace
from pathlib import Path
import torch
from warpsmith.languages.base import Build
from warpsmith.languages.cutedsl import LANGUAGE

import cutlass.cute as cute
path, kept = Path(sys.argv[1]), Path(sys.argv[2])
compiler, compilations = type(cute.compile), []
compile_ = compiler._compile

def counted(self, *args, **named):
    compilations.append(args[0].__name__)
    return compile_(self, *args, **named)

compiler._compile = counted

def load(kept=kept, path=path):
    return LANGUAGE.load(Build(path, path, (), kept=kept), None).__globals__

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
for spoilt in (content[:-1], content[:100], b"", b"nonsense"):
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

from warpsmith.languages import cutedsl_kept
cutedsl_kept.MOST_BYTES = 1
assert loaded(cols=512)[1] == 1
assert objects() == []
blocked = kept / "file"
blocked.write_text("")
assert [loaded(kept=blocked)[1] for _ in "ab"] == [1, 1]
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
from warpsmith.languages import cutedsl_kept, python_file
mine = vars(python_file.execute(path))
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


@pytest.mark.parametrize("code", [SPOILT, DECIDES, OTHERS], ids=["spoilt", "decides", "others"])
def test_in_one_process(process, code):
    process(code)
