// Blocks of one warp: the multiprocessor's slots for blocks are full at half of the warps that it could hold.
#include "planted.h"

constexpr int STEPS = 64;

__global__ void occupancy_blocks(const float* __restrict__ in, float* __restrict__ out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  unsigned at = thread;
  float sum = 0;
  for (int step = 0; step < STEPS; ++step) {
    const float x = in[at];
    at += threads + (x > 2.0f);  // never greater, but the next address has to wait for it
    sum += x;
  }
  out[thread] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 32 * 4, threads = blocks * 32;
  const float* in = planted::values<float>(size_t(threads) * (STEPS + 1));
  float* out = planted::zeros<float>(threads);
  planted::three_times([&] { occupancy_blocks<<<blocks, 32>>>(in, out); });
  float expected = 0;
  for (int step = 0; step < STEPS; ++step) expected += planted::value(13 + size_t(step) * threads);
  return planted::verdict(planted::near(planted::fetched_one(out, 13), expected));
}
