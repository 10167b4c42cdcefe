// A history of ninety-six kilobytes a block in shared memory leaves room for eight warps of loads that wait in turn.
#include "planted.h"

constexpr int STEPS = 192, THREADS = 128;
constexpr int BYTES = STEPS * THREADS * int(sizeof(float));

__global__ void occupancy_shared(const float* __restrict__ in, float* __restrict__ out) {
  extern __shared__ float history[];
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  unsigned at = thread;
  for (int step = 0; step < STEPS; ++step) {
    const float x = in[at];
    history[step * THREADS + threadIdx.x] = x;
    at += threads + (x > 2.0f);  // never greater, but the next address has to wait for it
  }
  float sum = 0;
  for (int step = STEPS; step-- > 0;) sum = fmaf(sum, 0.5f, history[step * THREADS + threadIdx.x]);
  out[thread] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 2 * 2, threads = blocks * THREADS;
  CHECK(cudaFuncSetAttribute(occupancy_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
  const float* in = planted::values<float>(size_t(threads) * (STEPS + 1));
  float* out = planted::zeros<float>(threads);
  planted::three_times([&] { occupancy_shared<<<blocks, THREADS, BYTES>>>(in, out); });
  float expected = 0;
  for (int step = STEPS; step-- > 0;) expected = fmaf(expected, 0.5f, planted::value(11 + size_t(step) * threads));
  return planted::verdict(planted::near(planted::fetched_one(out, 11), expected));
}
