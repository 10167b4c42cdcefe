"""The C++ compiler: found, missing, or named wrongly by CXX."""

from warpsmith.languages.shared import cxx_compiler


def test_a_bad_cxx_is_named_as_bad(monkeypatch):
    monkeypatch.setenv("CXX", "/nope/g++ -m64")
    assert cxx_compiler.find_cxx_compiler() is None
    expected = "CXX=/nope/g++ -m64: /nope/g++ does not exist or is no program; correct CXX, or unset it."
    assert cxx_compiler.missing_cxx_compiler() == expected
    monkeypatch.setenv("CXX", "nope++")
    assert "nope++ is not on PATH" in cxx_compiler.missing_cxx_compiler()


def test_no_compiler_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install `g++`" in cxx_compiler.missing_cxx_compiler()


def test_cxx_may_have_arguments(monkeypatch, tmp_path):
    (tmp_path / "mycc").write_text("#!/bin/sh\n")
    (tmp_path / "mycc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "mycc -m64")
    assert cxx_compiler.find_cxx_compiler() == ["mycc", "-m64"]
    assert cxx_compiler.missing_cxx_compiler() is None
