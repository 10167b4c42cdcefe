"""Every language is found by its module, and no helper is taken for one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from warpsmith import languages
from warpsmith.errors import Misuse


def test_helpers_are_no_languages():
    for name in languages.names():
        language = languages.get(name)
        assert language.name == name
        assert language.suffix.startswith(".")
        assert set(language.targets) <= {"cpu", "gpu"}
    assert {"cpp", "triton"} <= set(languages.names())


def test_compiled_code_is_trusted_as_it_runs(vector):
    assert languages.get("cpp").distrust(vector, vector.workloads[0]) is None


def test_unknown_language():
    with pytest.raises(Misuse, match=r"`cobol`.*cpp"):
        languages.get("cobol")


def test_importing_a_language_imports_no_library():
    code = "import sys; from warpsmith import languages; [languages.get(n) for n in ('cpp', 'triton')]; "
    code += "sys.exit(any(m in sys.modules for m in ('torch', 'triton', 'numpy', 'ctypes')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
