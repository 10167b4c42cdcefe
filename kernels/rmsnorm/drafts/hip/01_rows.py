"""RMSNorm: a block for each row, which stays in registers while its squares are summed.

Lanes of 16 are added by DPP, which is a part of the addition itself, and only the last two steps of a wave are moves.
Rows that the registers cannot hold are read twice.
"""

import functools

import torch

SOURCE = r"""
#include <hip/hip_runtime.h>

typedef TYPE pack __attribute__((ext_vector_type(VECTOR)));  // what a lane loads at once

template <int CONTROL>
__device__ float dpp(float value) {
  const int bits = __builtin_bit_cast(int, value);
  return __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, bits, CONTROL, 0xf, 0xf, true));
}

__device__ float wave_sum(float value) {
  value += dpp<0xb1>(value);   // lanes 1, 0, 3, 2 of each four
  value += dpp<0x4e>(value);   // lanes 2, 3, 0, 1 of each four
  value += dpp<0x141>(value);  // each eight mirrored
  value += dpp<0x140>(value);  // each sixteen mirrored
  const int bits = __builtin_bit_cast(int, value);
  value += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(bits, 0x401f));  // lane ^ 16
  return value + __shfl_xor(value, 32);
}

__device__ float squares(pack values) {
  float sum = 0;
  for (int i = 0; i < VECTOR; ++i) sum += (float)values[i] * (float)values[i];
  return sum;
}

__device__ pack scaled(pack values, pack weights, float scale) {
  pack result;
  for (int i = 0; i < VECTOR; ++i) result[i] = (TYPE)((float)values[i] * scale * (float)weights[i]);
  return result;
}

// TILES is the number of a thread's packs; 0: as many as the row needs, read twice.
extern "C" __global__ __launch_bounds__(64 * WAVES) void rmsnorm_rows(
    const TYPE* __restrict__ x, const TYPE* __restrict__ weight, TYPE* __restrict__ y, int cols, double eps) {
  constexpr int threads = 64 * WAVES;
  const int packs = cols / VECTOR;  // VECTOR divides cols
  const size_t first = (size_t)blockIdx.x * cols;
  const pack* row = (const pack*)(x + first);
  const pack* weights = (const pack*)weight;
  pack* out = (pack*)(y + first);

  pack values[TILES ? TILES : 1];
  float sum = 0;
  if constexpr (TILES > 0) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
      const int index = tile * threads + threadIdx.x;
      const pack value = row[min(index, packs - 1)];  // a condition before a load would be a branch for each
      values[tile] = index < packs ? value : pack(0);
    }
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) sum += squares(values[tile]);
  } else {
    for (int index = threadIdx.x; index < packs; index += threads) sum += squares(row[index]);
  }

  sum = wave_sum(sum);
  if constexpr (WAVES > 1) {
    __shared__ float sums[WAVES];
    if (threadIdx.x % 64 == 0) sums[threadIdx.x / 64] = sum;
    __syncthreads();
    sum = 0;
    for (int wave = 0; wave < WAVES; ++wave) sum += sums[wave];
  }

  const float scale = __builtin_amdgcn_rsqf(sum / (float)cols + (float)eps);
  if constexpr (TILES > 0) {
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
      const int index = tile * threads + threadIdx.x;
      if (index < packs) out[index] = scaled(values[tile], weights[index], scale);
    }
  } else {
    for (int index = threadIdx.x; index < packs; index += threads)
      out[index] = scaled(row[index], weights[index], scale);
  }
}
"""
TYPES = {torch.bfloat16: "__bf16", torch.float16: "_Float16", torch.float32: "float"}
WAVE = 64
MOST_ELEMENTS = 64  # of a row in one thread's registers


@functools.cache
def compiled(dtype: torch.dtype, vector: int, tiles: int, waves: int):
    options = [f"-DTYPE={TYPES[dtype]}", f"-DVECTOR={vector}", f"-DTILES={tiles}", f"-DWAVES={waves}"]
    return torch.cuda._compile_kernel(SOURCE, "rmsnorm_rows", nvcc_options=options)


def run(x, weight, eps):
    x, weight = x.contiguous(), weight.contiguous()
    y = torch.empty_like(x)
    rows, cols = x.shape
    if not y.numel():
        return y
    wide = 16 // x.element_size()
    aligned = all(tensor.data_ptr() % 16 == 0 for tensor in (x, weight, y))
    vector = wide if aligned and cols % wide == 0 else 1
    packs = cols // vector
    waves = min(16, max(1, -(-packs // (4 * WAVE))))
    tiles = -(-packs // (waves * WAVE))
    if tiles * vector > MOST_ELEMENTS:
        tiles = 0
    kernel = compiled(x.dtype, vector, tiles, waves)
    kernel(grid=(rows, 1, 1), block=(waves * WAVE, 1, 1), args=[x, weight, y, cols, float(eps)])
    return y
