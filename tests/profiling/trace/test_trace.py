"""Real scripts under torch.profiler in a process of their own, and what can go wrong with them and with files."""

from __future__ import annotations

import gzip
import json
import textwrap
from pathlib import Path

import pytest
from trace_kit import DATA

from warpsmith.errors import CorruptRecord, MissingInput, Misuse, SolutionFailed, TimedOut, WarpsmithError
from warpsmith.profiling.trace import script as trace

pytestmark = pytest.mark.usefixtures("forked_scripts")

EXAMPLE = Path(__file__).parents[3] / "examples" / "programs" / "train_gpt.py"
LIMIT = 120.0

STEPS = """
    import sys, types
    import beside
    import torch

    class Row:
        pass

    assert __name__ == "__main__" and sys.argv[1:] == ["--rows", "64"], sys.argv
    assert sys.modules["__main__"].Row is Row and beside.HERE
    print("to stderr")
    left, right = torch.ones(64, 64), torch.ones(64, 64)
    # What a GPU's build of PyTorch has by itself.
    torch.cuda.nvtx._nvtx = types.SimpleNamespace(rangePushA=lambda name: 0, rangePop=lambda: 0)
    done = 0
    try:
        while True:
            torch.cuda.nvtx.range_push("step")
            with torch.cuda.nvtx.range("inner"):
                (left @ right).relu_()
            done += 1
            torch.cuda.nvtx.range_pop()
    except Exception:
        raise AssertionError("the script saw how it was ended")
    finally:
        assert done == 4, done
"""


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return path


def test_a_script_runs_as_main_and_ends_after_the_steps_that_were_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "beside.py").write_text("HERE = True\n")
    found = trace.trace_script(
        script(tmp_path, STEPS), ["--rows", "64"], tmp_path / "out", steps=3, timeout=LIMIT
    )  # fmt: skip
    assert found.evidence == "cpu"
    assert found.region.steps is not None
    assert (found.region.steps.range, found.region.steps.ignored, found.region.steps.count) == ("step", 1, 3)
    assert {k.name: k.calls for k in found.kernels}["aten::mm"] == 3
    said = capfd.readouterr()
    assert (said.out, "to stderr" in said.err) == ("", True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [trace.FILE]
    assert trace.analyze_trace_file(tmp_path / "out" / trace.FILE) == found
    assert found.script == f"{tmp_path}/script.py --rows 64"


def test_the_example_is_traced_to_its_end(tmp_path: Path):
    sizes = ("steps=3", "layers=1", "width=32", "heads=2", "batch=2", "context=16", "vocabulary=64")
    args = [part for size in sizes for part in ("--" + size).split("=")]
    found = trace.trace_script(EXAMPLE, [*args, "--device", "cpu"], tmp_path, timeout=LIMIT)
    assert found.region.steps is not None
    assert found.region.steps.count == 2
    calls = {kernel.name: kernel.calls for kernel in found.kernels}
    # The block's three linear layers with a bias; the head has none, and neither has the backward pass.
    assert calls["aten::addmm"] / 2 == 3
    assert found.idle_share < 1


@pytest.mark.parametrize(
    ("text", "limit", "error", "message"),
    [
        ("import sys; print(5); sys.exit(3)", LIMIT, SolutionFailed, r"script\.py failed with exit code 3: "),
        ("import os; os.abort()", LIMIT, SolutionFailed, "failed with signal SIGABRT: it ended without a trace"),
        ("print('no PyTorch')", LIMIT, MissingInput, r"script\.py ran to its end and did nothing in PyTorch"),
        ("import time; time.sleep(60)", 0.5, TimedOut, r"script\.py took more than 0\.5 s"),
        (
            "import torch\nwith torch.profiler.profile(): pass",
            LIMIT,
            SolutionFailed,
            "code 1: RuntimeError: .* itself",
        ),
    ],
    ids=["exit code", "signal", "no events", "timeout", "a profiler of its own"],
)
def test_a_script_that_fails_leaves_the_earlier_trace(
    tmp_path: Path, text: str, limit: float, error: type[WarpsmithError], message: str
):
    earlier = tmp_path / "out" / trace.FILE
    earlier.parent.mkdir()
    earlier.write_bytes(b"earlier")
    with pytest.raises(error, match=message):
        trace.trace_script(script(tmp_path, text), [], earlier.parent, timeout=limit)
    assert [path.read_bytes() for path in earlier.parent.iterdir()] == [b"earlier"]


def test_a_script_that_is_not_there(tmp_path: Path):
    with pytest.raises(MissingInput, match=r"no script .*nothing\.py"):
        trace.trace_script(tmp_path / "nothing.py", [], tmp_path / "out", timeout=LIMIT)
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_folders_place_is_refused_before_anything_runs(tmp_path: Path):
    path = script(tmp_path, "raise SystemExit(9)")
    with pytest.raises(Misuse, match="is a file"):
        trace.trace_script(path, [], path, timeout=LIMIT)


def test_plain_and_gzip_are_the_same(tmp_path: Path):
    path = tmp_path / "overlap.json.gz"
    path.write_bytes(gzip.compress((DATA / "overlap.json").read_bytes()))
    other = {"source": "", "sha256": "0" * 64}
    assert trace.analyze_trace_file(path).model_copy(update=other) == trace.analyze_trace_file(
        DATA / "overlap.json"
    ).model_copy(update=other)


@pytest.mark.parametrize("packed", [True, False])
def test_a_trace_that_is_cut_off(tmp_path: Path, packed: bool):
    content = (DATA / "overlap.json").read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes((gzip.compress(content) if packed else content)[:-40])
    with pytest.raises(CorruptRecord, match=r"cut\.json is truncated or not a JSON trace"):
        trace.analyze_trace_file(path)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ([1, 2], Misuse, "not a Chrome trace"),
        ({"traceEvents": {}}, Misuse, "not a Chrome trace"),
        ({"traceEvents": []}, MissingInput, "neither kernels nor PyTorch operators"),
        ({"traceEvents": [3, {"ph": "X", "cat": "kernel", "name": "k"}]}, MissingInput, "neither kernels"),
    ],
)
def test_a_file_of_another_form(tmp_path: Path, content: object, error: type[WarpsmithError], message: str):
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))
    with pytest.raises(error, match=message):
        trace.analyze_trace_file(path)


def test_a_trace_that_is_not_there(tmp_path: Path):
    with pytest.raises(MissingInput, match="the file of one rank"):
        trace.analyze_trace_file(tmp_path)
