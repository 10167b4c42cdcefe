"""What deserves a look in cuTile source, and the file to start from."""

from __future__ import annotations

import pytest

from warpsmith.languages.cutile.language import LANGUAGE

KERNEL = '''
import cuda.tile as ct
import torch

@ct.kernel(num_worker_warps=8)
def product(a, b, c):
    """A matrix product."""
    acc = ct.full((128, 128), 0.0, ct.float32)
    acc = ct.matmul(ct.load(a, (0, 0), (128, 64)), ct.load(b, (0, 0), (64, 128))) + acc
    ct.store(c, (0, 0), ct.load(a, (0, 0), (128, 64)) @ ct.load(b, (0, 0), (64, 128)))

@ct.function
def helper(tile):
    return ct.softmax(tile)

def run(a, b):
    c = torch.empty(128, 128)
    ct.launch(torch.cuda.current_stream(), (1,), product, (a, b, c))
    return c
'''


def test_what_a_kernel_computes_is_its_own():
    assert LANGUAGE.findings(KERNEL) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    return a @ b\n", "`a @ b` calls a library's kernel"),
        ("    return torch.softmax(a, 1)\n", "`torch.softmax` calls a library's kernel"),
        ("    ct.tune.exhaustive_search([], None)\n", "`cuda.tile.tune` measures inside the call"),
        (
            "    from cuda.tile.tune import exhaustive_search\n",
            "`cuda.tile.tune.exhaustive_search` measures",
        ),
        ("    import cuda.tile._compile\n", "`cuda.tile._compile` reaches into cuTile"),
        ("    from cuda.bindings import driver\n", "`cuda.bindings.driver` reaches past cuTile"),
        ("    import triton.language as tl\n", "`triton.language` is another language"),
        ("    try: ct.launch(0, (1,), product, ())\n    except Exception: pass\n", "`try` wraps"),
    ],
)
def test_what_deserves_a_look(line, said):
    where = f"line {len(KERNEL.splitlines()) + 1}: "
    assert any(found.startswith(where + said) for found in LANGUAGE.findings(KERNEL + line))


def test_a_file_that_does_not_parse_has_no_findings():
    assert LANGUAGE.findings("def run(x:\n") == []


def test_comments_and_layout_are_no_change():
    changed = KERNEL.replace('"""A matrix product."""', "# the sum\n").replace("\n\n", "\n\n\n")
    assert LANGUAGE.normalise(changed) == LANGUAGE.normalise(KERNEL)
    assert LANGUAGE.normalise(KERNEL.replace("128, 64", "128, 32")) != LANGUAGE.normalise(KERNEL)


def test_template_says_what_to_write(write, rmsnorm, tmp_path):
    source = LANGUAGE.template(rmsnorm)
    LANGUAGE.build(write(source, "v1.py"), rmsnorm, tmp_path)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in source
    assert "import cuda.tile as ct" in source
    assert "launch it here and return y" in source
    assert LANGUAGE.findings(source) == []
