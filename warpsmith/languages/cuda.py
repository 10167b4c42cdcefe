"""CUDA C++: one Python file whose strings hold the kernels; NVRTC compiles them, cuda.core launches them."""

from __future__ import annotations

import ast
import gc
import importlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import _lru_cache_wrapper, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages import cuda_source, tool, triton_source
from warpsmith.languages.base import Build, BuildFailed, Language, Listing, Run
from warpsmith.languages.triton import ARCHITECTURES, _has_device, execute

_SECONDS = 120.0
_HEADERS = {"cudart": "nvidia-cuda-runtime", "cccl": "nvidia-cuda-cccl"}
"""NVIDIA's name of a folder of headers, and the package that brings it: `cuda_bf16.h` and its like; CCCL's
`cuda/ptx` and `cub`, which `cooperative_groups.h` needs too."""
_CONTAINERS = (dict, list, tuple, set, _lru_cache_wrapper)


class Cuda:
    """The language `cuda`."""

    name = "cuda"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready."""
        if lacks := _lacking():
            return lacks
        if target_kind == "cpu":
            return "CUDA C++ has no interpreter: its versions are compiled anywhere, and judged on a GPU only."
        if not _has_device():
            return "No CUDA device: the kernels can be compiled here, not run."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """None: what runs is the compiled code itself."""
        return None

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: a kernel, how it is compiled, and a `run` to fill in."""
        return cuda_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without docstrings, layout and comments, those of the kernels included."""
        return cuda_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return cuda_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check the signature, and the syntax of programs that stand in the file; the rest compiles when it runs.

        Raises:
            BuildFailed: the file or a program does not parse, or `run` does not take the definition's parameters.
        """
        try:
            tree = ast.parse(source.read_bytes(), source.name)
        except (SyntaxError, ValueError) as error:
            where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
            text = error.msg if isinstance(error, SyntaxError) else str(error)
            raise BuildFailed(f"{source.name} does not parse{where}: {text}.") from error
        if fault := triton_source.signature_fault(tree, definition):
            raise BuildFailed(f"{source.name} has no `run` for {definition.name}: {fault}.")
        if cuda_source.static_programs(tree) and not _lacking():
            with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
                _child(source, {"syntax": True}, Path(temporary), "does not compile")
        return Build(source, source, ())

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only; NVRTC's messages name lines of the file."""
        core = importlib.import_module("cuda.core")
        path, real = build.artifact, core.Program
        place = partial(cuda_source.placed, source=path.read_text(), file=path.name)

        class Program(real):  # type: ignore[misc, valid-type]
            def __init__(self, code: Any, code_type: str, options: Any = None) -> None:  # noqa: ANN401
                super().__init__(place(code) if code_type == "c++" else code, code_type, options)

        with patch.object(core, "Program", Program):
            run: Run = execute(path).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, launches of kernels do nothing; in the worker process only."""
        core, driver = importlib.import_module("cuda.core"), importlib.import_module("cuda.bindings.driver")
        fine = (driver.CUresult.CUDA_SUCCESS,)
        nothing = {core.launch: lambda *_, **__: None}
        nothing |= {driver.cuLaunchKernel: lambda *_: fine, driver.cuLaunchKernelEx: lambda *_: fine}
        solutions = [module for name, module in sys.modules.items() if name.startswith("warpsmith_solution_")]
        with ExitStack() as stack:
            for module in (core, driver, *solutions):
                for name, value in list(vars(module).items()):
                    held = next((held for real, held in nothing.items() if value is real), None)
                    if held is not None:
                        stack.enter_context(patch.object(module, name, held))
            yield

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the driver says of every kernel that the file keeps."""
        found = map(_loaded, _kernels(getattr(run, "__globals__", {})))
        return tuple(dict.fromkeys(found))

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile what `run` launches on the first representative workload; no device is needed.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes more than two minutes.
            MachineLacks: a package, NVIDIA's headers or a disassembler is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            return _compile_only(source, definition, arch, Path(folder))

    def architecture(self, asked: str | None) -> str:
        """The architecture as its kernels are compiled for: `sm_90` is `sm_90a`.

        Raises:
            Misuse: it is not of `ARCHITECTURES`.
        """
        if asked is None:
            return "sm_90a"
        found = next((arch for arch in ARCHITECTURES if arch.removesuffix("a") == asked.removesuffix("a")), None)
        if found is None:
            raise _unknown(asked)
        return found

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """SASS of every kernel that `run` launches at these workloads; no device is needed.

        It is written as `<kernel>.<arch>.sass`; those of an earlier call go.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes more than two minutes.
            MachineLacks: a package, NVIDIA's headers or a disassembler is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        from warpsmith import files

        with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
            made = Path(temporary)
            reports = _compile_only(source, definition, arch, made, workloads)
            launches = json.loads((made / "launches.json").read_text())
            names = {f"{launch['stem']}.sass" for launch in launches}
            for name in names:
                files.write(folder / name, (made / name).read_bytes())
        for path in folder.glob(f"*.{arch}.sass"):
            if path.name not in names:
                path.unlink()
        return tuple(_listing(launch, report, folder) for launch, report in zip(launches, reports, strict=True))


LANGUAGE: Language = Cuda()


def headers() -> dict[str, Path | None]:
    """Where NVIDIA's headers are, by NVIDIA's name for each folder; None: nowhere."""
    find = importlib.import_module("cuda.pathfinder").find_nvidia_header_directory
    found = {name: find(name) for name in _HEADERS}
    return {name: Path(path) if path else None for name, path in found.items()}


def told_headers() -> str:
    """Which headers are where, and how to get the others; those of CCCL are needed by some versions only."""
    return ", ".join(
        f"{name} in {path}" if path else f"{name} nowhere (pip install {_HEADERS[name]})"
        for name, path in headers().items()
    )


def short_name(name: str) -> str:
    """A kernel's name without namespaces and template arguments, mangled or not: `softmax`."""
    plain = name.partition("<")[0].rpartition("::")[2]
    if not plain.startswith("_Z"):
        return plain
    at = re.match(r"_ZN?", plain)
    rest, last = plain[at.end() :] if at else plain, plain
    while found := re.match(r"(\d+)", rest):
        end = found.end() + int(found[1])
        last, rest = rest[found.end() : end], rest[end:]
    return last


def _lacking() -> str | None:
    """What stands against compiling here, in one sentence."""
    packages = {"torch": "torch", "cuda.core": "cuda"}
    lacking = [name for name, parent in packages.items() if not (find_spec(parent) and find_spec(name))]
    if lacking:
        return f"Python's {' and '.join(lacking)} cannot be imported: pip install 'warpsmith[lab,cuda]'."
    if headers()["cudart"] is None:
        return f"NVIDIA's headers are missing: {told_headers()}, or set CUDA_HOME to a toolkit."
    return None


def _unknown(arch: str) -> Misuse:
    return Misuse(f"`{arch}` is no architecture that CUDA C++ is inspected for: {', '.join(ARCHITECTURES)}.")


def _compile_only(
    source: Path, definition: Definition, arch: str, folder: Path, workloads: Sequence[Workload] = ()
) -> tuple[Resources, ...]:
    if arch not in ARCHITECTURES:
        raise _unknown(arch)
    if lacks := _lacking():
        raise MachineLacks(lacks)
    if find_spec("triton") is None:
        raise MachineLacks(
            "The disassemblers come with Triton, which is missing: pip install 'warpsmith[triton]'."
        )
    LANGUAGE.build(source, definition, folder)
    request = {
        "definition": definition.model_dump(mode="json"),
        "arch": arch,
        "workloads": [workload.name for workload in workloads or definition.select("representative")[:1]],
    }
    _child(source, request, folder, f"does not compile for {arch}")
    found = json.loads((folder / "resources.json").read_text())
    return tuple(Resources.model_validate(resource) for resource in found)


def _child(source: Path, request: dict[str, Any], folder: Path, failure: str) -> None:
    """In a process of its own: what it patches does not leak, and it can be killed."""
    (folder / "request.json").write_text(json.dumps({"source": str(source.resolve()), **request}))
    command = [sys.executable, "-P", "-m", "warpsmith.languages.cuda_compile", str(folder)]
    try:
        ended = tool.run(command, _SECONDS, environment={"CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(folder)})
    except TimeoutError as error:
        raise BuildFailed(f"{source.name} was not compiled: {error}.") from error
    lacks = folder / "lacks.txt"
    if lacks.is_file():
        raise MachineLacks(lacks.read_text())
    if ended.code != 0:
        said = [line for line in ended.output.splitlines() if line.strip()]
        raise BuildFailed(f"{source.name} {failure}.\n{tool.fenced(said)}")


def _listing(launch: dict[str, Any], report: Resources, folder: Path) -> Listing:
    return Listing(
        kernel=report.kernel,
        workloads=tuple(launch["workloads"]),
        variant=launch["variant"],
        isa="sass",
        assembly=folder / f"{launch['stem']}.sass",
        resources=report,
        matrix_product=launch["matrix_product"],
    )


def _kernels(names: dict[str, Any]) -> Iterator[Any]:
    """The kernels that a module's globals hold, in containers and in what `functools.cache` keeps."""
    kernel = importlib.import_module("cuda.core").Kernel
    seen, left = set[int](), list[Any](names.values())
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, ModuleType):
            continue
        seen.add(id(value))
        if isinstance(value, kernel):
            yield value
        elif isinstance(value, _CONTAINERS):
            left.extend(gc.get_referents(value))


def _loaded(kernel: Any) -> Resources:  # noqa: ANN401 - an extension type
    driver = importlib.import_module("cuda.bindings.driver")
    status, name = driver.cuKernelGetName(kernel.handle)

    def told(attribute: str) -> int:
        value = getattr(kernel.attributes, attribute)
        return int(value() if callable(value) else value)  # methods before cuda.core 1.0

    return Resources(
        kernel=short_name(name.decode()) if int(status) == 0 else "kernel",
        registers=told("num_regs"),
        shared_bytes=told("shared_size_bytes"),
        spill_bytes=told("local_size_bytes"),
        notes=(f"threads a block at most {told('max_threads_per_block')}",),
    )
