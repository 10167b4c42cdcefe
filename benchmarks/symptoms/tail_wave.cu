// One block in ten of a wave too many: the device runs a second wave that is almost empty.
#include "planted.h"

constexpr int STEPS = 16384;

__global__ void __launch_bounds__(1024, 2) tail_wave(float* out, float slope, float offset) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  float x = float(thread & 1023);
  for (int step = 0; step < STEPS; ++step) x = fmaf(x, slope, offset);
  out[thread] = x;
}

int main() {
  const int wave = planted::multiprocessors() * 2, blocks = wave + wave / 20 + 1;
  float* out = planted::zeros<float>(size_t(blocks) * 1024);
  planted::three_times([&] { tail_wave<<<blocks, 1024>>>(out, 0.5f, 1.0f); });
  return planted::verdict(planted::near(planted::fetched_one(out, size_t(blocks) * 1024 - 1), 2.0));
}
