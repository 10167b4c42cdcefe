"""A new language is one folder with `language.py`: nothing else in the package knows its name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LANGUAGE = '''"""Toy: a file that holds `multiply by N`."""

import os
import re
from pathlib import Path

from warpsmith.languages.base import Build, BuildFailed, Language, SourcePattern

PROGRAM = re.compile(r"^multiply by ([0-9]+)$", re.MULTILINE)


class Toy(Language):
    name = "toy"
    title = "Toy Script"
    aliases = ("toys",)
    suffix = ".toy"
    targets = ("cpu",)
    architectures = ("cpu",)
    product = "a toy"
    preference = 9
    postponed = None
    source_patterns = (SourcePattern((".toy", ".py"), r"^multiply by"),)

    def missing(self, target_kind):
        return None if target_kind == "cpu" else "Toys run on a CPU only."

    def template(self, definition):
        return "multiply by 1\\\\n"

    def normalise(self, source):
        return " ".join(source.split())

    def findings(self, source):
        return []

    def build(self, source, definition, folder):
        if not PROGRAM.search(source.read_text()):
            raise BuildFailed(f"{source.name} does not say `multiply by N`.")
        return Build(source, source, ())

    def load(self, build, definition):
        text = build.artifact.read_text()
        factor = int(PROGRAM.search(text)[1])
        import torch

        def run(x):
            kernel = Path(os.environ["CUDA_TILE_CACHE_DIR"], f"size {len(x)}")
            if self.postponed is not None:
                self.postponed.append(kernel)
                return x
            declared = len(x) in (7, 4096)  # of the hundreds of tiny shapes none is compiled ahead
            if "never compiles" in text and declared and not kernel.exists():
                raise ValueError(f"{kernel.name} was not compiled ahead")
            return torch.from_numpy(x.numpy() * factor)

        self.text = text
        return run

    def compile_ahead(self, calls, threads):
        if "fails ahead" in self.text:
            raise ValueError("no compiler")
        self.postponed = []
        for call in calls:
            call()
        for kernel in set(self.postponed):
            kernel.mkdir(parents=True)
            (kernel / "kernel").touch()
        return len(self.postponed)

    def inspect(self, source, definition, arch):
        return ()


LANGUAGE = Toy()
'''.replace("\\\\n", "\\n")

DEFINITION = """from warpsmith import Definition, TensorSpec, Workload

definition = Definition(
    name="double",
    description="Twice the vector.",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(Workload(name="small", axes={"n": 4096}), Workload(name="odd", axes={"n": 7}, set="odd")),
)


def reference(x):
    return 2 * x
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, and next to it a copy of the package whose one change is the new folder."""
    base = tmp_path_factory.mktemp("toy")
    copy = base / "copy"
    shutil.copytree(ROOT / "warpsmith", copy / "warpsmith")
    for folder in ("docs", "hooks", "skills"):
        (copy / folder).symlink_to(ROOT / folder)
    (copy / "agents").mkdir()
    (copy / "agents" / "toy-specialist.md").write_text("")
    (copy / "warpsmith" / "languages" / "toy").mkdir()
    (copy / "warpsmith" / "languages" / "toy" / "language.py").write_text(LANGUAGE)
    folder = base / "project" / "kernels" / "double"
    (folder / "toy").mkdir(parents=True)
    (folder / "definition.py").write_text(DEFINITION)
    (base / "project" / "warpsmith.toml").write_text("")
    return base / "project"


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(project.parent / "copy")}
    return subprocess.run(
        [sys.executable, *command], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_it_is_listed_with_its_agent_and_its_answer(project: Path):
    code = (
        "import json; from warpsmith import languages; from warpsmith.driver.answers.kinds import ANSWERS; "
        "print(json.dumps([languages.names(), languages.agent_names(), ANSWERS['toy-specialist']]))"
    )
    names, agents, answer = json.loads(run(project, "-c", code).stdout)
    assert names == ["cpp", "cuda", "cutedsl", "cutile", "flydsl", "hip", "tileir", "toy", "triton"]
    assert "toy-specialist" in agents
    assert answer == "version"


def test_its_agents_answer_is_checked_by_the_hook():
    data = json.loads((ROOT / "hooks" / "hooks.json").read_text())
    (group,) = data["hooks"]["SubagentStop"]
    assert re.search(group["matcher"], "warpsmith:toy-specialist")
    assert not re.search(group["matcher"], "warpsmith:program-specialist")


@pytest.mark.parametrize(
    "options",
    [["--language", "toys"], ["--language", "Toy Script", "--arch", "cpu"], ["--kernel", "any.py"]],
    ids=["alias", "title", "source"],
)
def test_it_is_routed_to_its_agent(project: Path, options: list[str]):
    (project / "any.py").write_text("# a comment\nmultiply by 3\n")
    ended = run(project, "-m", "warpsmith", "route", *options)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("1. warpsmith:toy-specialist: ")
    assert "a toy" in ended.stdout


def test_doctor_names_it(project: Path):
    assert "toy" in run(project, "-m", "warpsmith", "doctor").stdout


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("multiply by 2\n", 0, ""),
        ("multiply by 2\nnever compiles when it is called\n", 0, ""),
        ("multiply by 2\nfails ahead\n", 0, "PASS"),
        ("multiply by 3\n", 1, "INCORRECT_NUMERICAL"),
        ("divide by 2\n", 1, "does not say `multiply by N`"),
    ],
    ids=["correct", "compiled ahead", "not compiled ahead", "wrong", "does not build"],
)
def test_a_version_is_judged(project: Path, source: str, code: int, said: str):
    (project / "kernels" / "double" / "toy" / "v1.toy").write_text(source)
    ended = run(project, "-m", "warpsmith", "judge", "--check", "--target", "cpu", "kernels/double/toy/v1.toy")
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert said in ended.stdout + ended.stderr
