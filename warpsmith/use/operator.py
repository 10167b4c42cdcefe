"""`best(op)`: the fastest accepted version for the device at hand, as a plain function on tensors.

It is an operator of PyTorch's own, so it works under `torch.compile(fullgraph=True)` and in CUDA graphs. What no
version was judged at (another device, type or number of axes) goes to the definition's reference, with one
warning.
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
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from warpsmith import languages
from warpsmith.core.definition import ScalarSpec, TensorSpec
from warpsmith.core.evaluation import REFERENCE
from warpsmith.errors import BadDefinition, MachineLacks
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.languages.base import BuildFailed, Run
from warpsmith.use import choice
from warpsmith.use.arguments import Arguments
from warpsmith.use.choice import BestVersion

if TYPE_CHECKING:
    import torch

    from warpsmith.project import Project

_LOG = logging.getLogger(__name__)

Function = Callable[..., Any]


class BestFunction(Protocol):
    """A version as a function."""

    solution: str
    """What runs: `triton/v7`, or `reference` where no version can."""

    def __call__(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - the definition says
        """What the reference returns, of the definition's inputs."""


NAMESPACE = "warpsmith"
"""Where operators are registered: `torch.ops.warpsmith.softmax_triton_v7_1f2e3d4c`."""


def best(op: str, device: str | None = None) -> BestFunction:
    """The fastest accepted version of an operator for a device, as a function of the definition's inputs.

    It takes tensors and numbers in the definition's order or by name, and returns what the reference returns.
    Numbers may be left out: then they have the definition's value. Gradients come from the definition's
    `backward(*inputs, *gradients of the outputs)`, which returns one for each tensor input or None; where it has
    none, calls that need gradients go to the reference.

    Args:
        op: the operator, of the project at hand or of those that ship.
        device: `cpu`, `cuda` or `cuda:1`; by default a GPU where PyTorch has one.

    Raises:
        MissingInput: there is no such operator.
        BadDefinition: its definition is wrong.
        CorruptRecord: a record of its campaigns is corrupt.
    """
    import torch

    return _best(op, device or ("cuda" if torch.cuda.is_available() else "cpu"), Path.cwd())


@functools.cache
def _best(op: str, device: str, _folder: Path) -> BestFunction:
    here = choice.find_owning_project(op)
    file = definition_file.load_definition(here.definition_path(op))
    try:
        return best_accepted(here, file, device)
    except (MachineLacks, BuildFailed, OSError) as error:
        warnings.warn(f"{op}: {str(error).rstrip('.')}; its reference runs instead.", stacklevel=3)
        return _reference_function(file)


def best_accepted(here: Project, file: DefinitionFile, device: str) -> BestFunction:
    """As `best`, of a definition in its project, and never the reference.

    Raises:
        MachineLacks: no version was accepted for the device, or none of them can run here.
        BuildFailed, OSError: the best one does not build here, and no other can run.
        CorruptRecord, BadDefinition: as `best`.
    """
    name = _device_name(device)
    versions = choice.versions_for_target(here, file.definition.name, choice.target_of_device(here, name))
    if not versions:
        raise MachineLacks(f"no version was accepted for {name or 'the CPU'}")
    return _first_runnable(versions, file, device.partition(":")[0])


def _device_name(device: str) -> str | None:
    """The GPU's name as its driver has it; None for the processor."""
    import torch

    if torch.device(device).type == "cpu":
        return None
    if not torch.cuda.is_available():
        raise MachineLacks("PyTorch has no GPU here")
    return torch.cuda.get_device_name(device)


def _first_runnable(versions: Sequence[BestVersion], file: DefinitionFile, device: str) -> BestFunction:
    """The best version that can run here, with one warning where that is not the best of all.

    Raises what `_registered` raises of the best, where none can.
    """
    why: Exception | None = None
    for found in versions:
        try:
            function = _registered_function(found, file, device)
        except (MachineLacks, BuildFailed, OSError) as error:
            why = why or error
            continue
        if why:
            best_of_all, lack = versions[0].solution, str(why).rstrip(".")
            warnings.warn(f"{found.op}: {best_of_all}: {lack}; {found.solution} runs instead.", stacklevel=5)
        return function
    assert why is not None  # there is at least one version
    raise why


def _registered_function(found: BestVersion, file: DefinitionFile, device: str) -> BestFunction:
    """The version behind PyTorch's dispatcher; raises BadDefinition, BuildFailed or MachineLacks."""
    import torch

    arguments = Arguments(file.definition, device)
    arguments.check()
    operator = _register_operator(found, file, arguments, _load_version(found, file, device), device)
    differentiable, warned = file.backward is not None, False

    def function(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        nonlocal warned
        values = arguments.bound(given, named)
        unlike = arguments.unlike(values) or ("" if differentiable else arguments.undefined_gradient(values))
        if not unlike:
            return operator(*values)
        if not warned and not torch.compiler.is_compiling():
            warned = True
            warnings.warn(f"{found.op}: {unlike}; its reference runs instead.", stacklevel=2)
        return file.reference(*values)

    return _with_signature(function, file, found.solution)


def _reference_function(file: DefinitionFile) -> BestFunction:
    """The reference, called as the version would be."""
    arguments = Arguments(file.definition, "cpu")

    def function(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        return file.reference(*arguments.bound(given, named))

    return _with_signature(function, file, REFERENCE)


def _load_version(found: BestVersion, file: DefinitionFile, device: str) -> Run:
    language = languages.get(found.language)
    lacks = language.missing("cpu" if device == "cpu" else "gpu")
    if lacks:
        raise MachineLacks(lacks)
    built = language.build(found.file, file.definition, _cache_folder())
    return language.load(replace(built, cache=_cache_folder()), file.definition)


def _cache_folder() -> Path:
    """Where libraries and programs are kept that were compiled for this machine; where nothing can be written
    there, this process's own folder, which begins with what is kept and goes with the process."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "warpsmith" / "built"
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            return Path(_process_folder(folder).name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    except (OSError, RuntimeError) as error:  # no home, or one that is another's
        _LOG.info("what is compiled is not kept: %s", error)
        return Path(_process_folder().name)


@functools.cache
def _process_folder(kept: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    own = tempfile.TemporaryDirectory(prefix="warpsmith-")
    if kept:
        _LOG.info("what is compiled is not kept: %s cannot be written to", kept)
        with contextlib.suppress(OSError):  # what cannot be read is compiled again
            for file in filter(Path.is_file, kept.rglob("*")):
                place = own.name / file.relative_to(kept)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)  # not its mode: it is read-only
    return own


def _register_operator(
    found: BestVersion, file: DefinitionFile, arguments: Arguments, run: Run, device: str
) -> Function:
    """Register the version, once a process, and return PyTorch's operator."""
    import torch

    definition = file.definition
    lock = threading.Lock()  # a version is judged one call at a time: it may keep a workspace
    one, given = len(definition.outputs) == 1, definition.outputs_are == "given"
    unique = hashlib.sha256(f"{found.sha256}{file.sha256}".encode()).hexdigest()[:8]
    name = f"{found.op}_{found.solution.replace('/', '_')}_{unique}"
    space = getattr(torch.ops, NAMESPACE)
    if hasattr(space, name):
        return getattr(space, name).default  # type: ignore[no-any-return]

    def kernel(*values: Any) -> Any:  # noqa: ANN401
        values = tuple(arguments.contiguous(values))
        with lock, arguments.device_of(values):
            if given:
                outputs = arguments.allocate(values)
                run(*values, *outputs)
            else:
                result = run(*values)
                outputs = list(result) if isinstance(result, tuple | list) else [result]
        return outputs[0] if one else tuple(outputs)

    def shaped(*values: Any) -> Any:  # noqa: ANN401
        outputs = arguments.allocate(values)
        return outputs[0] if one else tuple(outputs)

    library = _library()
    library.define(f"{name}{_schema(file)}", tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
    library.impl(name, kernel, device.upper())  # type: ignore[no-untyped-call]
    torch.library.register_fake(f"{NAMESPACE}::{name}", shaped, lib=library)
    _register_gradient(f"{NAMESPACE}::{name}", file, library)
    return getattr(space, name).default  # type: ignore[no-any-return]


@functools.cache
def _library() -> torch.library.Library:
    import torch

    return torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]


def _schema(file: DefinitionFile) -> str:
    """`(Tensor x, float eps) -> (Tensor, Tensor)`."""
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

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ANN401
        ctx.save_for_backward(*(value for value, is_tensor in zip(inputs, tensors, strict=True) if is_tensor))
        ctx.numbers = [value for value, is_tensor in zip(inputs, tensors, strict=True) if not is_tensor]

    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:  # noqa: ANN401
        saved, numbers = iter(ctx.saved_tensors), iter(ctx.numbers)
        inputs = [next(saved) if is_tensor else next(numbers) for is_tensor in tensors]
        found = gradient(*inputs, *gradients)
        each = found if isinstance(found, tuple | list) else (found,)
        if len(each) != sum(tensors):
            raise BadDefinition(f"{file.path}: backward returns {len(each)} gradients, not {sum(tensors)}.")
        left = iter(each)
        return tuple(next(left) if is_tensor else None for is_tensor in tensors)

    torch.library.register_autograd(name, backward, setup_context=keep, lib=library)


def _with_signature(function: Function, file: DefinitionFile, solution: str) -> BestFunction:
    """`function` with the operator's name, description and signature, and what it runs."""
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
    described = cast("BestFunction", function)
    described.solution = solution
    return described
