"""Paths that an inline script writes."""

from __future__ import annotations

import pytest

from warpsmith.hooks import scripts


@pytest.mark.parametrize(
    ("code", "paths"),
    [
        ("open('a').read()", []),
        ("open('a', 'r').read()", []),
        ("open('a', 'w').write('b')", ["a"]),
        ("open('a', mode='r+b')", ["a"]),
        ("from pathlib import Path\nPath('a').read_text()", []),
        ("from pathlib import Path\n(Path('a') / 'b').write_text('c')", ["a", "b"]),
        ("p = 'a'\nq = p\nopen(q, 'a')", ["a"]),
        ("import os\nos.replace('a', 'b')", ["a", "b"]),
        ("import shutil\nshutil.copy('a', 'b')", ["b"]),
        ("import shutil\nshutil.rmtree('a')", ["a"]),
        ("print('a'.replace('b', 'c'))", []),
        ("for p in ['a', 'b']: open(p, 'w')", ["a", "b"]),
        ("import sys\nopen(sys.argv[1], 'w').write('a')", ["a", "w"]),
        ("open('a', 'w'", ["a", "w"]),
    ],
)
def test_python(code, paths):
    assert sorted(scripts.script_writes(code, "python")[0]) == paths


@pytest.mark.parametrize(
    ("code", "folders"),
    [
        ("import shutil\nshutil.rmtree('a')", ["a"]),
        ("from os import rename as move\nmove('a', 'b')", ["a"]),
        ("import shutil\nshutil.copytree('a', 'b')", []),
        ("print('a'.replace('b', 'c'))", []),
    ],
)
def test_folders_that_python_takes_away(code, folders):
    assert scripts.script_writes(code, "python")[1] == folders


def test_arguments_of_python():
    code = "import sys\nopen(sys.argv[1], 'w').write('a')"
    assert scripts.script_writes(code, "python", ["-", "b"])[0] == ["-", "b"]


def test_commands_of_python():
    code = "import os, subprocess\nos.system('rm a')\nsubprocess.run(['rm', 'b c'])"
    assert scripts.script_writes(code, "python")[2] == ["rm a", "rm 'b c'"]


@pytest.mark.parametrize(("code", "paths"), [("unlink 'a'", ["a"]), ("print 'a'", []), ("open(F, '>a')", ["a"])])
def test_other_languages(code, paths):
    assert scripts.script_writes(code, "perl")[0] == paths
