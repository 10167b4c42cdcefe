"""Task: the program's own imported files, with their hashes."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import files

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(program: LoadedProgram, root: str) -> dict[str, str]:
    """Return path and hash of each imported file under `root` or the program's folder, without packages."""
    folders = tuple({str(Path(root).resolve()), str(program.path.parent)})
    installed = [Path(folder).resolve() for folder in sysconfig.get_paths().values()]
    package = Path(files.__file__).resolve().parent
    hashes = {}
    for module in tuple(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        # Most of the thousands of modules are elsewhere: compare names before touching the file system.
        if not isinstance(origin, str) or not origin.endswith(".py") or not origin.startswith(folders):
            continue
        path = Path(origin).resolve()
        if path.is_file() and not any(path.is_relative_to(folder) for folder in (package, *installed)):
            hashes[str(path)] = files.file_sha256(path)
    return hashes
