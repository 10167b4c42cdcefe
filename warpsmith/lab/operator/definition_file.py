"""Definition files: the definition together with its reference in code. They are the user's own and trusted."""

from __future__ import annotations

import difflib
import hashlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.errors import BadDefinition, MissingInput
from warpsmith.lab.operator.source_module import import_source
from warpsmith.packages import require_torch

if TYPE_CHECKING:
    import torch

Function = Callable[..., Any]


@dataclass(frozen=True)
class DefinitionFile:
    """Definition that was loaded from a file."""

    definition: Definition
    """Definition in the file."""
    path: Path
    """Path of the file."""
    sha256: str
    """Hash of the file and of the Python files next to it."""
    reference: Function
    """Function `reference(*inputs)` in plain PyTorch; it returns a tensor or a tuple of tensors."""
    inputs: Function | None = None
    """Function `inputs(workload, generator, device)` that returns the tensors by name, if drawing them by their
    specs is not enough."""
    magnitude: Function | None = None
    """Function `magnitude(*inputs)`: the scale of rounding errors, if the operator cancels; a tensor (or tuple)
    shaped like the outputs."""
    extra: Function | None = None
    """Function `extra(*inputs)`: additional rounding steps per element, shaped like the outputs."""
    backward: Function | None = None
    """Function `backward(*inputs, *gradients of the outputs)`: a gradient, or None, for each tensor input. It
    serves users of the operator; versions are judged without it."""
    peers: dict[str, Function] = field(default_factory=dict)
    """Other implementations with the reference's signature."""
    moved: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    """Output to True if it holds nothing but values of inputs; empty until `moved_outputs` has tried it."""
    tried: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Axis to why `inputs` and the reference fail at other sizes of it, empty if they do not; empty until
    `drawable_axes` has tried them."""
    row_axes: dict[tuple[Function, ...], str | None] = field(default_factory=dict, repr=False, compare=False)
    """Functions of the definition to the axis along which all of them are computed row by row, or None; those that
    were tried."""
    added_along: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    """Axis to whether the reference may add along it; those that were tried."""

    def arguments(self, workload: Workload, tensors: Mapping[str, torch.Tensor]) -> list[Any]:
        """Return the positional arguments of a call, with the workload's scalars in their places."""
        scalars = self.definition.scalars(workload)
        return [tensors[name] if name in tensors else scalars[name] for name in self.definition.inputs]

    def outputs(self, result: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a function returned
        """Name the values that the reference, or a function like it, returned.

        Raises:
            BadDefinition: the number of values differs from the number of outputs.
        """
        values = result if isinstance(result, tuple | list) else (result,)
        if len(values) != len(self.definition.outputs):
            raise BadDefinition(
                f"{self.path}: reference returns {len(values)} values, but the definition has the outputs "
                f"{list(self.definition.outputs)}."
            )
        return dict(zip(self.definition.outputs, values, strict=True))


def load_definition(path: Path, *, over_ranks: bool | None = False) -> DefinitionFile:
    """Import a definition.

    Args:
        path: the file.
        over_ranks: whether the caller runs several ranks; a definition for one process is then refused, and one
            for several otherwise. None takes both.

    Raises:
        MissingInput: there is no such file.
        BadDefinition: it does not import, lacks `definition` or `reference`, or is for another number of ranks.
        MachineLacks: it needs PyTorch, which is not installed.
    """
    if not path.is_file():
        raise MissingInput(
            f"{path} does not exist; {_suggestion(path)}`warpsmith new {path.parent.name}` creates it."
        )
    path = path.resolve()
    module = _import(path)
    definition, reference = getattr(module, "definition", None), getattr(module, "reference", None)
    if not isinstance(definition, Definition) or not callable(reference):
        raise BadDefinition(f"{path} must hold `definition = Definition(...)` and `def reference(...)`.")
    if definition.name != path.parent.name:
        raise BadDefinition(
            f"{path}: the definition is named `{definition.name}`, but its folder is named `{path.parent.name}`;"
            " use one name."
        )
    _check_ranks(path, definition, over_ranks)
    optional: dict[str, Any] = {
        name: getattr(module, name, None) for name in ("inputs", "magnitude", "extra", "backward")
    }
    return DefinitionFile(
        definition, path, definition_sha256(path), reference, **optional, peers=dict(getattr(module, "peers", {}))
    )


def _check_ranks(path: Path, definition: Definition, over_ranks: bool | None) -> None:
    if over_ranks and definition.ranks == 1:
        raise BadDefinition(
            f"{path}: the definition is for one process; set `ranks` and the tensors' `shard_axis`."
        )
    if over_ranks is False and definition.ranks > 1:
        raise BadDefinition(
            f"{path}: the definition is for {definition.ranks} ranks, which only `warpsmith ranks` runs;"
            f' `warpsmith ranks {definition.name} FILE --round "HYPOTHESIS"` judges a version against the best one'
            " and records it, without `warpsmith start`."
        )


def definition_sha256(path: Path) -> str:
    """Return the hash of a definition: its file and every Python file next to it."""
    total = hashlib.sha256()
    for file in sorted(path.parent.glob("*.py")):
        total.update(f"{file.name}\0".encode() + file.read_bytes() + b"\0")
    return total.hexdigest()


def _suggestion(path: Path) -> str:
    """Return a question for the operator next to a missing one with the most similar name, or nothing."""
    names = [file.parent.name for file in path.parents[1].glob(f"*/{path.name}")]
    similar = difflib.get_close_matches(path.parent.name, names, 1)
    return f"did you mean `{similar[0]}`? Else " if similar else ""


def _import(path: Path) -> object:
    try:
        return import_source(f"warpsmith_definition_{path.parent.name}", path)
    except Exception as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
        ]
        if isinstance(error, SyntaxError) and error.filename == str(path):
            lines.append(error.lineno)
        location = f"{path}:{lines[-1]}" if lines else str(path)
        message = " ".join(str(error).split())[:400]
        remedy = "fix the file"
        if isinstance(error, ModuleNotFoundError) and error.name:
            if error.name == "torch":
                require_torch(location)
            remedy = f"install `{error.name.partition('.')[0]}`, or fix the file"
        raise BadDefinition(f"{location} does not import: {type(error).__name__}: {message}; {remedy}.") from error
