"""Source of the definition of an imported operator; the user's file stands next to it, unchanged."""

from __future__ import annotations

from pathlib import Path

from warpsmith.core.definition import Definition
from warpsmith.interchange.draft import (
    DefinitionDraft,
    docstring_safe,
    magnitude_source,
    python_literal,
    read_user_text,
)
from warpsmith.interchange.pytorch.inspected import InspectedOperator

SOURCE = "pytorch_source.py"
"""File of the user's unchanged code, next to the definition."""

_WIDTH = 100

_HEAD = '''\
"""`@OBJECT@` of @FILE@; the unchanged file is pytorch_source.py.

Written by `warpsmith new`, which ran it on tensors without data and found its axes, bounds and work. Check them:
@ASSUMPTIONS@
"""

from __future__ import annotations
@IMPORTS@
import torch

from warpsmith import @NAMES@

source = load_sibling(__file__, "pytorch_source.py")

'''

_MODULE = '''
# Inputs that are parameters and buffers of the module, with their keys in its state.
STATE = @STATE@

@SCRATCH@
@cache
def _module(device: str) -> torch.nn.Module:
    """Make the module once per device; its parameters are replaced at every call."""
    devices = [torch.device(device)] if device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices), torch.device(device):
        torch.manual_seed(0)
        return @CONSTRUCTION@

'''

_REFERENCE = '''
def reference(@PARAMETERS@):
    """@SUMMARY@"""
@BODY@


@MAGNITUDE@'''


def definition_draft(inspected: InspectedOperator, path: Path) -> DefinitionDraft:
    """Return the files of the definition of the operator in the user's file `path`."""
    text = read_user_text(path)
    return DefinitionDraft(
        {SOURCE: text, "definition.py": definition_text(inspected, path.name)}, inspected.assumptions
    )


def definition_text(inspected: InspectedOperator, file_name: str) -> str:
    """Return the text of `definition.py`.

    Args:
        inspected: the operator.
        file_name: the user's name of the file.
    """
    definition = inspected.definition
    assert definition is not None
    is_module = inspected.kind != "function"
    used = {"Definition", "TensorSpec", "Tolerance", "Workload", "load_sibling"}
    used |= {"ScalarSpec"} if definition.scalar_inputs else set()
    imports = [
        *(["from copy import deepcopy"] if inspected.kind == "instance" else []),
        *(["from functools import cache"] if is_module else []),
    ]
    scratch = "# Buffers that stay as the module makes them; every call gets a copy.\n"
    replacements = {
        "@OBJECT@": inspected.object_name,
        "@FILE@": docstring_safe(file_name),
        "@ASSUMPTIONS@": _docstring_list(inspected.assumptions),
        "@IMPORTS@": "".join(f"\n{line}" for line in imports) + ("\n" if imports else ""),
        "@NAMES@": ", ".join(sorted(used)),
        "@STATE@": python_literal(inspected.state),
        "@SCRATCH@": f"{scratch}SCRATCH = {python_literal(inspected.scratch)}\n\n" if inspected.scratch else "",
        "@CONSTRUCTION@": _construction(inspected),
        "@PARAMETERS@": ", ".join(definition.inputs),
        "@SUMMARY@": "Call the forward with the given parameters in place of the module's own."
        if is_module
        else f"Call `{inspected.object_name}` of the source.",
        "@BODY@": "\n".join(f"    {line}" for line in _body(inspected, definition)),
        "@MAGNITUDE@": magnitude_source(definition, amplifies=inspected.amplifies),
    }
    text = f"{_HEAD}definition = {python_literal(definition, _comments(inspected))}\n"
    text += f"{_MODULE if is_module else ''}{_REFERENCE}"
    for mark, value in replacements.items():
        text = text.replace(mark, value)
    return text


def _docstring_list(lines: tuple[str, ...]) -> str:
    """Write a list that no character of a foreign message breaks out of its docstring."""
    return "\n".join(f"- {line.rstrip('.')}." for line in lines).replace("\\", "/").replace('"""', "'")


def _comments(inspected: InspectedOperator) -> dict[str, str]:
    flops = (
        "Counted over the products and convolutions of one forward. If a kernel needs fewer (zeros at known\n"
        "places, a transform), lower it: else its time looks impossible."
        if inspected.counts_products
        else "No product or convolution: estimated as one per element of the largest tensor that is computed with."
    )
    return {
        "tolerance": "The reduction length sums the longest chain of reductions behind a result. A kernel adds\n"
        "up more than 4096 terms in blocks, so a sum of n terms counts as 4096 + n / 4096.",
        "flops": flops,
    }


def _construction(inspected: InspectedOperator) -> str:
    if inspected.kind == "instance":
        return f"deepcopy(source.{inspected.object_name}).to(device)"
    return f"source.{inspected.object_name}({'*source.get_init_inputs()' if inspected.has_init_inputs else ''})"


def _body(inspected: InspectedOperator, definition: Definition) -> list[str]:
    """Write the lines of `reference`."""
    first = next(iter(definition.tensor_inputs))
    positional = [_widened(inspected, text) for text in inspected.positional]
    keywords = {name: _widened(inspected, text) for name, text in inspected.keywords.items()}
    lines = []
    if inspected.kind == "function":
        arguments = [*positional, *(f"{name}={text}" for name, text in keywords.items())]
        call = f"source.{inspected.object_name}({', '.join(arguments)})"
    else:
        module = f"_module(str({first}.device))"
        state = [f'"{key}": {_widened(inspected, name)}' for name, key in inspected.state.items()]
        flat = f"module, state = {module}, {{{', '.join(state)}}}"
        lines += (
            [flat]
            if len(flat) <= _WIDTH
            else [f"module, state = {module}, {{", *(f"    {s}," for s in state), "}"]
        )
        if inspected.scratch:
            lines += [
                "own = dict(module.named_buffers())",
                "for key in SCRATCH:",
                f"    floating = own[key].is_floating_point() and {first}.is_floating_point()",
                f"    state[key] = own[key].to({first}.dtype if floating else own[key].dtype, copy=True)",
            ]
        arguments = [f"({''.join(f'{text}, ' for text in positional).rstrip()})"]
        if keywords:
            arguments.append("{" + ", ".join(f'"{name}": {text}' for name, text in keywords.items()) + "}")
        call = f"torch.func.functional_call(module, state, {', '.join(arguments)})"
    return [*lines, *_return_lines(inspected, call)]


def _widened(inspected: InspectedOperator, name: str) -> str:
    if name in inspected.packed:
        parts = [_widened(inspected, part) for part in inspected.packed[name]]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"{name}.float()" if name in inspected.upcast else name


def _return_lines(inspected: InspectedOperator, call: str) -> list[str]:
    count = inspected.result_count
    if not any(inspected.rounded) and not inspected.is_nested:
        return [f"return {call}"]
    rounding = f".to({inspected.upcast[0]}.dtype)" if inspected.upcast else ""
    lines = [f"result = {call}"]
    if inspected.is_nested:
        leaves = "torch.utils._pytree.tree_leaves(result)"
        lines.append(f"result = [value for value in {leaves} if isinstance(value, torch.Tensor)]")
    elif count == 1:
        return [*lines, f"return result{rounding}"]
    parts = [
        f"result[{i}]{rounding if i < len(inspected.rounded) and inspected.rounded[i] else ''}"
        for i in range(count)
    ]
    return [*lines, f"return {', '.join(parts)}"]
