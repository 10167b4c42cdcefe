"""Parts of the FlashInfer-Trace schema that Warpsmith reads and writes."""

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
    """Axis: fixed, or set by each workload."""

    type: Literal["const", "var"]
    value: Size | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _valued(self) -> Self:
        if self.type == "const" and self.value is None:
            raise ValueError("a const axis needs a value")
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
    op_type: Text = Field(validation_alias=AliasChoices("op_type", "type"))
    tags: list[Text] | None = None
    description: str | None = None
    axes: dict[Text, TraceAxis]
    constraints: list[Text] | None = None
    inputs: dict[Text, TraceTensor] = Field(min_length=1)
    outputs: dict[Text, TraceTensor] = Field(min_length=1)
    reference: Text

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
        parameters = runs[-1].args
        if parameters.vararg is None and len(parameters.posonlyargs) + len(parameters.args) < len(self.inputs):
            raise ValueError(f"`run` takes fewer arguments than the {len(self.inputs)} inputs")


class TraceInput(_TracePart):
    """Source of an input's values."""

    type: Literal["random", "scalar", "safetensors"]
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
    """One line of `workloads/<op_type>/<name>.jsonl`."""

    definition: Text
    workload: TraceWorkload
    solution: None = None
    evaluation: None = None


class TraceBuildSpec(_TracePart):
    """Build settings of a solution."""

    language: Literal["python", "triton", "cpp", "cuda", "tilelang"]
    target_hardware: list[str] = Field(min_length=1)
    entry_point: Text
    dependencies: list[Text] = []
    destination_passing_style: bool = True


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
