// float16 as HIP names it, in clang's own type; see hip_runtime.h beside this file.
#pragma once
#include <hip/hip_runtime.h>

typedef _Float16 __half;
typedef __half half;
__device__ __forceinline__ float __half2float(__half value) { return (float)value; }
__device__ __forceinline__ __half __float2half(float value) { return (__half)value; }
