// Forty-eight accumulators in thirty-two registers: most of the loop moves them to local memory and back.
// nvcc: -maxrregcount=32
#include "planted.h"

constexpr int SUMS = 48, STEPS = 64;

__global__ void spilling(const float* __restrict__ in, float* __restrict__ out) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  float sums[SUMS];
#pragma unroll
  for (int j = 0; j < SUMS; ++j) sums[j] = float(j);
#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
    const float x = in[(size_t(step) * threads + thread) & ((1u << 22) - 1)];
#pragma unroll
    for (int j = 0; j < SUMS; ++j) sums[j] = fmaf(sums[j], 0.5f, x);
  }
  float total = 0;
#pragma unroll
  for (int j = 0; j < SUMS; ++j) total = fmaf(total, 0.75f, sums[j]);
  out[thread] = total;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 2, threads = blocks * 256;
  const float* in = planted::values<float>(1u << 22);
  float* out = planted::zeros<float>(threads);
  planted::three_times([&] { spilling<<<blocks, 256>>>(in, out); });
  float sums[SUMS], total = 0;
  for (int j = 0; j < SUMS; ++j) sums[j] = float(j);
  for (int step = 0; step < STEPS; ++step) {
    const float x = planted::value((size_t(step) * threads + 5) & ((1u << 22) - 1));
    for (float& sum : sums) sum = fmaf(sum, 0.5f, x);
  }
  for (float sum : sums) total = fmaf(total, 0.75f, sum);
  return planted::verdict(planted::near(planted::fetched_one(out, 5), total));
}
