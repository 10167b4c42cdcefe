"""Every version: right where an interpreter can tell, and compiled for sm_90a without spilling.

Files are taken in by themselves, but for those that a record says were rolled back; `--drafts` takes in these too,
and what is prepared for campaigns. What only a GPU can tell (bfloat16, races, speed) the gate tells there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compiled import compile_reports
from interpreted import definition_of
from judged import rolled_back

from warpsmith import languages
from warpsmith.errors import MachineLacks
from warpsmith.files import file_sha256
from warpsmith.lab.operator import definition_file
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.disassembly import NEVER_WAITS
from warpsmith.languages.triton import compile as triton_compile

pytestmark = pytest.mark.usefixtures("forked_compilers")

KERNELS = Path(__file__).parents[2] / "kernels"
ARCHITECTURES = {"cpp": "x86-64-v3"}
"""What a language is inspected for, where that is not `sm_90a`."""
REGISTERS = 65536
"""Registers of a multiprocessor: a block that needs more does not launch."""
SPILLS = {"mla_decode/triton/v1.py": 32}
"""Bytes of local memory a thread of versions that were accepted with some, at most."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each file of the languages that it is about."""
    files = [*KERNELS.glob("*/*/v*.*")]
    if metafunc.config.getoption("drafts"):
        files += (path for path in KERNELS.glob("*/drafts/*/*.*") if path.suffix != ".yaml")
    else:
        files = [path for path in files if file_sha256(path) not in rolled_back()]
    in_triton = "language" not in metafunc.function.__name__
    paths = [path for path in sorted(files) if path.parent.name in languages.names()]
    chosen = [path for path in paths if (path.parent.name == "triton") is in_triton]
    metafunc.parametrize("path", chosen, ids=[str(path.relative_to(KERNELS)) for path in chosen])


def superseded(path: Path) -> bool:
    """Whether a later version stands beside it."""
    standing = (other for other in path.parent.glob("v*.py") if file_sha256(other) not in rolled_back())
    return path.stem[0] == "v" and any(_number(other) > _number(path) for other in standing)


def _number(path: Path) -> int:
    return int(re.search(r"\d+", path.stem)[0])


def test_it_is_right_where_the_interpreter_can_tell(path, interpret):
    found = interpret(path)
    assert "error" not in found, found["error"]
    if "skipped" in found:
        pytest.skip(found["skipped"])
    wrong = [grade for grade in found["graded"] if grade[2] != "PASSED"]
    assert not wrong
    assert found["graded"]


def test_it_compiles_within_its_registers(path, tmp_path, monkeypatch):
    definition = definition_file.load_definition(definition_of(path)).definition
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    for found in launched(path, definition, triton_compile.main, tmp_path):
        notes = "; ".join(found.notes)
        spills = SPILLS.get(str(path.relative_to(KERNELS)), 0)
        assert found.spill_bytes <= spills, (
            f"{found.kernel} has {found.spill_bytes} bytes of local memory a thread"
        )
        assert spills or "LDL x0" in notes, f"{found.kernel} reads local memory: {notes}"
        assert "will not launch" not in notes, notes
        assert NEVER_WAITS not in notes, f"{found.kernel}: {notes}"
        warps = int(re.search(r"num_warps (\d+)", notes)[1])
        assert found.registers * 32 * warps <= REGISTERS, f"{found.kernel}: {found.registers} registers"


def test_it_compiles_in_its_language(path, tmp_path):
    language = languages.get(path.parent.name)
    definition = definition_file.load_definition(definition_of(path)).definition
    try:
        found = [*language.inspect(path, definition, ARCHITECTURES.get(language.name, "sm_90a"))]
    except MachineLacks as lacking:
        pytest.skip(str(lacking))
    if language.name == "cuda" and not superseded(path):  # each workload may launch other kernels
        found += launched(path, definition, cuda_compile.main, tmp_path)
    assert found
    for one in found:
        assert not one.spill_bytes
        assert NEVER_WAITS not in "; ".join(one.notes), one.kernel


def launched(path, definition, main, folder):
    """Reports on the kernels that the representative workloads launch, of a superseded version the first's."""
    workloads = [workload.name for workload in definition.select("representative")]
    return compile_reports(main, path, definition, workloads[: 1 if superseded(path) else None], folder)
