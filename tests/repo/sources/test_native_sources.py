"""What a compiled kernel is built from, found by reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.repo.sources.native_sources import NativeSources

TREE = {
    "setup.py": (
        "import os\nSRC = 'core'\nlong = open('README.md').read()\n"
        "Extension('pkg._k', [os.path.join(SRC, '_k.pyx'), os.path.join(SRC, 'k.cpp')])\n"
    ),
    "README.md": "",
    "core/_k.pyx": 'from .api cimport f\ncdef extern from "k.h":\n    int g()\ninclude "table.pxi"\n',
    "core/_k.pxd": "",
    "core/api.pxd": "",
    "core/table.pxi": "",
    "core/k.cpp": '#include <vector>\n#include "k.h"\n  #  include <deep/util.hpp>\n',
    "core/k.h": "",
    "include/deep/util.hpp": '#include "../flags.h"\n',
    "include/flags.h": "",
    "include/unused.h": "",
    "CMakeLists.txt": "add_subdirectory(lib)\nadd_library(k ${CMAKE_CURRENT_SOURCE_DIR}/core/k.cpp)\n",
    "lib/CMakeLists.txt": 'file(GLOB ALL "*.cc")\n',
    "lib/a.cc": "",
    "docs/b.cc": "",
    "tools/build.sh": "g++ tools/link.cpp\n",
    "tools/link.cpp": "",
}


@pytest.fixture
def sources(tmp_path: Path) -> NativeSources:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return NativeSources(tmp_path, list(TREE))


def test_includes_cimports_and_build_files_are_followed(sources: NativeSources):
    needed = set(sources.needs("core/k.cpp", ["tools/build.sh"]))
    assert needed == set(TREE) - {"include/unused.h", "docs/b.cc"}


def test_a_missing_include_is_a_system_s(sources: NativeSources):
    assert "vector" not in " ".join(sources.needs("core/k.cpp"))
