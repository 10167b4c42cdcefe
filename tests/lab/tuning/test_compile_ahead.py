"""The compiled reference is called once for each workload, in a process that the caller ends."""

from __future__ import annotations

import torch
from lab_samples import SQUARE
from workshop import Workshop

from warpsmith.lab.tuning import compile_ahead


def test_each_workload_is_compiled_and_called(workshop: Workshop, monkeypatch) -> None:
    file = workshop.load("square", SQUARE)
    sizes = []
    monkeypatch.setattr(torch, "compile", lambda function, **_: lambda x: sizes.append(function(x).shape[0]))
    compile_ahead.compile_reference(file.path, file.definition.workloads, "cpu")
    assert sizes == [1000, 5000]


def test_the_process_fails_in_silence_and_is_ended(workshop: Workshop, capfd) -> None:
    file = workshop.load("square", SQUARE)
    with compile_ahead.compile_meanwhile(file, file.definition.workloads, "nowhere") as process:
        assert process.wait() == 1
    with compile_ahead.compile_meanwhile(file, file.definition.workloads, "cpu") as process:
        assert process.poll() is None
    assert process.returncode == -9
    assert capfd.readouterr() == ("", "")
