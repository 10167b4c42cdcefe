// A tiled product of half-precision matrices on the FP32 pipe: the tensor cores, made for it, stay idle.
#include <cuda_fp16.h>

#include "planted.h"

constexpr int SIZE = 2048, TILE = 64, DEPTH = 16;

struct Four {
  float v[4];
};

__device__ Four load_four(const __half* from) {
  const uint2 raw = *reinterpret_cast<const uint2*>(from);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&raw.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&raw.y));
  return {{low.x, low.y, high.x, high.y}};
}

__global__ void __launch_bounds__(256)
    no_tensor_cores(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  __shared__ __align__(16) float tile_a[DEPTH][TILE + 4];
  __shared__ __align__(16) float tile_b[DEPTH][TILE];
  const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
  const int a_row = threadIdx.x / 4, a_k = threadIdx.x % 4 * 4;
  const int b_k = threadIdx.x / 16, b_column = threadIdx.x % 16 * 4;
  float sums[4][4] = {};
  for (int k0 = 0; k0 < SIZE; k0 += DEPTH) {
    const Four from_a = load_four(a + size_t(row0 + a_row) * SIZE + k0 + a_k);
    const Four from_b = load_four(b + size_t(k0 + b_k) * SIZE + column0 + b_column);
#pragma unroll
    for (int i = 0; i < 4; ++i) tile_a[a_k + i][a_row] = from_a.v[i];
    *reinterpret_cast<float4*>(&tile_b[b_k][b_column]) =
        make_float4(from_b.v[0], from_b.v[1], from_b.v[2], from_b.v[3]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      const float4 x = *reinterpret_cast<const float4*>(&tile_a[k][row]);
      const float4 y = *reinterpret_cast<const float4*>(&tile_b[k][column]);
      const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(xs[i], ys[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<float4*>(&c[size_t(row0 + row + i) * SIZE + column0 + column]) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
}

int main() {
  const __half* a = planted::values<__half>(size_t(SIZE) * SIZE);
  const __half* b = planted::values<__half>(size_t(SIZE) * SIZE);
  float* c = planted::zeros<float>(size_t(SIZE) * SIZE);
  const dim3 blocks(SIZE / TILE, SIZE / TILE);
  planted::three_times([&] { no_tensor_cores<<<blocks, 256>>>(a, b, c); });
  const size_t row = 1027, column = 391;
  double expected = 0;
  for (size_t k = 0; k < SIZE; ++k) expected += planted::value(row * SIZE + k) * planted::value(k * SIZE + column);
  return planted::verdict(planted::near(planted::fetched_one(c, row * SIZE + column), expected, 1e-2));
}
