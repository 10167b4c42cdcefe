"""Stamps: what they are called, how they vanish, and what they compile to."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from warpsmith import languages
from warpsmith.errors import Misuse
from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.languages.base import Assembles, StoresStamps
from warpsmith.languages.shared import disassembly, stamps

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "kernels"
PLAIN = """\
void run() {
  load();
  add();
}
"""
STAMPED = """\
void run() {
  WARPSMITH_PHASE("load");
  load();
  WARPSMITH_PHASE( "add" ) ; add();
  WARPSMITH_PHASE("load")
}
"""


def test_a_name_has_one_number() -> None:
    assert stamps.list_phases(STAMPED) == ["load", "add"]
    assert re.findall(r"WARPSMITH_STORE_STAMP\((\d)\)", stamps.numbered_stamps(STAMPED)) == ["0", "1", "0"]
    assert stamps.stores_stamps(stamps.numbered_stamps(STAMPED))
    assert not stamps.stores_stamps(PLAIN)


def test_stamps_vanish_with_their_lines_or_leave_the_lines() -> None:
    assert [line.strip() for line in stamps.without_stamps(STAMPED).splitlines()] == [
        line.strip() for line in PLAIN.splitlines()
    ]
    same = stamps.without_stamps(STAMPED, same_lines=True).splitlines()
    assert len(same) == len(STAMPED.splitlines())
    assert same[2] == "  load();"
    assert stamps.without_stamps(PLAIN) == PLAIN


@pytest.mark.parametrize("wrong", ["WARPSMITH_PHASE(1);", "WARPSMITH_PHASE(name);", 'WARPSMITH_PHASE("");'])
def test_a_stamp_has_a_name_in_quotes(wrong: str) -> None:
    with pytest.raises(Misuse, match="quotes"):
        stamps.list_phases(wrong)


def test_there_are_no_more_phases_than_the_table_has() -> None:
    text = "".join(f'WARPSMITH_PHASE("{number}");\n' for number in range(stamps.MOST_PHASES + 1))
    with pytest.raises(Misuse, match="17 phases"):
        stamps.list_phases(text)


def _cutedsl_kernel() -> str:
    """Return a fused norm that marks its phases."""
    text = (KERNELS / "rmsnorm_quant_fp8" / "cutedsl" / "v1.py").read_text(encoding="utf-8")
    for line, phase in (("    take(x[", "load"), ("    squares = (h", "sum"), ("    quantise(h, ws", "write")):
        assert text.count(f"\n{line}") == 1
        text = text.replace(f"\n{line}", f'\n    WARPSMITH_PHASE("{phase}")\n{line}')
    return text


def _tried_kernel(language: str) -> str:
    return (ROOT / "benchmarks" / "try_kernels" / f"softmax_{language}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "op", "kernel", "phases"),
    [
        ("cuda", "softmax", partial(_tried_kernel, "cuda"), 4),
        ("triton", "softmax", partial(_tried_kernel, "triton"), 4),
        pytest.param("cutedsl", "rmsnorm_quant_fp8", _cutedsl_kernel, 3, marks=pytest.mark.slow),
    ],
)
def test_machine_code_has_stamps_only_where_they_are_asked_for(
    tmp_path: Path, name: str, op: str, kernel: Callable[[], str], phases: int
) -> None:
    """The SASS of the file without its stamps is that of a file that never had any."""
    language = languages.get(name)
    assert isinstance(language, Assembles)
    assert isinstance(language, StoresStamps)
    if lack := language.uninstalled() or disassembly.missing_disassembler():
        pytest.skip(lack)
    definition = load_definition(KERNELS / op / "definition.py").definition
    stamped = kernel()
    plain = "".join(line for line in stamped.splitlines(keepends=True) if "WARPSMITH_PHASE" not in line)
    texts = {
        "plain": plain,
        "submitted": stamps.without_stamps(stamped),
        "tried": stamps.without_stamps(stamped, same_lines=True),
        "stamped": language.with_stamps(stamped),
    }
    assert texts["plain"] == texts["submitted"]
    code = {}
    for form in ("plain", "tried", "stamped"):
        folder = tmp_path / form
        folder.mkdir()
        (folder / "kernel.py").write_text(texts[form], encoding="utf-8")
        workload = definition.select("representative")[:1]
        listing, *_ = language.assembly(folder / "kernel.py", definition, workload, "sm_90a", folder)
        lines = listing.assembly.read_text(encoding="utf-8").splitlines()
        code[form] = [
            re.sub(r"/\*.*?\*/", "", line).strip() for line in lines if re.match(r"\s+/\*[0-9a-f]{4}\*/", line)
        ]
    assert len(code["plain"]) > 50
    assert code["plain"] == code["tried"]
    for register in ("SR_CLOCK", "SR_GLOBALTIMER", "SR_VIRTUALSMID|SR_VIRTID|SR_SMID"):
        assert sum(bool(re.search(register, line)) for line in code["stamped"]) >= phases, register
    assert not any("SR_CLOCK" in line for line in code["plain"])
