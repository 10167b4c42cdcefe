"""Hashes of machine code: equal for equal code, whatever the file is called, and different for other code."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest
from lab_samples import HONEST, SQUARE, kernel

from warpsmith import languages
from warpsmith.lab.tuning import machine_code


@pytest.fixture
def built(workshop, tmp_path):
    """`built(folder, source)`: the shared library of a C++ version."""
    definition = workshop.load("square", SQUARE).definition

    def build(folder, source):
        path = tmp_path / folder / "v1.cpp"
        path.parent.mkdir()
        path.write_text(source)
        return languages.get("cpp").build(path, definition, path.parent).artifact

    return build


def test_libraries(built):
    one = machine_code.code_digest([built("one", kernel(HONEST))])
    same = built("same", kernel(HONEST, before="// a comment\nconstexpr int UNUSED = 3;\n"))
    assert one is not None
    assert machine_code.code_digest([same]) == one
    assert machine_code.code_digest([same.parent]) == one, "a folder is looked through"
    assert machine_code.code_digest([built("other", kernel(HONEST.replace("*", "+")))]) != one


def test_what_is_no_code(tmp_path):
    assert machine_code.code_digest([tmp_path]) is None
    (tmp_path / "a.txt").write_text("text")
    assert machine_code.code_digest([tmp_path]) is None
    for content in (b"text", b"\x7fELF\x02\x01 torn", b""):
        (tmp_path / "a.so").write_bytes(content)
        assert machine_code.code_digest([tmp_path])


def test_kernels_of_a_gpu(tmp_path):
    """Triton writes the source's file and lines into its cubins; these must not count."""
    pytest.importorskip("triton")
    script = """\
        import sys
        from pathlib import Path
        import triton, triton.language as tl
        from triton.compiler import ASTSource
        from triton.backends.compiler import GPUTarget

        @triton.jit
        def copy(x, y, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

        for stages, block in ((1, 256), (3, 256), (1, 512)):
            types = {"x": "*fp32", "y": "*fp32", "n": "i32"}
            source = ASTSource(copy, types, constexprs={"BLOCK": block})
            made = triton.compile(source, GPUTarget("cuda", 90, 32), options={"num_stages": stages})
            Path(sys.argv[1], f"{stages}-{block}.cubin").write_bytes(made.asm["cubin"])
    """
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / f"{name}.py"
        path.write_text("#\n" * (name == "b") + dedent(script))
        environment = {"TRITON_CACHE_DIR": str(folder / "cache"), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
        subprocess.run([sys.executable, path, folder], check=True, env=environment, timeout=100)
    a, b = ({path.name: machine_code.code_digest([path]) for path in (tmp_path / n).glob("*.cubin")} for n in "ab")
    assert a == b
    assert a["1-256.cubin"] == a["3-256.cubin"] != a["1-512.cubin"]
    assert (tmp_path / "a/1-256.cubin").read_bytes() != (tmp_path / "b/1-256.cubin").read_bytes()
