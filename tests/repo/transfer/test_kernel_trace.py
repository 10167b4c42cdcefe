"""The trace of a program: outermost calls, seconds inside of the kernel, and buckets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warpsmith.repo.transfer import kernel_trace

FILES = {
    "pkg/__init__.py": "",
    "pkg/kernel.py": (
        "import time\n\n\ndef inner():\n    time.sleep(0.02)\n\n\ndef outer():\n    inner()\n\n\n"
        "class Op:\n    @staticmethod\n    def apply():\n        outer()\n\n"
        "    def again(self):\n        inner()\n"
    ),
    "train.py": (
        "import sys\nimport time\nfrom pkg.kernel import Op, outer\n\n\ndef wait():\n    time.sleep(0.06)\n\n\n"
        "outer()\nOp.apply()\nOp().again()\nwait()\nprint(sys.argv[1:], __name__)\n"
    ),
}


def trace(root: Path, mode: str, *command: str) -> dict[str, Any]:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    result = root / "trace.json"
    arguments = (str(kernel_trace.__file__), str(result), str(root), '["pkg/kernel.py"]', mode, *command)
    done = subprocess.run((sys.executable, *arguments), cwd=root, capture_output=True, text=True)
    assert "['--steps', '2'] __main__" in done.stdout, done.stderr
    contents: dict[str, Any] = json.loads(result.read_text())
    return contents


@pytest.mark.parametrize("command", [("train.py", "--steps", "2"), ("-m", "train", "--steps", "2")])
def test_only_outermost_calls_count(tmp_path: Path, command: tuple[str, ...]):
    found = trace(tmp_path, "calls", *command)
    assert found["calls"] == {"outer": 1, "Op.apply": 1, "Op.again": 1}
    assert found["modules"] == ["pkg.kernel"]
    assert 0.06 <= found["kernel_seconds"] < found["seconds"]


def test_buckets_leave_the_kernel_out(tmp_path: Path):
    found = trace(tmp_path, "buckets", "train.py", "--steps", "2")
    assert found["buckets"]["train.py"] >= 0.06
    assert found["buckets"].get("pkg/kernel.py", 0) < found["kernel_seconds"] / 2
