"""Messages name commands that work: the packages themselves, for the running Python."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from warpsmith import packages
from warpsmith.lab.doctor.packages import version_fits

ROOT = Path(__file__).parents[1]
TEXTS = ("warpsmith/**/*.py", "skills/**/*.md", "agents/*.md", "bin/*", "docs/*.md", "README.md", "hooks/*")


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed, so requirements are read from the checkout."""

    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packages, "metadata", absent)


@pytest.mark.usefixtures("checkout")
def test_requirements_are_those_of_the_checkout_where_nothing_is_installed() -> None:
    assert {requirement.package for requirement in packages.list_requirements("lab")} == {
        "numpy",
        "scipy",
        "torch",
    }
    assert {"pydantic", "typer"} <= {requirement.package for requirement in packages.list_requirements("")}
    assert version_fits("3.11.0", packages.python_bounds())
    assert not version_fits("3.10.9", packages.python_bounds())


@pytest.mark.usefixtures("checkout")
def test_the_command_installs_the_packages_themselves() -> None:
    words = shlex.split(packages.install_command("triton", "cute"))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert words[4:] == ["triton>=3.6", "nvidia-cutlass-dsl[cu13]==4.8.1", "apache-tvm-ffi>=0.1.11"]
    assert "pydantic>=2.12" in shlex.split(packages.install_command())


def test_no_text_names_an_index_that_has_no_warpsmith() -> None:
    """The package is on no index: `pip install warpsmith` finds nothing, or what somebody else put there."""
    command = re.compile(r"pip install[^`\n]*?[ '\"]warpsmith(\[|['\"` ]|$)")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for pattern in TEXTS
        for path in ROOT.glob(pattern)
        if path.is_file()
        for match in command.finditer(path.read_text(errors="replace"))
    ]
    assert found == []
