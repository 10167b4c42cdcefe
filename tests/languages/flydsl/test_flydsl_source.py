"""What deserves a look in FlyDSL source, and the file to start from."""

from __future__ import annotations

import pytest

from warpsmith.languages.flydsl.language import LANGUAGE

SOURCE = '''
import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

@flyc.kernel
def twice(x: fx.Tensor, y: fx.Tensor):
    """Twice x."""
    y[fx.thread_idx.x] = x[fx.thread_idx.x] * 2

@flyc.jit
def launch(x: fx.Tensor, y: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    twice(x, y).launch(grid=(1,), block=(64,), stream=stream)

def run(x):
    y = torch.empty_like(x)
    launch(x, y, fx.Stream(torch.cuda.current_stream().cuda_stream))
    return y
'''


def test_a_plain_version_has_no_findings():
    assert LANGUAGE.findings(SOURCE) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    return x @ x\n", "`x @ x` calls a library's kernel"),
        ("    return torch.softmax(x, 1)\n", "`torch.softmax` calls a library's kernel"),
        ("    from flydsl.autotune import autotune\n", "`flydsl.autotune.autotune` measures inside the call"),
        ("    from flydsl import autotune\n", "`flydsl.autotune` measures inside the call"),
        ("    from flydsl._mlir import ir\n", "`flydsl._mlir.ir` reaches into FlyDSL"),
        ("    from flydsl.compiler import link_utils\n", "`flydsl.compiler.link_utils` links code"),
        ("    import aiter\n", "`aiter` calls a library's kernel"),
        ("    from hip import hip\n", "`hip.hip` reaches past FlyDSL"),
        ("    import triton.language as tl\n", "`triton.language` is another language"),
        ("    try: launch(x, y)\n    except Exception: pass\n", "`try` wraps a kernel launch"),
    ],
)
def test_what_deserves_a_look(line, said):
    where = f"line {len(SOURCE.splitlines()) + 1}: "
    assert any(finding.startswith(where + said) for finding in LANGUAGE.findings(SOURCE + line))


def test_names_that_only_begin_alike_are_none():
    assert LANGUAGE.findings(f"import hipster\nimport flydsl.autotuned\n{SOURCE}") == []


def test_a_file_that_does_not_parse_has_no_findings():
    assert LANGUAGE.findings("def run(x:\n") == []


def test_comments_and_layout_are_no_change():
    changed = SOURCE.replace('"""Twice x."""', "# two").replace("\n\n", "\n\n\n")
    assert LANGUAGE.normalise(changed) == LANGUAGE.normalise(SOURCE)
    assert LANGUAGE.normalise(SOURCE.replace("* 2", "* 3")) != LANGUAGE.normalise(SOURCE)


def test_template_says_what_to_write(write, rmsnorm, tmp_path):
    source = LANGUAGE.template(rmsnorm)
    LANGUAGE.build(write(source, "v1.py"), rmsnorm, tmp_path)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in source
    assert "import flydsl.expr as fx" in source
    assert "launch it here and return y" in source
    assert LANGUAGE.findings(source) == []
