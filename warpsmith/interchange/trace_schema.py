"""Parts of the FlashInfer-Trace and SOL-ExecBench schemas that Warpsmith reads and writes."""

from __future__ import annotations

import ast
from typing import Annotated, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

Text = Annotated[str, Field(min_length=1)]
Size = Annotated[int, Field(ge=0)]

TRACE_DTYPES = (
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "bool",
)  # fmt: skip
"""Data types that both Warpsmith and FlashInfer-Trace have."""

_OLD_NAMES = {"float8_e4m3": "float8_e4m3fn"}


class _TracePart(BaseModel):
    """Base of all parts; fields that Warpsmith does not use are allowed and dropped."""

    model_config = ConfigDict(frozen=True)


class TraceAxis(_TracePart):
    """Axis: fixed, set by each workload, or computed from other axes."""

    type: Literal["const", "var", "expr"]
    value: Size | None = None
    expression: Text | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _valued(self) -> Self:
        if self.type == "const" and self.value is None:
            raise ValueError("a const axis needs a value")
        if self.type == "expr" and self.expression is None:
            raise ValueError("an expr axis needs an expression")
        return self


class TraceTensor(_TracePart):
    """Tensor, or a Python number if the shape is null."""

    shape: list[Text] | None
    dtype: str
    description: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _present_name(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("dtype") in _OLD_NAMES:
            return {**data, "dtype": _OLD_NAMES[data["dtype"]]}
        return data

    @model_validator(mode="after")
    def _has_known_dtype(self) -> Self:
        if self.dtype not in TRACE_DTYPES:
            raise ValueError(f"unknown dtype `{self.dtype}`; known: {', '.join(TRACE_DTYPES)}")
        return self


class TraceDefinition(_TracePart):
    """Operator and the source of its reference."""

    name: Text
    op_type: Text = Field("other", validation_alias=AliasChoices("op_type", "type"))
    tags: list[Text] | None = None
    description: str | None = None
    axes: dict[Text, TraceAxis]
    constraints: list[Text] | None = None
    inputs: dict[Text, TraceTensor] = Field(min_length=1)
    outputs: dict[Text, TraceTensor] = Field(min_length=1)
    reference: Text
    custom_inputs_entrypoint: str | None = None

    @property
    def run_parameters(self) -> tuple[str, ...]:
        """Parameters of the reference's `run` that are inputs, in its order; all inputs if it takes `*args`."""
        parameters = self._run_function().args
        names = [a.arg for a in (*parameters.posonlyargs, *parameters.args)]
        return tuple(self.inputs) if parameters.vararg or len(names) >= len(self.inputs) else tuple(names)

    @property
    def returns_dict(self) -> bool:
        """True if `run` returns its results by name."""
        returns = [n for n in ast.walk(self._run_function()) if isinstance(n, ast.Return)]
        return bool(returns) and all(isinstance(node.value, ast.Dict) for node in returns)

    def _run_function(self) -> ast.FunctionDef:
        body = ast.parse(self.reference).body
        return [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "run"][-1]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if both := set(self.inputs) & set(self.outputs):
            raise ValueError(f"{sorted(both)} are inputs and outputs")
        for name, tensor in {**self.inputs, **self.outputs}.items():
            if unknown := sorted(set(tensor.shape or ()) - set(self.axes)):
                raise ValueError(f"`{name}` has undefined axes {unknown}")
        if wrong := [name for name in (*self.axes, *self.inputs, *self.outputs) if not name.isidentifier()]:
            raise ValueError(f"{wrong} are not Python identifiers")
        self._check_reference()
        return self

    def _check_reference(self) -> None:
        try:
            body = ast.parse(self.reference).body
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"the reference is not Python: {error}") from error
        runs = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "run"]
        if not runs:
            raise ValueError("the reference has no top-level function `run`")
        if unknown := sorted(set(self.run_parameters) - set(self.inputs)):
            raise ValueError(
                f"`run` takes fewer arguments than the {len(self.inputs)} inputs, and {unknown} are none"
            )
        entry = self.custom_inputs_entrypoint
        if entry and entry not in {node.name for node in body if isinstance(node, ast.FunctionDef)}:
            raise ValueError(f"the reference has no top-level function `{entry}`, the custom_inputs_entrypoint")


class TraceInput(_TracePart):
    """Source of an input's values."""

    type: Literal["random", "scalar", "safetensors", "custom"]
    value: bool | int | float | None = None
    path: str | None = None
    tensor_key: str | None = None

    @model_validator(mode="after")
    def _valued(self) -> Self:
        if self.type == "scalar" and self.value is None:
            raise ValueError("a scalar input needs a value")
        return self


class TraceWorkload(_TracePart):
    """One concrete set of sizes and inputs."""

    uuid: Text
    axes: dict[str, Size]
    inputs: dict[str, TraceInput]


class TraceWorkloadLine(_TracePart):
    """One line of `workloads/<op_type>/<name>.jsonl`; SOL-ExecBench has the bare workload in a line."""

    definition: Text | None = None
    workload: TraceWorkload
    solution: Literal[""] | None = None
    evaluation: None = None

    @model_validator(mode="before")
    @classmethod
    def _with_workload(cls, data: object) -> object:
        return {"workload": data} if isinstance(data, dict) and {"uuid", "axes"} <= set(data) else data


class TraceBuildSpec(_TracePart):
    """Build settings of a solution."""

    language: Literal["python", "triton", "cpp", "cuda", "tilelang"]
    target_hardware: list[str] = Field(min_length=1)
    entry_point: Text
    dependencies: list[Text] = []
    destination_passing_style: bool = True
    binding: Literal["tvm-ffi", "torch"] | None = None


class TraceSource(_TracePart):
    """Source file of a solution."""

    path: Text
    content: Text


class TraceSolution(_TracePart):
    """One implementation of a definition."""

    name: Text
    definition: Text
    author: Text
    spec: TraceBuildSpec
    sources: list[TraceSource] = Field(min_length=1)
    description: str | None = None


class TraceErrors(_TracePart):
    """Errors of a solution against the reference, element by element."""

    max_relative_error: float
    max_absolute_error: float


class TracePerformance(_TracePart):
    """Times of one call in milliseconds."""

    latency_ms: float
    reference_latency_ms: float
    speedup_factor: float


class TraceEnvironment(_TracePart):
    """Machine of an evaluation."""

    hardware: Text
    libs: dict[str, str] = {}


class TraceEvaluation(_TracePart):
    """Evaluation that passed."""

    status: Literal["PASSED"] = "PASSED"
    environment: TraceEnvironment
    timestamp: Text
    log: str = ""
    correctness: TraceErrors
    performance: TracePerformance


class TraceEntry(_TracePart):
    """One line of `traces/<op_type>/<name>.jsonl`: a solution at a workload. Apply chooses by them."""

    definition: Text
    workload: TraceWorkload
    solution: Text
    evaluation: TraceEvaluation
