"""Contexts: where they stand, which come first, and settings that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.errors import Misuse
from warpsmith.execution import contexts
from warpsmith.execution.remote import RemoteMachine
from warpsmith.project import Project


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "warpsmith.toml").write_text('[contexts.lab]\nssh = "shared-host"\n[contexts.other]\nssh = "o"\n')
    return projects.find_project(root)


def write_own(text: str) -> None:
    file = contexts.user_contexts_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_ones_own_come_before_shared_ones(here: Project) -> None:
    write_own('[contexts.lab]\nssh = "me@own-host"\nvariables = ["HF_HUB_OFFLINE"]\n')
    found = contexts.list_contexts(here)
    assert {name: (entry.context.ssh, entry.origin) for name, entry in found.items()} == {
        "lab": ("me@own-host", "yours"),
        "other": ("o", "shared"),
    }
    assert found["lab"].file == contexts.user_contexts_file()
    assert found["other"].context.workdir == "~/warpsmith"


def test_local_is_this_machine(here: Project) -> None:
    assert contexts.chosen_context(here, None) is None
    assert contexts.chosen_context(here, "local") is None
    assert contexts.chosen_context(here, "lab") == "lab"
    with pytest.raises(Misuse, match="no context `gpu`; known: local, lab, other"):
        contexts.chosen_context(here, "gpu")


def test_a_context_of_the_project_runs_nothing_unless_the_user_agrees(here: Project) -> None:
    lab = contexts.find_context(here, "lab")
    with pytest.raises(
        Misuse, match=r"logs in to shared-host as you and runs `python3` .*`warpsmith context trust lab`"
    ):
        RemoteMachine(lab)
    contexts.trust_context(lab)
    RemoteMachine(lab)
    with pytest.raises(Misuse, match="context trust other"):
        RemoteMachine(contexts.find_context(here, "other"))
    text = (here.root / "warpsmith.toml").read_text()
    (here.root / "warpsmith.toml").write_text(
        text.replace('"shared-host"', '"shared-host"\npython = "~/clone/python"')
    )
    with pytest.raises(Misuse, match="runs `~/clone/python`"):
        RemoteMachine(contexts.find_context(here, "lab"))
    write_own('[contexts.mine]\nssh = "own-host"\n')
    RemoteMachine(contexts.find_context(here, "mine"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[contexts.lab]\nssh = "-oProxyCommand=touch x"\n', "`ssh`"),
        ('[contexts.lab]\nssh = "host command"\n', "`ssh`"),
        ('[contexts.lab]\nssh = "host"\nssh_config = "config"\n', "`ssh_config` may stand only in"),
        ('[contexts.lab]\nssh = "host"\nvariables = ["AWS_SECRET"]\n', "`variables` may stand only in"),
        ('[contexts.lab]\nssh = "host"\nport = 22\n', "unknown key `port`"),
        ('[contexts.lab]\nworkdir = "~/x"\n', "the key `ssh` is missing"),
        ('[contexts.lab]\nslurm = true\nvariables = ["AWS_SECRET"]\n', "`variables` may stand only in"),
        ('[contexts.lab]\nssh = "host"\npartition = "gpu"\n', "`partition` is for a context with `slurm = true`"),
        ('[contexts.lab]\nslurm = true\npartition = "-pgpu"\n', "`partition`"),
        ('[contexts.lab]\nslurm = true\npartition = "gpu\\n"\n', "`partition`"),
        ('[contexts.lab]\nslurm = true\naccount = "a --wrap=x"\n', "`account`"),
        ('[contexts.lab]\nslurm = true\ntime = "$(touch x)"\n', "`time`"),
        ('[contexts.lab]\nslurm = true\ntime = "1:00\\n"\n', "`time`"),
        ('[contexts.lab]\nslurm = true\ngpus = "gpu:1,license:2"\n', "`gpus`"),
        ('[contexts.lab]\nslurm = true\noptions = ["export=ALL"]\n', "`options.0`"),
        ('[contexts.lab]\nslurm = true\noptions = ["qos=-x"]\n', "`options.0`"),
        ('[contexts.lab]\nslurm = true\noptions = ["mem=1 --wrap=x"]\n', "`options.0`"),
        ('[contexts.lab]\nslurm = true\noptions = ["qos=high\\n#SBATCH"]\n', "`options.0`"),
        ('[contexts.lab]\nssh = "host"\ngrace = 1\n', "`grace`"),
        ('[contexts.local]\nssh = "host"\n', "`local` cannot be the name"),
        ('contexts = "lab"\n', "must be a table"),
    ],
)
def test_shared_settings_that_are_refused(here: Project, text: str, message: str) -> None:
    (here.root / "warpsmith.toml").write_text(text)
    with pytest.raises(Misuse, match=message) as refusal:
        contexts.list_contexts(here)
    assert "warpsmith.toml" in str(refusal.value)


def test_a_shared_context_of_slurm_asks_for_nothing_unless_the_user_agrees(here: Project) -> None:
    (here.root / "warpsmith.toml").write_text('[contexts.lab]\nslurm = true\ngpus = "8"\n')
    lab = contexts.find_context(here, "lab")
    with pytest.raises(Misuse, match=r"uses Slurm as you, asks for an allocation \(--gres=gpu:8\) and runs"):
        RemoteMachine(lab)
    contexts.trust_context(lab)
    RemoteMachine(lab)


def test_own_settings_that_are_refused(here: Project) -> None:
    write_own("[contexts.lab")
    with pytest.raises(Misuse, match=r"contexts\.toml does not parse"):
        contexts.list_contexts(here)
    write_own('[lab]\nssh = "host"\n')
    with pytest.raises(Misuse, match="unknown key `lab`"):
        contexts.list_contexts(here)
