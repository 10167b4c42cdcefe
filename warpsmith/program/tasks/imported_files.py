"""Task: the files of the program itself that are imported, with their hashes."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import files

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(child: LoadedProgram, root: str) -> dict[str, str]:
    """Path to hash of every imported file under `root` or the program's folder, installed packages apart."""
    above = tuple({str(Path(root).resolve()), str(child.path.parent)})
    installed = [Path(place).resolve() for place in sysconfig.get_paths().values()]
    own = Path(files.__file__).resolve().parent
    found = {}
    for module in tuple(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        # Most modules are elsewhere, as the names alone tell: thousands of them need not be looked at.
        if not isinstance(origin, str) or not origin.endswith(".py") or not origin.startswith(above):
            continue
        path = Path(origin).resolve()
        if path.is_file() and not any(path.is_relative_to(place) for place in (own, *installed)):
            found[str(path)] = files.file_sha256(path)
    return found
