"""The page of the red team lists the candidates that ship."""

from __future__ import annotations

import re
from pathlib import Path

from warpsmith.lab.gate_tests import cases
from warpsmith.reporting import redteam

PAGE = Path(__file__).parents[2] / "docs" / "redteam.md"


def test_the_page_lists_what_ships():
    """`warpsmith redteam --list` prints what belongs there."""
    table = re.search(r"<!-- classes -->\n\n(.*)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert table is not None
    assert table[1] == redteam.redteam_classes(cases.load_cases(cases.CORPUS))
