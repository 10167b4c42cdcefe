// A random mask drawn with shifts and exclusive ors: eight integer instructions surround each multiply-add.
#include "planted.h"

constexpr int STEPS = 512;

__global__ void instruction_bound(const float* __restrict__ in, float* __restrict__ out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const float value = in[thread];
  unsigned random = thread * 2u + 1u;
  float sum = 0;
  for (int step = 0; step < STEPS; ++step) {
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    sum = fmaf(sum, 0.5f, random > 0x40000000u ? value : 0.0f);
  }
  out[thread] = sum;
}

int main() {
  const int blocks = planted::multiprocessors() * 8 * 4, threads = blocks * 256;
  const float* in = planted::values<float>(threads);
  float* out = planted::zeros<float>(threads);
  planted::three_times([&] { instruction_bound<<<blocks, 256>>>(in, out); });
  unsigned random = 31 * 2u + 1u;
  float expected = 0;
  for (int step = 0; step < STEPS; ++step) {
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    expected = fmaf(expected, 0.5f, random > 0x40000000u ? planted::value(31) : 0.0f);
  }
  return planted::verdict(planted::near(planted::fetched_one(out, 31), expected));
}
