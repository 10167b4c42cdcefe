"""A workspace: the kernel apart with what it needs, its test green there, and only the kernel brought back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import repo_kit
from repo_kit import faster

from warpsmith import files
from warpsmith import project as projects
from warpsmith.errors import MissingInput, Misuse
from warpsmith.repo import rounds, workspace
from warpsmith.repo.sources.python_sources import PythonSources
from warpsmith.repo.store import RepoCampaign

TREE = {
    "src/pkg/__init__.py": "from pkg.everything import all\n",
    "src/pkg/everything.py": "import huge\n",
    "src/pkg/ops/__init__.py": "",
    "src/pkg/ops/kernel.py": "import triton\nfrom ..util import settings\nfrom . import helper\nimport pkg.lazy\n",
    "src/pkg/ops/helper.py": "def f():\n    from pkg.lazy import later\n",
    "src/pkg/util.py": "import os.path\nimport pkg.spaced.inner\nsettings = 1\n",
    "src/pkg/spaced/inner.py": "",
    "src/pkg/lazy.py": "later = 1\n",
    "src/pkg/unused.py": "import nothing\n",
    "test/__init__.py": "",
    "test/utils.py": "import pytest\n",
    "test/deep/test_kernel.py": "from test.utils import x\nfrom pkg.ops.kernel import k\nimport beside\n",
    "test/deep/beside.py": "",
    "test/broken.py": "def (\n",
}


@pytest.fixture
def sources(tmp_path: Path) -> PythonSources:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return PythonSources(tmp_path, list(TREE))


def test_a_kernel_needs_what_it_imports_and_no_init_that_gives_it_nothing(sources: PythonSources):
    found, outside = sources.needs("src/pkg/ops/kernel.py")
    assert sorted(found) == [
        "src/pkg/lazy.py",
        "src/pkg/ops/helper.py",
        "src/pkg/ops/kernel.py",
        "src/pkg/spaced/inner.py",
        "src/pkg/util.py",
    ]
    assert outside == {"triton"}


def test_a_test_needs_the_kernel_and_what_lies_beside_it(sources: PythonSources):
    found, outside = sources.needs("test/deep/test_kernel.py")
    assert {"test/utils.py", "test/deep/beside.py", "src/pkg/ops/kernel.py"} <= set(found)
    assert "pytest" in outside
    assert sources.implicit_files(["test/deep/test_kernel.py"]) == ["test/__init__.py"]


def test_a_file_that_does_not_parse_needs_nothing(sources: PythonSources):
    assert sources.needs("test/broken.py") == (["test/broken.py"], set())


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)


def test_out_and_back(campaign: RepoCampaign):
    made = workspace.extract_workspace(campaign, repo_kit.KERNEL)
    assert made.problem == ""
    assert made.upstream == campaign.manifest.start
    assert made.files == {
        "src/pkg/kernel.py": "pkg/kernel.py",
        "src/pkg/helper.py": "pkg/helper.py",
        "src/pkg/plain/number.py": "pkg/plain/number.py",
        "tests/tests/test_kernel.py": "tests/test_kernel.py",
        "bench/bench.py": "bench.py",
    }
    assert (campaign.folder / "src/pkg/__init__.py").read_text() == ""
    assert campaign.workspace() == made

    kernel = campaign.folder / made.copy_path
    kernel.write_text(faster(1).replace("range(n + 1)", "range(n)"))
    assert "AssertionError" in shell(made.test, campaign.folder).stderr
    kernel.write_text(faster(1))
    assert shell(made.test, campaign.folder).returncode == 0
    assert "10,a,10,20,PASS" in shell(made.benchmark, campaign.folder).stdout

    (campaign.folder / "src/pkg/helper.py").write_text("changed = 1\n")
    target = workspace.sync_workspace(campaign)
    edit = campaign.state / "edit"
    assert target == edit / repo_kit.KERNEL
    assert repo_kit.git(edit, "status", "--porcelain") == f"M {repo_kit.KERNEL}"
    kernel.write_text(faster(2))
    workspace.sync_workspace(campaign)
    assert target.read_text() == faster(2)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("python a/b.py", "export PYTHONPATH=src:tests:bench; python tests/a/b.py"),
        (
            "X=1 PYTHONPATH=src:/opt/x:$Y python a/b.py::k",
            "X=1 PYTHONPATH=src:tests:bench:/opt/x:$Y python tests/a/b.py::k",
        ),
    ],
)
def test_commands_are_moved_with_their_files(text: str, moved: str):
    assert workspace._workspace_command(text, ["a/b.py"], "tests") == moved


CPP = {
    "core/sum.cpp": '#include "limits/steps.h"\nextern "C" int total(int n) { return STEPS * n * (n + 1) / 8; }\n',
    "include/limits/steps.h": "#define STEPS 4\n",
    "build.sh": "set -e\ntest -e core/sum.cpp\ng++ -shared -fPIC -Iinclude core/sum.cpp -o sum.so\n",
    "tests/data/answer.txt": "55",
    "tests/test_sum.py": (
        "import ctypes\nanswer = int(open('tests/data/answer.txt').read())\n"
        "assert ctypes.CDLL('./sum.so').total(10) == answer, 'it is wrong'\n"
    ),
    "bench.py": (
        "import ctypes\nimport re\nassert ctypes.CDLL('./sum.so').total(3) == 6\nprint('n,ms')\n"
        "print('1,' + re.search(r'STEPS (.)', open('include/limits/steps.h').read())[1])\n"
    ),
    ".gitignore": "*.so\n",
}
CPP_CONTRACT = f"""kernel = "core/sum.cpp"
rebuild = "sh build.sh"
test = "{sys.executable} -S tests/test_sum.py"
benchmark = "{sys.executable} -S bench.py"
keys = ["n"]
metrics = {{ ms = "lower" }}
repeats = 2
"""


def test_a_compiled_kernel_goes_with_what_builds_it(tmp_path: Path):
    root = repo_kit.make(tmp_path.resolve() / "repo", CPP_CONTRACT, CPP)
    campaign = rounds.start_repo_campaign(projects.find_project(root), "one", lambda _: None)
    made = workspace.extract_workspace(campaign, "core/sum.cpp")
    assert made.problem == ""
    assert made.copy_path == "src/core/sum.cpp"
    assert {"src/include/limits/steps.h", "src/build.sh", "src/tests/test_sum.py"} <= set(made.files)
    assert "src/tests/data/answer.txt" in made.files
    assert made.rebuild == "cd src && sh build.sh"
    kernel = campaign.folder / made.copy_path
    kernel.write_text(kernel.read_text().replace("(n + 1)", "(n - 1)"))
    assert shell(made.rebuild, campaign.folder).returncode == 0
    assert "it is wrong" in shell(made.test, campaign.folder).stderr
    assert workspace.sync_workspace(campaign).read_text() == kernel.read_text()
    broken = made.model_copy(update={"rebuild": "cd src && echo 'k.cpp:1:2: error: no' && false"})
    assert "exit code 1: k.cpp:1:2: error: no" in workspace._find_problem(campaign, broken)


def test_a_change_by_another_hand_is_not_overwritten(campaign: RepoCampaign):
    made = workspace.extract_workspace(campaign, repo_kit.KERNEL)
    target = campaign.state / "edit" / repo_kit.KERNEL
    target.write_text(faster(3))
    (campaign.folder / made.copy_path).write_text(faster(2))
    with pytest.raises(Misuse, match="merge the two by hand"):
        workspace.sync_workspace(campaign)
    assert target.read_text() == faster(3)


def test_what_is_refused(campaign: RepoCampaign):
    with pytest.raises(MissingInput, match="has no workspace"):
        workspace.sync_workspace(campaign)
    with pytest.raises(Misuse, match=r"pkg/helper\.py is not a kernel"):
        workspace.extract_workspace(campaign, "pkg/helper.py")
    made = workspace.extract_workspace(campaign, repo_kit.KERNEL)
    with pytest.raises(Misuse, match="has src, tests, bench already"):
        workspace.extract_workspace(campaign, repo_kit.KERNEL)
    assert files.file_sha256(campaign.folder / made.copy_path) == made.upstream_sha256
    (campaign.folder / made.copy_path).unlink()
    with pytest.raises(MissingInput, match="is gone"):
        workspace.sync_workspace(campaign)
