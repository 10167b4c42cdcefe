// Held out: a three-point stencil where every thread loads all three points itself. The L1 cache mends it.
#include "planted.h"

constexpr size_t COUNT = 64u << 20;

__global__ void stencil_naive(const float* __restrict__ in, float* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i == 0 || i == COUNT - 1) return;
  out[i] = 0.25f * in[i - 1] + 0.5f * in[i] + 0.25f * in[i + 1];
}

int main() {
  const float* in = planted::values<float>(COUNT);
  float* out = planted::zeros<float>(COUNT);
  planted::three_times([&] { stencil_naive<<<COUNT / 256, 256>>>(in, out); });
  const size_t i = 7654321;
  const float expected = 0.25f * planted::value(i - 1) + 0.5f * planted::value(i) + 0.25f * planted::value(i + 1);
  return planted::verdict(planted::near(planted::fetched_one(out, i), expected));
}
