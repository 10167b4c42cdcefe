// A tensor-core product with one buffer: load, wait, multiply, wait. The tensor cores idle while the tiles arrive.
#include <cuda_fp16.h>
#include <mma.h>

#include "planted.h"

using namespace nvcuda;

constexpr int SIZE = 4096, TILE = 128, DEPTH = 32, PITCH_A = DEPTH + 8, PITCH_B = TILE + 8;

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major>;
using FragmentC = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

__global__ void __launch_bounds__(256)
    pipeline_bubbles(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  __shared__ __align__(32) __half tile_a[TILE * PITCH_A];
  __shared__ __align__(32) __half tile_b[DEPTH * PITCH_B];
  const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
  const int warp = threadIdx.x / 32, row = warp / 2 * 32, column = warp % 2 * 64;
  FragmentC sums[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }
#pragma unroll 1
  for (int k0 = 0; k0 < SIZE; k0 += DEPTH) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int i = threadIdx.x + part * 256;
      const int a_row = i / 4, a_k = i % 4 * 8, b_k = i / 16, b_column = i % 16 * 8;
      *reinterpret_cast<uint4*>(&tile_a[a_row * PITCH_A + a_k]) =
          *reinterpret_cast<const uint4*>(a + size_t(row0 + a_row) * SIZE + k0 + a_k);
      *reinterpret_cast<uint4*>(&tile_b[b_k * PITCH_B + b_column]) =
          *reinterpret_cast<const uint4*>(b + size_t(k0 + b_k) * SIZE + column0 + b_column);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
      FragmentA from_a[2];
      FragmentB from_b[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(from_a[i], &tile_a[(row + i * 16) * PITCH_A + k], PITCH_A);
#pragma unroll
      for (int j = 0; j < 4; ++j) wmma::load_matrix_sync(from_b[j], &tile_b[k * PITCH_B + column + j * 16], PITCH_B);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) wmma::mma_sync(sums[i][j], from_a[i], from_b[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float* to = c + size_t(row0 + row + i * 16) * SIZE + column0 + column + j * 16;
      wmma::store_matrix_sync(to, sums[i][j], SIZE, wmma::mem_row_major);
    }
  }
}

int main() {
  const __half* a = planted::values<__half>(size_t(SIZE) * SIZE);
  const __half* b = planted::values<__half>(size_t(SIZE) * SIZE);
  float* c = planted::zeros<float>(size_t(SIZE) * SIZE);
  const dim3 blocks(SIZE / TILE, SIZE / TILE);
  planted::three_times([&] { pipeline_bubbles<<<blocks, 256>>>(a, b, c); });
  const size_t row = 1027, column = 391;
  double expected = 0;
  for (size_t k = 0; k < SIZE; ++k) expected += planted::value(row * SIZE + k) * planted::value(k * SIZE + column);
  return planted::verdict(planted::near(planted::fetched_one(c, row * SIZE + column), expected, 1e-2));
}
