"""The whole way through the real flashinfer-bench: trace a process, import, export, apply, count."""

import os
import subprocess
import sys

import pytest
from serving_samples import CPP, DOUBLE, judged

from warpsmith.interchange.create import create_definition
from warpsmith.interchange.flashinfer_export import export_definitions, to_json
from warpsmith.lab.operator import definition_file
from warpsmith.use import choice, serving
from warpsmith.use.choice import BestVersion

pytest.importorskip("flashinfer_bench")

pytestmark = [pytest.mark.slow, pytest.mark.own_process]

PROGRAM = """
import sys
import torch
from flashinfer_bench import ApplyConfig, TracingConfig, apply, enable_apply, enable_tracing

fallbacks = 0

@apply("double_h8")
def double(x):
    global fallbacks
    fallbacks += 1
    return 2 * x

mode, folder = sys.argv[1:]
config = TracingConfig(input_dump_policy="dump_all", filter_policy="keep_all")
runtime = enable_tracing(folder, config) if mode == "trace" else enable_apply(folder, ApplyConfig())
with runtime:
    for rows in (4, 40, 4, 4):
        x = 5 * torch.randn(rows, 8)
        assert torch.equal(double(x), 2 * x)
print("fallbacks", fallbacks)
"""


def test_a_traced_operator_is_served_by_its_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("FIB_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")  # noqa: PTH120
    source = tmp_path / "double" / "definition.py"
    source.parent.mkdir()
    source.write_text(DOUBLE)
    (traced,) = export_definitions(definition_file.load_definition(source).definition, source, "double_h8")
    dump = tmp_path / "dump"
    path = dump / traced.path("definitions")
    path.parent.mkdir(parents=True)
    path.write_text(to_json(traced.definition))

    def serve(mode, folder):
        command = [sys.executable, "program.py", mode, str(folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]

    assert serve("trace", dump) == "fallbacks 4"
    project = choice.projects.find_project()
    create_definition(project, "double", capture=dump)
    definition = definition_file.load_definition(project.definition_path("double")).definition
    assert {workload.name: workload.weight for workload in definition.workloads} == {"rows4": 3, "rows40": 1}

    version_path = project.kernels / "double" / "cpp" / "v1.cpp"
    version_path.parent.mkdir()
    version_path.write_text(CPP)
    evaluation = judged(version_path, rows4=2.0, rows40=2.0)
    version = BestVersion(
        op="double", solution="cpp/v1", language="cpp", target="cpu", device="a device", file=version_path,
        sha256=evaluation.provenance.solution_sha256, record=tmp_path / "record.json", speedups=(),
    )  # fmt: skip
    monkeypatch.setattr(choice, "rank_versions", lambda project, op: {"cpu": [version]})
    monkeypatch.setattr(choice, "read_judgement", lambda project, version: evaluation)
    serving.export_for_serving(project, "double", tmp_path / "out")
    hits = tmp_path / "hits.txt"
    monkeypatch.setenv("WARPSMITH_HITS", str(hits))
    assert serve("apply", tmp_path / "out") == "fallbacks 0"
    assert hits.read_text().splitlines()[-1].split()[1:] == ["double_h8_cpp_v1", "4"]
