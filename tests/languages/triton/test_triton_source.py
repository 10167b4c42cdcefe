"""Triton as a syntax tree: what counts as the same version, and which lines a reviewer is sent to."""

from __future__ import annotations

import pytest

from warpsmith.languages.shared.python_source import lint_python, normalise_python

HONEST = '''"""Adds; open() and threading in a docstring are nothing."""
import functools

import torch
import triton
import triton.language as tl

CONFIGS = {"small": 64, "large": 128}


@functools.lru_cache
def sms(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(y_ptr + o, tl.softmax(tl.dot(x, x)), mask=o < n)


def run(x):
    aligned = x.data_ptr() % 16 == 0
    y = torch.empty_like(x)
    time = x.numel()
    add[(triton.cdiv(x.numel(), 64),)](x, y, time, BLOCK=64 if aligned else 32)
    return y
'''


def test_honest_source_is_not_named():
    assert lint_python(HONEST) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("CACHE = {}", "outlives"),
        ("import collections; C = collections.OrderedDict()", "outlives"),
        ("from weakref import WeakKeyDictionary as W; C = W()", "outlives"),
        ("@functools.lru_cache(8)\ndef g(x): return x", "keyed by tensors"),
        ("def g(x, c): return c[id(x)]", "by address"),
        ("def g(x, c): return c.get((x.data_ptr(), 1))", "by address"),
        ("def g(x, p): return x.data_ptr() == p", "by address"),
        ("def g(x): s = torch.cuda.Stream()", "streams"),
        ("from torch.cuda import Event as E; e = E()", "streams"),
        ("import threading as t; t.Thread()", "threads"),
        ("torch.backends.cuda.matmul.allow_tf32 = True", "set for the whole process"),
        ("torch.cuda.synchronize = print", "set for the whole process"),
        ("setattr(torch.cuda, 'x', 1)", "set for the whole process"),
        ("import sys; f = sys._getframe(1)", "caller"),
        ("import gc; o = gc.get_objects()", "caller"),
        ("import inspect; s = inspect.stack()", "caller"),
        ("import ctypes; ctypes.memset(0, 0, 1)", "past Python"),
        ("import os; os.system('x')", "processes"),
        ("import subprocess as s; s.run('x')", "processes"),
        ("f = open('x')", "files"),
        ("from time import perf_counter as p; t = p()", "clock"),
        ("def g(x): return torch.matmul(x, x)", "library"),
        ("def g(x): return x @ x", "library"),
        ("def g(x): return x.softmax(-1)", "library"),
        ("import torch.nn.functional as F; y = F.rms_norm", "library"),
        ("run = torch.compile(run)", "another compiler"),
        ("def g(x):\n  try:\n    add[(1,)](x)\n  except Exception: pass", "launch"),
    ],
)
def test_finding_names_its_line(line, word):
    found = lint_python(f"{HONEST}\n{line}\n")
    first = len(HONEST.splitlines()) + 2
    lines = range(first, first + len(line.splitlines()))
    assert any(word in text for text in found)
    assert all(int(text.split(":")[0].removeprefix("line ")) in lines for text in found)


def test_what_does_not_parse_has_no_lint_python():
    assert lint_python("def run(x:") == []


def test_layout_comments_and_docstrings_do_not_count():
    other = HONEST.replace('"""Adds; open() and threading in a docstring are nothing."""', "# none")
    other = other.replace("    return y\n", "\n    return (y)  # done\n").replace(
        "def run(x):", "def run(x):\n    'doc'"
    )
    assert other != HONEST
    assert normalise_python(other) == normalise_python(HONEST)
    assert normalise_python(HONEST.replace("64", "65")) != normalise_python(HONEST)
    assert normalise_python("def f():\n    'only'\n") == normalise_python("def f(): pass")


def test_what_does_not_parse_stays_as_it_is():
    assert normalise_python(" def run(x:\n") == "def run(x:"
