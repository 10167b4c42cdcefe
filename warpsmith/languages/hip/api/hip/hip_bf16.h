// bfloat16 as HIP names it, in clang's own type; see hip_runtime.h beside this file.
#pragma once
#include <hip/hip_runtime.h>

typedef __bf16 __hip_bfloat16;
__device__ __forceinline__ float __bfloat162float(__hip_bfloat16 value) { return (float)value; }
__device__ __forceinline__ __hip_bfloat16 __float2bfloat16(float value) { return (__hip_bfloat16)value; }
