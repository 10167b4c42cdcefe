"""A C++ version as sources that build without Warpsmith: the version, its header, and a binding by TVM-FFI."""

from __future__ import annotations

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.definition import Definition, ScalarSpec
from warpsmith.languages.cpp.source import SCALARS, run_prototype
from warpsmith.languages.hits import COUNTER_CALL, COUNTER_INCLUDES, cpp_counter

BINDING = "binding.cpp"
"""File name of the binding."""

_CODES = {
    "float64": ("kDLFloat", 64), "float32": ("kDLFloat", 32), "float16": ("kDLFloat", 16),
    "bfloat16": ("kDLBfloat", 16), "float8_e4m3fn": ("kDLFloat8_e4m3fn", 8), "float8_e5m2": ("kDLFloat8_e5m2", 8),
    "int64": ("kDLInt", 64), "int32": ("kDLInt", 32), "int16": ("kDLInt", 16), "int8": ("kDLInt", 8),
    "uint8": ("kDLUInt", 8), "bool": ("kDLBool", 8),
}  # fmt: skip
"""DLPack's code and bits of each data type."""

_TEMPLATE = """// Made by `warpsmith export`: makes `run` callable through TVM-FFI, without copies.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <warpsmith.hpp>
{includes}
{prototype};

namespace {{

warpsmith::DType type_of(DLDataType type) {{
{types}
  TVM_FFI_THROW(TypeError) << "run takes no tensors of this data type";
  return warpsmith::DType::uint8;
}}

Tensor view(const tvm::ffi::TensorView& tensor, int axes) {{
  TVM_FFI_ICHECK(tensor.device().device_type == kDLCPU) << "run takes tensors on the CPU";
  TVM_FFI_ICHECK(tensor.ndim() == axes) << "run takes a tensor of " << axes << " axes here";
  return Tensor{{
    tensor.data_ptr(), tensor.shape().data(), tensor.strides().data(), tensor.ndim(), type_of(tensor.dtype())
  }};
}}

{counter}void call({parameters}) {{
{views}
{count}  run({arguments});
}}

}}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, call);
"""


def binding_source(definition: Definition, hits: str = "") -> str:
    """Return the source of the binding: inputs in order, then the outputs that `run` writes to.

    With `hits`, it counts the calls under that name.
    """
    specs = {**definition.inputs, **definition.outputs}
    tensors = {name: spec for name, spec in specs.items() if not isinstance(spec, ScalarSpec)}
    scalars = {name: SCALARS[spec.type] for name, spec in specs.items() if isinstance(spec, ScalarSpec)}
    names = [name.replace("bool", "boolean") for name in DTYPES]
    return _TEMPLATE.format(
        prototype=run_prototype(definition),
        includes=COUNTER_INCLUDES if hits else "",
        counter=cpp_counter(hits) if hits else "",
        count=COUNTER_CALL if hits else "",
        types="\n".join(
            f"  if (type.code == {code} && type.bits == {bits}) return warpsmith::DType::{name};"
            for name, (code, bits) in zip(names, (_CODES[name] for name in DTYPES), strict=True)
        ),
        parameters=", ".join(f"{scalars.get(name, 'tvm::ffi::TensorView')} {name}" for name in specs),
        views="\n".join(
            f"  Tensor {name}_view = view({name}, {len(spec.shape)});" for name, spec in tensors.items()
        ),
        arguments=", ".join(f"{name}_view" if name in tensors else name for name in specs),
    )
