"""Stamps: what they are called, how they vanish, and what they compile to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpsmith.errors import Misuse
from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.languages.cuda.language import LANGUAGE, missing_compiler
from warpsmith.languages.shared import disassembly, stamps

ROOT = Path(__file__).parents[3]
KERNEL = ROOT / "benchmarks" / "try_kernels" / "softmax_cuda.py"
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


@pytest.mark.skipif(
    missing_compiler() is not None or disassembly.missing_disassembler() is not None, reason="no NVRTC"
)
def test_machine_code_has_stamps_only_where_they_are_asked_for(tmp_path: Path) -> None:
    """The SASS of the file without its stamps is that of a file that never had any."""
    definition = load_definition(ROOT / "kernels" / "softmax" / "definition.py").definition
    stamped = KERNEL.read_text(encoding="utf-8")
    plain = "".join(line for line in stamped.splitlines(keepends=True) if "WARPSMITH_PHASE" not in line)
    texts = {
        "plain": plain,
        "submitted": stamps.without_stamps(stamped),
        "tried": stamps.without_stamps(stamped, same_lines=True),
        "stamped": LANGUAGE.with_stamps(stamped),
    }
    code = {}
    for name, text in texts.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "softmax.py").write_text(text, encoding="utf-8")
        workload = definition.select("representative")[:1]
        (listing,) = LANGUAGE.assembly(folder / "softmax.py", definition, workload, "sm_90a", folder)
        lines = listing.assembly.read_text(encoding="utf-8").splitlines()
        code[name] = [
            re.sub(r"/\*.*?\*/", "", line).strip() for line in lines if re.match(r"\s+/\*[0-9a-f]{4}\*/", line)
        ]
    assert len(code["plain"]) > 50
    assert code["plain"] == code["submitted"] == code["tried"]
    assert sum("SR_CLOCK" in line for line in code["stamped"]) >= 4
    assert not any("SR_CLOCK" in line for line in code["plain"])
