"""What the compiler of a language reports of a version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import Resources


def compile_reports(
    main: Callable[[Path], int], path: Path, definition: Definition, workloads: Iterable[str], folder: Path
) -> list[Resources]:
    """Compile a version for sm_90a at some workloads, in a folder that keeps machine code, and read the reports.

    `main` is that of the language's module `compile`; what it prints says why it failed.
    """
    request = {"source": str(path), "definition": definition.model_dump(mode="json"), "arch": "sm_90a"}
    (folder / "request.json").write_text(json.dumps({**request, "workloads": list(workloads)}))
    assert main(folder) == 0
    return [Resources.model_validate(each) for each in json.loads((folder / "resources.json").read_text())]
