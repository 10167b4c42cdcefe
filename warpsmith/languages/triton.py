"""Triton: one file with `run(...)` and its kernels. On a CPU the interpreter says only whether it is right."""

from __future__ import annotations

import ast
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages import tool, triton_interpret, triton_source
from warpsmith.languages.base import Build, BuildFailed, Language, Listing, Run

ARCHITECTURES = {"sm_80": 80, "sm_89": 89, "sm_90a": 90, "sm_100": 100}
"""What `inspect` compiles for, with the compute capability times ten."""

_SECONDS = 120.0
_numbers = itertools.count()


class Triton:
    """The language `triton`."""

    name = "triton"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready.

        `cpu` is the interpreter: it tells whether a kernel is right, never how fast it is.
        """
        lacking = [name for name in ("torch", "triton") if find_spec(name) is None]
        if lacking:
            return f"Python's {' and '.join(lacking)} cannot be imported: pip install 'warpsmith[lab,triton]'."
        if target_kind != "cpu" and not _has_device():
            return "No CUDA device: the kernels can be compiled and interpreted here, not timed."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Why the interpreter's result says nothing at this workload; None: it does."""
        specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
        if any(definition.dtype(spec, workload) == "bfloat16" for spec in specs):
            return f"Triton's interpreter computes bfloat16 wrongly: `{workload.name}` needs a GPU to be judged."
        return None

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: the signature, and a body to fill in."""
        return triton_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without comments, docstrings and layout."""
        return triton_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return triton_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        try:
            tree = ast.parse(source.read_bytes(), source.name)
        except (SyntaxError, ValueError) as error:
            where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
            text = error.msg if isinstance(error, SyntaxError) else str(error)
            raise BuildFailed(f"{source.name} does not parse{where}: {text}.") from error
        fault = triton_source.signature_fault(tree, definition)
        if fault:
            raise BuildFailed(f"{source.name} has no `run` for {definition.name}: {fault}.")
        return Build(source, source, ())

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only; without a device its kernels are interpreted."""
        if not _has_device() and "triton" not in sys.modules:
            os.environ["TRITON_INTERPRET"] = "1"  # read when triton and the kernels are imported
        if not _has_device():
            triton_interpret.mend()
        run: Run = execute(build.artifact).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, launches of kernels do nothing; in the worker process only."""
        from triton.runtime.autotuner import Autotuner, Heuristics
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        launchers = (JITFunction, InterpretedFunction, Autotuner, Heuristics)
        real = [launcher.run for launcher in launchers]
        for launcher in launchers:
            launcher.run = lambda *_, **__: None
        try:
            yield
        finally:
            for launcher, run in zip(launchers, real, strict=True):
                launcher.run = run

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the driver says of every kernel that was launched; nothing from the interpreter."""
        functions = _functions(getattr(run, "__globals__", {}))
        found = (_launched(function.__name__, kernel) for function in functions for kernel in _kernels(function))
        return tuple(dict.fromkeys(found))

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile what `run` launches on the first representative workload; no device is needed.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes more than two minutes.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        import tempfile

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
        """PTX and SASS of every specialisation that `run` launches at these workloads; no device is needed.

        They are written as `<kernel>.<arch>.ptx` and `.sass`; those of an earlier call go.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes more than two minutes.
            MachineLacks: Triton, or its disassembler, is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        import json
        import tempfile

        from warpsmith import files

        with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
            made = Path(temporary)
            reports = _compile_only(source, definition, arch, made, workloads)
            launches = json.loads((made / "launches.json").read_text())
            texts = sorted(path for path in made.iterdir() if path.suffix in (".ptx", ".sass"))
            for path in texts:
                files.write(folder / path.name, path.read_bytes())
            names = {path.name for path in texts}
        for suffix in ("ptx", "sass"):
            for path in folder.glob(f"*.{arch}.{suffix}"):
                if path.name not in names:
                    path.unlink()
        return tuple(_listing(launch, report, folder) for launch, report in zip(launches, reports, strict=True))


LANGUAGE: Language = Triton()


def execute(path: Path) -> ModuleType:
    """The module of a file, under a name of its own and without bytecode beside it."""
    source = path.read_bytes()
    name = f"warpsmith_solution_{hashlib.sha256(source).hexdigest()[:12]}_{next(_numbers)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def launch_note(metadata: Any) -> str:  # noqa: ANN401 - triton publishes no types
    """The launch's knobs, from a compiled kernel's metadata."""
    knobs = ("num_warps", "num_stages", "num_ctas")
    return ", ".join(f"{knob} {getattr(metadata, knob)}" for knob in knobs if hasattr(metadata, knob))


def _unknown(arch: str) -> Misuse:
    return Misuse(
        f"`{arch}` is no architecture that Triton kernels are inspected for: {', '.join(ARCHITECTURES)}."
    )


def _listing(launch: dict[str, Any], report: Resources, folder: Path) -> Listing:
    return Listing(
        kernel=report.kernel,
        workloads=tuple(launch["workloads"]),
        variant=launch["variant"],
        isa="sass",
        assembly=folder / f"{launch['stem']}.sass",
        resources=report,
        ptx=folder / f"{launch['stem']}.ptx",
        unaligned=tuple(launch["unaligned"]),
        matrix_product=launch["matrix_product"],
    )


def _compile_only(
    source: Path, definition: Definition, arch: str, folder: Path, workloads: Sequence[Workload] = ()
) -> tuple[Resources, ...]:
    """In a process of its own: what it patches does not leak, and it can be killed."""
    import json

    if arch not in ARCHITECTURES:
        raise _unknown(arch)
    lacking = LANGUAGE.missing("cpu")
    if lacking:
        raise MachineLacks(lacking)
    LANGUAGE.build(source, definition, folder)
    request = {
        "source": str(source.resolve()),
        "definition": definition.model_dump(mode="json"),
        "arch": arch,
        "workloads": [workload.name for workload in workloads or definition.select("representative")[:1]],
    }
    (folder / "request.json").write_text(json.dumps(request))
    command = [sys.executable, "-P", "-m", "warpsmith.languages.triton_compile", str(folder)]
    environment = {"CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(folder / "cache")}
    try:
        ended = tool.run(command, _SECONDS, environment=environment)
    except TimeoutError as error:
        raise BuildFailed(f"{source.name} was not compiled for {arch}: {error}.") from error
    lacks = folder / "lacks.txt"
    if lacks.is_file():
        raise MachineLacks(lacks.read_text())
    if ended.code != 0:
        said = [line for line in ended.output.splitlines() if line.strip()]
        raise BuildFailed(f"{source.name} does not compile for {arch}.\n{tool.fenced(said[-8:])}")
    found = json.loads((folder / "resources.json").read_text())
    return tuple(Resources.model_validate(resource) for resource in found)


def _has_device() -> bool:
    torch = sys.modules.get("torch")
    return bool(torch.cuda.is_available()) if torch is not None else Path("/dev/nvidiactl").exists()


def _functions(names: dict[str, Any]) -> Iterator[Any]:
    """The jitted functions among a module's globals, out of their wrappers."""
    for value in list(names.values()):
        inner = value
        while inner is not None and not hasattr(inner, "device_caches"):
            inner = getattr(inner, "fn", None)
        if inner is not None:
            yield inner


def _kernels(function: Any) -> Iterator[Any]:  # noqa: ANN401 - triton publishes no types
    """Its kernels that were loaded; every release keeps them first in a device's entry."""
    for entry in dict(function.device_caches).values():
        cache = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(cache, dict):
            yield from (kernel for kernel in cache.values() if getattr(kernel, "n_regs", None) is not None)


def _launched(name: str, kernel: Any) -> Resources:  # noqa: ANN401
    metadata = kernel.metadata
    spills = getattr(kernel, "n_spills", None)
    return Resources(
        kernel=name,
        registers=kernel.n_regs,
        shared_bytes=getattr(metadata, "shared", None),
        spill_bytes=None if spills is None else 4 * spills,  # the driver's local memory, counted in words
        notes=(launch_note(metadata),),
    )
