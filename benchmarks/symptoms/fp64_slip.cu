// A recurrence in floats whose literals lack their `f`: the sums between them are taken in double precision.
#include "planted.h"

constexpr size_t COUNT = 1 << 22;
constexpr int STEPS = 256;

__global__ void fp64_slip(const float* __restrict__ in, float* __restrict__ out) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  auto y = 0.25 * in[i];
  for (int step = 0; step < STEPS; ++step) y = y * 0.996 + 0.003;
  out[i] = float(y);
}

int main() {
  const float* in = planted::values<float>(COUNT);
  float* out = planted::zeros<float>(COUNT);
  planted::three_times([&] { fp64_slip<<<COUNT / 256, 256>>>(in, out); });
  double expected = 0.25 * planted::value(99);
  for (int step = 0; step < STEPS; ++step) expected = expected * 0.996 + 0.003;
  return planted::verdict(planted::near(planted::fetched_one(out, 99), expected));
}
