"""Facts about an operator, which the process that runs the user's file hands back."""

from __future__ import annotations

from warpsmith.core.base import Model
from warpsmith.core.definition import Definition


class InspectedOperator(Model):
    """Operator of a Python file, as its inspection describes it."""

    error: str = ""
    """Reason why the file cannot be used; empty if it can."""
    definition: Definition | None = None
    """Definition with axes, inputs, tolerance, work and workloads; null if there is an error."""
    object_name: str = ""
    """Name of the function, class or instance in the file."""
    kind: str = "function"
    """`function`, `class` or `instance`."""
    has_init_inputs: bool = False
    """True if the file's `get_init_inputs` gives the arguments of the constructor."""
    positional: tuple[str, ...] = ()
    """Source of each positional argument of the call: an input's name or a literal."""
    keywords: dict[str, str] = {}
    """Source of each keyword argument."""
    state: dict[str, str] = {}
    """Key in the module's state, by the input that takes its place."""
    scratch: tuple[str, ...] = ()
    """Keys of buffers that no kernel receives: the forward writes to them, or they hold a pattern."""
    upcast: tuple[str, ...] = ()
    """Inputs of half precision that the reference computes with in float32."""
    rounded: tuple[bool, ...] = ()
    """True for each result that is rounded to the type of the first of `upcast`."""
    result_count: int = 1
    """Number of results."""
    is_nested: bool = False
    """True if the results are nested in tuples, and have to be flattened."""
    counts_products: bool = False
    """True if the work is counted from products."""
    amplifies: bool = False
    """True if the size of a result does not tell its rounding errors, so that the error hook moves the inputs."""
    packed: dict[str, tuple[str, ...]] = {}
    """Inputs that make up an argument which is a tuple, by the argument's name."""
    assumptions: tuple[str, ...] = ()
    """Sentences for the user: what was assumed, and what to check."""
