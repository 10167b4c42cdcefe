"""Task: whether the program's Python has Warpsmith, without the copy that a command's processes are given."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(_program: LoadedProgram) -> bool:
    """Return whether `import warpsmith` works when the script is run by hand."""
    finders = [finder for finder in sys.meta_path if type(finder).__name__ != "_PackageFinder"]
    return any(finder.find_spec("warpsmith", None) is not None for finder in finders)
