"""Test command of a repository: pytest on the files that use the kernel, CTest, or a target of make."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from warpsmith.repo.draft.build_system import BuildSystem
from warpsmith.repo.draft.draft_line import DraftLine
from warpsmith.repo.draft.repository_files import RepositoryFiles

_MOST_FILES = 6
_GPU = re.compile(r"cuda|\.to\(.gpu", re.I)


def draft_test(files: RepositoryFiles, kernel: str, build: BuildSystem) -> DraftLine:
    """Draft the test command: the test files that name the kernel or its package, else all of them."""
    tests = [
        path for path in files.paths
        if re.fullmatch(r"test_.*\.py|.*_test\.py|tests?\.py", PurePosixPath(path).name)
        and "def test" in files.text(path)
    ]  # fmt: skip
    runner = next(iter(files.list_named("noxfile.py", "tox.ini")), None)
    through = f"; {runner} runs them in an environment of its own, which this does not" if runner else ""
    if tests:
        names, source, doubt = _focus(files, tests, kernel)
        path = f"PYTHONPATH={build.search_path} " if build.search_path else ""
        command = f"{path}python -m pytest -q -p no:cacheprovider {' '.join(names)}"
        doubts = [doubt] if doubt else []
        if any("skip" in files.text(name) and _GPU.search(files.text(name)) for name in tests):
            doubts.append("they skip themselves without a GPU, and a skipped test proves nothing")
        return DraftLine("test", command, f"{source}{through}", "; ".join(doubts))
    if build.ctest:
        return DraftLine("test", "ctest --test-dir build --output-on-failure", "CMakeLists.txt, which adds tests")
    targets = re.findall(r"^(test|check)\s*:", files.text("Makefile"), re.M) if "Makefile" in files.paths else []
    if targets:
        return DraftLine("test", f"make {targets[0]}", f"the target {targets[0]} of the Makefile")
    doubt = "no test was recognised; write a command that fails on wrong results"
    return DraftLine("test", "echo write the test command; false", "", doubt)


def _focus(files: RepositoryFiles, tests: list[str], kernel: str) -> tuple[list[str], str, str]:
    """Choose the tests of the kernel: those named after it, else those that name its module or package."""
    pure = PurePosixPath(kernel)
    stem = pure.stem.strip("_")
    by_name = [path for path in tests if stem.lower() in PurePosixPath(path).stem.lower()]
    if by_name:
        return by_name[:_MOST_FILES], f"the tests whose names have `{stem}`", ""
    by_text = [path for path in tests if re.search(rf"\b{re.escape(pure.stem)}\b", files.text(path))]
    if by_text and len(by_text) <= _MOST_FILES:
        return by_text, f"the tests that name `{pure.stem}`", ""
    folders = sorted({str(PurePosixPath(path).parent) for path in tests})
    shallow = [folder for folder in folders if not any(folder.startswith(f"{other}/") for other in folders)]
    names = tests if shallow == ["."] else shallow
    doubt = f"no test is named after {pure.name}; narrow this to the tests that reach it"
    source = f"{tests[0]}" if len(tests) == 1 else f"{len(tests)} files of tests, such as {tests[0]}"
    return names[:_MOST_FILES], source, doubt
