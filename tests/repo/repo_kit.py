"""A small repository whose kernel is pure Python, with a test, and a benchmark that counts instead of timing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KERNEL = "pkg/kernel.py"

SLOW = '''"""Sums numbers."""
from pkg.helper import zero

STEPS = 4


def total(n):
    result = zero()
    for value in range(n + 1):
        result += value
    return result


def cost(n):
    return STEPS * n
'''

FILES = {
    KERNEL: SLOW,
    "pkg/__init__.py": "from pkg.other import nothing\n",
    "pkg/other.py": "import json\n\nnothing = json.loads('null')\n",
    "pkg/helper.py": "from pkg.plain.number import nought\n\n\ndef zero():\n    return nought\n",
    "pkg/plain/number.py": "nought = 0\n",
    "tests/test_kernel.py": "from pkg.kernel import total\n\nassert total(10) == 55, f'it is {total(10)}'\n",
    "bench.py": (
        "import json\nimport os\n\nfrom pkg.kernel import cost, total\n\n"
        "rows = [(n, kind) for n in (10, 100, 1000) for kind in ('a', 'b')]\n"
        "wanted = os.environ.get('BENCH_ROWS')\n"
        "if wanted:\n"
        "    asked = [(int(row['n']), row['kind']) for row in json.loads(wanted)]\n"
        "    rows = [row for row in rows if row in asked]\n"
        "print('starting')\n"
        "print('n,kind,forward,backward,check')\n"
        "for n, kind in rows:\n"
        "    right = total(n) == n * (n + 1) // 2\n"
        "    print(f\"{n},{kind},{cost(n)},{2 * cost(n)},{'PASS' if right else 'FAIL'}\")\n"
        "print('done')\n"
    ),
    "README.md": "A package.\n",
}

CONTRACT = f'''kernel = "{KERNEL}"
test = "PYTHONPATH=. {sys.executable} -S tests/test_kernel.py"
benchmark = "{sys.executable} -S bench.py"
keys = ["n", "kind"]
metrics = {{ forward = "lower", backward = "lower" }}
check = {{ column = "check", passes = "PASS" }}
scoring = "combined"
quick = {{ environment = "BENCH_ROWS" }}
representative = 3
repeats = 2
timeouts = {{ test = 20, benchmark = 20 }}
'''


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(("git", "-C", str(root), *arguments), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make(root: Path, contract: str = CONTRACT, files: dict[str, str] | None = None) -> Path:
    """A repository with one commit; returns its root."""
    root.mkdir(parents=True, exist_ok=True)
    pyproject = f"[project]\nname = 'pkg'\nversion = '1'\n\n[tool.warpsmith.project]\n{contract}"
    for name, content in {**FILES, "pyproject.toml": pyproject, **(files or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "u")
    git(root, "config", "user.email", "u@example.org")
    commit(root)
    return root


def commit(root: Path) -> None:
    """Commit everything that is not ignored."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a commit")


def faster(steps: int) -> str:
    """The kernel at another cost."""
    return SLOW.replace("STEPS = 4", f"STEPS = {steps}")


def commit_file(root: Path, name: str, content: str) -> None:
    """Commit one file's content."""
    (root / name).write_text(content)
    git(root, "commit", "-q", "-m", "another commit", name)
