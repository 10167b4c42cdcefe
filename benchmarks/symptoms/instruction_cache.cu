// Forty-eight stretches of straight-line code, six kilobytes each, which every warp visits in an order of its own.
#include "planted.h"

constexpr int SEGMENTS = 48, LENGTH = 400, ROUNDS = 48;

__host__ __device__ constexpr float slope(int segment, int step) {
  return 0.25f + float((segment * LENGTH + step) % 4093) * 1e-4f;
}

template <int SEGMENT>
__device__ __noinline__ float stretch(float x, float offset) {
#pragma unroll
  for (int step = 0; step < LENGTH; ++step) x = fmaf(x, slope(SEGMENT, step), offset);
  return x;
}

#define ONE(n) \
  case n: return stretch<n>(x, offset);
#define FOUR(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3)
#define SIXTEEN(n) FOUR(n) FOUR(n + 4) FOUR(n + 8) FOUR(n + 12)

__device__ __forceinline__ float visit(int segment, float x, float offset) {
  switch (segment) {
    SIXTEEN(0)
    SIXTEEN(16)
    SIXTEEN(32)
    default: return x;
  }
}

__global__ void instruction_cache(float* out, float offset) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, warp = thread / 32;
  float x = float(threadIdx.x);
#pragma unroll 1
  for (int round = 0; round < ROUNDS; ++round) x = visit((warp * 5 + round * 7) % SEGMENTS, x, offset);
  out[thread] = x;
}

int main() {
  const int blocks = planted::multiprocessors() * 8;
  float* out = planted::zeros<float>(blocks * 256);
  planted::three_times([&] { instruction_cache<<<blocks, 256>>>(out, 1.0f); });
  float expected = 3.0f;
  for (int round = 0; round < ROUNDS; ++round) {
    for (int step = 0; step < LENGTH; ++step) expected = fmaf(expected, slope(round * 7 % SEGMENTS, step), 1.0f);
  }
  return planted::verdict(planted::near(planted::fetched_one(out, 3), expected));
}
