"""Code blocks in the languages that are parsed."""

from __future__ import annotations

import pytest

from tools.textlint import blocks

GOOD = {
    "python": "  x = tl.load(p, mask=m)  # indented\n",
    "json": '{"a": 1}\n',
    "yaml": "a: 1\n---\nb: 2\n",
    "toml": "[a]\nb = 1\n",
    "bash": "warpsmith judge <solution> --check\nif true; then echo; fi\n",
    "text": "{ not [ code\n",
    "": "{ not [ code\n",
    "cuda": "{ not [ code\n",
    "cpp": "#include <cmath>\nfloat f(float x) { return std::sqrt(x); }\n",
}
BAD = {
    "python": "x = 1\ny = (\n",
    "json": '{\n"a": 1,}\n',
    "yaml": "a: 1\nb: [\n",
    "toml": "[a]\nb = \n",
    "bash": "echo\nif true; then\n",
    "sh": "echo\necho 'a\n",
    "!": "echo\nif true; then\n",
    "cpp": "#include <cmath>\nint f() { return x; }\n",
}


@pytest.mark.parametrize(("language", "code"), GOOD.items())
def test_a_block_that_parses(house, language, code):
    house.add("README.md", f"\n```{language}\n{code}```\n")
    assert house.found() == []


@pytest.mark.parametrize(("language", "code"), BAD.items())
def test_a_block_that_does_not_parse(house, language, code):
    if language == "cpp" and blocks.cpp_compiler() is None:
        pytest.skip("no C++ compiler")
    house.add("README.md", f"\n```{language}\n{code}```\n")
    assert house.one().startswith(f"README.md:8: the {language} block does not parse: ")


def test_cpp_may_include_the_api(house):
    if blocks.cpp_compiler() is None:
        pytest.skip("no C++ compiler")
    house.write("warpsmith/languages/cpp/api/warpsmith.hpp", "struct Tensor {};\n")
    house.add("README.md", "\n```cpp\n#include <warpsmith.hpp>\nTensor t;\n```\n")
    assert house.found() == []


def test_without_a_compiler_cpp_is_not_looked_at(house, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    house.add("README.md", f"\n```cpp\n{BAD['cpp']}```\n")
    assert blocks.cpp_compiler() is None
    assert house.found() == []
