"""Source of the definition of a FlashInfer-Trace import; its reference stands next to it, unchanged."""

from __future__ import annotations

from warpsmith.core.definition import Definition
from warpsmith.interchange import trace_inputs
from warpsmith.interchange.draft import docstring_safe, magnitude_source, python_literal
from warpsmith.interchange.pytorch.forward import HALVES
from warpsmith.interchange.trace_schema import TraceDefinition, TraceWorkload

REFERENCE = "flashinfer_reference.py"
"""File of the reference's source, next to the definition."""

_TEXT = '''\
"""FlashInfer-Trace definition `@NAME@`; its unchanged reference is in flashinfer_reference.py."""

from __future__ import annotations
@TORCH@
from warpsmith import @NAMES@

definition = @DEFINITION@

@REFERENCE@


@INPUTS@@MAGNITUDE@'''

_WRAPPED = '''\
source = load_sibling(__file__, "flashinfer_reference.py")


def reference(@PARAMETERS@):
    """Call `run` of the source@WHY@."""
    result = source.run(@ARGUMENTS@)
    return @RESULT@'''

_INPUTS = '''\
def inputs(workload, generator, device):
    """Draw inputs with the source's own `@ENTRY@`, seeded by the generator; the others are normal."""
    source = load_sibling(__file__, "flashinfer_reference.py")
    sizes = definition.sizes(workload)
    numbers = {**sizes, @COMPUTED@**definition.scalars(workload)}
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    devices = [torch.device(device)] if str(device).startswith("cuda") else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        torch.manual_seed(seed)
        drawn = source.@ENTRY@(numbers, torch.device(device))
        for name, spec in definition.tensor_inputs.items():
            if name not in drawn:
                dtype = getattr(torch, definition.dtype(spec, workload))
                values = torch.randn(definition.shape(spec, workload), device=device)
                drawn[name] = values.to(dtype) if dtype.is_floating_point else (4 * values.abs()).to(dtype)
    return {name: drawn[name] for name in definition.tensor_inputs}


'''


def trace_definition_text(
    trace_definition: TraceDefinition, definition: Definition, workloads: list[TraceWorkload], *, upcasts: bool
) -> str:
    """Return the text of `definition.py`.

    Args:
        trace_definition: the imported definition.
        definition: its conversion.
        workloads: the imported workloads.
        upcasts: compute in float32 where inputs have half precision, and round the results.
    """
    used = {"Definition", "TensorSpec", "Tolerance", "Workload", "load_sibling"}
    used |= {"ScalarSpec"} if definition.scalar_inputs else set()
    inputs = _inputs(trace_definition)
    replacements = {
        "@NAME@": docstring_safe(trace_definition.name),
        "@TORCH@": "\nimport torch\n" if inputs or upcasts else "",
        "@NAMES@": ", ".join(sorted(used)),
        "@DEFINITION@": python_literal(definition, _comments(trace_definition, workloads)),
        "@REFERENCE@": _reference(trace_definition, upcasts=upcasts),
        "@INPUTS@": inputs,
        "@MAGNITUDE@": magnitude_source(definition),
    }
    text = _TEXT
    for mark, value in replacements.items():
        text = text.replace(mark, value)
    return text


def _comments(trace_definition: TraceDefinition, workloads: list[TraceWorkload]) -> dict[str, str]:
    notes = {
        "tolerance": "The reduction length sums the axes of floating inputs that the output lacks; if there are\n"
        "none, it is the last axis of the output. More than 4096 terms count as blocks: 4096 + n / 4096.",
        "flops": "Two per element of the output and step of the sum."
        if trace_definition.op_type == "gemm"
        else "The format does not give them: estimated as one per element of the output, which is never too many.",
    }
    return (
        notes
        if workloads
        else notes | {"workloads": "Default sizes of the import, since there were no workloads."}
    )


def _reference(trace_definition: TraceDefinition, *, upcasts: bool) -> str:
    """Write the reference: the source's `run` itself if it takes every input and returns its results in order."""
    takes_all = trace_definition.run_parameters == tuple(trace_definition.inputs)
    if takes_all and not trace_definition.returns_dict and not upcasts:
        return 'reference = load_sibling(__file__, "flashinfer_reference.py").run'
    reasons = [
        *([] if takes_all else ["with the inputs that it takes"]),
        *(["in float32"] if upcasts else []),
        *(["and put its results in order"] if trace_definition.returns_dict else []),
    ]
    arguments = [
        f"{name}.float()" if upcasts and trace_definition.inputs[name].dtype in HALVES else name
        for name in trace_definition.run_parameters
    ]
    is_single = len(trace_definition.outputs) == 1 and not trace_definition.returns_dict
    results = []
    for index, (name, tensor) in enumerate(trace_definition.outputs.items()):
        key = f'["{name}"]' if trace_definition.returns_dict else "" if is_single else f"[{index}]"
        results.append(
            f"result{key}" + (f".to(torch.{tensor.dtype})" if upcasts and tensor.dtype in HALVES else "")
        )
    text = _WRAPPED.replace("@PARAMETERS@", ", ".join(trace_definition.inputs))
    text = text.replace("@WHY@", f" {' '.join(reasons)}").replace("@ARGUMENTS@", ", ".join(arguments))
    is_as_returned = not trace_definition.returns_dict and not upcasts
    return text.replace("@RESULT@", "result" if is_as_returned else ", ".join(results))


def _inputs(trace_definition: TraceDefinition) -> str:
    """Write the hook that draws inputs with the definition's own function; empty if it has none."""
    entry = trace_definition.custom_inputs_entrypoint
    if not entry:
        return ""
    computed = "".join(
        f'"{name}": {trace_inputs.axis_expression(trace_definition, name, replacement=_SIZE)}, '
        for name, axis in trace_definition.axes.items()
        if axis.type == "expr"
    )
    return _INPUTS.replace("@ENTRY@", entry).replace("@COMPUTED@", computed)


_SIZE = 'sizes["{}"]'
