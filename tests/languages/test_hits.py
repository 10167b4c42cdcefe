"""Counters of exported versions, as a serving process runs them."""

import os
import subprocess
import sys

import pytest

from warpsmith.languages import hits
from warpsmith.languages.shared import cxx_compiler

needs_compiler = pytest.mark.skipif(cxx_compiler.find_cxx_compiler() is None, reason="no C++ compiler")

CALLS = "import sys; sys.path.insert(0, '.'); from made.hits import run; print([run(i, 2) for i in range(5)][-1])"

MAIN = "\nint main() {\n  for (int i = 0; i < 5; ++i) {\n" + hits.COUNTER_CALL + "  }\n}\n"


def counts(path):
    """Name and calls of each line, without the process."""
    return [line.split()[1:] for line in path.read_text().splitlines()]


EXPECTED = [["op_v1", "1"], ["op_v1", "2"], ["op_v1", "4"], ["op_v1", "5"]]


def test_python_counts_at_powers_of_two_and_at_the_end(tmp_path):
    made, path = tmp_path / "made", tmp_path / "hits.txt"
    made.mkdir()
    (made / "v1.py").write_text("def run(number, _calls):\n    return number * _calls\n")
    (made / hits.PYTHON_COUNTER).write_text(hits.python_counter("v1", ("number", "_calls"), "op_v1"))
    command = [sys.executable, "-c", CALLS]
    silent = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (silent.stdout, path.exists()) == ("8\n", False)
    environment = os.environ | {"WARPSMITH_HITS": str(path)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert counts(path) == EXPECTED


@needs_compiler
def test_cpp_counts_alike(tmp_path):
    source, path = tmp_path / "main.cpp", tmp_path / "hits.txt"
    source.write_text(hits.COUNTER_INCLUDES + hits.cpp_counter("op_v1") + MAIN)
    program = tmp_path / "main"
    compiler = cxx_compiler.find_cxx_compiler()
    subprocess.run([*compiler, "-std=c++17", source, "-o", program], check=True)
    subprocess.run([program], check=True)
    assert not path.exists()
    subprocess.run([program], env=os.environ | {"WARPSMITH_HITS": str(path)}, check=True)
    assert counts(path) == EXPECTED
