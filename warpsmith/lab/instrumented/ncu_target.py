"""Program that a profiler runs: it makes one marked call of a version on one workload. Start it with `python -m`.

Its output is for people only. The version's code runs here with the user's rights and leads to a report, never to
a verdict.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warpsmith import languages
from warpsmith.core.definition import Workload
from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, WarpsmithError
from warpsmith.lab.instrumented import target_program
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.temporary import TemporaryFolder

WARM_UPS = 3
"""Calls before the profiled one; the first compiles or tunes."""

_SEED = 20260115


def main(arguments: Sequence[str] | None = None) -> int:
    """Profile what the arguments name; return the exit code of the kind of error that ended it."""
    options = _parser().parse_args(arguments)
    try:
        _profile(options)
    except WarpsmithError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def ncu_target_command(
    definition: Path, solution: Path, language: str, version: str, workload: str, target: str | None = None
) -> list[str]:
    """Return the command line of this program."""
    line = [sys.executable, "-m", "warpsmith.lab.instrumented.ncu_target"]
    line += ["--definition", str(definition), "--solution", str(solution), "--language", language]
    line += ["--version", version, "--workload", workload]
    return [*line, "--target", target] if target else line


def draw_arguments(file: DefinitionFile, workload: Workload, device: str) -> list[Any]:
    """Return the arguments of `run`: drawn inputs, scalars, and outputs if the definition gives them."""
    drawn = Inputs(file, workload, _SEED, device).draw()
    return target_program.run_arguments(file.definition, workload, drawn, device)


def run_marked_call(call: Callable[[], object], settle: Callable[[], object], start: Callable[[], object],
         stop: Callable[[], object]) -> None:  # fmt: skip
    """Warm up, then call once between `start` and `stop`; the device is idle at both."""
    for _ in range(WARM_UPS):
        call()
    settle()
    start()
    try:
        call()
        settle()
    finally:
        stop()


def _profile(options: argparse.Namespace) -> None:
    import torch

    if not torch.cuda.is_available():
        raise MachineLacks("PyTorch sees no CUDA device; only kernels on a CUDA device can be profiled.")
    if options.target:
        _require_target(options.definition, options.target)
    file = definition_file.load_definition(options.definition)
    workload = _workload(file, options.workload)
    language = languages.get(options.language)
    gap = language.missing("gpu")
    if gap:
        raise MachineLacks(gap)
    name = f"{options.language}/{options.version}"
    with TemporaryFolder("build") as folder:
        build = language.build(options.solution, file.definition, Path(folder))
        try:
            run = language.load(build, file.definition)
            arguments = draw_arguments(file, workload, "cuda")
            profiler: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            run_marked_call(lambda: run(*arguments), torch.cuda.synchronize, profiler.cudaProfilerStart,
                 profiler.cudaProfilerStop)  # fmt: skip
        except WarpsmithError:
            raise
        except Exception as error:
            raise SolutionFailed(
                f"{name} fails at {workload.name}: {target_program.describe_exception(error)}"
            ) from error


def _require_target(definition: Path, target: str) -> None:
    """Raise an error if the GPU of this machine is not the target's."""
    from warpsmith import project
    from warpsmith.lab.machine import hardware, identity

    identity.identify_machine(hardware.read_target_page(project.find_project(definition.parent), target).target)


def _workload(file: DefinitionFile, name: str) -> Workload:
    by_name = {workload.name: workload for workload in file.definition.workloads}
    if name not in by_name:
        raise Misuse(f"{file.path} has no workload `{name}`; it has {', '.join(by_name)}.")
    return by_name[name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ncu_target", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True, help="kernels/<op>/definition.py")
    parser.add_argument("--solution", type=Path, required=True, help="the version's file")
    parser.add_argument("--language", required=True)
    parser.add_argument("--version", required=True, help="v3")
    parser.add_argument("--workload", required=True, help="its name in the definition")
    parser.add_argument("--target", help="target that the GPU of this machine must belong to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
