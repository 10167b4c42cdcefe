"""Softmax in three passes over each row, with two constants to sweep and a stamp for each phase."""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

THREADS = 256
UNROLL = 4

SOURCE = r"""
#include <cuda_bf16.h>

__device__ float reduced(float value, bool sum, float* shared) {
  for (int lane = 16; lane; lane /= 2) {
    float other = __shfl_xor_sync(0xffffffff, value, lane);
    value = sum ? value + other : fmaxf(value, other);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int warp = 1; warp < blockDim.x / 32; ++warp)
    value = sum ? value + shared[warp] : fmaxf(value, shared[warp]);
  return value;
}

template <typename T, int UNROLLED>
__global__ void softmax_rows(const T* __restrict__ x, T* __restrict__ y, long long cols) {
  __shared__ float shared[32];
  x += blockIdx.x * cols;
  y += blockIdx.x * cols;
  float peak = __int_as_float(0xff800000), sum = 0;
  WARPSMITH_PHASE("peak");
#pragma unroll UNROLLED
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) peak = fmaxf(peak, float(x[i]));
  peak = reduced(peak, false, shared);
  WARPSMITH_PHASE("sum");
#pragma unroll UNROLLED
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf(float(x[i]) - peak);
  sum = 1 / reduced(sum, true, shared);
  WARPSMITH_PHASE("write");
#pragma unroll UNROLLED
  for (long long i = threadIdx.x; i < cols; i += blockDim.x) y[i] = T(__expf(float(x[i]) - peak) * sum);
  WARPSMITH_PHASE("end");
}
"""
TYPES = {torch.bfloat16: "__nv_bfloat16", torch.float32: "float"}


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


def run(x):
    y = torch.empty_like(x)
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    kernel = compiled(f"softmax_rows<{TYPES[x.dtype]}, {UNROLL}>")
    config = LaunchConfig(grid=(x.shape[0],), block=(THREADS,))
    launch(stream, config, kernel, x.data_ptr(), y.data_ptr(), numpy.int64(x.shape[1]))
    return y
