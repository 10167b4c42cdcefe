// Chains of exponentials: the special-function pipe, a quarter as wide as a scheduler issues, is always full.
#include "planted.h"

constexpr int CHAINS = 4, STEPS = 256;

__global__ void special_functions(const float* __restrict__ in, float* __restrict__ out) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  float x[CHAINS];
#pragma unroll
  for (int j = 0; j < CHAINS; ++j) x[j] = in[thread] + float(j);
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int j = 0; j < CHAINS; ++j) x[j] = __expf(-x[j]);
  }
  out[thread] = x[0] + x[1] + x[2] + x[3];
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 2, threads = blocks * 256;
  const float* in = planted::values<float>(threads);
  float* out = planted::zeros<float>(threads);
  planted::three_times([&] { special_functions<<<blocks, 256>>>(in, out); });
  return planted::verdict(planted::near(planted::fetched_one(out, 17), 4 * 0.567143, 1e-3));
}
