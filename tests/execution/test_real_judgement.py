"""A real judgement over a real sshd: the same record as on this machine, of the same files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from warpsmith.core.evaluation import Evaluation
from warpsmith.execution import remote, station
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.lab_copy import LabCopy, read_compiled_sha256

DEFINITION = """\
from warpsmith import Definition, TensorSpec, Workload
definition = Definition(
    name="square", description="y = x * x", axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=(Workload(name="large", axes={"n": 5000}), Workload(name="tail", axes={"n": 7}, set="odd")),
)
def reference(x):
    return x * x
"""
KERNEL = """\
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {
  for (int64_t i = 0; i < x.size(0); ++i) y.data<float>()[i] = x.data<float>()[i] * x.data<float>()[i];
}
"""


@pytest.mark.slow
def test_a_version_is_checked_there_and_a_wrong_one_fails(
    entry: NamedContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real performer
    (tmp_path / "warpsmith.toml").write_text("")
    folder = tmp_path / "kernels" / "square"
    (folder / "cpp").mkdir(parents=True)
    (folder / "definition.py").write_text(DEFINITION)
    (folder / "cpp" / "v1.cpp").write_text(KERNEL)
    (folder / "cpp" / "v2.cpp").write_text(KERNEL.replace("[i] * ", "[i] + "))
    config = tmp_path / "config" / "warpsmith" / "contexts.toml"
    config.parent.mkdir(parents=True)
    context = entry.context.model_dump(exclude_defaults=True)
    config.write_text(
        "[contexts.lab]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in context.items())
    )
    runtime = tempfile.mkdtemp(prefix="ws-", dir="/tmp")  # the path of a socket must stay short
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_RUNTIME_DIR": runtime}
    environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    codes, found = [], []
    for version in ("v1", "v2"):
        line = ("judge", str(folder / "cpp" / f"{version}.cpp"), "--check", "--target", "cpu", "--context", "lab")
        command = [sys.executable, "-P", "-m", "warpsmith", *line, "--json"]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.stdout, run.stderr
        codes.append(run.returncode)
        found.append(Evaluation.model_validate_json(run.stdout))
    removal = [sys.executable, "-P", "-m", "warpsmith", "context", "remove", "lab"]  # closes the connection
    subprocess.run(removal, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert codes == [0, 1]
    assert [evaluation.correct for evaluation in found] == [True, False]
    assert {evaluation.provenance.context for evaluation in found} == {"lab"}
    assert found[0].provenance.solution == "kernels/square/cpp/v1.cpp"
    assert not list((Path(entry.context.workdir) / station.OWN / "jobs").iterdir())
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    (lab,) = (Path(entry.context.workdir) / station.OWN / "labs").iterdir()
    compiled = read_compiled_sha256(entry, LabCopy())
    assert station._lab_sha256(lab) == compiled, "else the lab would be brought again each time"
    assert remote.MODULE == "warpsmith.campaign.jobs"
