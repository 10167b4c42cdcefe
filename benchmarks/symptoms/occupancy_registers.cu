// One hundred and ninety-two accumulators a thread leave room for eight warps, too few to hide one load after another.
#include "planted.h"

constexpr int PHASES = 12, WIDTH = 16, ROUNDS = 8;

__global__ void __launch_bounds__(128) occupancy_registers(const float* __restrict__ in, float* __restrict__ out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  float sums[PHASES * WIDTH];
#pragma unroll
  for (int j = 0; j < PHASES * WIDTH; ++j) sums[j] = float(j);
  unsigned at = thread;
#pragma unroll 1
  for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
    for (int phase = 0; phase < PHASES; ++phase) {
      const float x = in[at];
      at += threads + (x > 2.0f);  // never greater, but the next address has to wait for it
#pragma unroll
      for (int j = 0; j < WIDTH; ++j) sums[phase * WIDTH + j] = fmaf(sums[phase * WIDTH + j], 0.5f, x);
    }
  }
  float total = 0;
#pragma unroll
  for (int j = 0; j < PHASES * WIDTH; ++j) total = fmaf(total, 0.75f, sums[j]);
  out[thread] = total;
}

int main() {
  const int blocks = planted::multiprocessors() * 2 * 4, threads = blocks * 128;
  const float* in = planted::values<float>(size_t(threads) * (PHASES * ROUNDS + 1));
  float* out = planted::zeros<float>(threads);
  planted::three_times([&] { occupancy_registers<<<blocks, 128>>>(in, out); });
  float sums[PHASES * WIDTH], total = 0;
  for (int j = 0; j < PHASES * WIDTH; ++j) sums[j] = float(j);
  for (int step = 0; step < PHASES * ROUNDS; ++step) {
    const float x = planted::value(7 + size_t(step) * threads);
    for (int j = 0; j < WIDTH; ++j) {
      float& sum = sums[step % PHASES * WIDTH + j];
      sum = fmaf(sum, 0.5f, x);
    }
  }
  for (float sum : sums) total = fmaf(total, 0.75f, sum);
  return planted::verdict(planted::near(planted::fetched_one(out, 7), total));
}
