// Thirty-two warps take turns at a serial chain, with a barrier after each turn: thirty-one wait for one.
#include "planted.h"

constexpr int ROUNDS = 256, CHAIN = 64;

__global__ void __launch_bounds__(1024, 2) barrier_bound(float* out, float slope, float offset) {
  __shared__ float turn;
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (threadIdx.x == 0) turn = 1.0f;
  __syncthreads();
  for (int round = 0; round < ROUNDS; ++round) {
    if (warp == round % warps) {
      float x = turn;
      for (int step = 0; step < CHAIN; ++step) x = fmaf(x, slope, offset);
      __syncwarp();
      if (threadIdx.x % 32 == 0) turn = x;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = turn;
}

int main() {
  const int blocks = planted::multiprocessors() * 2 * 4;
  float* out = planted::zeros<float>(blocks);
  planted::three_times([&] { barrier_bound<<<blocks, 1024>>>(out, 0.5f, 1.0f); });
  return planted::verdict(planted::near(planted::fetched_one(out, blocks - 1), 2.0));
}
