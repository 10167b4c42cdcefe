// Control: eight independent chains of multiply-adds a thread. Nothing is left but the arithmetic itself.
#include "planted.h"

constexpr int CHAINS = 8, STEPS = 1024;

__global__ void fma_peak(float* out, float slope, float offset) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  float x[CHAINS];
#pragma unroll
  for (int j = 0; j < CHAINS; ++j) x[j] = float(threadIdx.x + j);
#pragma unroll 16
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int j = 0; j < CHAINS; ++j) x[j] = fmaf(x[j], slope, offset);
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < CHAINS; ++j) sum += x[j];
  out[thread] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 4;
  float* out = planted::zeros<float>(blocks * 256);
  planted::three_times([&] { fma_peak<<<blocks, 256>>>(out, 0.5f, 1.0f); });
  return planted::verdict(planted::near(planted::fetched_one(out, 1000), 2.0 * CHAINS));
}
