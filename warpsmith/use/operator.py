"""Function `best(op)`: the fastest accepted version for this machine's device, as a plain function on tensors.

It is registered as a PyTorch operator, so it works under `torch.compile(fullgraph=True)` and in CUDA graphs.
Arguments that no version was judged on (another device, type or number of axes) go to the definition's reference,
with one warning.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from warpsmith import languages
from warpsmith.core.definition import ScalarSpec, TensorSpec
from warpsmith.core.evaluation import REFERENCE
from warpsmith.errors import BadDefinition, LeftOut, MachineLacks
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.languages.base import EntersLibrary, LibraryEntry, Run
from warpsmith.packages import require_torch
from warpsmith.temporary import TemporaryFolder
from warpsmith.use import choice, native_launch, rank_operator, shape_choice
from warpsmith.use.arguments import Arguments
from warpsmith.use.choice import BestVersion
from warpsmith.use.planned_calls import PlannedCalls, PlannedVersion
from warpsmith.use.shape_choice import AppliedMap

if TYPE_CHECKING:
    import torch

    from warpsmith.project import Project

_LOG = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
"""Seconds after which what kept a version from running is tried again."""

_choosing = threading.RLock()
"""Lock of the choice: warnings are collected meanwhile, which is not safe in two threads at once."""

_tolerant: set[str] = set()
"""Hashes of definitions whose versions may give way to the reference, since `best` chose them for a program."""

Function = Callable[..., Any]


class BestFunction(Protocol):
    """Version as a function."""

    solution: str
    """Version that runs: `triton/v7`; `cuda/v8, by shape also cuda/v7` with a map; `reference` if none can."""
    operator: Any
    """PyTorch's operator that calls the version; None for the reference."""

    def __call__(self, *positional: Any, **by_keyword: Any) -> Any:  # noqa: ANN401 - the definition says
        """Call with the definition's inputs; returns what the reference returns."""


NAMESPACE = "warpsmith"
"""PyTorch namespace of the operators: `torch.ops.warpsmith.softmax_triton_v7_1f2e3d4c`."""


def best(op: str, device: str | None = None) -> BestFunction:
    """Return the fastest accepted version of an operator for a device, as a function of the definition's inputs.

    The function takes tensors and numbers in the definition's order or by name, and returns what the reference
    returns. Omitted numbers have the definition's value. Gradients come from the definition's `backward(*inputs,
    *gradients of the outputs)`, which returns one gradient, or None, for each tensor input. If the definition has
    no `backward`, calls that need gradients go to the reference.

    Args:
        op: the operator, from the current project or a shipped one.
        device: `cpu`, `cuda` or `cuda:1`; by default a GPU if PyTorch has one.

    Of an operator over ranks it is the best version for this program's number of ranks: every rank calls it with
    its own tensors, after torch.distributed.init_process_group(). It has no gradients.

    Whatever keeps every version from running, the definition's reference runs instead, with a warning: a bad
    record, a folder that does not read, a missing compiler, a failed build, a full disk, or a failed first call.
    It is tried again after `RETRY_SECONDS`.

    Raises:
        MissingInput: there is no such operator.
        BadDefinition: its definition is wrong.
        MachineLacks: PyTorch is not installed.
        Misuse: it is an operator over ranks, and the process group is not there, or they cannot share it out.
    """
    require_torch("best()")
    import torch

    key = (op, device or ("cuda" if torch.cuda.is_available() else "cpu"), Path.cwd())
    with _choosing:
        chosen = _best(*key)
        if chosen.failed is not None and time.monotonic() > chosen.failed + RETRY_SECONDS:
            _best.cache_clear()
            chosen = _best(*key)
    return chosen.function


class _Chosen(NamedTuple):
    """Function that `best` returns, and the time of the failure, on the monotonic clock, if no version runs."""

    function: BestFunction
    failed: float | None


@functools.cache
def _best(op: str, device: str, _folder: Path) -> _Chosen:
    project = choice.find_owning_project(op)
    file = definition_file.load_definition(project.definition_path(op), over_ranks=None)
    if file.definition.ranks > 1:
        solution, run = rank_operator.best_over_ranks(project, file, _device_name(device))
        over_ranks = cast("BestFunction", run)
        over_ranks.solution, over_ranks.operator = solution, None
        return _Chosen(over_ranks, time.monotonic() if solution == REFERENCE else None)
    try:
        function = best_accepted(project, file, device)
    except BadDefinition:
        raise
    except Exception as error:  # a program goes on with the reference, whatever is broken
        warnings.warn(f"{op}: {_reason(error)}; its reference runs instead.", stacklevel=3)
        return _Chosen(_reference_function(file), time.monotonic())
    _tolerant.add(file.sha256)
    return _Chosen(function, None)


def _is_capturing(device: str) -> bool:
    """Return whether a CUDA graph is being captured: what runs now would run at each replay."""
    import torch

    return device == "cuda" and torch.cuda.is_current_stream_capturing()


def _reason(error: Exception) -> str:
    """Return the first line of an error's message without its full stop, or its class."""
    return (str(error).strip().splitlines() or [""])[0].rstrip(".") or type(error).__name__


def best_accepted(project: Project, file: DefinitionFile, device: str) -> BestFunction:
    """Return the best accepted version of a definition in its project, never the reference.

    Raises:
        MachineLacks: no version was accepted for the device, or none of them runs on this machine.
        BadDefinition: as `best`.
        Exception: what kept the best version from running; no other version runs either.
    """
    name, kind = _device_name(device), device.partition(":")[0]
    target = choice.target_of_device(project, name)
    applied = None
    with _collected_faults() as faults:
        versions = choice.versions_for_target(project, file.definition.name, target)
        if versions:
            applied = shape_choice.find_map(project, file.definition.name, target, versions)
    if not versions:
        raise MachineLacks(" ".join([*faults, f"no version was accepted for {name or 'the CPU'}"]))
    for fault in faults:
        warnings.warn(fault, LeftOut, stacklevel=4)
    mapped = _mapped_function(applied, file, kind) if applied and applied.versions else None
    return mapped or _first_runnable(versions, file, kind)


@contextlib.contextmanager
def _collected_faults() -> Iterator[list[str]]:
    """Collect what is left out because it does not read, each once; every other warning passes."""
    faults: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LeftOut)
        yield faults
    for warning in caught:
        if not issubclass(warning.category, LeftOut):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        elif (fault := str(warning.message)) not in faults:
            faults.append(fault)


def _device_name(device: str) -> str | None:
    """Return the GPU's name as its driver reports it; None for the processor."""
    import torch

    if torch.device(device).type == "cpu":
        return None
    if not torch.cuda.is_available():
        raise MachineLacks("PyTorch has no GPU on this machine")
    return torch.cuda.get_device_name(device)


def _mapped_function(applied: AppliedMap, file: DefinitionFile, device: str) -> BestFunction | None:
    """Return a function that runs the versions of a map by shape; None if its best single version does not run.

    Where another one does not run, the best single version does, with one warning.
    """
    runs: dict[str, Run] = {}
    reasons: dict[str, str] = {}
    for version in applied.versions:
        try:
            runs[version.solution] = _load_version(version, file, device).run
        except Exception as error:
            reasons[version.solution] = _reason(error)
    best = applied.versions[0]
    if best.solution not in runs:
        return None
    if reasons:
        reason = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        warnings.warn(f"{best.op}: {reason}; {best.solution} runs at its shapes instead.", stacklevel=5)
    run = shape_choice.run_by_shape(applied, runs, file, Arguments(file.definition, device))
    mapped = best.model_copy(update={"sha256": shape_choice.map_sha256(applied)})  # an operator of its own
    function = _registered_function(mapped, file, device, _Loaded(run, None))
    function.solution = shape_choice.solution_text(applied, runs)
    return function


def _first_runnable(versions: Sequence[BestVersion], file: DefinitionFile, device: str) -> BestFunction:
    """Return the best version that runs on this machine, with one warning if it is not the best of all.

    Raises what `_registered_function` raises for the best version, if none runs.
    """
    first_error: Exception | None = None
    for version in versions:
        try:
            function = _registered_function(version, file, device)
        except BadDefinition:
            raise
        except Exception as error:
            first_error = first_error or error
            continue
        if first_error:
            best_of_all, reason = versions[0].solution, _reason(first_error)
            warnings.warn(f"{version.op}: {best_of_all}: {reason}; {version.solution} runs instead.", stacklevel=5)
        return function
    assert first_error is not None  # There is at least one version.
    raise first_error


def _registered_function(
    version: BestVersion, file: DefinitionFile, device: str, loaded: _Loaded | None = None
) -> BestFunction:
    """Register the version with PyTorch's dispatcher and wrap it; it is loaded unless it is `loaded` already.

    Raises:
        BadDefinition, BuildFailed, MachineLacks: the version cannot run.
    """
    import torch

    arguments = Arguments(file.definition, device, own_inputs=file.inputs is not None)
    arguments.check()
    loaded = loaded or _load_version(version, file, device)
    operator, planned = _register_operator(version, file, arguments, loaded, device)
    differentiable, warned, count = file.backward is not None, False, len(file.definition.inputs)

    def function(*positional: Any, **by_keyword: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        nonlocal warned
        complete = len(positional) == count and not by_keyword
        values = positional if complete else arguments.bind(positional, by_keyword)
        if not torch.compiler.is_compiling():
            results = planned.replay(values, False)
            if results is not None:
                return results
        mismatch = arguments.describe_mismatch(values) or (
            "" if differentiable else arguments.undefined_gradient(values)
        )
        if not mismatch:
            return operator(*values)
        if not warned and not torch.compiler.is_compiling():
            warned = True
            warnings.warn(f"{version.op}: {mismatch}; its reference runs instead.", stacklevel=2)
        return file.reference(*values)

    return _with_signature(function, file, version.solution, operator)


def _reference_function(file: DefinitionFile) -> BestFunction:
    """Wrap the reference so that it is called like a version."""
    arguments = Arguments(file.definition, "cpu")

    def function(*positional: Any, **by_keyword: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        return file.reference(*arguments.bind(positional, by_keyword))

    return _with_signature(function, file, REFERENCE, None)


class _Loaded(NamedTuple):
    run: Run
    entry: LibraryEntry | None


def _load_version(version: BestVersion, file: DefinitionFile, device: str) -> _Loaded:
    language = languages.get(version.language)
    gap = language.missing("cpu" if device == "cpu" else "gpu")
    if gap:
        raise MachineLacks(gap)
    built = language.build(version.file, file.definition, _cache_folder())
    run = language.load(replace(built, cache=_cache_folder()), file.definition)
    unspecific: object = language
    entry = unspecific.library_entry(built, file.definition) if isinstance(unspecific, EntersLibrary) else None
    return _Loaded(run, entry)


def _cache_folder() -> Path:
    """Return the folder of libraries and programs compiled for this machine.

    If it is not writable, return a folder of this process, which starts as a copy and is removed with the process.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "warpsmith" / "built"
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            return Path(_process_folder(folder).name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    except (OSError, RuntimeError) as error:  # There is no home folder, or it belongs to another user.
        _LOG.info("compiled code is not cached: %s", error)
        return Path(_process_folder().name)


@functools.cache
def _process_folder(cache: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    folder = TemporaryFolder()
    if cache:
        _LOG.info("compiled code is not cached: %s is not writable", cache)
        with contextlib.suppress(OSError):  # Files that cannot be read are compiled again.
            for file in filter(Path.is_file, cache.rglob("*")):
                copy = folder.name / file.relative_to(cache)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)  # The mode is not copied, since it is read-only.
    return folder


def _register_operator(
    version: BestVersion, file: DefinitionFile, arguments: Arguments, loaded: _Loaded, device: str
) -> tuple[Function, PlannedCalls]:
    """Register the version once per process; return PyTorch's operator and the plans of its calls."""
    import torch

    definition = file.definition
    lock = threading.Lock()  # A version is judged one call at a time, so it may keep a workspace.
    has_one_output, takes_outputs = len(definition.outputs) == 1, definition.outputs_are == "given"
    unique = hashlib.sha256(f"{version.sha256}{file.sha256}".encode()).hexdigest()[:8]
    name = f"{version.op}_{version.solution.replace('/', '_')}_{unique}"
    namespace = getattr(torch.ops, NAMESPACE)
    if name in _planned:
        return getattr(namespace, name).default, _planned[name]
    run = loaded.run

    def call(values: Sequence[Any]) -> list[torch.Tensor]:
        if takes_outputs:
            outputs = arguments.allocate(values)
            run(*values, *outputs)
            return outputs
        result = run(*values)
        return list(result) if isinstance(result, tuple | list) else [result]

    names = getattr(run, "__globals__", {})
    plannable = PlannedVersion(
        f"{version.op} {version.solution}", device, call, names, has_one_output, loaded.entry
    )
    planned = _planned[name] = PlannedCalls(plannable, lock, native_launch.extension(_cache_folder()))

    has_run, failed_at = False, 0.0

    def kernel(*values: Any) -> Any:  # noqa: ANN401
        nonlocal has_run, failed_at
        if failed_at > 0 and time.monotonic() < failed_at + RETRY_SECONDS:
            return reference_outputs(values)
        planned.calls += 1
        results = planned.replay(values, True)  # here when the call comes from a compiled graph or from autograd
        if results is not None:
            return results
        values = tuple(arguments.make_contiguous(values))
        try:
            with lock, arguments.device_of(values):
                outputs = planned.run(values)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # the first call compiles, which takes a compiler and a disk
            if has_run or file.sha256 not in _tolerant or _is_capturing(device):
                raise
            failed_at = time.monotonic()
            reason = f"{version.op}: {version.solution} failed at its first call: {_reason(error)}"
            warnings.warn(f"{reason}; its reference runs instead.", stacklevel=2)
            return reference_outputs(values)
        has_run = True
        return outputs[0] if has_one_output else tuple(outputs)

    def reference_outputs(values: Sequence[Any]) -> Any:  # noqa: ANN401
        results = file.reference(*values)
        if has_one_output:
            return (results[0] if isinstance(results, tuple | list) else results).contiguous()
        return tuple(result.contiguous() for result in results)

    def allocate_fake(*values: Any) -> Any:  # noqa: ANN401
        outputs = arguments.allocate(values)
        return outputs[0] if has_one_output else tuple(outputs)

    library = _library()
    library.define(f"{name}{_schema(file)}", tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
    library.impl(name, kernel, device.upper())  # type: ignore[no-untyped-call]
    torch.library.register_fake(f"{NAMESPACE}::{name}", allocate_fake, lib=library)
    _register_gradient(f"{NAMESPACE}::{name}", file, library)
    return getattr(namespace, name).default, planned


_planned: dict[str, PlannedCalls] = {}


def planned_operators() -> dict[str, PlannedCalls]:
    """Return the plans of the operators that are registered in this process, by the operators' names."""
    return dict(_planned)


@functools.cache
def _library() -> torch.library.Library:
    import torch

    return torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]


def _schema(file: DefinitionFile) -> str:
    """Return the schema of the operator: `(Tensor x, float eps) -> (Tensor, Tensor)`."""
    kinds = {"float": "float", "int": "SymInt", "bool": "bool"}
    parameters = ", ".join(
        f"{'Tensor' if isinstance(spec, TensorSpec) else kinds[spec.type]} {name}"
        for name, spec in file.definition.inputs.items()
    )
    results = ", ".join("Tensor" for _ in file.definition.outputs)
    return f"({parameters}) -> {results if len(file.definition.outputs) == 1 else f'({results})'}"


def _register_gradient(name: str, file: DefinitionFile, library: torch.library.Library) -> None:
    import torch

    gradient = file.backward
    if gradient is None:
        return
    tensors = [isinstance(spec, TensorSpec) for spec in file.definition.inputs.values()]

    def save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ANN401
        ctx.save_for_backward(*(value for value, is_tensor in zip(inputs, tensors, strict=True) if is_tensor))
        ctx.numbers = [value for value, is_tensor in zip(inputs, tensors, strict=True) if not is_tensor]

    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:  # noqa: ANN401
        saved, numbers = iter(ctx.saved_tensors), iter(ctx.numbers)
        inputs = [next(saved) if is_tensor else next(numbers) for is_tensor in tensors]
        result = gradient(*inputs, *gradients)
        gradients_of_inputs = result if isinstance(result, tuple | list) else (result,)
        if len(gradients_of_inputs) != sum(tensors):
            raise BadDefinition(
                f"{file.path}: backward returns {len(gradients_of_inputs)} gradients, not {sum(tensors)}."
            )
        remaining = iter(gradients_of_inputs)
        return tuple(next(remaining) if is_tensor else None for is_tensor in tensors)

    torch.library.register_autograd(name, backward, setup_context=save_inputs, lib=library)


def _with_signature(function: Function, file: DefinitionFile, solution: str, operator: Any) -> BestFunction:  # noqa: ANN401
    """Set the name, description, signature, solution and operator of `function`."""
    definition, kind = file.definition, inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__name__ = function.__qualname__ = definition.name
    function.__doc__ = f"{definition.description}."
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, kind, default=spec.value if isinstance(spec, ScalarSpec) else inspect.Parameter.empty
            )
            for name, spec in definition.inputs.items()
        ]
    )
    best_function = cast("BestFunction", function)
    best_function.solution, best_function.operator = solution, operator
    return best_function
