// One element in thirty-two takes a hundred times as many steps as the others: the rest of its warp idles.
#include "planted.h"

constexpr int COUNT = 1 << 22, SHORT_STEPS = 20, LONG_STEPS = 2000;

__host__ __device__ inline bool is_long(unsigned i) { return planted::hashed(i) % 32 == 0; }

__global__ void divergence(const float* __restrict__ in, float* __restrict__ out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int steps = is_long(i) ? LONG_STEPS : SHORT_STEPS;
  float x = in[i];
  for (int step = 0; step < steps; ++step) x = fmaf(x, 1.0f - x, 0.125f);
  out[i] = x;
}

int main() {
  const float* in = planted::values<float>(COUNT);
  float* out = planted::zeros<float>(COUNT);
  planted::three_times([&] { divergence<<<COUNT / 256, 256>>>(in, out); });
  float expected = planted::value(777);
  for (int step = 0; step < (is_long(777) ? LONG_STEPS : SHORT_STEPS); ++step) {
    expected = fmaf(expected, 1.0f - expected, 0.125f);
  }
  return planted::verdict(planted::near(planted::fetched_one(out, 777), expected, 1e-2));
}
