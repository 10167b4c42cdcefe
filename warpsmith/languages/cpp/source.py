"""Expected signature and starting file of a C++ version."""

from __future__ import annotations

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec
from warpsmith.languages.shared.signature import describe_arguments

SCALARS = {"float": "double", "int": "int64_t", "bool": "bool"}
"""Type of a scalar argument in the definition to that in C++."""


def run_prototype(definition: Definition) -> str:
    """Return the prototype of `run`: inputs in order, outputs after them."""
    inputs = [f"{_type(spec)} {name}" for name, spec in definition.inputs.items()]
    outputs = [f"Tensor& {name}" for name in definition.outputs]
    return f'extern "C" void run({", ".join(inputs + outputs)})'


def cpp_template(definition: Definition) -> str:
    """Return a starting file: it says what to write, and does not compile until that is done."""
    names = ", ".join(definition.outputs)
    first = next(iter(definition.outputs))
    arguments = {*definition.inputs, *definition.outputs}
    count = next(name for name in ("count", "items", "count_") if name not in arguments)
    return "\n".join(
        [
            f"// {definition.name}: {definition.description}",
            *(f"//   {line}" for line in describe_arguments(definition)),
            "#include <warpsmith.hpp>",
            "",
            f"{run_prototype(definition)} {{",
            f"  const int64_t {count} = {first}.ndim ? {first}.size(0) : 1;",
            "#pragma omp parallel for schedule(static)",
            f"  for (int64_t i = 0; i < {count}; ++i) {{",
            f'#error "Write the kernel: fill {names} here, then remove this line"',
            "  }",
            "}",
            "",
        ]
    )


def _type(spec: TensorSpec | ScalarSpec) -> str:
    return SCALARS[spec.type] if isinstance(spec, ScalarSpec) else "const Tensor&"
